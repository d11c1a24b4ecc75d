"""The algebra of statistics: feature maps on a grid, parts side by side, weighted, or per class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Relation
from sfumato.privacy.statistic import EXACT_BITS, Resolution, Statistic
from sfumato.statistics.exact_map import MOST_COLUMNS, squared_lengths

_AT_ONCE = 1 << 23  # features, which bounds the memory


class FeatureMap(Protocol):
    """A bounded real vector for each row."""

    @property
    def dim(self) -> int:
        """The length of a vector."""

    @property
    def norm(self) -> float:
        """A bound on its L2 norm. Whoever sums the vectors enforces it."""

    @property
    def nonnegative(self) -> bool:
        """Whether no entry is ever negative."""

    def __call__(self, batch: Batch) -> NDArray[np.floating[Any]]:
        """Give the vectors of a batch, one row each."""

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify this map, as plain values."""


@dataclass(frozen=True)
class Quantized(Statistic):
    """A feature map on an integer grid: 2^bits · phi(x) / norm, rounded toward zero.

    The bound B = 2^bits is enforced row by row, not trusted. Rounding toward zero can only shorten
    a vector. The squared norm of the rounded vector is then exact: it is a sum of squares of
    integers, and in doubles such sums are exact up to 2^53, far above B² <= 2^48. A row that is
    longer than B is shortened and rounded again; NaN, infinite and overflowing rows become zero,
    as do negative entries of a map that calls itself non-negative. A map that gives more or fewer
    vectors than rows is refused.
    """

    feature_map: FeatureMap
    bits: int = 20

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= EXACT_BITS:
            raise SfumatoError(f"bits must be between 1 and {EXACT_BITS}, got {self.bits}")

    @property
    def dim(self) -> int:
        return self.feature_map.dim

    @property
    def largest_entry(self) -> int:
        return 1 << self.bits

    @property
    def scale(self) -> float:
        """Grid steps per unit of the feature map."""
        return self.largest_entry / self.feature_map.norm

    def sensitivity(self, relation: Relation) -> float:
        bound = float(1 << self.bits)
        if relation is Relation.ADD_REMOVE:
            return bound
        return math.sqrt(2) * bound if self.feature_map.nonnegative else 2 * bound

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        # Every entry and every partial sum is an integer below 2^53: exact in doubles, and fast.
        total = np.zeros(self.dim)
        at_once = max(1, _AT_ONCE // max(1, self.dim))
        for start in range(0, len(batch), at_once):
            rows = self.rows(batch.where(slice(start, start + at_once)))
            total += np.ones(len(rows)) @ rows
        return total.astype(np.int64)

    def rows(self, batch: Batch) -> NDArray[np.float64]:
        """Give each row's integer vector (as doubles that hold integers)."""
        limit = float(self.largest_entry)
        given = self.feature_map(batch)
        if given.shape != (len(batch), self.dim):
            raise ValueError("a feature map must give one vector for each row")
        with np.errstate(over="ignore", invalid="ignore"):
            grid: NDArray[np.float64] = np.multiply(given, self.scale, dtype=np.float64)
            if self.feature_map.nonnegative:
                np.maximum(grid, 0.0, out=grid)
            np.trunc(grid, out=grid)
            squared = squares(grid)
        lost = ~np.isfinite(squared)
        grid[lost] = 0.0
        long = np.flatnonzero(~lost & (squared > limit**2))
        if len(long):
            shorter = np.trunc(grid[long] * (limit / np.sqrt(squared[long]) * (1 - 1e-9))[:, None])
            shorter[squares(shorter) > limit**2] = 0.0
            grid[long] = shorter
        return grid

    def resolutions(self) -> tuple[Resolution, ...]:
        return ()

    def describe(self) -> dict[str, Any]:
        return {"quantized": self.feature_map.describe(), "bits": self.bits}


def squares(grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give squared norms of any number of columns, in the same order for each row."""
    starts = range(0, grid.shape[1], MOST_COLUMNS)
    pieces = (squared_lengths(grid[:, start : start + MOST_COLUMNS]) for start in starts)
    return np.asarray(sum(pieces, np.zeros(len(grid))))


@dataclass(frozen=True)
class Concat(Statistic):
    """Several statistics of the same rows, one after the other: squared sensitivities add."""

    parts: Sequence[Statistic]

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def largest_entry(self) -> int:
        return max(part.largest_entry for part in self.parts)

    def sensitivity(self, relation: Relation) -> float:
        return math.sqrt(math.fsum(part.sensitivity(relation) ** 2 for part in self.parts))

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        return np.concatenate([part.sum(batch) for part in self.parts])

    def resolutions(self) -> tuple[Resolution, ...]:
        """Give those of the parts; a block is none any more when others stand beside it."""
        found = [each for part in self.parts for each in part.resolutions()]
        return tuple(each for each in found if each.kind != "blocks")

    def describe(self) -> dict[str, Any]:
        return {"concat": [part.describe() for part in self.parts]}


@dataclass(frozen=True)
class Weighted(Statistic):
    """A statistic times a whole number: its share of a `Concat`'s common noise."""

    part: Statistic
    weight: int

    def __post_init__(self) -> None:
        if self.weight < 1:
            raise SfumatoError(f"weight must be at least 1, got {self.weight}")

    @property
    def dim(self) -> int:
        return self.part.dim

    @property
    def largest_entry(self) -> int:
        return self.weight * self.part.largest_entry

    def sensitivity(self, relation: Relation) -> float:
        return self.weight * self.part.sensitivity(relation)

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        return self.weight * self.part.sum(batch)

    def resolutions(self) -> tuple[Resolution, ...]:
        return tuple(replace(r, reach=self.weight * r.reach) for r in self.part.resolutions())

    def describe(self) -> dict[str, Any]:
        return {"weighted": self.part.describe(), "weight": self.weight}


@dataclass(frozen=True)
class PerClass(Statistic):
    """A statistic for each class of one coded column: the outer product with its one-hot vector.

    A row adds to one class only, or to none where its code is that of none, so adding or removing
    it costs what the part costs. A replaced row costs the same as in the part when the class
    stays; when it changes, the old vector leaves one block and the new one enters another:
    sqrt(2) B.
    """

    part: Statistic
    column: int
    classes: int

    @property
    def dim(self) -> int:
        return self.classes * self.part.dim

    @property
    def largest_entry(self) -> int:
        return self.part.largest_entry

    def sensitivity(self, relation: Relation) -> float:
        alone = self.part.sensitivity(Relation.ADD_REMOVE)
        if relation is Relation.ADD_REMOVE:
            return alone
        return max(self.part.sensitivity(relation), math.sqrt(2) * alone)

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        labels = batch.codes[:, self.column]
        return np.concatenate(
            [self.part.sum(batch.where(labels == label)) for label in range(self.classes)]
        )

    def resolutions(self) -> tuple[Resolution, ...]:
        reach = self.part.sensitivity(Relation.ADD_REMOVE)
        return (
            Resolution(
                kind="blocks", column=self.column, classes=self.classes, cells=self.part.dim,
                reach=reach,
            ),
        )  # fmt: skip

    def describe(self) -> dict[str, Any]:
        return {
            "per_class": self.part.describe(),
            "column": self.column,
            "classes": self.classes,
        }
