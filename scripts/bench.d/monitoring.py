"""What monitoring costs a run that trains (configs/kjv.lua, two ranks, or what the options say): step time with all of it at
its defaults against none, in blocks within one run; then with every kind at every step. Exit code 1 where the defaults cost
more than 1 %.

Beside it, in the same run of this benchmark, the way of the field reports: PyTorch DDP with and without a profile once in 50
steps, a host read for each sample's loss and a broadcast for each metric of each step (tests/peers/monitored.py).
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

from measure import Limits, ROOT, add_run_options, answer_of_peer, ratio_with_interval, report
import blocks
import harness
import idle

LIMIT = 1.01
# Without monitoring one light line in so many steps is left, which tells blocks apart.
NOTHING = {"log.reduced": True, "log.every": 20}
DEFAULTS = {"log.reduced": False, "log.every": 10, "log.perf_every": 10, "log.detail_every": 50, "log.gpu_every": 20,
            "log.dataset_every": 10}
EACH_STEP = {**dict.fromkeys(DEFAULTS, 1), "log.reduced": False}


def ratios(options):
    """(ratio, low, high, pairs) of the defaults, and of every step."""
    assignments = ["train.steps=1000000", "train.batch_size=4", "run.threads=1", "eval.mode=off", "ckpt.every=0",
                   "guard.check_every=400", "train.empty_cache_every=0"]
    with harness.Run([*assignments, *options.setting], ranks=options.ranks, config=options.config, name="bench") as run:
        client = run.wait_for_step(20)
        found = []
        for changes, seconds in ((DEFAULTS, options.seconds), (EACH_STEP, options.seconds / 3)):
            times = blocks.alternate(seconds, options.block, lambda now=changes: client.ask("set", changes=now),
                                     lambda: client.ask("set", changes=NOTHING))
            pairs = list(idle.pairs_of(idle.step_times(times, blocks.metric_rows(run, times[-1][1]))))
            found.append((*ratio_with_interval(pairs), len(pairs)))
        client.close()
        blocks.stop(run)
    return found


def of_the_reports(options):
    with tempfile.TemporaryDirectory() as folder:
        corpus = pathlib.Path(folder) / "kjv.txt"
        corpus.write_bytes(subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdout=subprocess.PIPE, check=True).stdout)
        command = [os.environ["FOOTPLATE_BENCH_PYTHON"], str(ROOT / "tests" / "peers" / "monitored.py"), str(corpus),
                   "--blocks", str(2 * options.pairs)]
        seconds = answer_of_peer(command, timeout_s=1800)["seconds"]
    times = [(block % 4 in (0, 3), time) for block, time in enumerate(seconds)]
    pairs = list(idle.pairs_of(times))
    return (*ratio_with_interval(pairs), len(pairs))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=480, help="of the defaults in blocks; a third of it for every step")
    parser.add_argument("--block", type=float, default=3, help="seconds of a block")
    parser.add_argument("--pairs", type=int, default=12, help="of the peer's blocks")
    add_run_options(parser)
    options = parser.parse_args()
    figures = {}
    for name, what, (ratio, low, high, pairs) in zip(
            ("", "each_step_", "reports_"),
            ("all monitoring at its defaults / none", "each kind at each step / none", "the reports' way / none, in PyTorch DDP"),
            [*ratios(options), of_the_reports(options)]):
        print(f"step time, {what}: {ratio:.4f} (95 % interval {low:.4f} to {high:.4f}, {pairs} pairs)", flush=True)
        figures.update({f"{name}ratio": ratio, f"{name}low": low, f"{name}high": high, f"{name}pairs": pairs})
    report("monitoring", **figures, limit_ratio=LIMIT)
    limits = Limits()
    limits.at_most("the ratio of the defaults", figures["ratio"], LIMIT, figures["low"])
    limits.hold()


if __name__ == "__main__":
    main()
