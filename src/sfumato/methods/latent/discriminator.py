"""A discriminator between private and public feature vectors, trained by noisy gradients.

Algorithm 1 of the paper: one hidden layer, an output for each class. The gradients of private rows
are clipped, summed and drowned in noise; those of public ones, as many as the private rows of a
step are expected to be, are added after that, at no cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sfumato.data.batch import Batch
from sfumato.methods.spaces import ImageSpace
from sfumato.privacy.dpsgd import Examples, Learner, Schedule
from sfumato.privacy.gradients import clipped_gradients
from sfumato.public.pair import Pair

SCHEDULE = Schedule(rate=0.05, epochs=15.0, clip=1.0, learning_rate=0.02)


class Discriminator(Learner):
    """Scores of feature vectors for each class: the logarithm of D / (1 - D)."""

    piece = 4096

    def __init__(
        self, space: ImageSpace, pair: Pair, counts: NDArray[np.float64], width: int, seed: int
    ) -> None:
        self._space, self._pair = space, pair
        self._seed, self._width = seed, width
        self._step = 0
        self._units = float(np.sqrt(pair.encoder.dim))
        self._public = torch.from_numpy(pair.features.astype(np.float32) * np.float32(self._units))
        self._expected = SCHEDULE.rate * torch.from_numpy(counts)  # private rows in a step
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            self.module = nn.Sequential(
                nn.Linear(pair.encoder.dim, width), nn.Tanh(), nn.Linear(width, space.classes)
            )

    def describe(self) -> dict[str, Any]:
        """Give the encoder, the layer's width and the seed."""
        return {
            "discriminator": self._pair.encoder.describe(),
            "public": self._pair.about.digest,
            "width": self._width,
            "seed": self._seed,
        }

    def examples(self, batch: Batch) -> Examples:
        """Give feature vectors and classes."""
        vectors = self._pair.encoder(batch) * self._units
        labels = batch.codes[:, self._space.class_column] if self._space.classes > 1 else None
        classes = np.zeros(len(vectors), np.int64) if labels is None else labels.astype(np.int64)
        return vectors.astype(np.float32), classes

    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        """Sum the private rows' gradients, each clipped."""
        vectors, labels = examples
        module = deepcopy(self.module).double()
        return clipped_gradients(module, _private_loss, vectors.double(), labels, clip)

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Make Adam, which adds the public half to what it is given."""
        adam = torch.optim.Adam(parameters)
        adam.register_step_pre_hook(self._add_public)
        return adam

    def after_step(self, step: int) -> None:
        """Count steps: the public images of each are drawn by its number."""
        self._step = step

    def side_state(self) -> dict[str, NDArray[Any]]:
        """Give the number of steps made."""
        return {"step": np.array(self._step)}

    def restore_side(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take it up."""
        self._step = int(arrays["step"])

    def log_ratios(self, weights: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Give the logarithms of D / (1 - D) of the public images, (classes, n)."""
        self.module.load_state_dict({key: torch.tensor(value) for key, value in weights.items()})
        with torch.no_grad():
            return np.asarray(self.module(self._public).double().T.numpy())

    def _add_public(self, *_: object) -> None:
        chosen = np.random.default_rng([self._seed, self._step]).integers(
            len(self._public), size=max(1, round(float(self._expected.sum())))
        )
        scores = self.module(self._public[torch.from_numpy(chosen)])
        # Each class has its own discriminator, with as many public images as private ones.
        loss = (functional.softplus(scores).mean(0) * self._expected).sum() / SCHEDULE.clip
        parameters = self.parameters
        for parameter, part in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            assert parameter.grad is not None
            parameter.grad += part.to(parameter.grad.dtype)


def _private_loss(scores: Tensor, labels: Tensor) -> Tensor:
    """Sum -log D over rows, each by its own class's score."""
    return functional.softplus(-scores.gather(1, labels[:, None])).sum()
