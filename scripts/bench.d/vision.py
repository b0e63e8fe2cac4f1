"""Samples/s of a user's own task, docs/examples/vision, with two ranks against PyTorch DDP with the same network, batch and threads.

Runs alternate, as in `scripts/bench ddp`. Exit code 1 where the ratio is below its limit.
"""

import argparse
import gzip
import os
import pathlib
import tempfile

from measure import Limits, ROOT, answer_of_peer, ratio_with_interval, report
import harness

LEAST, SKIP = 1.1, 100


def footplate(options, digits):
    plugin = harness.BIN.parent / "tasks" / "vision.so"
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "vision.lua"
        config.write_text(f'run.task = "plugin:{plugin}"\ntask.data = "{digits}"\ntrain.steps = {options.steps}\n'
                          f"train.batch_size = {options.batch}\nrun.threads = 1\nrun.device = 'cpu'\nsched.warmup_steps = 0\n"
                          f"eval.mode = 'off'\neval.every = 0\nckpt.every = 0\nlog.every = {SKIP}\n")
        command = ["run", str(config), "--batch", "-n", str(options.ranks), "--name", "bench"]
        with harness.Run(folder=folder, name="bench", command=command) as run:
            if run.finish(600) != 0:
                raise SystemExit(f"footplate run failed:\n{run.output()}")
            rows = [row for row in run.lines("metrics.jsonl") if "train/loss" in row]
    return (rows[-1]["step"] - rows[0]["step"]) * options.batch / (rows[-1]["time"] - rows[0]["time"])


def ddp(options, digits):
    command = [os.environ["FOOTPLATE_BENCH_PYTHON"], str(ROOT / "tests" / "peers" / "vision.py"), str(digits), "--ranks", str(options.ranks),
               "--steps", str(options.steps), "--skip", str(SKIP), "--batch", str(options.batch)]
    return answer_of_peer(command, timeout_s=600)["samples_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=192)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        digits = pathlib.Path(folder) / "digits.csv"
        packed = pathlib.Path(harness.surroundings("/tmp")["FOOTPLATE_CACHE"]) / "digits.csv.gz"
        digits.write_bytes(gzip.decompress(packed.read_bytes()))
        pairs = []
        for number in range(options.pairs):
            runs = (footplate, ddp) if number % 2 == 0 else (ddp, footplate)
            took = {which: which(options, digits) for which in runs}
            pairs.append((took[footplate], took[ddp]))
            print(f"pair {number + 1}: footplate {took[footplate]:,.0f}, DDP {took[ddp]:,.0f} samples/s", flush=True)
    ratio, low, high = ratio_with_interval(pairs)
    print(f"samples/s, docs/examples/vision, footplate / PyTorch DDP: {ratio:.3f} (95 % interval {low:.3f} to {high:.3f}, {len(pairs)} pairs)")
    report("vision", ratio=ratio, low=low, high=high, pairs=len(pairs), ranks=options.ranks, steps=options.steps, batch=options.batch,
           footplate_samples_per_s=sum(ours for ours, _ in pairs) / len(pairs), ddp_samples_per_s=sum(theirs for _, theirs in pairs) / len(pairs))
    limits = Limits()
    limits.at_least("the ratio", ratio, LEAST, high)
    limits.hold()


if __name__ == "__main__":
    main()
