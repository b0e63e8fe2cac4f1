#!/usr/bin/env python3
"""Collectives that hang, differ or aren't come to: named in one line, and training goes on."""

import json

from harness import Run, main, wait_until

SMALL = ["model.layers=2", "model.width=32", "model.heads=2", "model.context=32", "train.batch_size=7", "eval.batches=2",
         "eval.batch_size=5", "eval.at_end=false", "sched.warmup_steps=5", "log.every=5", "ckpt.every=0", "run.threads=1"]


def small_run(*assignments, fault="", ranks=2):
    return Run([*SMALL, "train.steps=30", *assignments], ranks=ranks, config="kjv", env={"FOOTPLATE_FAULT": fault} if fault else {})


def undisturbed(*assignments):
    with small_run(*assignments) as run:
        assert run.finish(300) == 0, run.output()
        return run.result()["state_hash"]


def warnings(run, kind="collective"):
    return [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "warn" and event["data"].get("kind") == kind]


def test_a_missing_rank_is_named_and_training_goes_on():
    """Rank 1 comes 4 s late to the gradients of step 20; the deadline is 1 s."""
    long = ["eval.every=0", "train.steps=400"]
    with small_run(*long, "comm.timeout_s=1", "comm.small_timeout_s=1", fault="reduce_late:rank=1:step=20:ms=4000") as run:
        assert run.finish(300) == 0, run.output()
        found = [warning for warning in warnings(run) if warning["verdict"] == "missing"]
        assert len(found) == 1 and found[0]["ranks"] == [1], warnings(run)
        text = found[0]["text"]
        assert text.startswith("all_reduce #") and "of gradients" in text and "deadline of 1 s" in text, text
        assert "waits for rank 1: step 20, backward after all_reduce #" in text and "\n" not in text, text
        over = [warning for warning in warnings(run) if warning["verdict"] == "over"]
        assert [warning["sequence"] for warning in over] == [found[0]["sequence"]], warnings(run)
        assert text in run.output(), "and on the console"
        assert run.result()["state_hash"] == undisturbed(*long)


def test_an_evaluation_that_a_rank_does_not_come_to_is_skipped():
    whole = undisturbed("eval.every=0")
    for rank in (0, 1):
        with small_run("eval.every=15", "eval.meet_timeout_s=1.5", fault=f"eval_stall:rank={rank}:ms=4000") as run:
            assert run.finish(300) == 0, run.output()
            lines = [line for line in run.lines("metrics.jsonl") if "eval/evaluation_failed" in line or "eval/loss" in line]
            assert [line["step"] for line in lines] == [15, 30], lines
            for line in lines:
                assert line["eval/evaluation_failed"] == 1, line
                assert f"rank {rank} didn't come to the reduction of an evaluation within 1.5 s" in line["eval/reason"], line
                assert f"rank {rank}: step {line['step'] - 1}, evaluation" in line["eval/reason"], line
            events = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "eval"]
            assert len(events) == 2 and all(event["failed"] for event in events), events
            assert run.result()["state_hash"] == whole


def test_different_collectives_are_named_though_nothing_hangs():
    """Rank 1 reduces once more, of the same size: from there on sums are wrong, and no operation fails."""
    with Run(["model.step_ms=5", "train.steps=1000000", "guard.check_every=0"], ranks=2,
             env={"FOOTPLATE_FAULT": "odd_reduce:rank=1:step=30"}) as run:
        found = wait_until(lambda: warnings(run), 60, "the warning")[0]
        assert found["verdict"] == "different" and found["ranks"] == [1], found
        assert f"#{found['sequence']} is all_reduce of gradients" in found["text"], found
        assert "step 31 on rank 0" in found["text"] and "step 30 on rank 1" in found["text"], found
        client = run.try_connect()
        assert any("different collectives" in note for note in client.ask("status")["notes"])


def test_comm_report_counts_what_each_rank_has_done():
    with Run(["model.step_ms=5", "train.steps=1000000"], ranks=2) as run:
        client = run.wait_for_step(20)
        patterns = client.ask("comm_report")["patterns"]
        reductions = {pattern["rank"]: pattern for pattern in patterns
                      if pattern["kind"] == "all_reduce" and pattern["at_least"] == 1000}
        assert set(reductions) == {0, 1}, patterns
        for pattern in reductions.values():
            assert pattern["count"] >= 20 and pattern["overdue"] == 0, pattern
            assert 0 < pattern["total_ms"] and pattern["longest_ms"] <= pattern["total_ms"], pattern
        result = run.exec("return comm.report()[1].kind", "--json")
        assert result.returncode == 0 and json.loads(result.stdout), result
        shown = run.exec("comm.report()")
        assert "past its deadline" in shown.stdout and "all_reduce" in shown.stdout, shown


if __name__ == "__main__":
    main([test_a_missing_rank_is_named_and_training_goes_on, test_an_evaluation_that_a_rank_does_not_come_to_is_skipped,
          test_different_collectives_are_named_though_nothing_hangs, test_comm_report_counts_what_each_rank_has_done])
