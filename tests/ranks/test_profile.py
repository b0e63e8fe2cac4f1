"""profile.now: the same steps of all ranks as one trace, on a run that trains a real model."""

import json
import os
import pathlib
import resource
import signal

from harness import PAUSE, Run, main, not_finite_at, wait_for_pause, wait_until

SMALL = ["model.layers=1", "model.width=32", "model.heads=2", "model.context=32", "train.batch_size=8", "run.threads=1", "ckpt.every=0",
         "eval.every=0", "eval.at_end=false"]
# The next step but one may be far from the order, the run must not be over by then.
ENDLESS = "train.steps=1000000"


def profiles(run):
    return [event["data"] for event in run.lines("events.jsonl") if event["topic"] == "profile"]


def profile_of(run, count=1):
    wait_until(lambda: len(profiles(run)) >= count, 60, "the event profile")
    return profiles(run)[-1]


def rows_of(trace, rank):
    names = {event["tid"]: event["args"]["name"] for event in trace if event["name"] == "thread_name" and event["pid"] == rank}
    return {name: [event for event in trace if event["ph"] == "X" and event["pid"] == rank and event["tid"] == row] for row, name in names.items()}


def span(events):
    return min(event["ts"] for event in events), max(event["ts"] + event["dur"] for event in events)


def test_the_same_steps_of_all_ranks_in_one_trace():
    with Run([*SMALL, ENDLESS], ranks=2, config="kjv") as run:
        client = run.wait_for_step(3)
        begun = run.exec("local now = profile.now{ steps = 2 }; run.wait{ event = 'profile' }; return now:wait()", "--json")
        assert begun.returncode == 0, begun
        found = profile_of(run)
        assert found["steps"] == found["recorded"] == 2 and "reason" not in found, found
        assert f'"first":{found["first"]}' in begun.stdout.replace(" ", ""), (begun.stdout, found)
        path = pathlib.Path(found["path"])
        assert path == run.directory / "profiles" / f"step-{found['first']:08d}" / "trace.json", found
        assert [file.name for file in path.parent.iterdir()] == ["trace.json"], list(path.parent.iterdir())
        trace = json.loads(path.read_text())
        assert [event["args"]["name"].split()[:2] for event in trace if event["name"] == "process_name"] == [["rank", "0"], ["rank", "1"]]
        both = [rows_of(trace, rank) for rank in (0, 1)]
        for rows in both:
            assert list(rows)[:3] == ["phases", "collectives", "training"], list(rows)
            assert [event["name"] for event in rows["phases"]].count("optimizer") == 2, rows["phases"]
            operations = [event["name"] for event in rows["training"]]
            assert operations.count("aten::embedding") == 2, operations.count("aten::embedding")
            assert any("Backward" in name for name in operations), set(operations)
            first, last = span(rows["phases"])
            for row in ("collectives", "training"):  # one clock
                begin, end = span(rows[row])
                assert first - 100 <= begin and end <= last + 100, (row, begin, end, first, last)
        names = [[event["name"] for event in rows["collectives"]] for rows in both]
        assert names[0] == names[1] and any(name.startswith("gradients: all_reduce of ") for name in names[0]), names
        # A collective ends on no rank before it has begun on all.
        for mine, other in zip(both[0]["collectives"], both[1]["collectives"]):
            assert mine["ts"] + mine["dur"] >= other["ts"] - 100 and other["ts"] + other["dur"] >= mine["ts"] - 100, (mine, other)
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()
        assert "profile of steps" in run.output(), run.output()


def gradients_by_step(rows):
    """How many reductions of gradients each step has: they are over before its optimizer begins."""
    begins = [event["ts"] for event in rows["phases"] if event["name"] == "optimizer"]
    reductions = [event["ts"] for event in rows["collectives"] if event["name"].startswith("gradients: ")]
    return [sum(since < at <= until for at in reductions) for since, until in zip([-1, *begins], begins)]


def profiled(run, steps, count=1):
    assert run.exec(f"profile.now{{ steps = {steps} }}").returncode == 0
    found = profile_of(run, count)
    return found, [rows_of(json.loads(pathlib.Path(found["path"]).read_text()), rank) for rank in (0, 1)]


def test_collectives_of_all_steps():
    with Run([*SMALL, ENDLESS, "comm.bucket_mb=0.0001", "model.layers=4"], ranks=2, config="kjv") as run:
        client = run.wait_for_step(3)
        found, both = profiled(run, 25)
        assert found["recorded"] == 25 and "lost_collectives" not in found, found
        for rows in both:
            counts = gradients_by_step(rows)
            assert len(counts) == 25 and sum(counts) > 1024 and len(set(counts)) == 1, counts
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()


def test_a_step_of_more_collectives_than_are_kept():
    with Run([*SMALL, ENDLESS, "comm.bucket_mb=0.00001", "model.layers=100", "model.width=8", "model.heads=1"], ranks=2, config="kjv") as run:
        client = run.wait_for_step(3)
        found, both = profiled(run, 1)
        assert found["recorded"] == 1 and found["lost_collectives"] > 0, found
        assert [len(rows["collectives"]) for rows in both] == [1024, 1024], [len(rows["collectives"]) for rows in both]
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()
        assert f"{found['lost_collectives']} collectives are missing: a step has too many" in run.output(), run.output()


def test_parameters_are_those_without():
    ends = []
    for order in ("", "profile.now{ steps = 3 }; "):
        with Run([*SMALL, "train.steps=30", PAUSE], ranks=2, config="kjv", env={"FOOTPLATE_FAULT": not_finite_at(5)}) as run:
            wait_for_pause(run.wait_for_step(5), 5)
            assert run.exec(order + "run.resume()").returncode == 0
            assert run.finish() == 0, run.output()
            assert [found["recorded"] for found in profiles(run)] == [3] * bool(order), profiles(run)
            ends.append(run.result()["state_hash"])
    assert ends[0] == ends[1], ends


def test_one_at_a_time():
    with Run([*SMALL, ENDLESS], ranks=2, config="kjv") as run:
        client = run.wait_for_step(3)
        assert run.exec("run.pause()").returncode == 0
        assert run.exec("profile.now{ steps = 100 }").returncode == 0
        second = run.exec("return profile.now{ steps = 1 }:wait()")
        assert second.returncode == 1 and "profile.now failed: the profile of steps " in second.stderr and "is under way" in second.stderr, second
        many = run.exec("profile.now{ steps = 101 }")
        assert many.returncode != 0 and "1 to 100" in many.stderr, many
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()
        assert [(found["steps"], found["reason"]) for found in profiles(run)] == [(100, "the run ended before")], profiles(run)


def test_what_a_rank_cant_write_is_told_and_training_goes_on():
    with Run([*SMALL, ENDLESS], ranks=2, config="kjv") as run:
        client = run.wait_for_step(3)
        (run.directory / "profiles").write_text("no folder")
        assert run.exec("profile.now{ steps = 1 }").returncode == 0
        found = profile_of(run)
        assert "rank 0: can't write " in found["reason"] and "rank 1: can't write " in found["reason"] and "profiles/step-" in found["reason"], found
        assert "path" not in found and found["recorded"] == 0, found
        (run.directory / "profiles").unlink()
        assert run.exec("profile.now{ steps = 1 }").returncode == 0
        assert profile_of(run, 2)["recorded"] == 1
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()


def test_a_part_that_fails_takes_the_others_with_it():
    with Run([*SMALL, ENDLESS], ranks=2, config="kjv") as run:
        client = run.wait_for_step(3)
        assert run.exec("profile.now{ steps = 1 }").returncode == 0
        kept = pathlib.Path(profile_of(run)["path"]).parent
        rank = run.pids()[1]
        before = resource.prlimit(rank, resource.RLIMIT_NOFILE)
        resource.prlimit(rank, resource.RLIMIT_NOFILE, (3, before[1]))  # it can't open a file
        assert run.exec("profile.now{ steps = 1 }").returncode == 0
        found = profile_of(run, 2)
        resource.prlimit(rank, resource.RLIMIT_NOFILE, before)
        assert found["reason"].startswith("rank 1: can't write "), found
        # The event is of rank 0: rank 1 is through with it by the next step.
        at = client.ask("status")["step"]
        wait_until(lambda: client.ask("status")["step"] > at + 1, 60, "the next steps")
        assert list(kept.parent.iterdir()) == [kept], list(kept.parent.iterdir())
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()


def test_the_same_step_of_two_branches():
    with Run([*SMALL, ENDLESS, "ckpt.every=4", "ckpt.keep=0", "ckpt.async=false", PAUSE], ranks=2, config="kjv", env={"FOOTPLATE_FAULT": not_finite_at(5)}) as run:
        paths = []
        for branch in (1, 2):
            wait_until(lambda: len(run.lines("starts.jsonl")) == branch, 60, "the branch")
            wait_for_pause(run.wait_for_step(5), 5)
            assert run.exec("profile.now{ steps = 1 }; run.resume()").returncode == 0
            found = profile_of(run, branch)
            paths.append(pathlib.Path(found["path"]))
            first = paths[0].read_bytes() if branch == 1 else first
            if branch == 1:
                loaded = run.exec("ckpt.load{ ref = 4 }")
                assert loaded.returncode == 0, loaded
        assert [path.parent.name for path in paths] == [f"step-{found['first']:08d}", f"step-{found['first']:08d}-2"], paths
        assert paths[0].read_bytes() == first != paths[1].read_bytes()
        run.wait_for_step(6).ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()


def test_it_is_given_up_where_a_rank_dies():
    with Run([*SMALL, ENDLESS], ranks=3, config="kjv") as run:
        client = run.wait_for_step(3)
        assert run.exec("profile.now{ steps = 100 }").returncode == 0
        os.kill(run.pids()[1], signal.SIGKILL)
        found = profile_of(run)
        assert found["reason"] == "the ranks were made anew", found
        at = client.ask("status")["step"]
        wait_until(lambda: client.ask("status")["step"] > at + 5, 60, "training to go on")
        assert run.exec("profile.now{ steps = 1 }").returncode == 0
        trace = json.loads(pathlib.Path(profile_of(run, 2)["path"]).read_text())
        assert {event["pid"] for event in trace} == {0, 1}
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0, run.output()


if __name__ == "__main__":
    main([test_the_same_steps_of_all_ranks_in_one_trace, test_collectives_of_all_steps,
          test_a_step_of_more_collectives_than_are_kept, test_parameters_are_those_without, test_one_at_a_time,
          test_what_a_rank_cant_write_is_told_and_training_goes_on, test_a_part_that_fails_takes_the_others_with_it,
          test_the_same_step_of_two_branches, test_it_is_given_up_where_a_rank_dies])
