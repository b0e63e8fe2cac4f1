"""The peer of `scripts/bench ddp`: PyTorch DistributedDataParallel over gloo on the model of configs/kjv.lua.

Byte-level GPT (842,496 parameters: 4 layers, 4 heads, width 128, context 128, pre-norm, tanh-GELU, tied embedding), causal
scaled-dot-product attention, fused AdamW, clipping at 1, cosine schedule with warm-up: as a user of PyTorch would write
it. Starts its own ranks; rank 0 prints one JSON line.

    ddp.py CORPUS [--ranks 2] [--steps 150] [--skip 20] [--batch 32] [--threads 1] [--evaluate]
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as functional
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LAYERS, HEADS, WIDTH, CONTEXT = 4, 4, 128, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(WIDTH, 2))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x, y):
        h = self.tokens(x) + self.positions.weight[:x.shape[1]]
        for block in self.blocks:
            h = block(h)
        logits = functional.linear(self.norm(h), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, 256), y.reshape(-1))


def batch_of(data, count, generator):
    starts = torch.randint(len(data) - CONTEXT, (count,), generator=generator)
    rows = data[starts[:, None] + torch.arange(CONTEXT + 1)].long()
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def evaluate(model, held_out):
    """Mean loss in nats per byte over everything held out, on one rank."""
    total = count = 0
    rows = [held_out[i:i + CONTEXT + 1].long() for i in range(0, len(held_out) - CONTEXT, CONTEXT)]
    for i in range(0, len(rows), 64):
        chunk = torch.stack(rows[i:i + 64])
        total += float(model(chunk[:, :-1], chunk[:, 1:])) * len(chunk)
        count += len(chunk)
    return total / count


def train(options, rank):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=rank, world_size=options.ranks)
    text = torch.frombuffer(bytearray(open(options.corpus, "rb").read()), dtype=torch.uint8)
    cut = len(text) * 9 // 10
    training, held_out = text[:cut], text[cut:]
    model = DistributedDataParallel(Gpt(), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    warm_up = 100
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (step + 1) / warm_up if step < warm_up else
        0.5 * (1 + math.cos(math.pi * min(1, (step - warm_up) / max(1, options.steps - warm_up)))))
    generator = torch.Generator().manual_seed(100 + rank)
    share = options.batch // options.ranks

    began = begin = time.monotonic()
    for step in range(options.steps):
        if step == options.skip:
            begin = time.monotonic()
        x, y = batch_of(training, share, generator)
        loss = model(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 20 == 19:
            loss.item()
    end = time.monotonic()

    if rank == 0:
        report = {"tokens_per_s": options.batch * CONTEXT * (options.steps - options.skip) / (end - begin),
                  "steps": options.steps, "train_s": end - began, "loss": float(loss.detach()),
                  "parameters": sum(p.numel() for p in model.parameters())}
        if options.evaluate:
            report["held_out_loss"] = evaluate(model.module, held_out)
        print(json.dumps(report), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    for name, default in (("ranks", 2), ("steps", 150), ("skip", 20), ("batch", 32), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args()

    rank = os.environ.get("DDP_RANK")
    if rank is not None:
        return train(options, int(rank))
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, *sys.argv, "--store", f"{folder}/store"],
                                  env={**os.environ, "DDP_RANK": str(rank), "OMP_NUM_THREADS": str(options.threads)})
                 for rank in range(options.ranks)]
        sys.exit(max(process.wait() for process in ranks))


if __name__ == "__main__":
    main()
