#!/usr/bin/env python3
"""What the prompt asks about before it does it: dangerous actions, unusual values, large changes."""

import re
import subprocess
import unittest

from terminal import CTRL_C, CTRL_D, FOOTPLATE, TerminalCase, wait_until

QUESTION = "really? [y/N]"
REFUSED = "error: not confirmed, nothing changed"


class Questions(TerminalCase):
    def setUp(self):
        super().setUp()
        self.start_run()

    def asked(self, screen, chunk):
        screen.enter(chunk)
        screen.wait(lambda s: s.line().startswith(QUESTION))

    def value(self, name):
        return self.command()["settings"][name]["value"]


class Asked(Questions):
    def test_dangerous_action(self):
        screen = self.attach(columns=160)
        self.asked(screen, 'run.stop{ reason = "enough" }')
        screen.wait('run.stop{ reason = "enough", resumable = false, save = true }: End the run at the agreed step')
        screen.enter("n")
        screen.wait(REFUSED)
        screen.wait_prompt("> ")
        self.assertEqual(self.command()["orders"], 0)
        self.asked(screen, "run.stop()")
        screen.enter("y")
        self.assertEqual(screen.code(), 0)
        self.assertEqual(self.json("result.json")["reason"], "asked")

    def test_value_that_is_unusual(self):
        screen = self.attach(columns=160)
        self.asked(screen, "train.clip_norm = 500")
        screen.wait("train.clip_norm 1 -> 500: usual is 0 to 100")
        screen.enter("Yes")
        screen.wait("train.clip_norm 1 -> 500, applied at step")

    def test_large_change(self):
        screen = self.attach(columns=160)
        self.asked(screen, "optim.lr_scale = 0.05")
        screen.wait("optim.lr_scale 1 -> 0.05: more than ten times as much or as little")
        screen.enter("")
        screen.wait(REFUSED)
        self.assertEqual(self.value("optim.lr_scale"), 1)

    def test_what_ends_the_run_sooner(self):
        screen = self.attach(columns=160)
        for chunk in ("run.time_limit = 1", "train.steps = 900"):
            self.asked(screen, chunk)
            screen.wait(": the run ends sooner")
            screen.enter("n")
            screen.wait_prompt("> ")
        screen.enter("train.steps = 3000")
        screen.wait("train.steps 1000 -> 3000, applied")

    def test_somebody_else_changes_it_meanwhile(self):
        screen = self.attach(columns=160)
        self.asked(screen, "train.clip_norm = 500")
        self.check(self.footplate("exec", "train.clip_norm = 3"), 0)
        screen.enter("y")
        wait_until(lambda: len(self.events("order")) == 2, "the second order")
        expected = [change.get("expect") for change in self.events("order")[-1]["order"]["changes"]]
        self.assertEqual(expected, [1], "the ranks refuse it; this stand-in of a rank doesn't look")

    def test_once_for_a_chunk_and_all_or_nothing(self):
        screen = self.attach(columns=160)
        self.asked(screen, "optim.lr_scale = 0.05; train.clip_norm = 500; log.every = 20")
        screen.wait("optim.lr_scale 1 -> 0.05:")
        screen.wait("train.clip_norm 1 -> 500:")
        self.assertNotIn("log.every 10", screen.text())
        screen.enter("n")
        screen.wait(REFUSED)
        self.assertEqual([self.value(name) for name in ("optim.lr_scale", "train.clip_norm", "log.every")], [1, 1, 10])
        self.asked(screen, "optim.lr_scale = 0.05; train.clip_norm = 500; log.every = 20")
        screen.enter("yup")
        screen.wait(lambda s: s.text().count(REFUSED) == 2)
        self.asked(screen, "optim.lr_scale = 0.05; train.clip_norm = 500; log.every = 20")
        screen.enter("y")
        screen.wait("log.every 10 -> 20, applied at step")
        self.assertEqual([self.value(name) for name in ("optim.lr_scale", "train.clip_norm", "log.every")], [0.05, 500, 20])

    def test_order_for_a_later_step(self):
        screen = self.attach(columns=160)
        self.asked(screen, "at(1000000, { optim = { lr_scale = 50 } })")
        screen.enter("n")
        screen.wait(REFUSED)
        self.assertEqual(self.command()["orders"], 0)

    def test_ctrl_c_and_ctrl_d_are_no(self):
        screen = self.attach(columns=160)
        for number, key in enumerate((CTRL_C, CTRL_D)):
            self.asked(screen, "run.stop()")
            screen.type(key)
            screen.wait(lambda s, number=number: s.text().count(REFUSED) == number + 1)
            screen.wait_prompt("> ")
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)

    def test_variables_outlive_a_no(self):
        screen = self.attach(columns=160)
        self.asked(screen, "x = 41; run.stop()")
        screen.enter("n")
        screen.wait(REFUSED)
        screen.enter("x + 1")
        screen.wait(lambda s: "42" in s.rows)

    def test_events_and_a_lost_console_meanwhile(self):
        screen = self.attach(columns=160)
        self.asked(screen, "run.stop()")
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        screen.wait(lambda s: s.line().startswith(QUESTION))
        self.command(kill_console=True)
        screen.wait("connected again")
        screen.wait(lambda s: re.fullmatch(r"good-1:\d+>", s.line()))
        self.assertEqual(self.command()["orders"], 0)

    def test_run_that_ends_meanwhile(self):
        screen = self.attach(columns=160)
        self.asked(screen, "run.stop()")
        self.command(end=[0, "done"])
        self.assertEqual(screen.code(), 0)
        screen.wait("good-1 ended at step")

    def test_dumb_terminal(self):
        screen = self.attach(columns=160, env={"TERM": "dumb"})
        screen.enter("train.clip_norm = 500")
        screen.wait("really? [y/N]")
        screen.enter("y")
        screen.wait("train.clip_norm 1 -> 500, applied at step")


class NotAsked(Questions):
    def test_usual_changes(self):
        screen = self.attach(columns=160)
        for chunk, text in (("log.every = 100", "10 -> 100"), ("log.every = 0", "100 -> 0"), ("log.every = 400", "0 -> 400"), ("log.every = 1", "400 -> 1"),
                            ("optim.lr_scale = 0.5", "1 -> 0.5"), ("eval.now()", "eval at step")):
            screen.enter(chunk)
            screen.wait(text)
            screen.wait_prompt("> ")
        self.assertNotIn(QUESTION, screen.text())

    def test_undo(self):
        screen = self.attach(columns=160)
        screen.enter("optim.set{ lr_scale = 0.01, force = true }")
        screen.wait("optim.lr_scale 1 -> 0.01, applied at step")
        screen.enter("undo()")
        screen.wait("undone: optim.lr_scale 0.01 -> 1, applied at step")
        screen.enter("redo()")
        screen.wait("redone: optim.lr_scale 1 -> 0.01, applied at step")

    def test_force(self):
        screen = self.attach(columns=160)
        screen.enter("optim.set{ lr_scale = 0.01, force = true }")
        screen.wait("optim.lr_scale 1 -> 0.01, applied at step")
        screen.enter("set{ train = { clip_norm = 500 }, force = true }")
        screen.wait("train.clip_norm 1 -> 500, applied at step")
        self.asked(screen, "optim.set{ lr_scale = 5, force = true } train.clip_norm = 600")
        screen.wait("train.clip_norm 500 -> 600:")
        self.assertNotIn("lr_scale 0.01 -> 5", screen.text())
        screen.enter("n")
        screen.wait(REFUSED)
        screen.enter("optim.set{ lr_scale = 5, force = 'yes' }")
        screen.wait("force is true or false")
        screen.enter("run.stop{ force = true }")
        self.assertEqual(screen.code(), 0)

    def test_scripts(self):
        self.check(self.footplate("exec", "optim.lr_scale = 0.01"), 0, "optim.lr_scale 1 -> 0.01, applied at step")
        self.check(self.footplate("exec", "train.set{ clip_norm = 500, force = true }"), 0)
        piped = subprocess.run([FOOTPLATE, "attach"], input="run.stop()\n", cwd=self.folder, env=self.environment, text=True,
                               capture_output=True, timeout=60, check=False)
        self.assertNotIn(QUESTION, piped.stdout + piped.stderr)
        wait_until(lambda: self.json("result.json"), "the run's end")

    def test_without_the_right_there_is_no_question(self):
        screen = self.attach("--role", "view", columns=160)
        screen.enter("run.stop()")
        screen.wait("needs the role admin")
        self.assertNotIn(QUESTION, screen.text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
