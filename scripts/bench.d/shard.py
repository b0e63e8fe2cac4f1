"""What optim.shard and ckpt.redundancy cost, and how long training stands when a rank is lost.

Steps of the King James job on two ranks, with the optimizer's state on each rank, shared, and shared with copies, in turns. Then
one of three ranks is killed, at --millions of parameters: from the last step's line before it to the first one after it, with and
without shards. Exit code 1 beyond a limit.
"""

import argparse
import os
import signal
import statistics

from measure import Limits, report
import harness

KINDS = {"plain": [], "shard": ["optim.shard=1"], "copies": ["optim.shard=1", "ckpt.redundancy=memory"]}
LEAST_PACE = 0.9           # of copies, against shards without
MOST_S_PER_GB = 2          # of parameters and optimizer's state: how much longer training stands than without shards
STEADY = ["eval.mode=off", "ckpt.every=0", "run.threads=1", "log.every=1"]


def step_ms(kind, options):
    """The median of a short run, without its first third."""
    with harness.Run([*STEADY, *KINDS[kind], f"train.steps={options.steps}", "log.perf_every=1"], ranks=2, config="kjv",
                     name=f"shard-{kind}") as run:
        if run.finish(600) != 0:
            raise SystemExit(run.output())
        took = [line["perf/step_ms"] for line in run.lines("metrics.jsonl") if "perf/step_ms" in line]
        return statistics.median(took[len(took) // 3:])


def pause_s(kind, options):
    with harness.Run([*STEADY, *KINDS[kind], f"model.elements={options.millions * 1_000_000}", "model.step_ms=0",
                      "train.steps=1000000"], ranks=3, name=f"pause-{kind}") as run:
        run.wait_for_step(3).close()
        os.kill(run.pids()[1], signal.SIGKILL)

        def lost():
            return [event["data"] for event in run.lines("events.jsonl")
                    if event["topic"] == "rank" and event["data"].get("state") == "lost"]
        harness.wait_until(lambda: lost() or run.process.poll() is not None, 120, "the loss to be told of")
        if run.process.poll() is not None:
            raise SystemExit(run.output())
        step = lost()[0]["step"]
        harness.wait_until(lambda: any(line.get("step", 0) > step + 2 for line in run.lines("metrics.jsonl")), 120, "training to go on")
        lines = [line for line in run.lines("metrics.jsonl") if "train/loss" in line]
        run.end(harness.wait_until(run.try_connect, 20, "the console"))
        before = max((line for line in lines if line["step"] <= step), key=lambda line: line["step"])
        after = min((line for line in lines if line["step"] > step), key=lambda line: line["step"])
        return after["time"] - before["time"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--millions", type=int, default=50, help="parameters of the run that loses a rank, in millions")
    options = parser.parse_args()
    took = {kind: [] for kind in KINDS}
    for _ in range(options.rounds):
        for kind in KINDS:
            took[kind].append(step_ms(kind, options))
    median = {kind: statistics.median(times) for kind, times in took.items()}
    pace = statistics.median(shard / copies for shard, copies in zip(took["shard"], took["copies"]))
    print(f"two ranks, {options.rounds} rounds: a step takes " +
          ", ".join(f"{kind} {ms:.1f} ms" for kind, ms in median.items()) + f"; with copies {pace:.3f} of the pace without")
    pauses = {kind: pause_s(kind, options) for kind in ("plain", "copies")}
    gigabytes = options.millions * 1e6 * 3 * 4 / 1e9
    print(f"a rank is lost, {options.millions} million parameters ({gigabytes:.1f} GB with AdamW's moments): from one step's line to the next " +
          ", ".join(f"{kind} {seconds:.2f} s" for kind, seconds in pauses.items()))
    report("shard", pace=pace, **{f"{kind}_ms": ms for kind, ms in median.items()}, pause_s=pauses["copies"], plain_pause_s=pauses["plain"],
           gigabytes=gigabytes)
    limits = Limits()
    limits.at_least("the pace with copies, against shards without", pace, LEAST_PACE)
    limits.at_most("the seconds that training stands longer for each GB of state", (pauses["copies"] - pauses["plain"]) / gigabytes,
                   MOST_S_PER_GB)
    limits.hold()


if __name__ == "__main__":
    main()
