#!/usr/bin/env python3
"""Gradients over NCCL's functions, with a library in NCCL's place that reduces host memory between the ranks
(tests/unit/cuda/nccl_stand_in.cpp): what a run trains, what can be changed live, and what follows where it fails."""

import os
import pathlib
import re
import signal
import tempfile

from harness import BIN, Run, main, wait_until

STAND_IN = BIN.parent / "tests" / "libnccl_stand_in.so"
LONG = ["train.steps=1000000", "model.step_ms=5", "run.threads=1"]


class NcclRun(Run):
    """A run over the stand-in, which keeps its files in the run's folder."""

    def __init__(self, assignments=(), fault="", env=None, **options):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-"))
        self.stand_in = folder / "nccl"
        self.stand_in.mkdir()
        super().__init__(assignments, folder=folder, **options,
                         env={"FOOTPLATE_NCCL": str(STAND_IN), "FOOTPLATE_STAND_IN_DIR": str(self.stand_in),
                              "FOOTPLATE_STAND_IN_FAULT": fault, **(env or {})})
        self.owns_folder = True

    def calls(self, pid):
        """What the rank asked of the library, one dict a line: {"call": "init", "max_ctas": "8", …}."""
        lines = []
        for line in (self.stand_in / f"calls-{pid}.txt").read_text().splitlines():
            fields = dict(re.findall(r"(\w+)=(\S+)", line))
            lines.append({"call": "init" if line.startswith("init=") else line.split()[0], **fields})
        return lines


def log_of(run, rank):
    return (pathlib.Path(run.directory) / "log" / f"rank-{rank}.log").read_text()


def test_a_run_trains_the_same_as_over_mpi():
    steps = ["train.steps=40", "model.elements=100000", "comm.chunk_elements=3000", "run.threads=1"]
    with Run(steps) as over_mpi:
        assert over_mpi.finish() == 0
        expected = over_mpi.result()["state_hash"]
    with NcclRun(steps) as run:
        assert run.finish() == 0, run.output()
        assert run.result()["state_hash"] == expected  # of two ranks a sum has one order
        assert "gradients go over NCCL 2.28.9" in log_of(run, 1)
        for pid in run.pids():
            calls = run.calls(pid)
            assert [call["call"] for call in calls] == ["init", "destroy"], calls
            assert calls[0]["blocking"] == "0" and int(calls[1]["reductions"]) > 40 * 34, calls


def test_a_setting_applies_with_new_communicators():
    with NcclRun([*LONG, "nccl.min_ctas=2"]) as run:
        run.wait_for_step(5).close()
        answer = run.exec("nccl.max_ctas = 8; nccl.cga_cluster_size = 2")
        assert answer.returncode == 0, answer
        assert re.search(r"nccl.max_ctas 0 -> 8, nccl.cga_cluster_size -1 -> 2, new communicators at step \d+ on 2/2 ranks, "
                         r"\d+\.\d s", answer.stderr), answer
        both = [run.calls(pid) for pid in run.pids()]
        for calls in both:
            assert [call["call"] for call in calls] == ["init", "abort", "init"], calls
            assert [call.get("max_ctas") for call in calls] == ["unset", None, "8"], calls
            assert calls[0]["min_ctas"] == "2" == calls[2]["min_ctas"] and calls[2]["cga_cluster_size"] == "2", calls
        assert both[0][1]["reductions"] == both[1][1]["reductions"], both  # the same step
        answer = run.exec("return nccl.rebuild():wait().seconds < 60")
        assert answer.stdout.strip() == "true", answer
        wait_until(lambda: len(run.calls(run.pids()[1])) == 5, 10, "the rebuild")
        assert "applied at step" in run.exec("nccl.max_ctas = 8; log.every = 7").stderr  # nothing to renew
        shown = run.exec("nccl.show()").stdout
        assert re.search(r"nccl.max_ctas +8 .*new communicators", shown) and re.search(r"nccl.nvls .*next start", shown), shown
        assert "NCCL_MIN_CTAS" not in log_of(run, 0)  # as a variable it would count for more
        answer = run.exec("nccl.min_ctas = 16")
        assert answer.returncode == 5 and "is above nccl.max_ctas = 8" in answer.stderr, answer


def test_what_fails_on_one_rank_is_taken_back_on_all():
    with NcclRun(LONG, fault="fail_init:rank=1:max_ctas=7") as run:
        client = run.wait_for_step(5)
        answer = run.exec("nccl.max_ctas = 7; log.every = 9")
        assert answer.returncode == 5 and "rank 1: NCCL: making communicators failed" in answer.stderr, answer
        assert "those of before are back" in answer.stderr and "nothing changed" in answer.stderr, answer
        assert run.exec("return nccl.max_ctas, log.every").stdout.split() == ["0", "100"]
        step = client.ask("status")["step"]
        wait_until(lambda: client.ask("status")["step"] > step + 20, 20, "training to go on")
        assert "new communicators" in run.exec("nccl.max_ctas = 8").stderr
        for rank, pid in enumerate(run.pids()):
            made = [call.get("max_ctas") for call in run.calls(pid) if call["call"] == "init"]
            assert made == ["unset", "7", "unset", "8"], (rank, made)
        assert run.process.poll() is None and not [event for event in run.lines("events.jsonl") if event["topic"] == "rank"]


def test_the_environment_counts_for_more():
    with NcclRun([*LONG, "nccl.max_ctas=4"], env={"NCCL_MAX_CTAS": "16"}) as run:
        run.wait_for_step(2).close()
        assert "NCCL_MAX_CTAS=16 in the environment overrides nccl.max_ctas = 4" in run.output()
        answer = run.exec("nccl.max_ctas = 8")
        assert answer.returncode == 5 and "overrides it at every start" in answer.stderr, answer
        assert run.calls(run.pids()[0])[0]["max_ctas"] == "16"


def rebuilds(run, state):
    return [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "rank" and event["data"].get("state") == state]


def test_a_killed_rank_is_lost_and_the_others_go_on():
    with NcclRun([*LONG, "nccl.max_ctas=4"], ranks=3) as run:
        client = run.wait_for_step(20)
        os.kill(run.pids()[1], signal.SIGKILL)
        wait_until(lambda: rebuilds(run, "lost"), 30, "the loss to be told of")
        step = rebuilds(run, "lost")[0]["step"]
        wait_until(lambda: client.ask("status")["step"] > step + 20, 30, "training to go on")
        for pid in run.pids():
            calls = run.calls(pid)
            assert [call["call"] for call in calls] == ["init", "abort", "init"], calls
            assert calls[0]["rank"].endswith("/3") and calls[2]["rank"].endswith("/2"), calls
            assert calls[0]["id"] != calls[2]["id"] and calls[2]["max_ctas"] == "4", calls
        assert "new communicators" in run.exec("nccl.max_ctas = 8").stderr


def test_an_error_of_nccl_has_all_find_together():
    with NcclRun(LONG, fault="error:rank=1:init=1:reduction=60") as run:
        client = run.wait_for_step(2)
        wait_until(lambda: rebuilds(run, "rebuilt"), 30, "the rebuild to be told of")
        step = rebuilds(run, "rebuilt")[0]["step"]
        wait_until(lambda: client.ask("status")["step"] > step + 20, 30, "training to go on")
        assert len(run.pids()) == 2 and run.process.poll() is None


def test_a_reduction_that_hangs_is_done_again():
    """The watchdog sees it, and communicators are made anew (comm.on_timeout)."""
    limits = ["comm.timeout_s=1", "comm.small_timeout_s=1"]
    with NcclRun(["train.steps=100", "model.step_ms=1", "run.threads=1", *limits], fault="hang:rank=1:init=1:reduction=60") as run:
        assert run.finish() == 0, run.output()
        assert run.result()["recoveries"] == 1 and len(rebuilds(run, "rebuilt")) == 1, run.result()
        warnings = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "warn"]
        assert any("all_reduce #" in one["text"] and "of gradients" in one["text"] for one in warnings), warnings
        for pid in run.pids():
            assert [call["call"] for call in run.calls(pid)] == ["init", "abort", "init", "destroy"], run.calls(pid)


def test_a_rank_dies_while_communicators_are_made():
    """Those who are left make them again: the order applies with them."""
    with NcclRun(LONG, ranks=3, fault="hang_init:rank=1:init=2") as run:
        client = run.wait_for_step(5)
        pids = run.pids()
        order = client.send("set", changes={"nccl.max_ctas": 7})
        wait_until(lambda: len([call for call in run.calls(pids[1]) if call["call"] == "init"]) == 2, 20, "it to hang")
        os.kill(pids[1], signal.SIGKILL)
        applied = client.answer(order)["applied"]
        assert applied["ranks"] == 2 and applied["renewed_s"] >= 0, applied
        for pid in (pids[0], pids[2]):
            assert run.calls(pid)[-1]["max_ctas"] == "7" and run.calls(pid)[-1]["rank"].endswith("/2"), run.calls(pid)
        step = client.ask("status")["step"]
        wait_until(lambda: client.ask("status")["step"] > step + 20, 20, "training to go on")


def test_a_replacement_joins_in():
    with NcclRun([*LONG, "comm.replace=true", "nccl.max_ctas=4", "guard.check_every=10"]) as run:
        client = run.wait_for_step(5)
        assert "new communicators" in run.exec("nccl.max_ctas = 6").stderr
        os.kill(run.pids()[1], signal.SIGKILL)
        wait_until(lambda: rebuilds(run, "joined"), 60, "the replacement")
        step = rebuilds(run, "joined")[0]["step"]
        wait_until(lambda: client.ask("status")["step"] > step + 20, 30, "training to go on")
        guest = run.calls(run.pids()[1])
        assert guest[0]["rank"] == "1/2" and guest[0]["max_ctas"] == "6", guest


def test_a_start_that_hangs_is_bounded():
    with NcclRun([*LONG, "comm.init_timeout_s=3"], fault="hang_init:rank=1") as run:
        assert run.finish() != 0
        assert "NCCL: making communicators hasn't returned within 3 s" in run.output(), run.output()


if __name__ == "__main__":
    main([test_a_run_trains_the_same_as_over_mpi, test_a_setting_applies_with_new_communicators,
          test_what_fails_on_one_rank_is_taken_back_on_all, test_the_environment_counts_for_more,
          test_a_killed_rank_is_lost_and_the_others_go_on, test_an_error_of_nccl_has_all_find_together,
          test_a_reduction_that_hangs_is_done_again, test_a_rank_dies_while_communicators_are_made,
          test_a_replacement_joins_in, test_a_start_that_hangs_is_bounded])
