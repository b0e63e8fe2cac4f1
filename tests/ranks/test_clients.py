#!/usr/bin/env python3
"""Many clients at one run: one history for all, and nobody is delayed or loses an order, whatever becomes of whom."""

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

from harness import FULL, ROOT, Client, Refused, Run, main, wait_until

CLIENTS = 8
FINAL = ("applied", "refused", "aborted", "withdrawn")
LONG = ["model.step_ms=5", "train.steps=1000000"]


class Threads:
    """Runs functions in threads of their own; the first error of any is raised at the end."""

    def __init__(self):
        self.errors = []
        self.threads = []

    def start(self, function, *arguments):
        def guarded():
            try:
                function(*arguments)
            except BaseException as error:  # noqa: it is raised in join()
                self.errors.append(error)
        self.threads.append(threading.Thread(target=guarded))
        self.threads[-1].start()

    def join(self, timeout_s):
        for thread in self.threads:
            thread.join(timeout_s)
            assert not thread.is_alive(), "a client hangs"
        if self.errors:
            raise self.errors[0]


def journal_of(run):
    """[(order, step)] in the order of the file."""
    text = (run.directory / "journal.lua").read_text()
    return [(int(order), int(step)) for order, step in re.findall(r"^-- order (\d+) [^\n]*\n(?:--   [^\n]*\n)*at\((\d+),", text, re.M)]


def check_one_history(run, reports):
    """`reports` are all applied reports as one client saw them: the journal, the ranks and the values agree."""
    ids = [report["id"] for report in reports]
    assert len(ids) == len(set(ids)), "an order was reported twice"
    assert journal_of(run) == [(report["id"], report["applied"]["step"]) for report in reports], "the journal differs"
    for rank in range(len(run.pids())):
        assert [(order, step) for order, (step, _) in run.applied(rank).items()] == journal_of(run), f"rank {rank} differs"
    now = {}
    for report in reports:
        for moved in report["applied"]["moved"]:
            before = now.get(moved["name"], moved["before"])
            assert before == moved["before"], f"order {report['id']} found {moved['before']} of {moved['name']}, not {before}"
            now[moved["name"]] = moved["after"]


def stop(run, client):
    assert client.ask("call", action="run.stop", arguments={"save": False})["state"] == "applied"
    assert run.finish(60) == 0, run.output()


# --- conflicting orders ---

def conflicting_order(client, rng, seen):
    name, value = rng.choice([("log.every", rng.randint(50, 500)), ("optim.lr_scale", round(rng.uniform(0.1, 2), 4)),
                              ("sched.base_lr", round(rng.uniform(1e-4, 1e-2), 6))])
    kind = rng.random()
    if kind < 0.15:
        with contextlib.suppress(Refused):  # somebody has touched it since, or there is nothing to undo
            client.ask("eval", code="undo()")
        return
    if kind < 0.5:
        expected = client.ask("get", names=[name])[name]["value"]
        try:
            report = client.ask("set", changes=[{"name": name, "value": value, "expect": expected}])
        except Refused as error:
            assert "was expected to be" in error.message, error.message
            return
        if report["state"] != "applied":
            assert "was expected to be" in report["error"], report
            return
        moved = {item["name"]: item for item in report["applied"]["moved"]}
        assert moved[name]["before"] == expected, (report, expected)
    elif kind < 0.6:
        client.ask("eval", code=f"log.every = {rng.randint(50, 500)} optim.lr_scale = {round(rng.uniform(0.1, 2), 4)}")
        return
    else:
        report = client.ask("set", changes={name: value})
    assert report["state"] == "applied", report
    seen.append(report["id"])


def applied_events(client, last):
    """Every applied report that this client was told, up to order `last`."""
    while not any(event["topic"] == "order" and event["data"]["state"] == "applied" and event["data"]["id"] == last for event in client.events):
        message = json.loads(client.lines.readline())
        if message.get("type") == "event":
            client.events.append(message)
    sequences = [event["sequence"] for event in client.events]
    assert sequences == sorted(set(sequences)), "events out of order"
    assert not any(event.get("lost") for event in client.events), "events were lost"
    return [event["data"] for event in client.events if event["topic"] == "order" and event["data"]["state"] == "applied"]


def test_conflicting_orders():
    with Run(LONG) as run:
        main_client = run.wait_for_step(1)
        clients = [Client(run.record()["socket"]) for _ in range(CLIENTS)]
        for client in clients:
            client.ask("subscribe", topics=["order"])
        end = time.monotonic() + (60 if FULL else 8)
        own = [[] for _ in clients]

        def give(client, seen, seed):
            rng = random.Random(seed)
            while time.monotonic() < end:
                conflicting_order(client, rng, seen)

        threads = Threads()
        for number, client in enumerate(clients):
            threads.start(give, client, own[number], number)
        threads.join(120)
        last = main_client.ask("set", changes={"log.every": 77})["id"]
        histories = [applied_events(client, last) for client in clients]
        assert all(history == histories[0] for history in histories), "clients saw different histories"
        known = {report["id"] for report in histories[0]}
        assert all(set(seen) <= known for seen in own), "an order was answered as applied and is in no history"
        check_one_history(run, histories[0])
        print(f"      {len(known)} orders of {CLIENTS} clients: one history", flush=True)
        stop(run, main_client)


# --- slow ones ---

READER = """
import json, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
lines = connection.makefile("rb")
lines.readline()
connection.sendall(b'{"id": 1, "op": "subscribe", "topics": ["*"]}\\n')
lost, last = 0, 0
for line in lines:
    message = json.loads(line)
    if message.get("type") == "event":
        lost, last = lost + message.get("lost", 0), message["sequence"]
        print(lost, last, flush=True)
"""


def test_slow_and_stopped_clients():
    with Run(["model.step_ms=0.2", "train.steps=100000000", "log.every=1"]) as run:
        client = run.wait_for_step(1)
        slow = Client(run.record()["socket"])
        slow.ask("subscribe", topics=["*"])  # and never reads again
        with subprocess.Popen([sys.executable, "-c", READER, run.record()["socket"]], stdout=subprocess.PIPE, text=True) as reader:
            try:
                reader.stdout.readline()
                os.kill(reader.pid, signal.SIGSTOP)
                before = client.ask("status")["step"]
                slowest = 0.0
                # More events than the ring and the socket hold.
                while client.ask("status")["step"] < before + 16000:
                    asked = time.monotonic()
                    assert client.ask("set", changes={"optim.lr_scale": round(random.random() + 0.1, 4)})["state"] == "applied"
                    slowest = max(slowest, time.monotonic() - asked)
                    time.sleep(0.2)
                assert slowest < 1, f"an order took {slowest:.2f} s while others didn't read"
                os.kill(reader.pid, signal.SIGCONT)
                told = next(line for line in reader.stdout if int(line.split()[0]) > 0)
                lost, last = map(int, told.split())
                assert 0 < lost <= last, told
                print(f"      slowest order {slowest * 1000:.0f} ms; the stopped client was told of {lost} lost events", flush=True)
            finally:
                os.kill(reader.pid, signal.SIGCONT)
                reader.kill()
        slow.close()
        stop(run, client)


# --- processes killed ---

def children_of(pid):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, NotADirectoryError, ValueError):
            if entry.name.isdigit() and int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def processor_ticks(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[11]) + int(fields[12])


def test_a_killed_session():
    """SIGKILL of one session's Lua process: its client is told and goes on, the others notice nothing."""
    with Run(LONG) as run:
        client = run.wait_for_step(1)
        victim, other = Client(run.record()["socket"]), Client(run.record()["socket"])
        for session in (victim, other):
            session.ask("eval", code="mine = 7")
        console = run.record()["console_pid"]
        chunk = victim.send("eval", code="while true do end")
        before = {pid: processor_ticks(pid) for pid in children_of(console)}
        busy = wait_until(lambda: next((pid for pid, ticks in before.items() if processor_ticks(pid) > ticks + 10), None), 10,
                          "the busy session's process")
        os.kill(busy, signal.SIGKILL)
        try:
            victim.answer(chunk)
            raise AssertionError("the chunk of a killed process was answered")
        except Refused as error:
            assert error.kind == "script", error.message
        assert other.ask("eval", code="return mine")["value"] == 7
        assert victim.ask("eval", code="return log.every")["value"] == 100
        assert client.ask("set", changes={"log.every": 9})["state"] == "applied"
        assert run.record()["console_pid"] == console
        stop(run, client)


class Returning:
    """A client that comes back: every order it gives has a value of its own, so that it can look what became of it."""

    def __init__(self, run, number):
        self.run, self.number, self.count = run, number, 0
        self.client = Client(run.record()["socket"])
        self.applied = []  # values
        self.away = []  # seconds between a lost connection and the first answer after it

    def reconnect(self):
        lost = time.monotonic()
        while True:
            try:
                self.client = Client(self.run.record()["socket"], timeout_s=10)
                self.client.ask("ping")
                self.away.append(time.monotonic() - lost)
                return
            except (OSError, ValueError, KeyError):  # no socket yet, or one that went again
                assert time.monotonic() < lost + 30, "the console doesn't come back"
                time.sleep(0.005)

    def was_applied(self, value):
        """Looks into the list of orders, once none of them is open: after five seconds each has its outcome."""
        end, reports = time.monotonic() + 20, []
        while True:
            assert time.monotonic() < end, [report for report in reports if report["state"] not in FINAL]
            try:
                reports = self.client.ask("orders")
                if all(report["state"] in FINAL for report in reports):
                    found = [report for report in reports if any(moved["after"] == value for moved in report.get("applied", {}).get("moved", []))]
                    assert len(found) <= 1, found
                    return bool(found)
            except (OSError, ValueError):
                self.reconnect()
            time.sleep(0.01)

    def order(self):
        self.count += 1
        value = round(0.1 + self.number / 10 + self.count / 1e5, 6)
        while True:
            try:
                report = self.client.ask("set", changes={"optim.lr_scale": value}, timeout_s=10)
                assert report["state"] == "applied", report
                break
            except (OSError, ValueError):
                self.reconnect()
                if self.was_applied(value):
                    break
        self.applied.append(value)


RULES = ("every(100, function() optim.weight_decay = 0.1 + run.step / 1e9 end)",
         "every(150, function() train.clip_norm = 1 + run.step / 1e9 end)",
         "local lines = 0 on('log', function() lines = lines + 1 end)",
         "run.stop_when(function(m) return m['train/loss'] > 1e9 end)")


def test_a_console_killed_again_and_again():
    """Three clients give orders, four rules watch and give some too."""
    times = 50 if FULL else 5
    with Run(["model.step_ms=5", "train.steps=1000000", "log.every=10"]) as run:
        main_client = run.wait_for_step(1)
        for rule in RULES:
            main_client.ask("eval", code=rule)
        main_client.close()
        clients = [Returning(run, number) for number in range(3)]
        done = threading.Event()
        threads = Threads()

        def give(client):
            while not done.is_set():
                client.order()
                time.sleep(0.01)

        for client in clients:
            threads.start(give, client)
        rng = random.Random(3)
        try:
            for number in range(times):
                time.sleep(rng.uniform(1.1, 2))  # one that dies within a second of its start counts as broken
                assert not threads.errors, threads.errors
                console = run.record()["console_pid"]
                os.kill(console, signal.SIGKILL)
                wait_until(lambda n=number: threads.errors or all(len(client.away) > n for client in clients), 30, "the clients to be back")
        finally:
            done.set()
        threads.join(60)
        slowest = max(max(client.away) for client in clients)
        assert slowest < 2, f"back after {slowest:.2f} s"
        last = Client(run.record()["socket"])
        runs = [rule["runs"] for rule in last.ask("rules")]
        assert len(runs) == len(RULES) and all(rule["state"] == "on" for rule in last.ask("rules")), last.ask("rules")
        wait_until(lambda: all(now["runs"] > before for now, before in zip(last.ask("rules"), runs)), 20, "every rule to run again")
        stop(run, last)
        values = [float(value) for value in re.findall(r"lr_scale = ([0-9.]+)", (run.directory / "journal.lua").read_text())]
        assert sorted(values) == sorted(value for client in clients for value in client.applied), "an order was lost or doubled"
        for rank in range(2):
            assert [(order, step) for order, (step, _) in run.applied(rank).items()] == journal_of(run), f"rank {rank} differs"
        steps = [row["step"] for row in run.lines("metrics.jsonl")]
        assert steps == list(range(10, steps[-1] + 1, 10)), "steps were lost"
        print(f"      killed {times} times, back within {slowest:.2f} s; {len(values)} orders, each once; {run.result()['step']} steps", flush=True)


# --- the page for programs ---

def test_the_client_of_the_page():
    """docs/clients.md: its client does what the page says."""
    page = (ROOT / "docs" / "clients.md").read_text()
    source = re.search(r"```python\n(.*?)```", page, re.S).group(1)
    with Run(LONG, name="page") as run:
        client = run.wait_for_step(1)
        program = run.folder / "client.py"
        program.write_text(source)
        done = subprocess.run([sys.executable, str(program), str(run.directory)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done
        shown = page.split("prints", 1)[1].split("```")[1].strip().splitlines()
        for expected, line in zip(shown, done.stdout.splitlines(), strict=True):
            pattern = re.sub(r"\\?\d+(\\\.\d+)?", lambda _: r"[0-9.e-]+", re.escape(expected))
            assert re.fullmatch(pattern, line), f"{line!r} instead of {expected!r}"
        stop(run, client)


if __name__ == "__main__":
    main([test_conflicting_orders, test_slow_and_stopped_clients, test_a_killed_session, test_a_console_killed_again_and_again,
          test_the_client_of_the_page])
