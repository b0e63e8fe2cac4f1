#!/usr/bin/env python3
"""What a task of somebody's own does wrong (trouble.cpp) is said, with its place: by check, at the start, in steps and evaluations."""

import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import BIN, PAUSE, Run, main, surroundings, wait_for_pause, wait_until

TASKS = BIN.parent / "tasks"
TASK = f"run.task=plugin:{TASKS / 'trouble.so'}"
SMALL = [TASK, "train.batch_size=4", "run.threads=1", "train.steps=20", "eval.every=0", "ckpt.every=0", "log.every=1"]


def footplate(*words, code):
    with tempfile.TemporaryDirectory(prefix="fp-") as folder:
        open(f"{folder}/empty.lua", "w", encoding="ascii").close()
        done = subprocess.run([str(BIN / "footplate"), *words], cwd=folder, env=surroundings(folder), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, (words, done)
        return done.stdout, done.stderr


def trouble(*assignments, ranks=1, **more):
    return Run([*SMALL, *assignments], ranks=ranks, **more)


def test_check_says_what_became_of_the_task():
    def check(where, code, *words):
        said, error = footplate("check", "empty.lua", *SMALL, f"task.where={where}", "--timeout", "10" if where == "hang" else "60", code=code)
        assert ("good" in said) == (code == 0) and "footplate-check" not in error + said, (said, error)
        for word in words:
            assert word in error, (word, error)
        assert "footplate: footplate: " not in error, error

    check("nowhere", 0)
    check("crash", 1, "run.task", "trouble.so", "SIGSEGV ended the process in its constructor")
    check("exit", 1, "run.task", "the exit code 0 in its constructor", "throws")
    check("hang", 6, "run.task", "no end within 10 s", "--timeout")
    check("load", 2, "run.task", "a sample can't be loaded: no such sample")
    check("held out", 2, "no such sample")


def test_what_it_declares_is_listed_and_hinted_at():
    said, _ = footplate("settings", "task.", "--task", TASK.removeprefix("run.task="), code=0)
    assert "at least 0, usually at least 4" in said and re.search(r"task\.nothing +times = 1, where \(string\) +operate +Does nothing", said), said
    for alias in ("task.broken_from", "broken_from"):
        _, error = footplate("check", "empty.lua", TASK, f"{alias}=3", code=2)
        assert f"unknown setting '{alias}'; it is called task.nan_from" in error, error
    with trouble("train.steps=100000000", "log.every=1000") as run:
        run.wait_for_step(1)
        for alias in ("task.broken_from", "broken_from"):
            assert "it is called task.nan_from" in (said := run.exec(f"{alias} = 3")).stderr, said


def test_anomaly_names_the_operation():
    """The run pauses at a step that isn't finite; debug.anomaly, switched on there, says at the next one where it comes from."""
    with trouble("task.nan_from=24", PAUSE, ranks=2) as run:
        wait_for_pause(run.wait_for_step(1), 7)
        assert run.exec("debug.anomaly = true; run.resume()").returncode == 0
        assert run.finish() == 1, run.output()
        assert re.match(r"step 7 failed: ranks 0, 1: Function 'MulBackward0' returned nan values in its \dth output\.; parameters are as step 7",
                        run.result()["reason"]), run.result()


def test_what_only_skips_steps_is_not_started_again():
    """Samples 24 and on, step 6 and on, have a loss that is NaN; and all of them."""
    for first, restarts, step in ((24, 1, 10), (0, 0, 2)):
        with trouble(f"task.nan_from={first}", restarts_by_default=True) as run:
            assert run.finish() == 1, run.output()
            result = run.result()
            assert (result["restarts"], result["step"], result["skipped"]) == (restarts, step, 2), (result, run.output())
            assert "the loss isn't finite (nan)" in result["reason"] and "gradients" not in run.output(), run.output()
            assert "was finite: it is not started again; --restarts K" in run.output(), run.output()
    with trouble("task.nan_from=0", options=["--restarts", "1"]) as run:
        assert run.finish() == 1 and run.result()["restarts"] == 1, run.output()  # what is asked for counts


def test_ranks_that_begin_differently_are_refused():
    with trouble("task.where=seed", ranks=3) as run:
        assert run.finish() == 2, run.output()
        reason = run.result()["reason"]
        assert "rank 0: ranks 1, 2: model/weight. " in reason and "host.seed()" in reason, reason
        assert run.result()["step"] == 0 and run.output().count("different parameters") == 1, run.output()


def test_what_an_edited_task_has_lost_is_left_out_with_a_warning():
    """Between two starts task.nan_from is renamed, and the action task.nothing removed."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-"))

    def use(version):
        shutil.copy(TASKS / f"{version}.so", folder / "new.so")
        (folder / "new.so").rename(folder / "task.so")  # a run may have the old one mapped

    def run(name, *words):
        return Run([*SMALL, f"run.task=plugin:{folder}/task.so", "ckpt.every=10", "ckpt.keep=20", *words], ranks=1, name=name, folder=folder)

    def go_on(name, *words):
        return Run(folder=folder, name=name, command=["run", "--name", name, "--resume", "auto", "--batch", *words])

    def resumed(name, steps):
        """The lines of that start that name the setting."""
        before = len((folder / f"{name}.out").read_text())
        with go_on(name, f"train.steps={steps}") as start:
            assert start.finish() == 0, start.output()
            return [line for line in start.output()[before:].splitlines() if "task.nan_from " in line]

    def cli(*words, code):
        done = subprocess.run([str(BIN / "footplate"), *words], cwd=folder, env=surroundings(folder), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, (words, done)
        return done.stdout + done.stderr

    use("trouble")
    with run("default") as start:
        assert start.finish() == 0, start.output()
    with run("set", "task.nan_from=900000000", "train.steps=100000000") as start:
        start.wait_for_step(5)
        assert "nothing" in (said := start.exec("return task.nothing():wait()")).stdout, said
        assert start.exec("task.nan_from = 800000000; optim.lr_scale = 0.5").returncode == 0
        start.end_after(10)
        assert start.finish() == 0, start.output()
        step = start.result()["step"]

    use("trouble_edited")
    said = resumed("default", 25)
    assert len(said) == 1 and "task.nan_from is left out" in said[0] and "stood at its default, 1000000000" in said[0], said
    said = resumed("set", step + 5)
    assert len(said) == 1 and "It was 800000000 (order" in said[0] and "task.nan_begins=800000000" in said[0], said
    # Back to a checkpoint of before, by hand.
    with go_on("default", "train.steps=100000000") as start:
        start.wait_for_step(26)
        assert (loaded := start.exec("ckpt.load{ ref = 20 }")).returncode == 0, loaded
        wait_until(lambda: len(start.lines("starts.jsonl")) == 4, 60, "the start from the checkpoint")
        start.wait_for_step(22)
        start.end_after(5)
        assert start.finish() == 0, start.output()
    # A replay of what was told to the task would be another run. What stood at its default may be as it was, and is.
    refused = cli("replay", "set", code=2)
    for words in ("task.nan_from was 900000000 (command line)", "had task.nan_from = 800000000 at step", "had task.nothing", "give the task"):
        assert words in refused, (words, refused)
    with run("back") as start:
        assert start.finish() == 0, start.output()
    use("trouble")
    replayed = cli("replay", "back", code=0)
    assert "warning: task.nan_begins is left out" in replayed and "bit-equal" in replayed, replayed
    # Of footplate's own names none may be missing.
    config = folder / "runs" / "back" / "config-1.json"
    config.write_text(config.read_text().replace('"log.every"', '"log.evry"'))
    assert "did you mean log.every?" in cli("run", "--name", "back", "--resume", "auto", "--batch", code=2)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main([test_anomaly_names_the_operation, test_check_says_what_became_of_the_task, test_what_it_declares_is_listed_and_hinted_at,
          test_what_only_skips_steps_is_not_started_again, test_ranks_that_begin_differently_are_refused, test_what_an_edited_task_has_lost_is_left_out_with_a_warning])
