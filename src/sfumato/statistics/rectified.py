"""Rectified features of points: a public hidden layer, turned into a few numbers of equal spread.

A classifier of private images is linear in these features; the layer itself has learned from
synthetic images and costs nothing. As in `exact_map`, every product is one of whole numbers of
steps, so that a row's features are the same bits whatever rows stand beside it: points and features
are multiples of 2^-12 below 2^9, weights multiples of 2^-14 up to 2^6. That is 21 + 20 bits, and up
to 2^12 terms keep a sum within 53.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.statistics.exact_map import digest, on_steps

_WEIGHT_STEPS, _LARGEST_WEIGHT = 2.0**14, 2.0**6

Floats = NDArray[np.float64]


def weights_on_steps(weights: Floats) -> Floats:
    """Round weights to the grid on which their products with points are exact."""
    rounded = np.rint(weights * _WEIGHT_STEPS) / _WEIGHT_STEPS
    return np.clip(rounded, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)


@dataclass(frozen=True, eq=False)
class Rectified:
    """Features ``(max(0, z @ units + offsets) @ turn - shift, 1)`` of points z.

    >>> features = Rectified.of(np.array([[1.0, -1.0]]), np.zeros(2), np.eye(2), np.zeros(2))
    >>> features(np.array([[0.5], [-2.0]])).tolist()
    [[0.5, 0.0, 1.0], [0.0, 2.0, 1.0]]
    """

    units: Floats  # (dim of points, units)
    offsets: Floats  # (units,)
    turn: Floats  # (units, dim - 1)
    shift: Floats  # (dim - 1,)

    @classmethod
    def of(cls, units: Floats, offsets: Floats, turn: Floats, shift: Floats) -> Rectified:
        """Round everything to its grid."""
        return cls(
            weights_on_steps(units), on_steps(offsets), weights_on_steps(turn), on_steps(shift)
        )

    @property
    def dim(self) -> int:
        """The number of features, the constant among them."""
        return len(self.shift) + 1

    def __call__(self, points: Floats) -> Floats:
        """Give the features of points; these are rounded to their grid first."""
        hidden = on_steps(np.maximum(on_steps(points) @ self.units + self.offsets, 0.0))
        features = np.ones((len(points), self.dim))
        features[:, :-1] = on_steps(hidden @ self.turn - self.shift)
        return features

    def digest(self) -> str:
        """Give a short name that changes with any bit of the map."""
        return digest(self.units, self.offsets, self.turn, self.shift)
