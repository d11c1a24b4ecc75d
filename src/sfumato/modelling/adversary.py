"""A network that learns to tell private rows from others, by noisy gradients.

It gives a score for each class, the logarithm of D / (1 - D): how likely a point of that class is
to be private. The gradients of private rows are clipped, summed and drowned in noise; those of the
others, public or generated, are added after that, at no cost, as if there were as many of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sfumato.data.batch import Batch
from sfumato.modelling.spaces import PointSpace
from sfumato.privacy.dpsgd import Examples, Learner, Schedule
from sfumato.privacy.gradients import clipped_gradients

Arrays = dict[str, NDArray[Any]]


class Adversary(Learner):
    """A critic in training.

    Parameters
    ----------
    module
        Takes points (n, size) and gives scores (n, classes).
    space
        Tells the classes.
    counts
        The noisy number of rows of each class: how many rows a step is expected to have.
    """

    piece = 512

    def __init__(
        self,
        module: nn.Module,
        space: PointSpace,
        counts: NDArray[np.float64],
        schedule: Schedule,
        seed: int,
    ) -> None:
        self.module = module
        self._space = space
        self._shares = counts / counts.sum()
        self._expected = schedule.rate * float(counts.sum()) / schedule.clip
        self._seed = seed
        self._step = 0

    @abstractmethod
    def points(self, batch: Batch) -> NDArray[np.float32]:
        """Give what the critic sees of rows; each row's entry depends on that row alone."""

    @abstractmethod
    def others(self, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Give points that are not private, and the classes that they pass for."""

    def examples(self, batch: Batch) -> Examples:
        """Give points and classes."""
        points = self.points(batch)
        classes = self._space.labels(batch)
        return points, classes if self._space.classes > 1 else 0 * classes

    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        """Sum the private rows' gradients, each clipped, in double precision."""
        points, labels = examples
        module = deepcopy(self.module).double()
        return clipped_gradients(module, doubted, points.double(), labels, clip)

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Make Adam, which adds the free half to what it is given."""
        adam = torch.optim.Adam(parameters, betas=(0.5, 0.9))
        adam.register_step_pre_hook(self._add_others)
        return adam

    def after_step(self, step: int) -> None:
        """Count steps: what is drawn in each follows from its number."""
        self._step = step

    def side_state(self) -> Arrays:
        """Give the number of steps made."""
        return {"step": np.array(self._step)}

    def restore_side(self, arrays: Arrays) -> None:
        """Take it up."""
        self._step = int(arrays["step"])

    def loss_of_others(self, points: Tensor, labels: Tensor) -> Tensor:
        """Give the loss of points that are not private; no row is seen, so it may be any."""
        return believed(self.module(points), labels)

    def drawn_classes(self, n: int, rng: np.random.Generator) -> Tensor:
        """Draw classes as frequent as the private ones."""
        return torch.from_numpy(rng.choice(len(self._shares), n, p=self._shares))

    def _add_others(self, *_: object) -> None:
        points, labels = self.others(np.random.default_rng([self._seed, self._step, 0]))
        loss = self.loss_of_others(points, labels) * (self._expected / len(points))
        parameters = self.parameters
        for parameter, part in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            assert parameter.grad is not None
            parameter.grad += part.to(parameter.grad.dtype)


def doubted(scores: Tensor, labels: Tensor) -> Tensor:
    """Sum -log D over points, each by its own class's score: small where they pass for private."""
    return functional.softplus(-scores.gather(1, labels[:, None])).sum()


def believed(scores: Tensor, labels: Tensor) -> Tensor:
    """Sum -log (1 - D): small where points are told from private ones."""
    return functional.softplus(scores.gather(1, labels[:, None])).sum()
