"""Something that is on and off in blocks within one run, and the step times of neighbouring blocks compared."""

import time

import harness


def alternate(seconds, block_s, turn_on, turn_off):
    """[(begin, end, on)] in the wall clock's seconds; what the turning itself takes is in no block."""
    blocks = []
    try:
        for block in range(int(seconds / block_s)):
            on = block % 4 in (0, 3)  # on off off on: a steady drift cancels
            (turn_on if on else turn_off)()
            begin = time.time()
            time.sleep(block_s)
            blocks.append((begin, time.time(), on))
    finally:
        turn_off()
    return blocks


def metric_rows(run, until):
    harness.wait_until(lambda: run.lines("metrics.jsonl")[-1]["time"] > until, 60, "the last metrics")
    return [row for row in run.lines("metrics.jsonl") if "train/loss" in row]


def stop(run):
    client = harness.Client(run.record()["socket"])
    run.end(client)
