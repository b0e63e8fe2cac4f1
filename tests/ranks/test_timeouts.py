#!/usr/bin/env python3
"""Collectives that hang though all ranks live: what comm.on_timeout and eval.on_timeout make of it."""

import json
import os
import signal

from harness import FULL, Run, main, wait_until
from leftovers import nothing_left
from test_collectives import SMALL, small_run, undisturbed, warnings

QUICK = ["comm.small_timeout_s=1"]
LONG = ["eval.every=0", "train.steps=400"]


def of_state(run, state):
    return [event["data"] for event in run.lines("events.jsonl")
            if event["topic"] == "rank" and event["data"].get("state") == state]


def test_a_step_that_hangs_is_done_again_bit_for_bit():
    """Rank 1 comes 2.5 s late to step 20 each time that it is done; patience is 1 s, then 2, then 4."""
    with small_run(*LONG, *QUICK, fault="reduce_late:rank=1:step=20:ms=2500") as run:
        assert run.finish(300) == 0, run.output()
        done = warnings(run, "timeout")
        assert [one["action"] for one in done] == ["rebuild", "rebuild"], done
        for one in done:
            assert "of gradients (" in one["text"] and "waits for rank 1: step 20, backward" in one["text"], one
        rebuilt = of_state(run, "rebuilt")
        assert [one["step"] for one in rebuilt] == [20, 20], rebuilt
        assert "communicators were rebuilt at step 20 (all_reduce #" in rebuilt[0]["text"], rebuilt
        assert rebuilt[0]["text"] in run.output()
        result = run.result()
        assert result["recoveries"] == 2, result
        assert result["state_hash"] == undisturbed(*LONG)
        ledgers = sorted((run.directory / "ledgers").iterdir())
        assert [path.name for path in ledgers] == ["rank-0-1.jsonl", "rank-1-1.jsonl"], "once a minute, of each"
        for path in ledgers:
            head, *operations = [json.loads(line) for line in path.read_text().splitlines()]
            assert head["why"] == "a collective is past its deadline" and operations, head
        waits = next(line for line in map(json.loads, ledgers[0].read_text().splitlines()) if line.get("state") == "running")
        assert (waits["name"], waits["step"]) == ("gradients", 20) and waits["seconds"] >= 1, waits


def test_an_evaluation_whose_reduction_a_rank_never_enters_is_skipped():
    """All have met; then one comes 1.4 s late: skipped by then. Every evaluation, on either rank."""
    count = 25 if FULL else 2
    steps = [f"train.steps={count}", "sched.warmup_steps=1"]
    whole = undisturbed(*steps, "eval.every=0")
    for rank in (0, 1):
        with small_run(*steps, *QUICK, "eval.every=1", "log.every=1", fault=f"eval_absent:rank={rank}:ms=1400") as run:
            assert run.finish(300) == 0, run.output()
            lines = [line for line in run.lines("metrics.jsonl") if "eval/evaluation_failed" in line or "eval/loss" in line]
            assert [line["step"] for line in lines] == list(range(1, count + 1)), lines
            for line in lines:
                assert line["eval/evaluation_failed"] == 1, line
                assert line["eval/reason"].startswith("evaluation skipped: all_reduce #"), line
                assert 1 < line["eval/local_loss"] < 8 and f"Local loss of rank 0: {line['eval/local_loss']:.4f}" in line["eval/reason"], line
                assert "of eval sums" in line["eval/reason"] and f"waits for rank {rank}: step" in line["eval/reason"], line
            skipped = [event for event in run.lines("events.jsonl") if event["topic"] == "warn" and event["data"].get("kind") == "timeout"]
            assert [event["data"]["action"] for event in skipped] == ["skip"] * count, skipped
            assert run.result()["state_hash"] == whole
    print(f"  {2 * count} of {2 * count} skipped, before the rank came 1.4 s late, at a limit of 1 s", flush=True)


def test_a_stopped_rank_is_waited_for():
    with small_run(*LONG, "comm.small_timeout_s=5") as run:  # a busy machine keeps a rank for a second by itself
        run.wait_for_step(10).close()
        pid = run.pids()[1]
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until(lambda: [one for one in warnings(run) if one["verdict"] == "missing"], 30, "it to be missed")
            client = run.try_connect()
            assert client.ask("status")["state"] == "running"
            client.close()
            assert [path.name for path in (run.directory / "ledgers").iterdir()] == ["rank-0-1.jsonl"], "who can, does"
            said = run.exec("comm.dump()").stdout
            assert "rank 0: " in said and "rank 1: no file: it doesn't answer: rank 1: step" in said, said
        finally:
            os.kill(pid, signal.SIGCONT)
        assert run.finish(300) == 0, run.output()
        assert not warnings(run, "timeout") and run.result()["recoveries"] == 0, run.output()
        assert run.result()["state_hash"] == undisturbed(*LONG)


def test_stop_ends_resumable():
    for rank in (0, 1):
        with small_run(*LONG, *QUICK, "comm.on_timeout=stop", fault=f"reduce_late:rank={rank}:step=20:ms=600000") as run:
            assert run.finish(60) == 75, run.output()
            reason = run.result()["reason"]
            assert f"waits for rank {rank}: step 20, backward" in reason and 'comm.on_timeout is "stop"' in reason, reason
            nothing_left(run)


def test_a_rank_that_never_comes_back_is_killed_past_the_hard_limit():
    """The others are free after a second, and stand; it is its training thread that hangs. Rank 0, too."""
    for rank in (0, 2):
        with Run([*SMALL, *LONG, *QUICK, "comm.hard_limit_s=4"], ranks=3, config="kjv",
                 env={"FOOTPLATE_FAULT": f"reduce_late:rank={rank}:step=20:ms=600000"}) as run:
            assert run.finish(300) == 0, run.output()
            assert f"warning: recovery waits for rank {rank}: step 20, backward" in run.output(), run.output()
            killed = of_state(run, "killed")
            assert len(killed) == 1 and killed[0]["rank"] == rank, killed
            assert "past comm.hard_limit_s (4 s)" in killed[0]["text"], killed
            lost = of_state(run, "lost")
            assert len(lost) == 1 and lost[0]["step"] == 20 and lost[0]["world_size"] == 2, lost
            nothing_left(run)


if __name__ == "__main__":
    main([test_a_step_that_hangs_is_done_again_bit_for_bit, test_an_evaluation_whose_reduction_a_rank_never_enters_is_skipped,
          test_a_stopped_rank_is_waited_for, test_stop_ends_resumable,
          test_a_rank_that_never_comes_back_is_killed_past_the_hard_limit])
