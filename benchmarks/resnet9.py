"""The ResNet9 of ffcv, which papers train on synthetic CIFAR-10 and test on the real one.

    python benchmarks/resnet9.py cifar10.npz 0.25 4 10000   # width, epochs, pictures

Full width costs 290 million multiply-adds a picture, so on two cores a narrower one is trained.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from harness import timed

Images = NDArray[np.uint8]
_PEAK = 1e-3  # of the learning rate, for each picture of a batch: ffcv's 0.5 at 512
_SHIFT = 3  # pixels
_MOST_SCALED_BY = 5_000  # pictures that mean and deviation of the pixels are taken from


class ResNet9:
    """Trained by SGD in one cycle, on flipped and shifted pictures; takes uint8, channels last."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        epochs: int = 8,
        seed: int = 0,
        width: float = 1.0,
        batch: int = 128,
        flips: bool = True,
    ) -> None:
        self.shape = shape
        self.epochs = epochs
        self.seed = seed
        self.width = width
        self.batch = batch
        self.flips = flips  # not for digits

    def fit(self, images: Images, labels: NDArray[np.integer[Any]]) -> ResNet9:
        self.classes_, codes = np.unique(labels, return_inverse=True)
        targets = torch.from_numpy(codes)
        some = images[:: -(-len(images) // _MOST_SCALED_BY)] / np.float32(255)
        self.scale_ = float(some.mean()), max(float(some.std()), 1e-6)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = _network(self.shape[2], len(self.classes_), self.width)
            self.network_ = network.to(memory_format=torch.channels_last)
            batch = min(self.batch, len(images))
            peak = _PEAK * batch
            optimizer = torch.optim.SGD(
                network.parameters(), peak, momentum=0.9, nesterov=True, weight_decay=5e-4
            )
            steps = self.epochs * (len(images) // batch)
            rate = torch.optim.lr_scheduler.OneCycleLR(
                optimizer,
                peak,
                total_steps=steps + 1,
                pct_start=0.25,
                anneal_strategy="linear",
                cycle_momentum=False,
            )
            for _ in range(self.epochs):
                order = torch.randperm(len(images))
                for rows in order[: len(images) // batch * batch].split(batch):
                    pixels = self._varied(self._tensor(images[rows.numpy()]))
                    loss = functional.cross_entropy(
                        network(pixels), targets[rows], label_smoothing=0.1
                    )
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    rate.step()
        network.eval()
        return self

    def predict(self, images: Images) -> NDArray[Any]:
        with torch.inference_mode():
            parts = [
                self.network_(self._tensor(images[start : start + 1000])).argmax(dim=1)
                for start in range(0, len(images), 1000)
            ]
        return np.asarray(self.classes_[torch.cat(parts).numpy()])

    def score(self, images: Images, labels: NDArray[np.integer[Any]]) -> float:
        return float((self.predict(images) == labels).mean())

    def _tensor(self, images: Images) -> Tensor:
        mean, deviation = self.scale_
        grid = torch.from_numpy(images.reshape(-1, *self.shape)).permute(0, 3, 1, 2)
        return (grid.float() / 255 - mean) / deviation

    def _varied(self, pixels: Tensor) -> Tensor:
        """Flip half of the pictures, and shift each over its mirrored edges."""
        count, _, height, width = pixels.shape
        if self.flips:
            flipped = torch.rand(count) < 0.5
            pixels = torch.where(flipped[:, None, None, None], pixels.flip(3), pixels)
        padded = functional.pad(pixels, [_SHIFT] * 4, mode="reflect").permute(0, 2, 3, 1)
        top, left = torch.randint(0, 2 * _SHIFT + 1, (2, count, 1))
        rows, columns = top + torch.arange(height), left + torch.arange(width)
        shifted = padded[torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None]]
        return shifted.permute(0, 3, 1, 2)


class _Residual(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


def _network(channels: int, classes: int, width: float) -> nn.Sequential:
    narrow, middle, wide = (round(width * size) for size in (64, 128, 256))
    return nn.Sequential(
        _conv(channels, narrow),
        _conv(narrow, middle, kernel=5, stride=2, padding=2),
        _Residual(_conv(middle, middle), _conv(middle, middle)),
        _conv(middle, wide),
        nn.MaxPool2d(2),
        _Residual(_conv(wide, wide), _conv(wide, wide)),
        _conv(wide, middle, padding=0),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(middle, classes, bias=False),
        _Fifth(),
    )


def _conv(
    given: int, made: int, kernel: int = 3, stride: int = 1, padding: int = 1
) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(given, made, kernel, stride, padding, bias=False),
        nn.BatchNorm2d(made),
        nn.ReLU(inplace=True),
    )


class _Fifth(nn.Module):
    """Maxima over a picture are large: a fifth of the logits keeps the first steps small."""

    def forward(self, x: Tensor) -> Tensor:
        return x / 5


def main() -> None:
    file, width, epochs, count = sys.argv[1], *map(float, sys.argv[2:5])
    with np.load(file) as arrays:
        data = dict(arrays)
    train = slice(int(count))
    learner = ResNet9((32, 32, 3), int(epochs), width=width)
    with timed() as taken:
        learner.fit(data["train_x"][train], data["train_y"][train])
    accuracy = learner.score(data["test_x"], data["test_y"])
    print(f"width {width:g}, {epochs:g} epochs of {count:g}: {accuracy:.4f}", taken)


if __name__ == "__main__":
    main()
