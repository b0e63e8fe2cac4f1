"""The peer of `scripts/bench gpt2`: eager PyTorch on the model of configs/gpt2.lua, one process, one device.

GPT-2's 124 M parameters (12 layers, 12 heads, width 768, context 1024, vocabulary 50257, tied embedding, pre-norm,
tanh-GELU), bf16 autocast over float32 parameters, scaled-dot-product attention, fused AdamW, clipping at 1, zeroed
gradients kept: as a user of PyTorch would write it. Prints one JSON line.

    gpt2.py CORPUS [--device cuda] [--steps 60] [--skip 20] [--batch 64] [--layers 12] [--heads 12] [--width 768]
            [--context 1024] [--vocabulary 50257] [--threads 0]
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn

from gpt import Gpt, Shape, random_rows, read_text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--device", default="cuda")
    for name, default in (("steps", 60), ("skip", 20), ("batch", 64), ("layers", 12), ("heads", 12), ("width", 768),
                          ("context", 1024), ("vocabulary", 50257), ("threads", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    training, _ = read_text(options.corpus)
    model = Gpt(Shape(options.layers, options.heads, options.width, options.context, options.vocabulary)).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    generator = torch.Generator().manual_seed(100)
    on_device = options.device != "cpu"

    moments = []  # on a device: events, so that measuring keeps no step waiting
    for _ in range(options.steps):
        rows = random_rows(training, options.batch, options.context, generator)
        if on_device:
            rows = rows.pin_memory().to(options.device, non_blocking=True)
        with torch.autocast(options.device.split(":")[0], dtype=torch.bfloat16):
            loss = model(rows[:, :-1], rows[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if on_device:
            moments.append(torch.cuda.Event(enable_timing=True))
            moments[-1].record()
        else:
            moments.append(time.monotonic())
    if on_device:
        torch.cuda.synchronize()
        moments = [moments[0].elapsed_time(moment) / 1e3 for moment in moments]
    steps = [b - a for a, b in zip(moments[options.skip:], moments[options.skip + 1:])]
    taken = moments[-1] - moments[options.skip]
    print(json.dumps({"tokens_per_s": options.batch * options.context * len(steps) / taken, "steps": len(steps),
                      "step_ms": 1e3 * statistics.median(steps), "least_ms": 1e3 * min(steps), "most_ms": 1e3 * max(steps),
                      "loss": float(loss.detach()), "parameters": sum(p.numel() for p in model.parameters()),
                      "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
