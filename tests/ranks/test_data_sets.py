#!/usr/bin/env python3
"""A task that trains on several data sets at once (tasks/three_sets.cpp counts what it was trained on): shares are exact and live,
and no sample is lost or comes twice, whatever happens to the run."""

import array
import json
import math
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile

from harness import BIN, Run, main, wait_for_pause

PLUGIN = BIN.parent / "tasks" / "three_sets.so"
SIZES = {"big": 40, "middle": 25, "small": 7}
SHARES = {"big": 2, "middle": 1, "small": 0.25}
BATCH = 13


class Folder:
    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="fp-"))
        self.config = self.path / "sets.lua"
        self.config.write_text(f'run.task = "plugin:{PLUGIN}"\nrun.threads = 1\ntrain.batch_size = {BATCH}\ntrain.steps = 120\n'
                               "sched.base_lr = 0.05\neval.every = 0\nckpt.every = 0\ndata.share.set{ big = 2, middle = 1 }\n")
        return self

    def __exit__(self, *error):
        if error[0] is None:
            shutil.rmtree(self.path, ignore_errors=True)

    def run(self, *assignments, name="t", ranks=2, options=(), env=None):
        return Run(folder=self.path, name=name, env=env,
                   command=["run", str(self.config), "--batch", "-n", str(ranks), "--name", name, *options, *assignments])

    def footplate(self, *arguments, code=0):
        done = subprocess.run([str(BIN / "footplate"), *arguments], cwd=self.path, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120, check=False, env={**os.environ, "FOOTPLATE_RUNS": str(self.path / "runs")})
        assert done.returncode == code, (arguments, done)
        return done.stdout + done.stderr


def seen(run):
    """{set: how often each sample was trained on}, and the step."""
    counted = json.loads(run.exec("return task.seen():wait()", "--json").stdout)
    return {name: counted[name] for name in SIZES}, counted["step"]


def check_exact(counts, expected):
    """Each set gave as many samples as its share wants, to less than one for each change of shares; of its own samples none came
    more than once oftener than another."""
    for name, of_samples in counts.items():
        assert max(of_samples) - min(of_samples) <= 1, (name, of_samples)
        assert abs(sum(of_samples) - expected[name]) < 1, (name, sum(of_samples), expected)


def expected(steps, shares):
    return {name: steps * BATCH * share / sum(shares.values()) for name, share in shares.items()}


def test_metrics_of_each_set_add_up_to_those_of_all():
    with Folder() as folder:
        found = {}
        for ranks in (1, 2, 3):
            with folder.run(name=f"on{ranks}", ranks=ranks) as run:
                assert run.finish() == 0, run.output()
                lines = run.lines("metrics.jsonl")
                sets = [line for line in lines if "data/big/loss" in line]
                assert [line["step"] for line in sets] == list(range(10, 121, 10)), sets
                for line in sets:
                    samples = {name: line[f"data/{name}/samples"] for name in SIZES}
                    assert sum(samples.values()) == line["step"] * BATCH, line
                    for name, wanted in expected(line["step"], SHARES).items():
                        assert abs(samples[name] - wanted) < 1, line
                        assert line[f"data/{name}/epoch"] == samples[name] / SIZES[name], line
                    # `number` counts samples: of each set since its last line, and of all in the last step.
                last, before = sets[-1], sets[-2]
                for name in SIZES:
                    assert last[f"data/{name}/number"] == last[f"data/{name}/samples"] - before[f"data/{name}/samples"], last
                evaluated = [line for line in lines if "eval/full_loss" in line or "eval/loss" in line][-1]
                full = "full_" if "eval/full_loss" in evaluated else ""
                weights = {"big": 30, "middle": 11, "small": 2}
                for metric in ("loss", "error"):
                    whole = sum(weights[name] * evaluated[f"eval/{name}/{full}{metric}"] for name in SIZES) / sum(weights.values())
                    assert abs(whole - evaluated[f"eval/{full}{metric}"]) < 1e-9, (metric, whole, evaluated)
                assert evaluated[f"eval/{full}number"] == 43, evaluated
                found[ranks] = evaluated
        for name in SIZES:
            losses = [found[ranks][f"eval/{name}/{full}loss"] for ranks in found]
            assert max(losses) - min(losses) < 1e-4, losses


def test_shares_are_live_and_exact():
    with Folder() as folder:
        with folder.run("train.steps=100000", "guard.nonfinite=pause", env={"FOOTPLATE_FAULT": "nan_loss:rank=1:step=50"}) as run:
            client = run.wait_for_step(1)
            wait_for_pause(client, 51)
            # The step that wasn't finite is passed over: its samples are used up, and nothing was learned from them.
            counts, step = seen(run)
            assert step == 51, step
            assert sum(map(sum, counts.values())) == 50 * BATCH, counts
            changed = run.exec("data.share.set{ big = 0, small = 3 }")
            assert changed.returncode == 0 and "data.share.big 2 -> 0" in changed.stdout + changed.stderr, changed
            again = run.exec("set{ data = { share = { small = 3 } } }")  # as the journal has it
            assert again.returncode == 0, again
            assert "unknown setting" in run.exec("set{ data = { shares = { small = 3 } } }").stderr
            refused = run.exec("data.share.set{ middle = 0, small = 0 }")
            assert refused.returncode != 0 and "all of data.share are 0" in refused.stderr, refused
            assert "data.share.small" in run.exec("data.share.smal = 1").stderr
            assert "0 to" in run.exec("data.share.small = -1").stderr
            run.exec("run.resume()")
            run.end_after(40)
            client.close()
            assert run.finish() == 0, run.output()
            last = [line for line in run.lines("metrics.jsonl") if "data/middle/samples" in line][-1]
            first = [line for line in run.lines("metrics.jsonl") if line.get("step") == 50 and "data/big/samples" in line][0]
            assert last["data/big/samples"] - first["data/big/samples"] in (8, 9), (first, last)  # of step 51 alone


def test_threads_that_load_change_nothing():
    with Folder() as folder:
        hashes = {}
        for workers in (0, 1, 4):
            with folder.run(f"data.workers={workers}", "train.micro_batch=3", name=f"by{workers}") as run:
                assert run.finish() == 0, run.output()
                hashes[workers] = run.result()["state_hash"]
        assert len(set(hashes.values())) == 1, hashes


def tensor(run, name):
    """Its numbers in the newest checkpoint."""
    content = max((run.directory / "checkpoints" / "main").glob("step-*/rank-0.safetensors")).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    begin, end = json.loads(content[8:8 + length])[name]["data_offsets"]
    return array.array("f", content[8 + length + begin:8 + length + end]).tolist()


def test_with_replacement_the_draws_are_the_same_on_any_ranks_and_threads():
    with Folder() as folder:
        counted, hashes = {}, {}
        asked = ("data.replacement=true", "ckpt.every=120")
        for name, ranks, workers in (("one", 1, 0), ("three", 3, 2), ("two", 2, 0)):
            with folder.run(*asked, f"data.workers={workers}", name=name, ranks=ranks) as run:
                assert run.finish() == 0, run.output()
                counted[name], hashes[name] = tensor(run, "state/seen"), run.result()["state_hash"]
        with folder.run(*asked, "train.steps=47", "ckpt.every=47", name="cut") as run:
            assert run.finish() == 0, run.output()
        with Run(folder=folder.path, name="cut", command=["run", "--name", "cut", "--resume", "auto", "--batch", "train.steps=120"]) as run:
            assert run.finish() == 0, run.output()
            hashes["cut"] = run.result()["state_hash"]
            refused = folder.footplate("check", str(folder.config), "data.replacement=2", code=2)
            assert "data.replacement" in refused, refused
        assert counted["one"] == counted["two"] == counted["three"], counted
        assert hashes["two"] == hashes["cut"], hashes
        big = counted["one"][:SIZES["big"]]
        assert abs(sum(big) - expected(120, SHARES)["big"]) < 1, big
        assert max(big) - min(big) > 5, "each as often as the others: these are epochs"


def change(run, *orders):
    """Each some steps after the one before."""
    for code in orders:
        client = run.wait_for_step(1)
        step = client.ask("status")["step"]
        client.close()
        run.wait_for_step(step + 20).close()
        done = run.exec(code)
        assert done.returncode == 0, done


def test_what_is_changed_live_is_replayed_bit_equal_also_across_a_resume():
    with Folder() as folder:
        with folder.run("train.steps=100000") as run:
            change(run, "data.share.small = 4", "train.batch_size = 20; data.workers = 3",
                   "data.share.set{ big = 0.3, middle = 0 }; optim.lr_scale = 0.5", "data.offset = 11; train.batch_size = 5")
            refused = run.exec("train.micro_batch = 6")
            assert refused.returncode != 0 and "is larger than train.batch_size (5" in refused.stderr, refused
            run.process.send_signal(signal.SIGTERM)
            assert run.finish() in (0, 75), run.output()
        with Run(folder=folder.path, name="t", command=["run", "--name", "t", "--resume", "auto", "--batch"]) as run:
            change(run, "train.batch_size = 31", "data.share.big = 0; data.share.middle = 1",
                   "train.micro_batch = 4; data.prefetch = 5")
            assert run.exec("return train.batch_size, data.share.small").stdout.split() == ["31", "4"]
            run.end_after(30)
            assert run.finish() == 0, run.output()
        assert "bit-equal" in folder.footplate("replay", "t")


def applied_at(done):
    """The step of an order that `footplate exec` has given."""
    assert done.returncode == 0, done
    return int(re.search(r"applied at step (\d+)", done.stdout + done.stderr).group(1))


def test_epochs_say_when_the_run_ends():
    whole = sum(SIZES.values())
    with Folder() as folder:
        with folder.run("train.epochs=3", name="short") as run:
            assert run.finish() == 0, run.output()
            assert run.result()["step"] == math.ceil(3 * whole / BATCH) == 17, run.result()
            assert "train.epochs = 3: the run has 17 steps of 13 samples" in (run.directory / "log" / "rank-0.log").read_text()
            last = [line for line in run.lines("metrics.jsonl") if "train/epoch" in line][-1]
            assert abs(last["train/epoch"] - last["step"] * BATCH / whole) < 1e-9, last
        said = folder.footplate("check", str(folder.config), "train.epochs=3", "train.steps=9", code=2)
        assert "train.steps (9, from command line) and train.epochs (3, from command line)" in said, said
        both = folder.path / "both.lua"
        both.write_text(folder.config.read_text() + "train.epochs = 3\n")
        said = folder.footplate("check", str(both), code=2)
        assert "both.lua:4) and train.epochs (3, from" in said and "both.lua:9)" in said, said
        assert "train.steps = 9" in folder.footplate("check", str(both), "train.steps=9")
        with folder.run("train.epochs=100000") as run:
            run.wait_for_step(5).close()
            first = applied_at(run.exec("train.batch_size = 7"))
            left = 100000 * whole - first * BATCH
            assert int(run.exec("return train.steps").stdout) == first + math.ceil(left / 7)
            run.process.send_signal(signal.SIGTERM)
            assert run.finish() in (0, 75), run.output()
        with Run(folder=folder.path, name="t", command=["run", "--name", "t", "--resume", "auto", "--batch"]) as run:
            run.wait_for_step(1).close()
            assert int(run.exec("return train.steps").stdout) == first + math.ceil(left / 7), "as before"
            second = applied_at(run.exec("train.batch_size = 20"))
            drawn = first * BATCH + (second - first) * 7
            assert int(run.exec("return train.steps").stdout) == second + math.ceil((100000 * whole - drawn) / 20)
            refused = run.exec("train.steps = 100000; train.epochs = 7")
            assert refused.returncode != 0 and "both say when the run ends" in refused.stderr, refused
            assert run.exec("run.pause()").returncode == 0
            client = run.wait_for_step(1)
            drawn += (client.ask("status")["step"] - second) * 20
            step, epochs = client.ask("status")["step"], drawn // whole + 2
            client.close()
            done = run.exec(f"train.epochs = {epochs}; run.resume()")
            assert done.returncode == 0 and "train.steps" in done.stdout + done.stderr, done
            assert run.finish() == 0, run.output()
            assert run.result()["step"] == step + math.ceil((epochs * whole - drawn) / 20), (run.result(), step, drawn)
        assert "bit-equal" in folder.footplate("replay", "t")


def test_steps_and_epochs_give_way_to_each_other_live():
    with Folder() as folder:
        with folder.run("train.epochs=100000") as run:
            run.wait_for_step(5).close()
            done = run.exec("train.steps = 100000")
            assert done.returncode == 0 and "train.epochs 100000 -> 0" in done.stdout + done.stderr, done
            assert run.exec("return train.epochs").stdout.strip() == "0"
            run.exec("train.batch_size = 7")
            assert run.exec("return train.steps").stdout.strip() == "100000"
            run.end_after(10)
            assert run.finish() == 0, run.output()


def test_no_sample_is_lost_or_comes_twice():
    with Folder() as folder:
        # A rank is killed, the run ends at a checkpoint, goes on on another number of ranks, and its shares change.
        with folder.run("train.steps=100000", ranks=3, name="cut") as run:
            client = run.wait_for_step(20)
            os.kill(run.pids()[1], signal.SIGKILL)
            run.wait_for_step(40)
            client.close()
            client = run.wait_for_step(1)
            client.ask("call", action="run.pause", arguments={}, wait=True)
            counts, step = seen(run)
            check_exact(counts, expected(step, SHARES))
            run.process.send_signal(signal.SIGTERM)
            assert run.finish() in (0, 75), run.output()
        command = ["run", "--name", "cut", "--resume", "auto", "--batch", "-n", "1", "train.steps=100000"]
        with Run(folder=folder.path, name="cut", command=command) as run:
            run.wait_for_step(step + 30).ask("call", action="run.pause", arguments={}, wait=True)
            counts, now = seen(run)
            check_exact(counts, expected(now, SHARES))
            again = {"big": 1, "middle": 1, "small": 1}
            done = run.exec("data.share.set{ big = 1, small = 1 }")
            assert done.returncode == 0, done
            assert run.exec("run.resume()").returncode == 0
            run.wait_for_step(now + 50).ask("call", action="run.pause", arguments={}, wait=True)
            counts, last = seen(run)
            before, after = expected(now, SHARES), expected(last - now, again)
            check_exact(counts, {name: before[name] + after[name] for name in SIZES})
            run.end_after(1)
            assert run.finish() == 0, run.output()


def test_sets_that_do_not_fit_are_refused():
    with Folder() as folder:
        config = str(folder.config)
        folder.footplate("check", config)
        said = folder.footplate("check", config, "data.share.bigg=1", code=2)
        assert "did you mean data.share.big?" in said, said
        said = folder.footplate("check", config, "data.share.big=0", "data.share.middle=0", "data.share.small=0", code=2)
        assert "all of data.share are 0" in said, said
        said = folder.footplate("check", config, "task.wrong_order=true", code=2)
        assert "middle, big, small" in said and "big, middle, small" in said, said
        assert "Forty numbers." in folder.footplate("settings", "big", "--task", f"plugin:{PLUGIN}")


if __name__ == "__main__":
    main([test_threads_that_load_change_nothing, test_with_replacement_the_draws_are_the_same_on_any_ranks_and_threads,
          test_epochs_say_when_the_run_ends, test_steps_and_epochs_give_way_to_each_other_live,
          test_metrics_of_each_set_add_up_to_those_of_all, test_shares_are_live_and_exact,
          test_what_is_changed_live_is_replayed_bit_equal_also_across_a_resume, test_no_sample_is_lost_or_comes_twice, test_sets_that_do_not_fit_are_refused])
