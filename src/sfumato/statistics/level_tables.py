"""Kernels of coded columns: each level of a column has a public vector of whole numbers.

A column with finitely many levels (the grid of a number, the cells of a category) needs no
formula at run time, only a table with one integer vector per level. Sums are then exact in any
order, and the largest step that a row can make is not claimed but computed, in integers, from all
pairs of levels.

Two kernels are made of the tables t_d of columns d (Vinaroz et al. 2022):

    the sum kernel         [t_1(x_1), t_2(x_2), …]
    the product kernel     t_a(x_a) (x) t_b(x_b) (x) …   for some sets {a, b, …} of columns

Tables are centred: the middle of their vectors is taken away from all of them, which changes no
distance. It shortens them, and products of them most: where the sum kernel holds every column
alone, the product kernel has to pay for what columns do together, and for no more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Relation
from sfumato.privacy.statistic import EXACT_BITS, Resolution, Statistic
from sfumato.statistics.exact_map import digest

_CENTRING = 200  # steps toward the middle; the error falls as 1 / steps


class Levels(Protocol):
    """Where rows stand in each of some columns."""

    def __call__(self, batch: Batch) -> NDArray[np.int64]:
        """Give the level of each row in each column."""

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify the levels, as plain values."""


@dataclass(frozen=True, eq=False)
class LevelTable:
    """An integer vector for each level of a column: `scale` times the real one, rounded."""

    vectors: NDArray[np.float64]  # (levels, dim), whole numbers
    centre: NDArray[np.float64]  # (dim,), what was taken away, unscaled
    scale: float

    @classmethod
    def of(cls, vectors: NDArray[np.floating[Any]], bits: int) -> LevelTable:
        """Centre vectors of norm at most 1 and round them to steps of 2^-bits."""
        if not 1 <= bits <= EXACT_BITS:
            raise SfumatoError(f"bits must be between 1 and {EXACT_BITS}, got {bits}")
        alone = len(vectors) == 1  # nothing would be left of it
        centre = np.zeros(vectors.shape[1]) if alone else middle(vectors)
        scale = float(1 << bits)
        whole = np.trunc((vectors - centre) * scale)
        return cls(whole, centre, scale)

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return int(self.vectors.shape[1])

    def inside(self, levels: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
        """Give levels of the table; one beyond it is the nearest."""
        return np.asarray(np.clip(levels, 0, len(self.vectors) - 1))

    @cached_property
    def largest_entry(self) -> int:
        """The largest size of an entry."""
        return int(np.abs(self.vectors).max())

    @cached_property
    def digest(self) -> str:
        """A short name of the vectors."""
        return digest(self.vectors)

    @cached_property
    def _gram(self) -> NDArray[np.float64]:
        """All inner products, exact: sums of dim products below 2^48."""
        return self.vectors @ self.vectors.T

    @cached_property
    def squared_norm(self) -> float:
        """The largest squared norm of a vector."""
        return float(self._gram.diagonal().max())

    @cached_property
    def squared_step(self) -> float:
        """The largest squared distance of two vectors."""
        norms = self._gram.diagonal()
        return float((norms[:, None] + norms - 2 * self._gram).max())

    @cached_property
    def least_product(self) -> float:
        """The least inner product of two vectors."""
        return float(self._gram.min())


def middle(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Approximate the centre of the smallest ball around vectors (Badoiu and Clarkson 2003).

    >>> middle(np.eye(2))
    array([0.5, 0.5])
    """
    centre: NDArray[np.float64] = np.asarray(vectors, np.float64).mean(axis=0)
    best, least = centre, math.inf
    for step in range(1, _CENTRING):
        apart = vectors - centre
        squares = np.einsum("ij,ij->i", apart, apart)
        if squares.max() < least:
            best, least = centre, squares.max()
        centre = centre + apart[squares.argmax()] / (step + 1)
    return best


def _one_each(levels: NDArray[np.int64], batch: Batch) -> NDArray[np.int64]:
    if len(levels) != len(batch):
        raise ValueError("there must be one level in each column for each row")
    return levels


@dataclass(frozen=True, eq=False)
class SumKernel(Statistic):
    """The tables' vectors of all columns, one after the other.

    Squared norms and squared steps of columns add up. Rows are counted by level first, so the cost
    hardly depends on the length of the vectors.
    """

    levels: Levels
    tables: Sequence[LevelTable]

    @property
    def dim(self) -> int:
        return sum(table.dim for table in self.tables)

    @property
    def largest_entry(self) -> int:
        return max(table.largest_entry for table in self.tables)

    def sensitivity(self, relation: Relation) -> float:
        if relation is Relation.ADD_REMOVE:
            return math.sqrt(math.fsum(table.squared_norm for table in self.tables))
        return math.sqrt(math.fsum(table.squared_step for table in self.tables))

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        levels = _one_each(self.levels(batch), batch)
        parts = [
            np.bincount(table.inside(levels[:, column]), minlength=len(table.vectors))
            @ table.vectors
            for column, table in enumerate(self.tables)
        ]
        return np.concatenate(parts).astype(np.int64)

    def resolutions(self) -> tuple[Resolution, ...]:
        return ()

    def describe(self) -> dict[str, Any]:
        return {
            "sum_kernel": self.levels.describe(),
            "tables": [table.digest for table in self.tables],
        }


@dataclass(frozen=True, eq=False)
class ProductKernel(Statistic):
    """The outer products of the tables' vectors over each `degree` columns of every group.

    The norm of an outer product is the product of the norms, its inner products are products of
    inner products. With R_d the largest norm in table d and g_d its least inner product, replacing
    a row's vector u of one set of columns by v costs

        ||u - v||² = ||u||² + ||v||² - 2 <u, v>  <=  2 prod R_d² - 2 m,

    where m is the least that a product of inner products can be: the product of all g_d where none
    is negative, and else the least g_d prod_{e != d} R_e², for |<., .>| <= R_e² in every table.
    Squares add up over the sets. Entries stay below 2^24, so double precision sums them exactly.

    Within a group, a sum is the matrix of all products of `degree` - 1 columns with all columns,
    less what would name a set twice: the column on the right must come after those on the left.
    """

    levels: Levels
    tables: Sequence[LevelTable]
    groups: Sequence[tuple[int, ...]]
    degree: int = 2

    def __post_init__(self) -> None:
        if self.degree < 2 or any(len(group) < self.degree for group in self.groups):
            raise SfumatoError("a product kernel needs two columns or more in every product")

    @property
    def sets(self) -> list[tuple[int, ...]]:
        """The sets of columns."""
        return [columns for group in self.groups for columns in combinations(group, self.degree)]

    @cached_property
    def dim(self) -> int:
        return sum(math.prod(self.tables[c].dim for c in columns) for columns in self.sets)

    @cached_property
    def largest_entry(self) -> int:
        return max(
            math.prod(self.tables[column].largest_entry for column in columns)
            for columns in self.sets
        )

    def sensitivity(self, relation: Relation) -> float:
        return math.sqrt(math.fsum(self._squared(columns, relation) for columns in self.sets))

    def _squared(self, columns: tuple[int, ...], relation: Relation) -> float:
        tables = [self.tables[column] for column in columns]
        longest = math.prod(table.squared_norm for table in tables)
        if relation is Relation.ADD_REMOVE:
            return longest
        least = min(table.least_product / table.squared_norm for table in tables)
        if least < 0:
            return 2 * longest * (1 - least)
        return 2 * longest - 2 * math.prod(table.least_product for table in tables)

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        levels = _one_each(self.levels(batch), batch)
        parts = []
        for group in self.groups:
            tables = [(self.tables[column], levels[:, column]) for column in group]
            vectors = [table.vectors[table.inside(of_rows)] for table, of_rows in tables]
            left = [
                _products([vectors[i] for i in chosen])
                for chosen in combinations(range(len(group)), self.degree - 1)
            ]
            matrix = np.concatenate(left, axis=1).T @ np.concatenate(vectors, axis=1)
            parts.append(matrix[self.kept(group)])
        return np.concatenate(parts).astype(np.int64)

    def kept(self, group: tuple[int, ...]) -> NDArray[np.bool_]:
        """Say which entries of a group's matrix are in the sum."""
        widths = [self.tables[column].dim for column in group]
        right = np.repeat(np.arange(len(group)), widths)
        left = [
            np.full(math.prod(widths[i] for i in chosen), chosen[-1])
            for chosen in combinations(range(len(group)), self.degree - 1)
        ]
        return np.concatenate(left)[:, None] < right

    def resolutions(self) -> tuple[Resolution, ...]:
        return ()

    def describe(self) -> dict[str, Any]:
        return {
            "product_kernel": self.levels.describe(),
            "tables": [table.digest for table in self.tables],
            "groups": [list(group) for group in self.groups],
            "degree": self.degree,
        }


def _products(vectors: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Give each row's outer product, flat."""
    products, *factors = vectors
    for factor in factors:
        outer = products[:, :, None] * factor[:, None, :]
        products = outer.reshape(len(factor), products.shape[1] * factor.shape[1])
    return products
