"""A network of images in training, and its clipped gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sfumato.data.batch import Batch
from sfumato.modelling.class_learner import ClassLearner
from sfumato.modelling.spaces import ImageSpace
from sfumato.privacy.gradients import clipped_gradients

Architecture = Callable[[int, int, int, int], nn.Module]
"""Makes a module of height, width, channels and classes, drawing its first weights."""


class NetworkLearner(ClassLearner):
    """A network in training."""

    piece = 512

    def __init__(
        self, space: ImageSpace, architecture: Architecture, seed: int, about: dict[str, Any]
    ) -> None:
        self.space = space
        self._shape = space.codec.shape
        self._about = about
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.module = architecture(*self._shape, space.class_cells)

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
