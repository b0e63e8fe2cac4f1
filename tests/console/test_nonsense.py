#!/usr/bin/env python3
"""Inputs that make no sense (nonsense.txt), each through its door: the answer says what, where, what is allowed and what next, and
nothing is changed."""

import pathlib
import shlex
import unittest

from terminal import TerminalCase

PAGE = pathlib.Path(__file__).with_name("nonsense.txt")


def inputs():
    """(door, input, parts of the answer), in the order of the page."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")]
    for asked, answer in zip(lines[::2], lines[1::2], strict=True):
        door, text = asked.split("  ", 1)
        yield door, text.replace("\\n", "\n"), [part.strip() for part in answer.strip().split(" | ")]


class Nonsense(TerminalCase):
    def answered(self, result, asked, parts):
        said = result.stdout + result.stderr
        with self.subTest(asked):
            self.assertNotEqual(result.returncode, 0, said)
            for part in parts:
                self.assertIn(part, said)
            self.assertLess(len(said), 700, "nobody reads that")

    def test_configs(self):
        for door, text, parts in inputs():
            if door == "config":
                self.answered(self.footplate("check", self.config("bad", text + "\n")), text, parts)

    def test_command_lines(self):
        for door, text, parts in inputs():
            if door == "check":
                words = text.split(" ", 1)[:1] + ([text.split(" ", 1)[1]] if " " in text else [])
                self.answered(self.footplate("check", *words), text, parts)
            elif door == "command":
                self.answered(self.footplate(*shlex.split(text)), text, parts)
        self.assertEqual(list(self.folder.glob("runs/*")), [], "a run directory was made")

    def test_prompts(self):
        self.start_run()
        before = self.footplate("exec", "return log.every, sched.base_lr").stdout
        for door, text, parts in inputs():
            if door == "prompt":
                self.answered(self.footplate("exec", text), text, parts)
        self.assertEqual(self.footplate("exec", "return log.every, sched.base_lr").stdout, before, "something was changed")

    def test_each_door_is_known_and_there_are_enough(self):
        doors = [door for door, _, _ in inputs()]
        self.assertGreaterEqual(len(doors), 60)
        self.assertEqual(set(doors), {"config", "check", "command", "prompt"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
