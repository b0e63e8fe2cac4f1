"""GPT-2 124M on one device: tokens/s of footplate against eager PyTorch, runs in alternation; MFU; spread of step times.

Model FLOPs of a token: 6 N + 12 L W C (N parameters without positions, L layers, W width, C context), forward and
backward; MFU is that times tokens/s over the device's dense bf16 peak (--peak-tflops; 989 for H100 and H200).
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

from measure import Limits, ROOT, answer_of_peer, ratio_with_interval, report
import harness

LEAST = 0.97
SHAPE = ("layers", "heads", "width", "context", "vocabulary")


def footplate(options):
    assignments = [f"train.steps={options.steps}", f"train.batch_size={options.batch}", f"run.device={options.device}",
                   "eval.mode=off", "eval.every=0", "ckpt.every=0", "guard.check_every=0", "sched.warmup_steps=5", "log.every=1",
                   "log.detail_every=10", *[f"model.{name}={getattr(options, name)}" for name in SHAPE], *options.setting]
    if options.device == "cpu":
        assignments.append("run.threads=1")
    with harness.Run(assignments, ranks=1, config="gpt2", name="bench") as run:
        if run.finish(900) != 0:
            raise SystemExit(f"footplate run failed:\n{run.output()}")
        rows = [row for row in run.lines("metrics.jsonl") if "train/loss" in row][options.skip:]
        log = (run.directory / "log" / "rank-0.log").read_text()
    told = next(line for line in log.splitlines() if " computes in " in line).partition(" computes in ")[2]
    if "train.cuda_graph=true" in options.setting and ("steps are recorded" not in told or "can't record its steps" in log):
        raise SystemExit(f"no step was recorded:\n{log}")
    steps = [b["time"] - a["time"] for a, b in zip(rows, rows[1:])]
    return {"tokens_per_s": options.batch * options.context * len(steps) / (rows[-1]["time"] - rows[0]["time"]),
            "step_ms": 1e3 * statistics.median(steps), "least_ms": 1e3 * min(steps), "most_ms": 1e3 * max(steps),
            "loss": rows[-1]["train/loss"], "peak_mib": max((row["mem/peak_mib"] for row in rows if "mem/peak_mib" in row), default=None), "told": told}


def pytorch(options, corpus):
    command = [os.environ["FOOTPLATE_BENCH_PYTHON"], str(ROOT / "tests" / "peers" / "gpt2.py"), str(corpus)]
    for name in ("device", "steps", "skip", "batch", *SHAPE):
        command += [f"--{name}", str(getattr(options, name))]
    if options.device == "cpu":
        command += ["--threads", "1"]
    return answer_of_peer(command)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    for name, default in (("pairs", 4), ("steps", 80), ("skip", 20), ("batch", 64), ("layers", 12), ("heads", 12), ("width", 768),
                          ("context", 1024), ("vocabulary", 50257)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--peak-tflops", type=float, default=989.0)
    parser.add_argument("--setting", action="append", default=[], help="one more of footplate's, KEY=VALUE")
    options = parser.parse_args()
    if options.device == "cuda" and not any(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        raise SystemExit("gpt2 is left out: no CUDA device here; --device cpu with a small model tries the benchmark itself")
    pairs, ours, theirs = [], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        corpus = ROOT / "share" / "footplate" / "kjv.txt"  # of a bundle
        if not corpus.exists():
            corpus = pathlib.Path(folder) / "kjv.txt"
            corpus.write_bytes(subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdout=subprocess.PIPE, check=True).stdout)
        for pair in range(options.pairs):
            if pair % 2 == 0:
                ours, theirs = footplate(options), pytorch(options, corpus)
            else:
                theirs, ours = pytorch(options, corpus), footplate(options)
            pairs.append((ours["tokens_per_s"], theirs["tokens_per_s"]))
            print(f"pair {pair + 1}: footplate {pairs[-1][0]:,.0f} tokens/s ({ours['step_ms']:.1f} ms, {ours['least_ms']:.1f} to {ours['most_ms']:.1f}), "
                  f"PyTorch {pairs[-1][1]:,.0f} ({theirs['step_ms']:.1f} ms, {theirs['least_ms']:.1f} to {theirs['most_ms']:.1f}), "
                  f"ratio {pairs[-1][0] / pairs[-1][1]:.3f}", flush=True)
    ratio, low, high = ratio_with_interval(pairs)
    parameters = theirs["parameters"] - options.context * options.width
    flops = 6 * parameters + 12 * options.layers * options.width * options.context
    mfu = flops * statistics.fmean(a for a, _ in pairs) / (options.peak_tflops * 1e12)
    print(f"{ours['told']}\ntokens/s, footplate / PyTorch {theirs['torch']}: {ratio:.3f} (95 % interval {low:.3f} to {high:.3f}, {len(pairs)} pairs); "
          f"MFU {100 * mfu:.1f} % of {options.peak_tflops:.0f} TFLOP/s, {flops / 1e9:.3f} GFLOP a token")
    report("gpt2", settings=options.setting, ratio=ratio, low=low, high=high, pairs=len(pairs), mfu=mfu, flops_per_token=flops, footplate=ours, pytorch=theirs)
    if options.device == "cuda":
        limits = Limits()
        limits.at_least("the ratio", ratio, LEAST, high)
        limits.hold()


if __name__ == "__main__":
    main()
