"""The peer of `scripts/bench fused`: the classifier of configs/classify.lua in PyTorch DistributedDataParallel over gloo.

Three data sets in each step, 128 + 24 + 8 samples. After every so many steps it is evaluated, in turn in three ways:

    fused      sums of all sets in one all_reduce
    tensors    the field reports' way: an all_reduce for each sum of each set, a timer around each call
    batches    the same after each batch, as trainers do that log while they evaluate

Starts its own ranks; rank 0 prints one JSON line with the seconds of training and of evaluation of each period, by way.

    evaluated.py IMAGES TABLE TABLE [--ranks 2] [--periods 30] [--every 25] [--batches 10] [--batch 200] [--threads 1]
"""

import argparse
import contextlib
import gzip
import json
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import own_ranks

WIDTH, CHANNELS, HELD_OUT_ONE_IN = 128, 16, 5
SHARES = (128, 24, 8)  # samples of a global batch
TIMER_S = 600


def images(folder, which):
    pixels = gzip.decompress((folder / f"{which}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{which}-labels-idx1-ubyte.gz").read_bytes())[8:]
    return torch.frombuffer(bytearray(pixels), dtype=torch.uint8).view(-1, 1, 28, 28) / 255, torch.tensor(list(labels))


def table(path):
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode().split()
    rows = torch.tensor([[float(cell) for cell in line.split(",")] for line in text if line.count(",") > 4 and line[-1].isdigit()])
    held_out = torch.arange(len(rows)) % HELD_OUT_ONE_IN == HELD_OUT_ONE_IN - 1
    x = (rows[:, :-1] - rows[:, :-1].mean(0)) / (rows[:, :-1].std(0) + 1e-6)
    y = rows[:, -1].long()
    return (x[~held_out], y[~held_out]), (x[held_out], y[held_out])


class Classifier(nn.Module):
    def __init__(self, sets):
        super().__init__()
        self.stems, self.heads = nn.ModuleList(), nn.ModuleList()
        for x, y in sets:
            stem = nn.Linear(x.shape[1], WIDTH) if x.dim() == 2 else nn.Sequential(
                nn.Conv2d(1, CHANNELS, 5, 2, 2), nn.GELU(), nn.Conv2d(CHANNELS, 2 * CHANNELS, 3, 2, 1), nn.GELU(), nn.Flatten(),
                nn.Linear(2 * CHANNELS * 49, WIDTH))
            self.stems.append(nn.Sequential(stem, nn.GELU()))
            self.heads.append(nn.Linear(WIDTH, int(y.max()) + 1))
        self.trunk = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))

    def one(self, number, x):
        x = self.stems[number](x)
        return self.heads[number](x + self.trunk(x))

    def forward(self, batches):
        return sum(functional.cross_entropy(self.one(number, x), y, reduction="sum", label_smoothing=0.02)
                   for number, (x, y) in enumerate(batches))


@contextlib.contextmanager
def timer():
    """What the field reports had around each call: a signal, should it take too long."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: sys.exit("a collective timed out"))
    signal.alarm(TIMER_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def reduce_each(sums):
    for value in sums:
        with timer():
            dist.all_reduce(value)


def fused(all_sums):
    together = torch.stack([value for sums in all_sums for value in sums])
    dist.all_reduce(together)
    return together.view(len(all_sums), -1).tolist()


def tensors(all_sums):
    for sums in all_sums:
        reduce_each(sums)
    return [[value.item() for value in sums] for sums in all_sums]


class Trainer:
    def __init__(self, options, rank):
        read = [(images(options.images, "train"), images(options.images, "t10k")), *map(table, options.tables)]
        self.training, self.held_out = zip(*read)
        self.options, self.rank = options, rank
        self.model = DistributedDataParallel(Classifier(self.training), gradient_as_bucket_view=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, weight_decay=0.2, fused=True)
        self.generator = torch.Generator().manual_seed(100 + rank)

    def step(self):
        batches = []
        for (x, y), share in zip(self.training, SHARES):
            rows = torch.randint(len(y), (share // self.options.ranks,), generator=self.generator)
            batches.append((x[rows], y[rows]))
        (self.model(batches) * (self.options.ranks / sum(SHARES))).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def sums_of(self, number, batch):
        """Loss, right answers, samples and batches of this rank's rows of one batch of a set; None behind its last one."""
        x, y = self.held_out[number]
        mine = slice(batch * self.options.batch + self.rank, min((batch + 1) * self.options.batch, len(y)), self.options.ranks)
        if batch * self.options.batch >= len(y):
            return None
        logits = self.model.module.one(number, x[mine])
        return [functional.cross_entropy(logits, y[mine], reduction="sum").double(), (logits.argmax(1) == y[mine]).sum().double(),
                torch.tensor(float(len(y[mine])), dtype=torch.float64), torch.ones((), dtype=torch.float64)]

    @torch.no_grad()
    def evaluate(self, way):
        self.model.eval()
        all_sums = []
        for number in range(len(self.held_out)):
            sums = [torch.zeros((), dtype=torch.float64) for _ in range(4)]
            for batch in range(self.options.batches):
                more = self.sums_of(number, batch)
                if more is None:
                    break
                if way == "batches":
                    reduce_each(more)
                sums = [a + b for a, b in zip(sums, more)]
            all_sums.append(sums)
        self.model.train()
        if way == "batches":
            return [[value.item() for value in sums] for sums in all_sums]
        return fused(all_sums) if way == "fused" else tensors(all_sums)


def train(options, rank):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=rank, world_size=options.ranks)
    trainer = Trainer(options, rank)
    ways = ("fused", "tensors", "batches")
    results = [trainer.evaluate(way) for way in ways]
    if any(abs(a - b) > 1e-6 * abs(a) + 1e-9 for other in results[1:] for x, y in zip(results[0], other) for a, b in zip(x[:3], y[:3])):
        sys.exit(f"the ways differ: {results}")
    for _ in range(options.every):
        trainer.step()
    seconds = {way: [] for way in ways}
    for period in range(options.periods):
        way = ways[(period + period // len(ways)) % len(ways)]
        began = time.monotonic()
        for _ in range(options.every):
            trainer.step()
        trained = time.monotonic()
        trainer.evaluate(way)
        seconds[way].append((trained - began, time.monotonic() - trained))
    if rank == 0:
        print(json.dumps({"seconds": seconds, "steps": options.every}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=pathlib.Path)
    parser.add_argument("tables", type=pathlib.Path, nargs=2)
    own_ranks.run(parser, train, ranks=2, periods=30, every=25, batches=10, batch=200, threads=1)


if __name__ == "__main__":
    main()
