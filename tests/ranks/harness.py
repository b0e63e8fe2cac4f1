"""Runs of footplate for tests: start one, speak to its console, read what it left behind.

Everything goes through the doors a user has: the `footplate` program, the console's socket (docs/protocol.md)
and the files of the run directory. FOOTPLATE_BIN names the folder of the programs.
"""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FOOTPLATE_BIN", ROOT / "build" / "release" / "bin"))
FULL = os.environ.get("FOOTPLATE_FULL") == "1"


# What a shell says to programs of MPI, NCCL and Slurm, and to footplate, isn't for the runs of tests; but for where things are.
FOREIGN = ("FOOTPLATE_", "NCCL_", "OMPI_", "PMIX_", "PRTE_", "SLURM_")
PLACES = ("FOOTPLATE_CACHE", "FOOTPLATE_MPIRUN")


def surroundings(folder, **more):
    """An environment whose user has no other runs, and whose home, with a blank in its name, is empty; what is None in `more`
    is unset. A corpus that the user has already isn't made again."""
    own = {name: value for name, value in os.environ.items() if name in PLACES or not name.startswith(FOREIGN)}
    own = {"FOOTPLATE_CACHE": os.path.expanduser("~/.cache/footplate/data"), **own, "HOME": str(pathlib.Path(folder) / "a home"),
           "XDG_STATE_HOME": str(pathlib.Path(folder) / "state"), "FOOTPLATE_RUNS": str(pathlib.Path(folder) / "runs"), **more}
    return {name: value for name, value in own.items() if value is not None}


def wait_until(condition, timeout_s, what):
    """The first true value of condition(); an error that says what never came."""
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(0.01)


# With it a run stands still by itself after a step that isn't finite: what is ordered there can't come too late.
PAUSE = "guard.nonfinite=pause"


def not_finite_at(step):
    """The fault that makes a step so; without PAUSE it is skipped, too, with the same parameters."""
    return f"nan_grad:rank=1:step={step}"


def wait_for_pause(client, step=0, timeout_s=60):
    wait_until(lambda: (now := client.ask("status"))["state"] == "paused" and now["step"] >= step, timeout_s, f"the pause from step {step} on")


class Client:
    """One connection to a run's console."""

    def __init__(self, path, timeout_s=60):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout_s)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rb")
        self.hello = json.loads(self.lines.readline())
        self.next_id = 0
        self.outputs = []
        self.events = []

    def send(self, op, **fields):
        self.next_id += 1
        request = {"id": self.next_id, "op": op, **fields}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        return self.next_id

    def answer(self, wanted):
        while True:
            line = self.lines.readline()
            if not line:
                raise ConnectionError("the console closed the connection")
            message = json.loads(line)
            if message.get("type") == "output":
                self.outputs.append(message)
            elif message.get("type") == "event":
                self.events.append(message)
            elif message.get("id") == wanted:
                if message["type"] == "error":
                    raise Refused(message["error"])
                return message["value"]

    def ask(self, op, **fields):
        return self.answer(self.send(op, **fields))

    def close(self):
        self.lines.close()
        self.socket.close()


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error.get("message"))
        self.kind = error.get("kind")
        self.message = error.get("message", "")


class Run:
    """A batch run in a folder of its own."""

    def __init__(self, assignments=(), ranks=2, config="synthetic", name="t", env=None, options=(), folder=None,
                 command=None, wrapper=(), restarts_by_default=False):
        """`command` stands for `run CONFIG … ASSIGNMENTS`; `wrapper` is a program that starts footplate."""
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="fp-"))
        self.owns_folder = folder is None
        self.directory = self.folder / "runs" / name
        self.output_path = self.folder / f"{name}.out"
        self.mark = uuid.uuid4().hex  # in the environment of all its processes
        # On a machine with one device two ranks would not start, so only a run that asks for devices sees them.
        devices = {} if "run.device=cuda" in assignments else {"CUDA_VISIBLE_DEVICES": ""}
        self.environment = surroundings(self.folder, FOOTPLATE_TEST_MARK=self.mark, **{**devices, **(env or {})})
        self.program = BIN / "footplate"
        # Of what fails here the failure is looked at, unless a test says otherwise.
        restarts = [] if "--restarts" in options or restarts_by_default else ["--restarts", "0"]
        command = command or ["run", str(ROOT / "configs" / f"{config}.lua"), "--batch", *(["-n", str(ranks)] if ranks else []), "--name", name,
                              *restarts, *options, *assignments]
        command = [*wrapper, str(BIN / "footplate"), *command]
        with open(self.output_path, "ab") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                            env=self.environment, start_new_session=True)

    def read_json(self, name):
        try:
            return json.loads((self.directory / name).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def lines(self, name):
        """The finished ones of a file: the run may be writing the next."""
        path = self.directory / name
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def output(self):
        return self.output_path.read_text(errors="replace")

    def record(self):
        return self.read_json("run.json") or {}

    def pids(self):
        return [rank["pid"] for rank in sorted(self.record()["ranks"], key=lambda rank: rank["rank"])]

    def wait_for_step(self, step=1, timeout_s=60):
        """A client, once the run has reached `step`."""
        def started():
            if self.process.poll() is not None:
                raise AssertionError(f"the run ended with {self.process.returncode}:\n{self.output()}")
            path = self.record().get("socket")
            return path and os.path.exists(path) and self.record().get("ranks")
        wait_until(started, timeout_s, f"the run to start; so far:\n{self.output()}")
        client = wait_until(self.try_connect, timeout_s, "the console's socket")
        wait_until(lambda: client.ask("status").get("step", 0) >= step, timeout_s, f"step {step}")
        return client

    def try_connect(self):
        try:
            return Client(self.record()["socket"])
        except (ConnectionError, FileNotFoundError, KeyError):
            return None

    def exec(self, code, *options, timeout_s=60):
        return subprocess.run([str(BIN / "footplate"), "exec", "-r", str(self.directory), *options, code], timeout=timeout_s,
                              capture_output=True, text=True, env=self.environment, stdin=subprocess.DEVNULL, check=False)

    def end_after(self, steps):
        """Sets train.steps to so many steps from now; in a pause, or a quick run would be past it."""
        assert self.exec("run.pause()").returncode == 0
        step = self.wait_for_step(0).ask("status")["step"]
        done = self.exec(f"train.steps = {step + steps}; run.resume()")
        assert done.returncode == 0, done

    def end(self, client, timeout_s=120):
        """By order, without a save; the exit code. `client` is closed."""
        client.ask("call", action="run.stop", arguments={"save": False, "reason": "seen enough"})
        client.close()
        return self.finish(timeout_s)

    def finish(self, timeout_s=120):
        """Waits for the end; the exit code."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the run didn't end within {timeout_s} s:\n{self.output()[-4000:]}") from None

    def result(self):
        return self.read_json("result.json")

    def applied(self, rank):
        """What the rank's own log says it applied: {order: (step, digest)}; an error if one came twice."""
        found = {}
        text = (self.directory / "log" / f"rank-{rank}.log").read_text(errors="replace")
        for order, step, digest in re.findall(r"order (\d+) applied at step (\d+), digest ([0-9a-f]{16})", text):
            assert int(order) not in found, f"order {order} applied twice on rank {rank}"
            found[int(order)] = (int(step), digest)
        return found

    def applied_again(self, rank):
        """[(order, step)] as the rank's own log has them, of all starts."""
        text = (self.directory / "log" / f"rank-{rank}.log").read_text(errors="replace")
        return [(int(order), int(step)) for order, step in re.findall(r"order (\d+) applied at step (\d+), digest", text)]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGTERM)
                self.process.wait(20)
        if error[0] is not None:
            print(f"--- {self.directory}\n{self.output()[-4000:]}", file=sys.stderr)
            for log in sorted((self.directory / "log").glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}", file=sys.stderr)
        elif self.owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def processor_time():
    """Of this process and of those that it, or a child of it, has waited for; seconds."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main(tests):
    """Runs the functions, or those whose names are given; prints a line for each."""
    wanted = sys.argv[1:]
    written = {name for name, value in vars(sys.modules["__main__"]).items() if name.startswith("test_") and callable(value)}
    listed = {test.__name__ for test in tests}
    if written - listed or set(wanted) - listed:
        sys.exit(f"not in the list of main(): {', '.join(sorted((written - listed) | (set(wanted) - listed)))}")
    failed = 0
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        start, computed = time.monotonic(), processor_time()
        try:
            test()
            print(f"ok    {test.__name__} ({time.monotonic() - start:.1f} s, processors {processor_time() - computed:.1f} s)", flush=True)
        except Exception as error:  # a test that fails must not hide the others
            failed += 1
            print(f"FAIL  {test.__name__}: {type(error).__name__}: {error}", flush=True)
            import traceback
            traceback.print_exc()
    sys.exit(1 if failed else 0)
