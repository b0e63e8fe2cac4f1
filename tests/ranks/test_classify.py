#!/usr/bin/env python3
"""run.task = "classify" on small data sets that are written here: one model of images and tables at once, alike on any number of
ranks; what is wrong with a data set is named before a run starts. Once also on Fashion-MNIST itself."""

import gzip
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import tempfile

from harness import BIN, ROOT, Run, main, surroundings
from own_task import evaluations

SETS = ("fashion", "digits", "cancer")
INSTALLED = (pathlib.Path("/usr/share/datasets/fashion-mnist"),
             *(pathlib.Path(surroundings("/tmp")["FOOTPLATE_CACHE"]) / name for name in ("digits.csv.gz", "breast_cancer.csv")))
SMALL = ("run.threads=1", "task.width=16", "task.channels=4", "train.batch_size=40", "guard.check_every=5", "log.every=1", "log.dataset_every=10",
         "sched.kind=constant", "sched.warmup_steps=5", "eval.every=0", "eval.batches=0", "eval.at_end=false", "ckpt.every=0")


def idx(shape, values):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(values)


class Folder:
    """Images of 6 x 8 of three classes, a bright row each; tables of two and of four classes."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="fp-"))
        self.images = self.path / "images"
        self.images.mkdir()
        draw = random.Random(1)
        for prefix, count in (("train", 120), ("t10k", 31)):
            labels = [draw.randrange(3) for _ in range(count)]
            pixels = [draw.randrange(80) + 120 * (row // 2 == label) for label in labels for row in range(6) for _ in range(8)]
            (self.images / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx((count, 6, 8), pixels)))
            (self.images / f"{prefix}-labels-idx1-ubyte").write_bytes(idx((count,), labels))
        self.digits, self.cancer = self.path / "digits.csv", self.path / "cancer.csv.gz"
        rows = [(*(draw.gauss(6 * (label == i), 1) for i in range(5)), label) for label in (draw.randrange(4) for _ in range(101))]
        self.digits.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        rows = [(1000 + 10 * draw.gauss(label, 0.3), 7, label) for label in (draw.randrange(2) for _ in range(57))]
        self.cancer.write_bytes(gzip.compress(("size,seven,class\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)).encode()))
        self.data = [f"task.fashion={self.images}", f"task.digits={self.digits}", f"task.cancer={self.cancer}"]
        return self

    def __exit__(self, *error):
        if error[0] is None:
            shutil.rmtree(self.path, ignore_errors=True)

    def run(self, *assignments, **options):
        return Run([*SMALL, *self.data, "data.share.digits=8", "data.share.cancer=4", *assignments], config="classify", folder=self.path, **options)

    def said(self, *assignments, command=("check",), env=None):
        """What footplate says about data that can't be used."""
        done = subprocess.run([str(BIN / "footplate"), *command, str(ROOT / "configs" / "classify.lua"), *assignments], cwd=self.path,
                              env=surroundings(self.path, **(env or {})), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, (assignments, done)
        return done.stdout + done.stderr


def test_it_trains_alike_on_any_number_of_ranks_and_goes_on_bit_equal():
    with Folder() as folder:
        found, hashes = {}, {}
        for name, ranks in (("one", 1), ("two", 2), ("three", 3)):
            with folder.run("train.steps=60", "eval.every=60", ranks=ranks, name=name) as one:
                assert one.finish() == 0, one.output()
                assert "differ" not in one.output(), one.output()
                found[name], hashes[name] = evaluations(one)[-1], one.result()["state_hash"]
                sets = [line for line in one.lines("metrics.jsonl") if "data/cancer/samples" in line][-1]
                assert all(sets[f"data/{name}/accuracy"] > 0.9 for name in SETS), sets
        for name in ("eval/loss", "eval/accuracy", *(f"eval/{one}/{metric}" for one in SETS for metric in ("loss", "accuracy"))):
            values = [one[name] for one in found.values()]
            assert max(values) - min(values) < 1e-3, (name, values)
            assert "accuracy" not in name or min(values) > 0.9, (name, values)
        with folder.run("train.steps=25", "ckpt.every=25", name="t") as begun:
            assert begun.finish() == 0, begun.output()
        with Run(folder=folder.path, command=["run", "--name", "t", "--resume", "auto", "--batch", "train.steps=60"]) as rest:
            assert rest.finish() == 0, rest.output()
            assert min(line["step"] for line in rest.lines("metrics.jsonl") if line["start"] == 2) == 26, rest.output()
            assert rest.result()["state_hash"] == hashes["two"], rest.output()


def test_a_rank_that_is_killed_is_gone_on_without_and_settings_are_steered():
    with Folder() as folder, folder.run("train.steps=100000", ranks=3) as three:
        client = three.wait_for_step(20)
        os.kill(three.pids()[1], signal.SIGKILL)
        client.close()
        client = three.wait_for_step(60)
        client.close()
        counts = json.loads(three.exec('return task.confusion{ of = "digits" }:wait()', "--json").stdout)
        assert counts["samples"] == 20 == sum(map(sum, counts["confusion"])) and len(counts["confusion"]) == 4, counts
        assert sum(counts["confusion"][i][i] for i in range(4)) > 15, counts
        for code, words in (("task.smoothing = 0; data.share.cancer = 9", ""), ("task.smoothing = 1", "0 to 0.9"), ("task.width = 8", "fixed"),
                            ("task.label_smoothing = 0", "task.smoothing"), ('task.confusion{ of = "x" }:wait()', "fashion, digits, cancer")):
            done = three.exec(code)
            assert (done.returncode == 0) == (not words) and words in done.stderr, (code, done)
        three.end_after(10)
        assert three.finish() == 0, three.output()
        assert three.result()["recoveries"] == 1 and "differ" not in three.output(), three.output()
    page = (ROOT / "docs" / "classify.md").read_text()
    done = subprocess.run([str(BIN / "footplate"), "settings", "--task", "classify", "--names"], capture_output=True, text=True, check=True)
    own = [name for name in done.stdout.split() if name.startswith("task.")]
    assert own and all(f"`{name}`" in page for name in own), own


def test_data_that_cant_be_used_is_named_with_its_place_and_cause():
    with Folder() as folder:
        def named(words, *assignments, **options):
            answer = folder.said(*folder.data, *assignments, **options)
            assert all(word in answer for word in words), (words, answer)

        named(["task.digits = ", "no such file", "no.csv"], "task.digits=no.csv")
        named(["data set 'cancer'", "breast_cancer.csv", "scripts/deps --data", "task.cancer"], "task.cancer=", env={"FOOTPLATE_CACHE": str(folder.path)})
        text = folder.digits.read_text()
        folder.digits.write_text(text + "1,2,3\n")
        named(["task.digits: ", str(folder.digits), "line 102: 3 numbers", "have 6"])
        folder.digits.write_text(text.replace("\n", ".5\n", 1))
        named([str(folder.digits), "line 1: the label"], command=("run", "--batch", "-n", "2"))
        folder.digits.write_text(text)
        labels, images = folder.images / "t10k-labels-idx1-ubyte", folder.images / "train-images-idx3-ubyte.gz"
        good = labels.read_bytes()
        labels.write_bytes(good[:-1] + b"\x09")
        named(["task.fashion: ", "holds out the label 9 (sample 30)", "0 to 2"])
        labels.write_bytes(good[:-1])
        named([str(labels), "cut short", "31 values, 30 are there"])
        labels.write_bytes(good)
        images.write_bytes(images.read_bytes()[:-20])
        named(["task.fashion: ", str(images), "cut short"])
        images.unlink()
        named([str(folder.images), "train-images-idx3-ubyte.gz"])


def test_fashion_mnist_itself():
    missing = [str(path) for path in INSTALLED if not path.exists()]
    assert not missing, f"{', '.join(missing)} isn't there: scripts/deps --data installs it"
    with Run(["run.threads=1", "train.steps=60", "train.batch_size=120", "sched.kind=constant", "sched.warmup_steps=10", "eval.every=60", "eval.batches=10",
              "eval.at_end=false", "ckpt.every=0"], config="classify") as run:
        assert run.finish() == 0, run.output()
        last = evaluations(run)[-1]
        assert last["eval/fashion/accuracy"] > 0.7 and last["eval/cancer/accuracy"] > 0.85, last


if __name__ == "__main__":
    main([test_it_trains_alike_on_any_number_of_ranks_and_goes_on_bit_equal, test_a_rank_that_is_killed_is_gone_on_without_and_settings_are_steered,
          test_data_that_cant_be_used_is_named_with_its_place_and_cause, test_fashion_mnist_itself])
