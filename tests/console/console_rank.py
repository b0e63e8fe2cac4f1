"""Stands in for footplate-rank with a real console: fakes the training and rank 0's side of the protocol (docs/protocol.md,
"Rank 0 and the console"), and starts the real footplate-console as its child, again where it dies.

The environment variable FAKE_RANK, a JSON object, says how it trains:

  steps, step_ms        how many, and how long each takes
  log_every_ms          a metrics event so often; 0: never
  eval_s                how long an evaluation and a save take
  start_s               how long before there is a console
  fail                  [code, reason]: so it ends at once
  code, reason          of the end by itself

A test commands it by lines of JSON to RUN/control.sock: {"event": topic, "data": …, "times": n, "each_ms": m}, {"state": …},
{"stall": rank or null, "note": text}, {"kill_console": true}, {"pid": true}, {"end": [code, reason]}, {"exit": code}.
"""

import argparse
import datetime
import json
import os
import pathlib
import signal
import socket
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--run-dir", type=pathlib.Path, required=True)
parser.add_argument("--start", type=int, required=True)
parser.add_argument("--resume", default="")
parser.add_argument("--ran", type=int, default=0)
options = parser.parse_args()
fake = {"steps": 10**6, "step_ms": 10, "log_every_ms": 0, "eval_s": 0.3, "start_s": 0, "fail": None, "code": 0, "reason": "done",
        **json.loads(os.environ.get("FAKE_RANK", "{}"))}
WORLD = 8
lock = threading.RLock()
ended = threading.Event()
state = {"state": "running", "step": 0, "stalled": None, "note": "", "orders": 0, "sequence": 0, "loss": 2.5}
result = {}
console = {"socket": None, "pid": 0}
schema = json.loads(pathlib.Path(os.environ["FOOTPLATE_TEST_SCHEMA"]).read_text())
settings = json.loads((options.run_dir / f"config-{options.start}.json").read_text())


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def replace(name, value):
    path = options.run_dir / (name + ".new")
    path.write_text(json.dumps(value))
    os.replace(path, options.run_dir / name)


def update_record(**fields):
    with lock:
        replace("run.json", {**json.loads((options.run_dir / "run.json").read_text()), **fields})


def rank_status(rank):
    stalled = state["stalled"] == rank
    return {"rank": rank, "host": "h", "pid": os.getpid(), "step": state["step"], "phase": "forward", "phase_s": 0.1,
            "silent_s": 13.0 if stalled else 0.05, "stalled": stalled,
            "collective": {"sequence": 7, "kind": "all_reduce", "elements": 1000, "running": False, "age_s": 0.2}}


def status():
    notes = [] if state["stalled"] is None else [state["note"]] if state["note"] else [f"rank {state['stalled']} silent for 13.0 s, last seen at step {state['step']} in forward"]
    return {"run": record["name"], "state": state["state"], "step": state["step"], "steps": fake["steps"], "world_size": WORLD,
            "started": record["started"], "loss": state["loss"], "lr": 3e-4, "tokens_per_s": 25600.0, "step_ms": fake["step_ms"],
            "eta_s": 75, "notes": notes, "orders": [], "ranks": [rank_status(rank) for rank in range(2)]}


def send(message):
    with lock:
        if console["socket"]:
            try:
                console["socket"].sendall(json.dumps(message).encode() + b"\n")
            except OSError:
                pass


def write_event(topic, data):
    with lock:
        state["sequence"] += 1
        with open(options.run_dir / "events.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"sequence": state["sequence"], "time": now(), "topic": topic, "data": data}) + "\n")


def event(topic, data):
    if topic == "metrics":
        with lock, open(options.run_dir / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({**data, "start": options.start}) + "\n")
    else:
        write_event(topic, data)
    send({"type": "event", "topic": topic, "time": now(), "data": data})


def enter(name):
    state["state"] = name
    send({"type": "status", "status": status()})


# --- the console ---


def start_console():
    ours, theirs = socket.socketpair()
    with lock:
        console["socket"] = ours
        console["pid"] = os.posix_spawn(os.environ["FOOTPLATE_TEST_CONSOLE"], ["footplate-console", "--run-dir", str(options.run_dir)],
                                        os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3)], setsid=True)
        send({"type": "hello", "protocol": 1, "run": {**record, "directory": str(options.run_dir), "user": "ann", "world_size": WORLD},
              "schema": schema, "settings": settings, "status": status(), "reports": reports[-1000:]})
    theirs.close()
    return ours


def serve_console():
    time.sleep(fake["start_s"])
    while not ended.is_set():
        ours = start_console()
        try:
            for line in ours.makefile():
                on_console(json.loads(line))
        except OSError:
            pass  # it was killed with something unread
        os.waitpid(console["pid"], 0)
        with lock:
            console["socket"] = None
        time.sleep(0.05)


def on_console(message):
    if message["type"] == "order":
        threading.Thread(target=apply, args=(message["ref"], message["order"]), daemon=True).start()
    elif message["type"] == "publish":
        event(message["topic"], message["data"])


reports = []


def apply(ref, order):
    with lock:
        state["orders"] += 1
        order["id"] = state["orders"]
        send({"type": "order", "ref": ref, "id": order["id"], "state": "accepted"})
        if any(call["action"] == "run.pause" and call["arguments"].get("reason") == "never" for call in order["calls"]):
            return send({"type": "order", "ref": ref, "id": order["id"], "state": "waiting", "text": "waiting for rank 3: step 812"})
        moved = []
        for change in order["changes"]:
            moved.append({"name": change["name"], "before": settings[change["name"]]["value"], "after": change["value"]})
            settings[change["name"]] = {"value": change["value"], "source": f"order {order['id']}"}
        step = state["step"] + 1
        send({"type": "settings", "settings": {item["name"]: settings[item["name"]] for item in moved}})
        report = {"type": "order", "ref": ref, "id": order["id"], "state": "applied", "order": order,
                  "applied": {"id": order["id"], "step": step, "ranks": WORLD, "world_size": WORLD, "digest": "d", "moved": moved},
                  "calls": [{"call": index, "action": call["action"]} for index, call in enumerate(order["calls"])]}
        reports.append(report)
        write_event("order", report)
        send(report)
    for index, call in enumerate(order["calls"]):
        perform(order["id"], index, call)


def perform(order, index, call):
    action, arguments = call["action"], call["arguments"]
    value = {}
    if action == "run.pause":
        enter("paused")
        event("run", {"state": "paused"})
    elif action == "run.resume":
        enter("running")
        event("run", {"state": "running"})
    elif action in ("eval.now", "ckpt.save"):
        enter("evaluating" if action == "eval.now" else "saving")
        time.sleep(fake["eval_s"])
        enter("running")
        value = {"step": state["step"], "loss": 2.25, "best": 2.25, "seconds": fake["eval_s"]} if action == "eval.now" else \
            {"step": state["step"], "path": "checkpoints/main/step-1", "seconds": fake["eval_s"]}
        event("eval" if action == "eval.now" else "ckpt", value)
    elif action == "run.stop":
        result.update(code=75 if arguments.get("resumable") else 0, reason="asked")
        ended.set()
    send({"type": "call", "order": order, "call": index, "action": action, "state": "done", "result": value})


# --- what a test says ---


def serve_control():
    server = socket.socket(socket.AF_UNIX)
    folder = os.open(options.run_dir, os.O_RDONLY)  # its path may be too long for a socket
    server.bind(f"/proc/self/fd/{folder}/control.sock")
    os.close(folder)
    server.listen()
    while True:
        client, _ = server.accept()
        for line in client.makefile():
            answer = command(json.loads(line))
            client.sendall(json.dumps(answer).encode() + b"\n")


def command(asked):
    if "event" in asked:
        for number in range(asked.get("times", 1)):
            data = {name: value.replace("{n}", str(number)) if isinstance(value, str) else value for name, value in asked["data"].items()}
            event(asked["event"], data)
            time.sleep(asked.get("each_ms", 0) / 1000)
    if "state" in asked:
        enter(asked["state"])
    if "stall" in asked:
        state["stalled"] = asked["stall"]
        state["note"] = asked.get("note", "")
        send({"type": "status", "status": status()})
    if "kill_console" in asked:
        os.kill(console["pid"], signal.SIGKILL)
    if "end" in asked:
        result.update(code=asked["end"][0], reason=asked["end"][1])
        ended.set()
    if "exit" in asked:
        os._exit(asked["exit"])
    return {"pid": os.getpid(), "console": console["pid"], "step": state["step"], "orders": state["orders"], "settings": settings}


def on_usr2(_number, _frame):
    result.update(code=75, reason="signal")
    # Elsewhere: this thread may hold the event's own lock right now.
    threading.Thread(target=ended.set).start()


def train():
    next_log = time.monotonic() + fake["log_every_ms"] / 1000
    next_status = next_record = 0
    print(f"start {options.start} of the fake rank", flush=True)
    while not ended.wait(fake["step_ms"] / 1000) and state["step"] < fake["steps"]:
        if state["state"] in ("running", "ending"):
            state["step"] += 1
        moment = time.monotonic()
        if moment >= next_status:
            next_status = moment + 0.2
            send({"type": "status", "status": status()})
        if moment >= next_record:
            next_record = moment + 0.1
            update_record(step=state["step"])
        if fake["log_every_ms"] and moment >= next_log:
            next_log = moment + fake["log_every_ms"] / 1000
            event("metrics", {"step": state["step"], "train/loss": state["loss"], "train/lr": 3e-4, "perf/tokens_per_s": 25600.0,
                              "perf/step_ms": fake["step_ms"]})


def end(code, reason):
    ended.set()
    value = {"code": code, "reason": reason, "step": state["step"], "checkpoint": None}
    replace("result.json", value)
    update_record(state="ending", step=state["step"])
    write_event("end", value)
    print(f"end: {reason}", flush=True)
    send({"type": "end", "result": value})
    with lock:
        if console["socket"]:
            console["socket"].shutdown(socket.SHUT_RDWR)
    time.sleep(0.05)
    os._exit(code)


signal.signal(signal.SIGUSR2, on_usr2)
record = json.loads((options.run_dir / "run.json").read_text())
if fake["fail"]:
    print("the fake rank can't start", file=sys.stderr, flush=True)
    replace("result.json", {"code": fake["fail"][0], "reason": fake["fail"][1], "step": 0, "checkpoint": None})
    os._exit(fake["fail"][0])
update_record(state="running", ranks=[{"rank": 0, "host": record["host"], "pid": os.getpid()}])
(options.run_dir / "control.sock").unlink(missing_ok=True)
threading.Thread(target=serve_control, daemon=True).start()
threading.Thread(target=serve_console, daemon=True).start()
train()
end(result.get("code", fake["code"]), result.get("reason", fake["reason"]))
