#!/usr/bin/env python3
"""ckpt.load: back to a checkpoint, and on from there in a branch of its own."""

import os
import shutil
import signal
import tempfile

from harness import PAUSE, Run, main, not_finite_at, wait_for_pause, wait_until
from test_replay import check_equal, replayed

# A save beside training that is due while another one is written comes at a later step.
SMALL = ["model.step_ms=5", "ckpt.every=50", "ckpt.async=false", "ckpt.keep=20", "log.every=5"]


def at_step(client, step):
    wait_until(lambda: client.ask("status")["step"] >= step, 60, f"step {step}")


def held_at(run, step):
    """A client of a run that stands still there, with PAUSE and not_finite_at()."""
    client = run.wait_for_step(step)
    wait_for_pause(client)
    return client


def resume(client):
    client.ask("call", action="run.resume")


def second_start(run, count=2):
    return wait_until(lambda: len(run.lines("starts.jsonl")) == count and run.lines("starts.jsonl")[-1], 60, f"start {count}")


def load(run, arguments):
    done = run.exec(f"ckpt.load{{ {arguments} }}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def value_of(run, name):
    return run.wait_for_step(1).ask("get", names=[name])[name]["value"]


def test_back_and_on_in_a_branch():
    """The same steps once more, bit for bit: as of a run to which nothing was done."""
    folder = tempfile.mkdtemp(prefix="fp-load-")
    settings, env = [*SMALL, "train.steps=220", "model.step_ms=20"], {"FOOTPLATE_FAULT": not_finite_at(20)}
    with Run(settings, folder=folder, name="undisturbed", env=env) as run:
        assert run.finish() == 0, run.output()
        wanted = run.result()["state_hash"]
    with Run([*settings, PAUSE], folder=folder, env=env) as run:
        client = held_at(run, 20)
        client.ask("call", action="run.pause", at_step=110)  # the checkpoint of step 100 is not to have ahead what follows
        resume(client)
        wait_for_pause(client, 110)
        client.ask("set", changes={"optim.lr_scale": 8})
        client.ask("set", changes={"log.every": 2}, at_step=215)
        client.ask("call", action="run.pause", at_step=160)
        resume(client)
        wait_for_pause(client, 160)
        load(run, 'ref = 149, reason = "the loss doubled"')
        start = second_start(run)
        assert (start["step"], start["branch"], start["loaded"]) == (100, "from-100", True), start
        first = run.read_json("result-1.json")
        assert (first["code"], first["reason"], first["note"]) == (75, "load", "the loss doubled"), first
        assert value_of(run, "optim.lr_scale") == 1
        assert run.finish() == 0, run.output()
        result = run.result()
        assert (result["step"], result["restarts"], result["state_hash"]) == (220, 0, wanted), result
        assert "to go back to step 100, in branch from-100" in run.output(), run.output()
        said = [event["data"]["text"] for event in run.lines("events.jsonl") if event["data"].get("kind") == "load"]
        assert len(said) == 1 and "in branch from-100: optim.lr_scale 8 -> 1" in said[0], said
        saved = {path.relative_to(run.directory / "checkpoints").as_posix() for path in run.directory.glob("checkpoints/*/step-*")}
        assert {"main/step-00000150", "from-100/step-00000100", "from-100/step-00000200"} <= saved, saved
        lines = run.lines("metrics.jsonl")
        assert {line["branch"] for line in lines if line["step"] > first["step"]} == {"from-100"}, lines
        again = [line["branch"] for line in lines if line["step"] == 110]
        assert again == ["main", "from-100"], again
        assert not [line for line in lines if line["step"] == 216], "an order of what was left behind"
    check_equal(run, *replayed(run))
    shutil.rmtree(folder)


def test_settings_restored_kept_and_set():
    with Run([*SMALL, "train.steps=100000", "optim.weight_decay=0.2", "ckpt.every=0"]) as run:
        client = run.wait_for_step(20)
        client.ask("set", changes={"optim.lr_scale": 0.5, "optim.weight_decay": 0.1})
        saved = client.ask("call", action="ckpt.save", wait=True)["result"]["step"]
        client.ask("set", changes={"optim.lr_scale": 0.25, "train.clip_norm": 2, "optim.weight_decay": 0.3})

        load(run, 'ref = "latest", set = { train = { clip_norm = 3 } }, branch = "clipped"')
        assert second_start(run)["branch"] == "clipped"
        client = run.wait_for_step(saved + 1)
        now = {name: setting["value"] for name, setting in client.ask("get", names=["optim.lr_scale", "train.clip_norm", "optim.weight_decay"]).items()}
        assert now == {"optim.lr_scale": 0.5, "train.clip_norm": 3, "optim.weight_decay": 0.1}, now

        client.ask("set", changes={"log.every": 3, "optim.lr_scale": 0.125})
        load(run, 'settings = "keep", set = { optim = { weight_decay = 0.4 } }')
        start = second_start(run, 3)
        assert start["branch"].startswith("from-"), start
        client = run.wait_for_step(start["step"] + 1)
        now = {name: setting["value"] for name, setting in client.ask("get", names=["optim.lr_scale", "train.clip_norm", "optim.weight_decay", "log.every"]).items()}
        assert now == {"optim.lr_scale": 0.125, "train.clip_norm": 3, "optim.weight_decay": 0.4, "log.every": 3}, now


def test_the_warning_says_what_the_load_does():
    """Exactly the settings that differ afterwards, once: also where a command line, an order and an earlier load had a say."""
    with Run([*SMALL, "train.steps=100000", "log.every=7", "ckpt.every=0"]) as run:
        client = run.wait_for_step(20)

        def values():
            return {name: one["value"] for name, one in client.ask("get").items()}

        def told_by(arguments, count):
            nonlocal client
            before = values()
            load(run, arguments)
            start = second_start(run, count)
            client = run.wait_for_step(start["step"] + 1)
            after = values()
            said = [event["data"]["text"] for event in run.lines("events.jsonl") if event["data"].get("kind") == "load"][-1]
            told = dict(part.split(" ", 1) for part in said.split(": ", 1)[1].split(", ")) if ": " in said else {}
            differ = {name for name in after if before[name] != after[name] and name != "optim.lr"}
            assert set(told) == differ, (said, {name: (before[name], after[name]) for name in differ})
            assert run.output().count(said) == 1, run.output()
            return told

        client.ask("call", action="ckpt.save", arguments={"tag": "first"}, wait=True)
        client.ask("set", changes={"log.every": 10, "optim.lr_scale": 0.5})
        client.ask("call", action="ckpt.save", arguments={"tag": "second"}, wait=True)
        client.ask("set", changes={"optim.weight_decay": 0.3})
        told = told_by('ref = "second", set = { train = { clip_norm = 3 } }', 2)
        assert set(told) == {"optim.weight_decay", "train.clip_norm"}, told  # log.every stays at 10: an order's, later than the command line
        told = told_by('ref = "first"', 3)
        assert set(told) == {"log.every", "optim.lr_scale", "train.clip_norm"}, told


def test_a_crash_of_the_branch_goes_on_in_the_branch():
    with Run([*SMALL, "train.steps=100000", "ckpt.every=150", "comm.on_loss=stop"], options=["--restarts", "1"]) as run:
        run.wait_for_step(310).close()
        load(run, "ref = 160, set = { optim = { lr_scale = 0.5 }, ckpt = { every = 0 } }")  # nor is there a newer one in the branch
        second_start(run)
        client = run.wait_for_step(155)
        os.kill(run.pids()[1], signal.SIGKILL)
        start = second_start(run, 3)
        assert start["resumed"].endswith("from-150/step-00000150"), start
        assert (start["branch"], start["loaded"]) == ("from-150", False), start
        assert value_of(run, "optim.lr_scale") == 0.5
        assert run.exec("run.stop()").returncode == 0
        assert run.finish() == 0, run.output()
        assert run.result()["checkpoint"].endswith(f"from-150/step-{run.result()['step']:08d}"), run.result()


def test_what_led_to_a_load_doesnt_lead_there_again():
    with Run([*SMALL, "train.steps=400", PAUSE], env={"FOOTPLATE_FAULT": not_finite_at(10)}) as run:
        client = held_at(run, 10)
        # Agreed before the checkpoint of step 100, which has them ahead; only what was set comes again.
        client.ask("set", changes={"log.every": 3}, at_step=140)
        client.ask("call", action="run.pause", at_step=145)
        done = run.exec("at(240, function() ckpt.load(100) end) at(130, function() optim.lr_scale = 0.5 end)")
        assert done.returncode == 0, done.stderr
        resume(client)
        wait_for_pause(client, 145)
        resume(client)
        start = second_start(run)
        assert (start["step"], start["loaded"]) == (100, True), start
        assert run.finish() == 0, run.output()
        assert len(run.lines("starts.jsonl")) == 2 and run.result()["step"] == 400, run.lines("starts.jsonl")
        assert "not called again: run.pause of order" in run.output(), run.output()
        assert "run is paused" not in run.output().split("in branch from-100")[-1], run.output()
        journal = (run.directory / "journal.lua").read_text().split("start 2")[-1]
        assert "log.every" in journal and "lr_scale" in journal, journal


def test_what_cant_be_loaded_changes_nothing():
    with Run([*SMALL, "train.steps=100000", "ckpt.every=0", "ckpt.keep=100000", PAUSE], env={"FOOTPLATE_FAULT": not_finite_at(3)}) as run:
        client = held_at(run, 3)
        early = run.exec("ckpt.load()")
        assert early.returncode != 0 and "has no checkpoint yet" in early.stderr, early
        client.ask("set", changes={"ckpt.every": 50})
        resume(client)
        wait_until(lambda: (run.directory / "checkpoints" / "main" / "step-00000100" / "manifest.json").exists(), 60, "a checkpoint")
        client.ask("call", action="ckpt.save", arguments={"tag": "before-spike"}, wait=True)
        for arguments, words in (
                ('ref = "before-spke"', "did you mean before-spike?"), ("ref = 99999999", "hasn't come yet"), ('ref = "-99999999"', "or before"),
                ("ref = 1.5", "whole number"), ('ref = "best"', "best evaluation"), ('ref = "/tmp/x/y"', "no checkpoint of this run"),
                ('branch = "main"', 'there is a branch "main" already'), ('branch = "a/b"', "can't be a folder's name"),
                ("set = { model = { layers = 3 } }", "fixed"), ("set = { optim = { lr_scal = 3 } }", "optim.lr_scale"),
                ("set = { optim = { lr_scale = -3 } }", "lr_scale"), ("set = 3", "table of settings"), ('settings = "kept"', "restore"),
                ('set = { train = { micro_batch = 1000 } }', "micro-batch")):
            refused = run.exec(f"ckpt.load{{ {arguments} }}")
            assert refused.returncode != 0 and words in refused.stderr, (arguments, refused)
        # Only the bytes themselves tell that it is damaged. Of step 100 there may be another one: before-spike.
        tensors = run.directory / "checkpoints" / "main" / "step-00000050" / "rank-0.safetensors"
        content = bytearray(tensors.read_bytes())
        content[-1] ^= 255
        tensors.write_bytes(content)
        damaged = run.exec("return ckpt.load{ ref = 50 }:wait()")
        assert damaged.returncode != 0 and "the run goes on as it is" in damaged.stderr, damaged
        step = client.ask("status")["step"]
        at_step(client, step + 20)
        assert len(run.lines("starts.jsonl")) == 1 and not (run.directory / "checkpoints" / "from-50").exists()


def test_data_can_be_left_out():
    """Without a learning rate a step's loss is a function of its data alone."""
    still = ["model.layers=1", "model.width=32", "model.heads=2", "model.context=32", "train.batch_size=7", "run.threads=1", "eval.every=0",
             "sched.warmup_steps=0", "optim.lr_scale=0", "log.every=1", "ckpt.every=10", "ckpt.keep=100000", "train.steps=100000"]
    with Run([*still, PAUSE], config="kjv", env={"FOOTPLATE_FAULT": not_finite_at(5)}) as run:
        client = held_at(run, 5)
        further, back = (client.ask("status")["step"] + more for more in (150, 200))
        for step, offset in ((further, 5 * 7), (back, 0)):
            assert client.ask("set", changes={"data.offset": offset}, at_step=step)["step"] == step
        resume(client)
        at_step(client, back + 10)
        load(run, "ref = 10, skip = { steps = 4 }")
        assert second_start(run)["step"] == 10
        assert value_of(run, "data.offset") == 4 * 7
        steps = range(1, 6)

        def recorded():
            return {(line["branch"], line["step"]): line["train/loss"] for line in run.lines("metrics.jsonl")}

        # Lines are written beside training: a busy machine has them later than the step.
        wait_until(lambda: ("from-10", 10 + steps[-1]) in recorded(), 60, "the steps of the branch in the record")
        losses = recorded()
        assert len({losses["main", back + i] for i in steps}) == 5
        # What it draws from `back` on it has drawn before, five steps further on.
        assert [losses["main", back + i] for i in steps] == [losses["main", back - 5 + i] for i in steps]
        assert losses["main", further + 1] != losses["main", further - 4]
        assert [losses["from-10", 10 + i] for i in steps] == [losses["main", 14 + i] for i in steps]


def test_what_is_left_out_is_of_the_batches_to_come():
    """Steps are of the size that they have after the load: that of the checkpoint, or what the load sets."""
    for settings, batch_size in (("", 7), (", set = { ['train.batch_size'] = 5 }", 5), (", settings = 'keep'", 14)):
        with Run([*SMALL, "train.batch_size=7", "train.steps=1000000"]) as run:
            run.wait_for_step(1).close()
            assert run.exec("ckpt.save():wait() train.batch_size = 14").returncode == 0
            load(run, "ref = 'latest', skip = { steps = 3 }" + settings)
            second_start(run)
            assert value_of(run, "data.offset") == 3 * batch_size, settings


def test_what_cant_be_left_out_is_refused():
    with Run([*SMALL, "train.steps=1000000"]) as run:
        run.wait_for_step(1).close()
        assert run.exec("data.offset = 1e12").returncode == 0 and run.exec("ckpt.save():wait()").returncode == 0
        refused = run.exec("ckpt.load{ skip = { steps = 1 } }")
        assert refused.returncode == 5 and "data.offset" in refused.stderr and "1e+12" in refused.stderr, refused
        refused = run.exec("ckpt.load{ ref = 'latest', skip = { steps = 0.5 } }")
        assert refused.returncode == 3 and "skip_steps" in refused.stderr, refused


if __name__ == "__main__":
    main([test_back_and_on_in_a_branch, test_settings_restored_kept_and_set, test_the_warning_says_what_the_load_does, test_a_crash_of_the_branch_goes_on_in_the_branch,
          test_what_led_to_a_load_doesnt_lead_there_again, test_data_can_be_left_out, test_what_is_left_out_is_of_the_batches_to_come,
          test_what_cant_be_left_out_is_refused, test_what_cant_be_loaded_changes_nothing])
