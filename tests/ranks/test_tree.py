#!/usr/bin/env python3
"""Orders and signs of life through a tree of the ranks (comm.fan_out), as large runs have it: here of seven, that pass on to two others
each. Ranks 1 and 4 have two others below them each, of which rank 0 hears nothing itself."""

import os
import signal
import time

from harness import Run, main, wait_until
from leftovers import nothing_left

TREE = ["comm.fan_out=2", "model.step_ms=5", "run.threads=1", "eval.batches=2", "ckpt.every=0", "train.steps=1000000"]
RANKS = 7


def tell(run, topic, state):
    return [event["data"] for event in run.lines("events.jsonl") if event["topic"] == topic and event["data"].get("state") == state]


def connect(run):
    return wait_until(run.try_connect, 30, "the console")


def expect_all_apply(client, value, ranks):
    answer = client.ask("set", changes={"log.every": value})["applied"]
    assert answer["ranks"] == ranks == answer["world_size"], answer


def pause(client):
    """Seven ranks that train leave some of them without a core for a second, which is to be silent as well."""
    client.ask("call", action="run.pause", arguments={})
    wait_until(lambda: client.ask("status")["state"] == "paused", 30, "the pause")
    wait_until(lambda: not any(rank["stalled"] for rank in client.ask("status")["ranks"]), 10, "all ranks to be heard")


def test_all_ranks_apply_an_order_and_are_heard():
    with Run(TREE, ranks=RANKS) as run:
        client = run.wait_for_step(5)
        expect_all_apply(client, 7, RANKS)
        wait_until(lambda: all(rank["pid"] for rank in client.ask("status")["ranks"]), 10, "a heartbeat of every rank")
        assert [rank["pid"] for rank in client.ask("status")["ranks"]] == run.pids()
        client.ask("call", action="eval.now", arguments={})
        pause(client)
        stacks = client.ask("stacks")["ranks"]
        assert len(stacks) == RANKS and all(rank["threads"] for rank in stacks), "all are asked, and answer"
        before = tell(run, "rank", "stalled")
        time.sleep(3)  # some heartbeats long
        assert tell(run, "rank", "stalled") == before, tell(run, "rank", "stalled")
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()
        nothing_left(run)


def test_a_rank_that_stands_is_named_and_nobody_below_it():
    with Run(TREE, ranks=RANKS) as run:
        client = run.wait_for_step(5)
        pids = run.pids()
        pause(client)
        for rank in (4, 3):
            seen = len(tell(run, "rank", "stalled"))
            back = len(tell(run, "rank", "back"))
            os.kill(pids[rank], signal.SIGSTOP)
            try:
                wait_until(lambda: len(tell(run, "rank", "stalled")) > seen, 5, f"rank {rank} to be named")
                time.sleep(2.5)  # it would be named again in the layout that follows
                named = [event["rank"] for event in tell(run, "rank", "stalled")[seen:]]
                assert named == [rank], named
                assert [one["rank"] for one in client.ask("status")["ranks"] if one["stalled"]] == [rank]
                assert len(tell(run, "rank", "back")) == back, tell(run, "rank", "back")
                refused = run.exec("log.every = 9", timeout_s=30)
                assert refused.returncode in (5, 6) and f"rank {rank}" in refused.stderr, refused
            finally:
                os.kill(pids[rank], signal.SIGCONT)
            wait_until(lambda: len(tell(run, "rank", "back")) > back, 10, f"rank {rank} to be back")
            expect_all_apply(client, 20 + rank, RANKS)
        client.ask("call", action="run.resume", arguments={})
        step = client.ask("status")["step"]
        wait_until(lambda: client.ask("status")["step"] > step + 5, 60, "training to go on")
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()
        nothing_left(run)


def test_the_others_go_on_where_one_dies_that_passed_messages_on():
    with Run(TREE, ranks=RANKS) as run:
        client = run.wait_for_step(5)
        left = RANKS
        for rank in (1, 0, 3):
            os.kill(run.pids()[rank], signal.SIGKILL)
            left -= 1
            wait_until(lambda: len(tell(run, "rank", "lost")) == RANKS - left, 30, f"the loss of rank {rank} to be told of")
            client = connect(run)
            wait_until(lambda: client.ask("status")["world_size"] == left, 30, "the smaller world")
            expect_all_apply(client, 30 + left, left)
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()
        nothing_left(run)


def test_a_rank_that_joins_has_a_place():
    with Run([*TREE, "comm.replace=true"], ranks=5) as run:
        run.wait_for_step(5)
        os.kill(run.pids()[1], signal.SIGKILL)
        wait_until(lambda: tell(run, "rank", "joined"), 90, "another rank to join")
        client = connect(run)
        wait_until(lambda: client.ask("status")["world_size"] == 5, 30, "the whole world")
        expect_all_apply(client, 41, 5)
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()
        nothing_left(run)


def test_a_time_out_that_ends_the_run_ends_all():
    """Whoever passes that on must not end before those below have it."""
    with Run([*TREE, "comm.small_timeout_s=1", "comm.on_timeout=stop"], ranks=RANKS,
             env={"FOOTPLATE_FAULT": "reduce_late:rank=5:step=20:ms=600000"}) as run:
        assert run.finish(90) == 75, run.output()
        assert "waits for rank 5" in run.result()["reason"], run.result()
        assert not tell(run, "rank", "lost"), tell(run, "rank", "lost")
        nothing_left(run)


if __name__ == "__main__":
    main([test_all_ranks_apply_an_order_and_are_heard, test_a_rank_that_stands_is_named_and_nobody_below_it,
          test_the_others_go_on_where_one_dies_that_passed_messages_on, test_a_rank_that_joins_has_a_place,
          test_a_time_out_that_ends_the_run_ends_all])
