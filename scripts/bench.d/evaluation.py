"""What evaluations cost a run that trains: in between its steps, and beside them (eval.async).

One rank of configs/kjv.lua on a machine with a spare core, an evaluation of 20 batches every 20 steps. The setting is switched in blocks
within one run; the figure is the time a step takes with everything that comes between steps.
"""

import argparse

from measure import Limits, ratio_with_interval, report
import blocks
import harness
import idle

LIMIT = 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=320, help="of switching in blocks")
    parser.add_argument("--block", type=float, default=20, help="seconds of a block")
    options = parser.parse_args()
    assignments = ["train.steps=1000000", "run.threads=1", "eval.every=20", "eval.batches=20", "log.every=5", "ckpt.every=0"]
    with harness.Run(assignments, ranks=1, config="kjv", name="bench") as run:
        client = run.wait_for_step(10)
        times = blocks.alternate(options.seconds, options.block, lambda: client.ask("set", changes={"eval.async": True}),
                                 lambda: client.ask("set", changes={"eval.async": False}))
        client.close()
        rows = blocks.metric_rows(run, times[-1][1])
        evaluations = sum("eval/loss" in row for row in run.lines("metrics.jsonl"))
        blocks.stop(run)
    pairs = list(idle.pairs_of(idle.step_times(times, rows)))
    ratio, low, high = ratio_with_interval(pairs)
    print(f"time of a step with evaluations beside / in between: {ratio:.3f} "
          f"(95 % interval {low:.3f} to {high:.3f}, {len(pairs)} pairs, {evaluations} evaluations)")
    report("evaluation", ratio=ratio, low=low, high=high, pairs=len(pairs), evaluations=evaluations)
    limits = Limits()
    limits.at_most("the ratio", ratio, LIMIT, low)
    limits.hold()


if __name__ == "__main__":
    main()
