"""A person at a real pseudo-terminal: pexpect types, pyte is the screen. The run behind it is console_rank.py."""

import json
import os
import pathlib
import signal
import socket
import sys
import time

import pexpect
import pyte

from harness import BIN, Case, FOOTPLATE, HERE, SCHEMA, alive, hang_up, wait_until  # noqa: F401

UP, DOWN, RIGHT, LEFT, HOME, END = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F"
CTRL_C, CTRL_D, CTRL_R, TAB = "\x03", "\x04", "\x12", "\t"
PASTE_ON, PASTE_OFF = "\x1b[200~", "\x1b[201~"


class Screen:
    """A program on a terminal of its own. `rows` is what a person sees, `raw` every byte that was sent."""

    def __init__(self, command, cwd, env, rows=24, columns=80):
        self.process = pexpect.spawn(command[0], command[1:], cwd=str(cwd), env=env, dimensions=(rows, columns), timeout=60)
        self.process.delaybeforesend = None
        self.screen = pyte.HistoryScreen(columns, rows, history=20000, ratio=0.5)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""

    def update(self):
        while True:
            try:
                block = self.process.read_nonblocking(65536, timeout=0)
            except (pexpect.TIMEOUT, pexpect.EOF):
                return
            self.raw += block
            self.stream.feed(block)

    @property
    def rows(self):
        """Without the hint, which is no part of what is typed."""
        self.update()
        rows = [row.rstrip() for row in self.screen.display]
        place = self.hint_at()
        if place is not None:
            rows[self.screen.cursor.y] = rows[self.screen.cursor.y][:place].rstrip()
        return rows

    def hint_at(self):
        """The column where the dim text behind the cursor begins: the one that the cursor is in, or nothing."""
        cursor = self.screen.cursor
        row = self.screen.buffer[cursor.y]
        return cursor.x if row[cursor.x].fg == "black" else None

    def hint(self):
        self.update()
        place = self.hint_at()
        return "" if place is None else self.screen.display[self.screen.cursor.y][place:].rstrip()

    def all_rows(self):
        """What has scrolled away too."""
        self.update()
        above = ["".join(line[column].data for column in range(self.screen.columns)).rstrip() for line in self.screen.history.top]
        return above + self.rows

    def text(self):
        return "\n".join(self.all_rows())

    def line(self):
        """The row that the cursor is in."""
        return self.rows[self.screen.cursor.y]

    def type(self, text):
        self.process.send(text)

    def enter(self, text):
        """Types, waits for it to be seen, and presses Enter."""
        self.process.send(text)
        tail = text.rsplit("\n", 1)[-1].rstrip()[-10:]
        if tail:
            self.wait(lambda screen: "".join(screen.rows[: screen.screen.cursor.y + 1]).endswith(tail))
        self.process.send("\r")

    def wait(self, what, timeout_s=60):
        """Until `what`, a text or a condition on this screen, is there."""
        met = (lambda: what in self.text()) if isinstance(what, str) else (lambda: what(self))
        try:
            return wait_until(met, repr(what), timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- screen\n{self.text()}\n--- end") from error

    def wait_prompt(self, pattern="> "):
        """An empty prompt."""
        return self.wait(lambda screen: screen.line().rstrip().endswith(pattern.rstrip()))

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.process.setwinsize(rows, columns)

    def code(self):
        """Waits for the program's end and returns its exit code."""
        wait_until(lambda: (self.update(), not self.process.isalive())[1], "the program's end")
        self.update()
        return self.process.exitstatus if self.process.exitstatus is not None else -self.process.signalstatus

    def hang_up(self):
        hang_up(self.process)

    def close(self):
        """Ends the program, whatever it does."""
        if self.process.isalive():
            self.process.kill(signal.SIGKILL)
            self.process.wait()
        self.process.close()


class TerminalCase(Case):
    """A run called good-1 in the background, and screens."""

    fake = {}

    def setUp(self):
        super().setUp()
        rank = self.folder / "bin" / "footplate-rank"
        rank.write_text(f"#!{sys.executable}\n" + (HERE / "console_rank.py").read_text())
        self.environment.update(FOOTPLATE_TEST_CONSOLE=str(BIN / "footplate-console"), FOOTPLATE_TEST_SCHEMA=str(SCHEMA.resolve()),
                                TERM="xterm-256color")
        self.screens = []
        self.addCleanup(self.close_screens)
        self.addCleanup(self.stop_runs)

    def start_run(self, **fake):
        self.check(self.footplate("run", "good", "-d", fake={**self.fake, **fake}), 0)
        return "good-1"

    def screen(self, *arguments, env=None, fake=None, **size):
        environment = {**self.environment_with(fake), **(env or {})}
        environment = {name: value for name, value in environment.items() if value is not None}
        screen = Screen([FOOTPLATE, *arguments], self.folder, environment, **size)
        self.screens.append(screen)
        return screen

    def attach(self, *arguments, **options):
        screen = self.screen("attach", *arguments, **options)
        screen.wait_prompt()
        return screen

    def close_screens(self):
        for screen in self.screens:
            screen.close()

    def stop_runs(self):
        for record in (self.folder / "runs").glob("*/run.json"):
            pid = json.loads(record.read_text()).get("launcher_pid", 0)
            if pid in self.processes():
                os.kill(pid, 15)

    def command(self, run="good-1", **asked):
        """Tells the fake rank something; what it answers."""
        path = self.folder / "runs" / run / "control.sock"
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(60)
        wait_until(path.exists, "the fake rank")
        folder = os.open(path.parent, os.O_RDONLY)  # its path may be too long for a socket
        client.connect(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
        client.sendall(json.dumps(asked).encode() + b"\n")
        answer = client.makefile().readline()
        client.close()
        return json.loads(answer) if answer else None

    def events(self, topic, run="good-1"):
        path = self.folder / "runs" / run / "events.jsonl"
        text = path.read_text() if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # the run may be writing the next
        return [item["data"] for item in map(json.loads, lines) if item["topic"] == topic]
