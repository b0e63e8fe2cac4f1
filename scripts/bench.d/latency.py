"""From an order sent over the socket to `applied` on all ranks: synthetic steps of 5, 50 and 200 ms, two ranks.

Orders leave at random moments of a step, one after the other. Beside them the medians of the nearest peer, whose one
process takes a command at its next step without any agreement.
"""

import argparse
import random
import statistics
import time

from measure import Limits, quantile, report
import harness

PEER_MS = {5: 2.7, 50: 22.9, 200: 90.8}


def measure(step_ms, options):
    """Latencies in milliseconds of `options.orders` orders, and the mean step time of the meantime."""
    random_moment = random.Random(step_ms)
    assignments = [f"model.step_ms={step_ms}", "train.steps=1000000", "log.every=100"]
    with harness.Run(assignments, ranks=options.ranks, name="bench") as run:
        client = run.wait_for_step(3)
        latencies, applied_at = [], []
        for order in range(options.orders):
            time.sleep(random_moment.uniform(0, 2 * step_ms / 1000))
            sent = time.monotonic()
            answer = client.ask("set", changes={"log.every": 100 + (order + 1) % 2})
            latencies.append((time.monotonic() - sent) * 1000)
            if answer["state"] != "applied" or answer["applied"]["ranks"] != options.ranks:
                raise SystemExit(f"order {order} became {answer}")
            applied_at.append((time.monotonic(), answer["applied"]["step"]))
        (began, first), (ended, last) = applied_at[0], applied_at[-1]
        step_mean_ms = (ended - began) * 1000 / (last - first)
        run.end(client)
    return latencies, step_mean_ms


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    print("step ms   order to applied, ms: median     p90     max   limit   peer's median")
    limits = Limits()
    for step_ms in (5, 50, 200):
        latencies, step_mean_ms = measure(step_ms, options)
        median = statistics.median(latencies)
        print(f"{step_mean_ms:7.1f}   {median:27.1f} {quantile(latencies, 0.9):7.1f} {max(latencies):7.1f} {step_ms + 3:7d}"
              f"   {PEER_MS[step_ms]:13.1f}", flush=True)
        report("latency", step_ms=step_ms, median_ms=median, p90_ms=quantile(latencies, 0.9), max_ms=max(latencies),
               mean_step_ms=step_mean_ms, orders=len(latencies), ranks=options.ranks, limit_ms=step_ms + 3,
               peer_median_ms=PEER_MS[step_ms])
        limits.at_most(f"the median at steps of {step_ms} ms", median, step_ms + 3)
    limits.hold()


if __name__ == "__main__":
    main()
