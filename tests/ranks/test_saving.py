#!/usr/bin/env python3
"""Checkpoints that are written beside training (ckpt.async). What is written waits as long as the run's folder has a file hold_saves."""

import os
import re
import signal
import subprocess
import threading

from harness import Run, main, wait_until

ENDLESS = ["model.step_ms=5", "ckpt.every=0", "log.every=10", "train.steps=1000000"]
HELD = {"FOOTPLATE_FAULT": "save_hold"}


def hold(run):
    (run.directory / "hold_saves").touch()


def release(run):
    (run.directory / "hold_saves").unlink()


def saves(run):
    return [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "ckpt"]


def first_save(run):
    """What was answered stands in the record a moment later: nobody who is answered waits for its disk."""
    return wait_until(lambda: saves(run), 20, "the save in the record")[0]


def checkpoints(run):
    return sorted(path.parent.name for path in (run.directory / "checkpoints" / "main").glob("step-*/manifest.json"))


class Asked(threading.Thread):
    """footplate exec, while the test goes on."""

    def __init__(self, run, code):
        super().__init__()
        self.run_asked, self.code, self.done = run, code, None
        self.start()

    def run(self):
        self.done = self.run_asked.exec(self.code)

    def answer(self):
        self.join(60)
        return self.done


def saving_step(client, after=0):
    return wait_until(lambda: (step := client.ask("status")["saving_step"]) and step > after and step, 20, "a save beside training")


def test_training_goes_on_while_a_checkpoint_is_written():
    """The call is answered once it is written, also in a pause; until then nothing says that it is there."""
    with Run(ENDLESS, env=HELD) as run:
        client = run.wait_for_step(10)
        hold(run)
        asked = Asked(run, 'local saved = ckpt.save{ tag = "a" }:wait(); print(saved.step, saved.path)')
        step = saving_step(client)
        wait_until(lambda: client.ask("status")["step"] > step + 50, 30, "fifty steps")
        status = client.ask("status")
        assert status["state"] == "running" and status["saving_step"] == step and status["saving_share"] == 0, status
        shown = subprocess.run([run.program, "status", str(run.directory)], capture_output=True, text=True, timeout=60, check=False,
                               env=run.environment).stdout
        assert f" · saving step {step} beside (0 %)" in shown, shown
        assert not saves(run) and not checkpoints(run) and asked.done is None
        client.ask("call", action="run.pause")
        wait_until(lambda: client.ask("status")["state"] == "paused", 20, "the pause")
        release(run)
        done = asked.answer()
        assert done.returncode == 0 and done.stdout.split() == [str(step), first_save(run)["path"]], (done, saves(run))
        assert checkpoints(run) == [f"step-{step:08}-a"], checkpoints(run)
        wait_until(lambda: client.ask("status")["saving_step"] is None, 20, "nothing under way")
        client.close()


def test_what_is_due_meanwhile_is_saved_once():
    with Run([*ENDLESS, "ckpt.every=20", "ckpt.keep=0"], env=HELD) as run:
        client = run.wait_for_step(1)
        hold(run)

        def held():  # not one whose last byte was written before
            status = client.ask("status")
            return status["saving_step"] and status["step"] > status["saving_step"] + 100 and status["saving_step"]

        first = wait_until(held, 30, "a save that is held for a hundred steps")
        written = len(saves(run))
        assert all(save["step"] < first for save in saves(run)), (saves(run), first)
        before = client.ask("status")["step"]
        release(run)
        wait_until(lambda: len(saves(run)) >= written + 3, 30, "three saves")
        steps = [save["step"] for save in saves(run)[written:]]
        # The third may wait for the second in its turn, where that comes just before a multiple of 20.
        assert steps[0] == first and before <= steps[1] < before + 40 and steps[2] <= steps[1] + 40, (steps, before)
        log = (run.directory / "log" / "rank-0.log").read_text()
        until_second = log[:log.index(f"step {steps[1]}: saved")]
        waits = until_second.count("the checkpoint waits until the one before is written")
        assert waits == 1 or (waits == 2 and steps[2] % 20 != 0), log
        client.close()


def test_the_end_waits_for_what_is_written():
    with Run(ENDLESS, env=HELD) as run:
        client = run.wait_for_step(10)
        hold(run)
        client.send("call", action="ckpt.save", arguments={"tag": "a"})
        step = saving_step(client)
        client.close()
        run.process.send_signal(signal.SIGTERM)
        wait_until(lambda: run.record().get("state") in ("ending", "saving"), 20, "the end")
        release(run)
        assert run.finish() == 75, run.output()
        assert [save["step"] for save in saves(run)] == [step, run.result()["step"]], (saves(run), run.result())
        assert run.result()["checkpoint"].endswith(checkpoints(run)[-1]) and len(checkpoints(run)) == 2, (run.result(), checkpoints(run))


def unfinished(run):
    return [path.name for path in (run.directory / "checkpoints" / "main").iterdir() if path.name not in checkpoints(run)]


def test_a_killed_run_goes_on_from_what_was_written():
    with Run(ENDLESS, env=HELD) as run:
        client = run.wait_for_step(10)
        assert run.exec("ckpt.save():wait()").returncode == 0
        first = first_save(run)["step"]
        hold(run)
        client.send("call", action="ckpt.save", arguments={"tag": "b"})
        saving_step(client, after=first)
        client.close()
        wait_until(lambda: unfinished(run), 20, "what is written to have its folder")  # the save has begun a moment before
        for pid in run.pids():
            os.kill(pid, signal.SIGKILL)
        assert run.finish() != 0
        release(run)
        half = unfinished(run)
        assert len(half) == 1 and len(checkpoints(run)) == 1, (half, checkpoints(run))
        with Run(folder=run.folder, command=["run", "--name", "t", "--resume", "auto", "--batch", "--restarts", "0"]) as again:
            client = again.wait_for_step(first + 1)
            log = (run.directory / "log" / "rank-0.log").read_text()
            assert f"going on from step {first} of" in log and f"removed {half[0]}, left by an interrupted save" in log, log
            assert not [path for path in (run.directory / "checkpoints" / "main").iterdir() if path.name == half[0]]
            client.close()


def test_a_rank_0_that_dies_while_it_writes_leaves_the_save_to_the_next():
    with Run(ENDLESS, ranks=3, env=HELD) as run:
        client = run.wait_for_step(10)
        hold(run)
        client.send("call", action="ckpt.save", arguments={"tag": "kept"})
        step = saving_step(client)
        client.close()
        os.kill(run.pids()[0], signal.SIGKILL)
        release(run)
        wait_until(lambda: saves(run), 30, "the save to be made again")
        client = run.wait_for_step(1)
        folders = checkpoints(run)
        assert len(folders) == 1 and re.fullmatch(r"step-\d{8}-kept", folders[0]) and saves(run)[0]["step"] >= step, (folders, saves(run))
        log = (run.directory / "log" / "rank-0.log").read_text()
        assert run.exec('ckpt.save{ tag = "later" }:wait()').returncode == 0, log
        assert len(checkpoints(run)) == 2, checkpoints(run)
        client.close()


def test_without_memory_for_a_copy_training_waits():
    with Run(ENDLESS, env={"FOOTPLATE_FAULT": "save_no_copy"}) as run:
        run.wait_for_step(10).close()
        assert run.exec("ckpt.save():wait()").returncode == 0
        log = (run.directory / "log" / "rank-0.log").read_text()
        step = first_save(run)["step"]
        assert f"training waits for the checkpoint of step {step}: a copy of the state takes 1 MiB, and only 0 MiB of memory are left" in log, log


def test_without_async_training_waits():
    """Live: what is under way is written, and the next one isn't beside."""
    with Run(ENDLESS, env=HELD) as run:
        client = run.wait_for_step(10)
        assert run.exec("ckpt.async = false").returncode == 0
        hold(run)
        asked = Asked(run, "ckpt.save():wait()")
        wait_until(lambda: client.ask("status")["state"] == "saving", 20, "the save")
        status = client.ask("status")
        assert status["saving_step"] is None and client.ask("status")["step"] == status["step"], status
        release(run)
        assert asked.answer().returncode == 0 and first_save(run)["step"] == status["step"], (asked.done, saves(run))
        client.close()


def parts_of(checkpoint):
    return sorted(path.name for path in checkpoint.glob("*.safetensors"))


def test_several_ranks_write_a_part_each():
    """Also in a pause, and without async; any number of ranks goes on from it."""
    with Run([*ENDLESS, "ckpt.parts=2"], ranks=3, env=HELD) as run:
        client = run.wait_for_step(10)
        hold(run)
        asked = Asked(run, 'ckpt.save{ tag = "beside" }:wait()')
        step = saving_step(client)
        wait_until(lambda: client.ask("status")["step"] > step + 20, 30, "twenty steps")
        assert not checkpoints(run), checkpoints(run)
        client.ask("call", action="run.pause")
        wait_until(lambda: client.ask("status")["state"] == "paused", 20, "the pause")
        release(run)
        assert asked.answer().returncode == 0, asked.done
        assert run.exec('ckpt.async = false; run.resume(); ckpt.save{ tag = "waits" }:wait()').returncode == 0
        assert run.exec('ckpt.parts = 1; ckpt.save{ tag = "alone" }:wait()').returncode == 0
        client.close()
        branch = run.directory / "checkpoints" / "main"
        found = {path.name[14:]: parts_of(path) for path in branch.iterdir()}
        two = ["rank-0.safetensors", "rank-1.safetensors"]
        assert found == {"beside": two, "waits": two, "alone": ["rank-0.safetensors"]}, found
        run.process.send_signal(signal.SIGTERM)
        assert run.finish() == 75, run.output()
        for ranks in ("1", "4"):
            with Run(folder=run.folder, name=f"of-{ranks}", ranks=int(ranks), command=[
                    "run", "synthetic", "--name", f"of-{ranks}", "--ranks", ranks, "--resume", str(branch / f"step-{step:08}-beside"), "--batch",
                    f"train.steps={step + 3}", "ckpt.parts=3"]) as again:
                assert again.finish() == 0, again.output()
                assert f"going on from step {step} of" in (again.directory / "log" / "rank-0.log").read_text()


def test_a_part_that_cant_be_written_is_told_and_training_goes_on():
    with Run([*ENDLESS, "ckpt.parts=2"], env={"FOOTPLATE_FAULT": "save_fail:rank=1"}) as run:
        client = run.wait_for_step(10)
        for settings in ("", "ckpt.async = false; "):
            failed = run.exec(settings + "ckpt.save():wait()")
            assert failed.returncode != 0 and "rank 1: can't save a checkpoint in" in failed.stderr, failed
            assert "No space left on device" in failed.stderr and not list((run.directory / "checkpoints" / "main").iterdir()), failed
        assert run.exec("ckpt.parts = 1; ckpt.save():wait()").returncode == 0
        assert len(checkpoints(run)) == 1
        client.close()


def test_errors_that_pass_cost_no_checkpoint():
    """Of the first five files that are written none has room: a save has four tries, and is made again before the next is due."""
    with Run(["model.step_ms=10", "ckpt.every=700", "ckpt.retry_s=0.2", "log.every=10", "train.steps=1000000"],
             env={"FOOTPLATE_FAULT": "save_fail:times=5"}) as run:
        run.wait_for_step(10).close()
        saved = wait_until(lambda: saves(run), 120, "a checkpoint")[0]["step"]
        assert 700 < saved < 1400 and checkpoints(run) == [f"step-{saved:08}"], (saved, checkpoints(run))
        log = (run.directory / "log" / "rank-0.log").read_text()
        pauses = re.findall(r"No space left on device.*It is tried again in (\S+) s", log)
        assert pauses == ["0.25", "1", "4", "0.25"], log
        warned = [event["data"]["text"] for event in run.lines("events.jsonl") if event["topic"] == "warn"]
        assert len(warned) == 1 and warned[0].startswith("step 700: no checkpoint: can't save"), warned


def test_parts_of_a_rank_that_dies_are_saved_again():
    with Run([*ENDLESS, "ckpt.parts=3"], ranks=3, env=HELD) as run:
        client = run.wait_for_step(10)
        hold(run)
        client.send("call", action="ckpt.save", arguments={"tag": "kept"})
        step = saving_step(client)
        client.close()
        os.kill(run.pids()[1], signal.SIGKILL)
        release(run)
        wait_until(lambda: saves(run), 30, "the save to be made again")
        folders = [path.name for path in (run.directory / "checkpoints" / "main").iterdir()]
        assert len(folders) == 1 and re.fullmatch(r"step-\d{8}-kept", folders[0]) and saves(run)[0]["step"] >= step, (folders, saves(run))
        assert run.exec('ckpt.save{ tag = "later" }:wait()').returncode == 0


def test_a_load_finds_what_is_left_once_the_save_under_way_is_there():
    """ckpt.keep removes the checkpoint that ckpt.load asks for, as the save beside training ends: refused, and the run goes on."""
    with Run([*ENDLESS, "ckpt.keep=1"], env=HELD) as run:
        client = run.wait_for_step(1)
        first = int(run.exec("return ckpt.save():wait().step").stdout)
        hold(run)
        saved = Asked(run, "ckpt.save():wait()")
        saving_step(client, after=first)
        asked = Asked(run, f"ckpt.load{{ ref = {first} }}:wait()")
        wait_until(lambda: client.ask("status")["ranks"][0]["phase"] == "saving", 20, "the load to wait")
        release(run)
        done = asked.answer()
        assert done.returncode != 0 and f"there is no checkpoint of step {first}" in done.stderr, done
        assert saved.answer().returncode == 0, saved.answer()
        step = client.ask("status")["step"]
        wait_until(lambda: client.ask("status")["step"] > step, 20, "another step")
        assert run.end(client) == 0, run.output()


if __name__ == "__main__":
    main([test_training_goes_on_while_a_checkpoint_is_written, test_what_is_due_meanwhile_is_saved_once,
          test_the_end_waits_for_what_is_written, test_a_killed_run_goes_on_from_what_was_written,
          test_a_rank_0_that_dies_while_it_writes_leaves_the_save_to_the_next, test_without_memory_for_a_copy_training_waits,
          test_without_async_training_waits, test_several_ranks_write_a_part_each,
          test_a_part_that_cant_be_written_is_told_and_training_goes_on, test_errors_that_pass_cost_no_checkpoint, test_parts_of_a_rank_that_dies_are_saved_again,
          test_a_load_finds_what_is_left_once_the_save_under_way_is_there])
