#!/usr/bin/env python3
"""The host of a run's supervisor is lost, and its ranks with it: another host takes the run over."""

import json
import time

import lab
from host_run import HostRun, main, wait_until

LEASE_ENDS_S = 60
TAKES_OVER_S = 90
NOTICES_S = 10  # a rank that its start is over


def processes(hosts, host, name):
    return [line.split()[0] for line in hosts.on(host, "ps", "-eo", "pid=,comm=").stdout.splitlines() if name in line]


def test_the_run_goes_on_from_another_host():
    with lab.Lab("h1", "h2") as hosts:
        run = HostRun(hosts, "--host", "h1,h2", assignments=["train.steps=1000000", "ckpt.every=5", "comm.host_timeout_s=0"], ranks=None)
        run.wait_for_step(12)
        wait_until(lambda: list(run.directory.glob("checkpoints/main/step-*[1-9][05]")), 20, "a checkpoint of step 10 or later")
        off = time.monotonic()
        hosts.power_off("h1")
        run.process.wait(20)
        [stale] = processes(hosts, "h2", "footplate-rank")[:1]
        # Until then it may be alive, and is left in peace; the hint is the command as it was typed.
        said = run.on("h2", "exec", "return 1")
        assert said.returncode == 4 and f"ssh h1 'FOOTPLATE_RUNS={run.directory.parent} {run.program} exec '\\''return 1'\\'''" in said.stderr, said
        again = ["run", "--batch", "--name", run.directory.name, "--resume", "auto", "--host", "h2", "train.steps=200"]
        refused = run.on("h2", *again)
        assert refused.returncode == 2 and "a live run has the name" in refused.stderr, refused
        wait_until(lambda: "lost" in run.on("h2", "ls", "-a").stdout, LEASE_ENDS_S + 30, "the run to be lost")
        assert time.monotonic() - off > LEASE_ENDS_S - 15, "the lease ended early"
        # A start that comes to nothing leaves it lost, and nobody has to wait again.
        for _ in range(2):
            refused = run.on("h2", *again, "model.elements=999")
            assert refused.returncode == 2 and "is as it was" in refused.stderr, refused
            assert "lost" in run.on("h2", "ls", "-a").stdout, run.on("h2", "ls", "-a")
        taken = run.on("h2", *again)
        print(f"# taken over and done {time.monotonic() - off:.0f} s after the host was off")
        assert taken.returncode == 0, taken
        assert time.monotonic() - off < TAKES_OVER_S, "it took too long"
        wait_until(lambda: stale not in processes(hosts, "h2", "footplate-rank"), NOTICES_S, "the rank that was cut off to end")
        result = json.loads((run.directory / "result.json").read_text())
        assert result["code"] == 0 and result["step"] == 200, result
        starts = run.lines("starts.jsonl")
        assert [start["hosts"] for start in starts] == [["h1", "h2"], ["h2"]] and starts[1]["step"] >= 10, starts
        assert "the run has gone on without this rank" in (run.directory / "log" / "rank-1.log").read_text()
        run.check_nothing_left("h2")


if __name__ == "__main__":
    lab.check_possible()
    main([test_the_run_goes_on_from_another_host])
