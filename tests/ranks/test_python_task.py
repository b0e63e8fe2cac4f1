#!/usr/bin/env python3
"""A task of somebody's own in Python (docs/examples/python): it trains, is steered, survives, and is refused with its reason where
it can't be used. What it raises is a failed step on all ranks."""

import os
import pathlib
import signal
import time

from harness import BIN, FULL, ROOT, Refused, Run, main, wait_until
from own_task import OwnTask, evaluations

EXAMPLE = ROOT / "docs" / "examples" / "python" / "digits.py"
ENVIRONMENT = pathlib.Path((BIN.parent / "environment").read_text().strip())  # of LibTorch, as the build took it
NO_VENV = {"VIRTUAL_ENV": ""}

MORE = '''
import ctypes
import footplate
import torch
import digits


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise KeyError("backward is broken")


class More(digits.Digits):
    settings = [*digits.Digits.settings,
                footplate.Setting("fault", "none", "What goes wrong.", choices=["none", "loss", "backward", "load", "busy"])]

    def __init__(self, host):
        super().__init__(host)
        self.fault = "none"
        print("made with a batch of", host.settings["train.batch_size"])

    @footplate.action("Greets somebody.", whom="Who it is.")
    def greet(self, step, whom: str = "you", times: int = 1):
        self.module.eval()  # as an action that samples does
        return {"said": ["hello " + whom] * times, "step": step}

    def prepare(self, after):
        return "a third is too much" if after["task.smoothing"] == 0.3 else None

    def changed(self, now, step):
        super().changed(now, step)
        self.fault = now["task.fault"]

    def load(self, samples):
        if self.fault == "load" and 0 in samples.draws % 64:  # one rank's alone
            raise OSError("the disk is gone")
        return super().load(samples)

    def loss(self, batch, sums):
        if self.module.training == batch.held_out:
            raise RuntimeError("the module is in the other mode")
        if self.fault == "loss":
            raise ValueError("the loss is broken")
        if self.fault == "busy":
            self.fault = "none"
            ctypes.PyDLL(None).usleep(4_000_000)  # and keeps the GIL
        value = super().loss(batch, sums)
        return Broken.apply(value) if self.fault == "backward" else value
'''


SETS = '''
import footplate
import torch
import digits


class Halves(digits.Digits):
    sets = [footplate.Set("even", share=2, help="Digits with an even number."), footplate.Set("odd")]

    def data(self):
        whole = super().data()
        return [footplate.DataSet(name, whole.training // 2, whole.held_out // 2) for name in ("even", "odd")]

    def load(self, samples):
        return super().load(footplate.Samples(0, samples.held_out, samples.indexes * 2 + samples.set, samples.draws))
'''

LAYERS = '''
import torch
import digits

gelu_tanh = torch.ops.footplate.gelu_tanh  # found while the file is imported


class Gelu(torch.nn.Module):
    def forward(self, x):
        return gelu_tanh(x)


class WithGelu(digits.Digits):
    def __init__(self, host):
        super().__init__(host)
        self.module[2], self.module[6] = Gelu(), Gelu()
'''


BARE = '''
import footplate
import torch


class Bare(footplate.Task):
    metrics = [footplate.Metric("sum", in_training=False)]

    def __init__(self, host):
        self.values = torch.ones(3, requires_grad=True)

    def parameters(self):
        return [footplate.Parameter("values", self.values)]

    def data(self):
        return footplate.DataSet("ones", 64, 8)

    def load(self, samples):
        return torch.ones(len(samples.indexes), 3)

    def loss(self, batch, sums):
        if batch.held_out:
            sums.add("sum", batch.tensors[0].sum())
        return (batch.tensors[0] * self.values).sum()
'''


CLOSED = '''
import pathlib
import digits


class Closed(digits.Digits):
    def __init__(self, host):
        super().__init__(host)
        print("the door is here")

    def prepare(self, after):
        return "closed today" if pathlib.Path(__file__).with_name("closed").exists() else None
'''


DRAWS = '''
import digits
import footplate
import torch


class Draws(digits.Digits):
    def __init__(self, host):
        super().__init__(host)
        self.drawn = torch.zeros(4)

    def state(self):
        return [*super().state(), footplate.State("drawn", self.drawn, "update")]

    def loss(self, batch, sums):
        torch.rand(1 + int(batch.tensors[0].sum()) % 7)  # of each rank its own number of them
        return super().loss(batch, sums)

    def update(self, statistics, skip):
        self.drawn.copy_(torch.rand(4))

    @footplate.action("Draws the last layer anew.")
    def redraw(self, step):
        with torch.no_grad():
            self.module[-1].weight.normal_()
'''


def digits():
    return OwnTask("python:", EXAMPLE)


def with_more(task, text=MORE, name="more.py"):
    (task.folder / name).write_text(text)
    task.config.write_text(task.config.read_text().replace(f"{task.folder}/digits.py", f"{task.folder}/{name}"))


def test_it_trains_alike_and_goes_on_bit_equal():
    with digits() as task:
        with task.run(name="straight", env=NO_VENV) as run:
            assert run.finish() == 0, run.output()
            assert evaluations(run)[-1]["eval/accuracy"] > 0.9, evaluations(run)
            straight = run.result()["state_hash"]

        # SIGTERM is the runtime's, and not Python's. Evaluations beside training change nothing.
        with task.run("eval.async=true", name="cut", env=NO_VENV) as run:
            run.wait_for_step(1)
            wait_until(lambda: (run.directory / "checkpoints" / "main" / "step-00000080").exists(), 60, "a checkpoint")
            run.process.send_signal(signal.SIGTERM)
            assert run.finish() in (0, 75), run.output()
        with Run(folder=task.folder, name="cut", env=NO_VENV, command=["run", "--name", "cut", "--resume", "auto", "--batch"]) as run:
            assert run.finish() == 0, run.output()
            assert run.result()["state_hash"] == straight, run.output()


def test_the_layers_are_operators_of_torch():
    with digits() as task:
        with_more(task, LAYERS, "with_gelu.py")
        task.footplate("check", str(task.config), env=NO_VENV)
        with task.run(env=NO_VENV) as run:
            assert run.finish() == 0, run.output()
            assert evaluations(run)[-1]["eval/accuracy"] > 0.9, evaluations(run)


def test_several_data_sets_train_alike_on_any_number_of_ranks():
    with digits() as task:
        with_more(task, SETS, "halves.py")
        losses = []
        for ranks in (1, 3):
            with task.run("train.steps=120", "data.workers=2", name=f"on{ranks}", ranks=ranks, env=NO_VENV) as run:
                assert run.finish() == 0, run.output()
                last = evaluations(run)[-1]
                assert all(last[f"eval/{name}/accuracy"] > 0.6 for name in ("even", "odd")), last
                losses.append(last["eval/loss"])
                lines = [line for line in run.lines("metrics.jsonl") if "data/even/loss" in line]
                assert abs(lines[-1]["data/even/samples"] - 2 * lines[-1]["data/odd/samples"]) <= 2, lines[-1]
        assert max(losses) - min(losses) < 1e-3, losses


COUNTS = """
import footplate
import torch
import digits


class Counts(digits.Digits):
    def __init__(self, host):
        super().__init__(host)
        for name, value in (("steps", 0), ("begun", False), ("forgotten", 0)):
            self.module.register_buffer(name, torch.tensor([value]))
        self.begun_with = None

    def state(self):
        counted = [footplate.State(name, getattr(self.module, name), "update") for name in ("steps", "begun")]
        return [*super().state(), *counted]

    def update(self, statistics, skip):
        if not self.module.begun:
            print("it begins at", int(self.module.steps))
        elif self.begun_with is None:
            self.begun_with = int(self.module.steps)
            print("it goes on at", self.begun_with)
        self.module.steps += 1
        self.module.begun.fill_(True)
"""


def test_counts_and_flags_are_kept():
    """Of no float type; and the log names what isn't kept."""
    def check(run, said):
        assert run.finish() == 0, run.output()
        for rank in (0, 1):
            log = (run.directory / "log" / f"rank-{rank}.log").read_text()
            assert said in log and "checkpoints leave out these tensors of the task's module: forgotten." in log, log

    with digits() as task:
        with_more(task, COUNTS, "counts.py")
        with task.run("ckpt.every=6", "train.steps=6", name="counted", env=NO_VENV) as run:
            check(run, "it begins at 0")
        with Run(folder=task.folder, name="counted", env=NO_VENV,
                 command=["run", "--name", "counted", "--resume", "auto", "train.steps=10", "--batch"]) as run:
            check(run, "it goes on at 6")


ACTS = """
import digits
import footplate
import torch


class Acts(digits.Digits):
    @footplate.action("Sets the last layer to zero, and computes.")
    def zero(self, step):
        with torch.no_grad():
            self.module[-1].weight.zero_()
            return {"logits": float(self.module(torch.ones(2, 1, 8, 8)).std())}

    @footplate.action("The largest weight of the last layer.")
    def largest(self, step):
        return {"largest": float(self.module[-1].weight.abs().max())}
"""


def test_an_action_may_write_parameters_in_bf16():
    """The optimizer goes on from what it has written."""
    with digits() as task:
        with_more(task, ACTS, "acts.py")
        with task.run("train.steps=1000000", "eval.every=0", "ckpt.every=0", "train.precision=bf16", "train.param_dtype=bf16",
                      "optim.lr_scale=1e-4", env=NO_VENV) as run:
            run.wait_for_step(20).close()
            largest = float(run.exec("return task.largest{}:wait().largest").stdout)
            assert run.exec("return task.zero{}:wait().logits >= 0").stdout.strip() == "true"
            assert run.exec("run.wait{ step = run.step + 5 }; return 1").returncode == 0
            after = float(run.exec("return task.largest{}:wait().largest").stdout)
            assert largest > 0.05 > 0.01 > after > 0, (largest, after)


def test_its_parameters_may_be_in_bf16():
    """All of the task's own; BatchNorm's vectors and statistics stay float32. It goes on from its checkpoint bit for bit."""
    in_bf16 = ["train.precision=bf16", "train.param_dtype=bf16", "optim.shard=1", "sched.kind=constant", "ckpt.keep=0"]
    with digits() as task:
        with task.run("ckpt.every=20", "train.steps=60", *in_bf16, name="in-bf16", env=NO_VENV) as run:
            assert run.finish() == 0, run.output()
            assert "matrices are kept in bf16" in (run.directory / "log" / "rank-0.log").read_text()
            assert evaluations(run)[-1]["eval/accuracy"] > 0.6, evaluations(run)
            whole = run.result()["state_hash"]
            checkpoint = next((run.directory / "checkpoints" / "main").glob("*40"))
        with task.run("train.steps=60", *in_bf16, name="again", env=NO_VENV, options=("--resume", str(checkpoint))) as again:
            assert again.finish() == 0, again.output()
            assert again.result()["state_hash"] == whole, again.result()


def test_a_task_needs_no_module():
    with digits() as task:
        (task.folder / "bare.py").write_text(BARE)
        task.config.write_text(f'run.task = "python:{task.folder}/bare.py"\nrun.threads = 1\ntrain.steps = 4\neval.every = 2\n')
        with task.run(env=NO_VENV) as run:
            assert run.finish() == 0, run.output()
            assert evaluations(run)[-1]["eval/sum"] > 0, run.output()


def test_what_is_missing_or_of_another_kind_is_said():
    wrong = [("def load", "def laod", "the task has no load(); did you mean it by laod()?"),
             ('return footplate.DataSet("ones", 64, 8)', 'return {"ones": 64}', "data() gave a dict; it has to give a footplate.DataSet"),
             ("return torch.ones(len(samples.indexes), 3)", "return [[1.0]]", "load() gave a list in place 0 of the batch"),
             ("return (batch", "(batch", "loss() gave nothing: is a return missing?"),
             ("if batch.held_out:", "if True:", "sums.add('sum'): that metric is of evaluations alone (Metric(in_training=False))"),
             ("* self.values)", "* self.values.detach())", "look for detach()"),
             ("footplate.Task", "footplate.Tsk", "did you mean Task?"),
             ("def parameters", "def params", "set self.module in __init__, or write parameters()"),
             ("self.values = torch", "self.module = torch.nn.BatchNorm1d(3, momentum=None)\n        self.values = torch",
              "the BatchNorm1d 'self.module' has momentum=None")]
    with digits() as task:
        task.config.write_text(f'run.task = "python:{task.folder}/bare.py"\nrun.threads = 1\ntrain.steps = 4\n')
        for number, (right, mistake, text) in enumerate(wrong):
            (task.folder / "bare.py").write_text(BARE.replace(right, mistake))
            with task.run(name=f"wrong-{number}", ranks=1, options=["--restarts", "0"], env=NO_VENV) as run:
                assert run.finish() in (1, 2) and text in run.output(), (text, run.output())


def test_mistakes_are_said_by_name():
    setting = 'metrics = [footplate.Metric("sum", in_training=False)]'
    wrong = [("64, 8", "64.5, 8", "data(): training of the data set 'ones' is 64.5; it has to be a whole number"),
             ('[footplate.Parameter("values", self.values)]', '[("values", self.values)]',
              "parameters() gave a tuple; each has to be a footplate.Parameter"),
             (setting, 'settings = [footplate.Setting("width", 64, "The width.", choices=[64, 128])]',
              "the setting 'width' has choices=[64, 128]; it has to be a list of texts"),
             ("return torch.ones(len", 'raise OSError("M\\udcfcller.wav is short")\n        return torch.ones(len', "OSError: M?ller.wav is short"),
             ("def data", "def prepare(self, after):\n        return True\n\n    def data", "prepare() gave True; it has to give None")]
    text = BARE.replace("torch.ones(3, requires_grad=True)", "torch.ones(3, requires_grad=True)\n        self.rank = host.rank\n"
                        "        self.module = torch.nn.Module()\n        self.module.register_buffer('seen', torch.zeros(1))")
    with digits() as task:
        task.config.write_text(f'run.task = "python:{task.folder}/bare.py"\nrun.threads = 1\ntrain.steps = 4\n')
        for right, mistake, expected in wrong:
            assert right in text, right
            (task.folder / "bare.py").write_text(text.replace(right, mistake))
            said = task.footplate("check", str(task.config), code=2, env=NO_VENV)
            assert expected in said, (expected, said)
        of_runs = [("64, 8", "64 + self.rank(), 8, hash=-1", "aren't the same on all ranks: rank 0 has"),
                   ("        if batch.held_out", "        self.module.seen = self.module.seen + 1\n        if batch.held_out",
                    "the module's tensor 'seen' was replaced by another one")]
        for number, (right, mistake, expected) in enumerate(of_runs):
            (task.folder / "bare.py").write_text(text.replace(right, mistake))
            with task.run(name=f"mistake-{number}", options=["--restarts", "0"], env=NO_VENV) as run:
                assert run.finish() in (1, 2) and expected in run.output(), (expected, run.output())


def test_what_is_of_training_alone_may_be_in_its_loss_and_bounds_may_be_infinite():
    text = BARE.replace("    def data", "    settings = [footplate.Setting('wide', 1.0, 'A number.', min=0, max=float('inf'))]\n\n"
                        "    def statistics(self):\n        return [footplate.Statistic('rows', [3])]\n\n    def data")
    text = text.replace("        if batch.held_out", "        sums.add_statistic('rows', batch.tensors[0].sum(0))\n        if batch.held_out")
    with digits() as task:
        (task.folder / "bare.py").write_text(text)
        task.config.write_text(f'run.task = "python:{task.folder}/bare.py"\nrun.threads = 1\ntrain.steps = 4\neval.every = 2\n')
        with task.run("task.wide=1e300", env=NO_VENV) as run:
            assert run.finish() == 0 and len(evaluations(run)) == 2, run.output()
            assert all("eval/evaluation_failed" not in line for line in run.lines("metrics.jsonl"))


def test_all_ranks_draw_the_same_where_they_have_to():
    with digits() as task:
        with_more(task, DRAWS, "draws.py")
        with task.run("train.steps=1000000", "eval.every=0", "ckpt.every=0", "guard.check_every=1", "optim.lr_scale=0.01", env=NO_VENV) as run:
            run.wait_for_step(20).close()
            done = run.exec("task.redraw{}:wait(); run.wait{ step = run.step + 20 }; return 1")
            assert done.returncode == 0, done
            assert not [event for event in run.lines("events.jsonl") if "differ" in str(event)], run.output()


def test_a_task_that_refuses_everything_is_paused_saved_and_stopped():
    with digits() as task:
        with_more(task, CLOSED, "closed.py")
        with task.run("train.steps=1000000", "eval.every=0", "ckpt.every=0", name="open", env=NO_VENV) as run:
            run.wait_for_step(20).close()
            (task.folder / "closed").touch()
            refused = run.exec("optim.lr_scale = 0.5")
            assert refused.returncode != 0 and "the task refuses: closed today" in refused.stderr, refused
            assert run.exec("run.pause(); ckpt.save():wait(); train.micro_batch = 16; run.resume(); return 1").returncode == 0
            run.process.send_signal(signal.SIGTERM)
            assert run.finish(60) == 75, run.output()
            assert len(list((run.directory / "checkpoints" / "main").glob("step-*"))) == 2
        said = task.footplate("check", str(task.config), code=2, env=NO_VENV)
        assert "the task refuses: closed today" in said and "the task says: the door is here" in said, said


def test_a_rank_that_is_killed_is_gone_on_without():
    with digits() as task, task.run("train.steps=300", "ckpt.every=0", ranks=3, env=NO_VENV) as run:
        client = run.wait_for_step(20)
        os.kill(run.pids()[1], signal.SIGKILL)
        client.close()
        assert run.finish() == 0, run.output()
        assert run.result()["recoveries"] == 1 and evaluations(run)[-1]["eval/accuracy"] > 0.9, run.result()


def test_it_may_decide_the_learning_rate():
    with digits() as task:
        with_more(task, "import digits\n\n\nclass Decides(digits.Digits):\n    def learning_rate(self, step):\n        return 0.25\n")
        with task.run("train.steps=1000000", "log.every=100000", "eval.every=0", "ckpt.every=0", "optim.lr_scale=0.01", env=NO_VENV) as run:
            run.wait_for_step(5).close()
            assert run.exec("return optim.lr").stdout.strip() == "0.0025", "before the first line of metrics"
            said = 'sched.base_lr, sched.warmup_steps change nothing now: run.task = "python:'
            assert said in run.output(), run.output()
            run.exec("sched.gamma = 0.5")
            wait_until(lambda: "sched.base_lr, sched.warmup_steps, sched.gamma change" in run.output(), 20, "the warning of the third")


def test_it_is_steered_like_every_other_one():
    with digits() as task:
        with_more(task)
        with task.run("train.steps=1000000", "eval.every=0", "ckpt.every=0", env=NO_VENV) as run:
            client = run.wait_for_step(5)
            changed = run.exec("task.smoothing = 0.2")
            assert "task.smoothing 0 -> 0.2" in changed.stdout + changed.stderr, changed
            assert "0 to 0.9" in run.exec("task.smoothing = 2").stderr
            assert "a third is too much" in (refused := run.exec("task.smoothing = 0.3")).stderr, refused
            assert "hello rank" in (greeted := run.exec("return task.greet{whom = 'rank', times = 2}:wait()")).stdout, greeted
            assert "made with a batch of 64" in (run.directory / "log" / "rank-1.log").read_text()
            client.ask("eval", code="task.smoothing = 0.1")
            client.ask("eval", code="undo()")
            assert run.exec("return task.smoothing").stdout.strip() == "0.2"

            # While a step keeps the GIL the control thread answers, and doesn't wait for prepare().
            assert run.exec("task.fault = 'busy'").returncode == 0
            began = time.monotonic()
            assert client.ask("status")["step"] > 0
            try:
                said = client.ask("set", changes={"task.smoothing": 0.1})
            except Refused as error:
                said = error.message
            assert "Python is busy" in str(said) and time.monotonic() - began < 3.5, (said, time.monotonic() - began)

            step = client.ask("status")["step"]
            wait_until(lambda: client.ask("status")["step"] > step, 30, "the step that is busy to end")
            run.end_after(60)
            assert run.finish() == 0, run.output()
        assert "bit-equal" in task.footplate("replay", "t", env=NO_VENV)
        assert "task.fault" in task.footplate("settings", "fault", "--task", "python:more.py", env=NO_VENV)


def test_what_it_raises_is_a_failed_step_that_names_the_line():
    lines = MORE.splitlines()
    with digits() as task:
        with_more(task)
        for fault, text, ranks in (("loss", "ValueError: the loss is broken", "ranks 0, 1"), ("load", "OSError: the disk is gone", "rank 0"),
                                   ("backward", "KeyError: 'backward is broken'", "ranks 0, 1")):
            line = next(number for number, code in enumerate(lines, 1) if "raise" in code and text.split(": ")[1].strip("'") in code)
            with task.run(f"task.fault={fault}", "ckpt.every=0", name=fault, options=["--restarts", "0"], env=NO_VENV) as run:
                assert run.finish() == 1, run.output()
                reason = run.result()["reason"]
                assert f"{ranks}: {task.folder}/more.py:{line}: in {fault}: {text}" in reason, reason
                assert reason.count(f"more.py:{line}") == 1, reason
                if fault == "loss":
                    assert "Traceback" in (run.directory / "log" / "rank-1.log").read_text()


def test_what_cannot_be_used_is_refused_with_its_reason():
    with digits() as task:
        source = EXAMPLE.read_text()
        empty = task.folder / "empty.lua"
        empty.write_text("")

        def refused(*words, text=None, name="wrong.py", env=None, commands=(["check"],)):
            if text is not None:
                (task.folder / name).write_text(text)
            for command in commands:
                said = task.footplate(*command, str(empty), f"run.task=python:{name}", code=2, env={**NO_VENV, **(env or {})})
                for word in words:
                    assert word in said, (word, said)

        run = ["run", "--batch", "-n", "2"]
        refused("nowhere.py", "no such file", name="nowhere.py", commands=(["check"], run))
        line = source.splitlines().index("class Digits(footplate.Task):") + 1
        refused(f"wrong.py:{line}", "SyntaxError", text=source.replace("class Digits(footplate.Task):", "class Digits(footplate.Task:"))
        refused("wrong.py:2", "ModuleNotFoundError", "nowhere_at_all", text=source.replace("import footplate", "import footplate, nowhere_at_all"))
        refused("no task", "footplate.Task", text="x = 1\n")
        assert 'write "python:digits.py"' in task.footplate("check", str(empty), "run.task=digits.py", code=2)

        # Environments: of another Python, of another torch; and one of the user's own, with a blank in its path.
        venv = task.folder / "a venv"
        site = venv / "lib" / "python3.11" / "site-packages"
        (venv / "bin").mkdir(parents=True)
        (venv / "bin" / "python").symlink_to("/usr/bin/python3")
        site.mkdir(parents=True)
        config = venv / "pyvenv.cfg"
        active = {"VIRTUAL_ENV": str(venv)}
        config.write_text("home = /usr/bin\nversion = 3.12.1\n")
        refused("a venv", "3.12.1", "Python 3.11", name="digits.py", env=active)
        config.write_text("home = /usr/bin\nversion = 3.11.2\n")
        refused("a venv", "has no torch", "pip install torch==", name="digits.py", env=active)
        (site / "torch").mkdir()
        (site / "torch" / "__init__.py").write_text("raise SystemExit('imported')\n")
        (site / "torch" / "version.py").write_text("__version__ = '9.9.1+cpu'\n")
        refused("torch 9.9.1+cpu", "LibTorch 2.", "pip install torch==", name="digits.py", env=active, commands=(["check"], run))
        assert not any((task.folder / "runs").glob("*")), "nothing was started"
        rate = source.replace("self.rows = ", "self.learning_rate = 1e-3\n            self.rows = ")
        refused("the task's learning_rate is 0.001", "make it a method", text=rate)
        refused("wrong.py:", "in __init__", "NameError", text=source.replace("self.rows = ", "self.rows = toorch."), commands=(["check"], run))
        for one in (site / "torch").iterdir():
            one.unlink()
        (site / "torch").rmdir()
        for one in (ENVIRONMENT / "lib" / "python3.11" / "site-packages").iterdir():
            (site / one.name).symlink_to(one)
        if (ENVIRONMENT / "lib" / "cuda-stubs").exists():
            (venv / "lib" / "cuda-stubs").symlink_to(ENVIRONMENT / "lib" / "cuda-stubs")
        task.footplate("check", str(task.config), env=active)


def test_a_compiled_model_trains():
    if not FULL:
        print("skip  torch.compile: its compiler takes 30 s a model (FOOTPLATE_FULL=1)")
        return
    with digits() as task:
        with_more(task, "import digits, torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self, inner):\n"
                        "        super().__init__()\n        self.inner = inner\n\n    def forward(self, x):\n        return self.inner(x)\n\n\n"
                        "class Compiled(digits.Digits):\n    def __init__(self, host):\n        super().__init__(host)\n"
                        "        self.module = Net(self.module)\n        self.module.compile()\n", "compiled.py")
        with task.run(env={**NO_VENV, "TORCHINDUCTOR_CACHE_DIR": str(task.folder / "compiled")}) as run:
            assert run.finish(300) == 0, run.output()
            assert list((task.folder / "compiled").rglob("*.so")), "nothing was compiled"
            assert evaluations(run)[-1]["eval/accuracy"] > 0.9, evaluations(run)


if __name__ == "__main__":
    main([test_it_trains_alike_and_goes_on_bit_equal, test_several_data_sets_train_alike_on_any_number_of_ranks, test_counts_and_flags_are_kept, test_its_parameters_may_be_in_bf16,
          test_an_action_may_write_parameters_in_bf16,
          test_a_task_needs_no_module, test_what_is_missing_or_of_another_kind_is_said, test_a_rank_that_is_killed_is_gone_on_without,
          test_it_may_decide_the_learning_rate, test_it_is_steered_like_every_other_one, test_what_it_raises_is_a_failed_step_that_names_the_line,
          test_what_cannot_be_used_is_refused_with_its_reason, test_a_compiled_model_trains,
          test_the_layers_are_operators_of_torch, test_mistakes_are_said_by_name,
          test_what_is_of_training_alone_may_be_in_its_loss_and_bounds_may_be_infinite, test_all_ranks_draw_the_same_where_they_have_to,
          test_a_task_that_refuses_everything_is_paused_saved_and_stopped])
