"""Losses on several hosts, which are namespaces of this machine (tests/hosts/lab.py).

A host that is off, at random moments, with saves, evaluations and orders under way: how long until those who are left train, and
whether all of them have applied the same orders at the same steps. Ranks that are killed on another host, and rank 0: how long from
the kill, with the start of the program that kills, to the others' verdict.
"""

import argparse
import datetime
import pathlib
import random
import statistics
import sys
import threading
import time

from measure import Limits, report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "hosts"))
import harness  # noqa: E402
import host_run  # noqa: E402
import lab  # noqa: E402

TIMEOUT_S, GOES_ON_S, VERDICT_MS = 3, 1, 250


def begin(hosts, places, *more):
    return host_run.HostRun(hosts, "--host", places, ranks=None,
                            assignments=["train.steps=1000000", "run.threads=1", "model.step_ms=5", "ckpt.every=7", "eval.every=11",
                                         f"comm.host_timeout_s={TIMEOUT_S}", *more])


class Steering(threading.Thread):
    """Gives one order after the other, of all kinds, and remembers which were applied."""

    def __init__(self, client, seed):
        super().__init__()
        self.client, self.random = client, random.Random(seed)
        self.ends = threading.Event()
        self.applied, self.failed = set(), None

    def run(self):
        while not self.ends.is_set():
            try:
                self.give()
            except harness.Refused:
                pass  # as while ranks recover
            except Exception as error:  # for whoever waits for this thread
                self.failed = error
                return
            self.ends.wait(self.random.uniform(0, 0.1))

    def give(self):
        kind = self.random.randrange(8)
        if kind == 0:
            self.client.ask("call", action="eval.now", arguments={})
        elif kind == 1:
            self.client.ask("call", action="ckpt.save", arguments={})
        else:
            answer = self.client.ask("set", changes={"optim.lr_scale": self.random.uniform(0.5, 1.5)})
            if answer.get("state") == "applied":
                self.applied.add(answer["id"])


def check_orders(run, left, applied):
    """Ends the program where an order was lost, or done by some ranks only; how many there were."""
    first, *others = (run.applied(origin) for origin in left)
    for theirs in others:
        if theirs != first:
            raise SystemExit(f"the ranks that are left have applied other orders: {set(first.items()) ^ set(theirs.items())}")
    if missing := applied - first.keys():
        raise SystemExit(f"orders {missing} were told to be applied, and weren't")
    return len(first)


def until_it_trains(client, ranks, steps=2):
    """Seconds until so many ranks have done some steps together."""
    began, first = time.monotonic(), None
    while time.monotonic() - began < 60:
        status = client.ask("status")
        if status["world_size"] == ranks and status["state"] != "recovering":
            first = status["step"] if first is None else first
            if status["step"] >= first + steps:
                return time.monotonic() - began
        time.sleep(0.01)
    raise SystemExit(f"after a minute: {client.ask('status')}")


def a_host_is_off(seed):
    """Seconds until the others train, and how many orders were applied."""
    moment = random.Random(seed)
    with lab.Lab("h1", "h2", "h3") as hosts, begin(hosts, "h1,h2:2,h3") as run:
        client = run.wait_for_step(10)
        steering = Steering(run.try_connect(), seed)
        steering.start()
        time.sleep(moment.uniform(0.2, 2))
        victim = moment.choice(("h2", "h3"))
        hosts.power_off(victim)
        took = until_it_trains(client, 2 if victim == "h2" else 3)
        time.sleep(0.5)
        steering.ends.set()
        steering.join()
        if steering.failed or not steering.applied:
            raise SystemExit(f"seed {seed}: orders were applied: {steering.applied}; then {steering.failed!r}")
        if run.end(client, 30) != 0:
            raise SystemExit(f"seed {seed}: {run.output()}")
        return took, check_orders(run, [0, 3] if victim == "h2" else [0, 1, 2], steering.applied)


def verdicts_of_kills(seed):
    """Milliseconds: of a rank on another host, and of rank 0."""
    moment = random.Random(seed)
    with lab.Lab("h1", "h2", "h3") as hosts, begin(hosts, "h1,h2:2,h3") as run:
        client = run.wait_for_step(10)
        for left in (3, 2):
            time.sleep(moment.uniform(0.1, 1))
            host = moment.choice(("h2", "h3")) if left == 3 else "h1"
            victim = hosts.on(host, "pgrep", "-n", "-x", "footplate-rank").stdout.strip()
            killed = datetime.datetime.now(datetime.timezone.utc)
            hosts.on(host, "kill", "-KILL", victim)
            lost = host_run.wait_until(lambda left=left: [event["time"] for event in run.lines("events.jsonl")
                                                          if event["topic"] == "rank" and event["data"].get("state") == "lost"][3 - left:],
                                       30, f"a world of {left}")
            yield (datetime.datetime.fromisoformat(lost[0]) - killed).total_seconds() * 1000
        client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    lab.check_possible()
    limits = Limits()
    seconds, orders = [], 0
    for seed in range(options.seed, options.seed + options.rounds):
        took, applied = a_host_is_off(seed)
        print(f"seed {seed}: a host is off, the others train after {took:.1f} s; {applied} orders, the same on all", flush=True)
        seconds.append(took)
        orders += applied
    milliseconds = [ms for seed in range(options.seed, options.seed + (options.rounds + 1) // 2) for ms in verdicts_of_kills(seed)]
    print(f"{len(seconds)} hosts off, with a time-out of {TIMEOUT_S} s: the others train after median {statistics.median(seconds):.2f} s, "
          f"longest {max(seconds):.2f} s; {orders} orders")
    print(f"{len(milliseconds)} ranks killed, every second one rank 0: verdict after median {statistics.median(milliseconds):.0f} ms, "
          f"longest {max(milliseconds):.0f} ms")
    report("losses", seconds=seconds, verdict_ms=milliseconds, orders=orders, timeout_s=TIMEOUT_S)
    limits.at_most("from a host that is off until the others train, s", max(seconds), TIMEOUT_S + GOES_ON_S)
    limits.at_most("from a killed rank to the verdict, ms", max(milliseconds), VERDICT_MS)
    limits.hold()


if __name__ == "__main__":
    main()
