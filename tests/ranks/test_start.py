#!/usr/bin/env python3
"""A rank that doesn't arrive: `footplate run` names it within comm.init_timeout_s, ends with 1, and nothing is left."""

import os
import signal
import subprocess
import time

from harness import Run, main, wait_until
from leftovers import PRIVATE, nothing_left, strays_of

# Of a rank that hangs: small, but enough for the others to arrive on a busy machine. Ending all processes comes on top of it.
BOUND_S = 10
ENDING_TAKES_S = 60
# A dead rank is noticed at once, long before.
LONG_BOUND_S = 300


def fails(fault, said, ranks=2, options=(), starts=1, bound_s=BOUND_S):
    """A start with this fault: its result, after all that holds for each of them."""
    started = time.monotonic()
    with Run([f"comm.init_timeout_s={bound_s}", "train.steps=20"], ranks=ranks, options=options, env={"FOOTPLATE_FAULT": fault}) as run:
        assert run.finish(starts * (BOUND_S + ENDING_TAKES_S)) == 1, run.output()
        took = time.monotonic() - started
        result, record = run.result(), run.record()
        assert result["code"] == 1 and result["step"] == 0 and result["checkpoint"] is None, result
        assert result["restarts"] == starts - 1, result
        assert record["state"] == "ended", record
        for text in said:
            assert text in result["reason"], result
            assert text in run.output(), run.output()
        nothing_left(run)
        return took


def host():
    return f"host {os.uname().nodename}"


def test_hangs_before_mpi():
    took = fails("start_hang:rank=1", ["rank 1 of 2", host(), "before MPI starts", f"within {BOUND_S} s", "comm.init_timeout_s", "check"])
    assert took >= BOUND_S, took


def test_hangs_after_mpi():
    fails("start_hang:rank=1:mpi=1", ["rank 1 of 2", host(), "after MPI's start", f"within {BOUND_S} s"])


def test_rank_0_hangs():
    fails("start_hang:rank=0:mpi=1", ["rank 0 of 3", host()], ranks=3)


def test_a_fault_that_there_isnt():
    for fault, meant in (("eval_thraw:rank=1", "eval_throw"), ("start_hang:rnak=1", "rank")):  # nor does it hang
        with Run(["train.steps=20"], env={"FOOTPLATE_FAULT": fault}) as run:
            assert run.finish(ENDING_TAKES_S) == 2, run.output()
            assert f"did you mean '{meant}'?" in run.result()["reason"], run.result()


def test_a_start_records_what_it_ran_with():
    with Run(["train.steps=5", "model.step_ms=1"]) as run:
        assert run.finish(ENDING_TAKES_S) == 0, run.output()
        versions = run.lines("starts.jsonl")[-1]["versions"]
        program = subprocess.run([str(run.program), "--version"], capture_output=True, text=True, check=True).stdout
        assert program.strip() == "footplate " + versions["footplate"], (program, versions)
        assert versions["libtorch"][0].isdigit() and versions["mpi"].startswith("Open MPI v") and versions["nccl"] is None, versions


def test_a_start_that_was_refused_leaves_its_name_free():
    with Run(["data.corpus=/no/such/text"], config="kjv") as run:
        assert run.finish(ENDING_TAKES_S) == 2 and "no such file or folder" in run.output(), run.output()
        with Run(["train.steps=5", "model.step_ms=1"], folder=run.folder) as again:
            assert again.finish(ENDING_TAKES_S) == 0, again.output()
            assert again.result()["step"] == 5 and again.read_json("result-1.json")["code"] == 2, again.result()
        with Run(["train.steps=5"], folder=run.folder) as third:
            assert third.finish(ENDING_TAKES_S) == 2 and "there is a run t already" in third.output(), third.output()


def test_a_run_keeps_to_its_own_folders():
    """Whoever looks for what a run leaves behind looks there."""
    with Run(["train.steps=1000000", "model.step_ms=5"]) as run:
        run.wait_for_step(5).close()
        assert run.exec("return 1").returncode == 0
        assert not strays_of(run), strays_of(run)
        run.process.send_signal(signal.SIGTERM)
        assert run.finish(60) == 75, run.output()
        nothing_left(run)


def test_several_hang():
    fails("start_hang:rank=1,start_hang:rank=2", ["ranks 1, 2 of 3", host()], ranks=3)


def test_one_rank_alone_hangs():
    fails("start_hang", ["rank 0 of 1", host()], ranks=1)


def test_dies_before_mpi():
    fails("start_die:rank=1", ["rank 1 of 2", host(), "before MPI starts", "has ended"], bound_s=LONG_BOUND_S)


def test_dies_after_mpi():
    fails("start_die:rank=1:mpi=1", ["rank 1 of 2", host(), "has ended"], bound_s=LONG_BOUND_S)


def test_rank_0_dies():
    for fault in ("start_die:rank=0", "start_die:rank=0:mpi=1"):
        fails(fault, ["rank 0 of 2", host(), "has ended"], bound_s=LONG_BOUND_S)


def test_each_start_has_the_bound():
    fails("start_hang:rank=1", ["rank 1 of 2"], options=("--restarts", "1"), starts=2)


def test_stopped_while_starting():
    """A signal to `footplate run` counts at once; the bound isn't waited for."""
    with Run(["comm.init_timeout_s=600"], env={"FOOTPLATE_FAULT": "start_hang:rank=1"}) as run:
        arrived = wait_until(lambda: run.record().get("id") and PRIVATE / f"{run.record()['id']}.d" / "arrival-1", 30, "the record")
        wait_until(arrived.exists, 60, "rank 1")
        run.process.send_signal(signal.SIGTERM)
        assert run.finish(60) == 75, run.output()
        nothing_left(run)


def test_status_and_log_tell_whom_a_start_waits_for():
    with Run(["comm.init_timeout_s=600"], ranks=3, env={"FOOTPLATE_FAULT": "start_hang:rank=1"}) as run:
        def ask(*words):
            return subprocess.run([run.program, *words, str(run.directory)], capture_output=True, text=True, timeout=60, check=False,
                                  env=run.environment)
        def named():
            shown = ask("status").stdout
            return shown if "waiting for rank 1 of 3" in shown and "before MPI starts" in shown else ""
        shown = wait_until(named, 60, "the rank to be named, and where it is")
        assert "· starting · step 0" in shown and host() in shown and "before MPI starts" in shown and "launcher.log" in shown, shown
        log = ask("log")
        assert log.returncode == 0 and "starting for" in log.stderr and "waiting for rank 1 of 3" in log.stderr, log
        run.process.send_signal(signal.SIGTERM)
        assert run.finish(60) == 75, run.output()


def test_slow_is_not_late():
    """Within the bound nothing is said or ended."""
    with Run(["comm.init_timeout_s=60", "train.steps=20"], env={"FOOTPLATE_FAULT": "late_start:rank=1:ms=2000"}) as run:
        assert run.finish(90) == 0, run.output()


def test_a_checkpoint_may_take_long_to_verify():
    """Rank 0 reads all of it, and the others are no ranks that wait for one that doesn't arrive."""
    bound_s = 10
    settings = [f"comm.init_timeout_s={bound_s}", "eval.every=0", "ckpt.every=10"]
    with Run([*settings, "train.steps=20"]) as run:
        assert run.finish(90) == 0, run.output()
        fault = {"FOOTPLATE_FAULT": f"late_choice:rank=0:ms={1000 * (bound_s + 12)}"}
        with Run([*settings, "train.steps=40"], folder=run.folder, options=["--resume", "auto"], env=fault) as again:
            assert again.finish(120) == 0, again.output()
            assert again.result()["step"] == 40, again.result()
            told = [line for line in again.output().splitlines() if "waiting for rank 0" in line]
            assert len(told) == 1 and "choosing a checkpoint" in told[0] and "fails" not in told[0], again.output()


if __name__ == "__main__":
    main([test_hangs_before_mpi, test_hangs_after_mpi, test_rank_0_hangs, test_a_fault_that_there_isnt, test_a_start_records_what_it_ran_with, test_a_start_that_was_refused_leaves_its_name_free, test_a_run_keeps_to_its_own_folders, test_several_hang, test_one_rank_alone_hangs, test_dies_before_mpi,
          test_dies_after_mpi, test_rank_0_dies, test_each_start_has_the_bound, test_stopped_while_starting,
          test_status_and_log_tell_whom_a_start_waits_for, test_slow_is_not_late,
          test_a_checkpoint_may_take_long_to_verify])
