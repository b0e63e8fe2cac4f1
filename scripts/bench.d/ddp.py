"""Tokens/s of footplate against PyTorch DDP: same model, batch, ranks, threads, precision; runs in alternation.

A machine's speed drifts over minutes, so each round of runs is compared with itself only, and every second round is
turned round. The first steps of each run are left out. With --compiled there are two peers, and each round is compared
with the better one. With --mkl-switch the peers have MKL's fast path on processors of any maker: they preload functions
that tell MKL that the processor is Intel's. Exit code 1 where the ratio is below its limit.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile
from collections import namedtuple

from measure import Limits, ROOT, answer_of_peer, ratio_with_interval, report
import harness

LEAST, SKIP = 1.05, 20
# As in tests/peers/ddp.py, and the rows of a batch.
Size = namedtuple("Size", "layers heads width context batch")
SIZES = {"kjv": Size(4, 4, 128, 128, 32), "256": Size(6, 8, 256, 128, 32), "384": Size(8, 6, 384, 256, 8)}


def footplate(options, more=()):
    size = SIZES[options.size]
    model = [f"model.{key}={getattr(size, key)}" for key in ("layers", "heads", "width", "context")]
    assignments = [f"train.steps={options.steps}", f"train.batch_size={size.batch}", f"run.threads={options.threads}",
                   "run.device=cpu", "eval.mode=off", "eval.every=0", "ckpt.every=0", f"log.every={SKIP}",
                   f"train.precision={options.precision}", *(more or model)]
    with harness.Run(assignments, ranks=options.ranks, config="kjv", name="bench") as run:
        if run.finish(900) != 0:
            raise SystemExit(f"footplate run failed:\n{run.output()}")
        rows = [row for row in run.lines("metrics.jsonl") if "train/loss" in row]
    first, last = rows[0], rows[-1]
    return (last["step"] - first["step"]) * size.batch * size.context / (last["time"] - first["time"])


def ddp(options, corpus, *how):
    command = [os.environ["FOOTPLATE_BENCH_PYTHON"], str(ROOT / "tests" / "peers" / "ddp.py"), str(corpus), "--ranks",
               str(options.ranks), "--steps", str(options.steps), "--skip", str(SKIP), "--batch", str(SIZES[options.size].batch),
               "--size", options.size, "--precision", options.precision, "--threads", str(options.threads), *how]
    return answer_of_peer(command, variables=options.peer_variables)["tokens_per_s"]


def parsed(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--size", choices=SIZES, default="kjv", help="layers, width and context of the model: see SIZES")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--compiled", action="store_true", help="beside it DDP with torch.compile")
    parser.add_argument("--mkl-switch", action="store_true", help="the peers have MKL's fast path on processors of any maker")
    options = parser.parse_args()
    if options.pairs < 2:
        parser.error("an interval needs two pairs at least")
    return options


def mkl_switch(folder):
    """The variables of a peer whose user knows the trick."""
    source, library = pathlib.Path(folder) / "switch.c", pathlib.Path(folder) / "switch.so"
    source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return {"LD_PRELOAD": str(library)}


def main(description=__doc__, name="ddp", settings=None, least=LEAST):
    """`settings`: of footplate's run, from the corpus; a ratio below `least` is exit code 1."""
    options = parsed(description)
    with tempfile.TemporaryDirectory() as folder:
        corpus = pathlib.Path(folder) / "kjv.txt"
        corpus.write_bytes(subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdout=subprocess.PIPE, check=True).stdout)
        more = settings(corpus) if settings else ()
        options.peer_variables = mkl_switch(folder) if options.mkl_switch else {}
        runs = {"footplate": lambda: footplate(options, more), "DDP": lambda: ddp(options, corpus)}
        if options.compiled:
            runs["DDP compiled"] = lambda: ddp(options, corpus, "--compile")
        rounds = []
        for number in range(options.pairs):
            order = list(runs) if number % 2 == 0 else list(runs)[::-1]
            took = {which: runs[which]() for which in order}
            rounds.append(took)
            print(f"pair {number + 1}: " + ", ".join(f"{which} {took[which]:,.0f}" for which in runs) + " tokens/s", flush=True)
    pairs = [(took["footplate"], max(speed for which, speed in took.items() if which != "footplate")) for took in rounds]
    ratio, low, high = ratio_with_interval(pairs)
    peer = ("the better of DDP and DDP compiled" if options.compiled else "PyTorch DDP") + (" with MKL's switch" if options.mkl_switch else "")
    print(f"tokens/s, {options.size}, {options.precision}, footplate / {peer}: {ratio:.3f} "
          f"(95 % interval {low:.3f} to {high:.3f}, {len(pairs)} pairs)")
    means = {f"{which.lower().replace(' ', '_')}_tokens_per_s": sum(took[which] for took in rounds) / len(rounds) for which in runs}
    report(name, ratio=ratio, low=low, high=high, pairs=len(pairs), ranks=options.ranks, threads=options.threads, steps=options.steps,
           size=options.size, mkl_switch=options.mkl_switch, precision=options.precision, **means)
    limits = Limits()
    limits.at_least("the ratio", ratio, least, high)
    limits.hold()


if __name__ == "__main__":
    main()
