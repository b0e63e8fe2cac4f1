"""The King James job: all of configs/kjv.lua on two ranks with a thread each, in fp32 and in bf16. Exit code 1 where its loss on
everything held out is above 1.65 nats per byte, where bf16's is more than 1 % off, or where training takes longer than 75 s."""

import argparse

from measure import Limits, report
import harness

MOST_LOSS, MOST_APART, LONGEST_S = 1.65, 0.01, 75


def trained(precision, options):
    """The loss on everything held out, in nats per byte, and the seconds from the first logged step to the last one."""
    assignments = ["run.threads=1", "run.device=cpu", f"train.precision={precision}", *options.setting]
    with harness.Run(assignments, config="kjv", name="bench") as run:
        if run.finish(900) != 0:
            raise SystemExit(f"footplate run failed:\n{run.output()}")
        steps = [row for row in run.lines("metrics.jsonl") if "train/loss" in row]
        return run.result()["eval_loss"], steps[-1]["time"] - steps[0]["time"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", action="append", default=[], help="one more, KEY=VALUE")
    options = parser.parse_args()
    figures, limits = {}, Limits()
    for precision in ("fp32", "bf16"):
        loss, seconds = trained(precision, options)
        print(f"{precision}: {loss:.4f} nats per byte held out after {seconds:.0f} s of training, evaluations and saves among it", flush=True)
        figures |= {f"loss_{precision}": loss, f"seconds_{precision}": seconds}
        limits.at_most(f"the seconds in {precision}", seconds, LONGEST_S)
    limits.at_most("the loss in fp32", figures["loss_fp32"], MOST_LOSS)
    limits.at_most("the share by which bf16's is off", abs(figures["loss_bf16"] / figures["loss_fp32"] - 1), MOST_APART)
    report("kjv", **figures)
    limits.hold()


if __name__ == "__main__":
    main()
