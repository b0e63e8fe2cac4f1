#!/usr/bin/env python3
"""A run that is interrupted at random moments, its start included, and goes on each time: the same parameters."""

import random
import shutil
import signal
import tempfile
import time

from harness import FULL, Run, main

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
TIMES = 50 if FULL else 3
MAYBE_s = 4.5  # a start takes about two seconds: some signals come before the first step
ASSIGNMENTS = ["model.step_ms=2", f"train.steps={600 * TIMES}", "ckpt.every=150", "guard.check_every=50", "sched.kind=cosine",
               "sched.warmup_steps=20"]


def straight():
    with Run(ASSIGNMENTS, name="straight") as run:
        assert run.finish(300) == 0, run.output()
        return run.result()


def test_interrupted_at_random_moments():
    wanted = straight()
    rng = random.Random(20261121)
    folder = tempfile.mkdtemp(prefix="fp-interrupt-")
    steps = []  # at which the interrupts came
    for number in range(TIMES):
        with Run(ASSIGNMENTS, folder=folder, options=["--resume", "auto"]) as run:
            wait = rng.uniform(0, MAYBE_s)
            time.sleep(wait)
            sent = rng.choice(SIGNALS)
            if run.process.poll() is not None:
                raise AssertionError(f"it ended by itself, with {run.process.returncode}: make it longer\n{run.output()}")
            run.process.send_signal(sent)
            code = run.finish(60)
            result = run.result()
            assert code == 75 or (result is None and code == -sent), f"{sent.name} after {wait:.2f} s: {code}\n{run.output()}"
            if result is None:
                print(f"      interrupt {number}: {sent.name} before there was a run ({wait:.2f} s)", flush=True)
                continue
            assert result["reason"] == "signal" and result["code"] == 75, result
            assert result["step"] >= (steps[-1] if steps else 0), (result, steps)
            steps.append(result["step"])
    with Run(ASSIGNMENTS, folder=folder, options=["--resume", "auto"]) as run:
        assert run.finish(300) == 0, run.output()
        result = run.result()
    assert result["step"] == wanted["step"] and result["state_hash"] == wanted["state_hash"], (result, wanted)
    shutil.rmtree(folder)
    print(f"      interrupted at steps {steps}; final state {result['state_hash']}", flush=True)


if __name__ == "__main__":
    main([test_interrupted_at_random_moments])
