#!/usr/bin/env python3
"""`footplate run` on a terminal with real ranks: however its client ends, the parameters are those of a batch run."""

import json
import os
import pathlib
import shutil
import signal
import tempfile
import time

import pexpect

from harness import BIN, FULL, ROOT, Run, main, surroundings, wait_until

SMALL = ["model.layers=2", "model.width=32", "model.heads=2", "model.context=32", "train.batch_size=7", "eval.every=0",
         "eval.at_end=false", "sched.warmup_steps=5", "log.every=5", "ckpt.every=0", "run.threads=1", "guard.check_every=10",
         "eval.batches=1"]
STEPS = 4000 if FULL else 1000
MINUTE_STEPS = 4000  # which last longer than a minute, and take no processor
MINUTE = ["model.step_ms=20", "log.every=5", "ckpt.every=0", "run.threads=1"]


def ctrl_d(terminal):
    terminal.sendeof()
    terminal.expect(pexpect.EOF)


def closed(terminal):
    terminal.close(force=False)


def killed(terminal):
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.expect(pexpect.EOF)


def interrupted(terminal):
    for _ in range(3):
        terminal.sendintr()
        terminal.expect("still training")


def stopped(terminal):
    os.kill(terminal.pid, signal.SIGSTOP)


def stopped_for_a_minute(terminal):
    """Then it goes on, and shows the end."""
    os.kill(terminal.pid, signal.SIGSTOP)
    time.sleep(60)
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.expect(f"t ended at step {MINUTE_STEPS}", timeout=240)
    terminal.expect(pexpect.EOF)


def run_on_terminal(leave, steps, config="kjv", settings=SMALL):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-term-"))
    environment = surroundings(folder, TERM="xterm")
    terminal = pexpect.spawn(str(BIN / "footplate"), ["run", str(ROOT / "configs" / f"{config}.lua"), "-n", "2", "--name", "t", *settings, f"train.steps={steps}"],
                             env=environment, timeout=120, encoding="utf-8")
    terminal.expect(r"t:\d+> ")
    leave(terminal)
    path = folder / "runs" / "t" / "result.json"
    try:
        wait_until(path.exists, 240, f"the end of the run; {leave.__name__}")
        result = json.loads(path.read_text())
        clients = [event["data"]["state"] for event in map(json.loads, (path.parent / "events.jsonl").read_text().splitlines())
                   if event["topic"] == "client"]
        assert clients[0] == "attached" and (leave not in (ctrl_d, closed, killed) or clients[1] == "detached"), clients
        assert (result["code"], result["step"]) == (0, steps), result
        return result["state_hash"]
    finally:
        if terminal.isalive():
            os.kill(terminal.pid, signal.SIGCONT)
        terminal.close(force=True)
        shutil.rmtree(folder, ignore_errors=True)


def hash_in_batch(steps, config="kjv", settings=SMALL):
    with Run([*settings, f"train.steps={steps}"], ranks=2, config=config) as run:
        assert run.finish(240) == 0, run.output()
        return run.result()["state_hash"]


def test_leaving_changes_nothing():
    batch = hash_in_batch(STEPS)
    for leave in (ctrl_d, closed, killed, interrupted, stopped) if FULL else (closed, killed, interrupted):
        assert run_on_terminal(leave, STEPS) == batch, leave.__name__


def test_stopped_for_a_minute():
    if not FULL:
        print("      only with FOOTPLATE_FULL=1", flush=True)
        return
    on_terminal = run_on_terminal(stopped_for_a_minute, MINUTE_STEPS, "synthetic", MINUTE)
    assert on_terminal == hash_in_batch(MINUTE_STEPS, "synthetic", [*MINUTE, "model.step_ms=0"])


if __name__ == "__main__":
    main([test_leaving_changes_nothing, test_stopped_for_a_minute])
