#!/usr/bin/env python3
"""ranks.stacks() says where each rank is while one of them hangs, and asking changes nothing."""

import json
import os
import signal
import time

from harness import FULL, Refused, Run, main, wait_until

SMALL = ["model.layers=2", "model.width=32", "model.heads=2", "model.context=32", "train.batch_size=7", "eval.every=0",
         "eval.at_end=false", "sched.warmup_steps=5", "log.every=5", "ckpt.every=0", "run.threads=1"]
ASKED = 50 if FULL else 8


def small_run(*assignments, fault=""):
    return Run([*SMALL, *assignments], ranks=2, config="kjv", env={"FOOTPLATE_FAULT": fault} if fault else {})


def undisturbed(*assignments):
    with small_run(*assignments) as run:
        assert run.finish(300) == 0, run.output()
        return run.result()["state_hash"]


def frames_of(report, rank, thread):
    """The frames of that thread, innermost first; None where the rank hasn't answered."""
    for one in report["ranks"]:
        if one["rank"] == rank and "silent_s" not in one:
            return next(entry["frames"] for entry in one["threads"] if entry["name"] == thread)
    return None


def has(frames, part):
    return frames is not None and any(part in frame for frame in frames)


def test_a_hanging_rank_is_seen_where_it_hangs():
    """Rank 1 sleeps before the reductions of step 20; rank 0 waits for it."""
    steps = "train.steps=40"
    with small_run(steps, fault="reduce_late:rank=1:step=20:ms=6000") as run:
        client = run.wait_for_step(20)

        def hangs():
            report = client.ask("stacks")
            return has(frames_of(report, 1, "training"), "nanosleep") and report
        report = wait_until(hangs, 10, "rank 1 to sleep")
        assert [one["rank"] for one in report["ranks"]] == [0, 1], report
        hanging, waiting = frames_of(report, 1, "training"), frames_of(report, 0, "training")
        assert has(hanging, "footplate::Trainer::Loop::train_step()") and hanging[-1] != "…", hanging
        assert has(hanging, "main") and not has(hanging, "stack_signal"), hanging
        assert has(waiting, "footplate::Trainer::Loop::train_step()") and has(waiting, "::wait("), waiting
        assert has(frames_of(report, 0, "comm"), "footplate::LaunchQueue::serve("), report
        assert has(frames_of(report, 1, "control"), "footplate::ControlLoop::handle_messages("), report
        for rank in (0, 1):
            assert has(frames_of(report, rank, "watchdog"), "footplate::Watchdog::watch()"), report
        shown = run.exec("ranks.stacks(1)")
        assert shown.returncode == 0 and shown.stdout.startswith("rank 1\n  training ("), shown
        assert "rank 0" not in shown.stdout and "\n    footplate::Trainer::Loop::train_step()\n" in shown.stdout, shown
        data = run.exec("return ranks.stacks()[2].threads[1]", "--json")
        thread = json.loads(data.stdout)
        assert data.returncode == 0 and thread["name"] == "training" and thread["frames"], data
        assert thread["state"] == "sleeping" and thread["tid"] == run.pids()[1], thread
        assert run.exec("ranks.stacks(2)").returncode != 0
        assert run.finish(300) == 0, run.output()
        assert run.result()["state_hash"] == undisturbed(steps)


def test_a_stopped_rank_is_named_and_the_others_answer():
    with Run(["model.step_ms=10", "train.steps=1000000"], ranks=3) as run:
        client = run.wait_for_step(20)
        os.kill(run.pids()[1], signal.SIGSTOP)
        try:
            for silent_at_least in (0.9, 1.8):  # the second time it isn't asked: it still owes the first answer
                asked = time.monotonic()
                report = client.ask("stacks")
                took = time.monotonic() - asked
                assert 0.9 < took < 2.5, took
                stopped = report["ranks"][1]
                assert stopped["rank"] == 1 and stopped["threads"] == [], stopped
                assert silent_at_least < stopped["silent_s"] < 10 and "step " in stopped["text"], stopped
                for rank in (0, 2):
                    assert has(frames_of(report, rank, "training"), "footplate::Trainer::Loop"), report["ranks"][rank]
            shown = run.exec("ranks.stacks(1)")
            assert shown.returncode == 0 and shown.stdout.startswith("rank 1 doesn't answer, last heard of "), shown
        finally:
            os.kill(run.pids()[1], signal.SIGCONT)
        wait_until(lambda: frames_of(client.ask("stacks"), 1, "training"), 10, "rank 1's stacks")
        os.kill(run.pids()[0], signal.SIGSTOP)
        try:
            client.ask("stacks")
            raise AssertionError("rank 0 is stopped")
        except Refused as refused:
            assert refused.kind == "timed_out" and "rank 0 doesn't answer" in refused.message, refused
        finally:
            os.kill(run.pids()[0], signal.SIGCONT)


def is_answered(report):
    return all(frames_of(report, rank, "training") for rank in (0, 1))


def silences(run):
    return [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "rank"]


def test_asking_often_changes_nothing():
    """The same parameters to the last bit, and no rank loses its way in a system call that a signal ended."""
    steps = "train.steps=20000" if FULL else "train.steps=1000"
    with small_run(steps) as run:
        client = run.wait_for_step(5)
        answered = 0
        slowest = 0.0
        for _ in range(ASKED):
            known = len(silences(run))
            asked = time.monotonic()
            report = client.ask("stacks")
            slowest = max(slowest, time.monotonic() - asked)
            if not is_answered(report):  # the machine stood for longer than a question is given: then the run tells of it
                wait_until(lambda known=known: len(silences(run)) > known, 5, f"the silence of a rank to be told of; {report}")
                report = client.ask("stacks")
            answered += is_answered(report)
        assert client.ask("status")["step"] < int(steps.split("=")[1]), "it was asked while it trained"
        assert answered == ASKED, answered
        print(f"      slowest of {ASKED}: {slowest * 1000:.0f} ms", flush=True)
        assert run.finish(300) == 0, run.output()
        warned = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "warn"]
        assert not warned, warned
        assert run.result()["state_hash"] == undisturbed(steps)


if __name__ == "__main__":
    main([test_a_hanging_rank_is_seen_where_it_hangs, test_a_stopped_rank_is_named_and_the_others_answer,
          test_asking_often_changes_nothing])
