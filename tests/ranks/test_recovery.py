"""Ranks that die: the others go on in place. Through the programs, with real signals."""

import os
import pathlib
import random
import signal
import statistics
import subprocess
import time

from harness import FULL, Run, main, wait_until
from leftovers import nothing_left

QUICK = ["model.step_ms=5", "run.threads=1", "eval.batches=4", "ckpt.every=0"]


def lost_events(run):
    return [event["data"] for event in run.lines("events.jsonl")
            if event["topic"] == "rank" and event["data"].get("state") == "lost"]


def kill_rank(run, rank):
    """SIGKILL to whoever is rank `rank` now."""
    pid = run.pids()[rank]
    os.kill(pid, signal.SIGKILL)
    return pid


def wait_for_loss(run, count, timeout_s=20):
    wait_until(lambda: len(lost_events(run)) >= count, timeout_s, f"loss {count} to be told of")
    return lost_events(run)[-1]


def connect(run, timeout_s=20):
    return wait_until(run.try_connect, timeout_s, "the console")


def stop(run):
    client = connect(run)
    client.ask("call", action="run.stop", arguments={"save": False})
    client.close()


def test_a_rank_is_killed_and_the_others_go_on():
    with Run([*QUICK, "train.steps=1000000"], ranks=3) as run:
        run.wait_for_step(20).close()
        gone = kill_rank(run, 1)
        event = wait_for_loss(run, 1)
        assert event["ranks"] == [1] and event["world_size"] == 2, event
        assert "rank 1 of 3 lost at step" in event["text"], event
        client = connect(run)
        wait_until(lambda: client.ask("status")["step"] > event["step"] + 20, 20, "training to go on")
        status = client.ask("status")
        assert status["world_size"] == 2 and len(status["ranks"]) == 2, status
        assert gone not in run.pids() and len(run.pids()) == 2
        answer = client.ask("set", changes={"log.every": 7})
        assert answer["applied"]["ranks"] == 2 == answer["applied"]["world_size"], answer
        client.ask("call", action="ckpt.save", arguments={})
        client.close()
        stop(run)
        assert run.finish() == 0, run.output()
        result = run.result()
        assert result["recoveries"] == 1 and result["reason"] == "asked", result
        assert "rank 1 of 3 lost" in run.output() and "rank 1 of 3 lost" in (run.directory / "journal.lua").read_text()
        nothing_left(run)


def test_a_load_after_a_loss_is_a_load():
    """What was lost before it is over: this start ends, and the next one goes on from the checkpoint."""
    with Run([*QUICK, "train.steps=1000000"], ranks=2) as run:
        client = run.wait_for_step(20)
        client.ask("call", action="ckpt.save", arguments={}, wait=True)
        client.close()
        kill_rank(run, 1)
        wait_for_loss(run, 1)
        connect(run).close()
        loaded = run.exec("ckpt.load{ ref = 'latest' }", timeout_s=30)
        assert loaded.returncode == 0, (loaded, run.output())
        wait_until(lambda: len(run.lines("starts.jsonl")) == 2, 60, "the start that ckpt.load makes")
        run.wait_for_step(30).close()
        stop(run)
        assert run.finish() == 0, run.output()


def has_control(pid):
    threads = (path.read_text().strip() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/comm"))
    try:
        return "control" in threads
    except OSError:  # it ends just now
        return False


def test_a_rank_that_has_ended_is_no_loss_for_one_that_saves():
    """Of a run that has lost a rank before, whose processes can't leave MPI together."""
    with Run([*QUICK, "train.steps=1000000"], ranks=3, env={"FOOTPLATE_FAULT": "save_hold"}) as run:
        run.wait_for_step(20).close()
        kill_rank(run, 1)
        wait_for_loss(run, 1)
        (run.directory / "hold_saves").touch()
        client = connect(run)
        client.ask("call", action="ckpt.save", arguments={})
        other = wait_until(lambda: len(run.pids()) == 2 and run.pids()[1], 20, "the record of two ranks")
        client.close()
        stop(run)
        wait_until(lambda: not has_control(other), 30, "rank 1 to be at its end")
        for _ in range(50):  # it stays there as long as rank 0 saves
            assert pathlib.Path(f"/proc/{other}/exe").exists(), "rank 1 has left"
            time.sleep(0.02)
        (run.directory / "hold_saves").unlink()
        assert run.finish() == 0, run.output()
        assert run.result()["recoveries"] == 1, run.result()
        nothing_left(run)


def test_rank_0_is_killed_and_another_leads():
    with Run([*QUICK, "train.steps=1000000"], ranks=3) as run:
        client = run.wait_for_step(20)
        client.ask("set", changes={"log.every": 7})
        client.close()
        kill_rank(run, 0)
        began = time.monotonic()
        event = wait_for_loss(run, 1)
        client = connect(run)
        back_s = time.monotonic() - began
        print(f"  console back after {back_s:.2f} s", flush=True)
        wait_until(lambda: client.ask("status")["step"] > event["step"] + 20, 20, "training to go on")
        answer = client.ask("set", changes={"log.every": 9})
        assert answer["applied"]["ranks"] == 2 == answer["applied"]["world_size"], answer
        client.close()
        stop(run)
        assert run.finish() == 0, run.output()
        numbers = [event["sequence"] for event in run.lines("events.jsonl")]
        assert numbers == list(range(1, len(numbers) + 1)), "events are numbered on"
        journal = (run.directory / "journal.lua").read_text()
        assert journal.count("every = 7") and journal.count("every = 9"), journal
        assert journal.count("rank 0 of 3 lost at step") == 1, journal
        nothing_left(run)


def test_later_steps_are_those_of_a_smaller_world():
    """Bit for bit as a run on two ranks that goes on from the same state."""
    settings = ["model.step_ms=2", "run.threads=1", "ckpt.every=0", "eval.mode=off", "train.steps=1000000"]
    with Run(settings, ranks=3) as run:
        run.wait_for_step(30).close()
        kill_rank(run, random.choice([1, 2]))
        event = wait_for_loss(run, 1)
        client = connect(run)
        client.ask("call", action="ckpt.save", arguments={"tag": "after"})
        client.close()
        path = wait_until(lambda: next(iter((run.directory / "checkpoints" / "main").glob("step-*-after/manifest.json")), None), 20,
                          "the checkpoint").parent
        saved = int(path.name.split("-")[1])
        client = connect(run)
        wait_until(lambda: client.ask("status")["step"] > saved + 30, 20, "steps after it")
        client.close()
        stop(run)
        assert run.finish() == 0
        end = run.result()["step"]
        hash_here = run.result()["state_hash"]
        with Run([*settings[:-1], f"train.steps={end}"], ranks=2, name="again", folder=run.folder,
                 options=["--resume", str(path)]) as again:
            assert again.finish() == 0, again.output()
            assert again.result()["step"] == end
            assert again.result()["state_hash"] == hash_here, event


def test_a_run_that_lost_a_rank_comes_back_to_its_size():
    """Killed, then stopped: said everywhere, told to --notify, and --resume auto starts as many ranks as were asked for."""
    def ask(run, *words):
        return subprocess.run([run.program, *words], capture_output=True, text=True, timeout=60, check=False, env=run.environment).stdout

    # The first one takes longer than the run lasts from then on: it is told first all the same.
    tell = '[ $FOOTPLATE_NOTIFY_EVENT = end ] || sleep 1; echo "$FOOTPLATE_NOTIFY_EVENT: $FOOTPLATE_NOTIFY_TEXT" >>"$FOOTPLATE_RUNS/told"'
    with Run([*QUICK, "train.steps=1000000"], ranks=2, options=["--notify", tell]) as run:
        run.wait_for_step(20).close()
        kill_rank(run, 1)
        wait_for_loss(run, 1)
        client = connect(run)
        wait_until(lambda: any("1 of 2 ranks" in note for note in client.ask("status")["notes"]), 20, "the note")
        client.close()
        wait_until(lambda: run.record()["world_size"] == 1, 20, "the record")
        assert "! 1 of 2 ranks" in ask(run, "status", "t") and "  1 of 2  " in ask(run, "ls"), (ask(run, "status", "t"), ask(run, "ls"))
        run.process.send_signal(signal.SIGTERM)
        assert run.finish() == 75, run.output()
        assert "· 1 of 2 ranks" in ask(run, "status", "t") and "  1 of 2  " in ask(run, "ls", "-a"), ask(run, "status", "t")
        told = (run.folder / "runs" / "told").read_text().splitlines()
        assert [line.split(":")[0] for line in told] == ["lost", "end"] and "goes on with 1 of 2 ranks" in told[0], told
        with Run(folder=run.folder, command=["run", "--name", "t", "--resume", "auto", "--batch", "--restarts", "1"]) as again:
            wait_until(lambda: again.record()["state"] == "running", 60, "the start")
            assert len(again.pids()) == 2 and again.record()["world_size"] == 2, again.record()
            for pid in again.pids():
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: "restart 1 of 1" in again.output(), 60, "the restart")
            wait_until(lambda: again.record()["state"] == "running" and len(again.pids()) == 2, 60, "the start after it")
            again.process.send_signal(signal.SIGTERM)
            assert again.finish() == 75, again.output()
        with Run(folder=run.folder, command=["run", "--name", "t", "--resume", "auto", "--batch", "-n", "1", "train.steps=1"]) as smaller:
            smaller.finish()
            assert "footplate: t goes on with 1 rank, was 2" in smaller.output(), smaller.output()


def test_a_stopped_rank_is_named_and_waited_for():
    """Not killed below the hard limit; the parameters are those of a run that nobody stopped."""
    settings = ["model.step_ms=2", "run.threads=1", "ckpt.every=0", "eval.mode=off", "train.steps=600"]
    with Run(settings, ranks=2) as run, Run(settings, ranks=2, name="quiet", folder=run.folder) as quiet:
        client = run.wait_for_step(20)
        pid = run.pids()[1]
        os.kill(pid, signal.SIGSTOP)
        named = lambda: any("rank 1" in note for note in client.ask("status")["notes"])
        wait_until(named, 5, "the rank to be named")
        time.sleep(60 if FULL else 3)
        os.kill(pid, signal.SIGCONT)
        client.close()
        assert run.finish() == 0 and quiet.finish() == 0, run.output()
        assert not lost_events(run)
        assert run.result()["state_hash"] == quiet.result()["state_hash"]


def test_a_stopped_rank_is_killed_past_the_hard_limit():
    with Run([*QUICK, "train.steps=1000000", "comm.hard_limit_s=4.5"], ranks=3) as run:
        run.wait_for_step(20).close()
        stopped = time.monotonic()
        os.kill(run.pids()[2], signal.SIGSTOP)
        event = wait_for_loss(run, 1)
        took = time.monotonic() - stopped
        assert event["ranks"] == [2], event
        print(f"  killed after {took:.1f} s", flush=True)
        assert took > 4, took
        client = connect(run)
        wait_until(lambda: client.ask("status")["step"] > event["step"] + 20, 20, "training to go on")
        client.close()
        assert "killed past comm.hard_limit_s (4.5 s): rank 2" in run.output(), run.output()
        stop(run)
        assert run.finish() == 0, run.output()
        nothing_left(run)


def test_a_stopped_rank_0_is_killed_past_the_hard_limit():
    """By its console, which is the only one to hear that it says nothing."""
    with Run([*QUICK, "train.steps=1000000", "comm.hard_limit_s=4.5"], ranks=3) as run:
        run.wait_for_step(20).close()
        stopped = time.monotonic()
        os.kill(run.pids()[0], signal.SIGSTOP)
        event = wait_for_loss(run, 1)
        took = time.monotonic() - stopped
        assert event["ranks"] == [0] and event["world_size"] == 2, event
        print(f"  killed after {took:.1f} s", flush=True)
        assert took > 4, took
        client = connect(run)
        wait_until(lambda: client.ask("status")["step"] > event["step"] + 20, 20, "training to go on")
        client.close()
        assert "killed past comm.hard_limit_s (4.5 s): rank 0 silent" in (run.directory / "log" / "console.log").read_text()
        stop(run)
        assert run.finish() == 0, run.output()
        nothing_left(run)


def test_a_rank_is_dropped_by_hand():
    with Run([*QUICK, "train.steps=1000000"], ranks=3) as run:
        run.wait_for_step(20).close()
        os.kill(run.pids()[1], signal.SIGSTOP)
        dropped = run.exec("comm.drop(1)")
        assert dropped.returncode == 0 and "rank 1 is gone" in dropped.stdout + dropped.stderr, dropped
        event = wait_for_loss(run, 1)
        assert event["ranks"] == [1] and event["world_size"] == 2, event
        assert "killed by comm.drop() of" in run.output(), run.output()
        for code, said in (("comm.drop(2)", "there is no rank 2; there are 0 to 1"), ("comm.drop(0)", "rank 0 leads the run")):
            refused = run.exec(code)
            assert refused.returncode != 0 and said in refused.stderr, refused
        stop(run)
        assert run.finish() == 0, run.output()


def test_a_loss_that_no_console_heard_of_is_in_the_journal():
    """The next one is told of it. One that dies at its start again and again is started after longer and longer pauses."""
    with Run([*QUICK, "train.steps=1000000"], ranks=3) as run:
        run.wait_for_step(20).close()
        for _ in range(6):
            pid = run.record()["console_pid"]
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: run.record().get("console_pid", pid) != pid, 20, "another console")
        os.kill(run.record()["console_pid"], signal.SIGKILL)
        kill_rank(run, 1)
        wait_for_loss(run, 1)
        client = connect(run)
        client.ask("set", changes={"log.every": 7})
        client.close()
        stop(run)
        assert run.finish() == 0, run.output()
        journal = (run.directory / "journal.lua").read_text()
        assert journal.count("rank 1 of 3 lost at step") == 1, journal


def test_the_best_evaluation_is_known_to_a_new_rank_0():
    """And after a resume: from the checkpoint, before anything is evaluated again."""
    settings = [*QUICK, "train.steps=1000000", "eval.every=0"]
    with Run(settings, ranks=2) as run:
        client = run.wait_for_step(20)
        client.ask("call", action="eval.now", arguments={})
        client.close()
        best = wait_until(lambda: [event["data"]["best"] for event in run.lines("events.jsonl") if event["topic"] == "eval"], 10,
                          "the evaluation")[0]
        kill_rank(run, 0)
        wait_for_loss(run, 1)
        client = connect(run)
        wait_until(lambda: client.ask("status")["best_eval_loss"] == best, 5, f"{best} in the status: {client.ask('status')}")
        assert "rank 0 of 2 lost at step" in (run.directory / "journal.lua").read_text()
        client.ask("call", action="ckpt.save", arguments={})
        client.ask("call", action="run.stop", arguments={"save": False})
        client.close()
        assert run.finish() == 0, run.output()
        assert run.result()["eval_loss"] == best, run.result()
        with Run(settings, ranks=1, folder=run.folder, options=["--resume", "auto"]) as again:
            client = again.wait_for_step(21)
            assert client.ask("status")["best_eval_loss"] == best, (best, client.ask("status"))
            client.close()
            stop(again)
            assert again.finish() == 0, again.output()


def test_a_save_that_a_loss_interrupts_keeps_its_tag():
    """Rank 0 dies before it has written anything of it: the next one makes it."""
    with Run([*QUICK, "train.steps=1000000"], ranks=3, env={"FOOTPLATE_FAULT": "save_die:rank=0"}) as run:
        client = run.wait_for_step(20)
        client.send("call", action="ckpt.save", arguments={"tag": "kept"})
        event = wait_for_loss(run, 1)
        client.close()
        assert event["ranks"] == [0], event
        saves = lambda: [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "ckpt"]
        wait_until(saves, 20, "the save to be made again")
        assert len(saves()) == 1 and saves()[0]["tag"] == "kept" and saves()[0]["step"] == event["step"], saves()
        folders = [path.parent.name for path in (run.directory / "checkpoints" / "main").glob("*/manifest.json")]
        assert len(folders) == 1 and folders[0].endswith("-kept"), folders
        stop(run)
        assert run.finish() == 0, run.output()


def test_on_loss_stop_ends_resumable():
    with Run([*QUICK, "train.steps=1000000", "comm.on_loss=stop"], ranks=3) as run:
        run.wait_for_step(20).close()
        kill_rank(run, 1)
        assert run.finish() == 75, run.output()
        assert "a rank was lost" in run.result()["reason"], run.result()
        nothing_left(run)


def test_ranks_die_at_random_moments():
    count = 100 if FULL else 6
    restarted, pauses = 0, []
    random_source = random.Random(20261121)
    for attempt in range(count):
        settings = ["model.step_ms=4", "run.threads=1", "eval.every=7", "eval.batches=4", "ckpt.every=11", "ckpt.keep=2",
                    "train.steps=1000000", "log.every=5"]
        with Run(settings, ranks=4, name=f"t{attempt}") as run:
            client = run.wait_for_step(10)
            order = client.send("set", changes={"eval.batches": 3})
            time.sleep(random_source.uniform(0, 0.15))
            kill_rank(run, random_source.choice([1, 2, 3]))
            client.answer(order)
            ended = lambda: run.process.poll() is not None or lost_events(run)
            wait_until(ended, 60, "recovery or an end")
            if run.process.poll() is not None:
                assert run.process.returncode == 75, run.output()
                restarted += 1
                continue
            event = lost_events(run)[-1]
            pauses.append(event["ms"])
            wait_until(lambda: client.ask("status")["step"] > event["step"] + 20, 30, "training to go on")
            client.close()
            stop(run)
            assert run.finish() == 0, run.output()
            applied = [run.applied(rank) for rank in range(4)]
            survivors = [one for one in applied if len(one) == max(len(a) for a in applied)]
            assert len(survivors) >= 3 and all(one == survivors[0] for one in survivors), applied
    print(f"  {count} kills: {restarted} restarts, pause median {statistics.median(pauses):.0f} ms, "
          f"longest {max(pauses):.0f} ms", flush=True)
    assert restarted <= 3


def test_rank_0_dies_at_random_moments():
    count = 20 if FULL else 3
    random_source = random.Random(7)
    for attempt in range(count):
        settings = ["model.step_ms=4", "run.threads=1", "eval.every=7", "eval.batches=4", "ckpt.every=11", "ckpt.keep=2",
                    "train.steps=1000000", "log.every=5"]
        with Run(settings, ranks=4, name=f"z{attempt}") as run:
            run.wait_for_step(10).close()
            time.sleep(random_source.uniform(0, 0.15))
            kill_rank(run, 0)
            wait_until(lambda: run.process.poll() is not None or lost_events(run), 60, "recovery or an end")
            assert run.process.poll() is None, run.output()
            event = lost_events(run)[-1]
            client = connect(run)
            wait_until(lambda: client.ask("status")["step"] > event["step"] + 20, 30, "training to go on")
            client.close()
            stop(run)
            assert run.finish() == 0, run.output()
            nothing_left(run)


if __name__ == "__main__":
    main([test_a_rank_is_killed_and_the_others_go_on, test_a_load_after_a_loss_is_a_load,
          test_a_rank_that_has_ended_is_no_loss_for_one_that_saves,
          test_rank_0_is_killed_and_another_leads,
          test_later_steps_are_those_of_a_smaller_world, test_a_run_that_lost_a_rank_comes_back_to_its_size,
          test_a_stopped_rank_is_named_and_waited_for,
          test_a_stopped_rank_is_killed_past_the_hard_limit,
          test_a_stopped_rank_0_is_killed_past_the_hard_limit, test_a_rank_is_dropped_by_hand,
          test_a_save_that_a_loss_interrupts_keeps_its_tag, test_the_best_evaluation_is_known_to_a_new_rank_0,
          test_a_loss_that_no_console_heard_of_is_in_the_journal,
          test_on_loss_stop_ends_resumable, test_ranks_die_at_random_moments,
          test_rank_0_dies_at_random_moments])
