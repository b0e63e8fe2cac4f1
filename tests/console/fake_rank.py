"""Stands in for footplate-rank: reads its config, prints a line a step, obeys SIGUSR2, serves the run's socket, writes
result.json. How it fails is told in the environment variable FAKE_RANK, a JSON object:

  steps, step_ms        how many, and how long each takes
  checkpoint_at         a checkpoint is there from this step on
  die                   "kill", "segv", "exit:N": so it ends without a result, at step die_at (1)
  die_starts            … only in the first so many starts
  fail                  [code, reason]: so it ends with a result at step die_at
  save_s                how long saving takes after SIGUSR2
  deaf                  SIGUSR2 is ignored
  no_data               what it says is missing when `footplate check` has it look at the data
  linger_s              how long it stays after its result
  console               false: no socket
  straggler             a process in a session of its own, that ignores the end of this one
  pad                   so many characters more in each line
  events                {step: [[topic, data]…]}: so it appends to events.jsonl then
  start_hang            it says where it is in its start, and comes no further
  refuse                [code, reason]: it ends with that result before it is ready
  ahead                 the step file is so many steps ahead of run.json
  refuse_stop           the state and error of the answer to run.stop
"""

import argparse
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

if sys.argv[1:] == ["--check-data"]:
    json.load(sys.stdin)["data.corpus"]
    missing = json.loads(os.environ.get("FAKE_RANK", "{}")).get("no_data")
    sys.exit(missing and (print(missing, file=sys.stderr) or 2))

parser = argparse.ArgumentParser()
parser.add_argument("--run-dir", type=pathlib.Path, required=True)
parser.add_argument("--start", type=int, required=True)
parser.add_argument("--resume", default="")
parser.add_argument("--ran", type=int, default=0)
options = parser.parse_args()
fake = {"steps": 3, "step_ms": 10, "checkpoint_at": None, "die": None, "die_at": 1, "die_starts": 10**6, "fail": None,
        "save_s": 0, "deaf": False, "linger_s": 0, "console": True, "pad": 0, "straggler": False, "start_hang": False, "events": {}, "refuse": None, "ahead": None, "refuse_stop": None, **json.loads(os.environ.get("FAKE_RANK", "{}"))}
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
stop = {"reason": None, "code": 0, "note": None}
step = 0


def replace(name, value):
    path = options.run_dir / (name + ".new")
    path.write_text(json.dumps(value))
    os.replace(path, options.run_dir / name)


def checkpoint():
    folder = options.run_dir / "checkpoints" / "main" / f"step-{step:08d}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps({"step": step}))
    return str(folder)


def on_usr2(_number, _frame):
    if not fake["deaf"]:
        stop.update(reason="signal", code=75)


def status():
    return {"run": "fake", "state": "running", "step": step, "steps": fake["steps"], "world_size": 1, "loss": 2.5, "lr": "@nan",
            "notes": ["rank 0 is made of paper"], "orders": [], "tokens_per_s": 1234.5, "step_ms": 10, "eta_s": 75,
            "ranks": [{"rank": 0, "host": "h", "pid": os.getpid(), "step": step, "phase": "forward", "phase_s": 0.1,
                       "silent_s": 0.05, "stalled": False,
                       "collective": {"sequence": 7, "kind": "all_reduce", "elements": 1000, "running": True, "age_s": 0.2}}]}


def answer(request, send):
    number, op = request["id"], request["op"]
    code = request.get("code", "")

    def result(value):
        send({"type": "result", "id": number, "value": value})

    def error(kind, message):
        send({"type": "error", "id": number, "error": {"kind": kind, "message": message}})

    if op == "status":
        result(status())
    elif op == "call" and fake["refuse_stop"]:
        result({"state": fake["refuse_stop"][0], "error": fake["refuse_stop"][1]})
    elif op == "call":
        arguments = request["arguments"]
        stop.update(reason="asked", code=75 if arguments["resumable"] else 0, note=arguments["reason"], save=arguments["save"])
        result({"state": "applied"})
    elif op == "interrupt":
        result({})
        error_of_hanging[0]("script", "interrupted")
    elif op == "eval" and code == "hang":
        error_of_hanging[0] = error
    elif op == "eval" and code == "deaf":
        error_of_hanging[0] = lambda *_: None
    elif op == "eval" and code == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif op == "eval" and code.startswith("kind:"):
        error(code[5:], "as you wish")
    elif op == "eval":
        send({"type": "output", "id": number, "stream": "out", "text": "printed\n"})
        send({"type": "output", "id": number, "stream": "talk", "text": "log.every 50 -> 10"})
        result({"text": "ran " + code, "value": {"code": code}})


error_of_hanging = [lambda *_: None]


def serve(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    while True:
        client, _ = server.accept()
        threading.Thread(target=converse, args=(client,), daemon=True).start()


def converse(client):
    def send(message):
        client.sendall(json.dumps(message).encode() + b"\n")

    send({"type": "hello", "product": "footplate", "protocol": 1, "session": "s1", "role": "admin"})
    for line in client.makefile():
        answer(json.loads(line), send)


def end(code, reason, saved=None):
    if rank == 0:
        replace("result.json", {"code": code, "reason": reason, "step": step, "checkpoint": saved, "note": stop["note"]})
    else:
        time.sleep(1)  # mpirun ends all when one ends badly: rank 0 has to have written
    time.sleep(fake["linger_s"])
    os._exit(code)


def die():
    if fake["fail"]:
        code, reason, *saved = fake["fail"]
        end(code, reason, *[str(options.run_dir / "checkpoints" / "main" / f"step-{step:08d}") for step in saved])
    if fake["die"] in ("kill", "segv"):
        os.kill(os.getpid(), {"kill": signal.SIGKILL, "segv": signal.SIGSEGV}[fake["die"]])
    print("the fake rank dies now", file=sys.stderr, flush=True)
    os._exit(int(fake["die"].split(":")[1]))


signal.signal(signal.SIGUSR2, on_usr2)
json.loads((options.run_dir / f"config-{options.start}.json").read_text())
record = json.loads((options.run_dir / "run.json").read_text())
if fake["refuse"]:
    end(*fake["refuse"])
if fake["start_hang"]:
    arrival = {"rank": rank, "pid": os.getpid(), "host": record["host"], "stage": 1, "waits": False, "has_met": False, "place": "before MPI starts"}
    pathlib.Path(os.environ["FOOTPLATE_DOORBELL_DIR"], f"arrival-{rank}").write_text(json.dumps(arrival) + "\n")
    while True:
        signal.pause()
if rank == 0:
    if fake["console"]:
        threading.Thread(target=serve, args=(record["socket"],), daemon=True).start()
    replace("run.json", {**record, "state": "running", "ranks": [{"rank": 0, "host": record["host"], "pid": os.getpid()}]})
    pathlib.Path(os.environ["TMPDIR"], "left-behind").write_text("x")
    given = "" if "OMPI_COMM_WORLD_RANK" in os.environ else sys.stdin.read()  # mpirun keeps its ranks' stdin open
    print(f"start {options.start} resume={options.resume!r} stdin={given!r} home={os.environ.get('HOME')!r} ran={options.ran}", flush=True)

if fake["straggler"]:
    subprocess.Popen(["sh", "-c", "trap '' TERM; while true; do sleep 1; done"], start_new_session=True, stdout=subprocess.DEVNULL)

while step < fake["steps"] and not stop["reason"]:
    time.sleep(fake["step_ms"] / 1000)
    step += 1
    for topic, data in fake["events"].get(str(step), []):
        with open(options.run_dir / "events.jsonl", "a") as file:
            print(json.dumps({"type": "event", "topic": topic, "time": "2026-11-25T18:00:00Z", "data": data}), file=file)
    if rank == 0:
        print(f"step {step}" + "." * fake["pad"], flush=True)
        replace("run.json", {**json.loads((options.run_dir / "run.json").read_text()), "step": step})
        if fake["ahead"] is not None:
            # In place, as a rank does it: a reader never finds an empty file.
            place = os.open(pathlib.Path(os.environ["FOOTPLATE_DOORBELL_DIR"], "step"), os.O_WRONLY | os.O_CREAT)
            os.pwrite(place, struct.pack("q", step + fake["ahead"]), 0)
            os.close(place)
    if fake["checkpoint_at"] is not None and step == fake["checkpoint_at"]:
        checkpoint()
    if (fake["die"] or fake["fail"]) and step == fake["die_at"] and options.start <= fake["die_starts"]:
        die()

if stop["reason"]:
    time.sleep(fake["save_s"])
    end(stop["code"], stop["reason"], checkpoint() if stop.get("save", True) else None)
end(0, "done")
