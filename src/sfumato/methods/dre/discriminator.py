"""A discriminator between private and public feature vectors: algorithm 1 of the paper.

One hidden layer, an output for each class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sfumato.data.batch import Batch
from sfumato.modelling.adversary import Adversary
from sfumato.modelling.spaces import ImageSpace
from sfumato.privacy.dpsgd import Schedule
from sfumato.public.pair import Pair

SCHEDULE = Schedule(rate=0.05, epochs=15.0, clip=1.0, learning_rate=0.02)
_OTHERS = 2048  # public vectors in a step


class Discriminator(Adversary):
    """Scores of feature vectors for each class."""

    piece = 4096

    def __init__(
        self, space: ImageSpace, pair: Pair, counts: NDArray[np.float64], width: int, seed: int
    ) -> None:
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            module = nn.Sequential(
                nn.Linear(pair.encoder.dim, width), nn.Tanh(), nn.Linear(width, space.classes)
            )
        super().__init__(module, space, counts, SCHEDULE, seed)
        self._pair, self._width = pair, width
        self._public = torch.from_numpy(pair.in_units(pair.features))

    def describe(self) -> dict[str, Any]:
        """Give the encoder, the layer's width and the seed."""
        return {
            "discriminator": self._pair.encoder.describe(),
            "public": self._pair.about.digest,
            "width": self._width,
            "seed": self._seed,
        }

    def points(self, batch: Batch) -> NDArray[np.float32]:
        """Give feature vectors in units of their deviations."""
        return self._pair.in_units(self._pair.encoder(batch))

    def others(self, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Draw public vectors, each to pass for any class."""
        chosen = torch.from_numpy(rng.integers(len(self._public), size=_OTHERS))
        return self._public[chosen], self.drawn_classes(_OTHERS, rng)

    def log_ratios(self, weights: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Give the scores of the public images by trained weights, (classes, n)."""
        self.module.load_state_dict({key: torch.tensor(value) for key, value in weights.items()})
        with torch.no_grad():
            return np.asarray(self.module(self._public).double().T.numpy())
