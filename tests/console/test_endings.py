#!/usr/bin/env python3
"""How a run ends: the exit code is result.json's, signals save and stop, and nothing is left, whoever is killed. Each
test also checks (harness.Case) that no process, socket, temporary folder or shared memory stays behind."""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from harness import Case, FOOTPLATE, alive, wait_until

LONG = {"steps": 100000, "step_ms": 10}


class Endings(Case):
    def finish(self, process, code, timeout=60):
        out, err = process.communicate(timeout=timeout)
        self.assertEqual(process.returncode, code, f"{out}\n{err}")
        return out or "", err or ""

    def test_done(self):
        result = self.check(self.footplate("run", "good", "--batch", fake={"steps": 3}), 0, "step 1\nstep 2\nstep 3\n")
        self.assertIn("stdin=''", result.stdout)
        record = self.json("run.json")
        self.assertEqual((record["state"], record["name"], record["world_size"]), ("ended", "good-1", 1))
        self.assertEqual(self.json("result.json")["restarts"], 0)
        config = self.json("config-1.json")
        self.assertEqual(config["log.every"], {"value": 10, "source": "configs/good.lua:1"})
        self.assertEqual((self.folder / "runs" / "good-1").stat().st_mode & 0o777, 0o700)
        self.check(self.footplate("run", "good", "--batch"), 0)
        self.assertIsNotNone(self.json("result.json", "good-2"))

    def test_codes_come_from_the_result(self):
        for code, reason in ((1, "step 2 failed on rank 3"), (75, "time limit"), (2, "no corpus 'kjw'; did you mean kjv?")):
            result = self.footplate("run", "good", "--batch", fake={"steps": 9, "fail": [code, reason], "die_at": 2})
            self.check(result, code, reason)

    def test_signals_save_and_stop(self):
        for name in ("TERM", "INT", "HUP", "USR1", "USR2"):
            with self.subTest(name):
                process = self.start("--name", name, fake=LONG)
                self.wait_for_step(2, name)
                process.send_signal(getattr(signal, "SIG" + name))
                out, err = self.finish(process, 75)
                self.assertIn(f"SIG{name}: saving and stopping", err)
                self.assertIn(f"--name {name} --resume auto", err)
                result = self.json("result.json", name)
                self.assertEqual(result["reason"], "signal")
                self.assertTrue(os.path.exists(result["checkpoint"]))

    def test_signals_that_come_together_are_one_request(self):
        """As a login's end sends them."""
        for count, names in enumerate((("TERM", "HUP"), ("HUP", "TERM"), ("TERM", "USR1"))):
            with self.subTest(names):
                name = f"both-{count}"
                process = self.start("--name", name, fake={**LONG, "save_s": 2})
                self.wait_for_step(2, name)
                for one in names:
                    process.send_signal(getattr(signal, "SIG" + one))
                _, err = self.finish(process, 75)
                self.assertNotIn("stopping at once", err)
                self.assertTrue(os.path.exists(self.json("result.json", name)["checkpoint"]))

    def test_a_run_that_a_run_has_started_outlives_it(self):
        """As by a job's script: it has the environment of the ranks."""
        outer = self.start("--name", "outer", fake=LONG)
        self.wait_for_step(2, "outer")
        folder = pathlib.Path(self.json("run.json", "outer")["socket"]).with_suffix(".d")
        inner = self.start("--name", "inner", fake=LONG, env={"FOOTPLATE_DOORBELL_DIR": str(folder), "TMPDIR": str(folder)})
        self.wait_for_step(2, "inner")
        outer.send_signal(signal.SIGTERM)
        self.finish(outer, 75)
        self.assertFalse(folder.exists())
        self.wait_for_step(self.json("run.json", "inner")["step"] + 20, "inner")
        self.assertIsNone(inner.poll())
        inner.send_signal(signal.SIGTERM)
        self.finish(inner, 75)

    def test_ignored_hangup_is_honoured(self):
        process = self.start(fake=LONG, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        step = self.wait_for_step(2)["step"]
        process.send_signal(signal.SIGHUP)
        self.wait_for_step(step + 20)
        process.send_signal(signal.SIGTERM)
        self.finish(process, 75)

    def test_second_signal_stops_now(self):
        process = self.start(fake={**LONG, "save_s": 60})
        self.wait_for_step(2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process, 75)
        self.assertLess(time.monotonic() - start, 30)  # not the 60 s that saving takes
        self.assertIn("stopping at once", err)
        self.assertEqual(self.json("result.json")["reason"], "signal")

    def test_second_signal_ends_a_deaf_rank(self):
        process = self.start(fake={**LONG, "deaf": True})
        self.wait_for_step(2)
        process.send_signal(signal.SIGTERM)
        self.wait_for_words(process, "saving and stopping")
        time.sleep(1.2)  # within a second they are one request
        process.send_signal(signal.SIGTERM)
        self.finish(process, 75)

    def test_killed_rank(self):
        for fake, code in (({"die": "kill"}, 75), ({"die": "segv"}, 1), ({"die": "segv", "checkpoint_at": 1}, 75), ({"die": "exit:7"}, 1)):
            with self.subTest(fake):
                name = f"n{len(list(self.folder.glob('runs/*')))}"
                process = self.start("--name", name, fake={**LONG, "die_at": 3, **fake})
                _, err = self.finish(process, code)
                result = self.json("result.json", name)
                self.assertEqual((result["code"], result["step"]), (code, 3))
                self.assertIn("checkpoint_at" in fake, [bool(result["checkpoint"])])
                self.assertIn(result["reason"], err)
                self.check(self.footplate("status", name), 0, name + " ended at step 3: " + result["reason"])

    def test_failure_before_the_first_step_shows_the_log(self):
        (self.folder / "bin" / "footplate-rank").write_text("#!/bin/sh\necho 'the corpus is gone' >&2\nexit 1\n")
        process = self.start("--name", "early")
        _, err = self.finish(process, 1)
        self.assertIn("the corpus is gone", err)
        self.assertIn("early/log", err)

    def test_restarts(self):
        process = self.start("--restarts", "3", "log.every=4", fake={"steps": 6, "die": "kill", "die_at": 4, "die_starts": 2, "checkpoint_at": 3})
        out, err = self.finish(process, 0)
        self.assertEqual([line.split(" ")[1:3] for line in out.splitlines() if line.startswith("start")],
                         [["1", "resume=''"], ["2", "resume='auto'"], ["3", "resume='auto'"]])
        self.assertIn("restart 2 of 3", err)
        self.assertEqual(self.json("result.json")["restarts"], 2)
        self.assertEqual(self.json("config-3.json")["log.every"], {"value": 4, "source": "command line of start 1"})

    def test_a_restart_without_a_checkpoint_begins_where_the_run_began(self):
        self.check(self.footplate("run", "good", "--name", "x", "--batch", fake={"steps": 4, "checkpoint_at": 4}), 0)
        self.check(self.footplate("run", "good", "--resume", "runs/x", "--restarts", "1", "--batch",
                                  fake={"steps": 6, "die": "kill", "die_at": 2, "die_starts": 1}), 0)
        starts = [line.split(" ")[1:3] for line in self.batch_lines() if line.startswith("start ")]
        self.assertEqual([number for number, _ in starts], ["1", "2"])
        self.assertIn("step-00000004", starts[0][1])
        self.assertEqual(starts[1][1], starts[0][1])

    def test_a_crash_in_batch_is_started_again_by_default(self):
        process = self.start(fake={"steps": 6, "die": "kill", "die_at": 4, "die_starts": 1, "checkpoint_at": 3})
        _, err = self.finish(process, 0)
        self.assertIn("restart 1 of 3", err)
        self.assertEqual(self.json("result.json")["restarts"], 1)

    def test_never_after_the_same_step_twice_by_default(self):
        _, err = self.finish(self.start(fake={"steps": 6, "fail": [1, "step 4 failed"], "die_at": 4, "checkpoint_at": 3}), 1)
        self.assertIn("failed at step 4 twice, and is not started again", err)
        self.assertEqual(self.json("result.json")["restarts"], 1)
        # Nor where it never got to a step, nor where somebody is there; what is asked for counts.
        _, err = self.finish(self.start("--name", "b", fake={"refuse": [1, "no device"]}), 1)
        self.assertIsNone(self.json("config-2.json", "b"))
        _, err = self.finish(self.start("--name", "c", "--restarts", "0", fake={"steps": 6, "die": "kill", "die_at": 4}), 75)
        self.assertIsNone(self.json("config-2.json", "c"))
        self.check(self.footplate("run", "good", "-d", "--name", "d", fake={"steps": 600, "die": "kill", "die_at": 100}), 0)
        wait_until(lambda: (self.json("run.json", "d") or {}).get("state") == "ended", "the end")
        self.assertIsNone(self.json("config-2.json", "d"))

    def test_restarts_are_spent(self):
        process = self.start("--restarts", "1", fake={"steps": 6, "fail": [1, "it broke"], "die_at": 2})
        self.finish(process, 1)
        self.assertEqual(self.json("result.json")["restarts"], 1)
        self.assertEqual(self.json("result-1.json")["reason"], "it broke")

    def test_a_signal_ends_the_pause_before_a_restart(self):
        process = self.start("--restarts", "9", fake={"steps": 6, "fail": [1, "it broke"], "die_at": 2})
        wait_until(lambda: (self.json("run.json") or {}).get("state") == "starting" and self.json("result-3.json"), "the third pause")  # of 4 s
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process, 1)
        self.assertIn("restart 3 of 9, in 4 s", err)
        self.assertIn("SIGTERM between two starts: good-1 is not started again", err)
        self.assertEqual(self.json("result.json")["reason"], "it broke")
        self.assertIsNone(self.json("config-4.json"))
        self.assertIsNone(self.json("result-3.json"))  # it is result.json again

    def test_a_stop_and_a_look_in_the_pause_before_a_restart(self):
        process = self.start("--restarts", "9", fake={"steps": 6, "fail": [1, "it broke"], "die_at": 2})
        wait_until(lambda: (self.json("run.json") or {}).get("starts_at") and self.json("result-3.json"), "the third pause")  # of 4 s
        self.assertRegex(self.footplate("status", "good-1").stdout, r"starting again in \d")
        stopped = self.footplate("stop", "good-1")
        self.assertEqual(stopped.returncode, 0, stopped)
        self.finish(process, 1)
        self.assertIsNone(self.json("config-4.json"))

    def test_no_restart_after_what_was_asked_for(self):
        for number, (code, reason) in enumerate(((2, "no corpus"), (75, "signal"), (75, "time limit"), (0, "asked"))):
            process = self.start("--name", f"a{number}", "--restarts", "5", fake={"steps": 6, "fail": [code, reason], "die_at": 2})
            self.finish(process, code)
            self.assertIsNone(self.json("config-2.json", f"a{number}"))
        process = self.start("--restarts", "5", fake={**LONG, "save_s": 0.2})
        self.wait_for_step(1)
        process.send_signal(signal.SIGTERM)
        self.finish(process, 75)

    def test_a_restart_that_was_ordered_counts_as_none(self):
        process = self.start("log.every=4", fake={"steps": 6, "fail": [75, "restart", 3], "die_at": 3,
                                                 "die_starts": 2, "checkpoint_at": 3})
        out, err = self.finish(process, 0)
        self.assertEqual([line.split(" ")[1:3] for line in out.splitlines() if line.startswith("start")],
                         [["1", "resume=''"], ["2", "resume='auto'"], ["3", "resume='auto'"]])
        self.assertEqual(err.count("ended at step 3 to be started again, as ordered"), 2, err)
        self.assertEqual(self.json("result.json")["restarts"], 0)
        self.assertEqual(self.json("result-2.json")["reason"], "restart")
        for saved in ([], [2]):  # of the last step there is none
            process = self.start("--name", f"saved-{len(saved)}", "--restarts", "3",
                                 fake={"steps": 6, "fail": [75, "restart", *saved], "die_at": 3, "checkpoint_at": 2})
            _, err = self.finish(process, 75)
            self.assertIn("is not started again: step 3 could not be saved", err)

    def test_resume_auto_goes_on_in_place(self):
        self.finish(self.start("--name", "x", "--restarts", "0", fake={"steps": 9, "die": "kill", "die_at": 5, "checkpoint_at": 4}), 75)
        self.check(self.footplate("run", "good", "--name", "x"), 2, "there is a run x already", "--resume auto")
        result = self.footplate("run", "good", "--name", "x", "--resume", "auto", "--batch", fake={"steps": 6})
        self.check(result, 0, "start 2 resume='auto'")
        self.assertNotIn("start 1", result.stdout)  # lines of the earlier start
        self.assertEqual(self.json("result-1.json", "x")["code"], 75)
        # Without a config: the settings of the last start. The checkpoint's path works for a new run.
        self.check(self.footplate("run", "--name", "x", "--resume", "auto", "train.steps=700", "--batch"), 0, "start 3")
        self.assertEqual(self.json("config-3.json", "x")["train.steps"]["value"], 700)
        self.assertEqual(self.json("config-3.json", "x")["log.every"]["value"], 10)
        self.check(self.footplate("run", "good", "--resume", "runs/x", "--batch"), 0, "checkpoints/main/step-00000004")

    def test_resume_auto_starts_fresh_without_a_checkpoint(self):
        self.check(self.footplate("run", "good", "--name", "y", "--resume", "auto", "--batch"), 0, "start 1 resume=''")
        self.check(self.footplate("run", "good", "--name", "y", "--resume", "auto", "--batch"), 0, "start 2 resume=''")

    def test_resume_auto_with_the_same_command_line(self):
        """What it sets once more doesn't win over what was changed live since; another value does."""
        def config(number, value):
            words = ["log.every=7"] + ([f"nccl.ib_timeout={value}"] if value else [])
            self.check(self.footplate("run", "good", "--name", "x", "--resume", "auto", "--batch", *words, fake={"steps": 4, "checkpoint_at": 2}), 0)
            # As a rank does it, and somebody who changes a setting at the prompt.
            with open(self.folder / "runs" / "x" / "starts.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps({"start": number, "time": f"T{number}", "step": 0, "journal": 0, "given": {}}) + "\n")
            with open(self.folder / "runs" / "x" / "journal.lua", "a", encoding="utf-8") as file:
                file.write(f'-- start "T{number}" of run x\n')
            settings = self.json(f"config-{number}.json", "x")
            self.assertEqual(settings["log.every"], {"value": 7, "source": "command line" if number == 1 else "command line of start 1"})
            return settings["nccl.ib_timeout"]

        self.assertEqual(config(1, 18), {"value": 18, "source": "command line"})
        with open(self.folder / "runs" / "x" / "journal.lua", "a", encoding="utf-8") as file:
            file.write("-- order 1 · ann · s1 · now\nat(3, { nccl = { ib_timeout = 20 } })\n")
        self.assertEqual(config(2, 18), {"value": 20, "source": "order 1"})
        self.assertEqual(config(3, 18), {"value": 20, "source": "order 1"})
        self.assertEqual(config(4, 19), {"value": 19, "source": "command line"})
        self.assertEqual(config(5, 18), {"value": 18, "source": "command line"})
        self.assertEqual(config(6, 18), {"value": 18, "source": "command line of start 5"})
        config(7, None)
        self.assertEqual(config(8, 18), {"value": 18, "source": "command line"})

    def test_live_name(self):
        process = self.start("--name", "taken", fake=LONG)
        self.wait_for_step(1, "taken")
        for options in ([], ["--resume", "auto"]):
            self.check(self.footplate("run", "good", "--name", "taken", *options), 2, "a live run has the name taken",
                       "footplate stop taken")
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.finish(process, 75)

    def test_closed_stdin_stdout_stderr(self):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                before = len(list(self.folder.glob("runs/*")))
                result = subprocess.run(["sh", "-c", f"{FOOTPLATE} run good --batch {closed}"], cwd=self.folder, timeout=60,
                                        env=self.environment_with({"steps": 3}), capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(self.batch_lines(f"good-{before + 1}")[-1], "step 3")

    def test_stdout_closed_half_way(self):
        process = self.start(fake={"steps": 200, "step_ms": 5})
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        self.finish(process, 0)
        self.assertEqual(self.batch_lines()[-1], "step 200")

    def test_stdout_that_nobody_reads(self):
        """More than a pipe holds, unread: training goes on, and the run ends."""
        process = self.start(fake={"steps": 1000, "step_ms": 0, "pad": 500})
        wait_until(lambda: self.json("result.json"), "the end of training", 60)
        process.wait(60)
        self.assertEqual(process.returncode, 0)
        process.stdout.close()
        process.stderr.close()

    def test_a_signal_is_heard_where_nobody_reads(self):
        """stdout and stderr are one full pipe, as of a pager that stands still."""
        read, write = os.pipe()
        process = subprocess.Popen([FOOTPLATE, "run", "good", "--batch"], cwd=self.folder, env=self.environment_with({**LONG, "pad": 500}),
                                   stdin=subprocess.DEVNULL, stdout=write, stderr=write)
        os.close(write)
        wait_until(lambda: self.json("run.json") and self.json("run.json").get("step", 0) > 400, "a pipe that is full")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 75)
        self.assertEqual(self.json("result.json")["reason"], "signal")
        os.close(read)

    def test_a_folder_that_is_not_a_runs_is_left_alone(self):
        folder = self.folder / "runs" / "data"
        folder.mkdir(parents=True)
        (folder / "precious").write_text("x")
        (folder / "log").write_text("no folder")
        self.check(self.footplate("run", "good", "--name", "data", "--resume", "auto", "--batch"), 2, "can't write")
        self.assertEqual((folder / "precious").read_text(), "x")
        (self.folder / "runs" / "empty").mkdir()  # of one that was interrupted as it made it
        self.check(self.footplate("run", "good", "--name", "empty", "--batch"), 0)

    def test_home_unset(self):
        result = self.footplate("run", "good", "--batch", env={"HOME": None, "XDG_STATE_HOME": str(self.folder / "state")})
        self.check(result, 0, "home='/")

    def test_killed_supervisor(self):
        """SIGKILL of `footplate run`: the rank saves and stops, and what is left is cleared up."""
        process = self.start(fake={**LONG, "save_s": 0.3})
        record = self.wait_for_step(2)
        process.kill()
        process.wait()
        wait_until(lambda: self.json("result.json"), "the result")
        wait_until(lambda: self.json("run.json")["state"] == "ended", "the end of the record")
        self.assertEqual(self.json("result.json")["reason"], "signal")
        self.assertFalse(alive(record["ranks"][0]["pid"]))
        self.check(self.footplate("status", "good-1"), 0, "signal")

    def test_killed_supervisor_and_rank(self):
        process = self.start(fake=LONG)
        rank = self.wait_for_step(2)["ranks"][0]["pid"]
        os.kill(rank, signal.SIGSTOP)
        process.kill()
        process.wait()
        os.kill(rank, signal.SIGKILL)
        wait_until(lambda: self.json("result.json"), "the result")
        self.assertEqual(self.json("result.json")["code"], 75)

    def test_everything_killed(self):
        """A reboot, in short: nothing could write a result or clear up. The next run does the latter."""
        process = self.start(fake=LONG)
        self.wait_for_step(2)
        self.kill_everything()
        process.wait()
        self.assertIsNone(self.json("result.json"))
        self.check(self.footplate("ls", "-a"), 0, "lost")
        self.check(self.footplate("status"), 4, "was lost", "--resume auto")
        self.check(self.footplate("exec", "return 1"), 4, "was lost")
        self.check(self.footplate("log"), 0, "step 2")
        self.check(self.footplate("run", "good", "--batch"), 0)  # clears up, if a run of another test hasn't
        self.assertEqual(self.leftovers(), [])

    def test_gone_on_with_while_the_kernel_clears_it_away(self):
        """A killed process lets go of its lock some moments after its end: not a reason to refuse the next start."""
        process = self.start(fake=LONG)
        self.wait_for_step(2)
        self.kill_everything()
        process.wait()
        directory = os.open(self.folder / "runs" / "good-1", os.O_RDONLY)
        self.addCleanup(os.close, directory)
        fcntl.flock(directory, fcntl.LOCK_EX)
        again = self.start("--name", "good-1", "--resume", "auto", fake={"steps": 3})
        files = pathlib.Path(f"/proc/{again.pid}/fd")
        name = str(self.folder / "runs" / "good-1")
        wait_until(lambda: again.poll() is not None or any(os.path.realpath(file) == name for file in files.iterdir()),
                   "the look at the lock")
        fcntl.flock(directory, fcntl.LOCK_UN)
        self.finish(again, 0)

    def test_rank_whose_pid_is_another_runs_now(self):
        """In a container that starts again pids come back soon."""
        process = self.start(fake=LONG)
        self.wait_for_step(2)
        self.kill_everything()
        process.wait()
        other = self.start("--name", "other", fake=LONG)
        ranks = self.wait_for_step(2, run="other")["ranks"]
        path = self.folder / "runs" / "good-1" / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "ranks": ranks}))
        self.check(self.footplate("status", "good-1"), 4, "was lost")
        self.check(self.footplate("run", "--name", "good-1", "--resume", "auto", "--batch", fake={"steps": 3}), 0)
        other.send_signal(signal.SIGTERM)
        self.finish(other, 75)

    def test_lingering_rank(self):
        """A rank (or mpirun) that doesn't end after the result is ended."""
        process = self.start(fake={"steps": 3, "linger_s": 300})
        self.finish(process, 0, timeout=60)

    def test_processes_that_left_the_session(self):
        self.check(self.footplate("run", "good", "--batch", fake={"steps": 3, "straggler": True}), 0)
        self.assertEqual(self.processes(), [])

    def test_detached(self):
        result = self.check(self.footplate("run", "good", "-d", fake={"steps": 100000, "step_ms": 200}), 0)
        self.assertEqual(result.stdout, "good-1\n")
        # The console knows a step before run.json does.
        self.assertGreaterEqual(json.loads(self.footplate("status", "--json").stdout)["step"], 1)
        self.check(self.footplate("ls"), 0, "good-1", "running")
        self.check(self.footplate("stop"), 0, "good-1 ended at step", "asked")
        result = self.footplate("run", "good", "-d", fake={"steps": 5, "fail": [2, "no corpus"], "die_at": 0, "die": "exit:1"})
        self.check(result, 0)
        (self.folder / "bin" / "footplate-rank").write_text("#!/bin/sh\necho 'the corpus is gone' >&2\nexit 2\n")
        self.check(self.footplate("run", "good", "-d"), 2, "the corpus is gone")


if __name__ == "__main__":
    unittest.main(verbosity=2)
