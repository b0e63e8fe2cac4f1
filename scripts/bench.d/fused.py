"""A run with evaluations against the field reports' way: three data sets (configs/classify.lua), two ranks, runs in alternation.

An evaluation after every 25 steps. footplate reduces what one has summed in one collective, and one watchdog looks after all
collectives. The peer (tests/peers/evaluated.py) is PyTorch DDP with the same model and samples. It evaluates in turn so, and in the
reports' way: an all_reduce for each sum of each data set with a timer around each call, once an evaluation or once a batch.
Compared are an evaluation, and the time of 25 steps with theirs. Exit code 1 where footplate doesn't save what the reports saved.
"""

import argparse
import os
import pathlib
import statistics

from measure import Limits, ROOT, answer_of_peer, ratio_with_interval, report
import harness

EVERY, BATCHES, BATCH = 25, 10, 200  # steps; of an evaluation: batches of a data set, samples
IMAGES = pathlib.Path("/usr/share/datasets/fashion-mnist")
EVALUATION_LIMIT, RUN_LIMIT = 0.5, 0.9  # the least that the reports saved: half of an evaluation, a tenth of the run


def footplate(options):
    """Seconds of (an evaluation, a period), means of one run."""
    steps = EVERY * (options.periods + 1)
    assignments = [f"train.steps={steps}", f"eval.every={EVERY}", f"eval.batches={BATCHES}", f"eval.batch_size={BATCH}",
                   f"log.every={EVERY}", "eval.async=false", "ckpt.every=0", "run.threads=1", "run.device=cpu"]
    with harness.Run(assignments, ranks=options.ranks, config="classify", name="bench") as run:
        if run.finish(900) != 0:
            raise SystemExit(f"footplate run failed:\n{run.output()}")
        rows = [row for row in run.lines("metrics.jsonl") if "train/loss" in row]
        evaluations = [row["eval/seconds"] for row in run.lines("metrics.jsonl") if "eval/loss" in row and row["step"] < steps]
    first, last = rows[0], rows[-1]
    return statistics.mean(evaluations), (last["time"] - first["time"]) * EVERY / (last["step"] - first["step"])


def peer(options):
    """{way: seconds of (an evaluation, a period)}, means of one run."""
    data = pathlib.Path(harness.surroundings("/tmp")["FOOTPLATE_CACHE"])
    command = [os.environ["FOOTPLATE_BENCH_PYTHON"], str(ROOT / "tests" / "peers" / "evaluated.py"), str(IMAGES),
               str(data / "digits.csv.gz"), str(data / "breast_cancer.csv"), "--ranks", str(options.ranks), "--periods",
               str(3 * options.periods), "--every", str(EVERY), "--batches", str(BATCHES), "--batch", str(BATCH)]
    seconds = answer_of_peer(command)["seconds"]
    return {way: (statistics.mean(evaluation for _, evaluation in periods), statistics.mean(map(sum, periods)))
            for way, periods in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--periods", type=int, default=20, help="of 25 steps and an evaluation; of each way of the peer")
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    runs = []
    for pair in range(options.pairs):
        if pair % 2 == 0:
            ours, theirs = footplate(options), peer(options)
        else:
            theirs, ours = peer(options), footplate(options)
        runs.append({"footplate": ours, **theirs})
        print(f"pair {pair + 1}: " + "; ".join(f"{way} {1e3 * evaluation:.0f} of {1e3 * period:.0f} ms"
                                               for way, (evaluation, period) in runs[-1].items()), flush=True)
    figures = {}
    for way in ("footplate", "fused"):
        for other in ("tensors", "batches"):
            for part, what in enumerate(("evaluation", "run")):
                ratio, low, high = ratio_with_interval([(run[way][part], run[other][part]) for run in runs])
                print(f"time of the {what}, {way} / the peer's {other}: {ratio:.3f} (95 % interval {low:.3f} to {high:.3f})")
                figures.update({f"{way}_{other}_{what}": ratio, f"{way}_{other}_{what}_high": high})
    report("fused", **figures, pairs=len(runs), ranks=options.ranks)
    limits = Limits()
    for what, limit in (("evaluation", EVALUATION_LIMIT), ("run", RUN_LIMIT)):
        limits.at_most(f"the {what}'s share of the reports' way", figures[f"footplate_batches_{what}"], limit)
    limits.hold()


if __name__ == "__main__":
    main()
