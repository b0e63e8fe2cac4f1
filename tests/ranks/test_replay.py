#!/usr/bin/env python3
"""The journal brings a run to the same parameters again: by `footplate replay`, and after a crash."""

import os
import random
import re
import shutil
import signal
import tempfile
import time

from harness import FULL, Refused, Run, main, wait_until

TEXT = ["model.layers=2", "model.width=48", "model.heads=2", "model.context=64", "train.batch_size=8", "eval.batches=2", "eval.batch_size=4",
        "eval.at_end=false", "eval.every=100", "sched.warmup_steps=5", "log.every=10", "ckpt.every=90", "run.threads=1", "guard.check_every=50"]

# Name, a random value: all of them move the parameters, or the moments at which something is done.
SETTINGS = [
    ("optim.lr_scale", lambda r: round(r.uniform(0.1, 2), 6)),
    ("sched.base_lr", lambda r: round(r.uniform(1e-4, 1e-2), 8)),
    ("train.clip_norm", lambda r: round(r.uniform(0, 3), 3)),
    ("optim.weight_decay", lambda r: round(r.uniform(0, 0.3), 4)),
    ("optim.betas", lambda r: [round(r.uniform(0.8, 0.95), 3), round(r.uniform(0.9, 0.999), 4)]),
    ("train.steps", lambda r: r.randint(90_000, 110_000)),  # so far that no machine gets there before the last order
    ("log.every", lambda r: r.randint(1, 60)),
    ("ckpt.every", lambda r: r.choice([40, 70, 90])),
]
ACTIONS = [("eval.now", {"batches": 1}), ("ckpt.save", {"tag": "mid"}), ("run.pause", {"reason": "a look"})]


def random_order(client, rng, run):
    """One order of the kinds that people give; a paused run is let go on, with a change made in between."""
    kind = rng.random()
    changes = {name: value(rng) for name, value in rng.sample(SETTINGS, rng.randint(1, 3))}
    if kind < 0.2:
        action, arguments = rng.choice(ACTIONS)
        client.ask("call", action=action, arguments=arguments)
        if action == "run.pause":
            client.ask("set", changes=changes)
            client.ask("call", action="run.resume")
    elif kind < 0.3:
        client.ask("set", changes=changes, at_step=client.ask("status")["step"] + rng.randint(5, 40))
    elif kind < 0.4:
        code = "".join(f"{name} = {'{ %s, %s }' % tuple(value) if isinstance(value, list) else value}\n" for name, value in changes.items())
        assert run.exec(code).returncode == 0
    else:
        client.ask("set", changes=changes)


def give_orders(client, run, count, between_s, seed):
    """`count` orders at random moments, fewer where the run ends before."""
    rng = random.Random(seed)
    for _ in range(count):
        time.sleep(rng.uniform(0, 2 * between_s))
        try:
            random_order(client, rng, run)
        except ConnectionError:
            return
        except Refused as error:
            if "ending" in error.message or "ended" in error.message or "past the end" in error.message:
                continue
            raise


def replayed(run, *options, name="again", at_most_s=300):
    """`footplate replay` of that run, with its faults and devices, to its end: the result, and what it said."""
    same = {variable: run.environment.get(variable) for variable in ("FOOTPLATE_FAULT", "CUDA_VISIBLE_DEVICES")}
    with Run(folder=run.folder, name=name, command=["replay", str(run.directory), "--name", name, *options], env=same) as again:
        code = again.finish(at_most_s)
        assert code == 0, f"{code}\n{again.output()}"
        return again.result(), again.output()


def check_equal(run, result, said):
    original = run.result()
    assert result["state_hash"] == original["state_hash"] and result["step"] == original["step"], (result, original)
    assert "is bit-equal to" in said, said


def test_replay_of_random_orders():
    for config, assignments in (("kjv", TEXT), ("synthetic", ["model.step_ms=12"])) if FULL else (("kjv", TEXT),):
        folder = tempfile.mkdtemp(prefix="fp-replay-")
        with Run([*assignments, "train.steps=100000"], config=config, folder=folder) as run:
            client = run.wait_for_step(1)
            give_orders(client, run, 30, 0.06, seed=7)
            wait_until(lambda: all(report["state"] != "committed" for report in client.ask("orders")), 60, "orders of later steps")
            client.close()
            run.end_after(10)
            assert run.finish(300) == 0, run.output()
        entries = (run.directory / "journal.lua").read_text().count("\nat(")
        assert entries >= 20, f"only {entries} entries"
        check_equal(run, *replayed(run))
        print(f"      {config}: {entries} entries, state {run.result()['state_hash']}", flush=True)
        shutil.rmtree(folder)


def test_replay_of_a_run_with_several_starts():
    """Stopped by a signal, gone on with another setting on the command line, then stopped by order before its end."""
    folder = tempfile.mkdtemp(prefix="fp-replay-")
    assignments = ["model.step_ms=5", "train.steps=100000"]
    with Run(assignments, folder=folder) as run:
        client = run.wait_for_step(20)
        client.ask("set", changes={"optim.lr_scale": 0.5})
        run.process.send_signal(signal.SIGTERM)
        assert run.finish(60) == 75, run.output()
    with Run([*assignments, "sched.base_lr=5e-3"], folder=folder, options=["--resume", "auto"]) as run:
        client = run.wait_for_step(run.result()["step"] + 20 if run.result() else 60)
        client.ask("set", changes={"optim.lr_scale": 0.7, "run.time_limit": 3600})
        step = client.ask("status")["step"]
        wait_until(lambda: client.ask("status")["step"] > step + 10, 60, "ten more steps")
        client.ask("call", action="run.stop", arguments={"resumable": True, "reason": "enough"})
        assert run.finish(60) == 75, run.output()
    check_equal(run, *replayed(run))
    shutil.rmtree(folder)


def test_a_command_line_that_is_repeated():
    """A value that --resume auto is given once more leaves what was changed live since; another one wins over it, also where
    the start that had it first left no checkpoint."""
    folder = tempfile.mkdtemp(prefix="fp-repeat-")

    def start(base_lr, expected, live=None, crashes=False):
        words = ["model.step_ms=5", "train.steps=100000", "ckpt.every=100000", "comm.on_loss=stop", f"sched.base_lr={base_lr}"]
        with Run(words, folder=folder, options=["--resume", "auto"]) as run:
            client = run.wait_for_step((run.result() or {"step": 0})["step"] + 10)
            assert run.exec("return sched.base_lr").stdout.strip() == str(expected), run.output()
            if live:
                assert client.ask("set", changes={"sched.base_lr": live})["state"] == "applied"
            if crashes:
                crash(run)
            else:
                run.process.send_signal(signal.SIGTERM)
            assert run.finish(60) == 75, run.output()
            return run

    start(0.005, 0.005, live=0.001)
    start(0.005, 0.001)
    start(0.002, 0.002, crashes=True)
    start(0.002, 0.002, live=0.004)
    run = start(0.002, 0.004)
    assert run.read_json("config-5.json")["sched.base_lr"] == {"value": 0.002, "source": "command line of start 3"}
    check_equal(run, *replayed(run))
    shutil.rmtree(folder)


def test_a_replay_pauses_nowhere():
    """What the configuration and an order said about steps that aren't finite; each is skipped again, nobody has to resume."""
    fault = {"FOOTPLATE_FAULT": "nan_grad:rank=1:step=60,nan_grad:rank=0:step=300"}
    folder = tempfile.mkdtemp(prefix="fp-replay-")
    with Run(["model.step_ms=2", "train.steps=400", "guard.nonfinite=pause"], folder=folder, env=fault) as run:
        client = run.wait_for_step(61)
        for change in ({"guard.nonfinite": "stop", "optim.lr_scale": 0.5}, {"guard.nonfinite": "pause"}):
            assert client.ask("set", changes=change)["state"] == "applied"
        assert client.ask("call", action="run.resume")["state"] == "applied"
        wait_until(lambda: client.ask("status")["state"] == "paused" and client.ask("status")["step"] == 301, 60, "the second pause")
        assert client.ask("call", action="run.resume")["state"] == "applied"
        assert run.finish(60) == 0, run.output()
    with Run(folder=folder, name="again", command=["replay", str(run.directory), "--name", "again"], env=fault) as again:
        assert again.finish(60) == 0, again.output()
        check_equal(run, again.result(), again.output())
    shutil.rmtree(folder)


def test_replay_of_nothing():
    with Run(["train.steps=10"]) as run:
        assert run.finish(60) == 0
        check_equal(run, *replayed(run))


def test_orders_for_later_steps_are_kept_in_checkpoints():
    """Agreed before a stop, applied after the resume, on all ranks at its step; a withdrawn one doesn't come back."""
    folder = tempfile.mkdtemp(prefix="fp-kept-")
    with Run(["model.step_ms=2", "train.steps=100000"], folder=folder) as run:
        client = run.wait_for_step(10)
        target = client.ask("status")["step"] + 2500
        kept = client.ask("set", changes={"optim.lr_scale": 0.25, "log.every": 40}, at_step=target)["id"]
        withdrawn = client.ask("set", changes={"optim.lr_scale": 0.9}, at_step=target + 5)["id"]
        client.ask("cancel", order=withdrawn)
        wait_until(lambda: all(report["id"] != withdrawn or report["state"] == "withdrawn" for report in client.ask("orders")), 20,
                   "the withdrawal")
        run.process.send_signal(signal.SIGTERM)
        assert run.finish(60) == 75, run.output()
        assert run.result()["step"] < target, "too slow for this test"
    # As the hint says it, without -n: on as many ranks as before.
    resume = ["run", "--batch", "--name", "t", "--resume", "auto", f"train.steps={target + 20}"]
    with Run(folder=folder, command=resume) as run:
        client = run.wait_for_step(run.result()["step"] + 1 if run.result() else 1)
        assert [report["id"] for report in client.ask("orders") if report["state"] == "committed"] == [kept]
        assert client.ask("set", changes={"train.clip_norm": 0.5})["id"] > withdrawn
        assert run.finish(120) == 0, run.output()
        said = run.output()
        assert f"scheduled again: order {kept} " in said and f"scheduled again: order {withdrawn} " not in said, said
        for rank in range(2):
            again = run.applied_again(rank)
            assert (kept, target) in again and [order for order, _ in again].count(kept) == 1, again
            assert all(order != withdrawn for order, _ in again), again
        assert f"at({target}, " in (run.directory / "journal.lua").read_text()
    shutil.rmtree(folder)


def crash(run):
    os.kill(run.pids()[1], signal.SIGKILL)


def test_orders_are_scheduled_again_after_a_crash():
    """A change made past the newest checkpoint counts after the crash too, at its step; the parameters are those of
    a run in which nothing crashed."""
    folder = tempfile.mkdtemp(prefix="fp-again-")
    with Run(["model.step_ms=5", "train.steps=900", "ckpt.every=300", "comm.on_loss=stop"], folder=folder, options=["--restarts", "2"]) as run:
        client = run.wait_for_step(10)
        kept = client.ask("set", changes={"optim.lr_scale": 0.5}, timeout_s=30)["applied"]["step"]  # in the checkpoint
        wait_until(lambda: (run.directory / "checkpoints/main/step-00000300/manifest.json").exists(), 60, "a checkpoint")
        first = client.ask("set", changes={"optim.lr_scale": 0.25})["applied"]
        client.ask("set", changes={"log.every": 50}, at_step=first["step"] + 15)
        second = client.ask("set", changes={"optim.weight_decay": 0.2, "log.every": 20})["applied"]
        wait_until(lambda: client.ask("status")["step"] > first["step"] + 20, 60, "both to apply")
        assert not (run.directory / "checkpoints/main/step-00000600/manifest.json").exists(), "too slow for this test"
        crash(run)
        assert run.finish(120) == 0, run.output()
        said = run.output()
        assert re.search(rf"scheduled again: order {first['id']} .*at step {first['step']}: optim.lr_scale = 0.25", said), said
        assert f"at step {kept}:" not in said, "the checkpoint has that one"
        applied = run.applied_again(0)
        assert applied == run.applied_again(1), "ranks differ"
        for order in (first, second):
            assert applied.count((order["id"], order["step"])) == 2, (order, applied)
    check_equal(run, *replayed(run))
    shutil.rmtree(folder)


def test_the_order_that_crashes_it_twice_is_left_out():
    """step_throw stands for an order that no run survives: it comes at the order's step, in start 1 and 2."""
    folder = tempfile.mkdtemp(prefix="fp-again-")
    with Run(["model.step_ms=5", "train.steps=400", "ckpt.every=50", "comm.on_loss=stop"], folder=folder, options=["--restarts", "3"]) as run:
        client = run.wait_for_step(60)
        good = client.ask("set", changes={"optim.lr_scale": 0.5})["applied"]
        bad = client.ask("set", changes={"optim.weight_decay": 0.3})["applied"]
        crash(run)
        again = lambda: (run.directory / "config-2.json").exists() and run.applied_again(1).count((bad["id"], bad["step"])) == 2
        wait_until(again, 60, "the order to be applied again")
        crash(run)
        assert run.finish(120) == 0, run.output()
        said = run.output()
        assert re.search(rf"left out, as the run failed twice after it: order {bad['id']} .*optim.weight_decay = 0.3", said), said
        assert run.applied_again(0).count((bad["id"], bad["step"])) == 2, "a third time"
        assert run.applied_again(0).count((good["id"], good["step"])) == 3, run.applied_again(0)
        assert run.result()["restarts"] == 2
    check_equal(run, *replayed(run))
    shutil.rmtree(folder)


def test_a_run_is_started_again_by_order():
    """run.restart: nothing but the process moves, and --restarts counts it as none."""
    folder = tempfile.mkdtemp(prefix="fp-again-")
    with Run(["model.step_ms=10", "train.steps=800", "ckpt.every=0"], folder=folder) as run:
        client = run.wait_for_step(20)
        client.ask("set", changes={"optim.lr_scale": 0.5})
        step = client.ask("call", action="run.restart", arguments={"reason": "a new driver"})["applied"]["step"]
        wait_until(lambda: len(run.lines("starts.jsonl")) == 2, 60, "the second start")
        client = run.wait_for_step(step + 1)
        assert client.ask("get", names=["optim.lr_scale"])["optim.lr_scale"]["value"] == 0.5
        assert run.finish(120) == 0, run.output()
        assert f"ended at step {step} to be started again, as ordered" in run.output(), run.output()
        first = run.read_json("result-1.json")
        assert (first["code"], first["reason"], first["note"], first["step"]) == (75, "restart", "a new driver", step), first
        assert first["checkpoint"].endswith(f"step-{step:08}"), first
        assert run.lines("starts.jsonl")[1]["step"] == step and run.result()["restarts"] == 0, run.result()
    check_equal(run, *replayed(run))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main([test_replay_of_random_orders, test_replay_of_a_run_with_several_starts, test_a_command_line_that_is_repeated, test_a_replay_pauses_nowhere,
          test_replay_of_nothing,
          test_orders_for_later_steps_are_kept_in_checkpoints, test_orders_are_scheduled_again_after_a_crash, test_the_order_that_crashes_it_twice_is_left_out,
          test_a_run_is_started_again_by_order])
