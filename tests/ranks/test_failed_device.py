#!/usr/bin/env python3
"""A device whose process can't use it any more (an error of CUDA's that sticks): it costs that rank, and this job takes it no more.

The processors stand in for the device (FOOTPLATE_FAULT=device_error), which fails in the middle of a step.
"""

import random

from harness import FULL, Run, main, wait_until

SMALL = ["model.layers=2", "model.width=64", "model.heads=2", "model.context=32", "eval.every=0", "eval.at_end=false", "ckpt.every=0",
         "log.every=1", "run.threads=1", "sched.kind=constant", "sched.warmup_steps=0"]
WHY = "has failed: an illegal memory access was encountered"


def fails(rank, step):
    return {"FOOTPLATE_FAULT": f"device_error:rank={rank}:step={step}"}


def stopped_and_resumed(folder, ranks, step, end):
    with Run([*SMALL, f"train.steps={step}", f"ckpt.every={step}"], ranks=ranks, config="kjv", folder=folder, name="first") as first:
        assert first.finish(60) == 0, first.output()
        checkpoint = first.result()["checkpoint"]
    with Run(folder=folder, name="second", command=["run", "kjv", "--name", "second", "--ranks", str(ranks - 1), "--batch", "--resume", checkpoint,
                                                    *SMALL, f"train.steps={end}"]) as second:
        assert second.finish(60) == 0, second.output()
        return second.result()["state_hash"]


def failed_devices(run):
    return [path.stem for path in (run.directory / "failed-devices").glob("*.json")]


def test_it_costs_one_rank_and_no_step():
    """Any rank, in any step. The state is that of a run that goes on from a checkpoint of that step on one rank less, bit for bit."""
    for _ in range(20 if FULL else 2):
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        ranks = rng.choice((2, 3))
        rank, step = rng.randrange(ranks), rng.randrange(2, 30)
        print(f"  seed {seed}: rank {rank} of {ranks}, step {step}", flush=True)
        with Run([*SMALL, "train.steps=40", "ckpt.every=40"], ranks=ranks, config="kjv", env=fails(rank, step)) as run:
            assert run.finish(60) == 0, run.output()
            result = run.result()
            assert (result["recoveries"], result["restarts"], result["step"]) == (1, 0, 40), result
            (lost,) = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "rank" and event["data"]["state"] == "lost"]
            assert lost["step"] == step and lost["ranks"] == [rank] and WHY in lost["text"], lost
            log = (run.directory / "log" / f"rank-{rank}.log").read_text()
            assert WHY in log, log
            assert failed_devices(run) == [f"stand-in-{rank}"]
            losses = {line["step"]: line["train/loss"] for line in run.lines("metrics.jsonl") if "train/loss" in line}
            assert sorted(losses) == list(range(1, 41)), losses
            assert result["state_hash"] == stopped_and_resumed(run.folder, ranks, step, 40)


def test_a_restart_leaves_it_out():
    """All ranks but that one; --resume auto, a job of its own, asks for all again."""
    with Run([*SMALL, "train.steps=30", "ckpt.every=10", "comm.on_loss=stop"], ranks=2, config="kjv", options=("--restarts", "1"),
             env=fails(1, 15)) as run:
        assert run.finish(60) == 0, run.output()
        assert run.result()["restarts"] == 1, run.result()
        assert "stand-in-1 on " in run.output() and "has failed in this job, and is left out" in run.output(), run.output()
        assert "1 of 2 ranks" in run.output(), run.output()
        assert [start["world_size"] for start in run.lines("starts.jsonl")] == [2, 1]
        name = run.directory.name
        with Run(folder=run.folder, name=name, command=["run", "--name", name, "--resume", "auto", "--batch", "train.steps=40"]) as again:
            assert again.finish(60) == 0, again.output()
            assert [start["world_size"] for start in again.lines("starts.jsonl")] == [2, 1, 2]
            assert failed_devices(again) == []


def test_the_only_rank_ends_resumable():
    with Run([*SMALL, "train.steps=30", "ckpt.every=10"], ranks=1, config="kjv", env=fails(0, 15)) as run:
        assert run.finish(60) == 75, run.output()
        result = run.result()
        assert result["code"] == 75 and WHY in run.output() and result["checkpoint"].endswith("step-00000010"), result


def test_a_job_without_devices_isnt_started_again():
    with Run([*SMALL, "train.steps=30", "ckpt.every=10"], ranks=1, config="kjv", options=("--restarts", "3"), env=fails(0, 15)) as run:
        assert run.finish(60) == 75, run.output()
        assert "is not started again: each device of this machine has failed in this job" in run.output(), run.output()
        assert len(run.lines("starts.jsonl")) == 1


def test_another_process_takes_the_place_of_that_rank():
    with Run([*SMALL, "train.steps=1000000", "comm.replace=true"], ranks=2, config="kjv", env=fails(1, 15)) as run:
        def joined():
            return [event for event in run.lines("events.jsonl") if event["topic"] == "rank" and event["data"]["state"] == "joined"]
        wait_until(lambda: joined() or run.process.poll() is not None, 60, f"a rank to join; so far:\n{run.output()[-1500:]}")
        assert run.process.poll() is None, run.output()[-3000:]
        client = run.wait_for_step(joined()[0]["data"]["step"] + 5)
        assert client.ask("status")["world_size"] == 2
        assert run.end(client) == 0, run.output()


if __name__ == "__main__":
    main([test_it_costs_one_rank_and_no_step, test_a_restart_leaves_it_out, test_the_only_rank_ends_resumable,
          test_a_job_without_devices_isnt_started_again, test_another_process_takes_the_place_of_that_rank])
