#!/usr/bin/env python3
"""Several ranks under the real mpirun: what it is given, and that every ending clears up after it."""

import os
import signal
import time
import unittest

from harness import Case, MPIRUN, alive, wait_until

LONG = {"steps": 100000, "step_ms": 10}


@unittest.skipUnless(MPIRUN, "FOOTPLATE_TEST_MPIRUN names no mpirun")
class Launch(Case):
    def finish(self, process, code, timeout=60):
        out, err = process.communicate(timeout=timeout)
        self.assertEqual(process.returncode, code, f"{out}\n{err}")
        return out, err

    def mpirun_of(self, process):
        return next(pid for pid in self.processes() if os.path.basename(os.readlink(f"/proc/{pid}/exe")) in ("mpirun", "prterun"))

    def test_done(self):
        result = self.check(self.footplate("run", "good", "--batch", "-n", "3", fake={"steps": 3}), 0)
        self.assertEqual(result.stdout.splitlines()[-1], "step 3")
        self.assertEqual(self.json("run.json")["world_size"], 3)

    def test_what_ranks_are_given(self):
        environment = self.folder / "environment"
        (self.folder / "bin" / "footplate-rank").write_text(f"#!/bin/sh\nenv > {environment}-$OMPI_COMM_WORLD_RANK\n")
        self.footplate("run", "good", "--batch", "-n", "3", env={"HOME": None, "XDG_STATE_HOME": str(self.folder / "state")})
        text = (self.folder / "environment-2").read_text()
        run = self.json("run.json")["id"]
        self.assertIn(f"TMPDIR=/tmp/footplate-{os.getuid()}/{run}.d\n", text)
        self.assertIn(f"FOOTPLATE_DOORBELL_DIR=/tmp/footplate-{os.getuid()}/{run}.d\n", text)
        self.assertIn(f"OMPI_MCA_btl_sm_backing_directory=/dev/shm/footplate-{os.getuid()}-{run}\n", text)
        self.assertIn("OMPI_MCA_mpi_yield_when_idle=1\n", text)
        self.assertIn("HOME=/", text)

    def test_signals(self):
        process = self.start("-n", "3", fake=LONG)
        self.wait_for_step(2)
        process.send_signal(signal.SIGTERM)
        self.finish(process, 75)
        self.assertEqual(self.json("result.json")["reason"], "signal")

    def test_signals_to_every_process_of_a_login(self):
        """mpirun gets them, too, and doesn't end the ranks, which save."""
        process = self.start("-n", "2", fake={**LONG, "save_s": 2})
        self.wait_for_step(2)
        for number in (signal.SIGTERM, signal.SIGHUP):
            os.kill(self.mpirun_of(process), number)
            process.send_signal(number)
        _, err = self.finish(process, 75)
        self.assertNotIn("stopping at once", err)
        self.assertTrue(os.path.exists(self.json("result.json")["checkpoint"]))

    def test_second_signal(self):
        process = self.start("-n", "3", fake={**LONG, "deaf": True})
        self.wait_for_step(2)
        process.send_signal(signal.SIGINT)
        self.wait_for_words(process, "saving and stopping")
        time.sleep(1.2)  # within a second they are one request
        process.send_signal(signal.SIGTERM)
        self.finish(process, 75)

    def test_killed_supervisor(self):
        process = self.start("-n", "3", fake={**LONG, "save_s": 0.3})
        self.wait_for_step(2)
        process.kill()
        process.communicate()
        wait_until(lambda: self.json("result.json"), "the result")
        self.assertEqual(self.json("result.json")["reason"], "signal")
        wait_until(lambda: self.json("run.json")["state"] == "ended", "the end of the record")

    def test_killed_mpirun(self):
        process = self.start("-n", "2", "--restarts", "0", fake={**LONG, "checkpoint_at": 2})
        rank = self.wait_for_step(3)["ranks"][0]["pid"]
        os.kill(self.mpirun_of(process), signal.SIGKILL)
        self.finish(process, 75)
        self.assertFalse(alive(rank))

    def test_stopped_rank_and_second_signal(self):
        process = self.start("-n", "2", fake=LONG)
        os.kill(self.wait_for_step(3)["ranks"][0]["pid"], signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGQUIT)
        self.finish(process, 75)

    def test_failed_rank(self):
        process = self.start("-n", "2", fake={**LONG, "fail": [2, "no corpus"], "die_at": 1})
        _, err = self.finish(process, 2)
        self.assertIn("no corpus", err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
