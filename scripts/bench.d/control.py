"""What rank 0 does for the others, in processor time: an order, a round of heartbeats, a turn of its control thread. Without MPI
and without ranks: the parts of rank 0 alone, and as many answers as there would be ranks. Exit code 1 beyond the limits."""

import argparse
import json
import subprocess

from measure import Limits, ROOT, report

RANKS = (64, 1024, 16384)
# At 1,024 ranks, in ms.
BOUNDED = 1024
BOUNDS = {"order_ms": 10.0, "beats_ms": 2.0, "beats_behind_ms": 2.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=RANKS)
    options = parser.parse_args()
    command = [str(ROOT / "build/release/tests/control_bench"), *map(str, options.ranks)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    figures, limits = {}, Limits()
    for took in json.loads(answer.stdout.splitlines()[-1]):
        ranks = took["ranks"]
        print(f"{ranks:,} ranks: an order {took['order_ms']:.2f} ms, a round of heartbeats {took['beats_ms']:.2f} ms, one that rank 0 is "
              f"behind {took['beats_behind_ms']:.2f} ms, a turn {took['turn_us']:.1f} us; a status {took['status_ms']:.1f} ms, "
              f"{took['status_bytes'] / 1e3:.0f} kB")
        figures |= {f"{name}_{ranks}": float(took[name]) for name in (*BOUNDS, "turn_us", "status_ms")}
        if ranks == BOUNDED:
            for name, bound in BOUNDS.items():
                limits.at_most(f"{name} at {ranks:,} ranks", took[name], bound)
    report("control", **figures)
    limits.hold()


if __name__ == "__main__":
    main()
