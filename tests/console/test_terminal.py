#!/usr/bin/env python3
"""The prompt of a run in a real terminal: what is typed, what comes of it, and what appears above it meanwhile."""

import os
import pathlib
import re
import signal
import threading
import time
import unittest

from terminal import CTRL_C, CTRL_D, LEFT, TerminalCase, wait_until


class Prompt(TerminalCase):
    def setUp(self):
        super().setUp()
        self.start_run()

    def rows_of(self, screen, text):
        return [row for row in screen.all_rows() if text in row]


class Chunks(Prompt):
    def test_value_of_an_expression(self):
        screen = self.attach()
        screen.enter("1 + 1")
        screen.wait(lambda s: "2" in s.rows)
        screen.enter("_ * 21")
        screen.wait(lambda s: "42" in s.rows)

    def test_variables_stay(self):
        screen = self.attach()
        screen.enter("x = 20")
        screen.wait_prompt()
        screen.enter("x + 1")
        screen.wait(lambda s: "21" in s.rows)

    def test_print_and_talk(self):
        screen = self.attach()
        screen.enter('print("said"); log.every = 7')
        screen.wait(lambda s: "said" in s.rows)
        screen.wait(lambda s: any(re.fullmatch(r"log.every 10 -> 7, applied at step \d+ on 8/8 ranks", row) for row in s.rows))
        screen.enter("log.every")
        screen.wait(lambda s: "7" in s.rows)

    def test_error_points_at_the_name(self):
        screen = self.attach()
        screen.enter("log.evry = 3")
        screen.wait("did you mean log.every?")
        screen.wait_prompt()
        rows = screen.rows
        at = rows.index("  log.evry = 3")
        self.assertEqual(rows[at + 1], "  ^^^^^^^^")
        self.assertEqual(rows[at - 1], "error: unknown setting 'log.evry'; did you mean log.every?")

    def test_syntax_error(self):
        screen = self.attach()
        screen.enter("x = = 3")
        screen.wait("unexpected symbol near '='")

    def test_settings_are_a_table(self):
        screen = self.attach(columns=140)
        screen.enter('settings("log.every")')
        screen.wait(lambda s: any(re.search(r"log.every +10 steps +\S+", row) for row in s.rows))

    def test_escapes_stay_text(self):
        screen = self.attach()
        screen.enter(r'print("\27]0;title\7\27[31mred")')
        screen.wait("\\x1b]0;title\\x07\\x1b[31mred")
        self.assertNotIn(b"\x1b]0;", screen.raw)

    def test_endless_chunk_is_interrupted(self):
        screen = self.attach()
        screen.enter("while true do end")
        screen.wait(lambda s: s.line() == "")
        screen.type(CTRL_C)
        screen.wait("interrupted")
        screen.wait_prompt()
        screen.enter("1 + 1")
        screen.wait(lambda s: "2" in s.rows)

    def test_order_that_waits_is_withdrawn_by_ctrl_c(self):
        screen = self.attach()
        screen.enter('run.pause("never")')
        screen.wait("waiting for rank 3: step 812")
        screen.type(CTRL_C)
        screen.wait("interrupted")
        screen.wait_prompt()

    def test_process_of_the_session_is_killed(self):
        screen = self.attach(columns=200)
        screen.enter('("a"):rep(1000000):find((".-"):rep(12) .. "b")')
        time.sleep(0.3)
        screen.type(CTRL_C)
        screen.wait("variables are lost")
        screen.wait_prompt()


class Keys(Prompt):
    def test_ctrl_c_cancels_what_is_typed(self):
        screen = self.attach()
        screen.type("log.every = 99")
        screen.wait(lambda s: s.line().endswith("log.every = 99"))
        screen.type(CTRL_C)
        screen.wait_prompt()
        screen.enter("log.every")
        screen.wait(lambda s: "10" in s.rows)

    def test_ctrl_c_at_an_empty_prompt(self):
        screen = self.attach()
        screen.type(CTRL_C)
        screen.wait("still training · Ctrl-D detaches · run.stop() ends")
        screen.wait_prompt()
        self.assertTrue(screen.process.isalive())

    def test_ctrl_d_detaches(self):
        screen = self.attach()
        screen.type(CTRL_D)
        self.assertEqual(screen.code(), 0)
        screen.wait("detached; good-1 goes on")
        self.assertIsNone(self.json("result.json"))

    def test_ctrl_d_in_a_line_deletes(self):
        screen = self.attach()
        screen.type("1 + 23" + LEFT * 2 + CTRL_D)
        screen.wait(lambda s: s.line().endswith("1 + 3"))
        screen.enter("")
        screen.wait(lambda s: "4" in s.rows)

    def test_ctrl_backslash_leaves_the_terminal_in_order(self):
        screen = self.attach()
        screen.type("\x1c")
        self.assertEqual(screen.code(), 0)
        self.assertEqual(screen.raw.count(b"\x1b[?2004h"), screen.raw.count(b"\x1b[?2004l"))

    def test_ctrl_z_and_back(self):
        screen = self.attach()
        screen.type("40 +")
        screen.wait(lambda s: s.line().endswith("40 +"))
        screen.type("\x1a")
        stat = pathlib.Path(f"/proc/{screen.process.pid}/stat")
        wait_until(lambda: stat.read_text().split()[2] == "T", "the stop")
        os.kill(screen.process.pid, signal.SIGCONT)
        screen.enter(" 2")
        screen.wait(lambda s: "42" in s.rows)

    def test_quit(self):
        screen = self.attach()
        screen.enter("\\q")
        self.assertEqual(screen.code(), 0)
        self.assertIsNone(self.json("result.json"))

    def test_editing_in_a_wrapped_line(self):
        screen = self.attach(columns=40)
        screen.type("x = '" + "é" * 60 + "'")
        screen.type(LEFT * 30 + "ab")
        screen.enter("")
        screen.wait_prompt()
        screen.enter("utf8.len(x)")
        screen.wait(lambda s: "62" in s.rows)

    def test_own_words(self):
        screen = self.attach()
        screen.enter("\\help")
        screen.wait("\\watch [N] EXPR")
        screen.enter("\\wacth 1 x")
        screen.wait("there is no \\wacth 1 x")

    def test_help(self):
        screen = self.attach(columns=140)
        screen.enter("?log.every")
        screen.wait("log.every = 10 steps")
        screen.wait("example: log.every")
        screen.enter("help eval.now")
        screen.wait("eval.now()")
        screen.enter("?log.evry")
        screen.wait("did you mean log.every?")
        screen.enter("help")
        screen.wait("help all: all settings, actions and functions")
        screen.enter('help("ckpt.save")')
        screen.wait("ckpt.save()")

    def test_watch(self):
        screen = self.attach()
        screen.enter("n = 0")
        screen.wait_prompt()
        screen.enter("\\watch 0.2 (function() n = n + 1; return 'seen ' .. n end)()")
        screen.wait(lambda s: "seen 3" in s.rows)
        screen.type(CTRL_C)
        screen.wait_prompt()
        screen.enter("n < 100")
        screen.wait(lambda s: "true" in s.rows)


class State(Prompt):
    def test_paused_and_back(self):
        screen = self.attach()
        screen.enter("run.pause()")
        screen.wait(lambda s: re.fullmatch(r"good-1:\d+ PAUSED>", s.line()))
        screen.enter("run.resume()")
        screen.wait(lambda s: re.fullmatch(r"good-1:\d+>", s.line()))

    def test_evaluating_and_saving(self):
        screen = self.attach()
        self.command(state="evaluating")
        screen.wait(lambda s: s.line().endswith(" EVALUATING>"))
        self.command(state="saving")
        screen.wait(lambda s: s.line().endswith(" SAVING>"))

    def test_stalled_rank_is_named(self):
        screen = self.attach()
        self.command(stall=1)
        screen.wait(lambda s: s.line().endswith(" STALLED>"))
        screen.wait("! rank 1 silent for")
        self.command(stall=None)
        screen.wait(lambda s: re.fullmatch(r"good-1:\d+>", s.line()))

    def test_stalled_run_has_no_pace(self):
        self.command(stall=1)
        status = wait_until(lambda: (lambda text: text if "silent for" in text else "")(self.footplate("status").stdout), "the note")
        head = status.splitlines()[1]
        self.assertRegex(head, r"^good-1 · STALLED 1\d s · step \d+ of 1000000 · loss 2.5000 · lr 0.0003$")
        self.assertEqual(status.count("STALLED"), 1)
        screen = self.attach()
        screen.wait(lambda s: any(re.match(r"good-1 · STALLED 1\d s · step", row) for row in s.rows))
        self.assertNotIn(" left", screen.text())
        self.assertNotIn("tokens/s", screen.text())

    def test_silent_rank_is_told_once(self):
        screen = self.attach()
        self.command(event="rank", data={"rank": 1, "state": "stalled", "text": "silent: rank 1: step 8, last heard 2.1 s ago"})
        screen.wait("silent: rank 1")
        self.command(stall=1, note="silent: rank 1: step 8, last heard 13 s ago")
        screen.wait(lambda s: s.line().endswith(" STALLED>"))
        self.assertEqual(len(self.rows_of(screen, "silent: rank 1")), 1, screen.text())

    def test_step_goes_on_while_nothing_is_typed(self):
        screen = self.attach()
        first = int(re.search(r":(\d+)>", screen.line()).group(1))
        screen.wait(lambda s: int(re.search(r":(\d+)", s.line()).group(1)) > first + 50)

    def test_view_role(self):
        screen = self.attach("--role", "view")
        screen.wait(lambda s: s.line().endswith(" view>"))
        screen.enter("log.every = 3")
        screen.wait("needs the role")
        screen.enter("log.every")
        screen.wait(lambda s: "10" in s.rows)
        self.assertEqual(self.command()["settings"]["log.every"]["value"], 10)

    def test_greeting(self):
        screen = self.attach()
        screen.wait(lambda s: re.search(r"good-1 · running · step \d+ of 1000000 · loss 2.5000", s.text()))
        rows = [row for row in screen.rows if row]
        self.assertEqual(rows[-2], "help · Tab · ?log.every · Ctrl-D leaves, the run goes on")


class Above(Prompt):
    """Events come above what is typed, which stays as it is."""

    def test_event_above_a_line(self):
        screen = self.attach()
        screen.type("return 1 +")
        screen.wait(lambda s: s.line().endswith("return 1 +"))
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        screen.wait(lambda s: s.line().endswith("> return 1 +"))
        screen.enter(" 1")
        screen.wait(lambda s: "2" in s.rows)
        self.assertEqual(len(self.rows_of(screen, "return 1 +")), 1, screen.text())

    def test_event_above_a_wrapped_line_with_the_cursor_in_its_middle(self):
        screen = self.attach(columns=40)
        screen.type("x = '" + "abcdefgh" * 12 + "'" + LEFT * 50)
        screen.wait(lambda s: "gh'" in s.text())
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        screen.enter("")
        screen.wait_prompt()
        screen.enter("#x")
        screen.wait(lambda s: "96" in s.rows)
        self.assertEqual(len(self.rows_of(screen, "x = 'abcdefgh")), 1, screen.text())

    def test_a_thousand_lines_a_second_while_typing(self):
        screen = self.attach()
        started = time.monotonic()
        text = "x = 'the quick brown fox jumps over the lazy dog'"
        flood = threading.Thread(target=self.command, kwargs={"event": "warn", "times": 3000, "each_ms": 1, "data": {"text": "line {n}"}})
        flood.start()
        for character in text:
            screen.type(character)
            time.sleep(0.02)
            screen.update()
        flood.join()
        screen.wait(lambda s: s.line().endswith(text))
        screen.wait("lines left out; footplate log has them")
        shown = len(self.rows_of(screen, "warning: line"))
        self.assertLessEqual(shown, 40 * (time.monotonic() - started + 1))
        self.assertGreater(shown, 30)
        screen.enter("")
        screen.wait_prompt()
        screen.enter("#x")
        screen.wait(lambda s: "43" in s.rows)

    def test_one_metric_line_a_second(self):
        screen = self.attach()
        started = time.monotonic()
        self.command(event="metrics", times=250, each_ms=10, data={"step": 5, "train/loss": 2.25, "train/lr": 3e-4})
        screen.wait("step 5 · loss 2.2500 · lr 0.0003")
        shown = len(self.rows_of(screen, "loss 2.25"))
        self.assertLess(shown, time.monotonic() - started + 2)

    def test_metrics_off(self):
        screen = self.attach()
        screen.enter("\\log off")
        screen.wait_prompt()
        self.command(event="metrics", times=3, data={"step": 5, "train/loss": 2.25})
        self.command(event="warn", data={"text": "after"})
        screen.wait("warning: after")
        self.assertEqual(self.rows_of(screen, "loss 2.25"), [])
        screen.enter("\\log on")
        screen.wait_prompt()
        self.command(event="metrics", data={"step": 6, "train/loss": 2.25})
        screen.wait("loss 2.25")

    def test_events_have_words(self):
        screen = self.attach()
        for topic, data, text in (("eval", {"step": 9, "loss": 2.125, "best": 2.0, "seconds": 4.2}, "eval at step 9 · loss 2.1250 · best 2.0000 · 4.2 s"),
                                  ("ckpt", {"step": 9, "path": "x/step-9"}, "checkpoint at step 9 · x/step-9"),
                                  ("rank", {"rank": 3, "state": "stalled", "text": "silent: rank 3, step 8"}, "silent: rank 3, step 8"),
                                  ("eval", {"step": 9, "failed": True, "reason": "too large"}, "eval at step 9 failed: too large")):
            self.command(event=topic, data=data)
            screen.wait(text)

    def test_what_rules_and_jobs_say(self):
        screen = self.attach(columns=120)
        self.command(event="job", data={"job": "rule 1", "text": "step 251"})
        screen.wait(lambda s: "[rule 1] step 251" in s.rows)
        self.command(event="rule", data={"rule": 1, "text": "rule 1, every(50, …), is off: three errors in a row"})
        screen.wait(lambda s: "rule 1, every(50, …), is off: three errors in a row" in s.rows)

    def test_changes_of_others_are_announced(self):
        screen = self.attach()
        other = self.attach()
        other.enter("log.every = 25")
        screen.wait(lambda s: any(re.search(r"\w+#\d+: log.every 10 -> 25, applied at step \d+ on 8/8 ranks", row) for row in s.rows))
        other.wait("log.every 10 -> 25")
        other.wait_prompt()
        self.assertEqual(len(self.rows_of(other, "10 -> 25")), 1, other.text())

    def test_attach_and_detach_of_others(self):
        screen = self.attach()
        other = self.attach()
        screen.wait(" attached (pts/")
        other.wait(lambda s: any(re.fullmatch(r"also here: \w+#\d+ \(pts/\d+\); you are \w+#\d+", row) for row in s.rows))
        other.type(CTRL_D)
        other.code()
        screen.wait(" detached (pts/")
        self.assertEqual([item["state"] for item in self.events("client")][:3], ["attached", "attached", "detached"])

    def test_event_while_a_chunk_runs(self):
        screen = self.attach()
        screen.enter("run.wait{ step = run.step + 100 } return 'waited'")
        screen.wait(lambda s: s.line() == "")
        self.command(event="warn", data={"text": "meanwhile"})
        screen.wait("warning: meanwhile")
        screen.wait(lambda s: "waited" in s.rows)


if __name__ == "__main__":
    unittest.main(verbosity=2)
