"""Tokens/s of footplate with two ranks against PyTorch DDP: same model, batch, threads; runs in alternation.

A machine's speed drifts over minutes, so each pair of runs is compared with itself only, and every second pair is
turned round. The first steps of each run are left out.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile

from measure import ROOT, ratio_with_interval, report
import harness

BATCH, CONTEXT, SKIP = 32, 128, 20


def footplate(options, more=()):
    assignments = [f"train.steps={options.steps}", f"train.batch_size={BATCH}", "run.threads=1", "run.device=cpu",
                   "eval.mode=off", "eval.every=0", "ckpt.every=0", f"log.every={SKIP}", *more]
    with harness.Run(assignments, ranks=options.ranks, config="kjv", name="bench") as run:
        if run.finish(900) != 0:
            raise SystemExit(f"footplate run failed:\n{run.output()}")
        rows = [row for row in run.lines("metrics.jsonl") if "train/loss" in row]
    first, last = rows[0], rows[-1]
    return (last["step"] - first["step"]) * BATCH * CONTEXT / (last["time"] - first["time"])


def ddp(options, corpus):
    command = [os.environ["FOOTPLATE_BENCH_PYTHON"], str(ROOT / "tests" / "peers" / "ddp.py"), str(corpus), "--ranks",
               str(options.ranks), "--steps", str(options.steps), "--skip", str(SKIP), "--batch", str(BATCH)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"the peer failed:\n{answer.stderr[-4000:]}")
    return json.loads(answer.stdout.splitlines()[-1])["tokens_per_s"]


def main(description=__doc__, name="ddp", settings=None, least=0.0):
    """`settings`: of footplate's run, from the corpus; a ratio below `least` is exit code 1."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    if options.pairs < 2:
        parser.error("an interval needs two pairs at least")
    with tempfile.TemporaryDirectory() as folder:
        corpus = pathlib.Path(folder) / "kjv.txt"
        corpus.write_bytes(subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdout=subprocess.PIPE, check=True).stdout)
        more = settings(corpus) if settings else ()
        pairs = []
        for pair in range(options.pairs):
            if pair % 2 == 0:
                ours, theirs = footplate(options, more), ddp(options, corpus)
            else:
                theirs, ours = ddp(options, corpus), footplate(options, more)
            pairs.append((ours, theirs))
            print(f"pair {pair + 1}: footplate {ours:,.0f} tokens/s, DDP {theirs:,.0f}, ratio {ours / theirs:.3f}", flush=True)
    ratio, low, high = ratio_with_interval(pairs)
    print(f"tokens/s, footplate / PyTorch DDP: {ratio:.3f} (95 % interval {low:.3f} to {high:.3f}, {len(pairs)} pairs)")
    report(name, ratio=ratio, low=low, high=high, pairs=len(pairs), ranks=options.ranks, steps=options.steps,
           footplate_tokens_per_s=sum(a for a, _ in pairs) / len(pairs), ddp_tokens_per_s=sum(b for _, b in pairs) / len(pairs))
    if ratio < least:
        raise SystemExit(f"the ratio has to be {least} at least")


if __name__ == "__main__":
    main()
