"""The peer of `scripts/bench gpt2`: eager PyTorch on the model of configs/gpt2.lua, one process, one device.

GPT-2's 124 M parameters (12 layers, 12 heads, width 768, context 1024, vocabulary 50257, tied embedding, pre-norm,
tanh-GELU), bf16 autocast over float32 parameters, scaled-dot-product attention, fused AdamW, clipping at 1, zeroed
gradients kept: as a user of PyTorch would write it. Prints one JSON line.

    gpt2.py CORPUS [--device cuda] [--steps 60] [--skip 20] [--batch 64] [--layers 12] [--heads 12] [--width 768]
            [--context 1024] [--vocabulary 50257] [--threads 0]
"""

import argparse
import contextlib
import json
import statistics
import time

import torch
import torch.nn.functional as functional
from torch import nn


class Block(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, 2))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(options.vocabulary, options.width), nn.Embedding(options.context, options.width)
        self.blocks = nn.ModuleList(Block(options.heads, options.width) for _ in range(options.layers))
        self.norm = nn.LayerNorm(options.width)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x, y):
        h = self.tokens(x) + self.positions.weight[:x.shape[1]]
        for block in self.blocks:
            h = block(h)
        logits = functional.linear(self.norm(h), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), y.reshape(-1))


def batch_of(data, options, generator):
    starts = torch.randint(len(data) - options.context, (options.batch,), generator=generator)
    rows = data[starts[:, None] + torch.arange(options.context + 1)].long()
    if options.device != "cpu":
        rows = rows.pin_memory().to(options.device, non_blocking=True)
    return rows[:, :-1], rows[:, 1:]


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
    with open(options.corpus, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    training = text[:len(text) * 9 // 10]
    model = Gpt(options).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    generator = torch.Generator().manual_seed(100)
    synchronize = torch.cuda.synchronize if options.device != "cpu" else lambda: None

    moments = []
    for _ in range(options.steps):
        x, y = batch_of(training, options, generator)
        with torch.autocast(options.device.split(":")[0], dtype=torch.bfloat16):
            loss = model(x, y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        synchronize()
        moments.append(time.monotonic())
    steps = [b - a for a, b in zip(moments[options.skip:], moments[options.skip + 1:])]
    taken = moments[-1] - moments[options.skip]
    with contextlib.suppress(AttributeError):
        torch.cuda.empty_cache()
    print(json.dumps({"tokens_per_s": options.batch * options.context * len(steps) / taken, "steps": len(steps),
                      "step_ms": 1e3 * statistics.median(steps), "least_ms": 1e3 * min(steps), "most_ms": 1e3 * max(steps),
                      "loss": float(loss.detach()), "parameters": sum(p.numel() for p in model.parameters()),
                      "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
