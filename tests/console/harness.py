"""The program `footplate` from outside, on a rank that is a fake (fake_rank.py): no LibTorch, no MPI needed."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ.get("FOOTPLATE_BIN", HERE.parents[1] / "build" / "release" / "bin"))
FOOTPLATE = str(BIN / "footplate")
SCHEMA = BIN.parent / "share" / "footplate" / "schema.json"
MPIRUN = os.environ.get("FOOTPLATE_TEST_MPIRUN", "")
UID = os.getuid()


def wait_until(condition, what, timeout_s=60):
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(0.01)


def hang_up(terminal):
    """Closes a terminal of pexpect, as a window is closed, and waits for what ran in it. Its own close() gives that 0.1 s."""
    terminal.ptyproc.fileobj.close()
    wait_until(lambda: not terminal.isalive(), "the end of what ran in the terminal")


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Case(unittest.TestCase):
    """A folder of its own, with programs, configs and a home; after each test nothing may be left of its runs."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.mark = uuid.uuid4().hex
        programs = self.folder / "bin"
        programs.mkdir()
        rank = programs / "footplate-rank"
        # The interpreter itself, not /usr/bin/env: the process has to be called footplate-rank.
        rank.write_text(f"#!{sys.executable}\n" + (HERE / "fake_rank.py").read_text())
        rank.chmod(0o755)
        (self.folder / "share" / "footplate").mkdir(parents=True)
        (self.folder / "share" / "footplate" / "schema.json").symlink_to(SCHEMA)
        (self.folder / "configs").mkdir()
        self.config("good", "log.every = 10\n")
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home"), "LC_ALL": "C.UTF-8",
                            "FOOTPLATE_PROGRAMS": str(programs), "FOOTPLATE_TEST_MARK": self.mark,
                            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")}
        if MPIRUN:
            self.environment["FOOTPLATE_MPIRUN"] = MPIRUN
        self.addCleanup(self.check_nothing_is_left)
        self.started = []
        self.addCleanup(self.end_started)

    def config(self, name, text):
        path = self.folder / "configs" / f"{name}.lua"
        path.write_text(text)
        return f"configs/{name}.lua"

    def environment_with(self, fake=None, **variables):
        environment = {**self.environment, **variables}
        if fake is not None:
            environment["FAKE_RANK"] = json.dumps(fake)
        return {name: value for name, value in environment.items() if value is not None}

    def footplate(self, *arguments, fake=None, timeout=60, stdin=subprocess.DEVNULL, env=None, **options):
        if isinstance(stdin, str):
            options["input"] = stdin
        else:
            options["stdin"] = stdin
        return subprocess.run([FOOTPLATE, *arguments], cwd=self.folder, env=self.environment_with(fake, **(env or {})),
                              capture_output=True, text=True, timeout=timeout, check=False, **options)

    def start(self, *arguments, fake=None, env=None, **options):
        """`footplate run … --batch` in the background."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        process = subprocess.Popen([FOOTPLATE, "run", "good", "--batch", *arguments], cwd=self.folder,
                                   env=self.environment_with(fake, **(env or {})), start_new_session=True, **options)
        self.started.append(process)
        return process

    def end_started(self):
        for process in self.started:
            if process.poll() is None:
                for _ in range(100):  # the second one stops it at once
                    process.send_signal(signal.SIGTERM)
                    try:
                        process.wait(0.2)
                        break
                    except subprocess.TimeoutExpired:
                        pass
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()

    def json(self, name, run="good-1"):
        try:
            return json.loads((self.folder / "runs" / run / name).read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    @staticmethod
    def wait_for_words(process, words):
        """Reads what the process says on its stderr up to a line with these words."""
        for line in process.stderr:
            if words in line:
                return
        raise AssertionError(f"it ended without a word of {words!r}")

    def wait_for_step(self, step=1, run="good-1"):
        wait_until(lambda: (self.json("run.json", run) or {}).get("step", 0) >= step, f"step {step} of {run}")
        return self.json("run.json", run)

    def batch_lines(self, run="good-1"):
        return (self.folder / "runs" / run / "log" / "batch.log").read_text().splitlines()

    def processes(self):
        """Pids of everything that inherited this test's environment and has not ended."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid() and alive(entry.name):
                try:
                    if f"FOOTPLATE_TEST_MARK={self.mark}".encode() in (entry / "environ").read_bytes():
                        found.append(int(entry.name))
                except (FileNotFoundError, PermissionError, ProcessLookupError):
                    pass
        return found

    def kill_everything(self):
        """A reboot, in short: the supervisor and its janitor get no chance to act."""
        for sent in (signal.SIGSTOP, signal.SIGKILL):
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sent)

    def leftovers(self):
        ids = [json.loads(path.read_text()).get("id", "none") for path in (self.folder / "runs").glob("*/run.json")]
        paths = [path for run in ids for path in (*pathlib.Path(f"/tmp/footplate-{UID}").glob(f"{run}*"),
                                                  *pathlib.Path("/dev/shm").glob(f"footplate-{UID}-{run}*"))]
        return [*map(str, paths), *(f"process {pid}" for pid in self.processes())]

    def check_nothing_is_left(self):
        try:
            wait_until(lambda: not self.leftovers(), "nothing to be left", 20)
        except AssertionError as error:
            left = self.leftovers()
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"left behind: {left}") from error

    def check(self, result, code, *texts):
        output = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, output)
        for text in texts:
            self.assertIn(text, output)
        return result
