"""Slopes: how the likelihood of private classes grows with the weights of a linear classifier.

Let a row have the class y and the features f, and p be the chances that the classifier gives it.
The gradient of log p_y in the weights is f (x) r with r = e_y - p. A row adds it shortened to the
length C: with u = f / |f| and s = r |f| / C, shortened to the unit ball, that is C u (x) s, and

    ||u (x) s|| = |u| |s| <= 1,

which bounds adding or removing a row. Replacing one costs at most twice that, and no less can be
promised: <u (x) s, v (x) t> = <u, v> <s, t> is -1 where u = v and s = -t.

Both vectors are rounded to a grid of 1/R within the unit ball, their lengths checked in whole
numbers, so a row adds whole numbers whose length is at most R², whatever its class and features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.privacy.budget import Relation
from sfumato.privacy.statistic import Resolution, Statistic
from sfumato.statistics.exact_map import digest, squared_lengths
from sfumato.statistics.labelled_vectors import Coordinates
from sfumato.statistics.moments import GRID, on_grid
from sfumato.statistics.turned import Turned, weights_on_steps

_AT_ONCE = 4096  # rows
_STEPS = 2.0**32  # of the chance of a class, over that of the likeliest

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SlopeSizes(Statistic):
    """The bound of slopes, and their size: what a plan needs."""

    features: int
    classes: int

    @property
    def dim(self) -> int:
        return self.features * self.classes

    @property
    def largest_entry(self) -> int:
        return GRID**2

    def sensitivity(self, relation: Relation) -> float:
        return float(GRID**2 if relation is Relation.ADD_REMOVE else 2 * GRID**2)

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        return np.zeros(self.dim, np.int64)

    def resolutions(self) -> tuple[Resolution, ...]:
        """Give nothing: a row moves the numbers of all classes."""
        return ()

    def describe(self) -> dict[str, Any]:
        return {"features": self.features, "classes": self.classes}


@dataclass(frozen=True, eq=False)
class Slopes(SlopeSizes):
    """The sum of gradients, each no longer than `bound`, for given weights.

    `features` and `classes` are the shape of `weights`.
    """

    coordinates: Coordinates
    map: Turned
    weights: Floats  # (features, classes)
    bound: float

    @classmethod
    def of(cls, coordinates: Coordinates, map_: Turned, weights: Floats, bound: float) -> Slopes:
        """Take the sizes from the weights."""
        features, classes = weights.shape
        return cls(features, classes, coordinates, map_, weights_on_steps(weights), bound)

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        # Whole numbers below 2^53 in every partial sum: exact in doubles, in any order.
        total = np.zeros((self.features, self.classes))
        for start in range(0, len(batch), _AT_ONCE):
            directions, errors = self._parts(batch.where(slice(start, start + _AT_ONCE)))
            total += on_grid(directions).T @ on_grid(errors)
        return total.astype(np.int64).ravel()

    def _parts(self, rows: Batch) -> tuple[Floats, Floats]:
        """Give u and s of each row, which are no numbers where its features are none."""
        features = self.map(self.coordinates(rows))
        classes = np.clip(rows.codes[:, 0], 0, self.classes - 1)
        with np.errstate(invalid="ignore"):
            missing = -chances(features @ self.weights)
            missing[np.arange(len(rows)), classes] += 1.0
            lengths = np.sqrt(squared_lengths(features))[:, None]
            return features / lengths, missing * lengths / self.bound

    def read(self, values: Floats) -> Floats:
        """Give a sum, or a noisy one, as (features, classes) in plain units."""
        return values.reshape(self.features, self.classes) * (self.bound / GRID**2)

    def describe(self) -> dict[str, Any]:
        return {
            "slopes": self.coordinates.describe(),
            "map": self.map.digest(),
            "weights": digest(self.weights),
            "bound": self.bound,
        }


def chances(scores: Floats) -> Floats:
    """Give the chances of classes (softmax); sums are of whole steps, and exact in any order.

    >>> chances(np.log([[1.0, 3.0]])).round(2).tolist()
    [[0.25, 0.75]]
    """
    raised = np.rint(_STEPS * np.exp(scores - scores.max(axis=1, keepdims=True)))
    found: Floats = raised / raised.sum(axis=1, keepdims=True)
    return found
