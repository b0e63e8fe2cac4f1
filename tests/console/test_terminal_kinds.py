#!/usr/bin/env python3
"""attach on every kind of terminal, and on none."""

import os
import re
import subprocess
import unittest

from terminal import CTRL_C, CTRL_D, FOOTPLATE, LEFT, Screen, TerminalCase, wait_until


class Kinds(TerminalCase):
    def setUp(self):
        super().setUp()
        self.start_run()


class Plain(Kinds):
    """No escapes where the terminal would show them."""

    def dumb(self, **options):
        return self.attach(env={"TERM": "dumb"}, **options)

    def test_no_escapes(self):
        screen = self.dumb()
        screen.enter("log.every = 3")
        screen.wait("log.every 10 -> 3")
        screen.wait_prompt()  # what is typed before it stands before it
        screen.enter("log.evry = 3")
        screen.wait("did you mean log.every?")
        screen.wait_prompt()
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        screen.type(CTRL_D)
        self.assertEqual(screen.code(), 0)
        self.assertNotIn(b"\x1b", screen.raw)

    def test_several_lines(self):
        screen = self.dumb()
        screen.enter("for i = 1, 2 do")
        screen.wait(lambda s: s.line() == "...")
        screen.enter("print('row', i)")
        screen.wait(lambda s: s.line() == "..." and "print('row', i)" in s.text())
        screen.enter("end")
        screen.wait(lambda s: "row     1" in s.rows and "row     2" in s.rows)

    def test_ctrl_c(self):
        screen = self.dumb()
        screen.type(CTRL_C)
        screen.wait("still training")
        screen.wait_prompt()
        screen.enter("for i = 1, 2 do")
        screen.wait(lambda s: s.line() == "...")
        screen.type(CTRL_C)
        screen.wait_prompt()
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)

    def test_ctrl_c_in_a_chunk(self):
        screen = self.dumb()
        screen.enter("print('be' .. 'gun') while true do end")
        screen.wait("begun")  # before that Ctrl-C is of the line
        screen.type(CTRL_C)
        screen.wait("interrupted")
        screen.wait_prompt()

    def test_no_term_at_all(self):
        screen = self.attach(env={"TERM": None})
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)
        self.assertNotIn(b"\x1b", screen.raw)


class Locale(Kinds):
    def test_c_locale(self):
        screen = self.attach(env={"LC_ALL": "C"})
        screen.type(CTRL_C)
        screen.wait("still training | Ctrl-D detaches | run.stop() ends")
        screen.enter('print("gr\\u{fc}n")')
        screen.wait(lambda s: "gr?n" in s.rows)
        screen.type("1 + 'é'" + "\x7f" * 2)
        screen.wait(lambda s: re.search(r"> 1 \+$", s.line()))
        screen.type(CTRL_C)
        screen.wait_prompt()
        screen.enter("40 + 2")
        screen.wait(lambda s: "42" in s.rows)
        self.assertEqual([byte for byte in screen.raw if byte >= 0x80], [])

    def test_c_locale_and_dumb(self):
        screen = self.attach(env={"LC_ALL": "C", "TERM": "dumb"})
        screen.type(CTRL_C)
        screen.wait("still training | Ctrl-D detaches")
        self.assertEqual([byte for byte in screen.raw if byte >= 0x80 or byte == 0x1b], [])

    def test_wide_characters(self):
        screen = self.attach(columns=30)
        screen.type("x = '" + "日本" * 12 + "'")
        screen.wait(lambda s: "本'" in "".join(s.rows).replace(" ", ""))
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        screen.type(LEFT * 5)
        self.command(event="warn", data={"text": "something else"})
        screen.wait("warning: something else")
        screen.enter("")
        screen.wait_prompt()
        screen.enter("utf8.len(x)")
        screen.wait(lambda s: "24" in s.rows)
        self.assertEqual(sum("x = '" in row for row in screen.all_rows()), 1, screen.text())


class Colour(Kinds):
    def test_colours(self):
        screen = self.attach()
        screen.enter("log.evry = 3")
        screen.wait("did you mean")
        self.assertIn(b"\x1b[31m", screen.raw)

    def test_no_color(self):
        screen = self.attach(env={"NO_COLOR": "1"})
        screen.enter("log.evry = 3")
        screen.wait("did you mean")
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        self.assertIsNone(re.search(rb"\x1b\[[0-9;]*m", screen.raw))


class Size(Kinds):
    def test_narrower_and_wider(self):
        screen = self.attach(columns=100)
        screen.type("x = '" + "abcdefgh" * 8 + "'")
        screen.wait(lambda s: s.line().endswith("gh'"))
        screen.resize(24, 50)
        self.command(event="warn", data={"text": "one"})
        screen.wait("warning: one")
        screen.resize(24, 120)
        self.command(event="warn", data={"text": "two"})
        screen.wait("warning: two")
        screen.wait(lambda s: s.line().endswith("gh'"))
        screen.enter("")
        screen.wait_prompt()
        screen.enter("#x")
        screen.wait(lambda s: "64" in s.rows)

    def test_while_a_chunk_runs(self):
        screen = self.attach(columns=100)
        screen.enter("run.wait{ step = run.step + 50 } return 'waited'")
        screen.resize(30, 60)
        screen.wait(lambda s: "waited" in s.rows)
        screen.type("x = '" + "a" * 60)
        screen.wait(lambda s: s.line() != "" and set(s.line()) == {"a"})

    def test_input_higher_than_the_screen(self):
        screen = self.attach(rows=8)
        screen.enter("x = {")
        for number in range(12):
            screen.enter(f"{number},")
        screen.wait(lambda s: "... 11," in s.rows)
        self.command(event="warn", data={"text": "something odd"})
        screen.wait("warning: something odd")
        screen.enter("}")
        screen.wait_prompt()
        screen.enter("#x + 30")
        screen.wait(lambda s: "42" in s.rows)


class NoTerminal(Kinds):
    def attach_with(self, stdin, **options):
        return self.footplate("attach", stdin=stdin, **options)

    def test_lines_of_a_pipe(self):
        result = self.check(self.attach_with("x = 40\nx + 2\nprint('said')\n"), 0)
        self.assertEqual(result.stdout, "42\nsaid\n")
        self.assertEqual(result.stderr, "")

    def test_talk_goes_to_stderr(self):
        result = self.check(self.attach_with("log.every = 4\nlog.every"), 0)
        self.assertEqual(result.stdout, "4\n")
        self.assertRegex(result.stderr, r"^log.every 10 -> 4, applied at step \d+ on 8/8 ranks\n$")

    def test_several_lines(self):
        result = self.check(self.attach_with("function f(n)\n\n  return n + 1\nend\nf(41)\n"), 0)
        self.assertEqual(result.stdout, "42\n")

    def test_unfinished_at_the_end(self):
        self.check(self.attach_with("for i = 1, 2 do\n"), 3, "'end' expected")

    def test_first_error_ends_it(self):
        result = self.check(self.attach_with("log.evry = 4\nprint('not reached')\n"), 3, "did you mean log.every?")
        self.assertEqual(result.stdout, "")
        self.check(self.attach_with("\\nonsense\n"), 2)

    def test_closed_stdin(self):
        self.check(self.footplate("attach", stdin=None, preexec_fn=lambda: os.close(0)), 0)
        self.assertIsNone(self.json("result.json"))

    def test_empty_stdin(self):
        self.check(self.footplate("attach"), 0)

    def test_terminal_in_and_pipe_out(self):
        screen = self.screen_of_shell(f"{FOOTPLATE} attach | cat")
        screen.type("40 + 2\r")
        screen.wait(lambda s: "42" in s.rows)
        screen.type(CTRL_D)
        screen.code()
        self.assertNotIn(b"\x1b", screen.raw)

    def screen_of_shell(self, command):
        screen = Screen(["/bin/sh", "-c", command], self.folder, self.environment_with())
        self.screens.append(screen)
        return screen


class Tmux(Kinds):
    """A second opinion on the screen: tmux wraps lines anew when its window changes."""

    def setUp(self):
        super().setUp()
        self.tmux("new-session", "-d", "-x", "100", "-y", "30", FOOTPLATE, "attach")
        self.addCleanup(subprocess.run, ["tmux", "-L", self.mark, "kill-server"], check=False, capture_output=True)
        self.wait_rows(lambda rows: rows and re.fullmatch(r"good-1:\d+>", rows[-1]))

    def tmux(self, *arguments):
        result = subprocess.run(["tmux", "-L", self.mark, "-f", "/dev/null", *arguments], cwd=self.folder,
                                env={**self.environment, "TERM": "xterm-256color"}, capture_output=True, text=True, check=True)
        return result.stdout

    def size(self):
        tty = self.tmux("display-message", "-p", "#{pane_tty}").strip()
        return subprocess.run(["stty", "-F", tty, "size"], capture_output=True, text=True, check=True).stdout.strip()

    def rows(self):
        rows = [row.rstrip() for row in self.tmux("capture-pane", "-p", "-S", "-200").splitlines()]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def wait_rows(self, condition):
        try:
            wait_until(lambda: condition(self.rows()), "rows", 20)
        except AssertionError as error:
            raise AssertionError("\n".join(self.rows())) from error

    def test_resize_with_a_wrapped_line(self):
        self.tmux("send-keys", "-l", "x = '" + "abcdefgh" * 10 + "'")
        self.wait_rows(lambda rows: rows[-1].endswith("gh'"))
        for width in (60, 40, 120):
            self.tmux("resize-window", "-x", str(width), "-y", "30")
            # tmux wraps its lines anew at once, and tells the program some time later.
            wait_until(lambda width=width: self.size() == f"30 {width}", "the new size")
            self.command(event="warn", data={"text": f"at {width}"})
            self.wait_rows(lambda rows, width=width: any(f"warning: at {width}" in row for row in rows))
        self.tmux("send-keys", "Enter")
        self.wait_rows(lambda rows: re.fullmatch(r"good-1:\d+>", rows[-1]))
        self.tmux("send-keys", "-l", "#x")
        self.tmux("send-keys", "Enter")
        self.wait_rows(lambda rows: "80" in rows)

    def test_paste_of_tmux(self):
        self.tmux("set-buffer", "function f()\n  return 42\nend")
        self.tmux("paste-buffer", "-p")
        self.wait_rows(lambda rows: rows[-1] == "... end")
        self.tmux("send-keys", "Enter")
        self.wait_rows(lambda rows: re.fullmatch(r"good-1:\d+>", rows[-1]))
        self.tmux("send-keys", "-l", "f()")
        self.tmux("send-keys", "Enter")
        self.wait_rows(lambda rows: "42" in rows)

    def test_keys_of_tmux(self):
        self.tmux("send-keys", "-l", "1 + 23")
        self.tmux("send-keys", "Left", "BSpace", "Home")
        self.tmux("send-keys", "-l", "10 + ")
        self.tmux("send-keys", "End", "Enter")
        self.wait_rows(lambda rows: "14" in rows)
        self.tmux("send-keys", "Up")
        self.wait_rows(lambda rows: rows[-1].endswith("> 10 + 1 + 3"))

    def test_killed_server_leaves_the_run(self):
        self.tmux("kill-server")
        wait_until(lambda: self.events("client")[-1]["state"] == "detached", "the detach")
        step = self.command()["step"]
        wait_until(lambda: self.command()["step"] > step, "more steps")


if __name__ == "__main__":
    unittest.main(verbosity=2)
