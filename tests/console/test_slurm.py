#!/usr/bin/env python3
"""A run in a Slurm job: its end is the time limit, and --requeue puts it back into the queue. scontrol is a stand-in."""

import re
import signal
import time
import unittest

from harness import Case

LIMIT = {"steps": 9, "fail": [75, "time limit", True], "die_at": 3, "checkpoint_at": 2}
LONG = {"steps": 100000, "step_ms": 10}
AGAIN = ("--name", "r", "--resume", "auto", "--requeue")


class Slurm(Case):
    def setUp(self):
        super().setUp()
        self.calls = self.folder / "calls"
        self.scontrol('echo "$@" >>"$CALLS"')
        self.environment.update(SLURM_JOB_ID="4711", CALLS=str(self.calls),
                                PATH=f"{self.folder / 'tools'}:{self.environment['PATH']}")

    def scontrol(self, body):
        program = self.folder / "tools" / "scontrol"
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n" + body + "\n")
        program.chmod(0o755)

    def run_again(self, fake, **options):
        return self.footplate("run", "good", "--batch", *AGAIN, fake=fake, **options)

    def called(self):
        return self.calls.read_text() if self.calls.exists() else ""

    def test_what_can_go_on_is_put_back(self):
        self.check(self.run_again(LIMIT), 75, "Slurm's job 4711 is put back into the queue, and goes on from there")
        self.assertEqual(self.called(), "requeue 4711\n")

    def test_what_would_never_end_is_not(self):
        self.check(self.run_again({**LIMIT, "checkpoint_at": None}), 75, "nothing was saved since it began (time limit)")
        self.check(self.run_again({"steps": 3}), 0)
        self.check(self.run_again({"steps": 9, "fail": [1, "step 2 failed"], "die_at": 2}), 1, "it ended with code 1, not 75")
        self.assertEqual(self.called(), "")

    def test_an_older_checkpoint_is_no_progress(self):
        self.check(self.run_again(LIMIT), 75)
        self.check(self.run_again({**LIMIT, "checkpoint_at": None}), 75, "nothing was saved since it began")
        self.assertEqual(self.called(), "requeue 4711\n")

    def test_of_signals_only_the_one_before_the_end_of_the_job(self):
        for name, puts_back in (("USR1", True), ("TERM", False), ("INT", False)):
            with self.subTest(name):
                process = self.start("--name", name, "--resume", "auto", "--requeue", fake=LONG)
                self.wait_for_step(2, name)
                process.send_signal(getattr(signal, "SIG" + name))
                _, said = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 75, said)
                self.assertIn("is put back" if puts_back else "is not put back into the queue: a signal ended it", said)
        self.assertEqual(self.called(), "requeue 4711\n")

    def test_where_scontrol_fails_the_code_stays(self):
        self.scontrol('echo "Requested operation is presently disabled" >&2; exit 1')
        self.check(self.run_again(LIMIT), 75, "could not be put back into the queue: scontrol requeue 4711 ended with code 1: "
                                              "Requested operation is presently disabled")

    def test_where_it_makes_no_sense(self):
        self.check(self.footplate("run", "good", "--batch", *AGAIN, env={"SLURM_JOB_ID": None}), 2, "SLURM_JOB_ID isn't set here")
        self.check(self.footplate("run", "good", "--batch", "--requeue"), 2, "--requeue needs --resume auto")
        self.assertFalse((self.folder / "runs" / "good-1").exists())

    def limit(self, run, *assignments, start=1, **env):
        self.check(self.footplate("run", "good", "--batch", "--name", run, "--resume", "auto", *assignments, env=env, fake={"steps": 1}), 0)
        return self.json(f"config-{start}.json", run)["run.time_limit"]

    def test_the_end_of_the_job_is_the_limit(self):
        self.assertEqual(self.limit("old"), {"value": 0.0, "source": "default"})
        end = str(int(time.time()) + 3600)
        limit = self.limit("new", SLURM_JOB_END_TIME=end)
        self.assertEqual(limit["source"], "Slurm's end of job 4711")
        self.assertTrue(3400 < limit["value"] <= 3480, limit)
        self.assertEqual(self.limit("own", "run.time_limit=60", SLURM_JOB_END_TIME=end)["value"], 60)
        # The next job of the same run has another end; without a config the settings are those of the last start.
        later = str(int(time.time()) + 7200)
        self.check(self.footplate("run", "--batch", "--name", "new", "--resume", "auto", env={"SLURM_JOB_END_TIME": later}, fake={"steps": 1}), 0)
        self.assertTrue(7000 < self.json("config-2.json", "new")["run.time_limit"]["value"] <= 7080)
        # Outside of a job there is none.
        self.check(self.footplate("run", "--batch", "--name", "new", "--resume", "auto", env={"SLURM_JOB_ID": None}, fake={"steps": 1}), 0)
        self.assertEqual(self.json("config-3.json", "new")["run.time_limit"], {"value": 0.0, "source": "default"})

    def test_the_limit_counts_from_the_command(self):
        """Each start is told how long the command has run."""
        result = self.footplate("run", "good", "--batch", "--restarts", "1",
                                fake={"steps": 60, "fail": [1, "step 50 failed"], "die_at": 50, "die_starts": 1})
        self.check(result, 0)
        ran = [int(text) for text in re.findall(r" ran=(\d+)", result.stdout)]
        self.assertEqual(len(ran), 2, result.stdout)
        self.assertGreaterEqual(ran[1] - ran[0], 500)


if __name__ == "__main__":
    unittest.main()
