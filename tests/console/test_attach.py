#!/usr/bin/env python3
"""Coming, going and coming back: a console that is replaced, a run that ends, what happened meanwhile."""

import json
import os
import re
import signal
import time
import unittest

from harness import FOOTPLATE
from terminal import CTRL_D, TerminalCase, wait_until


class Reconnect(TerminalCase):
    def setUp(self):
        super().setUp()
        self.start_run()

    def test_console_that_is_replaced(self):
        screen = self.attach(columns=120)
        screen.enter("x = 1")
        screen.wait_prompt()
        screen.type("log.every = ")
        screen.wait(lambda s: s.line().endswith("log.every ="))
        started = time.monotonic()
        self.command(kill_console=True)
        screen.wait("connected again: a new session")
        self.assertLess(time.monotonic() - started, 2)
        screen.wait(lambda s: re.search(r"good-1:\d+> log.every =$", s.line()))
        screen.enter("3")
        screen.wait("log.every 10 -> 3, applied at step")
        screen.enter("x")
        screen.wait("unknown name 'x'")

    def test_often(self):
        screen = self.attach()
        for number in range(5):
            console = self.command(kill_console=True)["console"]
            wait_until(lambda console=console: self.command()["console"] != console, "another console")
            screen.wait(lambda s, number=number: s.text().count("connected again") == number + 1)
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)

    def test_chunk_that_ran_meanwhile(self):
        screen = self.attach(columns=160)
        screen.enter("run.wait{ step = 1000000 }")
        screen.wait(lambda s: s.line() == "")
        self.command(kill_console=True)
        screen.wait("orders() will tell")
        screen.wait("connected again")
        screen.wait_prompt()
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)

    def test_changes_meanwhile_are_told(self):
        screen = self.attach(columns=120)
        os.kill(screen.process.pid, signal.SIGSTOP)
        self.check(self.footplate("exec", "log.every = 33"), 0)
        self.command(kill_console=True)
        wait_until(lambda: self.footplate("exec", "return log.every").stdout == "33\n", "the next console")
        os.kill(screen.process.pid, signal.SIGCONT)
        screen.wait("log.every 10 -> 33, applied at step")
        screen.wait("connected again")
        time.sleep(0.3)
        self.assertEqual(screen.text().count("10 -> 33"), 1)

    def test_no_session_is_left_behind(self):
        for _ in range(20):
            screen = self.attach()
            screen.hang_up()
        self.attach()


class Ends(TerminalCase):
    def test_ends_while_attached(self):
        self.start_run()
        screen = self.attach(columns=120)
        screen.type("log.every = 7")
        screen.wait(lambda s: s.line().endswith("= 7"))
        self.command(end=[75, "time limit"])
        self.assertEqual(screen.code(), 75)
        screen.wait(lambda s: any(re.fullmatch(r"good-1 ended at step \d+: time limit \(exit code 75\)", row) for row in s.rows))
        screen.wait("see: footplate log good-1")
        self.assertTrue(screen.raw.count(b"\x1b[?2004h") == screen.raw.count(b"\x1b[?2004l"))

    def test_ends_while_a_chunk_waits(self):
        self.start_run()
        screen = self.attach(columns=120)
        screen.enter("run.wait{ step = 1000000 }")
        screen.wait(lambda s: s.line() == "")
        self.command(end=[0, "done"])
        self.assertEqual(screen.code(), 0)
        screen.wait("good-1 ended at step")

    def test_ended_run(self):
        self.check(self.footplate("run", "good", "--batch", fake={"steps": 5}), 0)
        result = self.check(self.footplate("attach"), 0, "end: done", "good-1 ended at step 5: done (exit code 0)", "see: footplate report good-1")
        self.assertIn("start 1 of the fake rank", result.stdout)

    def test_failed_run(self):
        self.footplate("run", "good", "--batch", fake={"fail": [1, "no memory left"]})
        self.check(self.footplate("attach", "good-1"), 1, "no memory left")

    def test_killed_ranks(self):
        self.start_run()
        screen = self.attach(columns=120)
        os.kill(self.command()["pid"], signal.SIGKILL)
        self.assertEqual(screen.code(), 75)
        screen.wait("a rank was lost to SIGKILL")

    def test_no_such_run(self):
        self.start_run()
        self.check(self.footplate("attach", "god-1"), 4, "did you mean good-1?")

    def test_another_host(self):
        self.check(self.footplate("run", "good", "--batch", fake={"steps": 5}), 0)
        path = self.folder / "runs" / "good-1"
        (path / "result.json").unlink()
        record = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps({**record, "state": "running", "host": "node17", "launcher_host": "node17"}))
        self.check(self.footplate("attach", "good-1"), 4, f"ssh -t node17 FOOTPLATE_RUNS={self.folder}/runs {FOOTPLATE} attach good-1")


class Away(TerminalCase):
    def setUp(self):
        super().setUp()
        self.start_run()

    def test_what_happened(self):
        screen = self.attach()
        self.assertNotIn("away", screen.text())
        screen.type(CTRL_D)
        screen.code()
        left = self.command()["step"]
        self.check(self.footplate("exec", "optim.lr_scale = 0.5; ckpt.save()"), 0)
        self.command(event="rank", data={"rank": 3, "state": "stalled", "text": "silent: rank 3"})
        wait_until(lambda: self.command()["step"] > left + 20, "more steps")
        screen = self.attach(columns=200)
        row = next(row for row in screen.all_rows() if row.startswith("away "))
        self.assertRegex(row, r"^away \d+ s: \d+ -> \d+ · loss 2.5000 -> 2.5000 · .*1 stall.* · \w+: optim.lr_scale 1 -> 0.5, ckpt.save\(\)")

    def test_killed_client_has_left_too(self):
        screen = self.attach()
        os.kill(screen.process.pid, signal.SIGKILL)
        screen.code()
        self.check(self.footplate("exec", "log.every = 5"), 0)
        screen = self.attach(columns=200)
        screen.wait(lambda s: any(re.match(r"away \d+ s: .* · \w+: log.every 10 -> 5$", row) for row in s.all_rows()))

    def test_another_run_in_the_same_place(self):
        starts = self.folder / "runs" / "good-1" / "starts.jsonl"
        starts.write_text('{"time": "2026-01-01T00:00:00.000Z"}\n')
        screen = self.attach()
        screen.type(CTRL_D)
        screen.code()
        starts.write_text('{"time": "2026-01-02T00:00:00.000Z"}\n')
        screen = self.attach()
        self.assertNotIn("away", screen.text())

    def test_damaged_record(self):
        screen = self.attach()
        screen.type(CTRL_D)
        screen.code()
        for path in (self.folder / "home" / ".local" / "state" / "footplate" / "left").iterdir():
            path.write_text('{"time": 5')
        with open(self.folder / "runs" / "good-1" / "events.jsonl", "a", encoding="utf-8") as file:
            file.write('{"time": "9", "topic": "order", "data": {"state": "applied", "applied": 5, "order": []}}\nnonsense\n')
        screen = self.attach()
        self.assertNotIn("away", screen.text())
        screen.type(CTRL_D)
        screen.code()
        self.attach()


if __name__ == "__main__":
    unittest.main(verbosity=2)
