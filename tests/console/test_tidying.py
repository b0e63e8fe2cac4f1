#!/usr/bin/env python3
"""ls -a, rm, and completion by the shells."""

import json
import os
import re
import shutil
import subprocess
import unittest

import pexpect

from harness import BIN, FOOTPLATE, Case

LONG = {"steps": 100000, "step_ms": 10}


class Listed(Case):
    def test_ls_tells_how_runs_ended(self):
        self.check(self.footplate("run", "good", "--batch", fake={"steps": 4}), 0)
        self.check(self.footplate("run", "good", "--batch", "--restarts", "0", fake={"steps": 9, "fail": [1, "step 2 failed on rank 3"], "die_at": 2}), 1)
        with open(self.folder / "runs" / "good-1" / "metrics.jsonl", "w", encoding="utf-8") as file:
            for metrics in ({"step": 1, "train/loss": 5.5}, {"step": 2, "eval/loss": 2.25}, {"step": 3, "train/loss": 2.5}):
                file.write(json.dumps(metrics) + "\n")
        lines = self.footplate("ls", "-a").stdout.splitlines()
        self.assertEqual(lines[0].split(), "name state step ranks age loss eval loss ended outcome directory".split())
        rows = {line.split()[0]: line for line in lines[1:]}
        self.assertRegex(rows["good-1"], r" ended  4 .* 2\.5000  2\.2500 .* \d{4}-\d\d-\d\d \d\d:\d\d  done  +/")
        self.assertRegex(rows["good-2"], r" ended  2 .* -  +-  .* step 2 failed on rank 3 \(1\)  /")
        self.assertEqual(sorted(self.footplate("ls", "--names").stdout.split()), ["good-1", "good-2"])


class Removed(Case):
    def setUp(self):
        super().setUp()
        self.check(self.footplate("run", "good", "--batch", fake={"steps": 4, "checkpoint_at": 4}), 0)
        self.runs = self.folder / "runs"
        self.index = self.folder / "home" / ".local" / "state" / "footplate" / "runs"

    def test_asks_on_a_terminal(self):
        for answer, remains, code in (("", True, 1), ("n", True, 1), ("y", False, 0)):
            terminal = pexpect.spawn(FOOTPLATE, ["rm", "good-1"], cwd=str(self.folder), env=self.environment, timeout=60, encoding="utf-8")
            terminal.expect("delete this run for good")
            self.assertRegex(terminal.before, r"good-1: ended at step 4, 1 checkpoint, \d+\.\d MB in \d+ files, .*/runs/good-1")
            terminal.sendline(answer)
            terminal.expect(pexpect.EOF)
            terminal.close()
            self.assertEqual((terminal.exitstatus, (self.runs / "good-1").exists()), (code, remains), terminal.before)
        self.assertEqual(list(self.index.iterdir()), [])
        self.check(self.footplate("ls", "-a"), 0, "there is no run yet")

    def test_without_a_terminal_it_takes_force(self):
        self.check(self.footplate("rm", "good-1"), 2, "--force", "good-1: ended at step 4")
        self.assertTrue((self.runs / "good-1").exists())
        self.check(self.footplate("run", "good", "--batch", fake={"steps": 4}), 0)
        self.check(self.footplate("rm", "-f", "good-1", "runs/good-2", "good-2"), 0, "deleted good-1", "deleted good-2")
        self.assertEqual(list(self.runs.iterdir()), [])

    def test_only_runs_that_are_over(self):
        self.start("--name", "alive", fake=LONG)
        self.wait_for_step(2, "alive")
        self.check(self.footplate("rm", "--force", "good-1", "alive"), 2, "run alive lives", "footplate stop alive")
        self.check(self.footplate("rm", "--force", ""), 2, "one is empty")
        self.check(self.footplate("rm", "--force", "godo-1"), 4, "did you mean good-1?")
        (self.folder / "papers").mkdir()
        self.check(self.footplate("rm", "--force", "./papers"), 4, "holds no run")
        self.assertTrue((self.runs / "good-1").exists() and (self.runs / "alive").exists() and (self.folder / "papers").exists())

    def test_a_link_goes_with_what_it_leads_to(self):
        (self.runs / "good-1").rename(self.folder / "disk")
        (self.runs / "good-1").symlink_to(self.folder / "disk")
        self.check(self.footplate("rm", "--force", "good-1"), 0)
        self.assertFalse((self.folder / "disk").exists() or (self.runs / "good-1").is_symlink())


class Completion(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "path").mkdir()
        (self.folder / "path" / "footplate").symlink_to(FOOTPLATE)
        self.environment["PATH"] = f"{self.folder / 'path'}:{os.environ['PATH']}"
        self.environment["FOOTPLATE_PROGRAMS"] = str(BIN)

    def commands(self):
        return re.findall(r"^  ([a-z]+) ", self.footplate("help").stdout, re.MULTILINE)

    def in_bash(self, *words):
        """What bash proposes for the last of the words."""
        script = 'source <(footplate completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _footplate; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, "bash", "footplate", *words], cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return sorted(line.rstrip(" ") for line in done.stdout.splitlines() if line)

    def test_bash(self):
        self.check(self.footplate("run", "good", "--batch", env={"FOOTPLATE_PROGRAMS": str(self.folder / "bin")}, fake={"steps": 4}), 0)
        self.assertEqual(self.in_bash("st"), ["status", "stop"])
        self.assertEqual(self.in_bash(""), sorted([*self.commands(), "help", "--help", "--version"]))
        self.assertEqual(self.in_bash("run", "--res"), ["--restarts", "--resume"])
        self.assertEqual(self.in_bash("attach", "--role", ""), ["admin", "operate", "view"])
        for words in (["status", ""], ["exec", "-r", "go"], ["rm", "good"], ["run", "--name", ""]):
            self.assertEqual(self.in_bash(*words), ["good-1"], words)
        self.assertEqual(self.in_bash("run", "goo"), ["good"])
        self.assertIn("sched.base_lr=", self.in_bash("run", "good", "sched."))
        self.assertEqual(self.in_bash("settings", "data.cor"), ["data.corpus"])
        self.assertEqual(self.in_bash("run", "--resume", "au"), ["auto"])
        self.assertEqual(self.in_bash("completion", "z"), ["zsh"])
        self.assertEqual(self.in_bash("run", "log.every", "=", "5"), [])

    def test_a_name_is_proposed_and_never_run(self):
        configs = self.folder / "configs"
        configs.mkdir(exist_ok=True)
        for name in ("$(touch run_by_tab)", "`touch run_by_tab`", "a b", "a'b"):
            (configs / f"{name}.lua").write_text("return {}\n", encoding="utf-8")
        self.assertEqual(self.in_bash("run", "a"), sorted(["a\\ b", "a\\'b"]))
        self.assertEqual(self.in_bash("run", "$("), ["\\$\\(touch\\ run_by_tab\\)"])
        self.assertEqual(self.in_bash("run", "configs/a"), sorted(["configs/a\\ b.lua", "configs/a\\'b.lua"]))
        self.assertIn("configs/a b.lua", self.in_bash("run", "--script", "configs/"))
        self.assertEqual(list(self.folder.rglob("run_by_tab")), [])

    def test_a_word_goes_on_as_it_was_typed(self):
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        for folder in (self.folder, home):
            for name in ("my config", "it's", 'q"$(touch run_by_tab)'):
                (folder / f"{name}.lua").write_text("return {}\n", encoding="utf-8")
        (self.folder / "~$(touch run_by_tab).lua").write_text("return {}\n", encoding="utf-8")
        terminal = pexpect.spawn("bash", ["--norc", "--noprofile"], cwd=str(self.folder), timeout=60, encoding="utf-8", dimensions=(40, 200),
                                 env={**self.environment, "HOME": str(home), "TERM": "dumb"})
        self.addCleanup(terminal.close, force=True)
        terminal.sendline("source <(footplate completion bash); footplate() { printf '<%s>' \"$@\"; echo EN''D; }; echo lo''aded")
        terminal.expect("loaded")
        for typed, meant in (("~/my", f"{home}/my config.lua"), ("~/my\\ c", f"{home}/my config.lua"), ("~/i", f"{home}/it's.lua"),
                             ("my\\ c", "my config.lua"), ('"my c', "my config.lua"), ("'my c", "my config.lua"), ("'it", "it's.lua"),
                             ('q\\"', 'q"$(touch run_by_tab).lua'), ('"q', 'q"$(touch run_by_tab).lua')):
            terminal.send(f"footplate check {typed}\t\r")
            terminal.expect("<check>(.*)END")
            self.assertEqual(terminal.match.group(1), f"<{meant}>", typed)
        self.assertEqual(self.in_bash("run", "~"), ["\\~\\$\\(touch\\ run_by_tab\\).lua"])
        self.assertEqual(list(self.folder.rglob("run_by_tab")), [])

    def test_both_know_every_command_and_option(self):
        for shell in ("bash", "zsh"):
            script = self.check(self.footplate("completion", shell), 0).stdout
            for command in self.commands():
                self.assertIn(f"\n    {command}) ", script)
                options = re.findall(r"(?<![\w-])--[a-z][a-z-]+", self.footplate(command, "--help").stdout.split("OPTIONS")[-1])
                case = next(line for line in script.split(f"\n    {command}) ")[-1].split(" ;;\n"))
                for option in options if shell == "bash" else ():
                    self.assertIn(option, case, f"{command} in {shell}")
        self.check(self.footplate("completion", "fish"), 2, "bash")

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh(self):
        terminal = pexpect.spawn("zsh", ["-f"], cwd=str(self.folder), env={**self.environment, "TERM": "dumb", "PS1": "ready> "}, timeout=60,
                                 encoding="utf-8", dimensions=(40, 120))
        self.addCleanup(terminal.close, force=True)
        terminal.expect("ready> ")
        terminal.sendline("autoload -U compinit && compinit -D -u && source <(footplate completion zsh) && echo lo''aded")
        terminal.expect("loaded")
        terminal.send("footplate attach --role ope\t")
        terminal.expect("operate")
        terminal.send("\x15footplate st\t\t")
        terminal.expect("how a run is doing")


if __name__ == "__main__":
    unittest.main()
