"""What the tuner costs NCCL at each group of collectives, with as many rules as there can be. No device. Exit code 1 beyond
the limit."""

import json
import subprocess

from measure import Limits, ROOT, report

BOUND_NS = 1000


def main():
    answer = subprocess.run([str(ROOT / "build/release/tests/tuner_bench")], capture_output=True, text=True, timeout=300, check=True)
    took = json.loads(answer.stdout.splitlines()[-1])
    print(f"{took['calls']} calls with {took['rules']} rules: {took['median_ns']:.0f} ns of processor time each (99 of 100 blocks below "
          f"{took['p99_ns']:.0f} ns), without rules {took['no_rules_median_ns']:.0f} ns; wanted: at most {BOUND_NS} ns")
    report("tuner", **took)
    limits = Limits()
    limits.at_most("ns of a call", took["median_ns"], BOUND_NS)
    limits.hold()


if __name__ == "__main__":
    main()
