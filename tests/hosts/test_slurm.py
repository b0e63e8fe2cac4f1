#!/usr/bin/env python3
"""Jobs of a real Slurm: its hosts, the end of its time, its signals, and hosts that it loses. 20 minutes, so only with FOOTPLATE_FULL=1."""

import json
import os
import sys
import time

import lab
from host_run import BIN, FULL, main
from slurm_lab import ENDED, SlurmLab, missing

TEMPLATE = lab.ROOT / "scripts" / "jobs" / "slurm" / "several_nodes.sh"
SMALL = ["run.threads=1", "ckpt.every=10"]


class Job:
    """A job of the project's template, or with a `prefix` before footplate."""

    def __init__(self, cluster, *arguments, options=(), env=None, name="s", prefix=""):
        self.cluster = cluster
        self.directory = cluster.folder / "runs" / name
        words = ["synthetic", "--name", name, *SMALL, *arguments]
        if prefix:
            options = [*options, f"--wrap={prefix} {BIN}/footplate run --batch " + " ".join(words)]
        else:
            options = [*options, str(TEMPLATE), *words]
        variables = {"FOOTPLATE_RUNS": f"{cluster.folder}/runs", "PATH": f"{BIN}:{os.environ['PATH']}", **(env or {})}
        self.number = cluster.submit(*options, variables=variables)

    def shown(self, key):
        return self.cluster.job(self.number)[key]

    def wait(self, timeout_s, state="COMPLETED"):
        found = self.cluster.wait_until(lambda: (now := self.shown("JobState")) in ENDED and now, timeout_s, f"the end of job {self.number}")
        assert found == state, f"{found}: {self.cluster.output()}"

    def json(self, name):
        path = self.directory / name
        return json.loads(path.read_text()) if path.exists() else {}

    def starts(self):
        path = self.directory / "starts.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for_step(self, step, timeout_s=60):
        def done():
            path = self.directory / "metrics.jsonl"
            lines = path.read_text().splitlines() if path.exists() else []
            return any(json.loads(line).get("step", 0) >= step for line in lines)
        self.cluster.wait_until(done, timeout_s, f"step {step}")


def test_the_hosts_of_a_job_are_taken_as_they_are():
    with SlurmLab("h1", "h2", "h3") as cluster:
        for name, prefix in (("batch", ""), ("step", "srun -n 1 -N 1")):
            job = Job(cluster, "train.steps=40", options=["--nodes=3", "--ntasks-per-node=1", "--time=5"], name=name, prefix=prefix)
            job.wait(60)
            assert [start["hosts"] for start in job.starts()] == [["h1", "h2", "h3"]], job.starts()
            assert job.json("run.json")["hosts"] == "h1:1,h2:1,h3:1" and job.json("run.json")["slurm_job"] == job.number
            limit = job.json("config-1.json")["run.time_limit"]  # 22.05 has no variable for it
            assert limit["source"] == f"Slurm's end of job {job.number}" and 150 < limit["value"] <= 225, limit
        two = Job(cluster, "train.steps=40", "-n", "2", options=["--nodes=3", "--ntasks-per-node=1", "--time=5"], name="two")
        two.wait(60)
        assert two.json("run.json")["hosts"] == "h1:1,h2:1" and two.json("run.json")["spare_hosts"] == 1, two.json("run.json")


def test_a_job_goes_on_after_the_end_of_its_time():
    """Without SLURM_JOB_END_TIME: the limit is 45 s of the minute. The state is that of a run that nothing ended."""
    with SlurmLab("h1", "h2") as cluster:
        steps = ["train.steps=600", "model.step_ms=100"]
        job = Job(cluster, *steps, options=["--nodes=2", "--ntasks-per-node=1", "--time=1"])
        job.wait(300)
        assert job.shown("Restarts") == "1", cluster.output()
        assert [start["step"] > 0 for start in job.starts()] == [False, True], job.starts()
        assert job.json("result.json")["state_hash"] == undisturbed(cluster, 600, ["--nodes=2", "--ntasks-per-node=1", "--time=5"]), cluster.output()


def undisturbed(cluster, steps, options):
    calm = Job(cluster, f"train.steps={steps}", options=options, name="calm")
    calm.wait(60)
    return calm.json("result.json")["state_hash"]


def test_a_signal_before_the_first_step_puts_the_job_back_once():
    """The first start hangs, and is told of the end of its time; the next one doesn't hang."""
    with SlurmLab("h1") as cluster:
        job = Job(cluster, "-n", "2", "train.steps=40", "--requeue", "--resume", "auto",
                  options=["--nodes=1", "--time=5", "--requeue", "--open-mode=append"],
                  prefix='[ -n "$SLURM_RESTART_COUNT" ] || export FOOTPLATE_FAULT=start_hang:rank=1; exec')
        cluster.wait_until(lambda: "waiting for rank 1" in cluster.output(), 60, "the start that hangs")
        cluster.ask("scancel", "--signal=USR1", "--batch", job.number)
        job.wait(300)
        assert job.shown("Restarts") == "1" and len(job.starts()) == 1, (job.starts(), cluster.output())
        assert job.json("result.json")["state_hash"] == undisturbed(cluster, 40, ["--nodes=1", "--ntasks-per-node=2", "--time=5"]), cluster.output()


def test_no_job_goes_round_for_ever():
    with SlurmLab("h1") as cluster:
        job = Job(cluster, "-n", "2", env={"FOOTPLATE_FAULT": "start_hang:rank=1"}, options=["--nodes=1", "--time=1", "--signal=B:USR1@55"])
        job.wait(300, "FAILED")
        assert job.shown("Restarts") == "1" and not job.starts(), cluster.output()
        assert "is not put back into the queue: it was put back before, and nothing was saved since" in cluster.output(), cluster.output()


def test_a_node_that_is_off_costs_its_ranks():
    with SlurmLab("h1", "h2", "h3") as cluster:
        job = Job(cluster, "train.steps=1500", "model.step_ms=20", "comm.host_timeout_s=5",
                  options=["--nodes=3", "--ntasks-per-node=1", "--time=10", "--no-kill"])
        job.wait_for_step(30)
        cluster.power_off("h3")
        job.wait(180)
        result, starts = job.json("result.json"), job.starts()
        assert job.shown("Restarts") == "0" and result["step"] == 1500, cluster.output()
        # Slurm would end mpirun's step: the others save, and start again without h3, which counts as no failure.
        assert result["restarts"] == 0 and [start["hosts"] for start in starts] == [["h1", "h2", "h3"], ["h1", "h2"]], cluster.output()
        assert "host h3 is lost, and Slurm will end mpirun's step" in cluster.output(), cluster.output()


def test_a_node_that_is_off_ends_a_job_that_is_put_back():
    """Without --no-kill."""
    with SlurmLab("h1", "h2", "h3") as cluster:
        job = Job(cluster, "train.steps=1500", "model.step_ms=20", options=["--nodes=2", "--ntasks-per-node=1", "--time=10"])
        job.wait_for_step(30)
        cluster.power_off("h2")
        job.wait(300)
        assert job.shown("Restarts") == "1", cluster.output()
        assert [start["hosts"] for start in job.starts()] == [["h1", "h2"], ["h1", "h3"]] and job.starts()[1]["step"] >= 30, job.starts()
        assert job.json("result.json")["state_hash"] == undisturbed(cluster, 1500, ["--nodes=2", "--ntasks-per-node=1", "--time=5"]), cluster.output()


def test_with_ssh_a_node_that_is_off_ends_nothing():
    """PRTE_MCA_plm=ssh: mpirun has no step that Slurm could end."""
    with SlurmLab("h1", "h2", "h3") as cluster:
        ssh = {"PRTE_MCA_plm": "ssh", "PRTE_MCA_plm_ssh_agent": str(lab.HERE / "agent.py"), "FOOTPLATE_TEST_LAB": str(cluster.folder)}
        job = Job(cluster, "train.steps=1500", "model.step_ms=20", "comm.host_timeout_s=5", env=ssh,
                  options=["--nodes=3", "--ntasks-per-node=1", "--time=10", "--no-kill"])
        job.wait_for_step(30)
        cluster.power_off("h3")
        job.wait(180)
        result, starts = job.json("result.json"), job.starts()
        assert job.shown("Restarts") == "0" and (result["step"], result["recoveries"], result["restarts"]) == (1500, 1, 0), cluster.output()
        assert [start["hosts"] for start in starts] == [["h1", "h2", "h3"]], cluster.output()


def test_the_host_of_the_script_is_off():
    """Slurm puts the job back; the next start takes the run over at once, though a minute hasn't passed."""
    with SlurmLab("h1", "h2", "h3") as cluster:
        job = Job(cluster, "train.steps=1500", "model.step_ms=20", options=["--nodes=2", "--ntasks-per-node=1", "--time=10"])
        job.wait_for_step(30)
        off = time.monotonic()
        cluster.power_off("h1")
        cluster.wait_until(lambda: len(job.starts()) == 2, 240, "the second start")
        print(f"# goes on {time.monotonic() - off:.0f} s after the host was off")
        job.wait(120)
        assert job.shown("Restarts") == "1", cluster.output()
        assert [start["hosts"] for start in job.starts()] == [["h1", "h2"], ["h2", "h3"]] and job.starts()[1]["step"] >= 30, job.starts()
        assert job.json("result.json")["state_hash"] == undisturbed(cluster, 1500, ["--nodes=2", "--ntasks-per-node=1", "--time=5"]), cluster.output()


if __name__ == "__main__":
    if not FULL:
        print("skipped: Slurm's tests take 20 minutes (scripts/test --full)")
        sys.exit(0)
    lab.check_possible()
    if missing():
        raise AssertionError(f"Slurm isn't installed: {' '.join(missing())} (scripts/deps --full)")
    main([test_the_hosts_of_a_job_are_taken_as_they_are, test_a_job_goes_on_after_the_end_of_its_time,
          test_a_signal_before_the_first_step_puts_the_job_back_once, test_no_job_goes_round_for_ever,
          test_a_node_that_is_off_costs_its_ranks, test_a_node_that_is_off_ends_a_job_that_is_put_back,
          test_with_ssh_a_node_that_is_off_ends_nothing, test_the_host_of_the_script_is_off])
