"""Handwritten digits of 8 x 8 pixels, recognised by a small convolutional network; each fifth line is held out."""
import footplate
import torch
from torch import nn
from torch.nn import functional


class Digits(footplate.Task):
    unit = "images"
    settings = [footplate.Setting("data", "digits.csv", "The file with the images.", applies="fixed"),
                footplate.Setting("smoothing", 0.0, "Labels are smoothed by this much.", min=0, max=0.9, usual_max=0.3)]
    metrics = ["accuracy"]

    def __init__(self, host):
        with open(host.settings["task.data"], encoding="ascii") as file:
            self.rows = torch.tensor([[float(cell) for cell in line.split(",")] for line in file])
        self.module = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                                    nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)).to(host.device)

    def data(self):
        return footplate.DataSet("digits", training=len(self.rows) // 5 * 4, held_out=len(self.rows) // 5)

    def load(self, samples):
        i = samples.indexes
        rows = self.rows[i * 5 + 4 if samples.held_out else i // 4 * 5 + i % 4]
        return rows[:, :64].view(-1, 1, 8, 8) / 16, rows[:, 64].long()

    def loss(self, batch, sums):
        images, labels = batch.tensors
        logits = self.module(images)
        sums.add("accuracy", (logits.argmax(1) == labels).sum())
        return functional.cross_entropy(logits, labels, reduction="sum",
                                        label_smoothing=0 if batch.held_out else self.smoothing)

    def changed(self, now, step):
        self.smoothing = now["task.smoothing"]
