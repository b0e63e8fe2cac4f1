#!/usr/bin/env python3
"""optim.shard: ranks that share the optimizer's state and the gradients, their checkpoints, and what follows where one is lost."""

import json
import os
import pathlib
import random
import signal
import struct
import time

from harness import FULL, Run, main, wait_until

SHARDED = ["optim.shard=1"]
BF16 = ["train.precision=bf16", "train.param_dtype=bf16"]
GRADIENTS = ["optim.shard=2"]
TEXT = ["model.layers=2", "model.width=64", "model.heads=2", "model.context=32", "train.batch_size=12", "eval.every=0", "eval.at_end=false",
        "ckpt.every=0", "log.every=1", "run.threads=1", "sched.base_lr=1e-3", "sched.warmup_steps=50"]


def trained(assignments, ranks=2, config="kjv", **more):
    with Run(assignments, ranks=ranks, config=config, **more) as run:
        code = run.finish(180)
        assert code == 0, run.output()
        return [line for line in run.lines("metrics.jsonl") if "train/loss" in line], run.result()


def state_of(checkpoint):
    """Each tensor's bytes, whatever files and slices they are in."""
    tensors = {}
    for path in sorted(pathlib.Path(checkpoint).glob("*.safetensors")):
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + length])
        slices = json.loads(header.pop("__metadata__", {}).get("footplate.slices", "{}"))
        for key, entry in header.items():
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            of = slices.get(key, {})
            tensors.setdefault(of.get("of", key), []).append((of.get("first", 0), content[begin:end]))
    return {name: b"".join(part for _, part in sorted(parts)) for name, parts in tensors.items()}


def test_losses_are_those_of_a_plain_run():
    """At a learning rate at which rounding doesn't grow: at 3e-3 a plain run with another micro-batch is 4e-4 apart, too."""
    steps = 100 if FULL else 30
    for config, assignments in (("kjv", TEXT), ("classify", ["eval.every=0", "eval.at_end=false", "ckpt.every=0", "log.every=1"])):
        for ranks in (2, 3, 4) if FULL else (3,):
            steps_of = [*assignments, f"train.steps={steps}"]
            plain = trained(steps_of, ranks, config)[0]
            for more in (SHARDED, [*GRADIENTS, "train.micro_batch=3", "comm.overlap=on"]):
                shards = trained([*steps_of, *more], ranks, config)[0]
                assert len(plain) == len(shards) == steps, (len(plain), len(shards))
                apart = max(abs(one["train/loss"] - other["train/loss"]) / abs(other["train/loss"]) for one, other in zip(shards, plain))
                assert apart <= 1e-5, f"{config} on {ranks} ranks, {more}: losses are {apart:.2g} apart"


def test_checkpoints_of_any_number_of_ranks_are_read_by_any_other():
    """1 -> 2 -> 4 -> 3 -> 1 ranks, and back to an optimizer that isn't sharded: the state stays the same, bit for bit. Matrices are in
    bf16 with their master weights, tables and vectors in fp32."""
    finished = [*TEXT, "train.steps=12", "ckpt.every=12", *BF16]
    with Run([*finished, *SHARDED], ranks=1, config="kjv", name="r1") as first:
        assert first.finish(120) == 0, first.output()
        checkpoint, ends = first.result()["checkpoint"], []
        expected = state_of(checkpoint)
        assert len(expected["optim/master/blocks.1.up.weight"]) == 2 * len(expected["model/blocks.1.up.weight"]), list(expected)
        assert "optim/exp_avg/embedding.weight" in expected and "optim/master/embedding.weight" not in expected, list(expected)
        for number, (ranks, sharded) in enumerate(((2, 1), (4, 2), (3, 1), (2, 0), (3, 2), (1, 0))):
            with Run(folder=first.folder, name=f"again-{number}", command=[
                    "run", "kjv", "--name", f"again-{number}", "--ranks", str(ranks), "--resume", checkpoint, "--batch",
                    *finished, f"optim.shard={sharded}"]) as again:
                assert again.finish(120) == 0, again.output()
                checkpoint = again.result()["checkpoint"]
                assert len(list(pathlib.Path(checkpoint).glob("*.safetensors"))) == (ranks if sharded else 1), checkpoint
                assert state_of(checkpoint) == expected, f"{ranks} ranks, optim.shard = {sharded}"
                ends.append(again.result()["state_hash"])
        assert ends[3] == ends[5], ends
        with Run(folder=first.folder, name="fp32", command=["run", "kjv", "--name", "fp32", "--ranks", "2", "--resume", checkpoint, "--batch",
                                                            *finished, "train.param_dtype=fp32"]) as other:
            assert other.finish(60) == 2, other.output()
            assert 'go on with train.param_dtype="bf16"' in other.output(), other.output()


REDUNDANT = [*SHARDED, "ckpt.redundancy=memory"]
EVEN = [*TEXT, "sched.kind=constant", "sched.warmup_steps=0", "ckpt.keep=0"]
END = 400 if FULL else 120


def stopped_and_resumed(parts, folder):
    """The state of a run that goes on from a checkpoint on other ranks: how many, until which step, and settings, one by one."""
    checkpoint = None
    for number, (ranks, until, settings) in enumerate(parts):
        if number and until == parts[number - 1][1]:
            continue
        name = f"part-{number}"
        resume = ["--resume", checkpoint] if checkpoint else []
        with Run(folder=folder, name=name, command=[
                "run", "kjv", "--name", name, "--ranks", str(ranks), "--batch", *resume, *EVEN, *settings,
                f"train.steps={until}", f"ckpt.every={until}"]) as run:
            assert run.finish(180) == 0, run.output()
            checkpoint = run.result()["checkpoint"]
    return state_of(checkpoint), run.result()["state_hash"]


def rank_events(run, state):
    return [event["data"] for event in run.lines("events.jsonl")
            if event["topic"] == "rank" and event["data"].get("state") == state]


def check_as_resumed(run, parts):
    """The run has ended with the state of one that was stopped and resumed like that, bit for bit."""
    expected, state_hash = stopped_and_resumed(parts, run.folder)
    result = run.result()
    assert state_of(result["checkpoint"]) == expected, parts
    assert result["state_hash"] == state_hash, result


def stop_and_save(run):
    client = wait_until(run.try_connect, 20, "the console")
    client.ask("call", action="run.stop", arguments={"save": True})
    client.close()
    assert run.finish(60) == 0, run.output()


def kill_after_a_save(run, client, victim, since=0):
    wait_until(lambda: any(event["topic"] == "ckpt" and event["data"]["step"] > since for event in run.lines("events.jsonl")), 60, "a checkpoint")
    client.close()
    os.kill(run.pids()[victim], signal.SIGKILL)


def test_without_copies_a_lost_rank_takes_the_others_back_to_a_checkpoint():
    """In place, also where it was rank 0: the state is that of a run that is resumed from it on one rank less, bit for bit."""
    for ranks, stage, victim in ((2, 1, 0), (3, 1, 2), (3, 2, 0), (4, 2, 1)) if FULL else ((3, 2, 0),):
        kept = [f"optim.shard={stage}"]
        with Run([*EVEN, *kept, "train.steps=1000000", "ckpt.every=25"], ranks=ranks, config="kjv") as run:
            client = run.wait_for_step(10)
            changed = client.ask("set", changes={"log.every": 5})["applied"]["step"]
            kill_after_a_save(run, client, victim, changed)
            wait_until(lambda: rank_events(run, "lost") or run.process.poll() is not None, 60, "the loss to be told of")
            (lost,) = rank_events(run, "lost")
            run.wait_for_step(lost["left"] + 10).close()
            stop_and_save(run)
            result = run.result()
            assert result["recoveries"] == 1 and result["restarts"] == 0, result
            assert lost["left"] >= lost["step"] > changed and lost["step"] % 25 == 0, lost
            assert f"training goes back to the checkpoint of step {lost['step']}" in run.output(), run.output()
            lines = [line["step"] for line in run.lines("metrics.jsonl") if "train/loss" in line]
            assert all(step % 5 == 0 for step in lines if step > changed), f"log.every stays as it was set: {lines}"
            check_as_resumed(run, [(ranks, lost["step"], kept), (ranks - 1, result["step"], kept)])


def test_without_copies_another_rank_takes_the_place_of_a_lost_one():
    """Lost, back, joined, and once more: the state is that of runs on 3, 2, 3, 2 and 3 ranks."""
    with Run([*EVEN, *SHARDED, "comm.replace=true", "train.steps=1000000", "ckpt.every=25"], ranks=3, config="kjv") as run:
        parts = []
        for number, victim in enumerate((1, 0), 1):
            saved = rank_events(run, "joined")[-1]["step"] if parts else 0
            kill_after_a_save(run, run.wait_for_step(10), victim, saved)
            wait_until(lambda: len(rank_events(run, "joined")) == number or run.process.poll() is not None, 90, "another rank to join")
            assert run.process.poll() is None, run.output()[-3000:]
            parts += [(3, rank_events(run, "lost")[-1]["step"], SHARDED), (2, rank_events(run, "joined")[-1]["step"], SHARDED)]
        stop_and_save(run)
        check_as_resumed(run, [*parts, (3, run.result()["step"], SHARDED)])


def test_without_a_checkpoint_a_lost_rank_ends_the_start():
    with Run([*EVEN, *SHARDED, "train.steps=1000000", "ckpt.every=0"], ranks=2, config="kjv", options=("--restarts", "0")) as run:
        run.wait_for_step(10).close()
        os.kill(run.pids()[1], signal.SIGKILL)
        assert run.finish(60) == 75, run.output()
        reason = run.result()["reason"]
        assert "share 2 of 2 of the optimizer's state (optim.shard) was lost, and there is no checkpoint yet" in reason, reason


def test_a_damaged_checkpoint_is_left_to_the_next_start():
    """It goes on from the one before: the newest that verifies."""
    with Run([*EVEN, *SHARDED, "train.steps=150", "ckpt.every=25", "ckpt.async=false"], ranks=2, config="kjv", options=("--restarts", "1")) as run:
        client = run.wait_for_step(51)
        assert client.ask("call", action="run.pause")["state"] == "applied"
        newest = sorted((run.directory / "checkpoints" / "main").glob("step-*"))[-1]
        part = newest / "rank-1.safetensors"
        part.write_bytes(part.read_bytes()[:-8] + b"damaged.")
        client.close()
        os.kill(run.pids()[1], signal.SIGKILL)
        assert run.finish(120) == 0, run.output()
        result = run.result()
        assert result["restarts"] == 1 and result["step"] == 150, result
        assert str(newest) in run.read_json("result-1.json")["reason"], run.read_json("result-1.json")


def test_with_redundancy_a_lost_rank_costs_no_state():
    """Set live, then one is killed at any moment. The state is that of runs that were stopped and resumed at those steps, bit for bit."""
    for ranks, stage in ((2, 1), (3, 1), (3, 2), (4, 2)) if FULL else ((3, 2),):
        kept = [f"optim.shard={stage}", "ckpt.redundancy=memory"]
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        with Run([*EVEN, f"train.steps={END}", f"ckpt.every={END}"], ranks=ranks, config="kjv") as run:
            client = run.wait_for_step(10)
            changed = client.ask("set", changes={"optim.shard": stage, "ckpt.redundancy": "memory"})["applied"]["step"]
            wait_until(lambda: client.ask("status")["step"] > changed + 5 + rng.randrange(20), 60, "steps with shards")
            client.close()
            time.sleep(rng.random() * 0.02)  # any moment of a step
            victim = rng.randrange(ranks)
            print(f"  seed {seed}: rank {victim} of {ranks}", flush=True)
            os.kill(run.pids()[victim], signal.SIGKILL)
            assert run.finish(180) == 0, run.output()
            result, (lost,) = run.result(), rank_events(run, "lost")
            assert result["recoveries"] == 1 and result["restarts"] == 0 and result["step"] == END, result
            check_as_resumed(run, [(ranks, changed, []), (ranks, lost["step"], kept), (ranks - 1, END, kept)])


def test_with_redundancy_another_rank_takes_the_place_of_a_lost_one():
    """Rank 0 first, then the one that joined: the state is that of runs on 3, 2, 3, 2 and 3 ranks."""
    steps = [*EVEN, *REDUNDANT, "comm.replace=true", "train.steps=1000000", "run.threads=1", "guard.check_every=10"]
    with Run(steps, ranks=3, config="kjv") as run:
        run.wait_for_step(20).close()
        parts = []
        for number, victim in enumerate((0, 2), 1):
            os.kill(run.pids()[victim], signal.SIGKILL)
            wait_until(lambda: len(rank_events(run, "joined")) == number or run.process.poll() is not None, 90,
                       f"rank {number} to join; so far:\n{run.output()[-1500:]}")
            assert run.process.poll() is None, run.output()[-3000:]
            parts += [(3, rank_events(run, "lost")[-1]["step"], REDUNDANT), (2, rank_events(run, "joined")[-1]["step"], REDUNDANT)]
        stop_and_save(run)
        check_as_resumed(run, [*parts, (3, run.result()["step"], REDUNDANT)])


def test_two_neighbours_that_are_lost_at_once_take_the_last_one_back():
    with Run([*EVEN, *REDUNDANT, "train.steps=150", "ckpt.every=20"], ranks=3, config="kjv") as run:
        client = run.wait_for_step(10)
        wait_until(lambda: any(event["topic"] == "ckpt" for event in run.lines("events.jsonl")), 60, "the first checkpoint")
        client.close()
        pids = run.pids()
        for how in (signal.SIGSTOP, signal.SIGKILL):  # at once for the one that is left
            for victim in (1, 2):
                os.kill(pids[victim], how)
        assert run.finish(120) == 0, run.output()
        result = run.result()
        assert result["restarts"] == 0 and result["recoveries"] >= 1 and result["step"] == 150, result
        assert "training goes back to the checkpoint of step" in run.output(), run.output()


def test_what_cant_be_shared_is_said_at_the_start():
    with Run(["optim.kind=muon", "train.steps=5", *SHARDED]) as run:
        assert run.finish(60) == 2 and "muon needs whole matrices" in run.output(), run.output()


if __name__ == "__main__":
    main([test_losses_are_those_of_a_plain_run, test_checkpoints_of_any_number_of_ranks_are_read_by_any_other,
          test_without_copies_a_lost_rank_takes_the_others_back_to_a_checkpoint,
          test_without_copies_another_rank_takes_the_place_of_a_lost_one, test_without_a_checkpoint_a_lost_rank_ends_the_start,
          test_a_damaged_checkpoint_is_left_to_the_next_start, test_with_redundancy_a_lost_rank_costs_no_state,
          test_with_redundancy_another_rank_takes_the_place_of_a_lost_one,
          test_two_neighbours_that_are_lost_at_once_take_the_last_one_back, test_what_cant_be_shared_is_said_at_the_start])
