"""One-shot `footplate exec 'return status()'`: from the start of the program to its end, while two ranks train."""

import argparse
import statistics
import time

from measure import Limits, quantile, report
import harness

LIMIT_MS = 50


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50)
    options = parser.parse_args()
    with harness.Run(["train.steps=1000000", "model.step_ms=50"], name="bench") as run:
        client = run.wait_for_step(3)
        took = []
        for _ in range(options.calls):
            began = time.monotonic()
            answer = run.exec("return status()")
            took.append((time.monotonic() - began) * 1000)
            if answer.returncode != 0 or "step" not in answer.stdout:
                raise SystemExit(f"exec failed with {answer.returncode}: {answer.stdout}{answer.stderr}")
        run.end(client)
    median = statistics.median(took)
    print(f"footplate exec: median {median:.1f} ms, p90 {quantile(took, 0.9):.1f} ms, most {max(took):.1f} ms, {len(took)} calls")
    report("exec", median_ms=median, p90_ms=quantile(took, 0.9), max_ms=max(took), calls=len(took), limit_ms=LIMIT_MS)
    limits = Limits()
    limits.at_most("the median in ms", median, LIMIT_MS)
    limits.hold()


if __name__ == "__main__":
    main()
