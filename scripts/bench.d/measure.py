"""What the benchmarks share: statistics of ratios, and the way results are printed."""

import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys

# A benchmark that is ended early (timeout, a closed terminal) ends the run it has started.
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, frame: sys.exit(128 + number))

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "ranks"))


def ratio_with_interval(pairs):
    """The typical a/b over pairs (a, b), and its 95 % interval: the median of the means of every two pairs (Hodges and
    Lehmann), with the interval of Wilcoxon's signed ranks. A mean would let the few pairs in which the machine was busy with
    something else decide how wide the interval is."""
    logs = [math.log(a / b) for a, b in pairs]
    n = len(logs)
    means = sorted((logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n))
    middle = math.exp(statistics.median(means))
    left_out = int(n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    if left_out < 1:  # fewer than six pairs say nothing with such certainty
        return middle, 0.0, math.inf
    return middle, math.exp(means[left_out - 1]), math.exp(means[-left_out])


def add_run_options(parser):
    """Which run is measured, where a benchmark doesn't need a certain one."""
    parser.add_argument("--config", default="kjv")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--setting", action="append", default=[], help="one more, KEY=VALUE")


class Limits:
    """What a benchmark's figures are held to. hold() ends the program with exit code 1 where one is beyond its limit.

    Where FOOTPLATE_BENCH_SHORT is set, as for CI, only what is far beyond counts: a ratio by three times what lies between it
    and the end of its interval, another figure by half of its limit."""

    def __init__(self):
        self.short = bool(os.environ.get("FOOTPLATE_BENCH_SHORT"))
        self.beyond = []

    def at_most(self, what, figure, limit, low=None):
        """`low`: the lower end of the figure's interval."""
        self._compare(what, figure, limit, "at most", 1, low)

    def at_least(self, what, figure, limit, high=None):
        """`high`: the upper end of the figure's interval."""
        self._compare(what, figure, limit, "at least", -1, high)

    def _compare(self, what, figure, limit, word, sign, end):
        allowed = 0.0
        if self.short:
            allowed = 3 * abs(figure - end) if end is not None else limit / 2
        if not sign * (figure - limit) <= allowed:  # NaN is beyond
            self.beyond.append(f"{what} is {figure:.4g}, {word} {limit:g} is wanted")

    def hold(self):
        if self.beyond:
            raise SystemExit("beyond the limits: " + "; ".join(self.beyond))


def answer_of_peer(command, timeout_s=900, variables=None):
    """What a peer's program says in its last line, as JSON; `variables`: of the environment, besides ours."""
    answer = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False, env={**os.environ, **(variables or {})})
    if answer.returncode != 0:
        raise SystemExit(f"the peer failed:\n{answer.stderr[-4000:]}")
    return json.loads(answer.stdout.splitlines()[-1])


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(name, **figures):
    """The machine-readable result: one line. What is infinite (an interval of too few pairs) is null: JSON has no such number."""
    rounded = {key: (float(f"{value:.5g}") if math.isfinite(value) else None) if isinstance(value, float) else value
               for key, value in figures.items()}
    print(json.dumps({"bench": name, "cores": os.cpu_count(), **rounded}), flush=True)
