"""What the benchmarks share: statistics of ratios, and the way results are printed."""

import json
import math
import os
import pathlib
import signal
import statistics
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


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(name, **figures):
    """The machine-readable result: one line. What is infinite (an interval of too few pairs) is null: JSON has no such number."""
    rounded = {key: (float(f"{value:.5g}") if math.isfinite(value) else None) if isinstance(value, float) else value
               for key, value in figures.items()}
    print(json.dumps({"bench": name, "cores": os.cpu_count(), **rounded}), flush=True)
