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

# 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom; beyond that the normal distribution is near enough.
STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
             2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)


def ratio_with_interval(pairs):
    """The geometric mean of a/b over pairs (a, b), and its 95 % interval."""
    logs = [math.log(a / b) for a, b in pairs]
    mean = statistics.mean(logs)
    if len(logs) < 2:
        return math.exp(mean), 0.0, math.inf
    t = STUDENT_T[len(logs) - 2] if len(logs) - 1 <= len(STUDENT_T) else 1.96
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(name, **figures):
    """The machine-readable result: one line."""
    rounded = {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in figures.items()}
    print(json.dumps({"bench": name, "cores": os.cpu_count(), **rounded}), flush=True)
