"""Gradient checkpointing (train.gradient_checkpointing): memory of a rank with it and without, each in a run of its own, and a step's
time, in one run that switches it on and off in blocks."""

import argparse
import pathlib
import re
import statistics
import time

from measure import Limits, ratio_with_interval, report
import blocks
import harness

SETTINGS = ["train.steps=1000000", "sched.warmup_steps=1", "eval.every=0", "eval.at_end=false", "ckpt.every=0", "log.every=1", "log.perf_every=1",
            "model.layers=12", "model.width=256", "model.heads=4", "model.context=256", "train.batch_size=16"]
ON = "train.gradient_checkpointing"
MOST_MEMORY, MOST_TIME = 0.7, 1.3  # of what it is without
BLOCK = 4  # steps


def peak_mib(checkpointing, steps=4):
    with harness.Run([*SETTINGS, f"{ON}={checkpointing}"], ranks=1, config="kjv", name="bench") as run:
        run.wait_for_step(steps).close()
        status = pathlib.Path(f"/proc/{run.record()['ranks'][0]['pid']}/status").read_text()
        blocks.stop(run)
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1024


def step_times(pairs):
    """[(without, with)]: medians of neighbouring blocks' steps, in ms."""
    with harness.Run(SETTINGS, ranks=1, config="kjv", name="bench") as run:
        client = run.wait_for_step(2)
        starts = []  # (first step of a block, whether it is with)
        for block in range(2 * pairs):
            on = block % 4 in (1, 2)
            applied = client.ask("set", changes={ON: on})
            first = applied["applied"]["step"]
            harness.wait_until(lambda: client.ask("status")["step"] > first + BLOCK, 300, "the block")
            starts.append((first, on))
        client.close()
        times = {row["step"]: row["perf/step_ms"] for row in blocks.metric_rows(run, time.time())}
        blocks.stop(run)
    medians = [(on, statistics.median(times[step] for step in range(first + 1, first + 1 + BLOCK))) for first, on in starts]
    return [tuple(time for _, time in sorted(medians[i:i + 2])) for i in range(0, len(medians), 2)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    without, with_it = peak_mib("false"), peak_mib("true")
    times = step_times(options.pairs)
    ratio, low, high = ratio_with_interval([(b, a) for a, b in times])
    print(f"gradient checkpointing: {without:.0f} -> {with_it:.0f} MiB ({(with_it / without - 1) * 100:+.0f} %), a step takes {ratio:.3f} of what it "
          f"took ({low:.3f} to {high:.3f}, {len(times)} pairs)")
    report("recompute", mib_without=without, mib_with=with_it, memory_ratio=with_it / without, step_ratio=ratio, step_ratio_low=low,
           step_ratio_high=high, pairs=len(times))
    limits = Limits()
    limits.at_most("the memory's ratio", with_it / without, MOST_MEMORY)
    limits.at_most("the ratio of a step", ratio, MOST_TIME, low)
    limits.hold()


if __name__ == "__main__":
    main()
