#!/usr/bin/env python3
"""What a task may have beside parameters and a loss (docs/examples/vision): state that forward and update write, groups, a
schedule and actions of its own."""

import json
import os
import signal
import struct

from harness import BIN, Run, main
from own_task import OwnTask, evaluations

PLUGIN = BIN.parent / "tasks" / "vision.so"
# Micro-batches of the same size on any number of ranks: BatchNorm takes its statistics from one.
ALIKE = ("train.batch_size=96", "train.micro_batch=16", "sched.base_lr=1e-3", "train.steps=150", "ckpt.every=50")


def Vision():
    return OwnTask("plugin:", PLUGIN)


def tensors(run, step):
    """The bytes of each tensor of a checkpoint."""
    content = (run.directory / "checkpoints" / "main" / f"step-{step:08d}" / "rank-0.safetensors").read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    head = json.loads(content[8:8 + length])
    return {name: content[8 + length + one["data_offsets"][0]:8 + length + one["data_offsets"][1]]
            for name, one in head.items() if name != "__metadata__"}


def test_it_trains_alike_on_any_number_of_ranks_and_goes_on_bit_equal():
    with Vision() as vision:
        losses, hashes = {}, {}
        for name, ranks in (("one", 1), ("two", 2), ("three", 3)):
            with vision.run(*ALIKE, name=name, ranks=ranks) as run:
                assert run.finish() == 0, run.output()
                last = evaluations(run)[-1]
                assert last["eval/accuracy"] > 0.9, last
                losses[name], hashes[name] = last["eval/loss"], run.result()["state_hash"]
                rates = {line["step"]: line["train/lr"] for line in run.lines("metrics.jsonl") if "train/lr" in line}
                assert abs(rates[50] - 0.01) < 3e-4 and rates[140] < 0.002 and rates[10] < 0.003, rates
                counts = struct.unpack("<10f", tensors(run, 150)["state/seen"])
                assert sum(counts) == 150 * 96 and min(counts) > 0, counts
        assert all(abs(loss - losses["one"]) < 1e-3 for loss in losses.values()), losses

        with vision.run(*ALIKE, "ckpt.every=75", name="cut") as run:
            run.wait_for_step(80).close()
            run.process.send_signal(signal.SIGTERM)
            assert run.finish() == 75, run.output()
        with Run(folder=vision.folder, name="cut", command=["run", "--name", "cut", "--resume", "auto", "--batch"]) as run:
            assert run.finish() == 0, run.output()
            assert run.result()["state_hash"] == hashes["two"], run.output()


def test_a_rank_that_is_killed_is_gone_on_without():
    with Vision() as vision, vision.run(*ALIKE, "train.steps=300", "ckpt.every=0", "guard.check_every=10", ranks=3) as run:
        client = run.wait_for_step(20)
        os.kill(run.pids()[1], signal.SIGKILL)
        client.close()
        assert run.finish() == 0, run.output()
        assert run.result()["recoveries"] == 1 and evaluations(run)[-1]["eval/accuracy"] > 0.9, run.result()
        assert "differ" not in run.output(), "the ranks' hashes, BatchNorm's statistics among them"


def test_a_skipped_step_leaves_all_state_as_it_was():
    with Vision() as vision:
        for fault, ends in (("nan_grad:rank=1:step=6", 0), ("", 0)):
            with vision.run(*ALIKE, "train.steps=9", "ckpt.every=1", "ckpt.async=false", "ckpt.keep=20", "guard.check_every=1", "eval.every=0",
                            "eval.at_end=false", name="f" + str(len(fault)), env={"FOOTPLATE_FAULT": fault}) as run:
                assert run.finish() == ends, run.output()
                before, after = tensors(run, 6), tensors(run, 7)
                kinds = {name.split("/")[0] for name in before}
                assert {"model", "state", "optim"} <= kinds, kinds
                same = {name for name in before if before[name] == after[name]}
                assert {"state/block.first_norm.running_mean", "state/seen", "optim/step"} <= set(before), sorted(before)
                assert same == (set(before) if fault else set()), (fault, same ^ set(before))
                assert "differ" not in run.output(), run.output()


def test_its_actions_are_agreed_journaled_and_replayed():
    with Vision() as vision:
        with vision.run(*ALIKE, "train.steps=100000", "eval.every=0", "ckpt.every=0") as run:
            run.wait_for_step(10).close()
            done = run.exec("return task.reset_head{scale = 0.5}:wait()")
            assert done.returncode == 0 and "step" in done.stdout, done
            for wrong, words in (("task.reset_head{scale = 'big'}", "scale"), ("task.reset_head{size = 1}", "size"),
                                 ("task.reset_heads()", "reset_head"), ("task.shift = 9", "0 to 3")):
                refused = run.exec(wrong)
                assert refused.returncode != 0 and words in refused.stderr, (wrong, refused)
            assert "Draws the last layer again" in run.exec("return help('task.reset_head')").stdout
            assert " images/s" in run.output() and "tokens/s" not in run.output(), run.output()
            assert run.wait_for_step(1).ask("status")["pace_unit"] == "images/s"
            counts = json.loads(run.exec("return task.classes():wait()", "--json").stdout)
            assert "task.reset_head" in (run.directory / "journal.lua").read_text()
            assert run.exec("task.shift = 0").returncode == 0
            run.end_after(20)
            assert run.finish() == 0, (counts, run.output())
        assert "bit-equal" in vision.footplate("replay", "t")


if __name__ == "__main__":
    main([test_it_trains_alike_on_any_number_of_ranks_and_goes_on_bit_equal, test_a_rank_that_is_killed_is_gone_on_without,
          test_a_skipped_step_leaves_all_state_as_it_was, test_its_actions_are_agreed_journaled_and_replayed])
