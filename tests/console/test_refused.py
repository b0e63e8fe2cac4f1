#!/usr/bin/env python3
"""A start that never does a step leaves a run as it was: its record, result, remembered settings and command line."""

import signal
import unittest

from harness import Case, wait_until

HANGS = {"start_hang": True}
REASON = "the checkpoint has model.layers 2, this start 4 (command line)"


class Refused(Case):
    def setUp(self):
        super().setUp()
        self.check(self.footplate("run", "good", "--name", "x", "--batch", "log.every=3", fake={"steps": 4, "checkpoint_at": 4}), 0)
        self.before = self.state()

    def state(self):
        """All files of the run but its logs, and what was said to those who waited for the refused start."""
        folder = self.folder / "runs" / "x"
        return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*")
                if path.is_file() and path.parent.name != "log" and path.name != "refused-start.json"}

    def resume(self, *words, fake):
        return self.footplate("run", "--name", "x", "--resume", "auto", "--batch", *words, fake=fake)

    def check_unchanged(self):
        self.assertEqual(self.state(), self.before)
        self.check(self.footplate("status", "x"), 0, "x · ended · step 4", "x ended at step 4: done")
        self.check(self.footplate("ls", "-a"), 0, "x     ended  4 ")

    def test_leaves_no_trace(self):
        self.check(self.resume("log.every=7", fake={"refuse": [2, REASON]}), 2, "x came to no step: " + REASON,
                   "x is as it was, with its settings of before, at step 4", "footplate run --name x --resume auto")
        self.check_unchanged()
        self.check(self.resume("train.steps=900", fake={"steps": 6}), 0, "start 2 resume='auto'")
        config = self.json("config-2.json", "x")
        self.assertEqual(config["log.every"], {"value": 3, "source": "command line of start 1"})
        self.assertEqual(self.json("result-1.json", "x")["step"], 4)

    def test_in_the_background(self):
        result = self.footplate("run", "-d", "--name", "x", "--resume", "auto", "log.every=7", fake={"refuse": [2, REASON]})
        self.check(result, 2, "x came to no step: " + REASON)
        self.check_unchanged()

    def test_stopped_before_it_was_ready(self):
        for stop, code in ((signal.SIGTERM, 75), (signal.SIGKILL, -signal.SIGKILL)):
            process = self.start("--name", "x", "--resume", "auto", "log.every=7", fake=HANGS)
            wait_until(lambda: self.json("run.json", "x")["state"] == "starting", "the start")
            wait_until(lambda: "before MPI" in self.footplate("status", "x").stdout, "the rank")
            self.assertRegex(self.footplate("status", "x").stdout, "x · starting · step 4")
            process.send_signal(stop)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, code)
            wait_until(lambda: not self.processes(), "the end of all processes")
            self.check_unchanged()

    def test_of_a_new_run_it_stays_known(self):
        """There is nothing to go back to: status says what was wrong."""
        self.check(self.footplate("run", "good", "--name", "y", "--batch", fake={"refuse": [2, "no corpus"]}), 2, "y ended at step 0: no corpus")
        self.check(self.footplate("run", "good", "--name", "y", "--batch", fake={"refuse": [2, "no corpse"]}), 2, "no corpse")
        self.check(self.footplate("status", "y"), 0, "y ended at step 0: no corpse")


if __name__ == "__main__":
    unittest.main()
