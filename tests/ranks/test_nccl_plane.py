#!/usr/bin/env python3
"""Gradients over NCCL's functions, with a library in NCCL's place that reduces host memory between the ranks
(tests/unit/cuda/nccl_stand_in.cpp): what a run trains, what can be changed live, and what follows where it fails."""

import json
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading

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


def events(run, topic):
    """What events.jsonl has of a topic so far."""
    found = []
    for line in (pathlib.Path(run.directory) / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event.get("topic") == topic:
            found.append(event["data"])
    return found


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
        assert run.lines("starts.jsonl")[-1]["versions"]["nccl"] == "2.28.9", run.lines("starts.jsonl")
        for pid in run.pids():
            calls = run.calls(pid)
            assert [call["call"] for call in calls] == ["init", "destroy"], calls
            assert calls[0]["blocking"] == "0" and int(calls[1]["reductions"]) > 40 * 34, calls


def test_nccl_reduces_in_one_piece_until_somebody_says_otherwise():
    """MPI's pieces of a million elements would be a launch on the device each."""
    with NcclRun(["train.steps=10", "model.elements=2500000", "run.threads=1", "eval.at_end=false"]) as run:
        assert run.finish() == 0, run.output()
        few = int(run.calls(run.pids()[0])[-1]["reductions"])
    with NcclRun(["train.steps=10", "model.elements=2500000", "run.threads=1", "eval.at_end=false",
                  "comm.chunk_elements=1000000"]) as run:
        assert run.finish() == 0, run.output()
        assert int(run.calls(run.pids()[0])[-1]["reductions"]) == few + 20, few  # three pieces instead of one


def test_pieces_go_to_nccl_together():
    def finished(*assignments):
        with NcclRun(["train.steps=10", "model.elements=2500000", "comm.chunk_elements=250000", "run.threads=1",
                      "eval.at_end=false", *assignments]) as run:
            assert run.finish() == 0, run.output()
            made = run.calls(run.pids()[1])[-1]
            return int(made["reductions"]), int(made["groups"]), run.result()["state_hash"]

    reductions, groups, state = finished("nccl.coalesce=1")
    assert reductions == groups and reductions % 10 == 1, (reductions, groups)  # a probe, and the same in each step
    assert finished("nccl.coalesce=4") == (reductions, 1 + 10 * math.ceil((reductions - 1) / 10 / 4), state)
    with NcclRun(LONG) as run:
        run.wait_for_step(2).close()
        assert "applied at step" in run.exec("nccl.coalesce = 2").stderr
        answer = run.exec("nccl.coalesce = 0")
        assert answer.returncode == 3 and "1 to 1024" in answer.stderr, answer


def test_a_setting_applies_with_new_communicators():
    with NcclRun([*LONG, "nccl.min_ctas=2"]) as run:
        run.wait_for_step(5).close()
        answer = run.exec("nccl.max_ctas = 8; nccl.cga_cluster_size = 2; nccl.net = 'Socket'")
        assert answer.returncode == 0, answer
        assert re.search(r"nccl.max_ctas 0 -> 8, nccl.cga_cluster_size -1 -> 2, nccl.net \"\" -> Socket, new communicators at step \d+ on 2/2 ranks, "
                         r"\d+\.\d s", answer.stderr), answer
        both = [run.calls(pid) for pid in run.pids()]
        for calls in both:
            assert [call["call"] for call in calls] == ["init", "abort", "init"], calls
            assert [call.get("max_ctas") for call in calls] == ["unset", None, "8"], calls
            assert calls[0]["min_ctas"] == "2" == calls[2]["min_ctas"] and calls[2]["cga_cluster_size"] == "2", calls
            assert [call.get("net") for call in calls] == ["unset", None, "Socket"], calls
        assert both[0][1]["reductions"] == both[1][1]["reductions"], both  # the same step
        answer = run.exec("return nccl.rebuild():wait().seconds < 60")
        assert answer.stdout.strip() == "true", answer
        wait_until(lambda: len(run.calls(run.pids()[1])) == 5, 10, "the rebuild")
        assert "applied at step" in run.exec("nccl.max_ctas = 8; log.every = 7").stderr  # nothing to renew
        shown = run.exec("nccl.show()").stdout
        assert re.search(r"nccl.max_ctas +8 .*new communicators", shown) and re.search(r"nccl.nvls .*next start", shown), shown
        assert "NCCL_MIN_CTAS" not in log_of(run, 0)  # as a variable it would count for more
        answer = run.exec(f"nccl.net = '{'x' * 64}'")
        assert answer.returncode == 3 and "can't have 64 characters; allowed: 0 to 63" in answer.stderr, answer
        answer = run.exec("nccl.min_ctas = 16")
        assert answer.returncode == 3 and "is larger than nccl.max_ctas (8, from order" in answer.stderr, answer


def test_what_waits_for_the_next_start_is_in_force_after_a_restart():
    with NcclRun(LONG) as run:
        client = run.wait_for_step(20)
        assert client.ask("pending") == []
        client.ask("set", changes={"nccl.ib_timeout": 22, "log.every": 7})
        pending = client.ask("pending")
        assert [(item["name"], item["value"]) for item in pending] == [("nccl.ib_timeout", 22)], pending
        assert "NCCL_IB_TIMEOUT" not in log_of(run, 1)
        client.ask("call", action="run.restart")
        wait_until(lambda: len(run.lines("starts.jsonl")) == 2, 60, "the second start")
        client = run.wait_for_step(run.lines("starts.jsonl")[1]["step"] + 1)
        assert client.ask("pending") == []
        assert client.ask("get", names=["nccl.ib_timeout"])["nccl.ib_timeout"]["value"] == 22
        assert re.search("NCCL_IB_TIMEOUT.*22", log_of(run, 1)), log_of(run, 1)
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()


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
    limits = ["comm.small_timeout_s=1"]
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
        joining = run.calls(run.pids()[1])
        assert joining[0]["rank"] == "1/2" and joining[0]["max_ctas"] == "6", joining


def test_a_start_that_hangs_is_bounded():
    bound_s = 10  # of MPI's start as well, which takes several on a busy machine
    with NcclRun([*LONG, f"comm.init_timeout_s={bound_s}"], fault="hang_init:rank=1") as run:
        assert run.finish() != 0
        # A rank says so itself, or footplate run says it of both: whose clock began first. Never of another part of the start.
        said = (f"NCCL: making communicators hasn't returned within {bound_s} s",
                f"all 2 ranks are in the making of NCCL's communicators and none comes out of it within {bound_s} s")
        assert any(words in run.output() for words in said), run.output()


def test_nccls_log_level_counts_at_once():
    with NcclRun([*LONG, "nccl.debug=warn"]) as run:
        run.wait_for_step(5).close()
        assert "NCCL's NCCL_DEBUG=WARN (nccl.debug, command line)" in log_of(run, 1)
        assert "applied at step" in run.exec("nccl.set{ debug = 'info', debug_subsystems = 'INIT,TUNING' }").stderr
        assert "applied at step" in run.exec("log.every = 7").stderr
        assert "applied at step" in run.exec("nccl.set{ debug = 'auto', debug_subsystems = '' }").stderr
        for pid in run.pids():
            told = [(call["level"], call["subsystems"]) for call in run.calls(pid) if call["call"] == "log"]
            assert told == [("INFO", "INIT,TUNING"), ("unset", "unset")], told
    with NcclRun(LONG, env={"NCCL_DEBUG": "VERSION"}) as run:
        run.wait_for_step(5).close()
        answer = run.exec("nccl.debug = 'info'")
        assert answer.returncode == 5 and "environment of footplate run" in answer.stderr, answer


class Ras:
    """Stands for NCCL's RAS: a line protocol over TCP."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"localhost:{self.listener.getsockname()[1]}"
        self.heard = []
        self.thread = threading.Thread(target=self.serve, args=(answer,), daemon=True)
        self.thread.start()

    def serve(self, answer):
        while True:
            client, _ = self.listener.accept()
            with client, client.makefile("rb") as lines:
                for line in lines:
                    self.heard.append(line.decode().strip())
                    if b"PROTOCOL" in line:
                        client.sendall(b"SERVER PROTOCOL 2\n")
                    elif b"STATUS" in line:
                        for part in answer:
                            client.sendall(part)
                        break
                    else:
                        client.sendall(b"OK\n")


def test_nccls_own_view_can_be_asked_for():
    ras = Ras([b"NCCL version 2.28.9\n", b"Job summary\n\x1b[2J" + b"x" * 70000])
    with NcclRun(LONG, env={"NCCL_RAS_ADDR": ras.address}) as run:
        run.wait_for_step(5).close()
        answer = run.exec("return nccl.ras()")
        assert answer.stdout.startswith("NCCL version 2.28.9\nJob summary\n"), answer
        assert "\x1b" not in answer.stdout and answer.stdout.count("x") >= 70000, answer.stdout[:200]
        assert ras.heard == ["CLIENT PROTOCOL 2", "TIMEOUT 5", "STATUS"], ras.heard
        run.exec("return nccl.ras{ verbose = true }")
        assert ras.heard[-1] == "VERBOSE STATUS", ras.heard
        answer = run.exec("nccl.ras{ verbos = true }")
        assert answer.returncode == 3 and "did you mean verbose?" in answer.stderr, answer
    with NcclRun(LONG) as run, NcclRun(LONG, name="u") as other:  # each has a port of its own
        ports = set()
        for one in (run, other):
            one.wait_for_step(5).close()
            answer = one.exec("nccl.ras()")
            assert answer.returncode == 1 and "nobody answers at localhost:" in answer.stderr, answer
            ports.add(re.search(r"localhost:(\d+)", answer.stderr).group(1))
        assert len(ports) == 2, ports


MEASURE = """
local begun = nccl.measure{ steps = 20 }:wait()
run.wait{ step = begun.last + 3 }
local found = nccl.profile():wait()
local row = found.collectives[1]
assert(#found.collectives == 1 and found.unfinished == 0 and found.step_ms > 0 and row.count >= 20, found)
return row.algorithm .. " " .. row.protocol .. " " .. row.channels
"""


def test_rules_count_from_the_next_collective_on():
    with NcclRun([*LONG, "guard.check_every=20"]) as run:
        run.wait_for_step(5).close()
        assert run.exec(MEASURE).stdout.strip() == "ring simple 2", run.exec(MEASURE)
        answer = run.exec("nccl.rules = 'tree rign'")
        assert answer.returncode == 3 and "did you mean 'ring'?" in answer.stderr, answer
        answer = run.exec("nccl.rules = '..64MiB tree ll 4 channels'")
        assert answer.returncode == 3 and "nccl.min_ctas (0, from default)" in answer.stderr and "set that first" in answer.stderr, answer
        answer = run.exec("nccl.rules = '..64MiB tree ll'")
        assert re.search(r"applied at step \d+ on 2/2 ranks", answer.stderr), answer
        assert run.exec(MEASURE).stdout.strip() == "tree ll 2"
        answer = run.exec("nccl.set{ min_ctas = 4, rules = '..64MiB tree ll 4 channels' }")
        assert "new communicators" in answer.stderr, answer
        assert run.exec(MEASURE).stdout.strip() == "tree ll 4"
        answer = run.exec("nccl.rules = ''; nccl.algo = 'tree'; nccl.proto = 'no_ll128'")
        assert answer.returncode == 0, answer
        assert run.exec(MEASURE).stdout.strip() == "tree ll 2", "the cheapest but LL128"
        inits = [call for call in run.calls(run.pids()[0]) if call["call"] == "init"]
        assert len(inits) == 2, inits  # of the start, and for min_ctas
        table = run.exec("nccl.show()").stdout
        assert re.search(r'nccl.algo +"tree" .*next collective +NCCL_ALGO\n', table), table
        assert not events(run, "warn"), events(run, "warn")  # the ranks were compared: they decided alike
        run.exec("run.stop()")
        assert run.finish() == 0, run.output()
        both = [run.calls(pid)[-1]["tuned"] for pid in run.pids()]
        assert both[0] == both[1] and "Tree/LL/4" in both[0] and "Tree/LL/2" in both[0], both
        assert "NCCL_ALGO" not in log_of(run, 0)


def test_a_newer_library_is_told_the_rule_with_the_call():
    with NcclRun(LONG, env={"FOOTPLATE_STAND_IN_VERSION": "23100"}) as run:
        run.wait_for_step(3).close()
        assert "gradients go over NCCL 2.31.0" in log_of(run, 1)
        answer = run.exec("nccl.set{ min_ctas = 4, rules = '..64MiB tree ll 4 channels' }")
        assert answer.returncode == 0, answer
        assert run.exec(MEASURE).stdout.strip() == "tree ll 4"
        run.exec("run.stop()")
        assert run.finish() == 0, run.output()
        both = [run.calls(pid)[-1]["asked"] for pid in run.pids()]
        assert both[0] == both[1] and re.fullmatch(r"TREE_LL\+\^TREE_LL128/4:\d+", both[0]), both


def test_what_nccl_cant_do_is_said_and_done_otherwise():
    with NcclRun([*LONG, "nccl.algo=nvls"]) as run:
        run.wait_for_step(5).close()
        run.exec("nccl.rules = 'nvls_tree'")
        warned = wait_until(lambda: events(run, "warn"), 20, "a warning")[0]["text"]
        assert re.match(r"NCCL can't do all_reduces of \d+ bytes here as nccl.rules, nccl.algo or nccl.proto ask: it took ring, simple",
                        warned), warned
        assert run.exec(MEASURE).stdout.strip() == "ring simple 2"


def test_a_rank_that_decides_otherwise_is_named():
    with NcclRun([*LONG, "guard.check_every=0"], fault="odd_costs:rank=1") as run:
        run.wait_for_step(5).close()
        run.exec("nccl.rules = 'no_ll128'")  # the best one: by other costs another one
        warned = wait_until(lambda: events(run, "warn"), 20, "a warning")[0]["text"]
        assert warned.startswith("rank 1 tunes NCCL otherwise than rank 0: "), warned
        assert "NCCL chooses by itself from here on" in warned, warned
        step = run.exec("return run.step").stdout
        run.wait_for_step(int(step) + 20).close()
        assert run.exec("nccl.rules = 'tree simple'").returncode == 0
        assert run.exec(MEASURE).stdout.strip() == "tree simple 2"
        assert len(events(run, "warn")) == 1, events(run, "warn")  # by rules that leave no choice they decide alike


def test_a_rank_that_joins_goes_by_no_other_rules_than_the_rest():
    """They have left the choice to NCCL, and it would begin with the rules: ranks that choose differently hang. So does whoever
    takes the same rules again."""
    odd = "odd_trees:rank=0,alike:init=3"
    with NcclRun([*LONG, "comm.replace=true", "guard.check_every=0"], fault=odd) as run:
        client = run.wait_for_step(5)
        run.exec("nccl.rules = 'tree'")
        warned = wait_until(lambda: events(run, "warn"), 20, "a warning")[0]["text"]
        assert "NCCL chooses by itself from here on" in warned, warned
        os.kill(run.pids()[1], signal.SIGKILL)
        wait_until(lambda: rebuilds(run, "joined"), 60, "the replacement")
        step = rebuilds(run, "joined")[0]["step"]
        wait_until(lambda: client.ask("status")["step"] > step + 20, 30, "training to go on")
        assert len(rebuilds(run, "rebuilt")) == 0, events(run, "comm")
        assert run.exec(MEASURE).stdout.strip() == "ring simple 2", "as NCCL chooses"
        assert len(events(run, "warn")) == 1, events(run, "warn")
        assert run.exec("nccl.rules = 'tree simple'").returncode == 0
        assert run.exec(MEASURE).stdout.strip() == "tree simple 2", "by rules that leave no choice"


def test_another_tuner_of_the_users_stays():
    with NcclRun(LONG, env={"NCCL_TUNER_PLUGIN": "libnccl-tuner-own.so"}) as run:
        run.wait_for_step(5).close()
        answer = run.exec("nccl.algo = 'tree'")
        assert answer.returncode == 5 and "names another tuner than footplate's" in answer.stderr, answer
    with NcclRun([*LONG, "nccl.algo=tree"], env={"NCCL_TUNER_PLUGIN": "libnccl-tuner-own.so"}) as run:
        assert run.finish() == 2 and "names another tuner" in run.output(), run.output()


def test_a_trial_is_kept_or_put_back():
    with NcclRun(LONG) as run:
        run.wait_for_step(5).close()
        answer = run.exec("return nccl.try{ set = { algo = 'tree', max_size = '64MiB' }, steps = 20, "
                          "keep_if = function(before, after) return after.collectives[1].algorithm == 'tree' end }.kept")
        assert answer.stdout.strip() == "true", answer
        assert run.exec("return nccl.rules").stdout.strip() == "..64MiB tree"
        answer = run.exec("return nccl.try{ set = { proto = 'll', rules = '' }, steps = 20, keep_if = function() return false end }.text")
        assert re.match(r"trial of nccl.proto = ll, nccl.rules = : [\d.]+ -> [\d.]+ ms/step \(\+?-?[\d.]+ %\), put back\n", answer.stdout), answer
        answer = run.exec("return nccl.try{ set = { algo = 'ring' }, steps = 10, keep_if = function() return false end }.text")  # a rule counts first
        assert "put back; algorithms, protocols and channels were the same as before" in answer.stdout, answer
        assert run.exec("return nccl.rules .. ' ' .. nccl.proto").stdout.strip() == "..64MiB tree auto"
        answer = run.exec("nccl.try{ set = { algo = 'ring' }, steps = 5, keep_if = function() error('no idea') end }")
        assert answer.returncode == 3 and "what was before is back" in answer.stderr and "no idea" in answer.stderr, answer
        assert run.exec("return nccl.algo").stdout.strip() == "auto"
        for wrong, said in (("nccl.try{ set = {} }", "needs what to set"),
                            ("nccl.try{ set = { algo = 'ring' }, stesp = 5 }", "did you mean steps?"),
                            ("nccl.try{ set = { algo = 'ring' }, steps = 0 }", "1 or more"),
                            ("nccl.try{ set = { algo = 'rign', max_size = 5 } }", "did you mean 'ring'?"),
                            ("nccl.tune{ budget_steps = 3 }", "too few")):
            answer = run.exec(wrong)
            assert answer.returncode in (2, 3) and said in answer.stderr, (wrong, answer)
        assert run.exec("return nccl.rules").stdout.strip() == "..64MiB tree"
        tuned = run.exec("return nccl.tune{ budget_steps = 60, steps = 10 }")
        assert re.search(r"nccl.tune: 5 trials, [\d.]+ -> [\d.]+ ms/step, nccl.rules = ", tuned.stdout), tuned
        journal = (pathlib.Path(run.directory) / "journal.lua").read_text()
        assert journal.count("trial of") == 8, journal
        wait_until(lambda: len([event for event in events(run, "note") if "text" in event]) == 9, 20, "the nine notes in the record")


def test_an_interrupted_trial_puts_back_what_was():
    with NcclRun(LONG) as run:
        run.wait_for_step(5).close()
        trial = subprocess.Popen([str(run.program), "exec", "-r", str(run.directory), "nccl.try{ set = { algo = 'tree' }, steps = 100 }"],
                                 env=run.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: run.exec("return nccl.algo").stdout.strip() == "tree", 20, "the change")
        trial.send_signal(signal.SIGINT)
        _, said = trial.communicate(timeout=20)
        assert trial.returncode == 3 and re.search("interrupted;.* what was before is back", said), said
        assert "nccl.algo tree -> auto, applied at step" in said, said
        assert run.exec("return nccl.algo").stdout.strip() == "auto"


if __name__ == "__main__":
    main([test_a_run_trains_the_same_as_over_mpi, test_nccl_reduces_in_one_piece_until_somebody_says_otherwise,
          test_pieces_go_to_nccl_together, test_a_setting_applies_with_new_communicators,
          test_what_waits_for_the_next_start_is_in_force_after_a_restart,
          test_what_fails_on_one_rank_is_taken_back_on_all, test_the_environment_counts_for_more,
          test_a_killed_rank_is_lost_and_the_others_go_on, test_an_error_of_nccl_has_all_find_together,
          test_a_reduction_that_hangs_is_done_again, test_a_rank_dies_while_communicators_are_made,
          test_a_replacement_joins_in, test_a_start_that_hangs_is_bounded, test_nccls_log_level_counts_at_once,
          test_nccls_own_view_can_be_asked_for, test_rules_count_from_the_next_collective_on,
          test_a_newer_library_is_told_the_rule_with_the_call, test_what_nccl_cant_do_is_said_and_done_otherwise, test_a_rank_that_decides_otherwise_is_named,
          test_a_rank_that_joins_goes_by_no_other_rules_than_the_rest, test_another_tuner_of_the_users_stays, test_a_trial_is_kept_or_put_back,
          test_an_interrupted_trial_puts_back_what_was])
