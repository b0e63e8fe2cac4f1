"""A codec of speech (configs/rvq.lua, docs/rvq.md) against scikit-learn's k-means at the same bits a second.

The error on recordings that are held out, of a run on two ranks with windows of three lengths, is to be ten times below that
of the start and below that of k-means, with 90 % of the codes in use on what is held out. Exit code 1 where it isn't.
"""

import argparse
import json
import math
import os
import statistics

from measure import Limits, ROOT, answer_of_peer, report
import harness

SPEECH = "/usr/share/asterisk/sounds/en_US_f_Allison"
STRIDE = 16  # samples that a vector stands for
BETTER, IN_USE = 10, 0.9


def held_out_error(run):
    last = [line for line in run.lines("metrics.jsonl") if "eval/full_loss" in line or "eval/loss" in line][-1]
    return last.get("eval/full_loss", last.get("eval/loss"))


def start(options):
    """Nothing is learned in the one step."""
    with harness.Run(["train.steps=1", "sched.base_lr=0", "sched.min_lr=0", "ckpt.every=0"], ranks=options.ranks, config="rvq", name="start") as run:
        if run.finish(300) != 0:
            raise SystemExit(f"footplate run failed:\n{run.output()}")
        return held_out_error(run)


def trained(options):
    """(error, the report of the codebooks, seconds of training)"""
    assignments = ["ckpt.every=0", "guard.check_every=50"] + ([f"train.steps={options.steps}"] if options.steps else [])
    with harness.Run(assignments, ranks=options.ranks, config="rvq", name="bench") as run:
        client = run.wait_for_step(1)
        steps = client.ask("get", names=["train.steps"])["train.steps"]["value"]
        client.close()
        run.wait_for_step(steps - 30, timeout_s=3000).close()
        done = run.exec("return task.codebook_report():wait()", "--json")
        if done.returncode != 0 or run.finish(600) != 0:
            raise SystemExit(f"footplate run failed:\n{done.stderr}\n{run.output()}")
        if "differ" in run.output():
            raise SystemExit(f"the ranks' states differ:\n{run.output()}")
        lines = [line for line in run.lines("metrics.jsonl") if "train/loss" in line]
        return held_out_error(run), json.loads(done.stdout), lines[-1]["time"] - lines[0]["time"]


def kmeans(options, bits):
    python = f"{os.environ['FOOTPLATE_BENCH_SKLEARN']}/bin/python"
    command = [python, str(ROOT / "tests" / "peers" / "kmeans.py"), SPEECH, "--frame", str(options.frame), "--bits", str(bits)]
    return answer_of_peer(command, timeout_s=1800)["error"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=0, help="0: as the config has it")
    parser.add_argument("--frame", type=int, default=5, help="samples of a frame of k-means; 6 is its best, and takes minutes")
    options = parser.parse_args()
    first = start(options)
    last, books, seconds = trained(options)
    codes = 256
    bits = len(books["codes_in_use"]) * math.log2(codes) / STRIDE
    theirs = kmeans(options, bits)
    in_use = statistics.mean(books["codes_in_use"])
    print(f"error on what is held out: {first:.3f} at the start, {last:.4f} after {seconds:.0f} s of training ({first / last:.1f} times below); "
          f"k-means at the same {bits:g} bits a sample {theirs:.4f}; {100 * in_use:.1f} % of the codes in use")
    report("rvq", start=first, error=last, seconds=seconds, kmeans=theirs, kmeans_frame=options.frame, bits_per_sample=bits, in_use=in_use,
           in_use_of_each=books["codes_in_use"], perplexity=books["perplexity"], ranks=options.ranks)
    limits = Limits()
    limits.at_most("the error, divided by that of the start,", last / first, 1 / BETTER)
    limits.at_most("the error, divided by that of k-means,", last / theirs, 1)
    limits.at_least("the share of the codes in use", in_use, IN_USE)
    limits.hold()


if __name__ == "__main__":
    main()
