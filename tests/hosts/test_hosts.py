#!/usr/bin/env python3
"""Runs on several hosts (lab.py): starts, steering, losses, ends, and what is left behind on each."""

import re
import shlex
import subprocess
import time

import lab
from host_run import HERE, LEFT_WITHIN_S, UID, HostRun, left_on, main, wait_until

def test_trains_on_three_hosts():
    """With nothing else set, and docker0 on all of them, which leads nowhere."""
    with lab.Lab("h1", "h2", "h3") as hosts:
        for host in hosts.hosts:
            hosts.give_docker(host)
        begun = time.monotonic()
        with HostRun(hosts, "--host", "h1,h2,h3", assignments=["train.steps=20"], ranks=None) as run:
            assert run.finish(60) == 0 and "the clock of host" not in run.output(), run.output()
        print(f"# done {time.monotonic() - begun:.1f} s after the command")
        assert run.lines("starts.jsonl")[0]["hosts"] == ["h1", "h2", "h3"], run.lines("starts.jsonl")
        assert run.record()["hosts"] == "h1:1,h2:1,h3:1", run.record()
        run.check_nothing_left()
        # The hosts are kept: what goes on is where it was.
        again = HostRun(hosts, "--resume", "auto", name=run.directory.name, command=["run", "--batch", "--name", run.directory.name,
                        "--resume", "auto", "train.steps=30"])
        with again:
            assert again.finish(60) == 0, again.output()
        assert again.lines("starts.jsonl")[-1]["hosts"] == ["h1", "h2", "h3"], again.lines("starts.jsonl")
        again.check_nothing_left()


def test_steers_all_hosts():
    with lab.Lab("h1", "h2") as hosts:
        with HostRun(hosts, "--host", "h1:1,h2:2", assignments=["train.steps=1000000"], ranks=None) as run:
            client = run.wait_for_step(5)
            assert client.ask("status")["world_size"] == 3
            done = run.on("h1", "exec", "log.every = 7")
            assert done.returncode == 0 and "log.every" in done.stderr, done
            wait_until(lambda: all(run.applied(rank) for rank in range(3)), 10, "the order on all ranks")
            assert run.applied(0) == run.applied(1) == run.applied(2), [run.applied(rank) for rank in range(3)]
            stacks = run.on("h1", "exec", "return ranks.stacks(1)")
            assert stacks.returncode == 0 and "train" in stacks.stdout, stacks
            # From another host by what stands for ssh, said there or once for all.
            via = str(HERE / "agent.py")
            there = run.on("h2", "exec", "--via", via, "return [[it's \"h1\", ]] .. log.every")
            assert there.stdout == 'it\'s "h1", 7\n', there
            run.environment["FOOTPLATE_VIA"] = via
            assert '"step":' in run.on("h2", "status", "--json").stdout and run.on("h1", "exec", "return log.every").stdout == "7\n"
            stopped = run.on("h2", "stop")
            assert stopped.returncode == 0, stopped
            assert run.finish(60) == 0, run.output()
        assert run.result()["checkpoint"], run.result()
        run.check_nothing_left()


def test_what_ties_the_hosts_together_is_killed():
    """By SIGKILL, alone. The ranks that hear of it save; nothing is left; and the run goes on from its checkpoint."""
    for host, program, said in (("h1", "footplate", "signal"), ("h1", "prterun|mpirun", "^mpirun was ended by SIGKILL$"),
                                ("h2", "prted", "mpirun has ended the ranks, since it can't reach a host")):
        with lab.Lab("h1", "h2") as hosts:
            with HostRun(hosts, "--host", "h1,h2", assignments=["train.steps=1000000", "ckpt.every=10"], ranks=None) as run:
                run.wait_for_step(12).close()
                with open(run.directory / "log" / "batch.log", "a", encoding="ascii") as log:
                    log.write(("a line of a long start".ljust(99) + "\n") * 20_000)  # what mpirun says comes behind it
                hosts.on(host, "pkill", "-9", "-x", program)
                run.process.wait(20)
            wait_until(run.result, 20, f"the result after {program}")
            run.check_nothing_left()
            result = run.result()
            assert result["code"] == 75 and re.search(said, result["reason"]) and result["checkpoint"], (program, result)
            again = run.on("h1", "run", "--batch", "--name", run.directory.name, "--resume", "auto", f"train.steps={result['step'] + 20}")
            assert again.returncode == 0 and run.result()["step"] == result["step"] + 20, (program, again)
            assert run.lines("starts.jsonl")[-1]["step"] >= 10, (program, run.lines("starts.jsonl"))


def test_a_rank_on_another_host_is_killed():
    with lab.Lab("h1", "h2", "h3") as hosts:
        with HostRun(hosts, "--host", "h1,h2,h3", assignments=["train.steps=1000000"], ranks=None) as run:
            client = run.wait_for_step(5)
            [pid] = [rank["pid"] for rank in run.record()["ranks"] if rank["host"] == "h2"]
            hosts.on("h2", "kill", "-KILL", str(pid))
            wait_until(lambda: client.ask("status")["world_size"] == 2, 30, "a world of two")
            step = client.ask("status")["step"]
            wait_until(lambda: client.ask("status")["step"] > step + 5, 30, "steps after the loss")
            # What was its host's is gone while the run goes on, but for the daemon of mpirun.
            wait_until(lambda: all("prte" in name for name in left_on(hosts, "h2")), LEFT_WITHIN_S, "h2 to be clean")
            assert run.on("h1", "stop").returncode == 0
            assert run.finish(60) == 0, run.output()
        run.check_nothing_left()


def pasted(hosts, hint):
    """Runs what an error says to try, as a shell here would: `ssh HOST WORDS` gives the words, joined, to a shell there."""
    words = shlex.split(re.search(r"; try: (ssh [^;]*)", hint).group(1))[1:]
    host, *command = words[1:] if words[0] == "-t" else words
    return subprocess.run([*hosts.inside(host), "sh", "-c", " ".join(command)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=60, check=False)


def test_every_command_from_every_host_after_rank_0_has_moved():
    """Each answers, or what it says to try does."""
    with lab.Lab("h1", "h2", "h3") as hosts:
        with HostRun(hosts, "--host", "h1,h2,h3", assignments=["train.steps=1000000", "ckpt.every=20"], ranks=None) as run:
            run.wait_for_step(40)
            hosts.on("h1", "pkill", "-KILL", "-x", "footplate-rank")
            folder = str(run.directory)
            wait_until(lambda: run.on("h2", "exec", "-r", folder, "return status().world_size").stdout.strip() == "2", 30, "rank 0 on h2")
            of_the_console = [("status",), ("status", "--json", folder), ("exec", "-r", folder, 'return "on " .. status().ranks[1].host'),
                              ("exec", "log.every = 7")]
            of_the_folder = [("ls",), ("log", folder), ("inspect", folder), ("report", folder, "-o", "/tmp/report.html"),
                             ("export", folder, "--to", "csv", "-o", "/tmp/metrics.csv")]
            for host in ("h1", "h2", "h3"):
                for command in of_the_folder:
                    told = run.on(host, *command)
                    assert told.returncode == 0 and told.stdout, (host, command, told)
                for command in of_the_console:
                    told = run.on(host, *command)
                    if host != "h2":
                        assert told.returncode == 4 and "run t0 is on host h2" in told.stderr, (host, command, told)
                        told = pasted(hosts, told.stderr)
                    assert told.returncode == 0, (host, command, told)
                    assert "return" not in " ".join(command) or told.stdout == "on h2\n", (host, told)
            refused = run.on("h3", "stop", "--now", folder)
            assert refused.returncode != 0 and run.process.poll() is None, refused
            assert "is on host h1; there: footplate stop" in refused.stderr, refused
            stopped = pasted(hosts, run.on("h3", "stop", folder).stderr)
            assert stopped.returncode == 0, stopped
            assert run.finish(60) == 0, run.output()
            for host in ("h1", "h2", "h3"):
                assert "ended" in run.on(host, "status", folder).stdout
                assert "go on with" in run.on(host, "exec", "-r", folder, "return 1").stderr
        run.check_nothing_left()


def test_all_of_the_first_host_is_killed():
    """The supervisor, mpirun and rank 0: the ranks of other hosts save and end by themselves."""
    with lab.Lab("h1", "h2") as hosts:
        run = HostRun(hosts, "--host", "h1,h2", assignments=["train.steps=1000000"], ranks=None)
        run.wait_for_step(5)
        hosts.on("h1", "pkill", "-KILL", "-f", "footplate|mpirun|prte", check=False)
        run.process.wait(30)
        run.check_nothing_left("h2")


def test_the_environment_reaches_every_host():
    """A fault is asked for by a variable. One is a clock that is wrong, of which the start tells."""
    with lab.Lab("h1", "h2") as hosts:
        with HostRun(hosts, "--host", "h1,h2", assignments=["train.steps=10", "guard.nonfinite=stop"], ranks=None,
                     env={"FOOTPLATE_FAULT": "nan_grad:rank=1:step=5,clock:rank=1:s=3600"}) as run:
            code = run.finish(60)
        assert code != 0 and run.result()["step"] <= 6, (code, run.result(), run.output())
        assert re.search("the clock of host h2 is 3(599|60[0-9]) s ahead of that of host h1", run.output()), run.output()
        run.check_nothing_left()


def test_each_host_may_know_the_others_by_other_addresses():
    """As on Debian, where a host's own name leads to itself; and one that is wrong."""
    with lab.Lab("h1", "h2") as hosts:
        others = hosts.folder / "hosts-of-h2"
        others.write_text("127.0.1.1 h2\n10.77.0.99 h1\n")
        hosts.on("h2", "mount", "--bind", str(others), "/etc/hosts")
        with HostRun(hosts, "--host", "h1,h2", assignments=["train.steps=20"], ranks=None) as run:
            assert run.finish(60) == 0, run.output()
        run.check_nothing_left()


def test_a_firewall_leaves_a_range_of_ports():
    """Also for what rings other hosts, without which none of them is watched, and for what asks them all before a restart."""
    with lab.Lab("h1", "h2", "h3") as hosts:
        for host in hosts.hosts:
            hosts.close(host, "20000-20031")
        with HostRun(hosts, "--host", "h1:2,h2,h3", assignments=["train.steps=1000000", "comm.ports=20000-20031", "comm.host_timeout_s=6"],
                     ranks=None) as run:
            run.wait_for_step(20)
            assert run.on("h1", "exec", "run.restart()").returncode == 0
            wait_until(lambda: len(run.lines("starts.jsonl")) == 2, 60, "the second start")
            assert run.lines("starts.jsonl")[1]["hosts"] == ["h1", "h1", "h2", "h3"], (run.lines("starts.jsonl"), run.output())
            run.wait_for_step(run.lines("starts.jsonl")[1]["step"] + 5)
            hosts.power_off("h2")
            wait_until(lambda: run.on("h1", "exec", "return status().world_size").stdout.strip() == "3", 26, "a world of three")
            assert run.on("h1", "stop", str(run.directory)).returncode == 0
            assert run.finish(60) == 0, run.output()
        run.check_nothing_left("h1", "h3")
        for ports, said in (("20000", "one is written 20000-20063"), ("20000-20017", "too few for the 9 ranks of host h1, which take 33")):
            code, told = refused(hosts, "--host", "h1:9", assignments=[f"comm.ports={ports}"])
            assert code == 2 and said in told, told


def refused(hosts, *options, assignments=(), within_s=15, **more):
    begun = time.monotonic()
    with HostRun(hosts, *options, assignments=["train.steps=5", *assignments], ranks=more.pop("ranks", None), **more) as run:
        code = run.finish(60)
    assert time.monotonic() - begun < within_s, time.monotonic() - begun
    return code, run.output()


def test_starts_that_fail_name_the_host():
    with lab.Lab("h1", "h2", "h3") as hosts:
        hosts.power_off("h3")
        code, said = refused(hosts, "--host", "h1,h2,h3")
        assert code == 1 and "host h3 starts no process: ssh: connect to host h3 port 22: No route to host; check: h3 is off" in said, said
        code, said = refused(hosts, "--host", "h1,nosuch")
        assert code == 1 and "host nosuch starts no process" in said and "is the name right? getent hosts nosuch" in said, said
        code, said = refused(hosts, "--host", "h1,h2", runs="/tmp/runs-of-h1")
        assert code == 2 and "host h2 doesn't see the run's folder /tmp/runs-of-h1/" in said and "FOOTPLATE_RUNS=" in said, said
        code, said = refused(hosts, "--host", "h2,h1")
        assert code == 2 and "the first host has to be this machine, h1" in said, said
        code, said = refused(hosts, "--host", "h1:2,h2", ranks=5)
        assert code == 2 and "5 ranks don't fit into the 3 slots of h1:2,h2:1" in said, said
        code, said = refused(hosts, "--host", "h1,h2", assignments=["comm.network=eth7"])
        assert code == 2 and "no interface 'eth7'; it has eth0 (10.77.0.0/24)" in said, said
        hosts.on("h2", "rm", "-rf", f"/tmp/footplate-{UID}")
        hosts.on("h2", "mkdir", f"/tmp/footplate-{UID}")
        hosts.on("h2", "chown", "nobody", f"/tmp/footplate-{UID}")
        code, said = refused(hosts, "--host", "h1,h2")
        assert code == 1 and f"host h2: /tmp/footplate-{UID} belongs to another user" in said, said


if __name__ == "__main__":
    lab.check_possible()
    main([test_trains_on_three_hosts, test_steers_all_hosts, test_a_rank_on_another_host_is_killed, test_what_ties_the_hosts_together_is_killed,
          test_every_command_from_every_host_after_rank_0_has_moved, test_all_of_the_first_host_is_killed,
          test_the_environment_reaches_every_host,
          test_each_host_may_know_the_others_by_other_addresses, test_a_firewall_leaves_a_range_of_ports, test_starts_that_fail_name_the_host])
