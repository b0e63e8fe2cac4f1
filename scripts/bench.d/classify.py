"""Three labelled data sets in one run (configs/classify.lua, docs/classify.md) on two ranks.

Fashion-MNIST is to reach 89 % on its test set within five minutes of training, and each of the two tables what scikit-learn's
logistic regression reaches on the same rows. Exit code 1 where it doesn't.
"""

import argparse
import os
import pathlib

from measure import Limits, ROOT, answer_of_peer, report
import harness

LEAST, LONGEST_S = 0.89, 300
TABLES = {"digits": "digits.csv.gz", "cancer": "breast_cancer.csv"}


def trained(options):
    """{set: its accuracy on all that is held out}, seconds of training"""
    with harness.Run(["ckpt.every=0", *options.setting], ranks=options.ranks, config="classify", name="bench") as run:
        if run.finish(1800) != 0:
            raise SystemExit(f"footplate run failed:\n{run.output()}")
        lines = run.lines("metrics.jsonl")
        last = [line for line in lines if "eval/fashion/full_accuracy" in line][-1]
        steps = [line for line in lines if "train/loss" in line]
        return {name: last[f"eval/{name}/full_accuracy"] for name in ("fashion", *TABLES)}, steps[-1]["time"] - steps[0]["time"]


def logistic(table):
    folder = pathlib.Path(harness.surroundings("/tmp")["FOOTPLATE_CACHE"])
    python = f"{os.environ['FOOTPLATE_BENCH_SKLEARN']}/bin/python"
    return answer_of_peer([python, str(ROOT / "tests" / "peers" / "logistic.py"), str(folder / table)], timeout_s=600)["accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--setting", action="append", default=[], help="one more, KEY=VALUE")
    options = parser.parse_args()
    ours, seconds = trained(options)
    theirs = {name: logistic(table) for name, table in TABLES.items()}
    print(f"held out, after {seconds:.0f} s of training: Fashion-MNIST {100 * ours['fashion']:.2f} %; "
          + "; ".join(f"{name} {100 * ours[name]:.2f} %, logistic regression {100 * theirs[name]:.2f} %" for name in TABLES))
    report("classify", accuracy=ours, logistic=theirs, seconds=seconds, ranks=options.ranks)
    limits = Limits()
    limits.at_least("the accuracy on Fashion-MNIST", ours["fashion"], LEAST)
    limits.at_most("the training's time in s", seconds, LONGEST_S)
    for name in TABLES:
        limits.at_least(f"the accuracy on {name}, beside logistic regression's,", ours[name], theirs[name])
    limits.hold()


if __name__ == "__main__":
    main()
