#!/usr/bin/env python3
"""After the loss of a host the run is started again where that is better: on a spare host, or before mpirun ends it."""

import lab
from host_run import HostRun, main, wait_until
from test_lost_host import check_goes_on, stop, world

SETTINGS = ["ckpt.every=10", "comm.host_timeout_s=6", "run.threads=1"]
ENDLESS = "train.steps=1000000"


def hosts_of(run):
    return run.record().get("hosts")


def wait_for_hosts(run, hosts, ranks):
    wait_until(lambda: hosts_of(run) == hosts and world(run, "h1")[0] == ranks, 60, f"a start on {hosts}")


def test_a_spare_host_takes_the_place_of_a_lost_one():
    with lab.Lab("h1", "h2", "h3", "h4") as hosts:
        with HostRun(hosts, "--host", "h1,h2,h3,h4", "--spare", "1", ranks=None, assignments=[ENDLESS, *SETTINGS]) as run:
            run.wait_for_step(12)
            assert hosts_of(run) == "h1:1,h2:1,h3:1", run.record()
            hosts.power_off("h2")
            wait_for_hosts(run, "h1:1,h3:1,h4:1", 3)
            check_goes_on(run, "h1", 3)
            stop(run, "h1")
            assert run.finish(30) == 0, run.output()
            assert run.result()["restarts"] == 0, run.result()
            assert "host h2 is lost, and h4 can take its place" in run.output(), run.output()
            assert "host h2 starts no process, and is left out: ssh: connect to host h2" in run.output(), run.output()
            first, second = run.lines("starts.jsonl")
            assert second["hosts"] == ["h1", "h3", "h4"] and second["step"] > 12, (first, second)
            # The hosts of the first command still count, and h2 is still off.
            end = run.result()["step"] + 20
            again = run.on("h1", "run", "--batch", "--name", run.directory.name, "--resume", "auto", f"train.steps={end}")
            assert again.returncode == 0 and run.result()["step"] == end, again
            assert "3 of 3 ranks, 1 on h1, 1 on h3, 1 on h4" in again.stderr, again.stderr
        run.check_nothing_left("h1", "h3", "h4")


def test_after_another_loss_the_run_is_started_again():
    with lab.Lab("h1", "h2", "h3") as hosts:
        with HostRun(hosts, "--host", "h1,h2,h3", ranks=None, assignments=[ENDLESS, *SETTINGS]) as run:
            run.wait_for_step(12)
            hosts.power_off("h2")
            wait_until(lambda: world(run, "h1")[0] == 2, 30, "a world of two")
            check_goes_on(run, "h1", 2)
            assert len(run.lines("starts.jsonl")) == 1, "a host less is no reason to start again"
            [pid] = [line.split()[0] for line in hosts.on("h3", "ps", "-eo", "pid=,comm=").stdout.splitlines() if "footplate-rank" in line]
            hosts.on("h3", "kill", "-9", pid)
            wait_for_hosts(run, "h1:1,h3:1", 2)
            check_goes_on(run, "h1", 2)
            stop(run, "h1")
            assert run.finish(30) == 0 and run.result()["restarts"] == 0, run.output()
            assert "2 of 3 ranks, 1 on h1, 1 on h3" in run.output(), run.output()
        run.check_nothing_left("h1", "h3")


def test_a_restart_leaves_out_a_host_that_is_off():
    with lab.Lab("h1", "h2", "h3") as hosts:
        with HostRun(hosts, "--host", "h1,h2,h3", "-n", "5", "--restarts", "1", ranks=None,
                     assignments=["train.steps=60", "model.step_ms=30", "comm.on_loss=stop", *SETTINGS]) as run:
            run.wait_for_step(12)
            hosts.power_off("h2")
            assert run.finish(90) == 0, run.output()
            result, starts = run.result(), run.lines("starts.jsonl")
            assert result["step"] == 60 and result["restarts"] == 1, result
            assert [start["world_size"] for start in starts] == [5, 4] and starts[1]["step"] >= 10, starts
            assert "restart 1 of 1, in 1 s" in run.output() and "4 of 5 ranks, 2 on h1, 2 on h3" in run.output(), run.output()
        run.check_nothing_left("h1", "h3")


if __name__ == "__main__":
    lab.check_possible()
    main([test_a_spare_host_takes_the_place_of_a_lost_one, test_after_another_loss_the_run_is_started_again,
          test_a_restart_leaves_out_a_host_that_is_off])
