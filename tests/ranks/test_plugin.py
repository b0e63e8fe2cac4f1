#!/usr/bin/env python3
"""A task of somebody's own, as a shared library (docs/examples/digits): it trains, is steered, survives, and is refused with its
reason where it can't be used."""

import os
import shutil
import signal

from harness import BIN, Run, main, wait_until
from own_task import OwnTask, evaluations

PLUGIN = BIN.parent / "tasks" / "digits.so"


def Digits():
    return OwnTask("plugin:", PLUGIN)


def test_it_trains_alike_on_any_number_of_ranks_and_goes_on_bit_equal():
    with Digits() as digits:
        losses, hashes = {}, {}
        for name, ranks in (("one", 1), ("two", 2), ("three", 3)):
            with digits.run(name=name, ranks=ranks) as run:
                assert run.finish() == 0, run.output()
                last = evaluations(run)[-1]
                assert last["eval/accuracy"] > 0.9, last
                assert any("train/accuracy" in line for line in run.lines("metrics.jsonl"))
                losses[name], hashes[name] = last["eval/loss"], run.result()["state_hash"]
        assert all(abs(loss - losses["one"]) < 1e-3 for loss in losses.values()), losses

        # Stopped at a checkpoint and gone on with: as if it had never stopped. The path of the library holds from any folder.
        with digits.run("train.steps=240", name="cut") as run:
            client = run.wait_for_step(1)
            client.ask("call", action="run.pause", arguments={}, wait=True)
            client.ask("call", action="run.resume", arguments={}, wait=True)
            wait_until(lambda: (run.directory / "checkpoints" / "main" / "step-00000080").exists(), 60, "a checkpoint")
            run.process.send_signal(signal.SIGTERM)
            assert run.finish() in (0, 75), run.output()
        with Run(folder=digits.folder, name="cut", command=["run", "--name", "cut", "--resume", "auto", "--batch"]) as run:
            assert run.finish() == 0, run.output()
            assert run.result()["state_hash"] == hashes["two"], run.output()


def test_a_rank_that_is_killed_is_gone_on_without():
    with Digits() as digits, digits.run("train.steps=400", "ckpt.every=0", ranks=3) as run:
        client = run.wait_for_step(20)
        os.kill(run.pids()[1], signal.SIGKILL)
        client.close()
        assert run.finish() == 0, run.output()
        assert run.result()["recoveries"] == 1 and evaluations(run)[-1]["eval/accuracy"] > 0.9, run.result()


def test_its_setting_is_steered_like_every_other_one():
    with Digits() as digits:
        with digits.run("train.steps=100000", "eval.every=0") as run:
            run.wait_for_step(5)
            changed = run.exec("task.smoothing = 0.2")
            assert changed.returncode == 0 and "task.smoothing 0 -> 0.2" in changed.stdout + changed.stderr, changed
            assert run.exec("return task.smoothing").stdout.strip() == "0.2"
            refused = run.exec("task.smoothing = 2")
            assert refused.returncode != 0 and "0 to 0.9" in refused.stderr, refused
            assert "did you mean task.smoothing?" in run.exec("task.smoothin = 0.1").stderr
            assert "is fixed" in (fixed := run.exec("task.data = 'x'").stderr) or "fixed" in fixed, fixed
            assert "Labels are smoothed" in run.exec("return help('task.smoothing')").stdout
            assert run.exec("ckpt.save{tag = 'smooth'}:wait()").returncode == 0
            client = run.wait_for_step(1)
            assert client.ask("eval", code="task.smoothing = 0.1") is not None
            client.ask("eval", code="undo()")
            assert run.exec("return task.smoothing").stdout.strip() == "0.2"
            assert "task.smoothing = 0.2" in (run.directory / "journal.lua").read_text()
            run.end_after(60)
            assert run.finish() == 0, run.output()
        shown = digits.footplate("inspect", "t", "smooth")
        assert "task.smoothing" in shown, shown
        assert "bit-equal" in digits.footplate("replay", "t")
        assert "task.smoothing" in digits.footplate("settings", "smooth", "--task", "plugin:digits.so")


def test_what_cannot_be_used_is_refused_with_its_reason():
    with Digits() as digits:
        def refused(task, *words):
            for command in (["check"], ["run", "--batch", "-n", "2"]):
                said = digits.footplate(*command, str(digits.config), f"run.task={task}", code=2)
                for word in words:
                    assert word in said, (word, said)

        def patched(name, old, new):
            content = (digits.folder / "digits.so").read_bytes()
            assert content.count(old) >= 1 and len(old) == len(new), old
            (digits.folder / name).write_bytes(content.replace(old, new))
            return "plugin:" + name

        refused("plugin:nowhere.so", "nowhere.so", "no such file", "footplate_add_task")
        refused("plugin:digits.csv", "no task of footplate's", "FOOTPLATE_TASK")
        refused("digits.so", "run.task can't be 'digits.so'", 'write "plugin:digits.so"')
        refused("txt", "run.task can't be 'txt'", "did you mean 'text'?")
        torch = (digits.folder / "digits.so").read_bytes().split(b"footplate task: api 4, torch ")[1].split(b";")[0]
        other = b"1" + torch[1:]
        refused(patched("old.so", b"api 4, torch " + torch, b"api 4, torch " + other), f"LibTorch {other.decode()}", torch.decode(), "pip install torch==")
        refused(patched("api.so", b"footplate task: api 4", b"footplate task: api 7"), "interface 7", "has 4")
        refused(patched("hidden.so", b"footplate_task\0", b"footplate_tusk\0"), "no symbol footplate_task")
        assert not (digits.folder / "runs").exists() or not any((digits.folder / "runs").iterdir()), "nothing was started"

        # What its constructor throws.
        said = digits.footplate("check", str(digits.config), "task.data=/no/such.csv", code=2)
        assert "/no/such.csv" in said and "can't be opened" in said, said
        said = digits.footplate("run", str(digits.config), "task.data=/no/such.csv", "--batch", "-n", "2", code=2)
        assert "/no/such.csv" in said, said
        # Settings of its own.
        assert "did you mean task.smoothing?" in digits.footplate("check", str(digits.config), "task.smothing=0.1", code=2)
        assert "0 to 0.9" in digits.footplate("check", str(digits.config), "task.smoothing=7", code=2)
        assert "plugin:PATH" in digits.footplate("check", "task.smoothing=0.1", code=2)


if __name__ == "__main__":
    main([test_it_trains_alike_on_any_number_of_ranks_and_goes_on_bit_equal, test_a_rank_that_is_killed_is_gone_on_without,
          test_its_setting_is_steered_like_every_other_one, test_what_cannot_be_used_is_refused_with_its_reason])
