"""Hosts for tests, all on one machine: each has its own name, network, processes, clock, /tmp and /dev/shm.

A host is a process in namespaces of its own (host.py) at the end of a cable (veth) that leads to a switch (a bridge in a
namespace of its own). The laboratory's folder and everything outside /tmp is the same on all of them, as on hosts that share a
disk. A remote start goes through agent.py in ssh's place. Needs root, and a kernel that lends namespaces.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLOCKS_APART_S = 100000  # what the hosts' monotonic clocks differ by
READY_S = 30


def address(host):
    return f"10.77.0.{int(host[1:]) + 10}"


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def check_possible():
    """Ends the program where there can be no hosts: ctest takes the line for a skipped test. What can be installed isn't missing."""
    if os.geteuid() != 0:
        sys.exit("skipped: no hosts here: namespaces need root")
    tried = run("unshare", "--net", "--uts", "--ipc", "--pid", "--mount", "--time", "--fork", "sh", "-c",
                "ip link add br0 type bridge && ip link add name x0 type veth peer name x1", check=False)
    if tried.returncode != 0 and "not found" in tried.stderr:
        raise AssertionError(f"hosts need the program ip (scripts/deps --test): {tried.stderr}")
    if tried.returncode != 0:
        sys.exit(f"skipped: no hosts here: the kernel lends no namespaces: {tried.stderr.strip()}")


class Lab:
    """`with Lab("h1", "h2") as lab:` hosts that are up; all of them are gone at its end."""

    def __init__(self, *hosts):
        # The hosts share it, and it has sockets, which TMPDIR may have no room for in a path.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-lab-", dir="/tmp"))
        self.hosts = {}  # name: pid of its first process
        self.processes = []
        try:
            self.switch = self.start(["unshare", "--net", "--kill-child", "--fork", "sh", "-c", "ip link set lo up && exec sleep infinity"])
            self.in_switch("link", "add", "br0", "type", "bridge")
            self.in_switch("link", "set", "br0", "up")
            (self.folder / "hosts").write_text("".join(f"{address(host)} {host}\n" for host in ("h1", "h2", "h3", "h4", "h5")))
            for host in hosts:
                self.up(host)
        except BaseException:
            self.down()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    def start(self, command):
        """Pid of the process that `unshare --fork` has made."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        self.processes.append(process)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        return self.wait_for(lambda: children.exists() and children.read_text().split(), f"{command[-1]} to begin", process)[0]

    def wait_for(self, condition, what, process):
        end = time.monotonic() + READY_S
        while not (value := condition()):
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"waited in vain for {what}")
            time.sleep(0.01)
        return value

    def in_switch(self, *arguments):
        run("nsenter", "--target", self.switch, "--net", "ip", *arguments)

    def up(self, host):
        offset = str(int(host[1:]) * CLOCKS_APART_S)
        (self.folder / f"ready-{host}").unlink(missing_ok=True)
        pid = self.start(["unshare", "--net", "--uts", "--ipc", "--pid", "--mount", "--time", "--monotonic", offset, "--boottime", offset,
                          "--fork", "--kill-child", sys.executable, str(HERE / "host.py"), host, str(self.folder), str(ROOT)])
        run("ip", "link", "add", "eth0", "netns", pid, "type", "veth", "peer", "name", f"v-{host}", "netns", self.switch)
        self.in_switch("link", "set", f"v-{host}", "master", "br0", "up")
        self.hosts[host] = pid
        run(*self.inside(host), "ip", "addr", "add", f"{address(host)}/24", "dev", "eth0")
        run(*self.inside(host), "ip", "link", "set", "eth0", "up")
        self.wait_for((self.folder / f"ready-{host}").exists, f"{host} to be up", self.processes[-1])

    def inside(self, host):
        """What a command begins with that runs on `host`."""
        return ["nsenter", "--target", self.hosts[host], "--net", "--uts", "--ipc", "--pid", "--mount", "--time"]

    def on(self, host, *command, check=True):
        return run(*self.inside(host), *command, check=check)

    def give_docker(self, host):
        """As docker makes it everywhere: the same address on each host, and no way to another."""
        self.on(host, "ip", "link", "add", "docker0", "type", "bridge")
        self.on(host, "ip", "addr", "add", "172.17.0.1/16", "dev", "docker0")
        self.on(host, "ip", "link", "set", "docker0", "up")

    def close(self, host, ports):
        """A firewall: others begin nothing with the host but at these ports."""
        chain = "ip firewall input"
        rules = ("iif lo accept", "ip protocol icmp accept", "tcp flags & (syn | ack) != syn accept",
                 f"meta l4proto {{ tcp, udp }} th dport {ports} accept")
        self.on(host, "nft", "; ".join(["add table ip firewall", f"add chain {chain} {{ type filter hook input priority 0; policy drop; }}",
                                        *(f"add rule {chain} {rule}" for rule in rules)]))

    def power_off(self, host):
        """At once, without a word to anybody."""
        self.in_switch("link", "set", f"v-{host}", "down")
        os.kill(int(self.hosts.pop(host)), signal.SIGKILL)

    def cut(self, host):
        self.in_switch("link", "set", f"v-{host}", "down")

    def join(self, host):
        self.in_switch("link", "set", f"v-{host}", "up")

    def take_away(self, host, folder):
        """What the host sees of the disk that has this folder is nothing, and nothing can be written there: as of a file system of
        the network. Files that are open stay so."""
        self.on(host, "mount", "-t", "tmpfs", "-o", "ro", "away", str(folder))

    def give_back(self, host, folder):
        self.on(host, "umount", str(folder))

    def down(self):
        for process in reversed(self.processes):
            process.kill()  # --kill-child: the first process of the host goes, and with it all others
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
