#!/usr/bin/env python3
"""Everything that happens to a long run, at random moments from a seed: ranks and whole starts that are killed, stops, orders, pauses,
saves, loads, a full disk, shares of the optimizer's state and of the gradients. It goes on each time, ends, and its journal leads a
replay to the same bits.

Always the same seed, for five minutes; with FOOTPLATE_FULL=1 another one each time, for an hour. FOOTPLATE_SOAK_SEED and
FOOTPLATE_SOAK_S say otherwise."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

from harness import FULL, Refused, Run, main, wait_until
from test_replay import SETTINGS, check_equal, replayed

SECONDS = float(os.environ.get("FOOTPLATE_SOAK_S", 3600 if FULL else 300))
SEED = int(os.environ.get("FOOTPLATE_SOAK_SEED", time.time_ns() % 10**9 if FULL else 26))
SMALL = ["model.step_ms=3", "train.steps=1000000", "ckpt.every=60", "ckpt.keep=4", "ckpt.retry_s=0.5", "log.every=20", "eval.every=150",
         "eval.batches=2", "eval.at_end=false", "guard.check_every=20", "run.threads=1"]
PATIENCE_S = 90  # from one thing to the next step; a start takes about three seconds, more on a busy machine


class Soak:
    """A run in a folder that survives its starts."""

    def __init__(self, folder, ranks, settings, rng):
        self.folder, self.ranks, self.settings, self.rng = folder, ranks, settings, rng
        self.done, self.run = {}, None
        self.ballast = pathlib.Path(folder) / "ballast"
        self.start()

    def start(self):
        self.run = Run([*SMALL, *self.settings], ranks=self.ranks, folder=self.folder, options=["--resume", "auto", "--restarts", "1000"])

    def count(self, what):
        self.done[what] = self.done.get(what, 0) + 1

    def step(self):
        """Of the run as it is now; nothing while it starts."""
        try:
            client = self.run.try_connect()
            if client is None:
                return None
            try:
                return client.ask("status")["step"]
            finally:
                client.close()
        except (ConnectionError, OSError, ValueError, Refused):
            return None

    def goes_on(self, what):
        """From wherever it stands to a step beyond."""
        seen = []

        def moved():
            assert self.run.process.poll() is None, f"after {what} it ended with {self.run.process.returncode}"
            step = self.step()
            if step is not None:
                seen.append(step)
            return len(seen) > 1 and seen[-1] > min(seen)
        wait_until(moved, PATIENCE_S, f"a step after {what}; steps seen: {seen[-5:]}")

    # --- what happens ---

    def lua(self, code):
        done = self.run.exec(code, timeout_s=PATIENCE_S)  # it may come to a start that just ends
        assert "attempt to" not in done.stderr, (code, done)
        return done

    def order(self):
        name, value = self.rng.choice([one for one in SETTINGS if one[0] not in ("train.steps", "ckpt.every")])
        value = value(self.rng)
        self.lua(f"{name} = {'{ %s, %s }' % tuple(value) if isinstance(value, list) else value}")

    def order_ahead(self):
        self.lua(f"at(run.step + {self.rng.randint(5, 60)}, function() optim.lr_scale = {self.rng.uniform(0.2, 2):.4f} end)")

    def save(self):
        self.lua(f'ckpt.save{{ tag = "t{self.rng.randint(1, 3)}" }}')

    def load(self):
        self.lua(f'ckpt.load{{ ref = "{self.rng.choice(["latest", "t1", "t2", "best"])}" }}')

    def evaluate(self):
        self.lua("eval.now{ batches = 1 }")

    def pause(self):
        self.lua("run.pause()")
        time.sleep(self.rng.uniform(0, 0.5))
        self.lua("run.resume()")

    def share(self):
        copies = self.rng.choice(["none", "memory", "memory"])
        self.lua(f'set{{ optim = {{ shard = {self.rng.randint(0, 2)} }}, ckpt = {{ redundancy = "{copies}" }} }}')

    def kill_rank(self):
        ranks = [rank["pid"] for rank in self.run.record().get("ranks") or []]
        if ranks:
            kill(self.rng.choice(ranks), signal.SIGKILL)

    def freeze_rank(self):
        ranks = [rank["pid"] for rank in self.run.record().get("ranks") or []]
        if not ranks:
            return
        pid = self.rng.choice(ranks)
        kill(pid, signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.2, 1.5))
        kill(pid, signal.SIGCONT)

    def kill_all_ranks(self):
        for rank in self.run.record().get("ranks") or []:
            kill(rank["pid"], signal.SIGKILL)

    def stop(self):
        self.run.process.send_signal(self.rng.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
        self.ended()

    def kill_everything(self):
        pids = [rank["pid"] for rank in self.run.record().get("ranks") or []]
        self.run.process.kill()
        for pid in pids:
            kill(pid, signal.SIGKILL)
        self.ended()

    def fill_disk(self):
        """Where the run has a small one to itself."""
        if not os.path.ismount(self.folder):
            return
        with open(self.ballast, "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(1 << 20))
            except OSError:
                pass
        time.sleep(self.rng.uniform(0.5, 4))
        self.ballast.unlink()

    def ended(self):
        code = self.run.finish(PATIENCE_S)
        assert code in (75, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP), f"code {code}"
        time.sleep(0.2)
        self.start()

    EVENTS = {order: 8, order_ahead: 3, save: 4, load: 2, evaluate: 2, pause: 2, share: 3, kill_rank: 3, freeze_rank: 1, kill_all_ranks: 1, stop: 2,
              kill_everything: 1, fill_disk: 2}

    def live(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.goes_on("the start" if not self.done else "what came before")
            time.sleep(self.rng.uniform(0, 1.2))
            event = self.rng.choices(list(self.EVENTS), self.EVENTS.values())[0]
            event(self)
            self.count(event.__name__)
            self.goes_on(event.__name__)

    def end(self):
        for _ in range(20):
            step = self.step()
            if step is None:
                time.sleep(0.5)
                continue
            if self.lua(f"train.steps = {step + 400}").returncode == 0:
                break
        assert self.run.finish(PATIENCE_S) == 0
        return self.run.result()


def kill(pid, sent):
    try:
        os.kill(pid, sent)
    except ProcessLookupError:
        pass


def small_disk(folder):
    """Whether `folder` is one of 64 MB now; a user who may not mount has none."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], capture_output=True, check=False)
    return mounted.returncode == 0


def soak(ranks, settings, seconds, seed, then=lambda run, result: None):
    """`then` looks at the run that has ended, while its folder is there."""
    folder = tempfile.mkdtemp(prefix="fp-soak-")
    mounted = small_disk(folder)
    try:
        lived = Soak(folder, ranks, settings, random.Random(seed))
        try:
            lived.live(seconds)
            result = lived.end()
            print(f"      seed {seed}, {ranks} ranks{'' if mounted else ', no disk of its own'}: {result['step']} steps, "
                  f"{len(lived.run.lines('starts.jsonl'))} starts, {', '.join(f'{name} {n}' for name, n in lived.done.items())}", flush=True)
            then(lived.run, result)
        except BaseException:
            print(f"--- seed {seed}; so far {lived.done}\n{lived.run.output()[-6000:]}", flush=True)
            for log in sorted((lived.run.directory / "log").glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}", flush=True)
            lived.run.process.kill()
            raise
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def test_ranks_go_on_without_those_that_die():
    soak(3, ["comm.on_loss=rebuild", "comm.replace=true"], SECONDS / 2, SEED)


def test_the_journal_leads_to_the_same_bits():
    """A start ends with any rank that dies, so that the run has the same ranks all the time and can be replayed."""
    soak(2, ["comm.on_loss=stop"], SECONDS / 2, SEED + 1, then=lambda run, _: check_equal(run, *replayed(run, at_most_s=PATIENCE_S + 4 * SECONDS)))


if __name__ == "__main__":
    main([test_ranks_go_on_without_those_that_die, test_the_journal_leads_to_the_same_bits])
