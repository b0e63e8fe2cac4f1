#!/usr/bin/env python3
"""Job scripts and rules in real runs of two ranks: what they order is applied, each once, whatever is killed meanwhile."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from harness import BIN, FULL, ROOT, Run, main, wait_until

JOBS = ROOT / "scripts" / "jobs"
QUICK = ["model.step_ms=5", "log.every=10", "eval.batches=2"]


@contextlib.contextmanager
def script(text, name="job.lua"):
    # Not in $TMPDIR: Lua tells where an error is by the beginning of a path alone, if that is long.
    with tempfile.TemporaryDirectory(prefix="fp-job-", dir="/tmp") as folder:
        path = pathlib.Path(folder) / name
        path.write_text(text)
        yield path


def with_script(path, *assignments, arguments=(), options=(), **more):
    return Run([*QUICK, *assignments, "--", *arguments], options=["--script", str(path), *options], **more)


def children(pid):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if entry.name.isdigit() and int(stat[1]) == pid and stat[0] != "Z":
            found.append(int(entry.name))
    return found


def orders_of(run, prefix):
    """Applied orders of rules or jobs, as events.jsonl has them: [(session, order report)]."""
    found = []
    for line in run.lines("events.jsonl"):
        data = line.get("data", line)
        order = data.get("order") if isinstance(data, dict) else None
        if isinstance(order, dict) and data.get("state") == "applied" and order.get("session", "").startswith(prefix):
            found.append((order["session"], data))
    return found


def check_once(run):
    """Every rank applied the same orders, each once, at the same steps."""
    applied = [run.applied(rank) for rank in range(len(run.pids()))]
    assert all(found == applied[0] for found in applied), "ranks differ"
    return applied[0]


def test_a_mistake_starts_nothing():
    for text, says in (("log.evry = 5", "did you mean log.every?"), ("x = = 1", "job.lua:1:"),
                       ("every(10, function() end)\nlog.every = -1", "job.lua:2:")):
        with script(text) as path, with_script(path) as run:
            assert run.finish(30) == 3, run.output()
            assert says in run.output(), run.output()
            assert not run.directory.exists(), "nothing may be left behind"


def test_check_says_what_a_script_would_do():
    with script("log.every = 7\nevery(100, function() ckpt.save() end)\nrun.wait{ step = 10 }\nlog.evry = 1") as path:
        done = subprocess.run([str(BIN / "footplate"), "check", str(ROOT / "configs" / "synthetic.lua"), "--script", str(path)],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for part in ("orders log.every -> 7", "registers every(100, …), line 2", "waits: run.wait"):
            assert part in done.stdout, done.stdout
    with script('io.write("x\\n") io.output():write("y") print(#io.popen("echo z"):read("a"))\nrun.wait{ step = 10 }') as path:
        done = subprocess.run([str(BIN / "footplate"), "check", str(ROOT / "configs" / "synthetic.lua"), "--script", str(path)],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "waits: run.wait" in done.stdout, (done.stdout, done.stderr)
    with script('every(tonumber(arg[1]), function() end) every(#arg[2] + 3, function() end) every(tonumber(arg[3]), function() end)') as path:
        done = subprocess.run([str(BIN / "footplate"), "check", str(ROOT / "configs" / "synthetic.lua"), "--script", str(path),
                               "--script-argument", "70", "--", "", "90"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for part in ("every(70, …)", "every(3, …)", "every(90, …)"):
            assert part in done.stdout, done.stdout
    for example in sorted(JOBS.glob("*.lua")):
        done = subprocess.run([str(BIN / "footplate"), "check", str(ROOT / "configs" / "synthetic.lua"), "--script",
                               str(example)], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and ("registers on(" in done.stdout or "waits: run.wait" in done.stdout), (example, done.stdout, done.stderr)


def test_a_job_orders_waits_prints_and_ends():
    text = """
print("hello", arg[1], run.resumed)
assert(#ckpt.list() == 0)
log.every = 20
run.wait{ step = 100 }
optim.lr_scale = 0.5
local e = run.wait{ event = "eval" }
store.seen = e.loss
every(50, function(e) store.at = e.step end)
run.stop_when(function(m) return m.step >= 300 end)
"""
    with script(text) as path, with_script(path, "train.steps=100000", "eval.every=50", arguments=["x y"]) as run:
        assert run.finish(60) == 0, run.output()
        result = run.result()
        assert result["reason"] == "asked" and 300 <= result["step"] < 600, result
        assert "[job] hello\tx y\tfalse" in run.output() or "hello" in run.output(), run.output()
        assert "hello\tx y\tfalse" in (run.directory / "log" / "job-job.log").read_text()
        sessions = [session for session, _ in orders_of(run, "job:")]
        assert sessions == ["job:job"] * 3, sessions
        check_once(run)


def test_an_error_in_a_handler_stops_a_batch_run():
    with script("every(50, function() error('boom') end)") as path, with_script(path, "train.steps=100000") as run:
        assert run.finish(60) == 3, run.output()
        result = run.result()
        assert result["code"] == 3 and "rule 1, every(50, …), failed at step" in result["reason"], result
        assert "job.lua:1: boom" in result["reason"], result
        assert result["checkpoint"], result
    with script("run.wait{ step = 50 }\nnothing()") as path, with_script(path, "train.steps=100000",
                                                                         options=["--restarts", "2"]) as run:
        assert run.finish(60) == 3, run.output()
        assert "job.lua:2: unknown name 'nothing'" in run.result()["reason"], run.result()
        assert len(run.lines("starts.jsonl")) == 1, "a script's error is no failure of the run"


def kill_console(run, client):
    pid = run.record()["console_pid"]
    client.close()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: run.record().get("console_pid") not in (0, None, pid), 10, "another console")
    return wait_until(run.try_connect, 10, "its socket")


def test_rules_survive_kills_and_order_each_once():
    """One at() every few steps, while the rules' processes and the console are killed: all are applied, none twice."""
    count = 60 if FULL else 24
    kills = 50 if FULL else 8
    with Run([*QUICK, "train.steps=1000000"]) as run:
        client = run.wait_for_step(1)
        first = client.ask("status")["step"] + 600
        gap = 200 if FULL else 40  # so that a console has a second between two kills
        ats = " ".join(f"at({first + gap * i}, function() log.every = {100 + i} end)" for i in range(count))
        client.ask("eval", code=ats + " every(100, function() optim.lr_scale = 0.5 + run.step / 1e9 end)")
        for kill in range(kills):
            target = first - 600 + kill * (600 + gap * count) // kills
            wait_until(lambda: client.ask("status")["step"] >= target, 60, f"step {target}")
            if kill % 2 == 0:
                client = kill_console(run, client)
            else:
                for pid in children(run.record()["console_pid"]):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        last = first + gap * count
        wait_until(lambda: client.ask("status")["step"] >= last + 200, 120, f"step {last + 200}")

        def rules():
            return client.ask("eval", code="return rules()")["value"]
        wait_until(lambda: all(rule["state"] == "done" for rule in rules()[:-1]), 30, "all at() rules")
        assert rules()[-1]["state"] == "on" and rules()[-1]["runs"] > 5, rules()[-1]
        client.ask("call", action="run.stop", arguments={"save": False})
        assert run.finish() == 0
        check_once(run)
        found = [report for _, report in orders_of(run, "rule ") if report["order"]["changes"][0]["name"] == "log.every"]
        values = [report["order"]["changes"][0]["value"] for report in found]
        assert sorted(values) == [100 + i for i in range(count)], f"lost or doubled: {sorted(values)}"
        late = [r for r in found if r["applied"]["step"] != first + gap * (r["order"]["changes"][0]["value"] - 100)]
        print(f"      {count} at() rules, {kills} kills: each once, {len(late)} later than their step", flush=True)


def test_rules_jobs_and_store_go_on_after_a_resume():
    text = """
store.starts = (store.starts or 0) + 1
print("start", store.starts, run.resumed)
every(50, function() store.beat = run.step end)
"""
    with script(text) as path, with_script(path, "train.steps=100000", name="r") as run:
        client = run.wait_for_step(1)
        client.ask("eval", code="every(30, function() store.rule = (store.rule or 0) + 1 end)")
        wait_until(lambda: (client.ask("eval", code="return store.rule")["value"] or 0) >= 2, 30, "the rule")
        run.process.send_signal(signal.SIGTERM)
        assert run.finish(60) == 75, run.output()
        saved = run.result()["step"]
        with Run([], name="r", folder=run.folder, options=["--resume", "auto"]) as again:
            client = again.wait_for_step(saved + 1)
            wait_until(lambda: (client.ask("eval", code="return store.rule")["value"] or 0) >= 4, 30, "the rule again")
            assert client.ask("eval", code="return store.starts")["value"] == 2
            wait_until(lambda: (client.ask("eval", code="return store.beat")["value"] or 0) > saved, 30, "the job's rule")
            assert "start\t2\ttrue" in (again.directory / "log" / "job-job.log").read_text()
            client.ask("call", action="run.stop")
            assert again.finish(60) == 0


def test_a_sync_rule_acts_before_the_next_steps():
    with Run([*QUICK, "train.steps=1000000", "log.every=50"]) as run:
        client = run.wait_for_step(1)
        client.ask("eval", code="on('log', { sync = true, budget_ms = 300 }, function(m) store.step = m.step end)")
        wait_until(lambda: len(orders_of(run, "rule ")) >= 4, 60, "four orders of the rule")
        run.end_after(10)
        assert run.finish(60) == 0, run.output()
        steps = [(json.loads(report["order"]["calls"][0]["arguments"]["value"]), report["applied"]["step"])
                 for _, report in orders_of(run, "rule ")]
        assert len(steps) >= 4, steps
        assert all(logged <= applied <= logged + 1 for logged, applied in steps), steps


def test_a_late_sync_rule_is_let_go():
    let_go = "took longer than its budget_ms; training went on"
    with Run([*QUICK, "train.steps=1000000", "log.every=50"]) as run:
        client = run.wait_for_step(1)
        client.ask("eval", code="on('log', { sync = true, budget_ms = 20, on_error = 'warn' }, function() while true do end end)")
        wait_until(lambda: let_go in run.output(), 60, "the rule to be let go")
        run.end_after(110)
        assert run.finish(60) == 0, run.output()
        assert run.output().count(let_go) == 1, run.output()


def test_a_runaway_rule_slows_nobody():
    with Run([*QUICK, "train.steps=600"]) as run:
        client = run.wait_for_step(1)
        client.ask("eval", code="every(20, { on_error = 'warn' }, function() while true do end end)")
        assert client.ask("eval", code="return 6 * 7")["value"] == 42
        assert run.finish(60) == 0, run.output()


def test_examples():
    for name, arguments, assignments, says in (
            ("lr_step_down", ["2", "0.5", "1e9"], ["eval.every=30", "train.steps=300"], "lr_scale 0.5"),
            ("early_stop", ["3", "1e9"], ["eval.every=30", "train.steps=100000"], "no gain for 3 evaluations"),
            ("spike_guard", ["0.01", "3"], ["train.steps=200"], "lr_scale 0.5"),
            ("rare_eval", ["1e-9", "100"], ["eval.every=30", "train.steps=200"], "eval.every 60"),
            ("batch_growth", ["1", "64", "1", "1e9"], ["eval.every=60", "train.steps=300", "train.batch_size=16", "log.detail_every=5", "log.every=5"],
             "batch_size 64, micro_batch 8")):
        with with_script(JOBS / f"{name}.lua", *assignments, arguments=arguments) as run:
            assert run.finish(90) == 0, run.output()
            said = run.output() + json.dumps(run.result())
            assert says in said, (name, said)


def test_a_guard_sees_on_after_a_step_that_is_not_finite():
    """Its loss is in no average. FACTOR 0: the guard acts at the first loss above 0 with LINES finite ones before it."""
    with with_script(JOBS / "spike_guard.lua", "train.steps=250", arguments=["0", "10"],
                     env={"FOOTPLATE_FAULT": "nan_loss:rank=1:step=99"}) as run:
        assert run.finish(90) == 0, run.output()
        logged = {line["step"]: line["train/loss"] for line in run.lines("metrics.jsonl") if "train/loss" in line}
        assert logged.pop(100) == "@nan" and len(logged) == 24, logged
        first = next(step for step in list(logged)[10:] if logged[step] > 0)
        assert first < 200, logged
        assert re.findall(r"step (\d+): loss", run.output())[0] == str(first), (first, run.output())


def test_examples_compare_losses_of_the_same_samples():
    """What eval.now{ batches = … } finds, or some of the ranks alone, is no gain and no wait of theirs."""
    jobs = {"early_stop": "stop", "lr_step_down": "lr", "batch_growth": "batch"}
    more = [option for name in list(jobs)[1:] for option in ("--script", str(JOBS / f"{name}.lua"))]
    with with_script(JOBS / "early_stop.lua", "train.steps=1000000", "eval.every=0", arguments=["3", "1e9", "1e9", "1e9"],
                     options=more) as run:
        client = run.wait_for_step(1)
        for asked in ("", "{ batches = 1 }", "{ batches = 1 }", "{ batches = 1 }", ""):
            on = client.ask("eval", code=f"return eval.now({asked}):wait().on").get("value")
            assert on == ("other" if asked else None), (asked, on)
        for name in jobs.values():
            wait_until(lambda: client.ask("eval", code=f"return store.{name}_waited")["value"] == 1, 30, f"the second loss of {name}")
        assert run.end(client) == 0, run.output()
    with with_script(JOBS / "early_stop.lua", "train.steps=100", "eval.every=20", "eval.at_end=false", arguments=["1", "1e9"],
                     env={"FOOTPLATE_FAULT": "eval_throw:rank=1"}) as run:
        assert run.finish(90) == 0, run.output()
        partial = [line for line in run.lines("metrics.jsonl") if line.get("eval/partial") == 1]
        assert len(partial) >= 4 and run.result()["step"] == 100, (partial, run.output())


def test_a_sweep_of_learning_rates_takes_five_lines():
    """Each branch trains as long from the same checkpoint; the best one goes on; the script comes to its end once."""
    sweep = JOBS / "lr_sweep.lua"
    code = [line for line in sweep.read_text().splitlines() if line and not line.startswith("--")]
    assert len(code) <= 5, code
    # A branch takes longer than its script, which begins again with each of them.
    with with_script(sweep, "train.steps=400", "log.every=5", "model.step_ms=15", options=["--restarts", "0"]) as run:
        assert run.finish(120) == 0, run.output()
        log = (run.directory / "log" / "job-lr_sweep.log").read_text()
        table = log.splitlines()[-4:]
        assert table[0].split() == ["branch", "set", "step", "eval/loss"] and log.count(table[0]) == 1, log
        assert [line.endswith("kept") for line in table].count(True) == 1 and "@branches" not in log, log
        starts = run.lines("starts.jsonl")
        assert len(starts) == 5 and len({start["step"] for start in starts[1:4]}) == 1, starts
        fork = starts[1]["step"]
        assert fork >= 100 and starts[4]["step"] == fork + 60, starts
        rates = {start["branch"]: None for start in starts[1:4]}
        assert len(rates) == 3, starts
        for line in run.lines("metrics.jsonl"):
            if line["branch"] in rates and "train/lr" in line:
                rates[line["branch"]] = line["train/lr"]
        assert list(rates.values()) == [3e-4, 1e-3, 3e-3], rates
        evaluated = [line["step"] for line in run.lines("metrics.jsonl") if line["branch"] in rates and "eval/loss" in line]
        assert evaluated == [fork + 60] * 3, evaluated
        assert "branches from step" in (run.directory / "journal.lua").read_text()


def test_what_is_kept_in_store_survives_a_load():
    """A job that goes back goes on where it was."""
    text = """
local part = store.part or 1
print("part", part, store.other, run.branch)
if part == 1 then
  run.wait{ step = 30 }
  ckpt.save("fork"):wait()
  store.other = 5
  store.set{ part = 2, seen = { 1, 2 }, keep = true }
  return ckpt.load("fork")
end
run.wait{ step = 100 }
print("seen", #store.seen, store["@keep"])
run.stop()
"""
    with script(text) as path, with_script(path, "train.steps=100000") as run:
        assert run.finish(90) == 0, run.output()
        log = (run.directory / "log" / "job-job.log").read_text()
        assert "part\t1\tnil\tmain" in log and "part\t2\tnil\tfrom-" in log and "seen\t2\tnil" in log, log
        assert len(run.lines("starts.jsonl")) == 2


def test_a_long_warm_up_is_said():
    checked = subprocess.run([str(BIN / "footplate"), "check", str(ROOT / "configs" / "synthetic.lua"), "train.steps=50", "sched.warmup_steps=100"], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=60, check=False)
    assert "warning: sched.warmup_steps (100) is longer than the run" in checked.stderr and checked.returncode == 0, checked
    with Run([*QUICK, "train.steps=50", "sched.warmup_steps=100"]) as run:
        assert run.finish(60) == 0, run.output()
        assert run.output().count("sched.warmup_steps (100) is longer than the run (train.steps 50)") == 1, run.output()


if __name__ == "__main__":
    main([test_a_mistake_starts_nothing, test_check_says_what_a_script_would_do, test_a_job_orders_waits_prints_and_ends,
          test_an_error_in_a_handler_stops_a_batch_run, test_rules_survive_kills_and_order_each_once,
          test_rules_jobs_and_store_go_on_after_a_resume, test_a_sync_rule_acts_before_the_next_steps,
          test_a_late_sync_rule_is_let_go, test_a_runaway_rule_slows_nobody, test_examples,
          test_a_guard_sees_on_after_a_step_that_is_not_finite, test_examples_compare_losses_of_the_same_samples,
          test_a_sweep_of_learning_rates_takes_five_lines, test_what_is_kept_in_store_survives_a_load, test_a_long_warm_up_is_said])
