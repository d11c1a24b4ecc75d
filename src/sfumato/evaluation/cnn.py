"""A small convolutional classifier, where torch is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from sfumato.evaluation.threads import one_thread


def has_torch() -> bool:
    """Say whether torch is installed."""
    return find_spec("torch") is not None


def _torch() -> Any:
    """Import torch only when it is needed; the core works without it."""
    return import_module("torch")


class SmallCNN(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Two convolutions with pooling and a dense layer, trained by Adam; takes flat unit pixels."""

    def __init__(
        self, shape: tuple[int, int, int], epochs: int = 5, seed: int = 0, width: int = 16
    ) -> None:
        self.shape = shape
        self.epochs = epochs
        self.seed = seed
        self.width = width

    def fit(self, x: NDArray[np.float32], y: NDArray[np.integer[Any]]) -> SmallCNN:
        """Train on labels 0, 1, …"""
        torch = _torch()
        nn = torch.nn
        self.classes_ = np.unique(y)
        height, width, channels = self.shape
        # Torch's own generator is left alone: a seed here must not fix anything elsewhere.
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self.network_ = nn.Sequential(
                nn.Conv2d(channels, self.width, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2, ceil_mode=True),
                nn.Conv2d(self.width, 2 * self.width, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2, ceil_mode=True),
                nn.Flatten(),
                nn.Linear(2 * self.width * -(-height // 4) * -(-width // 4), 128),
                nn.ReLU(),
                nn.Dropout(0.25),
                nn.Linear(128, len(self.classes_)),
            )
            self.scale_ = float(x.mean()), max(float(x.std()), 1e-6)
            optimizer = torch.optim.Adam(self.network_.parameters(), lr=1e-3)
            pixels, labels = self._images(x), torch.from_numpy(np.asarray(y, np.int64))
            steps = self.epochs * -(-len(pixels) // 128)
            rate = torch.optim.lr_scheduler.OneCycleLR(
                optimizer, 3e-3, total_steps=steps + 1, pct_start=0.2
            )
            for _ in range(self.epochs):
                for batch in torch.randperm(len(pixels)).split(128):
                    optimizer.zero_grad()
                    loss = nn.functional.cross_entropy(self.network_(pixels[batch]), labels[batch])
                    loss.backward()
                    optimizer.step()
                    rate.step()
            self.network_.eval()
        return self

    def predict_proba(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Give the probability of each class."""
        torch = _torch()
        with one_thread(), torch.no_grad():
            parts = [self.network_(part).softmax(dim=1) for part in self._images(x).split(1024)]
        return np.asarray(torch.cat(parts).numpy())

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.integer[Any]]:
        """Give the likeliest class."""
        return np.asarray(self.classes_[self.predict_proba(x).argmax(axis=1)])

    def _images(self, x: NDArray[np.float32]) -> Any:
        height, width, channels = self.shape
        mean, deviation = self.scale_
        grid = ((x - mean) / deviation).astype(np.float32).reshape(-1, height, width, channels)
        return _torch().from_numpy(grid).permute(0, 3, 1, 2)
