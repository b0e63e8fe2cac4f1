#!/usr/bin/env python3
"""The line editor of the prompt: several lines, paste, history, completion."""

import json
import re
import time
import unittest

from terminal import CTRL_C, CTRL_D, CTRL_R, DOWN, END, HOME, LEFT, PASTE_OFF, PASTE_ON, TAB, UP, TerminalCase, wait_until


class Typing(TerminalCase):
    def setUp(self):
        super().setUp()
        self.start_run()

    def history(self):
        path = self.folder / "home" / ".local" / "state" / "footplate" / "history"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class SeveralLines(Typing):
    def test_unfinished_input_goes_on(self):
        screen = self.attach()
        screen.enter("for i = 1, 3 do")
        screen.wait(lambda s: s.line() == "...")
        screen.enter("print('row', i)")
        screen.enter("end")
        screen.wait(lambda s: all(f"row     {i}" in s.rows for i in (1, 2, 3)))
        screen.wait_prompt()

    def test_unfinished_expression_goes_on(self):
        screen = self.attach()
        screen.enter("1 +")
        screen.wait(lambda s: s.line() == "...")
        screen.enter("41")
        screen.wait(lambda s: "42" in s.rows)

    def test_open_string_is_refused_at_once(self):
        screen = self.attach()
        screen.enter("x = 'abc")
        screen.wait("unfinished string near")
        screen.wait_prompt()

    def test_empty_line_ends_it(self):
        screen = self.attach()
        screen.enter("for i = 1, 3 do")
        screen.enter("")
        screen.wait("'end' expected")
        screen.wait_prompt()

    def test_ctrl_c_drops_all_of_it(self):
        screen = self.attach()
        screen.enter("for i = 1, 3 do")
        screen.type("print('row")
        screen.wait(lambda s: s.line() == "... print('row")
        screen.type(CTRL_C)
        screen.wait_prompt()
        self.assertEqual(self.history(), [])

    def test_editing_an_earlier_row(self):
        screen = self.attach()
        screen.enter("function f()")
        screen.type("return 41")
        screen.type(UP + HOME + DOWN + END)
        screen.type("\x7f2" + HOME + "--[[x]] " + UP + END + " --y")
        screen.type(DOWN + END + "\rend")
        screen.enter("")
        screen.wait_prompt()
        screen.enter("f()")
        screen.wait(lambda s: "42" in s.rows)

    def test_enter_in_a_middle_row_takes_all(self):
        screen = self.attach()
        screen.type(PASTE_ON + "function f()\nreturn 42\nend" + PASTE_OFF)
        screen.wait(lambda s: s.line() == "... end")
        screen.type(UP + "\r")
        screen.wait_prompt()
        screen.enter("f()")
        screen.wait(lambda s: "42" in s.rows)
        self.assertEqual([row for row in screen.rows if row == "... end"], ["... end"])

    def test_event_above_several_rows(self):
        screen = self.attach()
        screen.enter("for i = 1, 3 do")
        screen.type("  print(")
        screen.wait(lambda s: s.line() == "...   print(")
        self.command(event="warn", data={"text": "something odd"})
        # The row of the cursor is drawn last.
        screen.wait(lambda s: "warning: something odd" in s.rows and s.line() == "...   print(")
        rows = screen.rows
        at = rows.index("warning: something odd")
        self.assertRegex(rows[at + 1], r"> for i = 1, 3 do$")
        self.assertEqual(rows[at + 2], "...   print(")
        self.assertEqual(screen.screen.cursor.y, at + 2)
        screen.type("i) end\r")
        screen.wait_prompt()

    def test_line_of_an_error(self):
        screen = self.attach()
        screen.type(PASTE_ON + "x = 1\nlog.evry = 2" + PASTE_OFF + "\r")
        screen.wait("error: line 2: unknown setting 'log.evry'")
        rows = screen.rows
        at = rows.index("  log.evry = 2")
        self.assertEqual(rows[at + 1], "  ^^^^^^^^")


# Ctrl-C makes the kernel drop what nobody has read yet: once all of this is written its beginning has been read.
LONGER_THAN_ANY_BUFFER = "--" + "x" * 200_000


class Paste(Typing):
    def test_is_one_input_and_waits_for_enter(self):
        screen = self.attach()
        screen.type(PASTE_ON + "print('one')\nprint('two')\nprint('three')\n" + PASTE_OFF)
        screen.wait(lambda s: s.line() == "... print('three')")
        self.assertNotIn("one", screen.rows)
        screen.enter("")
        screen.wait(lambda s: [row for row in s.rows if row in ("one", "two", "three")] == ["one", "two", "three"])
        wait_until(lambda: self.history() == ["print('one')\nprint('two')\nprint('three')"], "the history")

    def test_tabs_and_control_characters(self):
        screen = self.attach()
        screen.type(PASTE_ON + "x = 'a\tb'\x04\x1b" + PASTE_OFF)
        screen.enter("")
        screen.wait_prompt()
        screen.enter("#x")
        screen.wait(lambda s: "3" in s.rows)

    def test_into_the_middle_of_a_line(self):
        screen = self.attach()
        screen.type("1 +  + 1" + LEFT * 4 + PASTE_ON + "40" + PASTE_OFF)
        screen.enter("")
        screen.wait(lambda s: "42" in s.rows)

    def test_long_one(self):
        screen = self.attach()
        lines = [f"x{i} = {i}" for i in range(300)]
        screen.type(PASTE_ON + "\n".join(lines) + PASTE_OFF)
        screen.wait(lambda s: s.line() == "... x299 = 299")
        screen.enter("")
        screen.wait_prompt()
        screen.enter("x150 + x299")
        screen.wait(lambda s: "449" in s.rows)

    def test_ctrl_c_drops_the_rest_of_it(self):
        screen = self.attach()
        screen.type(PASTE_ON + LONGER_THAN_ANY_BUFFER)
        screen.type(CTRL_C + "of the paste\n" + PASTE_OFF)
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)
        self.assertNotIn("paste", screen.text())

    def test_of_which_ctrl_c_takes_the_end(self):
        screen = self.attach()
        screen.type(PASTE_ON + LONGER_THAN_ANY_BUFFER)
        screen.type(CTRL_C)
        screen.wait(lambda s: "still training" in s.text())
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)

    def test_whoever_types_on_after_ctrl_c_is_heard(self):
        screen = self.attach()
        screen.type(PASTE_ON + LONGER_THAN_ANY_BUFFER)
        screen.type(CTRL_C)
        for _ in range(100):
            screen.type("y")
            time.sleep(0.3)  # as a person does who looks for the keys
            if screen.line().endswith("y"):
                break
        self.assertRegex(screen.line(), "> y+$")

    def test_too_long_a_one_is_cut(self):
        screen = self.attach()
        screen.type(PASTE_ON + "--" + "x" * ((256 << 10) + 10) + "~\nprint('behind' .. ' it')\n" + PASTE_OFF)
        screen.wait(lambda s: s.line().endswith("xxx"))
        screen.type(CTRL_C)
        screen.wait_prompt()
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)
        self.assertNotIn("behind it", screen.text())

    def test_terminal_is_left_as_it_was(self):
        screen = self.attach()
        screen.type(CTRL_D)
        screen.code()
        self.assertEqual(screen.raw.count(b"\x1b[?2004h"), screen.raw.count(b"\x1b[?2004l"))


class Ahead(Typing):
    def test_typed_while_a_chunk_runs(self):
        screen = self.attach()
        screen.enter("run.wait{ step = run.step + 100 } return 'waited'")
        screen.wait(lambda s: s.line() == "")
        screen.type("40 + 2\r" + PASTE_ON + "y = 3\nz = 4" + PASTE_OFF)
        screen.wait(lambda s: "42" in s.rows and s.line() == "... z = 4")
        rows = [row for row in screen.rows if row]
        self.assertEqual(rows[rows.index("waited") + 2], "42")
        screen.type(CTRL_C)
        screen.wait_prompt()

    def test_ctrl_d_while_a_chunk_runs(self):
        screen = self.attach()
        screen.enter("run.wait{ step = run.step + 50 } return 'waited'")
        screen.wait(lambda s: s.line() == "")
        screen.type(CTRL_D)
        self.assertEqual(screen.code(), 0)
        self.assertIn("waited", screen.rows)


class History(Typing):
    def test_up_and_down(self):
        screen = self.attach()
        for text in ("x = 1", "y = 2"):
            screen.enter(text)
            screen.wait_prompt()
        screen.type(UP)
        screen.wait(lambda s: s.line().endswith("> y = 2"))
        screen.type(UP)
        screen.wait(lambda s: s.line().endswith("> x = 1"))
        screen.type(DOWN)
        screen.wait(lambda s: s.line().endswith("> y = 2"))
        screen.type(DOWN)
        screen.wait_prompt()

    def test_is_kept_for_the_next_client(self):
        screen = self.attach()
        screen.type(PASTE_ON + "function f()\n  return 42\nend" + PASTE_OFF + "\r")
        screen.wait_prompt()
        screen.type(CTRL_D)
        screen.code()
        other = self.attach()
        other.type(UP)
        other.wait(lambda s: s.line() == "... end")
        other.enter("")
        other.wait_prompt()
        other.enter("f()")
        other.wait(lambda s: "42" in s.rows)

    def test_two_clients_lose_nothing(self):
        screens = [self.attach() for _ in range(2)]
        for number in range(10):
            for index, screen in enumerate(screens):
                screen.enter(f"x{index} = {number}")
                screen.wait_prompt()
        self.assertEqual(sorted(self.history()), sorted(f"x{i} = {n}" for i in range(2) for n in range(10)))

    def test_a_space_keeps_it_out(self):
        screen = self.attach()
        screen.enter(" secret = 1")
        screen.wait_prompt()
        screen.enter("public = 1")
        screen.wait_prompt()
        wait_until(lambda: self.history() == ["public = 1"], "the history")

    def test_search_goes_on_below_events(self):
        screen = self.attach()
        for text in ("alpha = 41", "beta = 2"):
            screen.enter(text)
            screen.wait_prompt()
        screen.type(CTRL_R + "alp")
        screen.wait(lambda s: "alpha = 41" in s.text().split("beta = 2")[-1])
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        screen.type(END)
        screen.enter(" alpha = alpha + 1")
        screen.wait_prompt()
        screen.enter("alpha")
        screen.wait(lambda s: "42" in s.rows)


class Completion(Typing):
    def test_only_one(self):
        screen = self.attach()
        screen.type("log.ev" + TAB)
        screen.wait(lambda s: s.line().endswith("> log.every"))

    def test_list_with_value_unit_and_help(self):
        screen = self.attach(columns=120)
        screen.type("log." + TAB)
        screen.wait(lambda s: any(re.match(r"log\.every +10 steps · \S", row) for row in s.rows))
        screen.wait(lambda s: s.line().endswith("> log."))

    def test_common_start(self):
        screen = self.attach()
        screen.type("optim.we" + TAB)
        screen.wait(lambda s: s.line().endswith("> optim.weight_decay"))

    def test_actions_and_functions(self):
        screen = self.attach(columns=120)
        screen.type("eval.n" + TAB)
        screen.wait(lambda s: s.line().endswith("> eval.now"))
        screen.type("\x15" + "undo" + TAB)
        screen.wait(lambda s: s.line().endswith("> undo"))
        screen.type("\x15" + "string.gm" + TAB)
        screen.wait(lambda s: s.line().endswith("> string.gmatch"))

    def test_parameters(self):
        screen = self.attach(columns=120)
        screen.type("eval.now{ bat" + TAB)
        screen.wait(lambda s: s.line().endswith("eval.now{ batches ="))

    def test_in_a_string_there_is_none(self):
        screen = self.attach()
        screen.type("x = 'log.ev" + TAB + "'")
        screen.wait(lambda s: s.line().endswith("> x = 'log.ev'"))

    def test_never_evaluates(self):
        screen = self.attach()
        screen.enter("setmetatable({}, {__index = error})")
        screen.wait_prompt()
        screen.enter("x = setmetatable({}, {__index = function() log.every = 1 end})")
        screen.wait_prompt()
        screen.type("x.lo" + TAB + TAB)
        screen.wait(lambda s: s.line().endswith("x.lo"))
        self.assertEqual(self.command()["settings"]["log.every"]["value"], 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
