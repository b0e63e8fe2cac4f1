#!/usr/bin/env python3
"""exec, status, stop, ls and log on live runs and on ended ones."""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import pexpect

from harness import Case, FOOTPLATE, hang_up, wait_until

LONG = {"steps": 100000, "step_ms": 10}


class Live(Case):
    def setUp(self):
        super().setUp()
        self.run_process = self.start(fake=LONG)
        self.wait_for_step(1)

    def test_exec(self):
        result = self.check(self.footplate("exec", "x = 1"), 0)
        self.assertEqual(result.stdout, "printed\nran x = 1\n")
        self.assertEqual(result.stderr, "log.every 50 -> 10\n")
        result = self.check(self.footplate("exec", "-r", "good-1", "--json", "y"), 0)
        self.assertEqual(json.loads(result.stdout.splitlines()[-1]), {"code": "y"})
        (self.folder / "chunk.lua").write_text("from a file")
        self.check(self.footplate("exec", "-f", "chunk.lua"), 0, "ran from a file")
        self.check(self.footplate("exec", "-", stdin="from stdin"), 0, "ran from stdin")
        self.check(self.footplate("exec", "-r", "runs/good-1", "by path"), 0, "ran by path")
        self.check(self.footplate("exec", "-f", "nothing.lua"), 2, "nothing.lua")
        self.check(self.footplate("exec", "-f", "."), 2, "can't read .: Is a directory")

    def test_exec_exit_codes(self):
        for kind, code in (("usage", 2), ("script", 3), ("unreachable", 4), ("refused", 5), ("timed_out", 6), ("failed", 1)):
            result = self.check(self.footplate("exec", "kind:" + kind), code, "as you wish")
            self.assertEqual(result.stdout, "")

    @unittest.skipIf(os.environ.get("FOOTPLATE_SANITIZED"), "sanitizers slow everything down")
    def test_exec_is_quick(self):
        times = []
        for _ in range(20):
            start = time.monotonic()
            self.check(self.footplate("exec", "return 1"), 0)
            times.append(time.monotonic() - start)
        self.assertLess(min(times), 0.05)  # the least: other tests may run beside this one

    def test_exec_times_out(self):
        start = time.monotonic()
        self.check(self.footplate("exec", "hang", "--timeout", "0.2"), 6, "0.2 s", "interrupted")
        self.check(self.footplate("exec", "deaf", "--timeout", "0.2"), 6, "0.2 s", "footplate status")
        self.assertLess(time.monotonic() - start, 20)

    def test_ctrl_c(self):
        for code, text in (("hang", "interrupted"), ("deaf", "interrupted")):
            process = subprocess.Popen([FOOTPLATE, "exec", code], cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 3, err)
            self.assertIn(text, err)

    def test_exec_sees_the_run_die(self):
        result = self.footplate("exec", "die")
        self.check(result, 4)

    def test_status(self):
        result = self.check(self.footplate("status"), 0)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0], "! rank 0 is made of paper")
        for text in ("good-1 · running · step", "of 100000", "loss 2.5000", "1234 tokens/s", "1 min 15 s left"):
            self.assertIn(text, lines[1])
        for text in ("forward 0.1 s", "0.05 s", "all_reduce #7, 1000 elements, 0.2 s"):
            self.assertIn(text, lines[3])
        self.assertEqual(json.loads(self.footplate("status", "good-1", "--json").stdout)["state"], "running")

    def test_status_without_console(self):
        self.start("--name", "mute", fake={**LONG, "console": False})
        self.wait_for_step(2, "mute")
        self.check(self.footplate("status", "mute"), 0, "mute · running · step", "doesn't answer yet")
        self.check(self.footplate("exec", "-r", "mute", "return 1", "--timeout", "0.3"), 4, "mute", "launcher.log")
        start = time.monotonic()
        self.check(self.footplate("stop", "mute"), 4, "footplate stop --now mute")
        self.assertLess(time.monotonic() - start, 8)
        self.check(self.footplate("stop", "mute", "--now"), 0, "mute ended")

    def test_a_run_that_hangs_in_its_start(self):
        self.start("--name", "early", fake={**LONG, "start_hang": True})
        wait_until(lambda: "before MPI" in self.footplate("status", "early").stdout, "the rank's place")
        result = self.check(self.footplate("status", "early"), 0, "early · starting · step 0", "launcher.log", "rank-0.log")
        self.assertRegex(result.stdout.splitlines()[0], "^! starting for [0-9]+ s, waiting for rank 0 of 1: host .*, pid [0-9]+, before MPI starts")
        status = json.loads(self.footplate("status", "early", "--json").stdout)
        self.assertEqual(status["state"], "starting")
        self.assertIn("waiting for rank 0 of 1", status["notes"][0])
        self.assertIn("before MPI starts", status["ranks"][0]["phase"])
        result = self.check(self.footplate("log", "early"), 0, "run early is starting for", "before MPI starts", "launcher.log")
        self.assertEqual(result.stdout, "")
        self.check(self.footplate("stop", "early", "--timeout", "1"), 4, "waiting for rank 0 of 1", "--now")
        self.check(self.footplate("stop", "early", "--now"), 0)

    def test_the_step_of_a_live_run_is_the_newest(self):
        self.start("--name", "quick", fake={**LONG, "ahead": 1000, "console": False})
        self.wait_for_step(2, "quick")
        steps = {line.split()[0]: int(line.split()[2]) for line in self.footplate("ls").stdout.splitlines()[1:]}
        self.assertGreater(steps["quick"], 1000)
        self.assertLess(steps["good-1"], 1000)
        self.assertRegex(self.footplate("status", "quick").stdout, "quick · running · step 1[0-9]{3}")

    def test_stop_that_is_not_agreed_hints_at_now(self):
        for state, code in (("aborted", 6), ("refused", 5), ("withdrawn", 6)):
            self.start("--name", state, fake={**LONG, "refuse_stop": [state, "waited for rank 3: step 812"]})
            self.wait_for_step(1, state)
            self.check(self.footplate("stop", state), code, f"run {state} isn't stopped, its order was {state}: waited for rank 3: step 812",
                       f"footplate stop --now {state}")
            self.check(self.footplate("stop", state, "--now"), 0)

    def test_stop(self):
        self.check(self.footplate("stop"), 0, "good-1 ended at step", "asked", "checkpoints/main/step-")
        self.assertEqual(self.run_process.wait(60), 0)
        self.assertIn("footplate stop", self.json("result.json")["note"])
        self.check(self.footplate("stop"), 4, "no run is live", "good-1")
        self.check(self.footplate("stop", "good-1"), 4, "ended at step")

    def test_stop_resumable_without_saving(self):
        self.check(self.footplate("stop", "--resumable", "--no-save"), 0)
        self.assertEqual(self.run_process.wait(60), 75)
        self.assertIsNone(self.json("result.json")["checkpoint"])

    def test_stop_now(self):
        self.check(self.footplate("stop", "--now"), 0, "signal")
        self.assertEqual(self.run_process.wait(60), 75)

    def test_several_runs(self):
        self.start("--name", "other", fake=LONG)
        self.wait_for_step(1, "other")
        for command in (["status"], ["exec", "x"], ["stop"]):
            self.check(self.footplate(*command), 2, "several runs are live", "good-1", "other")
        self.check(self.footplate("stop", "other"), 0)

    def test_found_from_another_folder(self):
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        result = subprocess.run([FOOTPLATE, "status", "good-1"], cwd=elsewhere, env=self.environment, capture_output=True, text=True,
                                check=False)
        self.check(result, 0, "good-1 · running")

    def test_log_follows_to_the_end(self):
        process = subprocess.Popen([FOOTPLATE, "log", "-f"], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True)
        lines = []
        for line in process.stdout:  # to its end: step 5 may be the last one
            lines.append(line.rstrip("\n"))
            if lines[-1] == "step 5":
                self.footplate("stop")
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertIn("step 5", lines)
        self.assertEqual(lines, self.batch_lines())

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([FOOTPLATE, "log"], cwd=self.folder, env=self.environment, stdout=full, stderr=subprocess.PIPE, text=True,
                                    check=False)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("can't write the log", result.stderr)

    def test_terminal_escapes_stay_text(self):
        log = self.folder / "runs" / "good-1" / "log" / "batch.log"
        with open(log, "ab") as file:
            file.write(b"\x1b]0;title\x07\xc2\x9b31m\n")
        terminal = pexpect.spawn(FOOTPLATE, ["log"], cwd=self.folder, env=self.environment, timeout=60)
        terminal.expect(pexpect.EOF)
        self.assertNotIn(b"\x1b]0", terminal.before)
        self.assertIn(b"\\x1b]0;title\\x07\\x9b31m", terminal.before)
        terminal.wait()


class Ended(Case):
    def setUp(self):
        super().setUp()
        self.check(self.footplate("run", "good", "--batch", fake={"steps": 4}), 0)

    def test_everything_says_that_it_ended(self):
        self.check(self.footplate("status"), 0, "good-1 ended at step 4: done (exit code 0)")
        self.check(self.footplate("exec", "return 1"), 4, "no run is live", "good-1", "ended at step 4: done")
        self.check(self.footplate("exec", "-r", "runs/good-1", "return 1"), 4, "ended at step 4", "see: footplate report good-1",
                   "for a longer run: footplate run --name good-1 --resume auto train.steps=8")
        self.check(self.footplate("log"), 0, "step 1\nstep 2\nstep 3\nstep 4\n")
        self.assertEqual(self.footplate("log", "-n", "2").stdout, "step 3\nstep 4\n")
        log = self.folder / "runs" / "good-1" / "log" / "batch.log"
        long = [f"step {i}: {'x' * 60}\n" for i in range(20000)]
        log.write_text("".join(long))
        self.assertEqual(self.footplate("log", "-n", "12000").stdout, "".join(long[-12000:]))
        log.write_text("step 1\nstep 2\nstep 3\nstep 4\n")
        self.check(self.footplate("log", "-f", "good-1"), 0, "step 4")
        self.check(self.footplate("ls"), 0, "no run is live", "1 ended or lost")
        self.check(self.footplate("ls", "-a"), 0, "good-1  ended  4")
        status = json.loads(self.footplate("status", "--json").stdout)
        self.assertEqual((status["state"], status["result"]["code"]), ("ended", 0))

    def test_one_that_is_not_done_goes_on(self):
        self.check(self.footplate("run", "good", "--batch", fake={"steps": 4, "fail": [75, "time limit"], "die_at": 2}), 75)
        self.check(self.footplate("exec", "-r", "good-2", "return 1"), 4, "see: footplate log good-2",
                   "go on with: footplate run --name good-2 --resume auto")

    def test_a_copied_folder_has_its_own_name(self):
        """Its record says whose copy it is, and a live run's copy is no live run."""
        runs = self.folder / "runs"
        shutil.copytree(runs / "good-1", runs / "kept")
        self.check(self.footplate("status", "kept"), 0, "kept · ended · step 4", f"this folder is a copy of {runs}/good-1")
        names = [line.split()[0] for line in self.footplate("ls", "-a").stdout.splitlines()[1:]]
        self.assertEqual(sorted(names), ["good-1", "kept"])
        (runs / "good-1").rename(runs / "renamed")
        self.check(self.footplate("status", "renamed"), 0, "renamed · ended · step 4")
        self.check(self.footplate("run", "--name", "kept", "--resume", "auto", "--batch", fake={"steps": 2}), 0)
        self.start("--name", "alive", fake=LONG)
        self.wait_for_step(2, "alive")
        shutil.copytree(runs / "alive", runs / "copied", ignore=shutil.ignore_patterns("*.new", "*.tmp-*"))
        self.check(self.footplate("status", "copied"), 4, "run copied was lost", "this folder is a copy of")
        self.check(self.footplate("ls"), 0, "alive")
        self.assertNotIn("copied", self.footplate("ls").stdout)

    def test_on_another_host(self):
        path = self.folder / "runs" / "good-1"
        (path / "result.json").unlink()
        record = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps({**record, "state": "running", "host": "node17", "launcher_host": "node17"}))
        self.check(self.footplate("exec", "-r", "good-1", "return 1"), 4, "is on host node17", f"ssh node17 'FOOTPLATE_RUNS={self.folder}/runs {FOOTPLATE} exec -r good-1 '\\''return 1'\\'''")

    def test_deleted_run(self):
        subprocess.run(["rm", "-r", self.folder / "runs" / "good-1"], check=True)
        self.check(self.footplate("ls", "-a"), 0, "there is no run yet")
        self.assertEqual(list((self.folder / "home" / ".local" / "state" / "footplate" / "runs").iterdir()), [])

    def test_broken_record(self):
        (self.folder / "runs" / "good-1" / "run.json").write_text('{"name": 3, "ranks": "x", "launcher_pid": "a"')
        self.check(self.footplate("status", "good-1"), 4)
        (self.folder / "runs" / "good-1" / "run.json").write_text('{"name": 3, "ranks": "x", "launcher_pid": "a", "host": 5}')
        self.check(self.footplate("status", "good-1"), 0, "ended")
        self.check(self.footplate("ls", "-a"), 0, "good-1")


class Terminal(Case):
    def test_batch_on_a_terminal(self):
        terminal = pexpect.spawn(FOOTPLATE, ["run", "good", "--batch"], cwd=self.folder, env=self.environment_with(LONG), timeout=60)
        terminal.expect("step 3")
        terminal.sendintr()
        terminal.expect("SIGINT: saving and stopping")
        terminal.expect(pexpect.EOF)
        terminal.wait()
        self.assertEqual(terminal.exitstatus, 75)

    def test_hint_without_stdin(self):
        terminal = pexpect.spawn("sh", ["-c", f"exec {FOOTPLATE} run good </dev/null"], cwd=self.folder, env=self.environment_with(LONG), timeout=60)
        terminal.expect("from another terminal: footplate exec -r good-1")
        terminal.expect("step 3")
        terminal.sendintr()
        terminal.expect(pexpect.EOF)
        terminal.wait()
        self.assertEqual(terminal.exitstatus, 75)

    def test_closed_terminal_of_a_batch(self):
        terminal = pexpect.spawn(FOOTPLATE, ["run", "good", "--batch"], cwd=self.folder, env=self.environment_with(LONG), timeout=60)
        terminal.expect("step 3")
        hang_up(terminal)
        wait_until(lambda: self.json("result.json"), "the end of the run")
        self.assertEqual(self.json("result.json")["reason"], "signal")


if __name__ == "__main__":
    unittest.main(verbosity=2)
