"""Random Fourier features: waves whose inner products approximate Gaussian kernels.

With frequencies w_j ~ N(0, I / l²) for a length scale l, and D features in all,

    phi(x) = sqrt(2/D) [cos(w_1'x), …, cos(w_{D/2}'x), sin(w_1'x), …, sin(w_{D/2}'x)]

satisfies E <phi(x), phi(y)> = exp(-||x - y||² / (2 l²)) (Rahimi and Recht 2007), and ||phi(x)|| = 1
for every x because cos² + sin² = 1. Several length scales share the frequencies evenly, which
gives the mean of their kernels. Frequencies and scales are public: a seed and a rule, never rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sfumato.data.batch import Batch

if TYPE_CHECKING:
    from torch import Tensor

_EXACT = 1 << 24  # below it, every integer is a single-precision number


class UnitPoints(Protocol):
    """Where rows lie in the unit cube."""

    @property
    def size(self) -> int:
        """The number of coordinates."""

    @property
    def levels(self) -> int:
        """How many steps the unit interval is divided into."""

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        """Give the coordinates of a batch, one row each."""

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify these coordinates, as plain values."""


@dataclass(frozen=True, eq=False)
class Fourier:
    """The feature map above, on public coordinates of rows.

    How a processor orders the terms of w'x depends on the number of rows in a batch, and in
    floating point the order shows in the last bits: a row that is removed would change the
    vectors of others, past every bound. So coordinates are rounded to whole multiples of
    1/levels, and each frequency to 24 bits minus those, in steps of its own: then w'x is a sum of
    integers below 2^24, and exact in any order.

    Parameters
    ----------
    points
        The coordinates.
    dim
        The number D of features; even.
    scales
        Length scales.
    seed
        Fixes the frequencies.
    """

    points: UnitPoints
    dim: int
    scales: tuple[float, ...]
    seed: int = 0

    @property
    def norm(self) -> float:
        """One, since cos² + sin² = 1."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """Waves have both signs."""
        return False

    @cached_property
    def _whole(self) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """The frequencies as whole numbers, and the step of each."""
        rng = np.random.default_rng(self.seed)
        half = self.dim // 2
        lengths = np.resize(self.scales, half)
        drawn = rng.standard_normal((self.points.size, half)) / lengths
        steps = np.abs(drawn).sum(axis=0) * self.points.levels / _EXACT
        return np.trunc(drawn / steps).astype(np.float32), steps

    @cached_property
    def frequencies(self) -> NDArray[np.float32]:
        """One frequency per column."""
        whole, steps = self._whole
        return (whole * steps).astype(np.float32)

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        """Give the features of a batch, one row each."""
        whole, steps = self._whole
        levels = self.points.levels
        inside = np.fmin(np.fmax(self.points(batch), 0), 1)  # and NaN becomes 0
        angles = np.rint(inside * np.float32(levels)) @ whole
        angles *= (steps / levels).astype(np.float32)
        half = self.dim // 2
        waves = np.empty((len(batch), self.dim), np.float32)
        np.cos(angles, out=waves[:, :half])
        np.sin(angles, out=waves[:, half:])
        waves *= np.float32(half**-0.5)
        return waves

    def of_tensor(self, points: Tensor) -> Tensor:
        """Give the same features of a tensor of coordinates, differentiably."""
        import torch

        angles = points @ torch.as_tensor(self.frequencies, device=points.device)
        waves: Tensor = torch.cat([angles.cos(), angles.sin()], dim=1)
        return waves.mul((self.dim // 2) ** -0.5)

    def describe(self) -> dict[str, Any]:
        """Give the coordinates, the scales and a digest of the frequencies."""
        digest = sha256(self.frequencies.tobytes()).hexdigest()[:16]
        return {
            "fourier": self.points.describe(),
            "dim": self.dim,
            "scales": list(self.scales),
            "frequencies": digest,
        }


def error_bound(features: int, rows: float, noise: float) -> float:
    """Bound how far noise and random features move the squared MMD, in expectation.

    Prop. 3.1 of Harder et al. (2021), for `noise` times the sensitivity 2/m on the mean embedding
    of m rows in D features:

        4 D s²/m² + (8 sqrt(2) s/m) Gamma((D+1)/2) / Gamma(D/2) + 8 sqrt(2 pi / D)

    >>> round(error_bound(10_000, 60_000, 4.0), 3)
    0.254
    """
    relative = noise / rows
    ratio = math.exp(gammaln((features + 1) / 2) - gammaln(features / 2))
    return float(
        4 * features * relative**2
        + 8 * math.sqrt(2) * relative * ratio
        + 8 * math.sqrt(2 * math.pi / features)
    )


def best_features(rows: float, noise: float, most: int) -> int:
    """Give the number of features that minimises the bound, even and at most `most`.

    >>> best_features(1000, 4.0, most=10_000)
    580
    """
    tried = range(20, most + 1, 20)
    return min(tried, key=lambda features: error_bound(features, rows, noise))
