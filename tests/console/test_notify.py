#!/usr/bin/env python3
"""footplate run --notify: a command that is told of the end of a run, of restarts, pauses and warnings, and that can't hurt the run."""

import signal
import time
import unittest

from harness import Case

VARIABLES = "EVENT KIND RUN STEP CODE DIRECTORY TEXT"
TELL = "; ".join(f'echo "{name}=$FOOTPLATE_NOTIFY_{name}"' for name in VARIABLES.split()) + "; echo stdin=$(cat)"


class Notify(Case):
    def told(self):
        """What the command has heard: a list of notices."""
        path = self.folder / "told"
        notices = []
        for line in path.read_text().splitlines() if path.exists() else ():
            name, _, value = line.partition("=")
            if name == "EVENT":
                notices.append({})
            notices[-1][name] = value
        return notices

    def run_told(self, *arguments, fake, command=f"({TELL}) >>told", name="r"):
        return self.footplate("run", "good", "--batch", "--name", name, "--notify", command, *arguments, fake=fake)

    def test_the_end(self):
        self.check(self.run_told(fake={"steps": 3}), 0)
        self.check(self.run_told("--restarts", "0", fake={"steps": 9, "fail": [1, "step 2 failed"], "die_at": 2}, name="other"), 1)
        first, second = self.told()
        self.assertEqual({name: first[name] for name in ("EVENT", "RUN", "STEP", "CODE")}, {"EVENT": "end", "RUN": "r", "STEP": "3", "CODE": "0"})
        self.assertEqual(first["TEXT"], "r is done at step 3")
        self.assertEqual(first["stdin"], first["TEXT"])
        self.assertTrue(first["DIRECTORY"].endswith("/runs/r"), first)
        self.assertEqual((second["EVENT"], second["CODE"]), ("end", "1"))
        self.assertIn("other ended at step 2: step 2 failed", second["TEXT"])

    def test_a_restart(self):
        self.check(self.run_told("--restarts", "1", fake={"steps": 6, "die": "kill", "die_at": 3, "die_starts": 1}), 0)
        notices = self.told()
        self.assertEqual([notice["EVENT"] for notice in notices], ["restart", "end"])
        self.assertRegex(notices[0]["TEXT"], r"^r failed at step \d \(.*\); restart 1 of 1, in 1 s$")

    def test_warnings_that_need_a_person(self):
        warning = {"kind": "checkpoint", "text": "step 2: no checkpoint: No space left on device", "step": 2}
        events = {2: [["warn", warning], ["warn", {"kind": "advice", "text": "a longer deadline"}], ["warn", warning]]}
        self.check(self.run_told(fake={"steps": 4, "events": events}), 0)
        first, last = self.told()
        self.assertEqual({name: first[name] for name in ("EVENT", "KIND", "STEP", "TEXT")},
                         {"EVENT": "warning", "KIND": "checkpoint", "STEP": "2", "TEXT": "r: " + warning["text"]})
        self.assertEqual((last["EVENT"], last["KIND"]), ("end", ""))

    def test_a_command_that_fails_is_told_and_changes_nothing(self):
        self.check(self.run_told(fake={"steps": 3}, command="echo no such host >&2; exit 7"), 0,
                   "--notify, told of end: it ended with code 7: no such host")
        self.check(self.run_told(fake={"steps": 3}, command="there-is-no-such-command", name="s"), 0, "code 127")
        self.check(self.run_told(fake={"steps": 3}, command="kill -9 $$", name="t"), 0, "--notify, told of end: it was killed")

    def test_a_slow_one_delays_no_signal(self):
        """It is at work, for the restart, while the run is stopped."""
        process = self.start("--name", "r", "--restarts", "1", "--notify", "echo $FOOTPLATE_NOTIFY_EVENT >>told; sleep 3",
                             fake={"steps": 100000, "step_ms": 10, "die": "kill", "die_at": 3, "die_starts": 1})
        self.wait_for_step(5, "r")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, said)
        self.assertLess(time.monotonic() - began, 20)
        self.assertEqual((self.folder / "told").read_text().split(), ["restart", "end"])


if __name__ == "__main__":
    unittest.main()
