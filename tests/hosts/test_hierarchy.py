#!/usr/bin/env python3
"""Reductions in two levels (comm.hierarchy): of a run on several hosts with several ranks each."""

import lab
from host_run import HostRun, main, wait_until

# Several buckets of gradients, each larger than what is reduced in one level.
LARGE = ["comm.bucket_mb=1", "run.threads=1", "log.every=10", "eval.every=0"]


def start(hosts, places, *assignments):
    """A model of text, whose sums depend on the order in which they are added; the synthetic one's don't."""
    return HostRun(hosts, "--host", places, ranks=None, config="kjv",
                   assignments=[*LARGE, "model.context=32", "train.batch_size=12", "eval.at_end=false", *assignments])


def replay(run):
    """On one machine. What it says at its end."""
    done = run.on("h1", "replay", str(run.directory))
    return done.returncode, done.stderr


def test_a_replay_on_one_machine_adds_in_the_same_order():
    with lab.Lab("h1", "h2") as hosts:
        with start(hosts, "h1:1,h2:2", "train.steps=60") as run:
            client = run.wait_for_step(5)
            applied = client.ask("set", changes={"comm.hierarchy": "off"})
            assert applied["state"] == "applied", applied
            wait_until(lambda: client.ask("status")["step"] > applied["applied"]["step"] + 5, 30, "steps in one level")
            assert client.ask("set", changes={"comm.hierarchy": "auto"})["state"] == "applied"
            client.close()
            assert run.finish(60) == 0, run.output()
        code, text = replay(run)
        assert code == 0 and "is bit-equal to" in text, text
        # The order does count: in one level the sums are others.
        with start(hosts, "h1:1,h2:2", "train.steps=60", "comm.hierarchy=off") as flat:
            assert flat.finish(60) == 0, flat.output()
        assert flat.result()["state_hash"] != run.result()["state_hash"], flat.result()
        run.check_nothing_left()


def test_sharded_state_is_the_same_on_one_machine():
    with lab.Lab("h1", "h2") as hosts:
        with start(hosts, "h1:2,h2:2", "train.steps=40", "optim.shard=1") as run:
            assert run.finish(60) == 0, run.output()
        code, text = replay(run)
        assert code == 0 and "is bit-equal to" in text, text
        with start(hosts, "h1:2,h2:2", "train.steps=40", "optim.shard=1", "comm.hierarchy=off") as flat:
            assert flat.finish(60) == 0, flat.output()
        assert flat.result()["state_hash"] != run.result()["state_hash"], flat.result()


def world(run):
    client = run.try_connect()
    if client is None:
        return 0, 0
    status = client.ask("status")
    client.close()
    return status["world_size"], status["step"]


def test_ranks_and_a_host_are_lost():
    """At any moment of a reduction; the groups become uneven."""
    with lab.Lab("h1", "h2", "h3") as hosts:
        with HostRun(hosts, "--host", "h1:2,h2:2,h3:2", ranks=None,
                     assignments=[*LARGE, "model.elements=2000000", "train.steps=1000000", "comm.host_timeout_s=6", "ckpt.every=0"]) as run:
            run.wait_for_step(5).close()
            for left, host in ((5, "h3"), (4, "h2")):
                victim = hosts.on(host, "pgrep", "-n", "-x", "footplate-rank").stdout.strip()
                hosts.on(host, "kill", "-KILL", victim)
                wait_until(lambda left=left: world(run)[0] == left, 30, f"a world of {left}")
                before = world(run)[1]
                wait_until(lambda before=before: world(run)[1] > before + 10, 60, "more steps")
            hosts.power_off("h3")
            wait_until(lambda: world(run)[0] == 3, 40, "a world of three")
            before = world(run)[1]
            wait_until(lambda: world(run)[1] > before + 10, 60, "more steps")
            stopped = run.on("h1", "stop", str(run.directory))
            assert stopped.returncode == 0, stopped
            assert run.finish(30) == 0, run.output()
        run.check_nothing_left("h1", "h2")


def test_a_rank_that_joins_reduces_as_the_others_do():
    """In as many levels as was ordered before it was there, and grouped with rank 0, which has started it."""
    with lab.Lab("h1", "h2") as hosts:
        with HostRun(hosts, "--host", "h1:2,h2:2", ranks=None,
                     assignments=[*LARGE, "model.elements=2000000", "train.steps=1000000", "comm.replace=true", "ckpt.every=0"]) as run:
            client = run.wait_for_step(5)
            for number, levels in ((4, "off"), (5, "auto")):
                assert client.ask("set", changes={"comm.hierarchy": levels})["state"] == "applied"
                victim = hosts.on("h2", "pgrep", "-n", "-x", "footplate-rank").stdout.strip()
                hosts.on("h2", "kill", "-KILL", victim)
                log = run.directory / "log" / f"rank-{number}.log"
                wait_until(lambda log=log: log.exists() and world(run)[0] == 4, 60, "another rank to join")
                before = world(run)[1]
                wait_until(lambda before=before: world(run)[1] > before + 10, 60, "more steps")
            assert run.end(client, 30) == 0, run.output()
        run.check_nothing_left()


if __name__ == "__main__":
    lab.check_possible()
    main([test_a_replay_on_one_machine_adds_in_the_same_order, test_sharded_state_is_the_same_on_one_machine,
          test_ranks_and_a_host_are_lost, test_a_rank_that_joins_reduces_as_the_others_do])
