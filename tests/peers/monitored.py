"""The peer of `scripts/bench monitoring`: PyTorch DistributedDataParallel over gloo, watched as the field reports watched it.

The model, batch and loop of ddp.py. In every second block of steps it is watched: torch.profiler over one step of 50 for its
operations, one .item() for each sample's loss, and a broadcast from rank 0 for each metric of each step. Starts its own ranks;
rank 0 prints one JSON line with the seconds of each block, watched or not in turn (on off off on).

    monitored.py CORPUS [--ranks 2] [--blocks 24] [--batch 4] [--threads 1]
"""

import argparse
import json
import resource
import time

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import own_ranks
from ddp import CONTEXT, SHAPE
from gpt import Gpt, random_rows, read_text

BLOCK = PROFILED_ONCE_IN = 50  # steps
WARM_UP = 20


class SampleLosses(Gpt):
    """The same model; returns each sample's mean loss."""

    def forward(self, x, y):
        h = self.tokens(x) + self.positions.weight[:x.shape[1]]
        for block in self.blocks:
            h = block(h)
        logits = functional.linear(self.norm(h), self.tokens.weight)
        losses = functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), y.reshape(-1), reduction="none")
        return losses.view(len(y), -1).mean(1)


class Trainer:
    def __init__(self, options, rank):
        training, _ = read_text(options.corpus)
        self.training, self.share = training, options.batch // options.ranks
        self.generator = torch.Generator().manual_seed(100 + rank)
        self.model = DistributedDataParallel(SampleLosses(SHAPE), gradient_as_bucket_view=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)

    def step(self):
        rows = random_rows(self.training, self.share, CONTEXT, self.generator)
        losses = self.model(rows[:, :-1], rows[:, 1:])
        losses.mean().backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return losses.detach(), norm

    def watched_step(self, number):
        began = time.monotonic()
        operations = 0.0
        if number % PROFILED_ONCE_IN == 0:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
                                        with_flops=True) as profile:
                losses, norm = self.step()
            operations = float(sum(event.flops for event in profile.key_averages()))
        else:
            losses, norm = self.step()
        loss = sum(sample.item() for sample in losses) / len(losses)
        took = time.monotonic() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        for metric in (loss, norm.item(), self.optimizer.param_groups[0]["lr"], number / 1000, 1e3 * took,
                       self.share * CONTEXT / took, memory, operations):
            dist.broadcast(torch.tensor([metric], dtype=torch.float64), src=0)


def train(options, rank):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=rank, world_size=options.ranks)
    trainer = Trainer(options, rank)
    for _ in range(WARM_UP):
        trainer.step()
    trainer.watched_step(0)  # the profiler's own first time
    seconds = []
    for block in range(options.blocks):
        began = time.monotonic()
        for number in range(BLOCK):
            if block % 4 in (0, 3):
                trainer.watched_step(number)
            else:
                trainer.step()
        seconds.append(time.monotonic() - began)
    if rank == 0:
        print(json.dumps({"seconds": seconds, "steps": BLOCK}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    own_ranks.run(parser, train, ranks=2, blocks=24, batch=4, threads=1)


if __name__ == "__main__":
    main()
