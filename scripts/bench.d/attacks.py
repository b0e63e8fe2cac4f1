"""What scripts that try to run for ever cost a run that trains (configs/kjv.lua, two ranks).

The attacks of tests/unit/console/attacks.txt run one after another in two sessions, in blocks with quiet ones in between; the
median step time of neighbouring blocks is compared. A chunk has ten seconds, as for everybody, or until its block ends.
"""

import argparse
import itertools
import statistics
import threading

from measure import ROOT, ratio_with_interval, report
import blocks
import harness
import idle

SESSIONS = 2


def read_attacks():
    found = []
    for line in (ROOT / "tests" / "unit" / "console" / "attacks.txt").read_text().splitlines(keepends=True):
        if line.startswith("--- "):
            found.append("")
        elif found:
            found[-1] += line
    return found


class Attackers:
    """Each session is a connection; hanging up ends its chunk and its process."""

    def __init__(self, path):
        self.path, self.attacks, self.threads, self.clients = path, itertools.cycle(read_attacks()), [], []
        self.lock, self.done, self.ended = threading.Lock(), None, 0

    def next_attack(self):
        with self.lock:
            return next(self.attacks)

    def session(self, client, done):
        while not done.is_set():
            try:
                client.ask("eval", code=self.next_attack())
            except harness.Refused:
                pass
            except (OSError, ValueError):
                return  # hung up
            with self.lock:
                self.ended += 1

    def start(self):
        if self.threads:
            return
        self.done = threading.Event()
        self.clients = [harness.Client(self.path) for _ in range(SESSIONS)]
        self.threads = [threading.Thread(target=self.session, args=(client, self.done)) for client in self.clients]
        for thread in self.threads:
            thread.start()

    def stop(self):
        if not self.threads:
            return
        self.done.set()
        for client in self.clients:
            client.socket.shutdown(2)
        for thread in self.threads:
            thread.join()
        self.threads = []


def median_step_times(times, rows):
    """Median over the rows of each block."""
    result = []
    for begin, end, on in times:
        inside = [row for row in rows if begin <= row["time"] <= end]
        steps = [(b["time"] - a["time"]) / (b["step"] - a["step"]) for a, b in zip(inside, inside[1:])]
        if len(steps) < 10:
            raise SystemExit("a block holds too few steps: make --block longer")
        result.append((on, statistics.median(steps)))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=480, help="of attacks and quiet, in blocks")
    parser.add_argument("--block", type=float, default=15, help="seconds of a block")
    parser.add_argument("--batch", type=int, default=16, help="train.batch_size: 4 makes steps a quarter as long")
    options = parser.parse_args()
    assignments = ["train.steps=1000000", f"train.batch_size={options.batch}", "run.threads=1", "eval.mode=off", "ckpt.every=0", "log.every=1"]
    with harness.Run(assignments, config="kjv", name="bench") as run:
        run.wait_for_step(10).close()
        attackers = Attackers(run.record()["socket"])
        times = blocks.alternate(options.seconds, options.block, attackers.start, attackers.stop)
        rows = blocks.metric_rows(run, times[-1][1])
        blocks.stop(run)
    pairs = list(idle.pairs_of(median_step_times(times, rows)))
    ratio, low, high = ratio_with_interval(pairs)
    print(f"median step time with / without attacks in {SESSIONS} sessions: {ratio:.4f} (95 % interval {low:.4f} to {high:.4f}, "
          f"{len(pairs)} pairs); {attackers.ended} attacks came to their end")
    report("attacks", sessions=SESSIONS, attacks=attackers.ended, ratio=ratio, low=low, high=high, pairs=len(pairs), limit_ratio=1.02)


if __name__ == "__main__":
    main()
