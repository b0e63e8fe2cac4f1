#!/usr/bin/env python3
"""Every ending of a run of two ranks: the exit code, a true result.json, the record ended, and nothing left behind.

One row of ENDINGS is one ending. Each runs once, and five times with FOOTPLATE_FULL=1.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import typing

from harness import FULL, Run, main, wait_until
from leftovers import nothing_left

LONG = ("train.steps=1000000", "model.step_ms=5")
STEP_S = 0.005


@dataclasses.dataclass
class Ending:
    name: str
    code: int
    reason: str  # a regular expression
    assignments: tuple = LONG
    act: typing.Callable = lambda run, client: None
    step: int = 30  # where `act` comes in; 0: at once
    options: tuple = ()
    env: dict = dataclasses.field(default_factory=dict)
    checkpoint: bool | None = None  # whether one has to be named; None: it doesn't matter
    ends_at: int | None = None  # the step, where it is known
    restarts: int = 0
    wrapper: tuple = ()


def asks(**arguments):
    def act(_run, client):
        assert client.ask("call", action="run.stop", arguments=arguments)["state"] == "applied"
    return act


def pauses(_run, client):
    assert client.ask("call", action="run.pause")["state"] == "applied"


def signals(*numbers):
    def act(run, _client):
        for number in numbers:
            run.process.send_signal(number)
            time.sleep(0.1)  # two equal signals that are both pending count as one
    return act


def stop_now(run, _client):
    subprocess.run([str(run.program), "stop", "--now", str(run.directory)], env=run.environment, stdin=subprocess.DEVNULL, timeout=60, check=True,
                   capture_output=True)


def kill_rank(rank):
    return lambda run, _client: os.kill(run.pids()[rank], signal.SIGKILL)


def kill_all_ranks(run, _client):
    for pid in run.pids():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_rank_once(rank):
    def act(run, _client):
        wait_until(lambda: list(run.directory.glob("checkpoints/main/step-*/manifest.json")), 60, "a checkpoint")
        os.kill(run.pids()[rank], signal.SIGKILL)
    return act


def mpirun_of(run):
    session = pathlib.Path(f"/proc/{run.pids()[0]}/stat").read_text().rsplit(")", 1)[1].split()[3]
    assert pathlib.Path(f"/proc/{session}/comm").read_text().strip() in ("mpirun", "prterun"), session
    return int(session)


def kill_mpirun(run, _client):
    os.kill(mpirun_of(run), signal.SIGKILL)


def kill_all_ranks_of_a_hung_mpirun(run, client):
    os.kill(mpirun_of(run), signal.SIGSTOP)
    kill_all_ranks(run, client)


def terminate_everything(run, _client):
    """As a batch system or systemd does to all processes of a job: the supervisor, mpirun, the ranks, the console."""
    session = os.getsid(run.pids()[0])
    pids = [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]
    for pid in (run.process.pid, *(pid for pid in pids if session_of(pid) == session)):
        with contextlib.suppress(ProcessLookupError):  # what was told first may have taken others with it
            os.kill(pid, signal.SIGTERM)


def session_of(pid):
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid)
    return None


def kill_supervisor(run, _client):
    run.process.kill()
    wait_until(run.result, 60, "the result")
    nothing_left(run, 60)


def kill_console(run, client):
    """Another is started, and the run goes on."""
    first = run.record()["console_pid"]
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: run.record()["console_pid"] != first, 10, "another console")
    again = wait_until(run.try_connect, 10, "its socket")
    step = again.ask("status")["step"]
    wait_until(lambda: again.ask("status")["step"] > step, 10, "training to go on")
    assert again.ask("set", changes={"log.every": 7})["state"] == "applied"
    assert again.ask("call", action="run.stop")["state"] == "applied"


# As batch systems start jobs: no stdin, HOME or TERM, and a stdout that goes away half-way.
UNATTENDED = ("bash", "-o", "pipefail", "-c", 'env -u HOME -u TERM "$@" <&- | head -n 3', "bash")

STOP_ON_LOSS = (*LONG, "comm.on_loss=stop")

ENDINGS = [
    Ending("done", 0, "done", assignments=("train.steps=50", "ckpt.every=20"), step=0, checkpoint=True, ends_at=50),
    Ending("asked", 0, "asked", act=asks(), checkpoint=True),
    Ending("asked, without saving", 0, "asked", act=asks(save=False), checkpoint=False),
    Ending("asked, resumable", 75, "asked", act=asks(resumable=True), checkpoint=True),
    *(Ending(f"SIG{name}", 75, "signal", act=signals(getattr(signal, f"SIG{name}")), checkpoint=True)
      for name in ("TERM", "INT", "HUP", "USR1", "USR2")),
    Ending("SIGTERM to all processes", 75, "signal", act=terminate_everything, checkpoint=True),
    Ending("stop --now", 75, "signal", act=stop_now, checkpoint=False),
    # The first can't succeed: a rank doesn't come to the end of its step. mpirun wakes one that is stopped.
    Ending("a second signal", 75, "signal", act=signals(signal.SIGINT, signal.SIGINT), checkpoint=False,
           env={"FOOTPLATE_FAULT": "reduce_late:rank=1:step=30:ms=600000"}),
    Ending("time limit", 75, "time limit", assignments=(*LONG, "run.time_limit=8"), checkpoint=True),
    Ending("pause limit", 75, "pause limit", assignments=(*LONG, "run.pause_limit=2"), act=pauses, checkpoint=True),
    Ending("failed", 1, "step 40 failed: rank 1: injected", env={"FOOTPLATE_FAULT": "step_throw:rank=1:step=40"}, step=0, ends_at=40,
           checkpoint=True),
    Ending("console killed", 0, "asked", act=kill_console, checkpoint=True),
    Ending("supervisor killed", 75, "signal", act=kill_supervisor, checkpoint=True),
    Ending("mpirun killed", 75, "^mpirun was ended by SIGKILL$", act=kill_mpirun, checkpoint=False),
    Ending("rank 0 killed", 75, "a rank was lost", assignments=STOP_ON_LOSS, act=kill_rank(0), checkpoint=False),
    Ending("rank 1 killed", 75, "a rank was lost", assignments=STOP_ON_LOSS, act=kill_rank(1), checkpoint=False),
    Ending("all ranks killed", 75, "SIGKILL|lost", act=kill_all_ranks, checkpoint=False),
    Ending("all ranks killed, mpirun hangs", 75, "^all ranks were lost, and mpirun didn't end$", act=kill_all_ranks_of_a_hung_mpirun,
           checkpoint=False),
    Ending("rank 1 killed, the other goes on", 0, "done", assignments=("train.steps=400", "model.step_ms=5"), act=kill_rank(1), ends_at=400),
    Ending("rank killed, and again from its checkpoint", 0, "done",
           assignments=("train.steps=400", "model.step_ms=5", "ckpt.every=20", "comm.on_loss=stop"),
           act=kill_rank_once(1), options=("--restarts", "1"), checkpoint=True, ends_at=400, restarts=1),
    Ending("no stdin, HOME or TERM, and stdout closed half-way", 0, "done", assignments=("train.steps=300", "model.step_ms=2", "log.every=5"),
           step=0, ends_at=300, wrapper=UNATTENDED),
]


def check_step(row, run, seen, acted):
    """True to the step where it is known; else not before the last one seen, nor later than time allowed."""
    step = run.result()["step"]
    if row.ends_at is not None:
        assert step == row.ends_at, run.result()
        return
    latest = seen + (time.monotonic() - acted) / STEP_S + 10
    assert seen <= step <= latest, f"{run.result()}: seen at {seen}, at most {latest}"


def check_record(row, run):
    result, record = run.result(), run.record()
    assert result["code"] == row.code and re.search(row.reason, result["reason"]), result
    assert result["restarts"] == row.restarts, result
    assert record["state"] == "ended" and record["step"] == result["step"], (record, result)
    if row.checkpoint is not None:
        assert bool(result["checkpoint"]) == row.checkpoint, result
    if result["checkpoint"]:
        assert (pathlib.Path(result["checkpoint"]) / "manifest.json").exists(), result
    ended = subprocess.run([str(run.program), "status", str(run.directory)], capture_output=True, text=True, env=run.environment,
                           stdin=subprocess.DEVNULL, timeout=30, check=False)
    assert ended.returncode == 0 and result["reason"] in ended.stdout, ended


def check_ending(row):
    with Run(row.assignments, env=row.env, options=row.options, wrapper=row.wrapper) as run:
        client, seen = None, 0
        if row.step > 0:
            client = run.wait_for_step(row.step)
            seen = client.ask("status")["step"]
        acted = time.monotonic()
        row.act(run, client)
        code = run.finish(90)
        assert code == (-signal.SIGKILL if row.act is kill_supervisor else row.code), f"exit code {code}\n{run.output()}"
        check_record(row, run)
        check_step(row, run, seen, acted)
        nothing_left(run)


def test_endings():
    wanted = os.environ.get("FOOTPLATE_ENDING", "")
    failed = []
    for row in ENDINGS:
        if wanted not in row.name:
            continue
        for _ in range(5 if FULL else 1):
            started = time.monotonic()
            try:
                check_ending(row)
                print(f"      {row.name}: code {row.code} ({time.monotonic() - started:.1f} s)", flush=True)
            except Exception as error:  # the other rows still tell something
                failed.append(row.name)
                print(f"FAIL  {row.name}: {type(error).__name__}: {error}", flush=True)
    assert not failed, failed


def small_disk():
    """A mounted file system of 8 MiB, or None where mounting isn't allowed."""
    folder = tempfile.mkdtemp(prefix="fp-disk-")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], capture_output=True, check=False)
    if mounted.returncode == 0:
        return folder
    os.rmdir(folder)
    return None


def test_full_disk():
    """What can't be recorded is lost and counted; training goes on to its end, the code and the result are true."""
    for _ in range(5 if FULL else 1):
        folder = small_disk()
        if folder is None:
            print("      skipped: this user may not mount a small file system", flush=True)
            return
        try:
            with Run(["train.steps=3000", "model.step_ms=1", "log.every=1"], folder=folder) as run:
                filler = pathlib.Path(folder, "filler")
                client = run.wait_for_step(200)
                with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
                    while file.write(b"\0" * 4096):
                        pass
                assert client.ask("set", changes={"optim.lr_scale": 0.5})["state"] == "applied"
                assert run.finish(90) == 0, run.output()
                result, record = run.result(), run.record()
                assert result["code"] == 0 and result["step"] == 3000 and result["reason"] == "done", result
                assert record["state"] == "ended" and record["step"] == 3000, record
                nothing_left(run)
        finally:
            subprocess.run(["umount", "-l", folder], check=False)
            shutil.rmtree(folder, ignore_errors=True)


def test_surroundings_change_nothing():
    results = []
    for wrapper in ((), UNATTENDED):
        with Run(["model.step_ms=2", "train.steps=1500", "eval.every=100", "ckpt.every=200", "log.every=5"], wrapper=wrapper) as run:
            assert run.finish(120) == 0, run.output()
            results.append({name: run.result()[name] for name in ("code", "reason", "step", "state_hash", "eval_loss")})
    assert results[0] == results[1], results


def test_a_chunk_hears_of_the_end_it_ordered():
    for _ in range(30 if FULL else 5):
        with Run([*LONG]) as run:
            run.wait_for_step(3)
            done = run.exec("run.stop() return 7")
            assert (done.returncode, done.stdout.strip().splitlines()[-1:]) == (0, ["7"]), done
            assert run.finish() == 0, run.output()


def test_a_supervisor_killed_between_two_starts():
    """What the first of them has trained stays, though the run was ready for the next one."""
    with Run(["train.steps=10", "ckpt.every=5"], ranks=1) as first:
        assert first.finish(60) == 0, first.output()
        again = ["run", "--name", "t", "--resume", "auto", "--batch", "--restarts", "5", "train.steps=100000", "model.step_ms=20"]
        with Run(folder=first.folder, command=again) as run:
            run.wait_for_step(15)
            os.kill(run.record()["ranks"][0]["pid"], signal.SIGKILL)
            wait_until(lambda: (run.directory / "result-2.json").exists() and run.record()["state"] == "starting", 30, "the pause")
            run.process.kill()
            wait_until(lambda: run.record()["state"] == "ended", 30, "the end")
            assert [start["start"] for start in run.lines("starts.jsonl")] == [1, 2], run.lines("starts.jsonl")
            assert (run.directory / "config-2.json").exists() and run.result()["code"] == 75, run.result()


def test_one_goes_on_as_soon_as_its_supervisor_is_killed():
    """What the killed one has left ends by itself: who is quicker waits for it."""
    with Run([*LONG], ranks=2) as first:
        first.wait_for_step(5)
        first.process.kill()
        first.process.wait()
        again = ["run", "--name", "t", "--resume", "auto", "--batch", "--restarts", "0", "train.steps=40"]
        with Run(folder=first.folder, command=again) as run:
            assert run.finish(90) == 0, run.output()
            assert run.result()["step"] == 40, run.result()


if __name__ == "__main__":
    main([test_endings, test_full_disk, test_surroundings_change_nothing, test_a_chunk_hears_of_the_end_it_ordered,
          test_a_supervisor_killed_between_two_starts, test_one_goes_on_as_soon_as_its_supervisor_is_killed])
