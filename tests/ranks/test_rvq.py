#!/usr/bin/env python3
"""run.task = "rvq" on Debian's recordings: codebooks are the same on all ranks, whatever becomes of a rank or a step; bad recordings
are named before a run starts."""

import array
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import wave

from harness import BIN, ROOT, Run, main, surroundings
from own_task import evaluations

SPEECH = pathlib.Path("/usr/share/asterisk/sounds/en_US_f_Allison")
# Small enough for a step of a few milliseconds; checked after each of them.
SMALL = ("run.threads=1", "task.width=8", "task.vector_width=8", "task.codes=32", "task.codebooks=2", "train.batch_size=12",
         "guard.check_every=1", "log.every=1", "sched.kind=constant", "sched.warmup_steps=5", "eval.every=0", "eval.batches=0", "eval.at_end=false", "ckpt.every=0")
LENGTHS = ("short", "medium", "long")


def run(*assignments, **options):
    return Run([*SMALL, *assignments], config="rvq", **options)


def tensors(directory, step):
    """The bytes of each tensor of a checkpoint."""
    content = (directory / "checkpoints" / "main" / f"step-{step:08d}" / "rank-0.safetensors").read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    head = json.loads(content[8:8 + length])
    return {name: content[8 + length + one["data_offsets"][0]:8 + length + one["data_offsets"][1]]
            for name, one in head.items() if name != "__metadata__"}


def test_it_trains_alike_on_any_number_of_ranks_and_goes_on_bit_equal():
    losses, hashes = {}, {}
    for name, ranks in (("one", 1), ("two", 2), ("three", 3)):
        with run("train.steps=30", "eval.every=30", ranks=ranks) as one:
            assert one.finish() == 0, one.output()
            assert "differ" not in one.output(), one.output()
            losses[name], hashes[name] = evaluations(one)[-1]["eval/reconstruction"], one.result()["state_hash"]
            lines = [line for line in one.lines("metrics.jsonl") if "train/loss" in line]
            assert {"train/reconstruction", "train/commitment", "train/codes_in_use", "train/perplexity"} <= set(lines[-1]), lines[-1]
            sets = [line for line in one.lines("metrics.jsonl") if "data/long/samples" in line][-1]
            assert all(sets[f"data/{name}/samples"] == 30 * 12 / 3 for name in LENGTHS), sets
    assert all(abs(loss - losses["one"]) < 1e-3 for loss in losses.values()), losses
    assert losses["one"] < 0.7, f"it is 1 for silence: {losses}"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-"))
    with run("train.steps=14", "ckpt.every=14", folder=folder) as begun:
        assert begun.finish() == 0, begun.output()
    with Run(folder=folder, command=["run", "--name", "t", "--resume", "auto", "--batch", "train.steps=30"]) as rest:
        assert rest.finish() == 0, rest.output()
        assert min(line["step"] for line in rest.lines("metrics.jsonl") if line["start"] == 2) == 15, rest.output()
        assert rest.result()["state_hash"] == hashes["two"], rest.output()
    shutil.rmtree(folder)


def test_a_rank_that_is_killed_is_gone_on_without():
    with run("train.steps=100000", "task.dead_below=0.2", ranks=3) as three:
        client = three.wait_for_step(20)
        os.kill(three.pids()[1], signal.SIGKILL)
        client.close()
        three.end_after(20)
        assert three.finish() == 0, three.output()
        assert three.result()["recoveries"] == 1, three.result()
        assert "differ" not in three.output(), "the ranks' hashes, the codebooks among them"
        used = [line["train/codes_in_use"] for line in three.lines("metrics.jsonl") if "train/loss" in line]
        assert used[-1] > 0.9, used[-1]


def test_a_skipped_step_leaves_the_codebooks_as_they_were():
    for fault in ("nan_grad:rank=1:step=6", ""):
        with run("train.steps=9", "ckpt.every=1", "ckpt.async=false", "ckpt.keep=20", env={"FOOTPLATE_FAULT": fault}) as one:
            assert one.finish() == 0, one.output()
            before, after = tensors(one.directory, 6), tensors(one.directory, 7)
            books = {name for name in before if name.startswith("state/quantiser.")}
            assert books == {f"state/quantiser.{name}" for name in ("codes", "counts", "sums", "chosen")}, sorted(before)
            assert {name for name in books if before[name] == after[name]} == (books if fault else set()), fault
            assert "differ" not in one.output(), one.output()


def samples(path):
    with wave.open(path) as file:
        return array.array("h", file.readframes(file.getnframes()))


def test_its_settings_and_actions_are_steered():
    with run("train.steps=100000") as one:
        one.wait_for_step(60).close()
        files = json.loads(one.exec("return task.write_audio{ recording = 3, seconds = 1.5 }:wait()", "--json").stdout)
        original, heard = (samples(files[name]) for name in ("original", "reconstruction"))
        assert sorted(one.directory.glob("audio/*")) == sorted(map(pathlib.Path, (files["original"], files["reconstruction"]))), files
        recording = samples(files["of"])
        assert original == recording[:12000 // 16 * 16] and len(heard) == len(original), (len(original), len(heard))
        assert files["error"] < 1 and sum(a * b for a, b in zip(original, heard)) > 0, files
        for arguments, words in (("recording = 1000", "56 are held out"), ("name = '../x'", "file's name"), ("seconds = 0", "above 0"), ("seconds = 1e9", "60 at most")):
            done = one.exec(f"task.write_audio{{ {arguments} }}:wait()")
            assert done.returncode != 0 and words in done.stderr, (arguments, done)
        report = json.loads(one.exec("return task.codebook_report():wait()", "--json").stdout)
        assert report["vectors"] > 30000 and len(report["perplexity"]) == 2 and min(report["codes_in_use"]) > 0.5, report
        for code, words in (("task.commitment = 1; task.decay = 0.9; data.share.long = 3", ""), ("task.codes = 64", "fixed"), ("task.decay = 2", "0 to 1"),
                            ("task.commitment_weight = 1", "task.commitment"), ("task.codebook_size = 1", "task.codes")):
            done = one.exec(code)
            assert (done.returncode == 0) == (not words) and words in done.stderr, (code, done)
        one.end_after(10)
        assert one.finish() == 0, one.output()
    page = (ROOT / "docs" / "rvq.md").read_text()
    done = subprocess.run([str(BIN / "footplate"), "settings", "--task", "rvq", "--names"], capture_output=True, text=True, check=True)
    own = [name for name in done.stdout.split() if name.startswith("task.")]
    assert own and all(f"`{name}`" in page for name in own), own


def write(path, rate=8000, channels=1, width=2, count=9000):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(b"\1\2" * count)


def test_recordings_that_cant_be_used_are_named_with_the_cause():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fp-"))
    recordings = folder / "recordings"
    recordings.mkdir()
    bad = recordings / "b.wav"

    def said(command, corpus):
        done = subprocess.run([str(BIN / "footplate"), *command, str(ROOT / "configs" / "rvq.lua"), f"data.corpus={corpus}"],
                              cwd=folder, env=surroundings(folder), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, (corpus, done)
        return done.stdout + done.stderr

    assert "folder of WAV files" in said(["check"], "kjv")
    for name in ("a.wav", "c.wav"):
        write(recordings / name)
    for options, words in (({"channels": 2}, "2 channels"), ({"rate": 44100}, "44100 samples a second"), ({"width": 1}, "8 bits")):
        write(bad, **options)
        answer = said(["check"], recordings)
        assert words in answer and str(bad) in answer, answer
    write(bad)
    bad.write_bytes(bad.read_bytes()[:1000])
    answer = said(["run", "--batch", "-n", "2"], recordings)
    assert "cut short" in answer and str(bad) in answer, answer
    write(bad)
    for name in ("a.wav", "b.wav", "c.wav"):
        write(recordings / name, count=100)
    answer = said(["check"], recordings)
    assert "longer recordings" in answer, answer
    shutil.rmtree(folder)


if __name__ == "__main__":
    if not SPEECH.is_dir():
        raise SystemExit(f"{SPEECH} isn't there: scripts/deps --data installs Debian's package asterisk-core-sounds-en-wav")
    main([test_it_trains_alike_on_any_number_of_ranks_and_goes_on_bit_equal, test_a_rank_that_is_killed_is_gone_on_without,
          test_a_skipped_step_leaves_the_codebooks_as_they_were, test_its_settings_and_actions_are_steered,
          test_recordings_that_cant_be_used_are_named_with_the_cause])
