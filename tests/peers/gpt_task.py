"""The peer's model as a task of footplate's, for `scripts/bench python`: what ddp.py trains, in the same module."""

import os

import footplate
import torch

from gpt import Gpt, Shape, read_text

CONTEXT = 128


class GptTask(footplate.Task):
    unit = "tokens"
    settings = [footplate.Setting("corpus", "", "The file with the text.", applies="fixed")]

    def __init__(self, host):
        corpus = host.settings["task.corpus"]
        self.texts = read_text(corpus)
        self.source, self.bytes = corpus, os.path.getsize(corpus)
        self.module = Gpt(Shape(layers=4, heads=4, width=128, context=CONTEXT, vocabulary=256)).to(host.device)

    def data(self):
        training, held_out = self.texts
        return footplate.DataSet("text", training=len(training) - CONTEXT, held_out=len(held_out) // CONTEXT - 1, order="random",
                                 epoch=len(training) / CONTEXT, source=self.source, bytes=self.bytes)

    def load(self, samples):
        starts = samples.indexes * CONTEXT if samples.held_out else samples.indexes
        rows = self.texts[samples.held_out][starts[:, None] + torch.arange(CONTEXT + 1)].long()
        return footplate.Batch([rows], len(rows) * CONTEXT)

    def loss(self, batch, sums):
        rows = batch.tensors[0]
        return self.module(rows[:, :-1], rows[:, 1:]) * batch.weight
