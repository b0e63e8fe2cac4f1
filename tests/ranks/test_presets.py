#!/usr/bin/env python3
"""Each preset (configs/presets, docs/presets.md) on rvq and on classify, on data that are written here: it starts, trains, and does what
its page says; what isn't arithmetic changes no bit. `conservative` on a shared memory of 512 MiB, where this user may mount one."""

import array
import math
import pathlib
import random
import shutil
import subprocess
import tempfile
import wave

from harness import ROOT, Run, main
from test_classify import Folder

SHARED_MEMORY = "512m"
SMALL = ("run.threads=1", "train.steps=25", "log.every=10", "eval.every=20", "eval.batches=1", "eval.at_end=false", "ckpt.every=0", "sched.warmup_steps=2")
OF_RVQ = ("task.width=8", "task.vector_width=8", "task.codes=16", "task.codebooks=2", "train.batch_size=48")
PRESETS = ("basic", "gpu_cache", "prefetch", "conservative", "large")
SETS = {"basic": {"data.workers": 0, "data.cache": "none", "comm.overlap": "off"},
        "gpu_cache": {"data.cache": "device"},
        "prefetch": {"data.workers": 2, "data.prefetch": 4},
        "conservative": {"data.workers": 0, "data.pin_memory": False, "data.cache": "none", "train.micro_batch": 4, "nccl.max_ctas": 1, "log.every": 100},
        "large": {"log.every": 100, "eval.every": 1000, "ckpt.every": 2000}}


def config(folder, base, *assignments):
    """A config of this task: settings on the command line would win over a preset's."""
    lines = (ROOT / "configs" / f"{base}.lua").read_text().splitlines()
    for assignment in (*SMALL, *assignments):
        name, value = assignment.split("=", 1)
        lines.append(f"{name} = {value}" if value.replace(".", "").isdigit() or value in ("true", "false") else f'{name} = "{value}"')
    path = folder / f"small_{base}.lua"
    path.write_text("\n".join(lines) + "\n")
    return path


def recordings(folder):
    """Tones, of lengths that leave something over."""
    folder.mkdir()
    draw = random.Random(2)
    for number in range(12):
        with wave.open(str(folder / f"{number:02}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            tone = draw.uniform(0.05, 0.4)
            file.writeframes(array.array("h", (int(9000 * math.sin(tone * i)) for i in range(draw.randrange(9000, 12000)))).tobytes())
    return folder


def little_shared_memory():
    """A program around a run that has so much of it; none where this user may not mount it."""
    wrapper = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={SHARED_MEMORY} none /dev/shm && exec "$@"', "sh"]
    allowed = subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode == 0
    if not allowed:
        print(f"      skipped: a shared memory of {SHARED_MEMORY}, which this user may not mount", flush=True)
    return wrapper if allowed else []


def train(folder, path, preset, wrapper=()):
    """A run's losses by step, hash and log."""
    name = f"{path.stem}-{preset or 'plain'}"
    words = [str(path), preset] if preset else [str(path)]
    with Run(folder=folder, name=name, wrapper=wrapper, command=["run", *words, "--batch", "-n", "2", "--name", name]) as run:
        assert run.finish() == 0, run.output()
        settings = run.read_json("config-1.json")
        for setting, value in SETS.get(preset, {}).items():
            assert settings[setting]["value"] == value and f"presets/{preset}.lua:" in settings[setting]["source"], (setting, settings[setting])
        losses = {line["step"]: line["train/loss"] for line in run.lines("metrics.jsonl") if "train/loss" in line}
        evaluated = [line["eval/loss"] for line in run.lines("metrics.jsonl") if "eval/loss" in line]
        return losses, evaluated, run.result()["state_hash"], (run.directory / "log" / "rank-0.log").read_text()


def check(folder, path):
    plain, evaluated, plain_hash, _ = train(folder, path, "")
    assert sorted(plain) == [10, 20] and len(evaluated) == 1, plain
    for preset in PRESETS:
        losses, evaluations, state_hash, log = train(folder, path, preset, little_shared_memory() if preset == "conservative" else ())
        assert ("data.cache keeps" in log) == (preset == "gpu_cache"), (preset, log)
        assert ("data.pin_memory changes nothing" in log) == (preset == "conservative"), (preset, log)
        seldom = preset in ("conservative", "large")
        assert (losses, evaluations) == ({}, evaluations) if seldom else (losses, evaluations) == (plain, evaluated), (preset, losses, plain)
        assert (not evaluations) == (preset == "large"), (preset, evaluations)
        if preset == "conservative":  # small micro-batches add up in another order
            assert state_hash != plain_hash and abs(evaluations[0] - evaluated[0]) < 0.2 * evaluated[0], (evaluations, evaluated)
        else:
            assert state_hash == plain_hash, preset


def test_each_on_rvq():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-"))
    check(folder, config(folder, "rvq", *OF_RVQ, f"data.corpus={recordings(folder / 'recordings')}"))
    shutil.rmtree(folder)


def test_each_on_classify():
    with Folder() as folder:
        check(folder.path, config(folder.path, "classify", "task.width=16", "task.channels=4", "train.batch_size=40", "data.share.digits=8", "data.share.cancer=4",
                                  *folder.data))


def test_a_task_whose_samples_differ_is_told_that_nothing_is_kept():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-"))
    path = config(folder, "kjv", "model.layers=1", "model.width=16", "model.heads=2", "model.context=32")
    log = train(folder, path, "gpu_cache")[3]
    assert 'data.cache keeps nothing: run.task = "text"' in log, log
    shutil.rmtree(folder)


if __name__ == "__main__":
    main([test_each_on_rvq, test_each_on_classify, test_a_task_whose_samples_differ_is_told_that_nothing_is_kept])
