#!/usr/bin/env python3
"""A host is off, or cut off: those that can reach each other go on, and only they."""

import contextlib
import itertools
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

import lab
from host_run import FULL, HostRun, left_on, main, wait_until

TIMEOUT_S = 6
NOTICES_S = TIMEOUT_S + 20  # a question a second; the machine may be busy
OTHERS_CLAIM_S = 3         # for which the smaller side waits
SHORT_CUT_S = 3
LEFT_OUT_S = 5             # once it sees that the others go on


def start(hosts, *names, more=(), options=(), **also):
    return HostRun(hosts, "--host", ",".join(names), *options, ranks=None, **also,
                   assignments=["train.steps=1000000", "ckpt.every=10", f"comm.host_timeout_s={TIMEOUT_S}", "run.threads=1", "log.every=5",
                                *more])


def world(run, host):
    """What the run's status says on a host; nothing where its console isn't there."""
    told = run.on(host, "exec", "-r", str(run.directory), "local s = status(); return s.world_size .. ' ' .. s.step")
    return tuple(int(word) for word in told.stdout.split()) if told.returncode == 0 else (0, 0)


def check_goes_on(run, host, ranks, steps=5):
    before = world(run, host)[1]
    wait_until(lambda: world(run, host)[0] == ranks and world(run, host)[1] > before + steps, 60, f"{steps} steps of {ranks} ranks")
    steps = [line["step"] for line in run.lines("metrics.jsonl") if "train/loss" in line]
    assert steps == sorted(set(steps)), f"more than one writer: {steps}"


def ranks_on(hosts, host):
    return hosts.on(host, "ps", "-eo", "comm=").stdout.split().count("footplate-rank")


def lost_event(run):
    (lost,) = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "rank" and event["data"]["state"] == "lost"]
    return lost


def stop(run, host):
    stopped = run.on(host, "stop", str(run.directory))
    assert stopped.returncode == 0, stopped
    wait_until(run.result, 20, "the result")
    assert run.result()["code"] == 0 and run.result()["checkpoint"], run.result()


def test_a_host_is_off():
    with lab.Lab("h1", "h2", "h3") as hosts:
        with start(hosts, "h1", "h2", "h3") as run:
            run.wait_for_step(12)
            hosts.power_off("h2")
            off = time.monotonic()
            wait_until(lambda: world(run, "h1")[0] == 2, NOTICES_S, "a world of two")
            print(f"# goes on {time.monotonic() - off:.1f} s after the host was off, with a time-out of {TIMEOUT_S} s")
            assert run.on("h1", "exec", "log.every = 3").returncode == 0
            check_goes_on(run, "h1", 2)
            assert "host h2 is declared lost" in (run.directory / "log" / "rank-0.log").read_text()
            assert f"rank 1 of 3 lost at step {lost_event(run)['step']} (host h2: nothing came for {TIMEOUT_S} s)" in lost_event(run)["text"]
            stop(run, "h1")
            assert run.finish(30) == 0, run.output()
        run.check_nothing_left("h1", "h3")


def test_an_mpi_that_is_not_told_of_a_host():
    """As of an Open MPI before 5.0: nobody waits for what can't come, and the next start is without the host."""
    with lab.Lab("h1", "h2", "h3") as hosts:
        with start(hosts, "h1", "h2", "h3", options=["--restarts", "1"], env={"FOOTPLATE_FAULT": "mpi_untold"}) as run:
            run.wait_for_step(12)
            hosts.power_off("h2")
            wait_until(lambda: (run.directory / "result-1.json").exists(), NOTICES_S + 20, "the end of the first start")
            first = run.read_json("result-1.json")
            assert first["code"] == 75 and first["reason"].startswith("host h2 is lost, and this Open MPI can't be told of it"), first
            wait_until(lambda: world(run, "h1")[0] == 2 and world(run, "h1")[1] > first["step"] + 5, 60, "new steps of a world of two")
            stop(run, "h1")
            assert run.finish(30) == 0, run.output()
        run.check_nothing_left("h1", "h3")


def test_a_host_is_off_with_half_of_the_shares():
    """optim.shard: the copies of its two ranks' shares are on the other host."""
    with lab.Lab("h1", "h2") as hosts:
        with start(hosts, "h1:2", "h2:2", more=["optim.shard=1", "ckpt.redundancy=memory", "guard.check_every=10"]) as run:
            run.wait_for_step(12)
            hosts.power_off("h2")
            wait_until(lambda: world(run, "h1")[0] == 2, NOTICES_S, "a world of two")
            check_goes_on(run, "h1", 2, steps=30)
            stop(run, "h1")
            assert run.finish(30) == 0, run.output()
            assert run.result()["recoveries"] == 1, run.result()
        run.check_nothing_left("h1")


def test_the_first_host_is_off_with_a_share_that_nobody_has():
    """Nobody could start the run again: the others go back to a checkpoint in their own processes."""
    with lab.Lab("h1", "h2", "h3") as hosts:
        run = start(hosts, "h1", "h2", "h3", more=["optim.shard=1", "log.every=1"])
        run.wait_for_step(25).close()
        hosts.power_off("h1")
        run.process.wait(20)
        wait_until(lambda: world(run, "h2")[0] == 2, NOTICES_S, "a world of two")
        wait_until(lambda: any(event["topic"] == "rank" for event in run.lines("events.jsonl")), 20, "the event")
        lost = lost_event(run)
        assert f"(host h1: nothing came for {TIMEOUT_S} s)" in lost["text"], lost
        assert lost["left"] >= lost["step"] >= 10 and lost["step"] % 10 == 0, lost

        def steps():
            return [line["step"] for line in run.lines("metrics.jsonl") if "train/loss" in line]
        wait_until(lambda: steps()[-1] > lost["left"] + 5, 60, "steps that are new")
        made = steps()  # what rank 0 hadn't written yet is lost with it
        first = max(i for i, step in enumerate(made) if step == lost["step"] + 1)
        assert made[first:] == list(range(lost["step"] + 1, made[-1] + 1)), (lost, made)
        assert made[:first] == sorted(set(made[:first])) and made[first - 1] <= lost["left"], (lost, made)
        stop(run, "h2")
        run.check_nothing_left("h2", "h3")


def test_a_host_is_off_after_a_rank_has_joined():
    """The joined one has to hear of it, too: nobody finds to a new world with one that waits for the dead."""
    with lab.Lab("h1", "h2", "h3") as hosts:
        with start(hosts, "h1", "h2", "h3", more=["comm.replace=true"]) as run:
            run.wait_for_step(12)
            hosts.on("h2", "pkill", "-KILL", "-x", "footplate-rank")
            wait_until(lambda: (run.directory / "log" / "rank-3.log").exists() and world(run, "h1")[0] == 3, 60, "another rank to join")
            check_goes_on(run, "h1", 3, steps=300)  # it asks the other hosts every second
            hosts.power_off("h3")
            wait_until(lambda: world(run, "h1")[0] == 2, NOTICES_S, "a world of two")
            check_goes_on(run, "h1", 2)
            joined = (run.directory / "log" / "rank-3.log").read_text()
            assert "host h3 is declared lost" in joined, joined
            stop(run, "h1")
            assert run.finish(30) == 0, run.output()
        run.check_nothing_left("h1", "h2")


def test_a_host_is_off_on_which_a_rank_has_joined():
    """That one is of a job of its own for MPI, which the others have to tell of it. mpirun is gone with the host: nobody joins again."""
    with lab.Lab("h1", "h2", "h3") as hosts:
        run = start(hosts, "h1", "h2:2", "h3:2", more=["comm.replace=true"])
        run.wait_for_step(12).close()
        victim = hosts.on("h3", "pgrep", "-n", "-x", "footplate-rank").stdout.strip()
        hosts.on("h3", "kill", "-KILL", victim)
        wait_until(lambda: (run.directory / "log" / "rank-5.log").exists() and world(run, "h1")[0] == 5, 60, "another rank to join")
        check_goes_on(run, "h1", 5)
        hosts.power_off("h1")
        run.process.wait(20)
        wait_until(lambda: world(run, "h2")[0] == 3, NOTICES_S, "a world of three")
        check_goes_on(run, "h2", 3)
        stop(run, "h2")
        run.check_nothing_left("h2", "h3")


def test_the_first_host_is_off():
    """With the supervisor, mpirun, rank 0 and the console: another host has them, but for a supervisor."""
    with lab.Lab("h1", "h2", "h3") as hosts:
        run = start(hosts, "h1", "h2", "h3")
        run.wait_for_step(12)
        hosts.power_off("h1")
        run.process.wait(20)
        wait_until(lambda: world(run, "h2")[0] == 2, NOTICES_S, "a world of two")
        check_goes_on(run, "h2", 2)
        elsewhere = run.on("h3", "status", str(run.directory))
        assert elsewhere.returncode == 4 and "is on host h2" in elsewhere.stderr, elsewhere
        stop(run, "h2")
        run.check_nothing_left("h2", "h3")


def test_a_host_is_off_while_the_disk_is_full():
    """Nobody goes on before the term is written: what is off may only be cut off."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as small:  # each host of the laboratory has a /tmp of its own
        # No room for another file, but for what the logs say: blocks run out in the middle of a line.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,nr_inodes=300", "tmpfs", small], check=True)
        try:
            with lab.Lab("h1", "h2", "h3") as hosts, start(hosts, "h1", "h2", "h3", more=["ckpt.every=0"], runs=small) as run:
                run.directory = pathlib.Path(small) / run.directory.name
                run.wait_for_step(12)
                with no_room_for_files(pathlib.Path(small) / "fillers"):
                    wait_until(lambda: "no space is left on the disk" in run.output(), 20, "the full disk to be told of")
                    hosts.power_off("h3")
                    wait_until(lambda: "the term that says who goes on can't be written" in run.output(), NOTICES_S, "what it waits for")
                wait_until(lambda: world(run, "h1")[0] == 2, 20, "a world of two")
                check_goes_on(run, "h1", 2)
                stop(run, "h1")
                assert run.finish(30) == 0, run.output()
        finally:
            subprocess.run(["umount", "-l", small], check=True)


@contextlib.contextmanager
def no_room_for_files(folder):
    """Takes every file that the file system has left, and each that comes free meanwhile."""
    folder.mkdir()
    ends = threading.Event()

    def fill():
        for number in itertools.count():
            while not ends.is_set():
                try:
                    (folder / str(number)).touch()
                    break
                except OSError:
                    ends.wait(0.005)
            if ends.is_set():
                return

    filler = threading.Thread(target=fill)
    filler.start()
    try:
        yield
    finally:
        ends.set()
        filler.join()
        shutil.rmtree(folder)


def cut_off(names, alone, leads, has_disk):
    """Those on the host `alone` end, and the others go on, led from `leads`."""
    others = len(names) - 1
    with lab.Lab(*names) as hosts:
        with start(hosts, *names) as run:
            run.wait_for_step(12)
            hosts.cut(alone)
            if not has_disk:
                hosts.take_away(alone, run.directory)
            wait_until(lambda: world(run, leads)[0] == others, NOTICES_S, f"a world of {others}")
            if has_disk:
                time.sleep(OTHERS_CLAIM_S + 2)
                assert ranks_on(hosts, alone) == 0, f"ranks of the smaller side are left on {alone}"
                hosts.join(alone)
            else:
                check_goes_on(run, leads, others, steps=300)
                hosts.give_back(alone, run.directory)
                hosts.join(alone)
                wait_until(lambda: ranks_on(hosts, alone) == 0, LEFT_OUT_S, f"the ranks on {alone} to be gone")
            check_goes_on(run, leads, others)
            stop(run, leads)
            assert run.finish(30) == 0, run.output()
        run.check_nothing_left()


def test_the_smaller_side_of_a_cut_ends():
    cut_off(("h1", "h2", "h3"), "h3", "h1", has_disk=True)
    if FULL:
        cut_off(("h1", "h2", "h3"), "h1", "h2", has_disk=True)


def test_of_two_halves_the_one_without_rank_0_ends():
    cut_off(("h1", "h2"), "h2", "h1", has_disk=True)


def test_a_side_that_lost_the_disk_as_well_ends_once_it_has_it_again():
    cut_off(("h1", "h2", "h3"), "h1", "h2", has_disk=False)
    if FULL:
        cut_off(("h1", "h2", "h3"), "h3", "h1", has_disk=False)


def test_a_short_cut_loses_nothing():
    with lab.Lab("h1", "h2") as hosts:
        with start(hosts, "h1", "h2") as run:
            run.wait_for_step(12)
            for alone in ("h1", "h2"):
                hosts.cut(alone)
                time.sleep(SHORT_CUT_S)
                hosts.join(alone)
                check_goes_on(run, "h1", 2, steps=300)  # hosts ask each other every second
            stop(run, "h1")
            assert run.finish(30) == 0 and run.result()["recoveries"] == 0, run.output()
        run.check_nothing_left()
        assert not left_on(hosts, "h2")


if __name__ == "__main__":
    lab.check_possible()
    main([test_a_host_is_off, test_an_mpi_that_is_not_told_of_a_host,
          test_a_host_is_off_with_half_of_the_shares, test_the_first_host_is_off_with_a_share_that_nobody_has, test_a_host_is_off_after_a_rank_has_joined, test_a_host_is_off_on_which_a_rank_has_joined,
          test_the_first_host_is_off, test_a_host_is_off_while_the_disk_is_full, test_the_smaller_side_of_a_cut_ends,
          test_of_two_halves_the_one_without_rank_0_ends, test_a_side_that_lost_the_disk_as_well_ends_once_it_has_it_again, test_a_short_cut_loses_nothing])
