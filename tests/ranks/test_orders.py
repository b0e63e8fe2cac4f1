#!/usr/bin/env python3
"""Orders at random moments: applied at one step on all ranks, each once, none missed, equal digests."""

import os
import random
import re
import signal
import subprocess
import threading
import time

from harness import BIN, FULL, PAUSE, Client, Refused, Run, main, not_finite_at, wait_for_pause, wait_until

SETTINGS = [
    ("log.every", lambda r: r.randint(1, 500)),
    ("optim.lr_scale", lambda r: round(r.uniform(0.1, 2), 6)),
    ("sched.base_lr", lambda r: round(r.uniform(1e-4, 1e-2), 8)),
    ("train.clip_norm", lambda r: round(r.uniform(0, 10), 3)),
    ("ckpt.keep", lambda r: r.randint(1, 9)),
]


def give_orders(client, count, step_ms, seed):
    """Gives `count` orders at random moments; {order: step} as the console reported them."""
    rng = random.Random(seed)
    steps = {}
    for _ in range(count):
        time.sleep(rng.uniform(0, 1.5 * step_ms / 1000))
        changes = {name: value(rng) for name, value in rng.sample(SETTINGS, rng.randint(1, 3))}
        report = client.ask("set", changes=changes, timeout_s=30)
        assert report["state"] == "applied", report
        applied = report["applied"]
        assert applied["ranks"] == applied["world_size"], report
        assert {moved["name"] for moved in applied["moved"]} <= {name for name, _ in SETTINGS} | {"optim.lr"}, report
        assert report["id"] not in steps, report
        steps[report["id"]] = applied["step"]
    return steps


def check_ranks(run, ranks, steps):
    """Every rank's own log has every order once, at the reported step, with the same digest."""
    first = run.applied(0)
    for rank in range(ranks):
        found = run.applied(rank)
        assert found == first, f"rank {rank} differs from rank 0: {set(found.items()) ^ set(first.items())}"
    missing = set(steps) - set(first)
    assert not missing, f"orders {missing} were reported applied and are in no rank's log"
    for order, step in steps.items():
        assert first[order][0] == step, f"order {order}: reported at step {step}, applied at {first[order][0]}"


def orders_agree(ranks, step_ms, count):
    with Run([f"model.step_ms={step_ms}", "train.steps=1000000"], ranks=ranks) as run:
        client = run.wait_for_step(1)
        steps = give_orders(client, count, step_ms, seed=ranks * 1000 + step_ms)
        assert list(steps.values()) == sorted(steps.values()), "orders overtook each other"
        stop = client.ask("call", action="run.stop", arguments={"save": False})
        assert stop["state"] == "applied", stop
        assert run.finish() == 0
        steps[stop["id"]] = stop["applied"]["step"]
        check_ranks(run, ranks, steps)
        print(f"      {count} orders, {ranks} ranks, {step_ms} ms: same step everywhere", flush=True)


def test_orders_at_random_moments():
    for ranks in (2, 4):
        for step_ms in (1, 10, 100) if FULL or ranks == 2 else (10,):
            orders_agree(ranks, step_ms, 300 if FULL else 40)


def lr_changes(client):
    """Committed ahead, so that they hit the same steps whatever happens in between."""
    for step, lr in ((300, 5e-3), (700, 2e-3), (1100, 8e-3)):
        client.send("set", changes={"sched.base_lr": lr}, at_step=step)


def final_hash(disturb, stops, steps=1500):
    with Run(["model.step_ms=5", f"train.steps={steps}"], ranks=3 if FULL else 2) as run:
        client = run.wait_for_step(1)
        ahead = Client(run.record()["socket"])
        lr_changes(ahead)
        if disturb:
            stopped(run, client, stops)
        assert run.finish(300) == 0, run.output()
        result = run.result()
        counts = {rank: run.applied(rank) for rank in range(len(run.pids()))}
        assert all(found == counts[0] for found in counts.values()), "ranks differ"
        return result["state_hash"], counts[0]


def stopped(run, client, stops):
    """Stops a random rank again and again for 0.1 to 2 s, while orders go on."""
    rng = random.Random(5)
    pids = run.pids()
    given = {}

    def orders():
        own = Client(run.record()["socket"])
        local = random.Random(6)
        while not done.is_set():
            try:
                report = own.ask("set", changes={"log.every": local.randint(50, 500)}, timeout_s=30)
            except (Refused, ConnectionError, OSError):
                return
            if report["state"] == "applied":
                assert report["id"] not in given
                given[report["id"]] = report["applied"]["step"]
            time.sleep(local.uniform(0, 0.05))

    done = threading.Event()
    thread = threading.Thread(target=orders)
    thread.start()
    client.ask("call", action="run.pause", arguments={"reason": "so that the run doesn't end before the stops"})
    client.ask("call", action="run.resume")
    for _ in range(stops):
        victim = rng.choice(pids)
        os.kill(victim, signal.SIGSTOP)
        time.sleep(rng.uniform(0.1, 2.0))
        os.kill(victim, signal.SIGCONT)
        time.sleep(rng.uniform(0.0, 0.05))
    done.set()
    thread.join(60)
    assert given, "no order was applied between the stops"


def test_stopped_ranks_change_nothing():
    quiet, _ = final_hash(disturb=False, stops=0, steps=8000 if FULL else 1200)
    disturbed, applied = final_hash(disturb=True, stops=50 if FULL else 5, steps=8000 if FULL else 1200)
    assert quiet == disturbed, f"final parameters differ: {quiet} and {disturbed}"
    print(f"      {len(applied)} orders between stops; final state {quiet}", flush=True)


def test_the_learning_rate_is_that_of_now():
    """optim.lr in a chunk, a rule, help and for programs: what the last line says of train/lr, from the start on."""
    with Run(["model.step_ms=2", "train.steps=400", "sched.kind=linear", "log.every=10", PAUSE],
             env={"FOOTPLATE_FAULT": f"{not_finite_at(3)},nan_grad:rank=0:step=105"}) as run:
        client = run.wait_for_step(1)
        wait_for_pause(client)  # however quick the steps are, the rule is there before the last line
        first = client.ask("get", names=["optim.lr"])["optim.lr"]
        assert first["source"] == "computed" and 0 < first["value"] <= 1e-2, first
        client.ask("eval", code="on('log', function(m) store.seen = { optim.lr, m.lr } end)")
        client.ask("call", action="run.resume")
        wait_for_pause(client, 100)
        (lr,) = wait_until(lambda: [line["train/lr"] for line in run.lines("metrics.jsonl") if line["step"] == 100], 20, "the last line")
        assert lr < 0.8e-2, lr
        found = client.ask("eval", code="if optim.lr < 0.8e-2 then return optim.lr end")["value"]
        assert found == lr, (found, lr)
        assert run.exec("optim.lr").stdout.strip() == client.ask("eval", code="return metrics.lr")["text"], lr
        assert client.ask("get", names=["optim.lr"])["optim.lr"]["value"] == lr
        wait_until(lambda: client.ask("eval", code="return store.seen")["value"] == [lr, lr], 20, "the rule at the last line")
        # A new console knows it from rank 0.
        client.close()
        os.kill(run.record()["console_pid"], signal.SIGKILL)
        again = wait_until(run.try_connect, 20, "another console")
        assert again.ask("get", names=["optim.lr"])["optim.lr"]["value"] == lr
        again.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0


def test_refused_by_one_rank():
    with Run(["model.step_ms=10", "train.steps=100000"], env={"FOOTPLATE_FAULT": "refuse:rank=1"}) as run:
        client = run.wait_for_step(1)
        before = client.ask("get", names=["log.every", "sched.base_lr"])
        report = client.ask("set", changes={"log.every": 7, "sched.base_lr": 1e-5})
        assert report["state"] == "refused" and "rank 1" in report["error"], report
        assert client.ask("get", names=["log.every", "sched.base_lr"]) == before
        result = run.exec("log.every = 7")
        assert result.returncode == 5, result
        assert "rank 1" in result.stderr, result.stderr
        run.process.send_signal(signal.SIGTERM)
        assert run.finish(30) == 75, "a fault that refuses orders must not keep a signal from stopping the run"
        assert run.lines("events.jsonl"), "refusals are recorded"


def test_a_trial_keeps_what_is_better_and_puts_back_the_rest():
    with Run(["model.step_ms=3", "log.every=5", "eval.every=0", "sched.kind=constant", "sched.warmup_steps=0", "train.steps=100000"]) as run:
        run.wait_for_step(10).close()
        # What decides is known here: the learning rate itself, of which less counts as better.
        kept = run.exec("return try{ set = { optim = { lr_scale = 0.5 } }, steps = 30, metric = 'train/lr', better_by = 0.2 }")
        assert kept.returncode == 0 and re.search(r"trial of optim.lr_scale = 0.5: train/lr .* in 30 steps, .*, kept$", kept.stdout.strip()), kept
        back = run.exec("return try{ set = { optim = { lr_scale = 0.8 } }, steps = 30, metric = 'train/lr' }")
        assert back.returncode == 0 and back.stdout.rstrip().endswith("put back"), back
        assert run.exec("return optim.lr_scale").stdout.strip() == "0.5"
        journal = (run.directory / "journal.lua").read_text()
        assert journal.count('run.note{ text = "trial of') == 2, journal
        noted = lambda: [event for event in run.lines("events.jsonl") if event["topic"] == "note"]
        wait_until(lambda: len(noted()) == 2, 20, "both notes in the record")
        notes = noted()
        assert [note["data"]["text"] for note in notes] == [kept.stdout.strip(), back.stdout.strip()], notes

        # Interrupted, it puts back what was before it.
        command = [str(BIN / "footplate"), "exec", "-r", str(run.directory), "try{ set = { optim = { lr_scale = 0.25 } }, steps = 500 }"]
        trial = subprocess.Popen(command, env=run.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: run.exec("return optim.lr_scale").stdout.strip() == "0.25", 60, "the change")
        trial.send_signal(signal.SIGINT)
        _, said = trial.communicate(timeout=30)
        assert trial.returncode == 3 and "what was before is back" in said, said
        assert run.exec("return optim.lr_scale").stdout.strip() == "0.5", said


if __name__ == "__main__":
    main([test_orders_at_random_moments, test_stopped_ranks_change_nothing, test_the_learning_rate_is_that_of_now, test_refused_by_one_rank,
          test_a_trial_keeps_what_is_better_and_puts_back_the_rest])
