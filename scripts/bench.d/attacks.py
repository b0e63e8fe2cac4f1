"""What scripts that try to run for ever cost a run that trains (configs/kjv.lua, two ranks).

The attacks of tests/unit/console/attacks.txt run one after another in two sessions, each as long as a chunk may: ten seconds. In
blocks within the run their processes are stopped and let go, and the median step time of neighbouring blocks is compared.
"""

import argparse
import contextlib
import itertools
import os
import pathlib
import signal
import statistics
import threading

from measure import Limits, ROOT, ratio_with_interval, report
import blocks
import harness
import idle

LIMIT = 1.02
SESSIONS = 2
FEWEST_STEPS = 8  # of a block whose median counts; a machine that stood still for a moment leaves out its block


def read_attacks():
    found = []
    for line in (ROOT / "tests" / "unit" / "console" / "attacks.txt").read_text().splitlines(keepends=True):
        if line.startswith("--- "):
            found.append("")
        elif found:
            found[-1] += line
    return found


class Attackers:
    """Sessions that attack whenever they are let."""

    def __init__(self, record):
        self.console, self.attacks, self.ended = record["console_pid"], itertools.cycle(read_attacks()), 0
        self.lock, self.let, self.done = threading.Lock(), threading.Event(), False
        self.clients = [harness.Client(record["socket"]) for _ in range(SESSIONS)]
        self.threads = [threading.Thread(target=self.session, args=(client,)) for client in self.clients]
        for thread in self.threads:
            thread.start()

    def session(self, client):
        while not self.done:
            self.let.wait()
            with self.lock:
                attack = next(self.attacks)
            try:
                client.ask("eval", code=attack)
            except harness.Refused:
                pass
            except (OSError, ValueError):
                return  # hung up
            with self.lock:
                self.ended += 1

    def signal_all(self, number):
        # Not through /proc/PID of the processes themselves: Linux lets who reaps one that was looked up there wait.
        for pid in pathlib.Path(f"/proc/{self.console}/task/{self.console}/children").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), number)

    def go_on(self):
        self.let.set()
        self.signal_all(signal.SIGCONT)

    def hold(self):
        self.let.clear()
        self.signal_all(signal.SIGSTOP)

    def finish(self):
        self.done = True
        for client in self.clients:
            client.socket.shutdown(2)
        self.go_on()
        for thread in self.threads:
            thread.join()


def median_step_times(times, rows):
    """(on, median step time) of each block; None where there are too few steps, as in a stall of the machine."""
    result = []
    for begin, end, on in times:
        inside = [row for row in rows if begin <= row["time"] <= end]
        steps = [(b["time"] - a["time"]) / (b["step"] - a["step"]) for a, b in zip(inside, inside[1:])]
        result.append((on, statistics.median(steps) if len(steps) >= FEWEST_STEPS else None))
    if sum(time is None for _, time in result) > len(result) / 10:
        raise SystemExit("too many blocks hold too few steps: make --block longer")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=480, help="of attacks and quiet, in blocks")
    parser.add_argument("--block", type=float, default=1, help="seconds of a block")
    parser.add_argument("--batch", type=int, default=4, help="train.batch_size: steps of a quarter of the config's, so that a short block has many")
    options = parser.parse_args()
    assignments = ["train.steps=1000000", f"train.batch_size={options.batch}", "run.threads=1", "eval.mode=off", "ckpt.every=0", "log.every=1"]
    with harness.Run(assignments, config="kjv", name="bench") as run:
        run.wait_for_step(10).close()
        attackers = Attackers(run.record())
        times = blocks.alternate(options.seconds, options.block, attackers.go_on, attackers.hold)
        attackers.finish()
        rows = blocks.metric_rows(run, times[-1][1])
        blocks.stop(run)
    pairs = list(idle.pairs_of(median_step_times(times, rows)))
    ratio, low, high = ratio_with_interval(pairs)
    print(f"median step time with / without attacks in {SESSIONS} sessions: {ratio:.4f} (95 % interval {low:.4f} to {high:.4f}, "
          f"{len(pairs)} pairs); {attackers.ended} attacks came to their end")
    report("attacks", sessions=SESSIONS, attacks=attackers.ended, ratio=ratio, low=low, high=high, pairs=len(pairs), limit_ratio=LIMIT)
    limits = Limits()
    limits.at_most("the ratio", ratio, LIMIT, low)
    limits.hold()


if __name__ == "__main__":
    main()
