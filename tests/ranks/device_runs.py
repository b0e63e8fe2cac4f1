#!/usr/bin/env python3
"""Runs on a real device, through the doors a user has: what trains there, what is seen of it, what is changed while it runs. One device
is enough. `check-device runs` calls it where there is one (scripts/bundle --device); with FOOTPLATE_DEVICE=cpu it tries itself on processors,
where what only a device has isn't looked at."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from harness import BIN, ROOT, Run, main, surroundings, wait_until
import test_presets
import test_replay

DEVICE = os.environ.get("FOOTPLATE_DEVICE", "cuda")
ON_A_DEVICE = DEVICE == "cuda"
QUIET = ("eval.at_end=false", "eval.every=0", "ckpt.every=0", "sched.warmup_steps=2", "log.every=5")
SAME_BITS = "run.deterministic=true"
OF_GPT = ("model.layers=2", "model.heads=4", "model.width=128", "model.context=64", "train.batch_size=8")
ENDLESS = "train.steps=1000000"


def there(*assignments, ranks=1, config="kjv", **more):
    return Run([f"run.device={DEVICE}", *QUIET, *assignments], ranks=ranks, config=config, **more)


def hash_of(run, code=0):
    assert run.finish(180) == code, run.output()
    return run.result()["state_hash"]


def rank_log(run):
    return (run.directory / "log" / "rank-0.log").read_text(errors="replace")


def test_the_doctor_and_the_check_know_the_device():
    with tempfile.TemporaryDirectory() as folder:
        told = subprocess.run([BIN / "footplate", "doctor"], env=surroundings(folder), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        print(told.stdout, told.stderr, flush=True)
        assert not ON_A_DEVICE or re.search(r"good +devices +NVIDIA", told.stdout), told.stdout
        checked = subprocess.run([BIN / "footplate", "check", ROOT / "configs" / "gpt2.lua", f"run.device={DEVICE}"], env=surroundings(folder),
                                 capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        print(checked.stdout, checked.stderr, flush=True)
        assert checked.returncode == 0, checked


def test_what_is_seen_of_a_run():
    with there(ENDLESS, *OF_GPT, "train.precision=bf16", "log.detail_every=10", "log.gpu_every=10", "eval.every=200", "eval.batches=2") as run:
        run.wait_for_step(1)
        rows = wait_until(lambda: [row for row in run.lines("metrics.jsonl") if row.get("step", 0) > 400 and "perf/forward_ms" in row][:1], 60, "details")
        found = {key: row[key] for row in run.lines("metrics.jsonl") for key in row if key.startswith(("perf/", "mem/", "gpu/", "eval/"))}
        print(json.dumps(found), flush=True)
        phases = sum(rows[0][f"perf/{name}_ms"] for name in ("data", "forward", "backward", "reduce", "optimizer"))
        assert phases > 0, rows
        if ON_A_DEVICE:
            wait_until(lambda: any("gpu/util" in row for row in run.lines("metrics.jsonl")), 10, "what the driver tells")
            row = [row for row in run.lines("metrics.jsonl") if "gpu/util" in row][-1]
            assert row["gpu/memory_mib"] > 100 and row["gpu/power_w"] > 10 and 10 < row["gpu/temperature_c"] < 110, row
            assert found["mem/peak_mib"] >= found["mem/allocated_mib"] > 1, found
            assert phases < 1.5 * rows[0].get("perf/step_ms", found["perf/step_ms"]) + 1, (phases, found)
        told = run.exec("return status()")
        print(told.stdout, flush=True)
        assert told.returncode == 0, told
        assert run.exec("run.stop{ save = false }").returncode == 0
        assert run.finish() == 0, run.output()


def test_a_profile_has_the_kernels_of_the_device():
    with there(ENDLESS, *OF_GPT) as run:
        run.wait_for_step(20)
        answer = run.exec('profile.now{ steps = 3 }; return run.wait{ event = "profile" }.path')
        assert answer.returncode == 0, answer
        path = pathlib.Path(re.search(r"(/\S+trace\.json)", answer.stdout)[1])
        events = json.loads(path.read_text())
        rows = {event["args"]["name"] for event in events if event.get("name") == "thread_name"}
        print(sorted(rows), len(events), path.stat().st_size, flush=True)
        assert {"phases", "training"} <= rows, rows
        assert not ON_A_DEVICE or any(re.match(r"cuda:0 stream \d+", row) for row in rows), (rows, rank_log(run))
        assert run.exec("run.stop{ save = false }").returncode == 0
        assert run.finish() == 0, run.output()


def test_changes_while_it_runs():
    """Everything that a person would do, in one run that is then replayed to the same bits."""
    with there(ENDLESS, *OF_GPT, "ckpt.keep=5") as run:
        run.wait_for_step(20)
        codes = ["optim.lr_scale = 0.5", "log.every = 10", "eval.now()", "ckpt.save()", "train.batch_size = 12",
                 "train.micro_batch = 3", 'train.precision = "bf16"', "train.cuda_graph = true", "train.micro_batch = 6", "train.cuda_graph = false",
                 'train.precision = "fp32"', 'data.cache = "device"', "nccl.max_ctas = 4", "nccl.rebuild()", "run.pause()", "run.resume()",
                 "train.empty_cache_every = 1", "ckpt.load()"]
        refused = []
        for code in codes:
            done = run.exec(code)
            if done.returncode != 0:
                refused.append((code, done.returncode, done.stderr.strip()[:300]))
            else:
                step = int(re.search(r'"step": ?(\d+)', (run.directory / "status.json").read_text())[1]) if (run.directory / "status.json").exists() else 0
                print(f"{code}: {done.stdout.strip()[:150]} {step}", flush=True)
        print("refused:", refused, flush=True)
        # What it went back to has another batch size: the run starts again.
        wait_until(lambda: " info going on from step " in rank_log(run), 60, "the new start")
        run.end_after(30)
        wanted = hash_of(run)
        print(run.output()[-3000:], flush=True)
        print(run.output()[-2000:], flush=True)
        assert all(not ON_A_DEVICE and ("nccl" in code or "cuda_graph" in code) for code, *_ in refused), refused
        replayed, said = test_replay.replayed(run)
        assert replayed["state_hash"] == wanted, said


def test_resumed_restarted_and_undisturbed_come_to_the_same_bits():
    long = ("train.steps=1500", SAME_BITS, *OF_GPT, "ckpt.every=200", "train.precision=bf16")
    with there(*long) as run:
        wanted = hash_of(run)
    with there(*long) as run:
        assert hash_of(run) == wanted, "the device gives other bits in a second run"
    with there(*long, "train.cuda_graph=true") as run:
        assert hash_of(run) == wanted, "recorded steps give other bits"
    with there(*long, "debug.sync_launches=true", "debug.collectives=detail") as run:
        assert hash_of(run) == wanted, "debugging gives other bits"
    short = ("train.steps=12", SAME_BITS, *OF_GPT)  # each operation's stack is kept: a step takes a hundred times as long
    with there(*short) as plain, there(*short, "debug.anomaly=true") as run:
        assert hash_of(run) == hash_of(plain), "looking for anomalies gives other bits"
    with there(*long, options=("--restarts", "2")) as run:
        run.wait_for_step(300).close()
        os.kill(run.pids()[0], signal.SIGKILL)
        assert hash_of(run) == wanted, run.output()
        print(run.output()[-1500:], flush=True)


def test_gpt2_comes_to_the_same_bits_again():
    if not ON_A_DEVICE:
        print("      skipped: GPT-2 takes a minute a step on processors", flush=True)
        return
    hashes = []
    for more in ((), (), ("train.cuda_graph=true",)):
        with there("train.steps=12", "train.batch_size=16", SAME_BITS, *more, config="gpt2") as run:
            hashes.append(hash_of(run))
            print(more, hashes[-1], [line for line in rank_log(run).splitlines() if "computes in" in line], run.output()[-200:], flush=True)
    assert len(set(hashes)) == 1, hashes


def test_a_rank_that_is_killed_leaves_a_device_that_the_next_start_can_use():
    with there(ENDLESS, *OF_GPT, "ckpt.every=20", options=("--restarts", "3")) as run:
        run.wait_for_step(50).close()
        first = run.pids()[0]
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: run.pids() and run.pids()[0] != first, 60, "a restart")
        run.wait_for_step(80).close()
        assert run.exec("run.stop{ save = false }").returncode == 0
        assert run.finish() == 0, run.output()


def test_two_ranks_on_one_device_are_refused():
    if not ON_A_DEVICE:
        print("      skipped: processors take any number of ranks", flush=True)
        return
    with there("train.steps=10", ranks=2) as run:
        code = run.finish(120)
        print(code, run.output()[-1500:], flush=True)
        assert code != 0 and "a device takes one rank" in run.output(), run.output()


def test_each_task_and_preset():
    with contextlib.ExitStack() as made:
        folder = pathlib.Path(made.enter_context(tempfile.TemporaryDirectory()))
        sounds = test_presets.recordings(folder / "sounds")
        images = made.enter_context(test_presets.Folder())
        classify = (*images.data, "task.width=16", "task.channels=4", "train.batch_size=40", "data.share.digits=8", "data.share.cancer=4")
        hashes = {}
        failed = []
        for config, extra in (("kjv", OF_GPT), ("rvq", (f"data.corpus={sounds}", *test_presets.OF_RVQ)), ("classify", classify), ("synthetic", ())):
            for name, more in (("fp32", ()), ("bf16", ("train.precision=bf16",)), ("graph", ("train.cuda_graph=true",)), ("cache", ("data.cache=device",))):
                with there("train.steps=60", SAME_BITS, *extra, *more, config=config, name=name) as run:
                    code = run.finish(120)
                    hashes[config, name] = run.result()["state_hash"] if code == 0 else f"code {code}: {run.output()[-1200:]}"
                    noted = [line for line in rank_log(run).splitlines() if "record" in line or "computes in" in line] if code == 0 else ""
                    print(config, name, hashes[config, name], noted, flush=True)
                    if code != 0:
                        failed.append((config, name))
            for name in ("graph", "cache"):
                if hashes[config, name] != hashes[config, "fp32"]:
                    failed.append((config, name, "other bits"))
        assert not failed, failed


if __name__ == "__main__":
    if ON_A_DEVICE and not any(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        print("skipped: no CUDA device here; FOOTPLATE_DEVICE=cpu tries the tests themselves")
        sys.exit(0)
    main([test for name, test in list(globals().items()) if name.startswith("test_") and callable(test)])
