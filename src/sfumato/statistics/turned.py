"""Turned values: a few numbers of equal spread, made of the many that scattering gives.

A classifier of private images is linear in them; how they are turned has been learned from
synthetic images and costs nothing. As in `exact_map`, every product is one of whole numbers of
steps, so that a row's features are the same bits whatever rows stand beside it: values are
multiples of 2^-12 below 2^9, weights multiples of 2^-14 up to 2^6. That is 21 + 20 bits, and up to
2^12 terms keep a sum within 53.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.statistics.exact_map import digest, on_steps
from sfumato.statistics.scattering import Scattering

_WEIGHT_STEPS, _LARGEST_WEIGHT, _MOST_TERMS = 2.0**14, 2.0**6, 2**12

Floats = NDArray[np.float64]


def weights_on_steps(weights: Floats) -> Floats:
    """Round weights to the grid on which their products with values are exact."""
    rounded = np.rint(weights * _WEIGHT_STEPS) / _WEIGHT_STEPS
    return np.clip(rounded, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)


@dataclass(frozen=True, eq=False)
class Turned:
    """Features ``(values(z) @ turn - shift, 1)`` of points z."""

    values: Scattering
    turn: Floats  # (values, dim - 1)
    shift: Floats  # (dim - 1,)

    def __post_init__(self) -> None:
        assert len(self.turn) <= _MOST_TERMS

    @classmethod
    def of(cls, values: Scattering, turn: Floats, shift: Floats) -> Turned:
        """Round everything to its grid."""
        return cls(values, weights_on_steps(turn), on_steps(shift))

    @property
    def dim(self) -> int:
        """The number of features, the constant among them."""
        return len(self.shift) + 1

    def __call__(self, points: Floats) -> Floats:
        """Give the features of points."""
        features = np.ones((len(points), self.dim))
        features[:, :-1] = on_steps(self.values(points) @ self.turn - self.shift)
        return features

    def digest(self) -> str:
        """Give a short name that changes with any bit of the map."""
        return digest(self.turn, self.shift) + self.values.digest()
