"""Tokens/s of a task in Python with two ranks against PyTorch DDP: the very same module, batch and threads, as in
`scripts/bench ddp`. Exit code 1 where footplate is the slower one."""

from measure import ROOT
import ddp

LEAST = 1.0


def settings(corpus):
    # Of kjv.lua the task reads none of the model's settings; they are gone from where run.task is set.
    return [f"run.task=python:{ROOT}/tests/peers/gpt_task.py", f"task.corpus={corpus}"]


if __name__ == "__main__":
    ddp.main(__doc__, "python", settings, LEAST)
