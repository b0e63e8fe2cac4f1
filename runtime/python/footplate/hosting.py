"""What libfootplate_python.so calls. Plain lists, tuples, texts and tensors go in and out; nothing here is for tasks."""

import importlib.util
import inspect
import io
import json
import linecache
import math
import operator
import os
import pathlib
import runpy
import sys
import traceback
import warnings

from footplate.task import (Batch, DataSet, Group, Host, Metric, Parameter, Samples, Setting, Settings, State, Statistic, Sums,
                            Task)

ABOVE = pathlib.Path(__file__).parent  # frames of these files say nothing about a task
KINDS = {bool: "boolean", int: "integer", float: "number", str: "string"}
MOST_TEXT = 480  # bytes of what one rank tells the others (runtime/comm/agree.cpp)
MOST_SUMMARY = 300


class Refused(Exception):
    """A text for people, without a traceback."""


# ---------------------------------------------------------------- the interpreter


def in_utf8(text):
    """Names of files may have bytes that are no text; Python keeps them as halves of characters, which nobody else takes."""
    return str(text).encode(errors="replace").decode()


class Lines(io.TextIOBase):
    """Where print() goes: whole lines into the rank's log, and to stderr where there is none. stdout is the rank's own."""

    def __init__(self):
        self.log, self.rest = None, ""

    def writable(self):
        return True

    def write(self, text):
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if self.log is None:
                print(line, file=sys.stderr)
            else:
                self.log(in_utf8(line))
        return len(text)


def take_stdout():
    sys.stdout = Lines()


def check_torch(version):
    """Before it is imported: the libraries of another one don't fit to those of this process."""
    where = f"the Python environment {sys.prefix}"
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise Refused(f"{where} has no torch; pip install torch=={version} puts it there")
    found = runpy.run_path(str(pathlib.Path(spec.origin).with_name("version.py")))["__version__"]
    if found.split("+")[0] != version:
        raise Refused(f"{where} has torch {found} ({spec.origin}), this footplate has LibTorch {version}; pip install "
                      f"torch=={version} there, or activate an environment (VIRTUAL_ENV) that has it")
    # A task needs no NumPy, and LibTorch's environment has none.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    # torch.compile in this process: a pool of processes would outlive it.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    try:
        import torch  # noqa: F401
    except Exception as error:
        raise Refused(f"{where}: import torch fails: {type(error).__name__}: {error}; scripts/deps installs what it needs, and so "
                      f"does pip install torch=={version}") from error


# ---------------------------------------------------------------- errors


def source_of(frame):
    return linecache.getline(frame.filename, frame.lineno).strip()


def blamed(frames, file):
    """The innermost frame of the task's own files: where people look first."""
    folder = str(pathlib.Path(file).parent)
    own = [frame for frame in frames if frame.filename.startswith(folder) and "site-packages" not in frame.filename]
    return (own or frames)[-1]


def cut(text, most):
    data = text.encode(errors="replace")
    return data.decode() if len(data) <= most else data[:most - 3].decode(errors="ignore") + "…"


def explain(error, file):
    """(short, long, memory): one line with the place and the exception, with as many of the innermost other frames as an agreed
    text has room for; Python's own traceback; whether memory was short."""
    if isinstance(error, Refused):
        return in_utf8(error), "", False
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(("<frozen", str(ABOVE)))]
    said = " ".join(str(error).split("\n\nException raised from")[0].split()) or "no reason given"
    if isinstance(error, SyntaxError) and error.filename:
        return cut(f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}: {(error.text or '').strip()}", MOST_TEXT), "", False
    place = blamed(frames, file) if frames else None
    summary = f"{place.filename}:{place.lineno}: in {place.name}: " if place else f"{file}: "
    short = cut(f"{summary}{type(error).__name__}: {said}", MOST_SUMMARY)
    lines, room = [], MOST_TEXT - len(short.encode())
    for frame in reversed(frames):
        if frame is place:
            continue
        line = cut(f"\n  {pathlib.Path(frame.filename).name}:{frame.lineno} in {frame.name}: {source_of(frame)}", 120)
        room -= len(line.encode())
        if room < 0:
            break
        lines.append(line)
    details = in_utf8("".join(traceback.format_exception(error)).rstrip())
    return short + "".join(reversed(lines)), details, isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def name_lines_of_backward(file):
    """What backward() of an autograd.Function raises reaches the rank through LibTorch, which tells the text alone."""
    from torch.autograd.function import BackwardCFunction
    apply = BackwardCFunction.apply

    def explained(self, *gradients):
        try:
            return apply(self, *gradients)
        except Exception as error:
            short, _, memory = explain(error, file)
            if memory:
                raise
            raise RuntimeError(short) from error

    BackwardCFunction.apply = explained


# ---------------------------------------------------------------- from a file to a task


def open_task(file):
    """The class of the file. Raises Refused, or what the file raises."""
    path = pathlib.Path(file)
    if not path.stem.isidentifier() or path.suffix != ".py":
        raise Refused(f"the file's name has to be a name of Python's with .py, as digits.py; it is {path.name}")
    if path.stem in sys.modules or path.stem in sys.stdlib_module_names:
        raise Refused(f"the file's name hides the module {path.stem}; give it another one")
    name_lines_of_backward(file)
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    classes = [value for value in vars(module).values()
               if inspect.isclass(value) and issubclass(value, Task) and value.__module__ == path.stem]
    leaves = [one for one in classes if not any(one is not other and issubclass(other, one) for other in classes)]
    if not leaves:
        raise Refused(f"{file} has no task: no class of it is made from footplate.Task")
    if len(leaves) > 1:
        raise Refused(f"{file} has {len(leaves)} tasks ({', '.join(one.__name__ for one in leaves)}); it has to have one")
    return leaves[0]


def metrics_of(task):
    return [metric if isinstance(metric, Metric) else Metric(metric) for metric in task.metrics]


def actions_of(task):
    """[(name, function, what @action has kept)], in the order in which they are written."""
    found = {}
    for one in reversed(task.__mro__):
        found.update({name: value for name, value in vars(one).items() if hasattr(value, "footplate_action")})
    return [(name, value, value.footplate_action) for name, value in found.items()]


def described_params(name, function, mark):
    params = []
    for param in list(inspect.signature(function, eval_str=True).parameters.values())[1:]:
        if param.name == "step":
            continue
        if param.annotation not in KINDS:
            raise Refused(f"the parameter {param.name!r} of the action {name!r} has to be annotated with bool, int, float or str")
        initial = "" if param.default is param.empty or param.default is None else json.dumps(param.default)
        params.append({"name": param.name, "kind": KINDS[param.annotation], "initial": initial,
                       "help": mark["params"].get(param.name, f"The argument {param.name}.")})
    return params


def described_setting(one):
    if not isinstance(one, Setting):
        raise Refused(f"settings has {kind_of(one)}; each has to be a footplate.Setting")
    if not isinstance(one.name, str):
        raise Refused(f"a setting's name is {one.name!r}; it has to be text")
    if not isinstance(one.initial, (bool, int, float, str)):
        raise Refused(f"the setting {one.name!r} begins with {kind_of(one.initial)}; it has to be a bool, int, float or str")

    def bound(field):
        value = getattr(one, field)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value)):
            raise Refused(f"the setting {one.name!r} has {field}={value!r}; it has to be a number, or None")
        return None if value is None or math.isinf(value) else value

    def texts(field):
        values = getattr(one, field)
        listed = None if isinstance(values, str) else list(values)
        if listed is None or not all(isinstance(value, str) for value in listed):
            raise Refused(f"the setting {one.name!r} has {field}={values!r}; it has to be a list of texts. Numbers have min and max")
        return listed

    for field in ("help", "unit", "applies"):
        if not isinstance(getattr(one, field), str):
            raise Refused(f"the setting {one.name!r} has {field}={getattr(one, field)!r}; it has to be text")
    return {"name": one.name, "initial": json.dumps(one.initial), "help": one.help, "unit": one.unit, "min": bound("min"),
            "max": bound("max"), "usual_min": bound("usual_min"), "usual_max": bound("usual_max"), "choices": texts("choices"),
            "aliases": texts("aliases"), "applies": one.applies}


def declaration(task):
    """As JSON, in the members of v1::Declaration."""
    settings = [described_setting(one) for one in task.settings]
    actions = [{"name": name, "help": mark["help"], "role": mark["role"], "dangerous": mark["dangerous"],
                "params": described_params(name, function, mark)} for name, function, mark in actions_of(task)]
    metrics = [{"name": metric.name, "mean": metric.mean, "in_training": metric.in_training} for metric in metrics_of(task)]
    sets = [{"name": one.name, "share": float(one.share), "help": one.help} for one in task.sets]
    return json.dumps({"unit": task.unit, "uses": list(task.uses), "settings": settings, "actions": actions, "metrics": metrics,
                       "sets": sets, "cacheable": bool(task.cacheable)})


# ---------------------------------------------------------------- a task


def kind_of(value):
    return "nothing" if value is None else f"a {type(value).__name__}"


def whole(value, what, least=None):
    """`value` as an int; numpy's are good, too."""
    try:
        number = operator.index(value)
    except TypeError:
        raise Refused(f"{what} is {value!r}; it has to be a whole number") from None
    if least is not None and number < least:
        raise Refused(f"{what} is {number}; it has to be at least {least}")
    return number


def text(value, what):
    if not isinstance(value, str):
        raise Refused(f"{what} is {value!r}; it has to be text")
    return value


def all_of(kind, given, function):
    given = list(given)
    for one in given:
        if not isinstance(one, kind):
            raise Refused(f"{function}() gave {kind_of(one)}; each has to be a footplate.{kind.__name__}")
        text(one.name, f"{function}(): a name")
    return given


def tensors_of(task):
    return [*all_of(Parameter, task.parameters(), "parameters"), *all_of(State, task.state(), "state")]


class Places:
    """Where a module has the tensors that footplate trains, averages and saves. It has to be these ones for the whole run."""

    def __init__(self, task):
        kept = set() if task.module is None else {id(one.tensor) for one in tensors_of(task)}
        self.places = [] if task.module is None else [
            (owner, name, tensor, f"{prefix}.{name}" if prefix else name) for prefix, module in task.module.named_modules()
            for owner in (module._parameters, module._buffers) for name, tensor in owner.items() if id(tensor) in kept]

    def check(self, module):
        for place, (owner, name, tensor, path) in enumerate(self.places):
            if name in owner and owner[name] is tensor:
                continue
            if not any(one is tensor for one in (*module.parameters(), *module.buffers())):
                raise Refused(f"the module's tensor {path!r} was replaced by another one, and footplate keeps the one that it was given: "
                              f"write into it, as in self.{name}.copy_(…)")
            self.places[place] = {name: tensor}, name, tensor, path  # it has moved, as weight_norm() does it


def not_kept(task):
    """Names of the tensors that the task's module saves and footplate doesn't. BatchNorm's count of batches is none of them: only a
    BatchNorm without a momentum uses it, and that one is refused."""
    if task.module is None:
        return []
    kept = {one.tensor.data_ptr() for one in tensors_of(task) if hasattr(one.tensor, "data_ptr")}
    return [name for name, tensor in task.module.state_dict(keep_vars=True).items()
            if hasattr(tensor, "data_ptr") and tensor.numel() > 0 and tensor.data_ptr() not in kept
            and not name.endswith("num_batches_tracked")]


def _some(names, most=4):
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


class Hosted:
    """One task as the rank calls it."""

    def __init__(self, task_class, read, device, seed, world_size, rank, folder, log):
        import torch
        if isinstance(sys.stdout, Lines) and sys.stdout.log is None:
            sys.stdout.log = log
        torch.manual_seed(seed)
        self.names = [f"task.{setting.name}" for setting in task_class.settings] + list(task_class.uses)
        self.metrics = metrics_of(task_class)
        self.task = task_class(Host(Settings(read, self.names), torch.device(device), seed, world_size, rank, folder,
                                    lambda text: log(in_utf8(text))))
        self.updates = task_class.update is not Task.update
        self.module_places = Places(self.task)
        if left_out := not_kept(self.task):
            log(f"checkpoints leave out these tensors of the task's module: {_some(left_out)}. List those that change in state()")
        self.statistic_names = [statistic.name for statistic in self.task.statistics()]

    def has(self, name):
        found = getattr(self.task, name, None)
        if found is not None and not callable(found):
            raise Refused(f"the task's {name} is {found!r}, and footplate calls {name}(); make it a method, or give the value "
                          "another name")
        return found is not None

    def parameters(self):
        return [(one.name, one.tensor, text(one.group, f"the group of the parameter {one.name!r}"))
                for one in all_of(Parameter, self.task.parameters(), "parameters")]

    def groups(self):
        return [(one.name, float(one.lr_factor), None if one.weight_decay is None else float(one.weight_decay), bool(one.is_table))
                for one in all_of(Group, self.task.groups(), "groups")]

    def state(self):
        return [(one.name, one.tensor, text(one.by, f"by of the state {one.name!r}")) for one in all_of(State, self.task.state(), "state")]

    def statistics(self):
        return [(one.name, [whole(size, f"the statistic {one.name!r} has a shape of which one size", 0) for size in one.shape])
                for one in all_of(Statistic, self.task.statistics(), "statistics")]

    def data(self):
        sets = self.task.data()
        sets = sets if isinstance(sets, (list, tuple)) else [sets]
        for one in sets:
            if not isinstance(one, DataSet):
                raise Refused(f"data() gave {kind_of(one)}; it has to give a footplate.DataSet, or a list of them")
        return [{"name": text(one.name, "data(): a name"), "order": text(one.order, f"data(): order of the data set {one.name!r}"),
                 "source": in_utf8(os.fspath(one.source)), "epoch": float(one.epoch),
                 **{field: whole(getattr(one, field), f"data(): {field} of the data set {one.name!r}", 0)
                    for field in ("training", "held_out", "bytes")},
                 "hash": whole(one.hash, f"data(): hash of the data set {one.name!r}") & (2**64 - 1)} for one in sets]

    def load(self, number, held_out, indexes, draws):
        batch = self.task.load(Samples(number, held_out, indexes, draws))
        if not isinstance(batch, Batch):
            batch = Batch(batch if isinstance(batch, (list, tuple)) else [batch], len(indexes))
        for place, tensor in enumerate(batch.tensors):
            if not isinstance(tensor, type(indexes)):
                raise Refused(f"load() gave {kind_of(tensor)} in place {place} of the batch; each has to be a tensor "
                              "(torch.tensor makes one)")
        return list(batch.tensors), float(batch.weight)

    def loss(self, tensors, weight, number, held_out):
        sums = Sums([metric.name for metric in self.metrics if held_out or metric.in_training], self.statistic_names,
                    [metric.name for metric in self.metrics if not (held_out or metric.in_training)])
        call = self.task.evaluate if held_out else self.task.loss
        value = call(Batch(tensors, weight, number, held_out), sums)
        if value is None:
            raise Refused(f"{call.__name__}() gave nothing: is a return missing? It has to give the sum of the loss over the batch, "
                          "one float tensor")
        if not held_out:
            self.module_places.check(self.task.module)
        return value, sums.metrics, () if held_out else sums.statistics

    def training(self, on):
        self.task.training(on)

    def update(self, statistics, skip):
        self.task.update(statistics, skip)

    def prepare(self, read):
        refusal = self.task.prepare(Settings(read, self.names))
        if refusal is not None and not isinstance(refusal, str):
            raise Refused(f"prepare() gave {refusal!r}; it has to give None where the settings are possible, else the reason as text")
        return in_utf8(refusal or "")

    def changed(self, read, step):
        self.task.changed(Settings(read, self.names), step)

    def call(self, name, arguments, step):
        answer = getattr(self.task, name)(**json.loads(arguments), step=step)
        return "" if answer is None else json.dumps(answer)

    def learning_rate(self, step):
        return self.task.learning_rate(step)

    def flops_per_weight(self):
        return float(self.task.flops_per_weight())
