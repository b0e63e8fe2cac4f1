#!/usr/bin/env python3
"""Runs a command on a machine as others leave it, and clears that up again.

    tests/dirty_machine.py [--user NAME] COMMAND…       for example: tests/dirty_machine.py scripts/test --fast -L ranks

Beside the command there are: segments and session folders of dead MPI programs in /dev/shm and /tmp, the folders of a lost run
of footplate, a job of mpirun, and two live runs of footplate, of the same user and the same home. The command's HOME has a blank
in its name, and TMPDIR is set, to a path that is too long for a socket. What scripts/deps installed is still found
(FOOTPLATE_CACHE), but with --user: that runs the command, and both runs, as somebody else. Root alone may say so, and that
user has to be able to read the programs (FOOTPLATE_BIN, or build/release/bin).

Ends with the code of the command; with 1 where that was 0 and one of the runs or the job didn't live through it, or a foreign
file is gone.
"""

import argparse
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = pathlib.Path(os.environ.get("FOOTPLATE_BIN", ROOT / "build" / "release" / "bin"))
TMPDIR_LENGTH = 120  # a socket's path has at most 108 bytes
LOST_RUN = "0dead0ff"


def mpirun():
    """The one that the programs were built for (cmake's cache has it), or the one on PATH."""
    with contextlib.suppress(OSError):
        for line in (BIN.parent / "CMakeCache.txt").read_text().splitlines():
            if line.startswith("FOOTPLATE_MPI:"):
                return line.split("=", 1)[1] + "/bin/mpirun"
    return shutil.which("mpirun")


def wait_until(condition, timeout_s, what):
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"dirty_machine: waited {timeout_s} s in vain for {what}")
        time.sleep(0.05)


class Dirt:
    def __init__(self, user):
        self.user = user
        self.as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups"] if user.pw_uid != os.getuid() else []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dirty-", dir="/tmp"))
        self.home = self.folder / "a home"
        self.tmpdir = self.folder / ("long-" + "x" * (TMPDIR_LENGTH - len(str(self.folder)) - 6))
        for folder in (self.home, self.tmpdir, self.folder / "runs"):
            folder.mkdir()
        self.give_away(self.folder)
        self.planted = []
        self.processes = []

    def environment(self, **more):
        """What scripts/deps installed is found again by who may write there; another user has his own corpora in his home."""
        cache = {} if self.as_user else {"FOOTPLATE_CACHE": os.environ.get("FOOTPLATE_CACHE", os.path.expanduser("~/.cache/footplate"))}
        return {**os.environ, "HOME": str(self.home), **cache, **more}

    def plant(self):
        with subprocess.Popen(["true"]) as process:
            dead = process.pid
        shared, private = pathlib.Path("/dev/shm"), pathlib.Path(f"/tmp/footplate-{self.user.pw_uid}")
        host = os.uname().nodename
        self.planted = [shared / f"sm_segment.{host}.{self.user.pw_uid}.{number:08x}.{rank}" for number in (dead, dead << 16) for rank in (0, 1)]
        self.planted += [shared / f"osc_rdma.{host}.1.{dead}.0"]
        folders = [pathlib.Path(f"/tmp/{name}.{dead}") for name in ("ompi", f"ompi.{host}", f"prte.{host}")]
        for path in self.planted:
            path.write_bytes(b"\0" * 4096)
        private.mkdir(mode=0o700, exist_ok=True)
        lost = [private / f"{LOST_RUN}.d", shared / f"footplate-{self.user.pw_uid}-{LOST_RUN}"]
        for folder in (*folders, *lost):
            (folder / "1").mkdir(parents=True)
            (folder / "1" / "hwloc.sm").touch()
        self.planted += folders
        self.give_away(private, *self.planted, *lost)

    def give_away(self, *paths):
        if self.as_user:
            for path in paths:
                subprocess.run(["chown", "-R", f"{self.user.pw_uid}:{self.user.pw_gid}", str(path)], check=True)

    def start(self, command, environment, name):
        with open(self.folder / f"{name}.out", "wb") as out:
            process = subprocess.Popen(command, cwd="/", env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        self.processes.append((name, process))

    def trains(self, name):
        with contextlib.suppress(OSError, ValueError):
            return json.loads((self.folder / "runs" / name / "run.json").read_text())["state"] == "running"
        return False

    def start_others(self):
        allowed = {name: "1" for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")}
        self.start([mpirun(), "--oversubscribe", "--bind-to", "none", "-n", "2", "sleep", "1000000"], {**os.environ, **allowed}, "job")
        for name in ("one", "two"):
            self.start([*self.as_user, str(BIN / "footplate"), "run", str(ROOT / "configs" / "synthetic.lua"), "--batch", "-n", "2", "--name", name,
                        "train.steps=100000000", "model.step_ms=200", "eval.every=0"],
                       self.environment(FOOTPLATE_RUNS=str(self.folder / "runs")), name)
        for name in ("one", "two"):
            wait_until(lambda name=name: self.trains(name), 60, f"run {name} to train: see {self.folder}/{name}.out")

    def harm(self):
        """What the command did to others."""
        found = [f"{name} has ended with {process.returncode}" for name, process in self.processes if process.poll() is not None]
        return found + [f"{path} is gone" for path in self.planted if not path.exists()]

    def clear(self):
        for _, process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for name, process in self.processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                print(f"dirty_machine: {name} (pid {process.pid}) doesn't end", file=sys.stderr)
        private = pathlib.Path(f"/tmp/footplate-{self.user.pw_uid}")
        for path in (*self.planted, private / f"{LOST_RUN}.d", pathlib.Path(f"/dev/shm/footplate-{self.user.pw_uid}-{LOST_RUN}"), self.folder):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--user", type=pwd.getpwnam, default=pwd.getpwuid(os.getuid()))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no command")
    dirt = Dirt(options.user)
    try:
        dirt.start_others()
        dirt.plant()
        command = subprocess.Popen([*dirt.as_user, *options.command], env=dirt.environment(TMPDIR=str(dirt.tmpdir)))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda given, _frame: command.send_signal(given))
        code = command.wait()
        left = sorted(path.name for path in dirt.tmpdir.iterdir())
        if left:
            print(f"dirty_machine: left in TMPDIR: {', '.join(left)}", file=sys.stderr)
        harm = dirt.harm()
        if harm:
            print(f"dirty_machine: the command harmed others: {'; '.join(harm)}", file=sys.stderr)
        return 1 if code == 0 and harm else code if code >= 0 else 128 - code
    finally:
        dirt.clear()


if __name__ == "__main__":
    sys.exit(main())
