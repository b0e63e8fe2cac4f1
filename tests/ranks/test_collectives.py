#!/usr/bin/env python3
"""Collectives that hang, differ or aren't come to: named in one line, and training goes on."""

import json
import os
import pathlib
import signal
import time

from harness import PAUSE, Run, main, not_finite_at, wait_for_pause, wait_until

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
    with small_run(*long, "comm.small_timeout_s=1", "comm.on_timeout=wait", fault="reduce_late:rank=1:step=20:ms=4000") as run:
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
            assert [event["local_loss"] for event in events] == [line["eval/local_loss"] for line in lines], (events, lines)
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


def test_different_collectives_fail_at_once_where_they_are_checked():
    """debug.collectives: no sum of the wrong things is ever trained on. Switched on in the run."""
    with Run(["model.step_ms=5", "train.steps=1000000", PAUSE], ranks=2,
             env={"FOOTPLATE_FAULT": f"{not_finite_at(5)},odd_reduce:rank=1:step=30"}) as run:
        wait_for_pause(run.wait_for_step(5), 5)
        assert run.exec('debug.collectives = "detail"; run.resume()').returncode == 0
        assert run.finish() == 75, run.output()
        end = run.result()
        assert "debug.collectives: the ranks call different operations: rank 0: step 31, gradients: all_reduce of " in end["reason"], end
        assert "rank 1: step 30, gradients: all_reduce of " in end["reason"], end


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


def test_collectives_are_metrics_as_well():
    with small_run("train.steps=1000000", "eval.every=0", "comm.metrics_every=10") as run:
        run.wait_for_step(5).close()
        assert run.exec("comm.metrics_every = 20").returncode == 0
        run.end_after(50)
        assert run.finish(300) == 0, run.output()
        lines = [line for line in run.lines("metrics.jsonl") if "comm/collectives" in line]
        steps = [line["step"] for line in lines]
        assert len(steps) >= 2 and all(step % 20 == 0 for step in steps[-2:]) and steps[-1] - steps[-2] == 20, steps
        for line in lines:
            assert line["comm/collectives"] >= 10 and line["comm/mbytes"] > 0 and line["comm/timeouts"] == 0, line
            assert line["comm/all_reduce_mb_per_s"] > 0, line


def test_ledgers_are_files_on_request():
    with Run(["model.step_ms=5", "train.steps=1000000"], ranks=2) as run:
        run.wait_for_step(20).close()
        dumped = json.loads(run.exec("return comm.dump()", "--json").stdout)
        assert [one["rank"] for one in dumped] == [0, 1], dumped
        for one in dumped:
            head, *operations = [json.loads(line) for line in pathlib.Path(one["path"]).read_text().splitlines()]
            assert head["rank"] == one["rank"] and head["why"] == "comm.dump()", head
            assert len(operations) == one["operations"] >= 20, one
            assert [operation["sequence"] for operation in operations] == list(range(operations[0]["sequence"], head["newest"] + 1))
            assert all(operation["kind"] and operation["name"] and operation["enqueued"] for operation in operations)
        assert "operations)" in run.exec("comm.dump()").stdout


def advice(run):
    return warnings(run, "advice")


LATE = ["model.step_ms=5", "train.steps=1000000", "comm.small_timeout_s=0.5", "comm.on_timeout=wait"]


def test_advice_names_the_deadline_that_is_too_short():
    """Rank 1 comes 0.8 s late to every reduction: slow, not stuck."""
    with Run(LATE, ranks=2, env={"FOOTPLATE_FAULT": "reduce_late:rank=1:ms=800"}) as run:
        found = wait_until(lambda: advice(run), 60, "the advice")[0]
        assert found["setting"] == "comm.small_timeout_s" and 1.6 <= found["value"] <= 5, found
        assert found["command"] == f"comm.small_timeout_s = {found['value']:g}" and found["ranks"] == [1], found
        assert "went past comm.small_timeout_s (0.5 s) at 3 steps" in found["text"], found
        assert found["text"].endswith(f"If that is normal here: {found['command']}"), found
        wait_until(lambda: found["text"] in run.output(), 10, "the line on the console")
        shown = run.exec("comm.report()")
        assert f"proposed: {found['text']}" in shown.stdout, shown
        assert run.exec("return comm.small_timeout_s").stdout.strip() == "0.5"
        done = run.exec(found["command"])
        assert done.returncode == 0, done
        client = run.try_connect()
        assert client.ask("comm_report")["proposals"] == [], "done"
        told = len(warnings(run))
        step = client.ask("status")["step"]
        wait_until(lambda: client.ask("status")["step"] >= step + 4, 60, "four more steps")
        assert len(warnings(run)) <= told + 2, f"the end of what was under way, at most: {warnings(run)}"
        assert len(advice(run)) == 1, advice(run)


def test_apply_raises_the_deadline_by_an_order_of_its_own():
    with Run([*LATE, "comm.auto=apply"], ranks=2, env={"FOOTPLATE_FAULT": "reduce_late:rank=1:ms=800"}) as run:
        applied = wait_until(lambda: [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "order"
                                      and event["data"]["state"] == "applied"], 60, "the order")[0]
        assert applied["order"]["session"] == applied["order"]["user"] == "footplate", applied
        assert applied["applied"]["ranks"] == 2, applied
        (moved,) = applied["applied"]["moved"]
        assert moved["name"] == "comm.small_timeout_s" and moved["before"] == 0.5 and moved["after"] >= 1.6, moved
        client = run.try_connect()
        step = applied["applied"]["step"]
        wait_until(lambda: client.ask("status")["step"] >= step + 2, 60, "the first steps under the new deadline")
        late = {warning["sequence"] for warning in warnings(run)}
        wait_until(lambda: client.ask("status")["step"] >= step + 6, 60, "four more steps")
        assert {warning["sequence"] for warning in warnings(run)} == late, f"no more of them: {warnings(run)}"
        (found,) = advice(run)
        assert found["order"] == applied["id"] and f"Order {applied['id']} sets comm.small_timeout_s = " in found["text"], found
        journal = (run.directory / "journal.lua").read_text()
        assert f"-- order {applied['id']} · footplate · footplate · " in journal, journal
        assert "went past comm.small_timeout_s (0.5 s) at 3 steps" in journal and "comm = { small_timeout_s = " in journal, journal
        assert f"comm.small_timeout_s 0.5 -> {moved['after']:g}, applied at step" in run.output(), run.output()
        undone = run.exec("undo()")
        assert undone.returncode == 3 and "comm.small_timeout_s = 0.5" in undone.stderr, undone
        assert run.exec("comm.small_timeout_s = 0.7").returncode == 0
        assert [rank_applied[applied["id"]] for rank_applied in (run.applied(0), run.applied(1))] == \
            [(applied["applied"]["step"], applied["applied"]["digest"])] * 2


def test_nothing_is_proposed_while_a_rank_hangs():
    """Steps are late and end, until rank 1 stands still: that is no matter of a deadline."""
    with Run([*LATE, "comm.auto=apply"], ranks=2, env={"FOOTPLATE_FAULT": "reduce_late:rank=1:ms=800"}) as run:
        wait_until(lambda: [one for one in warnings(run) if one["verdict"] == "over"], 60, "the end of a late one")
        pid = run.pids()[1]
        os.kill(pid, signal.SIGSTOP)
        try:
            client = run.try_connect()
            wait_until(lambda: client.ask("status")["ranks"][1]["stalled"], 30, "rank 1 to be silent")
            end = time.monotonic() + 3  # six deadlines
            while time.monotonic() < end:
                assert not advice(run), advice(run)
                assert client.ask("comm_report")["proposals"] == []
                time.sleep(0.1)
        finally:
            os.kill(pid, signal.SIGCONT)
        # It goes on, is late as before, and then it is a matter of the deadline.
        wait_until(lambda: advice(run), 60, "the advice")


if __name__ == "__main__":
    main([test_a_missing_rank_is_named_and_training_goes_on, test_an_evaluation_that_a_rank_does_not_come_to_is_skipped,
          test_different_collectives_are_named_though_nothing_hangs, test_different_collectives_fail_at_once_where_they_are_checked,
          test_comm_report_counts_what_each_rank_has_done,
          test_collectives_are_metrics_as_well, test_ledgers_are_files_on_request,
          test_advice_names_the_deadline_that_is_too_short, test_apply_raises_the_deadline_by_an_order_of_its_own,
          test_nothing_is_proposed_while_a_rank_hangs])
