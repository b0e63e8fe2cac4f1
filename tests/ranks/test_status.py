#!/usr/bin/env python3
"""The console answers while a rank, rank 0 included, is stopped, and names it."""

import os
import pathlib
import re
import signal
import subprocess
import time

from harness import Refused, Run, main, wait_until


def test_status_while_a_rank_is_stopped():
    with Run(["model.step_ms=10", "train.steps=1000000"], ranks=3) as run:
        client = run.wait_for_step(20)
        pids = run.pids()
        console = pathlib.Path(f"/proc/{run.record()['console_pid']}/exe").resolve()
        # Linux may share the processor out by sessions: one of its own would make the console wait for seconds.
        assert os.getsid(run.record()["console_pid"]) == os.getsid(run.pids()[0]) != os.getsid(0)
        assert os.getpgid(run.record()["console_pid"]) == run.record()["console_pid"]
        assert console.name == "footplate-console", run.record()
        for rank, pid in enumerate(pids):
            os.kill(pid, signal.SIGSTOP)
            stopped = time.monotonic()
            try:
                slowest = 0.0
                while time.monotonic() - stopped < 2.5:
                    asked = time.monotonic()
                    status = client.ask("status")
                    slowest = max(slowest, time.monotonic() - asked)
                    if time.monotonic() - stopped > 1.0:
                        text = " ".join(status["notes"])
                        assert f"rank {rank}" in text, f"{time.monotonic() - stopped:.2f} s after: {status['notes']}"
                        silent = status["ranks"][rank]["silent_s"]
                        assert 0.4 < silent < 3.3, status["ranks"]
                        others = [entry["rank"] for entry in status["ranks"] if entry["stalled"]]
                        assert rank in others, status["ranks"]
                        # While rank 0 is stopped nothing is heard of the others either.
                        assert rank == 0 or others == [rank], status["ranks"]
                    time.sleep(0.05)
                result = run.exec("return status()")
                assert result.returncode == 0 and f"rank {rank}" in result.stdout, result
                print(f"      rank {rank} stopped: slowest answer {slowest * 1000:.1f} ms", flush=True)
                assert slowest < 0.2, slowest
            finally:
                os.kill(pid, signal.SIGCONT)
            wait_until(lambda: not client.ask("status")["notes"], 10, "the note to go away")
            step = client.ask("status")["step"]
            wait_until(lambda: client.ask("status")["step"] > step + 5, 10, "training to go on")
            # Heartbeats that found rank 0 stopped were not sent: the next rank is stopped once its own has come again.
            wait_until(lambda: all(entry["silent_s"] < 0.7 for entry in client.ask("status")["ranks"]), 10, "everybody's heartbeat")


def test_nobody_is_called_silent_while_all_evaluate():
    """Evaluations of seconds, in which no thread but control's is in MPI; heartbeats have to be heard in time all the same."""
    with Run(["model.step_ms=160", "train.steps=2", "eval.every=1", "sched.warmup_steps=0", "run.threads=1"], ranks=2) as run:
        assert run.finish(120) == 0, run.output()
        silent = [event["data"]["text"] for event in run.lines("events.jsonl") if event["topic"] == "rank"]
        assert not silent, silent


def test_an_order_says_whom_it_waits_for():
    with Run(["model.step_ms=10", "train.steps=1000000"], ranks=2) as run:
        client = run.wait_for_step(5)
        os.kill(run.pids()[1], signal.SIGSTOP)
        try:
            result = run.exec("log.every = 9")
            assert result.returncode in (5, 6), result
            assert "rank 1" in result.stderr, result.stderr
        finally:
            os.kill(run.pids()[1], signal.SIGCONT)
        wait_until(lambda: not client.ask("status")["notes"], 10, "the note to go away")
        assert client.ask("get", names=["log.every"])["log.every"]["value"] == 100
        assert run.exec("log.every = 9").returncode == 0


def test_a_stopped_rank_0_is_named_and_nothing_has_changed():
    with Run(["model.step_ms=10", "train.steps=1000000"], ranks=2) as run:
        client = run.wait_for_step(5)
        os.kill(run.pids()[0], signal.SIGSTOP)
        try:
            result = run.exec("log.every = 9", "--timeout", "3")
            assert result.returncode == 6, result
            assert "waiting: rank 0 silent for" in result.stderr, result.stderr
            assert "not agreed by all ranks within 3 s (rank 0 silent for" in result.stderr, result.stderr
            assert "last seen at step" in result.stderr and "nothing has changed" in result.stderr, result.stderr
        finally:
            os.kill(run.pids()[0], signal.SIGCONT)
        wait_until(lambda: not client.ask("status")["notes"], 10, "the note to go away")
        wait_until(lambda: client.ask("orders")[0]["state"] == "withdrawn", 10, f"the withdrawal: {client.ask('orders')}")
        assert client.ask("get", names=["log.every"])["log.every"]["value"] == 100
        assert run.exec("log.every = 9").returncode == 0
        wait_until(lambda: "rank 0 is back: it was silent for" in run.output(), 10, "the line of what happened")


def test_the_silence_is_told_by_a_console_that_was_held_up():
    """A busy machine may keep the console from running until the order's time is over."""
    with Run(["model.step_ms=10", "train.steps=1000000"], ranks=2) as run:
        client = run.wait_for_step(5)
        rank, console = run.pids()[0], run.record()["console_pid"]
        os.kill(rank, signal.SIGSTOP)
        other = run.try_connect()  # unlike footplate exec it waits for as long as it takes
        try:
            order = other.send("eval", code="log.every = 9", timeout_s=2)
            wait_until(lambda: client.ask("orders"), 10, "the order")
            os.kill(console, signal.SIGSTOP)
            time.sleep(2.5)
            os.kill(console, signal.SIGCONT)
            try:
                raise AssertionError(f"an order without rank 0: {other.answer(order)}")
            except Refused as error:
                assert "not agreed by all ranks within 2 s (rank 0 silent for" in error.message, error.message
            assert [output for output in other.outputs if output["text"].startswith("waiting: rank 0 silent for")], other.outputs
        finally:
            os.kill(console, signal.SIGCONT)
            os.kill(rank, signal.SIGCONT)


def test_an_order_for_a_step_that_is_over_is_warned_of():
    with Run(["model.step_ms=10", "train.steps=1000000"], ranks=2) as run:
        run.wait_for_step(20)
        result = run.exec("at(3, { log = { every = 9 } })")
        assert result.returncode == 0 and "warning: step 3 was over before all ranks could agree; it applies at step" in result.stderr, result
        wait_until(lambda: "was for step 3, which was over" in run.output(), 10, "the warning in the batch lines")


def test_an_evaluation_beside_training_is_in_the_status():
    """Each evaluation takes two seconds and more, a step 10 ms."""
    with Run(["model.step_ms=10", "train.steps=1000000", "eval.async=true", "eval.every=50"], ranks=2,
             env={"FOOTPLATE_FAULT": "eval_stall:ms=2000"}) as run:
        client = run.wait_for_step(5)
        step = wait_until(lambda: client.ask("status")["evaluating_step"], 30, "an evaluation")
        assert step % 50 == 0, step

        def shown():
            return subprocess.run([run.program, "status", str(run.directory)], capture_output=True, text=True, timeout=60, check=False,
                                  env=run.environment).stdout
        wait_until(lambda: re.search(r" · evaluating step \d+ beside", shown()), 30, f"it in footplate status: {shown()}")

        def is_told_best():
            evaluations = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "eval"]
            return evaluations and client.ask("status")["best_eval_loss"] == evaluations[-1]["best"]
        wait_until(is_told_best, 30, "the best one in the status")


if __name__ == "__main__":
    main([test_status_while_a_rank_is_stopped, test_nobody_is_called_silent_while_all_evaluate, test_an_order_says_whom_it_waits_for,
          test_a_stopped_rank_0_is_named_and_nothing_has_changed, test_an_order_for_a_step_that_is_over_is_warned_of,
          test_the_silence_is_told_by_a_console_that_was_held_up, test_an_evaluation_beside_training_is_in_the_status])
