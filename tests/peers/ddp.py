"""The peer of `scripts/bench ddp`: PyTorch DistributedDataParallel over gloo on the model of configs/kjv.lua, or a larger one.

Byte-level GPT (kjv: 842,496 parameters, 4 layers, 4 heads, width 128, context 128, pre-norm, tanh-GELU, tied embedding),
causal scaled-dot-product attention, fused AdamW, clipping at 1, cosine schedule with warm-up: as a user of PyTorch would
write it, eager or compiled, in float32 or under autocast. Starts its own ranks; rank 0 prints one JSON line.

    ddp.py CORPUS [--size kjv|256|384] [--precision fp32|bf16] [--compile] [--evaluate]
           [--ranks 2] [--steps 150] [--skip 20] [--batch 32] [--threads 1]
"""

import argparse
import json
import math
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import own_ranks
from gpt import Gpt, Shape, random_rows, read_text

SIZES = {"kjv": Shape(layers=4, heads=4, width=128, context=128, vocabulary=256),
         "256": Shape(layers=6, heads=8, width=256, context=128, vocabulary=256),
         "384": Shape(layers=8, heads=6, width=384, context=256, vocabulary=256)}


@torch.no_grad()
def evaluate(model, held_out, context):
    """Mean loss in nats per byte over everything held out, on one rank."""
    total = count = 0
    rows = [held_out[i:i + context + 1].long() for i in range(0, len(held_out) - context, context)]
    for i in range(0, len(rows), 64):
        chunk = torch.stack(rows[i:i + 64])
        total += float(model(chunk[:, :-1], chunk[:, 1:])) * len(chunk)
        count += len(chunk)
    return total / count


def train(options, rank):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=rank, world_size=options.ranks)
    training, held_out = read_text(options.corpus)
    shape = SIZES[options.size]
    model = DistributedDataParallel(Gpt(shape), gradient_as_bucket_view=True)
    step_model = torch.compile(model) if options.compile else model
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
        rows = random_rows(training, share, shape.context, generator)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            loss = step_model(rows[:, :-1], rows[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 20 == 19:
            loss.item()
    end = time.monotonic()

    if rank == 0:
        report = {"tokens_per_s": options.batch * shape.context * (options.steps - options.skip) / (end - begin),
                  "steps": options.steps, "train_s": end - began, "loss": float(loss.detach()),
                  "parameters": sum(p.numel() for p in model.parameters())}
        if options.evaluate:
            report["held_out_loss"] = evaluate(model.module, held_out, shape.context)
        print(json.dumps(report), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--size", choices=SIZES, default="kjv")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--evaluate", action="store_true")
    own_ranks.run(parser, train, ranks=2, steps=150, skip=20, batch=32, threads=1)


if __name__ == "__main__":
    main()
