#!/usr/bin/env python3
"""What never may change the parameters: evaluations, overlap, stopping and resuming."""

import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import time

from harness import BIN, FULL, PAUSE, ROOT, Run, main, not_finite_at, surroundings, wait_for_pause, wait_until

SMALL = ["model.layers=2", "model.width=32", "model.heads=2", "model.context=32", "train.batch_size=7", "eval.batches=2",
         "eval.batch_size=5", "eval.at_end=false", "sched.warmup_steps=5", "log.every=5", "ckpt.every=0", "run.threads=1", "guard.check_every=10"]


def trained(steps, *assignments, ranks=2, options=(), folder=None, code=0, name="t", env=None):
    with Run([*SMALL, f"train.steps={steps}", *assignments], ranks=ranks, config="kjv", options=options, folder=folder,
             name=name, env=env) as run:
        assert run.finish(300) == code, run.output()
        result = run.result()
        assert result["step"] == steps or code == 75, result
        return result, run


def test_evaluation_changes_nothing():
    hashes = {every: trained(40, f"eval.every={every}")[0]["state_hash"] for every in (0, 1, 7)}
    hashes["beside"] = trained(40, "eval.every=3", "eval.async=true")[0]["state_hash"]
    assert len(set(hashes.values())) == 1, hashes


def test_evaluation_at_random_steps_changes_nothing():
    steps = 400
    env = {"FOOTPLATE_FAULT": not_finite_at(5)}
    whole = trained(steps, "eval.every=0", env=env)[0]["state_hash"]
    wanted = sorted(random.Random(3).sample(range(10, steps), 6))
    with Run([*SMALL, f"train.steps={steps}", "eval.every=0", PAUSE], ranks=2, config="kjv", env=env) as run:
        client = run.wait_for_step(5)
        wait_for_pause(client)
        for step in wanted:
            client.ask("call", action="eval.now", at_step=step)
        client.ask("call", action="run.resume")
        assert run.finish(300) == 0, run.output()
        evaluated = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "eval"]
        assert [data["step"] for data in evaluated] == wanted and not any(data.get("failed") for data in evaluated), (wanted, evaluated)
        assert run.result()["state_hash"] == whole


def test_overlap_changes_nothing():
    hashes = {kind: trained(30, f"comm.overlap={kind}", "comm.bucket_mb=0.02")[0]["state_hash"] for kind in ("on", "off", "auto")}
    assert len(set(hashes.values())) == 1, hashes


def test_chunks_change_nothing():
    """Two ranks: a sum of two is the same in pieces of any size, also where it changes on the way (in a pause, so that it
    can't come too late; a step that isn't finite pauses or is skipped, with the same parameters)."""
    def run_with(*assignments):
        return Run([*SMALL, "train.steps=40", *assignments], ranks=2, config="kjv",
                   env={"FOOTPLATE_FAULT": "nan_grad:rank=1:step=17"})

    with run_with() as run:
        assert run.finish(300) == 0, run.output()
        whole = run.result()["state_hash"]
    with run_with("comm.chunk_elements=777", "guard.nonfinite=pause") as run:
        client = run.wait_for_step(18)
        changed = client.ask("set", changes={"comm.chunk_elements": 100})
        assert changed["state"] == "applied" and "error" not in changed, changed
        assert client.ask("call", action="run.resume")["state"] == "applied"
        assert run.finish(300) == 0, run.output()
        assert run.applied(0) == run.applied(1)
        assert run.result()["state_hash"] == whole, run.result()


def test_gradient_checkpointing_changes_nothing():
    more = ["eval.every=7", "train.micro_batch=2"]
    for precision in ("fp32", "bf16"):
        hashes = {on: trained(40, *more, f"train.precision={precision}", f"train.gradient_checkpointing={on}", "comm.overlap=on")[0]["state_hash"]
                  for on in ("false", "true")}
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "switch.lua"
            script.write_text("at(11, { train = { gradient_checkpointing = true } }) at(23, { train = { gradient_checkpointing = false } })\n")
            result, _ = trained(40, *more, f"train.precision={precision}", options=["--script", str(script)])
            hashes["switched"] = result["state_hash"]
        assert len(set(hashes.values())) == 1, hashes


def test_products_by_openblas():
    """Other last digits than MKL's, the same ones each time, and the log says who computes."""
    results = {}
    for name, blas in (("mkl", "mkl"), ("openblas", "openblas"), ("again", "openblas")):
        with Run(["train.steps=7", "eval.every=6", "eval.batches=4", "eval.at_end=false", f"run.blas={blas}"], config="kjv", name=name) as run:
            assert run.finish() == 0, run.output()
            results[name], log = run.result(), (run.directory / "log" / "rank-0.log").read_text()
        assert ("products by OpenBLAS 0.3." in log) == (blas == "openblas"), log
    assert results["openblas"]["state_hash"] == results["again"]["state_hash"] != results["mkl"]["state_hash"], results
    assert abs(results["openblas"]["eval_loss"] - results["mkl"]["eval_loss"]) < 2e-3, results


def test_uneven_slices():
    """7 sequences over 1 and 3 ranks: the same data, so nearly the same loss."""
    losses = {ranks: trained(30, "eval.every=30", ranks=ranks)[0]["eval_loss"] for ranks in (1, 3)}
    assert abs(losses[1] - losses[3]) < 2e-3, losses


def test_resume_is_bit_exact():
    import shutil
    import tempfile
    steps = 60
    straight, _ = trained(steps, "eval.every=10")
    rng = random.Random(11)
    for stop in sorted(rng.sample(range(1, steps), 5 if FULL else 3)):
        folder = tempfile.mkdtemp(prefix="fp-resume-")
        with Run([*SMALL, f"train.steps={steps}", "eval.every=10", f"ckpt.every={stop}"], ranks=2, config="kjv", folder=folder,
                 env={"FOOTPLATE_FAULT": f"step_throw:step={stop}"}) as run:
            assert run.finish(300) in (1, 75), run.output()
        resumed, _ = trained(steps, "eval.every=10", f"ckpt.every={stop}", folder=folder, options=["--resume", "auto"])
        assert resumed["state_hash"] == straight["state_hash"], f"resumed at {stop}: {resumed} instead of {straight}"
        shutil.rmtree(folder)


def test_best_ones_are_saved_as_they_are_found():
    """ckpt.keep_best, also beside training: the checkpoints of the best evaluations, and no others."""
    import shutil
    for beside in ("false", "true"):
        folder = tempfile.mkdtemp(prefix="fp-best-")
        with Run(["model.step_ms=5", "train.steps=150", "eval.every=20", "eval.batches=2", "eval.batch_size=4", "eval.at_end=false", "ckpt.every=0", "ckpt.keep_best=2",
                  f"eval.async={beside}"], folder=folder) as run:
            assert run.finish() == 0, run.output()
            lines = [line for line in run.lines("metrics.jsonl") if "eval/loss" in line]
            best = [line["step"] for line in lines if line["eval/loss"] == line["eval/best"]]
            assert len(best) > 2, lines
            manifests = sorted((json.loads(path.read_text()) for path in run.directory.glob("checkpoints/main/*/manifest.json")), key=lambda one: one["step"])
            assert [one["step"] for one in manifests] == best[-2:], (best, manifests)
            for one in manifests:
                loss = next(line["eval/loss"] for line in lines if line["step"] == one["step"])
                assert one["only_best"] and one["best_evaluation"] == {"branch": "main", "loss": loss, "step": one["step"]}, one
                assert one["metrics"] == {"eval/loss": loss, "eval/step": one["step"]}, one
        shutil.rmtree(folder)


def test_by_time():
    """Intervals in time: all ranks at the same steps, by an order too, and the journal brings the same parameters."""
    with Run(["model.step_ms=10", "train.steps=100000", "log.every=1s", "eval.every=1s", "ckpt.every=0", "guard.check_every=20", "ckpt.keep=100"]) as run:
        client = run.wait_for_step(5)
        assert run.exec('ckpt.every = "1s"').returncode == 0
        assert run.exec("return ckpt.every").stdout.strip() == "1s"
        wait_until(lambda: len(run.lines("events.jsonl")) and len([one for one in run.lines("events.jsonl") if one["topic"] == "ckpt"]) > 1, 60, "checkpoints by time")
        refused = run.exec('ckpt.every = "1"')
        assert refused.returncode != 0 and "30m" in refused.stderr, refused
        wait_until(lambda: len([line for line in run.lines("metrics.jsonl") if "eval/loss" in line]) > 2, 60, "evaluations by time")
        assert run.exec("run.stop()").returncode == 0
        assert run.finish() == 0, run.output()
        assert 'every = "1s"' in (run.directory / "journal.lua").read_text()
        step, state = run.result()["step"], run.result()["state_hash"]
        saved = [one["data"]["step"] for one in run.lines("events.jsonl") if one["topic"] == "ckpt"]
        logged = [line["step"] for line in run.lines("metrics.jsonl") if "train/loss" in line]
        assert len(saved) > 1 and len(logged) < step / 20, (saved, logged, step)
        replay = subprocess.run([str(run.program), "replay", "t", "--name", "again"], cwd=run.folder, env=run.environment, capture_output=True,
                                text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
        assert replay.returncode == 0, replay
        again = json.loads((run.directory.parent / "again" / "result.json").read_text())
        assert (again["step"], again["state_hash"]) == (step, state), again


def test_the_best_checkpoint_is_kept():
    """Training gets worse from step 20 on: the checkpoint of the best evaluation outlives newer ones."""
    import shutil
    import tempfile
    folder = tempfile.mkdtemp(prefix="fp-best-")
    options = ["eval.every=10", "ckpt.every=10", "ckpt.keep=1", "sched.kind=constant"]
    with Run([*SMALL, "train.steps=20", *options], ranks=2, config="kjv", folder=folder) as run:
        assert run.finish(300) == 0, run.output()
    with Run([*SMALL, "train.steps=60", *options, "optim.lr_scale=300", "train.clip_norm=0"], ranks=2, config="kjv", folder=folder,
             options=["--resume", "auto"]) as run:
        assert run.finish(300) == 0, run.output()
        losses = {line["step"]: line["eval/loss"] for line in run.lines("metrics.jsonl") if "eval/loss" in line}
        best = min(losses, key=losses.get)
        assert best == 20, losses
        manifests = [json.loads(path.read_text()) for path in (run.directory / "checkpoints/main").glob("step-*/manifest.json")]
        assert sorted((manifest["step"], manifest["best"]) for manifest in manifests) == [(20, True), (60, False)], manifests
    shutil.rmtree(folder)


def test_a_resume_on_another_text_warns_and_goes_on():
    import shutil
    import tempfile
    folder = tempfile.mkdtemp(prefix="fp-text-")
    text = pathlib.Path(folder) / "text.txt"

    def warned(steps, line, *options):
        text.write_text(line * 2000)
        run = trained(steps, "eval.every=0", "ckpt.every=10", f"data.corpus={text}", folder=folder, options=options)[1]
        log = (run.directory / "log" / "rank-0.log").read_text()
        events = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "warn" and event["data"].get("kind") == "corpus"]
        assert all(event["text"] in log and str(text) in event["text"] for event in events), (events, log)
        return len(events)

    assert warned(10, "one line of many\n") == 0
    assert warned(20, "one line of many\n", "--resume", "auto") == 0
    assert warned(30, "another line of many\n", "--resume", "auto") == 1
    shutil.rmtree(folder)


def test_a_resume_of_another_model_says_what_differs():
    with tempfile.TemporaryDirectory(prefix="fp-model-") as folder:
        trained(10, "eval.every=0", "ckpt.every=10", folder=folder)
        with Run([*SMALL, "train.steps=20", "eval.every=0", "model.layers=3"], ranks=2, config="kjv", folder=folder,
                 options=["--resume", "auto"]) as run:
            assert run.finish(300) == 2, run.output()
            said = run.output()[run.output().rindex("footplate: t came to no step"):].splitlines()
            assert len(said) == 3, said
            assert said[0].endswith("came to no step: the checkpoint has model.layers 2, this start 3 (command line)"), said
            assert "go on with model.layers=2, or begin a new run" in said[1], said
            assert "t is as it was, with its settings of before, at step 10" in said[2], said


def test_a_start_that_fails_before_its_first_step_leaves_no_trace():
    """Refused, and failed in the very first one: the plain --resume auto goes on as if they had never been."""
    with tempfile.TemporaryDirectory(prefix="fp-refused-") as folder:
        trained(10, "eval.every=0", "ckpt.every=10", folder=folder)
        run_folder = pathlib.Path(folder, "runs", "t")
        before = {name: (run_folder / name).read_text() for name in ("run.json", "result.json", "command-line.json", "starts.jsonl")}
        resume = ["run", "--name", "t", "--resume", "auto", "--batch", "--restarts", "0"]
        for words, env, code in ((["model.layers=3"], {}, 2), (["log.every=7"], {"FOOTPLATE_FAULT": "step_throw:rank=1:step=10"}, 1)):
            with Run(folder=folder, env=env, command=[*resume, "train.steps=20", *words]) as run:
                assert run.finish(300) == code, run.output()
                said = run.output()[run.output().rindex("footplate: t came to no step"):]
                assert "t is as it was, with its settings of before, at step 10" in said and ("model.layers 2" in said) == (code == 2), said
                assert not (run_folder / "config-2.json").exists() and not (run_folder / "result-1.json").exists()
                assert {name: (run_folder / name).read_text() for name in before} == before
        with Run(folder=folder, command=[*resume, "train.steps=20"]) as run:
            assert run.finish(300) == 0 and run.result()["step"] == 20, run.output()
            assert run.read_json("config-2.json")["log.every"]["value"] == 5, run.read_json("config-2.json")["log.every"]


def test_interrupted_run_resumes_bit_exact():
    """SIGTERM saves and stops with 75; what goes on from there ends with the same parameters."""
    import shutil
    import signal
    import tempfile
    steps = 1500
    straight, _ = trained(steps, "eval.every=0")
    folder = tempfile.mkdtemp(prefix="fp-resume-")
    with Run([*SMALL, f"train.steps={steps}", "eval.every=0"], ranks=2, config="kjv", folder=folder) as run:
        run.wait_for_step(50)
        run.process.send_signal(signal.SIGTERM)
        assert run.finish(60) == 75, run.output()
        result = run.result()
        assert result["checkpoint"] and 50 <= result["step"] < steps, result
    resumed, _ = trained(steps, "eval.every=0", folder=folder, options=["--resume", "auto"])
    assert resumed["state_hash"] == straight["state_hash"], (resumed, straight)
    shutil.rmtree(folder)


def test_a_failing_evaluation_never_ends_training():
    """Each of 6 is tried with 5 sequences a batch, 2, 1 and 1; what became of it is in metrics and events, and training isn't touched."""
    def failed(metrics, event):
        return metrics["eval/evaluation_failed"] == 1 and metrics["eval/reason"] == event["reason"] and event["failed"]

    def retried(metrics, event):
        return metrics["eval/retries"] == event["retries"] == 1 and metrics["eval/loss"] == event["loss"] and "eval/partial" not in metrics

    def partial(metrics, event):
        return metrics["eval/partial"] == 1 and event["partial"] and 0 < metrics["eval/batches"] < metrics["eval/batches_wanted"]

    undisturbed = trained(30, "eval.every=0")[0]["state_hash"]
    for fault, recorded in (("eval_throw", failed), ("eval_nan:rank=1", failed), ("eval_throw:rank=1:above=2", retried),
                            ("eval_throw:rank=1:tries=1", retried), ("eval_throw:rank=1", partial)):
        with Run([*SMALL, "train.steps=30", "eval.every=5"], ranks=2, config="kjv", env={"FOOTPLATE_FAULT": fault}) as run:
            assert run.finish(300) == 0, run.output()
            metrics = [line for line in run.lines("metrics.jsonl") if "eval/loss" in line or "eval/evaluation_failed" in line]
            events = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "eval"]
            assert len(metrics) == len(events) == 6, (metrics, events)
            assert all(recorded(*both) for both in zip(metrics, events)), (fault, metrics[-1], events[-1])
            assert run.result()["state_hash"] == undisturbed, fault


def test_an_evaluation_can_be_cancelled():
    """Whoever asked for it, and also beside training, which isn't touched."""
    undisturbed = trained(30, "eval.every=0")[0]["state_hash"]

    def cancelled(run):
        assert run.exec("return eval.cancel()").stdout.strip() == "true", run.output()

    def given_up(run):
        return [event["data"]["text"] for event in run.lines("events.jsonl")
                if event["topic"] == "warn" and "evaluation given up" in event["data"]["text"]]

    with Run([*SMALL, "train.steps=30", "eval.every=10", "eval.batches=0"], ranks=2, config="kjv") as run:
        client = run.wait_for_step(1)
        for step in (10, 20, 30):
            wait_until(lambda: [client.ask("status")[key] for key in ("state", "step")] == ["evaluating", step - 1], 30,
                       f"the evaluation at step {step}")
            cancelled(run)
        assert run.finish(60) == 0, run.output()
        assert len(given_up(run)) == 3, run.output()
        assert run.result()["state_hash"] == undisturbed
    with Run([*SMALL, "train.steps=1000000", "eval.every=0", "eval.batches=0"], ranks=2, config="kjv") as run:
        client = run.wait_for_step(1)
        answer = run.exec("return eval.cancel()").stdout
        assert answer == "false\nno evaluation is under way\n", answer
        call = client.send("call", action="eval.now", arguments={}, wait=True)
        other = run.try_connect()
        wait_until(lambda: other.ask("status")["state"] == "evaluating", 30, "eval.now")
        cancelled(run)
        assert client.answer(call)["state"] == "cancelled"
        before = len(given_up(run))
        client.ask("set", changes={"eval.async": True, "eval.every": 10})
        wait_until(lambda: client.ask("status")["evaluating_step"], 30, "one beside training")
        cancelled(run)
        wait_until(lambda: len(given_up(run)) > before, 20, "its end")
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish(60) == 0, run.output()


def held_by(pid):
    """Resident memory in kB, and descriptors that stay open: the fewest in ten looks."""
    def look():
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]), len(os.listdir(f"/proc/{pid}/fd"))
    looks = []
    while len(looks) < 10:
        looks.append(look())
        time.sleep(0.01)
    return min(memory for memory, _ in looks), min(open_files for _, open_files in looks)


def test_a_hundred_failures_change_nothing():
    """Evaluations that throw (as out of memory does, with smaller batches as the remedy), find a NaN or come too late, on one
    rank or on all: in each of them. Training ends with the same bits, and the ranks hold no more than after the first fifth."""
    failures = 100 if FULL else 20
    steps = failures * 10
    early, late = steps // 5, steps * 9 // 10
    undisturbed = trained(steps, "eval.every=0", env={"FOOTPLATE_FAULT": not_finite_at(early)})[0]["state_hash"]
    for fault in ("eval_throw", "eval_throw:rank=0", "eval_throw:above=2", "eval_nan", "eval_nan:rank=1",
                  "eval_stall:rank=1:ms=500"):  # much later than a busy machine makes rank 0
        with Run([*SMALL, f"train.steps={steps}", "eval.every=10", "eval.meet_timeout_s=0.1", PAUSE], ranks=2, config="kjv",
                 env={"FOOTPLATE_FAULT": f"{fault},{not_finite_at(early)}"}) as run:
            client = run.wait_for_step(early)
            wait_for_pause(client)
            pids, before = run.pids(), [held_by(pid) for pid in run.pids()]
            client.ask("call", action="run.pause", at_step=late)
            client.ask("call", action="run.resume")
            wait_for_pause(client, late, 300)
            after = [held_by(pid) for pid in pids]
            client.ask("call", action="run.resume")
            client.close()
            assert run.finish(300) == 0, run.output()
            recorded = [line for line in run.lines("metrics.jsonl") if "eval/loss" in line or "eval/evaluation_failed" in line]
            disturbed = [line for line in recorded if line.get("eval/evaluation_failed") or line.get("eval/partial")
                         or line.get("eval/retries")]
            assert len(recorded) == failures and len(disturbed) == failures, (fault, len(recorded), len(disturbed))
            assert run.result()["state_hash"] == undisturbed, fault
            for (memory, open_files), (memory_then, open_then) in zip(before, after):
                assert memory_then < memory * 1.01 and open_then <= open_files, (fault, before, after)
            print(f"  {fault}: {failures} of {failures} failed, memory {before[0][0]} -> {after[0][0]} kB", flush=True)


def test_a_step_that_is_not_finite_is_skipped_by_all():
    for clip in (1, 0):
        with Run([*SMALL, "train.steps=40", "eval.every=0", f"train.clip_norm={clip}"], ranks=2, config="kjv",
                 env={"FOOTPLATE_FAULT": "nan_grad:rank=1:step=17"}) as run:
            assert run.finish(300) == 0, run.output()
            warnings = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "warn"]
            assert [warning["kind"] for warning in warnings] == ["nonfinite"], warnings  # the hashes agree, too
            assert warnings[0]["text"] == "step 17: gradients aren't finite (norm nan); skipped, 1 in a row", warnings
            last = run.lines("metrics.jsonl")[-1]
            assert last["guard/nonfinite"] == 1 and last["train/loss"] < 5.6, last  # @nan is a string


def test_steps_that_are_not_finite_can_end_the_run():
    """As a step that throws does: code 1, and the parameters of before, which are saved."""
    ends = {}
    for kind, fault in (("skip", "step_throw:step=20"), ("stop", "nan_grad:rank=1:step=20"), ("skip", "nan_grad:rank=1:step=20:times=3")):
        with Run([*SMALL, "train.steps=40", "eval.every=0", f"guard.nonfinite={kind}"], ranks=2, config="kjv",
                 env={"FOOTPLATE_FAULT": fault}) as run:
            assert run.finish(300) == 1, run.output()
            end = ends[fault] = run.result()
            assert end["checkpoint"].endswith(f"step-{end['step']:08d}") and (pathlib.Path(end["checkpoint"]) / "manifest.json").exists(), end
    assert len({end["state_hash"] for end in ends.values()}) == 1, ends
    three = ends["nan_grad:rank=1:step=20:times=3"]
    assert three["step"] == 22 and "3 in a row; parameters are as step 20 left them" in three["reason"], three


def test_a_step_that_is_not_finite_can_pause_the_run():
    tell = 'echo "$FOOTPLATE_NOTIFY_TEXT" >>"$FOOTPLATE_NOTIFY_DIRECTORY/told"'
    with Run([*SMALL, "train.steps=40", "eval.every=0", "guard.nonfinite=pause"], ranks=2, config="kjv", options=["--notify", tell],
             env={"FOOTPLATE_FAULT": "nan_grad:rank=1:step=17"}) as run:
        client = run.wait_for_step(18)
        status = wait_until(lambda: (now := client.ask("status"))["state"] == "paused" and now, 30, "the pause")
        wait_until(lambda: [rank["step"] for rank in client.ask("status")["ranks"]] == [18, 18], 30, "both ranks to stand at step 18")
        assert status["step"] == 18, status
        wait_until(lambda: run.record()["state"] == "paused", 30, "run.json to say so")
        told = run.directory / "told"
        wait_until(lambda: told.exists() and len(told.read_text().splitlines()) == 2, 30, "the notices")
        why, paused = sorted(told.read_text().splitlines(), key=lambda line: "is paused" in line)
        assert paused == "t is paused at step 18" and why.startswith("t: step 17: gradients aren't finite"), told.read_text()
        applied = client.ask("set", changes={"log.every": 1})
        assert applied["state"] == "applied" and applied["applied"]["step"] == 18, applied
        assert client.ask("call", action="run.resume")["state"] == "applied"
        assert run.finish(300) == 0, run.output()
        assert run.result()["step"] == 40, run.result()
        assert run.applied(0) == run.applied(1)
        assert len(told.read_text().splitlines()) == 3 and told.read_text().endswith("t is done at step 40\n"), told.read_text()


def test_what_needs_too_much_memory_is_tried_with_less():
    """By orders, so that the ranks agree on it and a replay does the same; the batch is the same, and so is what comes of it."""
    settings = [*SMALL, "train.steps=40", "train.batch_size=16", "eval.every=0", PAUSE]
    with Run(settings, config="kjv", env={"FOOTPLATE_FAULT": f"{not_finite_at(5)},step_oom:rank=1:step=17:above=3"}) as run:
        wait_for_pause(run.wait_for_step(5), 5)
        assert run.exec("run.resume()").returncode == 0
        assert run.finish(300) == 0, run.output()
        warnings = [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "warn" and event["data"]["kind"] == "memory"]
        assert [(warning["kind"], warning["step"], warning["value"]) for warning in warnings] == [("memory", 17, 4), ("memory", 17, 2)], warnings
        assert warnings[0]["text"] == ("step 17: rank 1: out of memory on the host: you tried to allocate 4503599627370496 bytes; nothing has changed. "
                                       "It is tried again with 4 sequences of a rank at once, 8 before (train.micro_batch); the batch stays 16"), warnings
        assert run.applied(0) == run.applied(1) and len(run.applied(0)) == 3, run.applied(0)
        assert "footplate: train.micro_batch 4 -> 2, run.resume(), applied at step 17 on 2/2 ranks" in run.output(), run.output()
        expected = run.result()["state_hash"]
    with Run(settings, config="kjv", env={"FOOTPLATE_FAULT": not_finite_at(5)}) as run:
        client = run.wait_for_step(5)
        wait_for_pause(client, 5)
        assert client.ask("set", changes={"train.micro_batch": 2}, at_step=17)["state"] == "committed"
        assert run.exec("run.resume()").returncode == 0
        assert run.finish(300) == 0, run.output()
        assert sorted(step for step, _ in run.applied(0).values()) == [6, 17], run.applied(0)
        assert run.result()["state_hash"] == expected


def test_too_little_memory_for_one_sequence_ends_the_run():
    with Run([*SMALL, "train.steps=40", "train.batch_size=4", "eval.every=0"], config="kjv",
             env={"FOOTPLATE_FAULT": "step_oom:rank=1:step=5:above=0"}) as run:
        assert run.finish(300) == 1, run.output()
        result = run.result()
        assert result["step"] == 5 and "step 5 failed: rank 1: out of memory on the host" in result["reason"], result
        assert [event["data"]["value"] for event in run.lines("events.jsonl") if event["topic"] == "warn"] == [1], run.output()


def test_the_odd_rank_is_named():
    """In the record, and in the status until all have one state again."""
    with Run([*SMALL, "train.steps=1000000", "eval.every=0", "guard.check_every=3"], ranks=3, config="kjv",
             env={"FOOTPLATE_FAULT": "flip_bit:rank=1:step=15"}) as run:
        client = run.wait_for_step(15)
        differ = lambda: [note for note in client.ask("status")["notes"] if "rank 1 differs" in note]
        wait_until(differ, 60, "the note")
        assert run.exec("guard.repair{ source = 0 }").returncode == 0
        wait_until(lambda: not differ(), 20, "the note to go away")
        run.end_after(10)
        assert run.finish(300) == 0, run.output()
        events = [event for event in run.lines("events.jsonl") if "hash" in str(event)]
        assert events and "rank 1" in str(events), run.lines("events.jsonl")[-5:]


def test_the_odd_rank_is_repaired_from_the_majority():
    def repairs(run):
        return [event["data"]["result"] for event in run.lines("events.jsonl")
                if event["topic"] == "call" and event["data"]["action"] == "guard.repair" and event["data"]["state"] == "done"]

    with Run([*SMALL, "train.steps=1000000", "eval.every=0", "guard.check_every=3", "guard.on_mismatch=repair"], ranks=3, config="kjv",
             env={"FOOTPLATE_FAULT": "flip_bit:rank=1:step=15"}) as run:
        wait_until(lambda: repairs(run), 60, "the repair")
        run.end_after(30)
        assert run.finish(300) == 0, run.output()
        warned = [event["data"]["step"] for event in run.lines("events.jsonl")
                  if event["topic"] == "warn" and event["data"].get("kind") == "state_hash"]
        repaired = repairs(run)
        assert len(repaired) == 1 and repaired[0]["source"] == 0, (repaired, run.output())
        assert warned and all(15 <= step <= repaired[0]["step"] for step in warned), (warned, repaired)
        assert "guard.repair" in (run.directory / "journal.lua").read_text()


def test_ranks_that_differ_can_end_the_run():
    with Run([*SMALL, "train.steps=6000", "eval.every=0", "guard.check_every=3", "guard.on_mismatch=stop"], ranks=3, config="kjv",
             env={"FOOTPLATE_FAULT": "flip_bit:rank=1:step=15"}) as run:
        assert run.finish(300) == 75, run.output()
        assert "rank 1 differs from the others" in run.result()["reason"] and not run.result()["checkpoint"], run.result()


def test_check_sees_what_a_start_would_refuse():
    """With its words, and without making anything."""
    with tempfile.TemporaryDirectory(prefix="fp-") as folder:
        folder = pathlib.Path(folder)
        (folder / "short.txt").write_text("x" * 500)
        environment = surroundings(folder, FOOTPLATE_CACHE=str(folder / "cache"))
        for corpus, said in (("/no/such/file", "no such file or folder"), (folder / "short.txt", "has 500 bytes and holds out 50")):
            answers = [subprocess.run([str(BIN / "footplate"), *words, str(ROOT / "configs" / "kjv.lua"), f"data.corpus={corpus}"],
                                      cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
                       for words in (("check",), ("run", "--batch", "-n", "1", "--name", "x"))]
            for answer in answers:
                assert answer.returncode == 2 and said in answer.stderr, answer
            assert answers[0].stderr.removeprefix("footplate: ").strip() in answers[1].stderr, answers
            assert not (folder / "cache").exists(), list(folder.rglob("*"))
        (folder / "text").mkdir()
        (folder / "text" / "long.txt").write_text("x" * 100_000)
        fine = subprocess.run([str(BIN / "footplate"), "check", str(ROOT / "configs" / "kjv.lua"), f"data.corpus={folder / 'text'}"],
                              cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert fine.returncode == 0 and fine.stderr == "" and not (folder / "cache").exists(), fine


if __name__ == "__main__":
    main([test_evaluation_changes_nothing, test_evaluation_at_random_steps_changes_nothing, test_overlap_changes_nothing, test_chunks_change_nothing, test_gradient_checkpointing_changes_nothing, test_uneven_slices, test_resume_is_bit_exact, test_the_best_checkpoint_is_kept, test_best_ones_are_saved_as_they_are_found, test_by_time,
          test_a_resume_on_another_text_warns_and_goes_on, test_a_resume_of_another_model_says_what_differs,
          test_a_start_that_fails_before_its_first_step_leaves_no_trace,
          test_interrupted_run_resumes_bit_exact, test_a_failing_evaluation_never_ends_training,
          test_an_evaluation_can_be_cancelled, test_a_hundred_failures_change_nothing,
          test_a_step_that_is_not_finite_is_skipped_by_all, test_steps_that_are_not_finite_can_end_the_run,
          test_a_step_that_is_not_finite_can_pause_the_run, test_what_needs_too_much_memory_is_tried_with_less,
          test_too_little_memory_for_one_sequence_ends_the_run, test_the_odd_rank_is_named,
          test_the_odd_rank_is_repaired_from_the_majority, test_ranks_that_differ_can_end_the_run,
          test_check_sees_what_a_start_would_refuse, test_products_by_openblas])
