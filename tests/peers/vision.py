"""The peer of `scripts/bench vision`: the network of docs/examples/vision in PyTorch DistributedDataParallel over gloo.

A residual block with BatchNorm on images of 8 x 8, each of a batch shifted by a random pixel in both directions, fused
AdamW, a rate that rises and falls: as a user of PyTorch would write it. Starts its own ranks; rank 0 prints one JSON line.

    vision.py DIGITS.csv [--ranks 2] [--steps 1000] [--skip 100] [--batch 192] [--threads 1]
"""

import argparse
import json
import time

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import own_ranks

CLASSES, SIDE, WIDTH, SHIFT, PEAK_LR = 10, 8, 16, 1, 0.01


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.Conv2d(WIDTH, WIDTH, 3, padding=1, bias=False) for _ in range(2))
        self.first_norm, self.second_norm = nn.BatchNorm2d(WIDTH), nn.BatchNorm2d(WIDTH)

    def forward(self, x):
        return (x + self.second_norm(self.second(self.first_norm(self.first(x)).relu()))).relu()


def shifted(images):
    """Each by its own draw."""
    wide = functional.pad(images, (SHIFT,) * 4).unfold(2, SIDE, 1).unfold(3, SIDE, 1)
    y, x = torch.randint(2 * SHIFT + 1, (2, len(images)))
    return wide[torch.arange(len(images)), :, y, x]


def read(path):
    """Images and classes to train on: each fifth line is held out."""
    with open(path, encoding="ascii") as file:
        rows = torch.tensor([[float(cell) for cell in line.split(",")] for number, line in enumerate(file) if number % 5 != 4])
    return rows[:, :-1].view(-1, 1, SIDE, SIDE) / 16, rows[:, -1].long()


def train(options, rank):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1 + rank)
    dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=rank, world_size=options.ranks)
    images, classes = read(options.digits)
    net = nn.Sequential(nn.Conv2d(1, WIDTH, 3, padding=1), Block(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(WIDTH * SIDE * SIDE // 4, CLASSES))
    model = DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_LR, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, max(0, min(3 * (step + 1) / options.steps, 1.5 * (1 - (step + 1) / options.steps)))))
    share = options.batch // options.ranks

    begin = time.monotonic()
    for step in range(options.steps):
        if step == options.skip:
            begin = time.monotonic()
        chosen = torch.randint(len(images), (share,))
        logits = model(shifted(images[chosen]))
        loss = functional.cross_entropy(logits, classes[chosen])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 100 == 99:
            loss.item()
    seconds = time.monotonic() - begin
    if rank == 0:
        print(json.dumps({"samples_per_s": options.batch * (options.steps - options.skip) / seconds, "loss": float(loss.detach())}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("digits")
    own_ranks.run(parser, train, ranks=2, steps=1000, skip=100, batch=192, threads=1)


if __name__ == "__main__":
    main()
