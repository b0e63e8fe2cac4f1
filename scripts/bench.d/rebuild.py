"""New communicators, live: what an order takes that changes nccl.max_ctas on one device, and memory before and after.

Without a device it can be tried with a library that works in host memory (FOOTPLATE_NCCL names it).
"""

import argparse
import os
import statistics
import subprocess
import time

from measure import report
import blocks
import harness


def used_mib(options):
    """Of the whole device: NCCL's memory isn't its user's to count."""
    if options.device == "cpu":
        return 0
    answer = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"], capture_output=True, text=True, check=True)
    return int(answer.stdout.split()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--orders", type=int, default=50, help="at least one")
    options = parser.parse_args()
    if options.device == "cpu" and "FOOTPLATE_NCCL" not in os.environ:
        print("rebuild is left out: processors have no NCCL communicators")
        return
    assignments = ["train.steps=1000000", f"run.device={options.device}", "eval.mode=off", "ckpt.every=0", "log.every=10",
                   "train.empty_cache_every=0"]
    with harness.Run(assignments, ranks=1, config="kjv", name="bench") as run:
        client = run.wait_for_step(20)
        took, began = [], time.monotonic()
        for order in range(options.orders):
            sent = time.monotonic()
            answer = client.ask("set", changes={"nccl.max_ctas": 4 + order % 8})
            took.append(1e3 * (time.monotonic() - sent))
            if order == 0:
                before = used_mib(options)
            if answer["state"] != "applied":
                raise SystemExit(f"order {order} became {answer}")
        seconds = time.monotonic() - began
        if options.orders % 8 != 1:  # memory of as many CTAs as in the first
            client.ask("set", changes={"nccl.max_ctas": 4})
        step = client.ask("status")["step"]
        harness.wait_until(lambda: client.ask("status")["step"] > step + 50, 120, "training to go on")
        client.close()
        memory = [before, used_mib(options)]
        blocks.stop(run)
    print(f"{options.orders} times new communicators in {seconds:.1f} s; an order takes {statistics.median(took):.0f} ms "
          f"({min(took):.0f} to {max(took):.0f}); the device's memory in use {memory[0]} after the first, {memory[1]} MiB at the end")
    report("rebuild", orders=options.orders, order_ms=statistics.median(took), most_ms=max(took), used_mib=memory)


if __name__ == "__main__":
    main()
