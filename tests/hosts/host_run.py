"""A run that is started on the first host of a laboratory (lab.py)."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "ranks"))

from harness import BIN, FULL, Client, Run, main, wait_until  # noqa: E402,F401
from leftovers import UID  # noqa: E402

LEFT_WITHIN_S = 5  # after an end, on every host


def left_on(hosts, host):
    """Processes and files of runs on a host."""
    names = hosts.on(host, "ps", "-eo", "comm=").stdout.split()
    running = [name for name in names if name.startswith(("footplate", "prte", "mpirun"))]
    files = hosts.on(host, "find", f"/tmp/footplate-{UID}", "/dev/shm", "-mindepth", "1", check=False).stdout.split()
    return running + files + [file for file in hosts.on(host, "ls", "/tmp").stdout.split() if file.startswith(("prted", "ompi"))]


class HostRun(Run):
    """A batch run that is started on h1."""

    def __init__(self, hosts, *options, assignments=(), env=None, runs=None, **more):
        self.lab = hosts
        variables = {"FOOTPLATE_TEST_LAB": str(hosts.folder), "PRTE_MCA_plm_ssh_agent": str(HERE / "agent.py"), **(env or {})}
        if runs:
            variables["FOOTPLATE_RUNS"] = runs
        name = more.pop("name", f"t{len(list((hosts.folder).glob('*.out')))}")
        super().__init__(assignments, config=more.pop("config", "synthetic"), name=name, env=variables, folder=hosts.folder, wrapper=hosts.inside("h1"),
                         options=options, ranks=more.pop("ranks", 2), **more)

    def try_connect(self):
        """From outside the host its /tmp is beneath /proc."""
        try:
            return Client(f"/proc/{self.lab.hosts['h1']}/root{self.record()['socket']}")
        except (ConnectionError, FileNotFoundError, KeyError):
            return None

    def wait_for_step(self, step=1, timeout_s=60):
        client = wait_until(lambda: self.try_connect() or self.ended(), timeout_s, f"the console; so far:\n{self.output()}")
        wait_until(lambda: client.ask("status").get("step", 0) >= step, timeout_s, f"step {step}")
        return client

    def ended(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the run ended with {self.process.returncode}:\n{self.output()}")

    def on(self, host, *command):
        return subprocess.run([*self.lab.inside(host), str(self.program), *command], env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)

    def check_nothing_left(self, *hosts):
        for host in hosts or self.lab.hosts:
            try:
                wait_until(lambda host=host: not left_on(self.lab, host), LEFT_WITHIN_S, f"{host} to be clean")
            except AssertionError as error:
                raise AssertionError(f"{error}: {left_on(self.lab, host)}") from None
