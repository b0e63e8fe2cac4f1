"""A task: a model, its data and its loss. Footplate trains it. The same interface as include/footplate/task.h, in Python."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

# ---------------------------------------------------------------- what a task declares, before it is made


@dataclass(frozen=True)
class Setting:
    """A setting of the task's own: task.NAME. It is in the help, in completion, in the journal and in checkpoints."""
    name: str
    initial: bool | int | float | str  # its kind is the setting's
    help: str  # one or two full sentences
    _: KW_ONLY
    unit: str = ""
    min: float | None = None  # closed range of a number
    max: float | None = None
    usual_min: float | None = None  # beyond it the console asks once
    usual_max: float | None = None
    choices: Sequence[str] = ()  # of a text
    aliases: Sequence[str] = ()  # names that people will type
    applies: str = "step"  # "step": at the agreed step, "restart", or "fixed" for the run


@dataclass(frozen=True)
class Set:
    """One of several data sets that a run trains on at once. Its setting data.share.NAME says how much of each step comes from it,
    in proportion to the others'; it is live. Its metrics are data/NAME/… and eval/NAME/…."""
    name: str
    share: float = 1.0  # data.share.NAME at first; 0: it is only evaluated
    help: str = ""  # what it holds; a full sentence, or nothing


@dataclass(frozen=True)
class Metric:
    """A number beside the loss: train/NAME and eval/NAME, and of several data sets data/SET/NAME and eval/SET/NAME."""
    name: str
    mean: bool = True  # its sum is divided by the weight of what was computed; False: the sum itself
    in_training: bool = True  # False: evaluate() alone counts it, there is no train/NAME


def action(help: str, *, role: str = "operate", dangerous: bool = False, **params: str):
    """A method that the console can call on all ranks before one step, as task.NAME{ … }. It is called with `step` and the
    arguments by name. Its parameters are bool, int, float or str, as annotated; `params` has the help of each. What it returns
    goes to whoever asked, as JSON."""
    def mark(method):
        method.footplate_action = {"help": help, "role": role, "dangerous": dangerous, "params": params}
        return method
    return mark


def missing(task, function: str) -> str:
    """What is said of a function that the task has to have; with the name that it may be written by."""
    own = [name for one in type(task).__mro__ if one.__module__ != __name__ for name in vars(one)]
    near = difflib.get_close_matches(function, own, 1)
    return f"the task has no {function}()" + (f"; did you mean it by {near[0]}()?" if near else "")


# ---------------------------------------------------------------- what a task has


_TABLES = "tables"


@dataclass(frozen=True)
class Parameter:
    """A trained tensor: a float32 leaf that requires a gradient, contiguous, never replaced; equal on all ranks at first. With
    train.param_dtype = "bf16" it becomes bfloat16 once the task is made, if it is a matrix and no table."""
    name: str
    tensor: Any
    group: str = ""  # of Task.groups(); empty: none


@dataclass(frozen=True)
class Group:
    """How the optimizer treats some parameters."""
    name: str
    lr_factor: float = 1.0  # times the learning rate of the step
    weight_decay: float | None = None  # in place of optim.weight_decay; None: that for matrices, none for vectors
    is_table: bool = False  # its matrices are tables of rows, as embeddings are: optim.kind = "muon" leaves them to AdamW


@dataclass(frozen=True)
class State:
    """A tensor beside the parameters that lives as long as the run: in checkpoints, equal on all ranks. float32; one that loss()
    doesn't write may also be float64, int64, uint8 or bool. It is written in place, never replaced."""
    name: str
    tensor: Any
    by: str = "nobody"  # written by "forward" (averaged over the ranks after each step), by "update", or by "nobody"


@dataclass(frozen=True)
class Statistic:
    """Floats that loss() adds to, and that all ranks add up with the gradients: update() gets the sum."""
    name: str
    shape: Sequence[int]


@dataclass(frozen=True)
class DataSet:
    name: str  # of several: as in Task.sets
    training: int = 0  # samples
    held_out: int = 0  # samples; 0: it is never evaluated
    order: str = "shuffled"  # each sample once an epoch, "random": any at any draw, "counted": the number of the draw
    epoch: float = 0  # samples that make one pass; 0: `training`
    hash: int = 0  # of what it holds, the same on every host; 0: not known
    source: str = ""  # for people: the path
    bytes: int = 0  # of `source`


@dataclass(frozen=True)
class Samples:
    """Samples to load: some of a step's batch, or of what is held out. All are of one data set."""
    set: int  # its place in data()
    held_out: bool
    indexes: Any  # int64 tensor, in [0, training) or [0, held_out) of the set
    draws: Any  # int64 tensor, another number for each sample in each epoch: what augmentation draws its numbers from


@dataclass
class Batch:
    """What goes through the model at once."""
    tensors: Sequence[Any]
    weight: float  # tokens, images, …: what loss and gradients are divided by, once added up
    set: int = 0
    held_out: bool = False


# ---------------------------------------------------------------- what footplate offers a task


class Settings(Mapping):
    """Settings by their full names: settings["task.dropout"]. It has the task's own and those of `Task.uses`; while a function
    that is given them runs, and in Task.__init__, also all the others: settings["train.batch_size"]."""

    def __init__(self, read: Callable[[str], Any], names: Sequence[str]):
        self._read = read
        self._values = {name: read(name) for name in names}

    def __getitem__(self, name):
        if name not in self._values:
            self._values[name] = self._read(name)
        return self._values[name]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __repr__(self):
        return f"Settings({self._values})"


@dataclass(frozen=True)
class Host:
    """What a task is made with."""
    settings: Settings  # at the start
    device: Any  # torch.device: where parameters and states belong
    seed: int  # run.seed; torch.manual_seed() was called with it
    world_size: int  # at the start; ranks may be lost and come back
    rank: Callable[[], int]  # of now. For files alone: rank 0 writes what there is to be once
    folder: str  # the run's, for files; empty: it has none
    log: Callable[[str], None]  # a line in this rank's log; print() writes there, too


class Sums:
    """Where loss() and evaluate() put what they count. Sums stay on the device; nothing waits for it."""

    def __init__(self, metrics: Sequence[str], statistics: Sequence[str] = (), of_evaluations_alone: Sequence[str] = ()):
        self._metrics, self._statistics, self._of_evaluations_alone = metrics, statistics, of_evaluations_alone
        self.metrics, self.statistics = [], []

    def add(self, metric: str, sum: Any):
        """`sum`: a tensor of one element, over the batch."""
        if metric in self._of_evaluations_alone:
            raise ValueError(f"sums.add({metric!r}): that metric is of evaluations alone (Metric(in_training=False)); "
                             "add it only where batch.held_out is true")
        if metric not in self._metrics:
            raise ValueError(f"sums.add({metric!r}): the task declares {_listed('metric', self._metrics)}")
        self.metrics.append((metric, sum))

    def add_statistic(self, statistic: str, values: Any):
        """`values`: of the statistic's shape. Nothing comes of it while evaluating."""
        if statistic not in self._statistics:
            raise ValueError(f"sums.add_statistic({statistic!r}): the task has {_listed('statistic', self._statistics)}")
        self.statistics.append((statistic, values))


def _listed(what: str, names: Sequence[str]) -> str:
    return f"the {what}s {', '.join(names)}" if names else f"no {what}"


# ---------------------------------------------------------------- the task


class Task:
    """What is trained. The file that run.task names has one class made from this one. Footplate makes one in each rank, and a
    second one where evaluations run beside training (eval.async).

    All ranks have to come to the same: what a task does follows from the settings, the seed and the samples it is asked for,
    never from a rank's number or from what it was asked before. What load(), loss() and learning_rate() raise fails the step on
    all ranks, with the line and the exception; nothing is written, no rank hangs. What update() raises ends the run: by then the
    optimizer writes."""

    unit: str = "samples"  # what a batch's weight counts: "tokens", "images"
    uses: Sequence[str] = ()  # settings of footplate's that only some tasks read: "model.width"
    settings: Sequence[Setting] = ()
    metrics: Sequence[Metric | str] = ()
    sets: Sequence[Set] = ()  # where there are several; data() gives these, in this order
    cacheable: bool = False  # whether data.cache may keep what load() gives: it follows from samples.indexes, and not from the
    #                          draws; each tensor has a row for each sample, and all samples of a set have one shape and weight

    module: Any = None  # torch.nn.Module, set in __init__: its parameters are trained, its buffers are kept

    def __init__(self, host: Host):
        """Sets self.module. Random numbers come from host.seed already."""

    def parameters(self) -> Sequence[Parameter]:
        """The same tensors at every call, in one order on all ranks."""
        if self.module is None:
            raise ValueError("the task has no parameters: set self.module in __init__, or write parameters()")
        tables = self._tables()
        return [Parameter(name, tensor, _TABLES if id(tensor) in tables else "") for name, tensor in self.module.named_parameters()
                if tensor.requires_grad]

    def groups(self) -> Sequence[Group]:
        """By default the module's embeddings are tables."""
        return [Group(_TABLES, is_table=True)] if self._tables() else []

    def _tables(self):
        """Ids of the weights of embeddings, where groups() is the one above."""
        if self.module is None or type(self).groups is not Task.groups:
            return set()
        import torch
        return {id(module.weight) for module in self.module.modules() if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag))}

    def state(self) -> Sequence[State]:
        """By default the float32 buffers that the module saves: BatchNorm's statistics, which forward writes. What else the module
        has is in no checkpoint: frozen parameters, buffers of other types. The log names it."""
        if self.module is None:
            return []
        for name, module in self.module.named_modules():
            if getattr(module, "track_running_stats", False) and getattr(module, "momentum", 0) is None:
                raise ValueError(f"the {type(module).__name__} '{name or 'self.module'}' has momentum=None: its statistics depend on the number of "
                                 "batches, which no checkpoint has. Give it one, as in momentum=0.1")
        saved = self.module.state_dict(keep_vars=True)
        return [State(name, tensor, "forward") for name, tensor in self.module.named_buffers()
                if name in saved and str(tensor.dtype) == "torch.float32"]

    def statistics(self) -> Sequence[Statistic]:
        return []

    def data(self) -> DataSet | Sequence[DataSet]:
        """A moment's work, called once."""
        raise NotImplementedError(missing(self, "data"))

    def load(self, samples: Samples) -> Batch | Sequence[Any]:
        """The tensors of these samples, made on the processors, or a Batch of them with its weight: without one the weight is
        the number of samples. A pure function of `samples`; any thread."""
        raise NotImplementedError(missing(self, "load"))

    def loss(self, batch: Batch, sums: Sums) -> Any:
        """The sum of the loss over the batch's weight: one float, differentiable."""
        raise NotImplementedError(missing(self, "loss"))

    def evaluate(self, batch: Batch, sums: Sums) -> Any:
        """The same for what is held out, without gradients."""
        return self.loss(batch, sums)

    def training(self, on: bool):
        """Before loss() with True, before evaluate() with False: the model's mode."""
        if self.module is not None:
            self.module.train(on)

    def update(self, statistics: Sequence[Any], skip: Any):
        """After each step, once all parameters are those of that step, with the sums over all ranks, in the order of
        statistics(); also where there are none. Writes states of "update". `skip`: one float on the device; where it is 1,
        nothing may be written."""

    def changed(self, now: Settings, step: int):
        """Settings are these from `step` on. Before the first step, too."""

    # A task may also have:
    #   prepare(after: Settings) -> str     whether settings may become these: None or "", else the reason. It changes nothing,
    #                                       and may run while loss() does
    #   learning_rate(step) -> float        of a step, instead of sched.*: before optim.lr_scale; None: sched.* says it
    #   flops_per_weight() -> float         of forward and backward for one unit of weight
