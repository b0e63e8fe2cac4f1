#!/usr/bin/env python3
"""Scenes of a person's first minutes at the prompt: help, hints, names that complete, what one action prints, how to leave."""

import re
import unittest

from terminal import CTRL_C, CTRL_D, CTRL_R, END, HOME, LEFT, PASTE_OFF, PASTE_ON, RIGHT, TAB, UP, TerminalCase, wait_until

BACKSPACE = "\x7f"


class Scene(TerminalCase):
    def setUp(self):
        super().setUp()
        self.start_run()

    def rows_of(self, screen, text):
        return [row for row in screen.all_rows() if text in row]

    def typed(self, screen, text):
        """Types, and waits until it stands there."""
        screen.type(text)
        screen.wait(lambda s: s.line().endswith(text))


class Leaving(Scene):
    def leaves(self, word):
        screen = self.attach()
        screen.enter(word)
        self.assertEqual(screen.code(), 0)
        screen.wait("detached; good-1 goes on")
        self.assertIsNone(self.json("result.json"))

    def test_quit(self):
        self.leaves("quit")

    def test_exit(self):
        self.leaves("exit")

    def test_as_a_call(self):
        self.leaves("exit()")


class Help(Scene):
    def test_fits_a_small_terminal(self):
        screen = self.attach()
        screen.enter("help")
        screen.wait("help all: all settings, actions and functions")
        screen.wait_prompt()
        rows = [row for row in screen.rows if row]
        self.assertRegex(rows[0], r"good-1 · running|· 10 ms/step|help · Tab|> help$|^see where")
        self.assertTrue(any(row.startswith("see where the run is") for row in rows), rows)
        self.assertTrue(any(row.startswith("leave; end the run") for row in rows), rows)

    def test_all_in_a_pager(self):
        screen = self.attach(env={"PAGER": "less -X"})
        screen.enter("help all")
        screen.wait(lambda s: s.line().startswith(":") and "settings, as in log.every = 10" in s.text())
        self.assertNotIn("at this prompt", screen.text())
        self.command(event="warn", data={"text": "something odd"})
        screen.type("G")
        screen.wait("at this prompt")
        screen.type("q")
        screen.wait_prompt()
        screen.wait("warning: something odd")
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)

    def test_pager_that_is_none(self):
        screen = self.attach(env={"PAGER": "cat"})
        screen.enter("help all")
        screen.wait("at this prompt")
        screen.wait_prompt()

    def test_searches_a_word(self):
        screen = self.attach(columns=140)
        screen.enter("?checkpoint")
        screen.wait("no name is 'checkpoint'; it is in")
        screen.wait(lambda s: any(row.startswith("ckpt.save()") for row in s.rows))

    def test_unknown_word(self):
        screen = self.attach()
        screen.enter("?zzzz")
        screen.wait("unknown setting 'zzzz'")


class Hints(Scene):
    def test_what_a_setting_is(self):
        screen = self.attach(columns=120)
        self.typed(screen, "log.every")
        screen.wait(lambda s: s.hint().startswith("  10 steps · Loss, learning rate"))

    def test_right_takes_the_rest(self):
        screen = self.attach(columns=120)
        self.typed(screen, "optim.weight_d")
        screen.wait(lambda s: s.hint().startswith("ecay"))
        screen.type(RIGHT)
        screen.wait(lambda s: s.line().endswith("> optim.weight_decay"))

    def test_what_was_typed_before(self):
        screen = self.attach()
        screen.enter("alpha = 41")
        screen.wait_prompt()
        self.typed(screen, "alp")
        screen.wait(lambda s: s.hint() == "ha = 41")
        screen.type(END)
        screen.wait(lambda s: s.line().endswith("> alpha = 41"))

    def test_fields_of_a_table(self):
        screen = self.attach(columns=120)
        screen.type("ckpt.save{ ")
        screen.wait(lambda s: "tag" in s.hint())

    def test_goes_with_the_next_key(self):
        screen = self.attach(columns=120)
        self.typed(screen, "log.every")
        screen.wait(lambda s: s.hint() != "")
        screen.type(" = 20")
        screen.wait(lambda s: s.line().endswith("log.every = 20"))
        screen.enter("")
        screen.wait("log.every 10 -> 20")
        self.assertNotIn("Loss, learning rate", screen.text())

    def test_off(self):
        screen = self.attach(columns=120)
        screen.enter("\\hints off")
        screen.wait_prompt()
        screen.enter("log.every = 30")
        screen.wait("10 -> 30")
        screen.wait_prompt()
        self.typed(screen, "log.every")
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        self.assertEqual(screen.hint(), "")

    def test_none_without_colours(self):
        screen = self.attach(env={"NO_COLOR": "1"}, columns=120)
        self.typed(screen, "log.every")
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        screen.wait(lambda s: s.line().endswith("> log.every"))
        self.assertIsNone(re.search(rb"\x1b\[[0-9;]*m", screen.raw))


class Names(Scene):
    def complete(self, typed, expected, **options):
        screen = self.attach(**{"columns": 120, **options})
        screen.type(typed + TAB)
        screen.wait(lambda s: s.line().endswith(expected))
        return screen

    def test_choices(self):
        self.complete('sched.kind = "lin', 'sched.kind = "linear')

    def test_choices_in_a_table(self):
        self.complete('set{ sched = { kind = "lin', '{ kind = "linear')

    def test_events(self):
        self.complete('run.wait{ event = "ev', 'event = "eval')

    def test_metrics(self):
        self.command(event="metrics", data={"step": 5, "train/loss": 2.25, "train/lr": 3e-4})
        self.complete('metrics["train/lo', 'metrics["train/loss')

    def test_tags(self):
        folder = self.folder / "runs" / "good-1" / "checkpoints" / "main" / "step-00000012-before-spike"
        folder.mkdir(parents=True)
        self.complete('ckpt.load("bef', 'ckpt.load("before-spike')

    def test_fields_of_a_function(self):
        self.complete("run.wait{ sec", "seconds =")

    def test_own_variables(self):
        screen = self.attach()
        screen.enter("my_rate = 1")
        screen.wait_prompt()
        screen.type("\x15" + "x = my_" + TAB)
        screen.wait(lambda s: s.line().endswith("> x = my_rate"))

    def test_backslash_words(self):
        screen = self.complete("\\wa", "> \\watch")
        screen.type(CTRL_C)
        screen.wait_prompt()
        screen.type("\\log o" + TAB)
        screen.wait(lambda s: "off" in s.rows and "on" in s.rows)

    def test_behind_a_question_mark(self):
        self.complete("?log.ev", "?log.every")


class OneLine(Scene):
    """One action, one line."""

    def lines_of(self, chunk, last):
        screen = self.attach(columns=140)
        screen.enter(chunk)
        screen.wait(last)
        screen.wait_prompt()
        self.command(event="warn", data={"text": "and then"})
        screen.wait("warning: and then")
        screen.wait_prompt()
        rows = [row for row in screen.all_rows() if row]
        first = next(index for index, row in enumerate(rows) if row.endswith("> " + chunk))
        return rows[first + 1: rows.index("warning: and then")]

    def test_pause(self):
        rows = self.lines_of("run.pause()", "run.pause(), applied")
        self.assertEqual(len(rows), 1, rows)
        rows = self.lines_of("run.resume()", "run.resume(), applied")
        self.assertEqual(len(rows), 1, rows)

    def test_save(self):
        rows = self.lines_of("ckpt.save()", "checkpoint at step")
        self.assertEqual([re.sub(r"\d+", "N", row) for row in rows], ["checkpoint at step N · checkpoints/main/step-N · N.N s"])

    def test_evaluation(self):
        rows = self.lines_of("eval.now()", "eval at step")
        self.assertEqual(len(rows), 1, rows)

    def test_store(self):
        rows = self.lines_of("store.x = 5", "applied at step")
        self.assertRegex("\n".join(rows), r"^store.x = 5, applied at step \d+ on 8/8 ranks$")

    def test_tables_fit(self):
        screen = self.attach()
        screen.enter('settings("lr")')
        screen.wait(lambda s: any(row.startswith("optim.lr_scale") for row in s.all_rows()))
        screen.wait_prompt()
        rows = screen.all_rows()
        first = next(index for index, row in enumerate(rows) if row.endswith('> settings("lr")'))
        table = [row for row in rows[first + 1:] if row and not row.startswith("good-1")]
        self.assertTrue(all(re.match(r"(\w+\.\w+ | {10,}\S)", row) for row in table), table)


class Trial(TerminalCase):
    def test_says_how_far_it_is_and_its_verdict_once(self):
        self.start_run(log_every_ms=60)
        screen = self.attach(columns=160)
        screen.enter("\\log off")
        screen.wait_prompt()
        screen.enter("try{ set = { optim = { lr_scale = 0.5 } }, steps = 100 }")
        screen.wait(lambda s: any(re.fullmatch(r"measuring \d+ of 100 steps", row) for row in s.rows))
        self.assertEqual(len([row for row in screen.all_rows() if row.startswith("measuring ")]), 1, screen.text())
        screen.wait("trial of optim.lr_scale = 0.5: train/loss")
        screen.wait(lambda s: re.fullmatch(r"good-1:\d+>", s.line()))
        self.command(event="warn", data={"text": "and then"})
        screen.wait("warning: and then")
        self.assertEqual(len([row for row in screen.all_rows() if "trial of" in row]), 1, screen.text())
        self.assertNotIn("measuring", screen.text())
        self.assertNotIn("run.note", screen.text())


class Watching(Scene):
    def test_redraws_in_place_with_the_time(self):
        screen = self.attach()
        screen.enter("n = 0")
        screen.wait_prompt()
        screen.enter("\\watch 0.2 (function() n = n + 1; return 'seen ' .. n end)()")
        screen.wait(lambda s: "seen 3" in s.rows)
        self.assertEqual(len([row for row in screen.rows if row.startswith("seen ")]), 1, screen.text())
        self.assertTrue(any(re.match(r"\d\d:\d\d:\d\d · every 0.2 s, until Ctrl-C: ", row) for row in screen.rows))
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        screen.wait(lambda s: "seen 6" in s.rows)
        rows = screen.rows
        self.assertLess(rows.index("warning: something odd"), next(i for i, row in enumerate(rows) if row.startswith("seen ")))
        screen.type(CTRL_C)
        screen.wait_prompt()
        self.assertEqual(len([row for row in screen.rows if row.startswith("seen ")]), 1, screen.text())

    def watched(self, text):
        """The screen once `text`, an expression of Lua with a count in it, has been evaluated five times."""
        screen = self.attach()
        screen.enter("n = 0")
        screen.wait_prompt()
        screen.enter(f"\\watch 0.2 (function() n = n + 1; return {text} end)()")
        screen.wait(lambda s: "seen 5" in s.text())
        return screen

    def test_blank_rows_at_its_end(self):
        screen = self.watched("'seen ' .. n .. '\\n\\n\\n'")
        self.assertTrue(any("> n = 0" in row for row in screen.rows), screen.text())
        self.assertEqual(len([row for row in screen.rows if row.startswith("seen ")]), 1, screen.text())
        screen.type(CTRL_C)
        screen.wait_prompt()

    def test_tabs_are_no_longer_than_the_row(self):
        screen = self.watched("'\\t\\t' .. ('x'):rep(70) .. '\\nseen ' .. n")
        self.assertEqual(len([row for row in screen.rows if " · every 0.2 s" in row]), 1, screen.text())
        screen.type(CTRL_C)
        screen.wait_prompt()

    def test_a_time_beyond_all_clocks_is_a_day(self):
        screen = self.attach()
        screen.enter("n = 0")
        screen.wait_prompt()
        screen.enter("\\watch inf (function() n = n + 1; return 'seen ' .. n end)()")
        screen.wait("every 86400 s, until Ctrl-C")
        screen.type(CTRL_C)
        screen.wait_prompt()
        screen.enter("n")
        screen.wait(lambda s: "1" in s.rows)

    def test_error_ends_it(self):
        screen = self.attach()
        screen.enter("\\watch 0.2 nothing.at_all")
        screen.wait("error:")
        screen.wait_prompt()


class SeveralRows(Scene):
    def test_margin_goes_as_a_whole(self):
        screen = self.attach()
        screen.enter("x = {")
        screen.wait(lambda s: s.line() == "...")
        screen.type(BACKSPACE)
        screen.wait(lambda s: s.line().endswith("> x = {"))
        screen.type("}\r")
        screen.wait_prompt()

    def test_home_stops_behind_it(self):
        screen = self.attach()
        screen.enter("x = {")
        screen.type("2}" + HOME + "4")
        screen.wait(lambda s: s.line() == "... 42}")
        screen.type("\r")
        screen.wait_prompt()
        screen.enter("x[1]")
        screen.wait(lambda s: "42" in s.rows)

    def test_long_strings_have_none(self):
        screen = self.attach()
        screen.enter("x = [[a")
        screen.wait(lambda s: s.line() == "")
        screen.type("b]]\r")
        screen.wait_prompt()
        screen.enter("#x")
        screen.wait(lambda s: "3" in s.rows)

    def test_history_has_it_again(self):
        screen = self.attach()
        screen.type(PASTE_ON + "y = {\n1,\n}" + PASTE_OFF + "\r")
        screen.wait_prompt()
        screen.type(UP)
        screen.wait(lambda s: s.line() == "... }")
        screen.type(CTRL_C)
        screen.wait_prompt()


class NothingStray(Scene):
    def test_ctrl_c_in_a_search(self):
        screen = self.attach()
        screen.enter("alpha = 41")
        screen.wait_prompt()
        screen.type(CTRL_R + "alp")
        screen.wait(lambda s: s.text().count("alpha = 41") == 2)
        screen.type(CTRL_C)
        screen.wait_prompt()
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)
        self.assertEqual([row for row in screen.all_rows() if "bck" in row or "^" in row], [])

    def test_ctrl_c_in_a_search_that_finds_nothing(self):
        screen = self.attach()
        screen.type(CTRL_R + "zzz")
        screen.wait("zzz")
        screen.type(CTRL_C)
        screen.wait(lambda s: "zzz" not in s.text())
        screen.wait_prompt()

    def test_hints_come_back_after_a_search(self):
        screen = self.attach(columns=120)
        screen.type(CTRL_R + "zzz")
        screen.wait("zzz")
        screen.type(CTRL_C)
        screen.wait_prompt()
        self.typed(screen, "log.every")
        screen.wait(lambda s: s.hint() != "")


class Colours(Scene):
    def test_by_meaning(self):
        screen = self.attach()
        screen.enter("log.every = 20")
        screen.wait("10 -> 20")
        screen.wait_prompt()
        self.assertRegex(screen.raw, rb"\x1b\[32mlog.every 10 -> 20, applied")
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        self.assertIn(b"\x1b[33mwarning: something odd", screen.raw)
        self.command(stall=1)
        screen.wait(lambda s: s.line().endswith(" STALLED>"))
        wait_until(lambda: (screen.update(), re.search(rb"\x1b\[1;33mgood-1:\d+ STALLED> ", screen.raw))[1], "a yellow prompt")

    def test_of_typed_lua(self):
        screen = self.attach()
        self.typed(screen, "return 'a', 1 -- x")
        wait_until(lambda: (screen.update(), b"\x1b[35mreturn\x1b[0m \x1b[32m'a'\x1b[0m, \x1b[36m1\x1b[0m" in screen.raw)[1], "colours")

    def test_colours_move_nothing(self):
        screen = self.attach(columns=40)
        screen.type("return '" + "abcdefgh" * 8 + "' .. 1" + LEFT * 30)
        screen.wait(lambda s: "1" in s.text())
        screen.type("X")
        screen.enter("")
        screen.wait(lambda s: any("X" in row and not row.startswith("good-1") for row in s.rows))


class Sessions(Scene):
    def test_two_of_one_user_are_told_apart(self):
        screen = self.attach()
        other = self.attach(columns=120)
        other.wait(lambda s: any(re.fullmatch(r"also here: (\w+#\d+) \(pts/\d+\); you are \w+#\d+", row) for row in s.rows))
        names = re.findall(r"\w+#\d+", next(row for row in other.rows if row.startswith("also here: ")))
        self.assertEqual(len(set(names)), 2)
        other.enter("log.every = 25")
        screen.wait(lambda s: any(row.startswith(f"{names[1]}: log.every 10 -> 25") for row in s.rows))
        other.type(CTRL_D)
        other.code()
        screen.wait(f"{names[1]} detached")


if __name__ == "__main__":
    unittest.main(verbosity=2)
