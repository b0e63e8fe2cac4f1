#!/usr/bin/env python3
"""footplate doctor with real ranks: what it tries works on this machine, and nothing is left of it."""

import fcntl
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

import leftovers
from harness import BIN, FULL, main, wait_until

PRIVATE = pathlib.Path(f"/tmp/footplate-{os.getuid()}")
SHARED = pathlib.Path("/dev/shm")


def is_held(folder):
    """Whether a run, or a doctor, still needs its private folder: it holds a lock on it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


def places():
    """All that is left outside of run directories by what has ended; other runs may live beside this test."""
    found = {(path, path.name.split(".")[0]) for path in PRIVATE.glob("*")}
    found |= {(path, path.name.split("-")[-1]) for path in SHARED.glob(f"footplate-{os.getuid()}-*")}
    return {str(path) for path, run_id in found if not is_held(PRIVATE / f"{run_id}.d")} | leftovers.of_dead_processes()


def start(*options, **variables):
    environment = {name: value for name, value in {**os.environ, **variables}.items() if value is not None}
    return subprocess.Popen([str(BIN / "footplate"), "doctor", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=environment)


def examine(*options, **variables):
    """{name: check}, the exit code."""
    before = places()
    process = start("--json", *options, **variables)
    out, err = process.communicate(timeout=1200)
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    wait_until(lambda: places() <= before, 10, f"nothing to be left: {places() - before}")
    assert err == "", err
    return checks, process.returncode


def check_verdicts(checks, code, **expected):
    for name, verdict in expected.items():
        check = checks[name.replace("_", " ").replace("all reduce", "all-reduce")]
        assert check["verdict"] == verdict, check
    assert code == (1 if any(check["verdict"] == "to mend" for check in checks.values()) else 0), (code, checks)


def test_all_of_it():
    elements = 500_000_000 if FULL else 3_000_000
    checks, code = examine("--elements", str(elements))
    large = "left out" if checks["large reduction"]["verdict"] == "left out" else "good"  # a machine with little memory
    check_verdicts(checks, code, versions="good", environment="good", fault_tolerance="good", all_reduce="good", large_reduction=large,
                   evaluation="good")
    assert checks["versions"]["values"]["libtorch_file"].endswith("libtorch_cpu.so"), checks["versions"]
    for name in ("all-reduce", "large reduction"):
        values = checks[name]["values"]
        assert large == "left out" or (values["wrong"] == 0 and values["ranks"] == 2 and values["seconds"] > 0), values
    assert checks["fault tolerance"]["values"]["survivors"] == 1, checks["fault tolerance"]
    assert checks["evaluation"]["values"]["recorded"] >= 3, checks["evaluation"]


def test_bare_surroundings():
    with tempfile.TemporaryDirectory() as folder:
        checks, code = examine("--quick", HOME=None, TERM=None, NO_COLOR="1", FOOTPLATE_RUNS=folder)
        check_verdicts(checks, code, fault_tolerance="good", all_reduce="good", evaluation="left out")
        assert os.listdir(folder) == []


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
    before = places()
    process = start("--elements", "3000000")
    for line in process.stdout:
        if " fault tolerance " in line:
            break
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1 and "interrupted by SIGTERM" in err, (process.returncode, err)
    wait_until(lambda: places() <= before, 10, f"nothing to be left: {places() - before}")


if __name__ == "__main__":
    main([test_all_of_it, test_bare_surroundings, test_an_mpirun_that_fails, test_hosts, test_hosts_of_their_own_names, test_interrupted])
