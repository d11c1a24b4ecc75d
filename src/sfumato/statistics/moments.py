"""Moments: count, sum and second moments, per label, of vectors in the unit ball.

Let a row have the label y and the vector v, |v| <= 1. With weights a, b, c its contribution is

    phi = (a e_y,  b e_y (x) v,  c e_y (x) vv')      with ||vv'|| = |v|² in the Frobenius norm,

so ||phi||² <= B² = a² + b² + c², which bounds adding or removing a row. Replacing (y, u) by
(y', v), write p = <u, v>:

* same label: the counts cancel, and with s = |u|, t = |v|

      ||phi - phi'||² = b² (s² + t² - 2p) + c² (s⁴ + t⁴ - 2p²).

  At fixed p this grows with s and t, and the range |p| <= st grows with them: the maximum is at
  s = t = 1, where it is concave in p with its peak at p = -b²/(2c²). If b² <= 2c² the bound is
  2 (c + b²/(2c))², else 4b² (at p = -1). Without second moments it is 4b².
* other label: ||phi||² + ||phi'||² <= 2B². If second moments are pooled over labels their inner
  product p² >= 0 only helps.

Second moments are released as the upper triangle. The diagonal is multiplied by 5 and the rest by
7, since 7/5 is just below sqrt(2): the weighted triangle is never longer than 5 ||vv'||, neither
for one row nor for a difference of two.

Vectors are rounded to a grid of 1/R in the unit ball, so all sums are exact integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.privacy.budget import Relation
from sfumato.privacy.statistic import Resolution, Statistic
from sfumato.statistics.exact_map import squared_lengths

GRID = 1 << 10  # R: steps from the centre of the unit ball to its surface
_DIAGONAL, _OFF_DIAGONAL = 5, 7


class LabelledVectors(Protocol):
    """A public map from rows to labels and vectors; each row for itself."""

    @property
    def labels(self) -> int:
        """The number of labels."""

    @property
    def dim(self) -> int:
        """The length of a vector."""

    def __call__(self, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Give each row's label and vector; vectors longer than 1 are shortened."""

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify this map, as plain values."""


@dataclass(frozen=True)
class Sizes:
    """Stands for labelled vectors where only their sizes count: in a plan."""

    labels: int
    dim: int

    def __call__(self, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return np.zeros(len(batch), np.int64), np.zeros((len(batch), self.dim))

    def describe(self) -> dict[str, Any]:
        return {"labels": self.labels, "dim": self.dim}


@dataclass(frozen=True)
class MomentNoise:
    """The deviation of the noise on counts, sums and second moments."""

    count: float
    sum_: float
    square: float  # of a diagonal entry; others have 1/sqrt(2) of it


@dataclass(frozen=True)
class MomentSums:
    """Noisy moments in plain units, and their noise."""

    counts: NDArray[np.float64]  # (labels,)
    sums: NDArray[np.float64]  # (labels, dim)
    squares: NDArray[np.float64]  # (labels or 1, dim, dim)
    noise: MomentNoise


@dataclass(frozen=True, eq=False)
class LabelledMoments(Statistic):
    """Count, sum and, where `square` is not 0, second moments of labelled vectors.

    The weights are relative to each other; `pooled` takes second moments over all labels together.
    What the vectors' map gives is not believed: vectors are shortened (`on_grid`), a row of a label
    that there is not adds at most its second moments, and more than one vector a row is refused.
    """

    vectors: LabelledVectors
    count: float
    sum_: float
    square: float = 0.0
    pooled: bool = False

    @property
    def _weights(self) -> tuple[int, int, int]:
        """Whole-number weights of count, sum and the triangle's unit (a fifth of the diagonal)."""
        if self.square:
            return (
                round(_DIAGONAL * GRID**2 * self.count / self.square),
                round(_DIAGONAL * GRID * self.sum_ / self.square),
                1,
            )
        return round(GRID * self.count / self.sum_), 1, 0

    @property
    def _lengths(self) -> tuple[float, float, float]:
        """The numbers a, b and c of the module's derivation, in integer units."""
        count, sum_, square = self._weights
        return float(count), float(sum_ * GRID), float(square * _DIAGONAL * GRID**2)

    @property
    def _blocks(self) -> int:
        if not self.square:
            return 0
        return 1 if self.pooled else self.vectors.labels

    @property
    def dim(self) -> int:
        d = self.vectors.dim
        return self.vectors.labels * (bool(self.count) + d) + self._blocks * d * (d + 1) // 2

    @property
    def largest_entry(self) -> int:
        return math.ceil(max(self._lengths))

    def sensitivity(self, relation: Relation) -> float:
        a, b, c = self._lengths
        alone = math.sqrt(a * a + b * b + c * c)
        if relation is Relation.ADD_REMOVE:
            return alone
        same = math.sqrt(2) * (c + b * b / (2 * c)) if c and b * b <= 2 * c * c else 2 * b
        return max(same, math.sqrt(2) * alone) if self.vectors.labels > 1 else same

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        labels, vectors = self.vectors(batch)
        if labels.shape != (len(batch),) or vectors.shape != (len(batch), self.vectors.dim):
            raise ValueError("there must be one label and one vector for each row")
        grid = on_grid(vectors)
        order = np.argsort(labels, kind="stable")
        bounds = np.searchsorted(labels[order], np.arange(self.vectors.labels + 1))
        parts = [grid[order[low:high]] for low, high in pairwise(bounds)]
        count, sum_, square = self._weights
        sums = [sum_ * np.stack([np.ones(len(part)) @ part for part in parts]).ravel()]
        if count:
            sums.insert(0, count * np.diff(bounds).astype(np.float64))
        if square:
            blocks = [grid] if self.pooled else parts
            sums += [_triangle(part.T @ part) for part in blocks]
        return np.concatenate(sums).astype(np.int64)

    def read(self, values: NDArray[np.float64], sigma: float) -> MomentSums:
        """Give a noisy sum in plain units."""
        labels, d = self.vectors.labels, self.vectors.dim
        a, b, _ = self._lengths
        start = labels if a else 0
        counts, sums, squares = np.split(values, [start, start + labels * d])
        return MomentSums(
            counts=counts / a if a else counts,
            sums=sums.reshape(labels, d) / b,
            squares=_matrices(squares, self._blocks, d) / GRID**2,
            noise=self.noise(sigma),
        )

    def noise(self, sigma: float) -> MomentNoise:
        """Give the noise of each kind of sum, in plain units."""
        a, b, c = self._lengths
        return MomentNoise(
            count=sigma / a if a else math.inf,
            sum_=sigma / b,
            square=sigma / c if c else math.inf,
        )

    def resolutions(self) -> tuple[Resolution, ...]:
        """Its labels are the classes of the first column, unless they are groups within these."""
        return (
            Resolution(
                kind="vectors", column=0, classes=self.vectors.labels, cells=self.vectors.dim,
                reach=self._lengths[1],
            ),
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        return {
            "moments": self.vectors.describe(),
            "labels": self.vectors.labels,
            "dim": self.vectors.dim,
            "reach": self._lengths[1],
            "weights": list(self._weights),
            "pooled": self.pooled,
        }


def on_grid(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to whole steps within the ball of GRID steps; what is not finite becomes zero.

    The squared norm of a rounded vector is a sum of squares of integers, hence exact, so the bound
    is checked without rounding error: a vector beyond it is rounded toward zero instead. More than
    `MOST_COLUMNS` numbers are refused: whether a vector is beyond could hang on its neighbours.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        length = np.sqrt(squared_lengths(vectors))
        inside = GRID * vectors / np.where(length > 1, length, 1.0)[:, None]
    inside[~np.isfinite(inside).all(axis=1)] = 0.0
    grid: NDArray[np.float64] = np.rint(inside)
    long = squared_lengths(grid) > GRID**2
    grid[long] = np.trunc(inside[long] * (1 - 1e-9))
    grid[squared_lengths(grid) > GRID**2] = 0.0
    return grid


def _triangle(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    i, j = np.triu_indices(len(matrix))
    return matrix[i, j] * np.where(i == j, _DIAGONAL, _OFF_DIAGONAL)


def _matrices(triangles: NDArray[np.float64], blocks: int, d: int) -> NDArray[np.float64]:
    i, j = np.triu_indices(d)
    matrices = np.empty((blocks, d, d))
    rows = triangles.reshape(blocks, len(i)) / np.where(i == j, _DIAGONAL, _OFF_DIAGONAL)
    matrices[:, i, j] = rows
    matrices[:, j, i] = rows
    return matrices
