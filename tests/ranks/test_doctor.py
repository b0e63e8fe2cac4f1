#!/usr/bin/env python3
"""footplate doctor with real ranks: what it tries works on this machine, and nothing is left of it."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid

from harness import BIN, FULL, main, surroundings, wait_until
from leftovers import PRIVATE, folders_of, marked, name_of


class Doctor:
    """One that runs. A thread looks on which private folders it and what it starts hold locks: of an id that nobody else knows."""

    def __init__(self, *options, **variables):
        self.folder = tempfile.mkdtemp(prefix="fp-doctor-")
        self.mark = f"FOOTPLATE_TEST_MARK={uuid.uuid4().hex}"
        self.ids = set()
        self.before = set(PRIVATE.glob("*.d"))  # of which it looks whether they are abandoned, and locks those that are
        environment = surroundings(self.folder, FOOTPLATE_TEST_MARK=self.mark.split("=")[1], **variables)
        self.process = subprocess.Popen([str(BIN / "footplate"), "doctor", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, cwd=self.folder, env=environment)
        self.watch = threading.Thread(target=self.look_for_folders)
        self.watch.start()

    def look_for_folders(self):
        while self.process.returncode is None:
            for pid in marked(self.mark):
                with contextlib.suppress(OSError):  # it has ended
                    for file in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                        path = pathlib.Path(os.path.realpath(file))
                        if path.parent == PRIVATE and path.suffix == ".d" and path not in self.before and \
                                "FLOCK" in pathlib.Path(f"/proc/{pid}/fdinfo/{file.name}").read_text():
                            self.ids.add(path.stem)
            time.sleep(0.02)

    def left(self):
        return [*(f"process {pid} {name_of(pid)}" for pid in marked(self.mark)), *(str(path) for run_id in self.ids for path in folders_of(run_id))]

    def finish(self, timeout_s, runs=0):
        """What it said on stdout and stderr; then nothing is left of it and of the `runs` that it started."""
        out, err = self.process.communicate(timeout=timeout_s)
        self.watch.join()
        assert len(self.ids) == 1 + runs, self.ids
        wait_until(lambda: not self.left(), 10, f"nothing to be left, as this was: {self.left()}")
        assert not os.path.exists(os.path.join(self.folder, "runs")), "it made a run of the user's"
        shutil.rmtree(self.folder)
        return out, err


def examine(*options, runs=0, **variables):
    """{name: check}, the exit code."""
    doctor = Doctor("--json", *options, **variables)
    out, err = doctor.finish(1200, runs)
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert err == "", err
    return checks, doctor.process.returncode


def check_verdicts(checks, code, **expected):
    for name, verdict in expected.items():
        check = checks[name.replace("_", " ").replace("all reduce", "all-reduce")]
        assert check["verdict"] == verdict, check
    assert code == (1 if any(check["verdict"] == "to mend" for check in checks.values()) else 0), (code, checks)


# A job of two hosts, one of which nobody can reach: what doctor tries is on this machine.
JOB = {"SLURM_JOBID": "5", "SLURM_JOB_ID": "5", "SLURM_JOB_NUM_NODES": "2", "SLURM_NNODES": "2", "SLURM_TASKS_PER_NODE": "1(x2)",
       "SLURM_NODELIST": "nohost[1-2]", "SLURM_JOB_NODELIST": "nohost[1-2]"}


def test_all_of_it():
    elements = 500_000_000 if FULL else 3_000_000
    checks, code = examine("--elements", str(elements), runs=1, **JOB)
    large = "left out" if checks["large reduction"]["verdict"] == "left out" else "good"  # a machine with little memory
    check_verdicts(checks, code, versions="good", environment="good", products="good", fault_tolerance="good", all_reduce="good", large_reduction=large,
                   evaluation="good")
    assert checks["versions"]["values"]["libtorch_file"].endswith("libtorch_cpu.so"), checks["versions"]
    for name in ("all-reduce", "large reduction"):
        values = checks[name]["values"]
        assert large == "left out" or (values["wrong"] == 0 and values["ranks"] == 2 and values["seconds"] > 0), values
    assert checks["products"]["values"]["ratio"] > 0, checks["products"]
    assert checks["fault tolerance"]["values"]["survivors"] == 1, checks["fault tolerance"]
    assert checks["evaluation"]["values"]["recorded"] >= 3, checks["evaluation"]


def test_bare_surroundings():
    checks, code = examine("--quick", HOME=None, TERM=None, NO_COLOR="1")
    check_verdicts(checks, code, fault_tolerance="good", all_reduce="good", evaluation="left out")


def test_an_mpirun_that_fails():
    checks, code = examine("--quick", FOOTPLATE_MPIRUN="/bin/false")
    check_verdicts(checks, code, fault_tolerance="to mend", all_reduce="to mend")


def test_hosts():
    """One host under two names, and one that doesn't exist: the way of an error, without any ssh server."""
    hosts = f"localhost,{socket.gethostname()},nowhere.invalid"
    checks, code = examine("--quick", "--host", hosts)
    check_verdicts(checks, code, host_localhost="good", hosts_together="good")
    link = checks[f"link localhost - {socket.gethostname()}"]
    assert link["verdict"] == "good" and "measured inside one host" in link["found"], link
    assert link["values"]["gb_per_s"] > 0.02 and link["values"]["latency_us"] > 0, link
    nowhere = checks["host nowhere.invalid"]
    assert nowhere["verdict"] == "to mend" and "nowhere.invalid" in nowhere["mend"] + nowhere["found"], nowhere


AGENT = """#!/bin/sh
host=$1
shift
[ "$host" != silent ] || { echo "$$" > "$0.silent"; exec sleep 600; }
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec unshare --map-root-user --uts sh -c "hostname $host && $*"
"""


def test_hosts_of_their_own_names():
    """Stands in for ssh with a namespace for each host's name: Open MPI takes them for several hosts and goes over TCP."""
    if subprocess.run(["unshare", "--map-root-user", "--uts", "hostname", "n1"], capture_output=True, check=False).returncode != 0:
        return print("  left out: no namespaces here", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        agent = pathlib.Path(folder) / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o755)
        checks, code = examine("--quick", "--host", "n1,n2:2,n3", PRTE_MCA_plm_ssh_agent=str(agent))
        check_verdicts(checks, code, host_n1="good", host_n2="good", host_n3="good", hosts_together="good")
        assert checks["hosts together"]["values"]["hosts"] == ["n1", "n2", "n3"], checks["hosts together"]
        for pair in (("n1", "n2"), ("n1", "n3"), ("n2", "n3")):
            link = checks[" - ".join(pair).join(["link ", ""])]
            assert link["values"]["hosts"] == list(pair) and link["values"]["gb_per_s"] > 0, link
        if FULL:  # a host that never answers: a minute
            checks, code = examine("--quick", "--host", "silent", PRTE_MCA_plm_ssh_agent=str(agent))
            assert "starts no process within 60 s" in checks["host silent"]["found"], checks["host silent"]


def test_interrupted():
    doctor = Doctor("--elements", "3000000")
    for line in doctor.process.stdout:
        if " fault tolerance " in line:
            break
    doctor.process.send_signal(signal.SIGTERM)
    _, err = doctor.finish(120)
    assert doctor.process.returncode == 1 and "interrupted by SIGTERM" in err, (doctor.process.returncode, err)


if __name__ == "__main__":
    main([test_all_of_it, test_bare_surroundings, test_an_mpirun_that_fails, test_hosts, test_hosts_of_their_own_names, test_interrupted])
