"""What optim.shard and ckpt.redundancy cost, what memory they save, and how long training stands when a rank is lost.

Steps of the King James job on two ranks, with the optimizer's state on each rank, shared, shared with copies, and shared with the
gradients, in turns; and computed in bf16, with parameters in fp32 and in bf16. Then the largest memory of a rank with a model of 100
million parameters. Then one of three ranks is killed, at
--millions of parameters: from the last step's line before it to the first one after it, with and without shards; and where nobody has
a copy, in place from a checkpoint, and by a restart from it. Exit code 1 beyond a limit.
"""

import argparse
import os
import pathlib
import signal
import statistics

from measure import Limits, report
import harness

KINDS = {"plain": [], "shard": ["optim.shard=1"], "copies": ["optim.shard=1", "ckpt.redundancy=memory"],
         "gradients": ["optim.shard=2"]}
BF16 = {"cast": ["optim.shard=2", "train.precision=bf16"],
        "kept": ["optim.shard=2", "train.precision=bf16", "train.param_dtype=bf16"]}
KINDS |= BF16
LEAST_PACE = 0.9           # of copies, and of shared gradients, against shards without
LEAST_SAVED = 0.75         # of the memory that one of two ranks doesn't need for what the other one keeps
LEAST_SAVED_IN_BF16 = 0.75  # of the memory of the copies that a step's casts make
MOST_S_PER_GB = 2          # of parameters and optimizer's state: how much longer training stands than without shards
MOST_OF_RESTART = 0.75     # how long training stands where ranks go back to a checkpoint in place, against a restart
STEADY = ["eval.mode=off", "ckpt.every=0", "run.threads=1", "log.every=1"]


def step_ms(kind, options):
    """The median of a short run, without its first third."""
    with harness.Run([*STEADY, *KINDS[kind], f"train.steps={options.steps}", "log.perf_every=1"], ranks=2, config="kjv",
                     name=f"shard-{kind}") as run:
        if run.finish(600) != 0:
            raise SystemExit(run.output())
        took = [line["perf/step_ms"] for line in run.lines("metrics.jsonl") if "perf/step_ms" in line]
        return statistics.median(took[len(took) // 3:])


LARGE = ["model.width=1024", "model.layers=8", "model.heads=8", "model.context=16", "train.batch_size=4"]
LARGE_MIB = 4 * 12 * 1024**2 * 8 / 2**20  # of its matrices, or their gradients


def memory_mib(kind):
    """The most that any rank has had at once."""
    with harness.Run([*STEADY, *KINDS[kind], *LARGE, "train.steps=1000000"], ranks=2, config="kjv", name=f"memory-{kind}") as run:
        client = run.wait_for_step(5)
        peaks = [int(line.split()[1]) / 1024 for pid in run.pids() for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM")]
        run.end(client)
        return max(peaks)


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


def back_s(options, *more):
    """Three ranks, one is killed, and nobody has a copy of its share: until the first step from the checkpoint."""
    with harness.Run([*STEADY, *KINDS["shard"], *more, f"model.elements={options.millions * 1_000_000}", "model.step_ms=0",
                      "train.steps=1000000"], ranks=3, name="back", options=("--restarts", "1")) as run:
        client = run.wait_for_step(3)
        assert client.ask("call", action="ckpt.save")["state"] == "applied"
        saved = harness.wait_until(lambda: [one["data"]["step"] for one in run.lines("events.jsonl") if one["topic"] == "ckpt"], 120, "a save")
        harness.wait_until(lambda: client.ask("status")["step"] > saved[0] + 3, 60, "some steps more")
        client.close()
        os.kill(run.pids()[1], signal.SIGKILL)

        def stood():
            lines = [line for line in run.lines("metrics.jsonl") if "train/loss" in line]
            return [after["time"] - before["time"] for before, after in zip(lines, lines[1:]) if after["step"] <= before["step"]]
        took = harness.wait_until(lambda: stood() or run.process.poll() is not None, 180, "training to go on")
        if took is True:
            raise SystemExit(run.output())
        run.end(harness.wait_until(run.try_connect, 60, "the console"))
        return took[0]


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
    pace = {kind: statistics.median(shard / other for shard, other in zip(took["shard"], took[kind])) for kind in ("copies", "gradients")}
    bf16_pace = statistics.median(cast / kept for cast, kept in zip(took["cast"], took["kept"]))
    print(f"two ranks, {options.rounds} rounds: a step takes " +
          ", ".join(f"{kind} {ms:.1f} ms" for kind, ms in median.items()) + f"; with copies {pace['copies']:.3f} of the pace without, "
          f"with shared gradients {pace['gradients']:.3f}; with parameters in bf16 {bf16_pace:.3f} of the pace with casts")
    peaks = {kind: memory_mib(kind) for kind in ("plain", "shard", "gradients", "cast", "kept")}
    saved = (peaks["shard"] - peaks["gradients"]) / (LARGE_MIB / 2)
    saved_in_bf16 = (peaks["cast"] - peaks["kept"]) / (LARGE_MIB / 2)
    print(f"two ranks, {LARGE_MIB / 4 * 2**20 / 1e6:.0f} million parameters: a rank needs at most " +
          ", ".join(f"{kind} {mib:.0f} MiB" for kind, mib in peaks.items()))
    pauses = {kind: pause_s(kind, options) for kind in ("plain", "copies")}
    gigabytes = options.millions * 1e6 * 3 * 4 / 1e9
    print(f"a rank is lost, {options.millions} million parameters ({gigabytes:.1f} GB with AdamW's moments): from one step's line to the next " +
          ", ".join(f"{kind} {seconds:.2f} s" for kind, seconds in pauses.items()))
    back = {"in place": back_s(options), "by a restart": back_s(options, "comm.on_loss=stop")}
    print("a rank is lost, and nobody has a copy of its share: from the last line to the first one from the checkpoint " +
          ", ".join(f"{how} {seconds:.2f} s" for how, seconds in back.items()))
    report("shard", bf16_pace=bf16_pace, **{f"{kind}_pace": value for kind, value in pace.items()}, **{f"{kind}_mib": mib for kind, mib in peaks.items()}, **{f"{kind}_ms": ms for kind, ms in median.items()}, pause_s=pauses["copies"], plain_pause_s=pauses["plain"],
           back_s=back["in place"], restart_s=back["by a restart"],
           gigabytes=gigabytes)
    limits = Limits()
    limits.at_least("the pace with copies, against shards without", pace["copies"], LEAST_PACE)
    limits.at_least("the pace with shared gradients, against shards", pace["gradients"], LEAST_PACE)
    limits.at_least("of the other rank's gradients, the memory that shared ones save", saved, LEAST_SAVED)
    if pathlib.Path("/proc/cpuinfo").read_text().find("avx512_bf16") > 0:
        limits.at_least("of the copies in bf16 that casts make, the memory that parameters in bf16 save", saved_in_bf16, LEAST_SAVED_IN_BF16)
        limits.at_least("the pace with parameters in bf16, against casts", bf16_pace, LEAST_PACE)
    else:
        print("no limits for bf16: no instructions here multiply it, so that train.precision = \"bf16\" alone computes in fp32")
    limits.at_most("the seconds that training stands longer for each GB of state", (pauses["copies"] - pauses["plain"]) / gigabytes,
                   MOST_S_PER_GB)
    limits.at_most("the time to go back to a checkpoint in place, against a restart", back["in place"] / back["by a restart"],
                   MOST_OF_RESTART)
    limits.hold()


if __name__ == "__main__":
    main()
