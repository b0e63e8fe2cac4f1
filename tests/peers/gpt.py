"""The model that the peers train: the one of footplate's configs, as a user of PyTorch would write it."""

from dataclasses import dataclass

import torch
import torch.nn.functional as functional
from torch import nn


@dataclass(frozen=True)
class Shape:
    layers: int
    heads: int
    width: int
    context: int
    vocabulary: int


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width, self.heads = shape.width, shape.heads
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
    """Pre-norm, tanh-GELU, causal scaled-dot-product attention, tied embedding; returns the mean loss in nats."""

    def __init__(self, shape):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(shape.vocabulary, shape.width), nn.Embedding(shape.context, shape.width)
        self.blocks, self.norm = nn.ModuleList(Block(shape) for _ in range(shape.layers)), nn.LayerNorm(shape.width)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x, y):
        h = self.tokens(x) + self.positions.weight[:x.shape[1]]
        for block in self.blocks:
            h = block(h)
        logits = functional.linear(self.norm(h), self.tokens.weight)
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), y.reshape(-1))


def read_text(path):
    """The bytes of a file: those for training, those held out."""
    with open(path, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    cut = len(text) * 9 // 10
    return text[:cut], text[cut:]


def random_rows(data, count, context, generator):
    """`count` random rows of context + 1 bytes, int64."""
    starts = torch.randint(len(data) - context, (count,), generator=generator)
    return data[starts[:, None] + torch.arange(context + 1)].long()
