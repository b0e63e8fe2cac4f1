"""How long the command line takes to start: `footplate --version`, from fork to its end."""

import argparse
import statistics
import subprocess
import time

from measure import Limits, ROOT, quantile, report

LIMIT_MS = 50.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "footplate"), help="an installed one, say")
    options = parser.parse_args()
    times = []
    for _ in range(options.calls):
        started = time.perf_counter()
        subprocess.run([options.program, "--version"], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - started) * 1000)
    print(f"footplate --version: median {statistics.median(times):.2f} ms, p90 {quantile(times, 0.9):.2f} ms of {len(times)} calls", flush=True)
    report("version", median_ms=statistics.median(times), p90_ms=quantile(times, 0.9), max_ms=max(times), calls=len(times), limit_ms=LIMIT_MS)
    limits = Limits()
    limits.at_most("the median in ms", statistics.median(times), LIMIT_MS)
    limits.hold()


if __name__ == "__main__":
    main()
