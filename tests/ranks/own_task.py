"""What the tests of a user's own tasks share: data that is as easy as digits, and a folder with a config that trains on it."""

import os
import pathlib
import random
import shutil
import subprocess
import tempfile

from harness import BIN, Run

STEPS = 240


def write_digits(path, lines=500):
    """Ten patterns of 8 x 8 pixels, each drawn with noise: as easy as digits, and nothing to download."""
    draw = random.Random(7)
    patterns = [[draw.choice((0, 16)) for _ in range(64)] for _ in range(10)]
    with open(path, "w", encoding="ascii") as file:
        for number in range(lines):
            label = draw.randrange(10)
            pixels = [min(16, max(0, pixel + draw.randint(-7, 7))) for pixel in patterns[label]]
            file.write(",".join(map(str, [*pixels, label])) + "\n")
    return path


class OwnTask:
    """A folder with data, a config and a task's file; runs in it. `task`: run.task, of a file that is copied there."""

    def __init__(self, prefix, file):
        self.prefix, self.file = prefix, pathlib.Path(file)

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-"))
        data = write_digits(self.folder / "digits.csv")
        shutil.copy(self.file, self.folder)
        self.config = self.folder / "digits.lua"
        self.config.write_text(f'run.task = "{self.prefix}{self.folder}/{self.file.name}"\ntask.data = "{data}"\nrun.threads = 1\n'
                               f"train.steps = {STEPS}\ntrain.batch_size = 64\nsched.base_lr = 3e-3\nsched.warmup_steps = 5\n"
                               "log.every = 10\neval.every = 60\neval.batches = 0\nckpt.every = 80\n")
        return self

    def __exit__(self, *error):
        if error[0] is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *assignments, name="t", ranks=2, options=(), env=None):
        return Run(folder=self.folder, name=name, env=env,
                   command=["run", str(self.config), "--batch", "-n", str(ranks), "--name", name, *options, *assignments])

    def footplate(self, *arguments, code=0, env=None):
        done = subprocess.run([str(BIN / "footplate"), *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120, check=False,
                              env={**os.environ, "FOOTPLATE_RUNS": str(self.folder / "runs"), **(env or {})})
        assert done.returncode == code, (arguments, done)
        return done.stdout + done.stderr


def evaluations(run):
    return [line for line in run.lines("metrics.jsonl") if "eval/loss" in line]
