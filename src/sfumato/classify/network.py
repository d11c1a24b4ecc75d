"""The convolutional network and its clipped gradients."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sfumato.classify.learner import ClassLearner
from sfumato.data.batch import Batch
from sfumato.methods.spaces import ImageSpace
from sfumato.privacy.gradients import clipped_gradients

_DENSE = 32
_LARGE = 16  # pixels


def network(height: int, width: int, channels: int, classes: int) -> nn.Module:
    """Make the network. Large images are halved first; any size comes down to 4 x 4 in the end."""
    halved = [nn.AvgPool2d(2)] if min(height, width) >= _LARGE else []
    return nn.Sequential(
        *halved,
        nn.Conv2d(channels, 16, 5, stride=2, padding=2),
        nn.Tanh(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.Tanh(),
        nn.AdaptiveMaxPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 16, _DENSE),
        nn.Tanh(),
        nn.Linear(_DENSE, classes),
    )


class NetworkLearner(ClassLearner):
    """A network in training."""

    piece = 512

    def __init__(self, space: ImageSpace, seed: int, about: dict[str, Any]) -> None:
        self.space = space
        self._shape = space.codec.shape
        self._about = about
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = network(*self._shape, space.class_cells)

    def describe(self) -> dict[str, Any]:
        """Give the settings."""
        return self._about

    def inputs(self, batch: Batch) -> NDArray[np.float32]:
        """Give images by (row, channel, height, width), from -1 to 1."""
        grid = batch.unit.reshape(-1, *self._shape).transpose(0, 3, 1, 2)
        return np.ascontiguousarray(2 * grid - 1, np.float32)

    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        """Sum the clipped gradients, layer by layer.

        In double precision: what rows that are computed together change of each other is some
        1e-13 of a gradient, far below the slack of clipping.
        """
        images, labels = examples
        module = deepcopy(self.module).double()
        return clipped_gradients(module, total_loss, images.double(), labels, clip)


def total_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Give the sum of the rows' cross-entropies."""
    return functional.cross_entropy(scores, labels, reduction="sum")
