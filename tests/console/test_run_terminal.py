#!/usr/bin/env python3
"""`footplate run` on a terminal: the supervisor elsewhere, the prompt here; and everything that ends only the prompt."""

import os
import re
import signal
import unittest

from terminal import CTRL_C, CTRL_D, TerminalCase, alive, wait_until


class RunOnATerminal(TerminalCase):
    def run_here(self, *arguments, fake=None, **options):
        return self.screen("run", "good", *arguments, fake={**self.fake, **(fake or {})}, **options)

    def still_trains(self):
        step = self.command()["step"]
        wait_until(lambda: self.command()["step"] > step + 5, "more steps")
        self.assertIsNone(self.json("result.json"))

    def test_becomes_the_prompt(self):
        screen = self.run_here(columns=200)
        screen.wait(lambda s: re.fullmatch(r"good-1:\d+>", s.line()))
        screen.wait("run good-1 in ")
        screen.enter("log.every = 3")
        screen.wait("log.every 10 -> 3, applied at step")

    def test_ctrl_d(self):
        screen = self.run_here()
        screen.wait_prompt()
        screen.type(CTRL_D)
        self.assertEqual(screen.code(), 0)
        self.still_trains()
        self.attach()

    def test_ctrl_c_at_the_prompt(self):
        screen = self.run_here()
        screen.wait_prompt()
        screen.type(CTRL_C)
        screen.wait("still training")
        self.still_trains()

    def test_ctrl_c_while_it_starts(self):
        screen = self.run_here(fake={"start_s": 3})
        screen.wait("start 1 of the fake rank")
        screen.type(CTRL_C)
        self.assertEqual(screen.code(), 0)
        self.still_trains()

    def test_closed_terminal(self):
        screen = self.run_here()
        screen.wait_prompt()
        screen.hang_up()
        self.still_trains()
        wait_until(lambda: self.events("client")[-1]["state"] == "detached", "the detach")

    def test_killed_client(self):
        screen = self.run_here()
        screen.wait_prompt()
        os.kill(screen.process.pid, signal.SIGKILL)
        self.assertEqual(screen.code(), -signal.SIGKILL)
        self.still_trains()

    def test_stopped_client(self):
        screen = self.run_here(fake={"log_every_ms": 10})
        screen.wait_prompt()
        os.kill(screen.process.pid, signal.SIGSTOP)
        self.command(event="warn", times=2000, data={"text": "x" * 200})
        self.still_trains()
        os.kill(screen.process.pid, signal.SIGCONT)
        screen.wait("lines left out", 30)
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)

    def test_sessions_are_not_shared(self):
        """What a terminal sends to its foreground group reaches neither supervisor nor ranks."""
        screen = self.run_here()
        screen.wait_prompt()
        launcher = self.json("run.json")["launcher_pid"]
        self.assertNotEqual(os.getsid(launcher), os.getsid(screen.process.pid))
        os.killpg(screen.process.pid, signal.SIGHUP)
        screen.code()
        self.assertTrue(alive(launcher))
        self.still_trains()

    def test_start_that_fails(self):
        screen = self.run_here(fake={"fail": [1, "no memory left"]}, columns=200)
        self.assertEqual(screen.code(), 1)
        screen.wait("no memory left")
        screen.wait("the fake rank can't start")

    def test_configuration_error(self):
        screen = self.screen("run", "good", "log.evry=3")
        self.assertEqual(screen.code(), 2)
        screen.wait("did you mean log.every?")

    def test_end_while_attached(self):
        for code, reason in ((0, "done"), (75, "signal"), (1, "diverged")):
            with self.subTest(code=code):
                screen = self.run_here("--name", f"end-{code}", columns=200)
                screen.wait_prompt()
                self.command(f"end-{code}", end=[code, reason])
                self.assertEqual(screen.code(), code)
                screen.wait(lambda s, code=code, reason=reason: any(
                    re.fullmatch(rf"end-{code} ended at step \d+: {reason} \(exit code {code}\)", row) for row in s.rows))

    def test_gone_on_with_right_after_a_stop(self):
        self.start_run()
        for _ in range(5):
            self.check(self.footplate("stop", "good-1"), 0, "good-1 ended at step", "(exit code 0)")
            self.check(self.footplate("run", "--name", "good-1", "--resume", "auto", "-d"), 0)

    def test_gone_on_with_after_everything_was_killed(self):
        self.start_run()
        self.kill_everything()
        wait_until(lambda: not self.processes(), "the end of all of it")
        screen = self.screen("run", "--name", "good-1", "--resume", "auto", fake=self.fake)
        screen.wait_prompt()
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)

    def test_stopped_from_the_prompt(self):
        screen = self.run_here()
        screen.wait_prompt()
        screen.enter('run.stop{ reason = "enough" }')
        screen.wait("really? [y/N]")
        screen.enter("y")
        self.assertEqual(screen.code(), 0)
        self.assertEqual(self.json("result.json")["reason"], "asked")

    def test_restart_is_survived(self):
        screen = self.run_here("--restarts", "1")
        screen.wait_prompt()
        self.command(exit=1)
        screen.wait("connected again")
        screen.wait_prompt()
        self.assertTrue((self.folder / "runs" / "good-1" / "config-2.json").exists())
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)
        self.command(end=[0, "done"])
        self.assertEqual(screen.code(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
