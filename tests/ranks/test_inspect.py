#!/usr/bin/env python3
"""footplate inspect: a run's checkpoints, and what is in one. footplate report: the run as a page."""

import json
import math
import re
import shutil
import subprocess

from harness import BIN, Run, main, wait_until

# A save beside training that is due while another one is written comes at a later step.
SMALL = ["model.step_ms=5", "ckpt.every=50", "ckpt.async=false", "ckpt.keep=100000", "eval.every=50", "train.steps=100000"]


def inspect(run, *arguments, code=0):
    return footplate(run, "inspect", *arguments, code=code)


def footplate(run, *arguments, code=0):
    done = subprocess.run([str(BIN / "footplate"), *arguments], cwd=run.folder, env=run.environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, (arguments, done)
    return done.stdout + done.stderr


def test_a_run_and_its_checkpoints():
    with Run(SMALL) as run:
        client = run.wait_for_step(10)
        client.ask("set", changes={"optim.lr_scale": 0.5})
        client.ask("set", changes={"log.every": 3}, at_step=90000)
        assert run.exec("store.note = 'as agreed'").returncode == 0
        client.ask("call", action="ckpt.save", arguments={"tag": "before-spike"}, wait=True)
        folder = run.directory / "checkpoints" / "main"
        wait_until(lambda: (folder / "step-00000150" / "manifest.json").exists(), 60, "checkpoints")

        # Of a run that goes on, by its name, and as the only one.
        for arguments in (("t",), ()):
            said = inspect(run, *arguments)
            assert "main/step-00000050 " in said and "before-spike" in said and "eval loss" in said, said

        one = inspect(run, "t", "before-spike")
        for words in ("tag before-spike", "optim.lr_scale  0.5  order 1", "step 90000  log.every = 3  order 2", "note  as agreed",
                      "rank-0.safetensors", "· 2 ranks ·"):
            assert words in one, (words, one)
        assert "verified" not in one and "model/" not in one, one
        assert "step 100 of run" in inspect(run, "t", "149"), "the nearest before"
        assert "did you mean before-spike?" in inspect(run, "t", "before-spke", code=2)
        assert inspect(run, str(folder / "step-00000050")).startswith(str(folder / "step-00000050"))

        tensors = json.loads(inspect(run, "t", "50", "--tensors", "--verify", "--json"))
        assert tensors["verified"] and tensors["manifest"]["step"] == 50, tensors
        assert sum(tensor["bytes"] for tensor in tensors["tensors"]) <= tensors["bytes"]
        assert all(set(tensor) == {"name", "type", "shape", "bytes", "file"} for tensor in tensors["tensors"]), tensors
        assert "verified" in inspect(run, "t", "--verify")

        # Only the bytes themselves tell that it is damaged.
        path = folder / "step-00000100" / "rank-0.safetensors"
        content = bytearray(path.read_bytes())
        content[-1] ^= 255
        path.write_bytes(content)
        assert "step 100 of" in inspect(run, "t", "100")
        assert "its content is damaged" in inspect(run, "t", "100", "--verify", code=1)
        said = inspect(run, "t", "--verify", code=1)
        assert "damaged: main/step-00000100/rank-0.safetensors" in said and "main/step-00000050" in said, said
        # Its manifest is seen without reading all.
        manifest = folder / "step-00000050" / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"step": 50', '"step": 51'))
        listed = json.loads(inspect(run, "t", "--json", code=1))["checkpoints"]
        broken = [one for one in listed if "error" in one]
        assert [one["path"] for one in broken] == [str(manifest.parent)] and "hash" in broken[0]["error"], broken

        # A copy elsewhere, which no index has; and what is none.
        copy = run.folder / "copy"
        shutil.copytree(run.directory, copy)
        assert "before-spike" in inspect(run, str(copy), code=1)
        assert "no run" in inspect(run, "nothing", code=4)
        empty = run.folder / "empty"
        (empty / "checkpoints").mkdir(parents=True)
        assert "has no checkpoint" in inspect(run, str(empty))


def test_one_best():
    """What the log, status, events, inspect, the report and ckpt.load take for the best evaluation."""
    with Run(["model.step_ms=5", "ckpt.every=70", "ckpt.keep=100", "eval.every=50", "eval.batches=2", "eval.batch_size=4",
              "train.steps=100000"]) as run:
        client = run.wait_for_step(160)
        client.ask("call", action="run.pause", wait=True)
        evaluations = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "eval"]
        best = min(evaluations, key=lambda one: one["loss"])
        loss = f"{best['loss']:.4f}"
        step = best["step"]
        assert evaluations[-1]["best"] == best["loss"] and evaluations[-1]["best_step"] == step, evaluations
        assert client.ask("status")["best_eval_loss"] == best["loss"], client.ask("status")
        # Another choice of samples has another loss, whichever it is.
        other = client.ask("call", action="eval.now", arguments={"batches": 0}, wait=True)["result"]
        assert (other["on"], other["best"]) == ("everything", best["loss"]), other
        wait_until(lambda: (run.record().get("best_evaluation") or {}).get("step") == step, 30, "the best one in run.json")
        said = inspect(run, "t")
        assert f"no checkpoint is of the best evaluation, {loss} at step {step}" in said, said
        first = next(line for line in said.splitlines() if "step-00000070" in line)
        assert f"{evaluations[0]['loss']:.4f} @50 " in first and "best" not in first, first
        refused = run.exec('ckpt.load("best")')
        assert refused.returncode != 0 and f"(loss {loss} at step {step})" in refused.stderr, refused
        footplate(run, "report", "t")
        shown = re.search(rf">([-+.e\d]+) at step {step}<", (run.directory / "report.html").read_text())
        assert shown and math.isclose(float(shown[1]), best["loss"], rel_tol=1e-3), (shown, best)  # four digits


def test_the_checkpoint_of_the_best_evaluation():
    """It alone is marked, and is what "best" loads: those that were the best one when they were saved aren't."""
    with Run([*SMALL, "eval.batches=2", "eval.batch_size=4"]) as run:
        client = run.wait_for_step(260)
        client.ask("call", action="run.pause", wait=True)
        evaluations = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "eval"]
        best = min(evaluations, key=lambda one: one["loss"])
        wait_until(lambda: (run.record().get("best_evaluation") or {}).get("step") == best["step"], 30, "the best one in run.json")
        listed = json.loads(inspect(run, "t", "--json"))["checkpoints"]
        assert [one["step"] for one in listed if one["best"]] == [best["step"]], listed
        assert min(one["metrics"]["eval/loss"] for one in listed) == best["loss"], listed
        assert run.exec('ckpt.load("best")').returncode == 0
        start = wait_until(lambda: len(run.lines("starts.jsonl")) == 2 and run.lines("starts.jsonl")[-1], 60, "the branch")
        assert start["step"] == best["step"], start


def test_tags_move_and_go():
    """ckpt.list(), ckpt.tag, ckpt.delete; the first checkpoint of a branch shares its file with where it came from."""
    with Run(["model.step_ms=5", "ckpt.every=0", "eval.every=0", "train.steps=100000"]) as run:
        run.wait_for_step(10)
        assert "no checkpoint yet" in run.exec("ckpt.list()").stdout
        first = json.loads(run.exec('return ckpt.save{ tag = "good" }:wait().step').stdout)
        run.wait_for_step(first + 10)
        second = json.loads(run.exec("return ckpt.save():wait().step").stdout)
        moved = run.exec('return ckpt.tag("good"):wait().path')
        assert moved.returncode == 0 and moved.stdout.strip().endswith(f"step-{second:08d}-good"), moved
        for step in (first, second):
            moved = run.exec(f'return ckpt.tag{{ tag = "good", ref = {step} }}:wait().path')
            assert moved.returncode == 0 and moved.stdout.strip().endswith(f"step-{step:08d}-good"), moved
        assert run.exec("local all = ckpt.list() return #all, all[1].tag, all[1].step, all[2].tag").stdout.split() == ["2", "good", str(second), "nil"]
        assert f"main/step-{second:08d}-good" in run.exec("ckpt.list()").stdout
        for chunk, words in (("ckpt.tag{ tag = 'x', ref = 1.5 }", "a step is a whole number; got 1.5"),
                             ('ckpt.tag{ tag = "x", ref = "godo" }', "did you mean good?"), ('ckpt.tag("a b")', "letters, digits"),
                             ('ckpt.delete{ tag = "godo", force = true }', "did you mean good?"),
                             ('ckpt.delete{ tag = "good", force = true }:wait()', "the run's newest checkpoint")):
            refused = run.exec(chunk)
            assert refused.returncode != 0 and words in refused.stderr, (chunk, refused)
        assert run.exec("ckpt.load(\"good\")").returncode == 0
        start = wait_until(lambda: len(run.lines("starts.jsonl")) == 2 and run.lines("starts.jsonl")[-1], 60, "the branch")
        assert start["step"] == second, start
        run.wait_for_step(second + 5)
        tensors = run.directory / "checkpoints" / start["branch"] / f"step-{second:08d}" / "rank-0.safetensors"
        assert tensors.stat().st_nlink == 2, tensors.stat()
        assert run.exec('ckpt.delete{ tag = "good", force = true }:wait()').returncode == 0
        assert not (run.directory / "checkpoints" / "main" / f"step-{second:08d}-good").exists()
        assert "verified" in inspect(run, "t", "--verify")


def test_a_page_of_a_run():
    with Run([*SMALL, "model.step_ms=2", "log.every=5"]) as run:
        client = run.wait_for_step(60)
        client.ask("set", changes={"optim.lr_scale": 0.5})
        assert run.exec("optim.lr_scale = -1").returncode != 0
        assert run.exec("ckpt.load{ ref = 50, set = { sched = { base_lr = 0.002 } } }").returncode == 0
        wait_until(lambda: len(run.lines("starts.jsonl")) == 2, 60, "the branch")
        run.wait_for_step(160)
        page = run.directory / "report.html"
        assert footplate(run, "report").strip() == str(page), "of a live run"
        assert footplate(run, "report", "t", "--metric", "train/los", code=2).count("did you mean train/loss?") == 1
        client = run.wait_for_step(1)
        client.ask("call", action="run.stop")
        assert run.finish() == 0, run.output()
        footplate(run, "report", "t")
        text = page.read_text()
        for words in ("optim.lr_scale 1 → 0.5", "ckpt.load(", "by ckpt.load", "eval/loss", "perf/step_ms", "evaluation", "saving", "asked, exit code 0",
                      "<h2>Branches</h2>", ">main @50<", ">sched.base_lr 0.01 → 0.002<", '<span class="key c1">from-50 ',
                      "<td>model.step_ms</td>"):
            assert words in text, words
        assert "<script" not in text and "http" not in text, "nothing from elsewhere"
        assert footplate(run, "report", "t", str(run.directory), "--metric", "train/loss").strip() == str(run.folder / "report.html")
        assert "-o FILE" in footplate(run, "report", "t", "-o", "/nowhere/x.html", code=1)


if __name__ == "__main__":
    main([test_a_run_and_its_checkpoints, test_one_best, test_the_checkpoint_of_the_best_evaluation, test_tags_move_and_go, test_a_page_of_a_run])
