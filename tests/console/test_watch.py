#!/usr/bin/env python3
"""`footplate watch`: lines into a pipe, plots on a terminal."""

import itertools
import pathlib
import re
import select
import subprocess
import time
import unittest

from terminal import CTRL_C, FOOTPLATE, TerminalCase, wait_until


class Watch(TerminalCase):
    def setUp(self):
        super().setUp()
        self.start_run()
        for step in range(0, 200, 4):
            self.command(event="metrics", data={"step": step, "train/loss": 4.0 - step / 100, "eval/loss": 9.0})

    def watch(self, *arguments, **options):
        return self.screen("watch", *arguments, **options)

    def test_plot(self):
        screen = self.watch("loss")
        screen.wait("train/loss 2.04 · step 196")
        rows = screen.rows
        self.assertRegex(rows[1], r"^ +4 ")
        self.assertTrue(any(0x2800 < ord(c) < 0x2900 for row in rows for c in row), rows)
        self.assertRegex(rows[-2], r"^ +0 +50 +100 +150$")
        self.assertEqual([row.split()[0] for row in rows[1:-2] if row[:9].strip()], ["4", "3.5", "3", "2.5"])
        self.command(event="metrics", data={"step": 400, "train/loss": 1.0})
        screen.wait("train/loss 1 · step 400")
        screen.type(CTRL_C)
        self.assertEqual(screen.code(), 0)
        self.assertIn(b"\x1b[?1049l", screen.raw)
        after = screen.raw.rsplit(b"\x1b[?1049l", 1)[1]
        self.assertEqual(after.count(b"\n"), after.count(b"\r\n"))
        self.assertNotIn(b"\x1b[?2004", screen.raw)
        self.assertIsNone(self.json("result.json"))

    def log(self, metric, values, every=1):
        for index, value in enumerate(values):
            self.command(event="metrics", data={"step": 1000 + index * every, metric: value})

    def braille_columns(self, rows):
        return {column for row in rows[1:-2] for column, c in enumerate(row) if 0x2800 < ord(c) < 0x2900}

    def wait_drawn(self, screen, title):
        """Until the last row is there too: what a terminal is sent arrives in pieces."""
        screen.wait(lambda s: title in s.text() and "q ends the watching" in s.rows[-1])

    def test_few_points_are_joined(self):
        self.log("train/few", [1, 3, 2, 5, 4])
        screen = self.watch("few")
        self.wait_drawn(screen, "train/few 4 · step 1004")
        columns = self.braille_columns(screen.rows)
        self.assertEqual(columns, set(range(min(columns), max(columns) + 1)))
        self.assertGreater(len(columns), 60)

    def test_a_value_that_is_no_number_breaks_the_line(self):
        self.log("train/torn", [1, 2, "@nan", 2, 1])
        screen = self.watch("torn")
        self.wait_drawn(screen, "train/torn 1 · step 1004")
        columns = self.braille_columns(screen.rows)
        self.assertLess(len(columns), max(columns) - min(columns) - 20)

    def test_first_outliers_are_beyond_the_axis(self):
        self.log("train/steep", [900, 400] + [2 - index / 100 for index in range(98)])
        screen = self.watch("steep")
        self.wait_drawn(screen, "train/steep 1.03 · step 1099")
        rows = screen.rows
        self.assertEqual([row.split()[0] for row in rows[1:-2] if row[:9].strip()], ["2", "1.75", "1.5", "1.25"])
        self.assertIn("^", rows[1])

    def test_log_axis(self):
        self.log("train/steep", [10 ** (-index / 25) for index in range(101)])
        screen = self.watch("steep", "--log")
        screen.wait("train/steep 0.0001 · step 1100")
        screen.wait(lambda s: [row.split()[0] for row in s.rows[1:-2] if row[:9].strip()] == ["1", "0.01", "0.0001"])
        self.log("train/below", [-1, -2])
        below = self.watch("below", "--log")
        below.wait("no value is above 0, so the axis isn't logarithmic")

    def test_last_steps(self):
        screen = self.watch("loss", "--last", "40")
        screen.wait("train/loss 2.04 · step 196")
        screen.wait(lambda s: re.match(r" +160 +170 +180 +190$", s.rows[-2]))
        self.check(self.footplate("watch", "loss", "--last", "0"), 2, "--last")

    def test_q_leaves(self):
        screen = self.watch("loss")
        screen.wait("good-1 · q ends the watching, not the run")
        screen.type("xq")
        self.assertEqual(screen.code(), 0)
        self.assertIn(b"\x1b[?1049l", screen.raw)
        self.assertIsNone(self.json("result.json"))
        self.assertNotIn("xq", screen.text())

    def test_changes_are_marked_at_their_steps(self):
        screen = self.watch("loss")
        screen.wait("train/loss")
        self.check(self.footplate("exec", "log.every = 3"), 0)
        self.command(event="metrics", data={"step": 100000, "train/loss": 1.0})
        screen.wait(lambda s: any(row.startswith("a step ") and "log.every 10 -> 3" in row for row in s.rows))
        screen.wait(lambda s: any(":" in row[10:] for row in s.rows[2:10]))

    def test_ascii_in_the_c_locale(self):
        screen = self.watch("loss", env={"LC_ALL": "C"})
        screen.wait("train/loss 2.04 | step 196")
        screen.wait(lambda s: any("*" in row for row in s.rows))
        self.assertEqual([byte for byte in screen.raw if byte >= 0x80], [])

    def test_resize(self):
        screen = self.watch("loss", "eval/loss")
        screen.wait("eval/loss 9")
        screen.resize(40, 60)
        screen.wait(lambda s: s.rows[39].startswith("good-1 · q ends"))
        screen.wait(lambda s: all(len(row) <= 60 for row in s.rows))

    def test_dumb_terminal(self):
        screen = self.watch("loss", env={"TERM": "dumb"})
        wait_until(lambda: self.command(event="metrics", data={"step": 500, "train/loss": 1.5}) and "train/loss 1.5" in screen.text(), "lines")
        self.assertNotIn(b"\x1b", screen.raw)

    def test_lines_into_a_pipe(self):
        process = subprocess.Popen([FOOTPLATE, "watch", "loss"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        step = 1000
        lines = []
        while not lines:
            step += 1
            self.command(event="metrics", data={"step": step, "train/loss": 1.25})
            if select.select([process.stdout], [], [], 0.1)[0]:
                lines.append(process.stdout.readline())
        self.assertRegex(lines[0], r"^step \d+ · train/loss 1.25$")
        self.command(end=[0, "done"])
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertIn("good-1 ended at step", out)

    def test_ends_with_its_reader(self):
        process = subprocess.Popen([FOOTPLATE, "watch", "loss"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        process.stdout.close()
        steps = itertools.count(1000)
        wait_until(lambda: self.command(event="metrics", data={"step": next(steps), "train/loss": 1.25}) and process.poll() is not None, "its end")
        self.assertEqual((process.returncode, process.stderr.read()), (0, ""))

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = subprocess.Popen([FOOTPLATE, "watch", "loss"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=full, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        steps = itertools.count(1000)
        wait_until(lambda: self.command(event="metrics", data={"step": next(steps), "train/loss": 1.25}) and process.poll() is not None, "its end")
        self.assertEqual(process.returncode, 1)
        self.assertIn("No space left on device", process.stderr.read())

    def test_unknown_metric(self):
        self.check(self.footplate("watch", "train/los"), 2, "did you mean train/loss?", "eval/loss")

    def test_ended_run(self):
        self.command(end=[0, "done"])
        wait_until(lambda: not self.leftovers(), "the end")
        self.check(self.footplate("watch", "loss"), 0, "train/loss 2.04 · step 196", "good-1 ended at step")


class BeforeTheFirstLine(TerminalCase):
    def test_a_short_name_is_known_once_it_is_logged_and_nothing_is_done_meanwhile(self):
        self.start_run()
        process = subprocess.Popen([FOOTPLATE, "watch", "loss"], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        # Once it is connected it has read what was logged before.
        wait_until(lambda: any(str(fd.readlink()).startswith("socket:") for fd in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()), "a socket")
        steps = itertools.count(1)
        wait_until(lambda: self.command(event="metrics", data={"step": next(steps), "train/loss": 1.25}) and
                   select.select([process.stdout], [], [], 0.1)[0], "a line")
        self.assertRegex(process.stdout.readline(), r"^step \d+ · train/loss 1.25$")

        def ticks():
            with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
                return sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))
        before = ticks()
        time.sleep(1)  # of which it needs nothing, and not a whole core
        self.assertLess(ticks() - before, 50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
