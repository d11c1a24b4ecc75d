"""The sum and product kernels of a space: of private rows as statistics, of points as tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.modelling.spaces import PointSpace
from sfumato.papers.embedding.base import with_nulls
from sfumato.papers.embedding.spectrum import Spectrum
from sfumato.privacy.answers import Release
from sfumato.privacy.statistic import EXACT_BITS, Statistic
from sfumato.statistics.algebra import PerClass
from sfumato.statistics.counts import Axis
from sfumato.statistics.hermite import Hermite
from sfumato.statistics.level_tables import LevelTable, ProductKernel, SumKernel

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.papers.embedding.training import Target

_STEPS = 1023  # of a number's grid, at most
_SUM_BITS = 20
_VARIANCE = 0.95  # of all columns together, that products are made for

Groups: TypeAlias = Sequence[tuple[int, ...]]
"""Columns whose products are taken."""


class Columns(Protocol):
    """Numbers on the unit interval, and categories."""

    @property
    def size(self) -> int:
        """How many numbers there are."""

    @property
    def levels(self) -> int:
        """How many steps of each number are told apart."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The categories."""

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        """Give the numbers of a batch's rows."""

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify the numbers."""


@dataclass(frozen=True, eq=False)
class ColumnLevels:
    """The levels of columns: numbers on a grid, then categories."""

    columns: Columns

    def __len__(self) -> int:
        return self.columns.size + len(self.columns.axes)

    @property
    def steps(self) -> int:
        """The steps of a number's grid."""
        return min(self.columns.levels, _STEPS)

    def __call__(self, batch: Batch) -> NDArray[np.int64]:
        inside = np.fmin(np.fmax(self.columns(batch), 0), 1)  # and NaN becomes 0
        levels = np.empty((len(batch), len(self)), np.int64)
        levels[:, : self.columns.size] = np.rint(inside * np.float32(self.steps))
        for place, axis in enumerate(self.columns.axes, self.columns.size):
            levels[:, place] = axis.of(batch)
        return levels

    def tables(self, hermite: Hermite, bits: int) -> list[LevelTable]:
        """Give the table of each column: Hermite features of numbers, unit vectors of cells."""
        number = LevelTable.of(hermite(np.arange(self.steps + 1) / self.steps), bits)
        sizes = [axis.size for axis in self.columns.axes]
        category = {size: LevelTable.of(np.eye(size), bits) for size in set(sizes)}
        return [number] * self.columns.size + [category[size] for size in sizes]

    def describe(self) -> dict[str, Any]:
        return {
            "levels": self.columns.describe(),
            "steps": self.steps,
            "axes": [axis.describe() for axis in self.columns.axes],
        }


@dataclass(frozen=True, eq=False)
class Kernels:
    """Both kernels, with the Hermite features of numbers alone and in products.

    Where there is a spectrum, products are of its columns, and not of the space's.
    """

    space: PointSpace
    alone: Hermite
    together: Hermite
    degree: int
    spectrum: Spectrum | None = None

    @cached_property
    def terms(self) -> ColumnLevels:
        """The columns of the sum kernel."""
        return ColumnLevels(self.space)

    @cached_property
    def factors(self) -> ColumnLevels:
        """The columns that products are made of."""
        return ColumnLevels(self.spectrum or self.space)

    @cached_property
    def sum_tables(self) -> list[LevelTable]:
        """The tables of the sum kernel, one per column."""
        return self.terms.tables(self.alone, _SUM_BITS)

    @cached_property
    def product_tables(self) -> list[LevelTable]:
        """The tables of the product kernel, one per column; entries are below 2^24 together."""
        return self.factors.tables(self.together, EXACT_BITS // self.degree)

    @property
    def sum_scale(self) -> float:
        """The grid steps of 1 in the sum kernel."""
        return float(1 << _SUM_BITS)

    @property
    def product_scale(self) -> float:
        """The grid steps of 1 in the product kernel."""
        return float(1 << EXACT_BITS // self.degree * self.degree)

    @property
    def sum_statistic(self) -> Statistic:
        """The sum kernel of each class."""
        return self._per_class(SumKernel(self.terms, self.sum_tables))

    def product_statistic(self, groups: Groups) -> Statistic:
        """The product kernel of each class."""
        return self._per_class(self.product_kernel(groups))

    def product_kernel(self, groups: Groups) -> ProductKernel:
        """The products within groups of columns."""
        return ProductKernel(self.factors, self.product_tables, groups, self.degree)

    def _per_class(self, statistic: Statistic) -> Statistic:
        if self.space.classes == 1:
            return statistic
        return PerClass(statistic, self.space.class_column, self.space.classes)

    @property
    def cheapest_columns(self) -> NDArray[np.int64]:
        """The columns whose product needs the least noise."""
        norms = [table.squared_norm for table in self.product_tables]
        return np.argsort(norms, kind="stable")[: self.degree]

    def columns_that_vary(self, sums: Release, counts: NDArray[np.float64]) -> NDArray[np.int64]:
        """Give the columns that hold nearly all variance, by what the sum kernel told.

        Features have norm 1, but for the orders left out, so a column's variance in a class is
        1 - ||mean||²; noise makes the mean longer by its own squared norm, on average. The sum
        kernel tells nothing about frequencies: of a spectrum all columns are taken.
        """
        if self.spectrum:
            return np.arange(len(self.factors))
        means = sums.values.reshape(self.space.classes, -1) / self.sum_scale / counts[:, None]
        noise = (sums.sigma / self.sum_scale / counts) ** 2
        variances = np.empty(len(self.terms))
        ends = np.cumsum([table.dim for table in self.sum_tables])
        for column, (table, end) in enumerate(zip(self.sum_tables, ends, strict=True)):
            mean = means[:, end - table.dim : end] + table.centre
            within = 1 - np.square(mean).sum(axis=1) + table.dim * noise
            variances[column] = counts @ np.clip(within, 0, 1)
        order = np.argsort(-variances, kind="stable")
        enough = np.cumsum(variances[order]) >= _VARIANCE * variances.sum()
        return order[: max(self.degree, int(enough.argmax()) + 1)]


@dataclass(frozen=True, eq=False)
class KernelMeans:
    """The mean embedding of generated points, in units in which all noise is alike.

    Then a squared distance counts each kernel by the inverse of its noise's variance.
    """

    kernels: Kernels
    groups: Groups
    weights: tuple[float, float]  # of sums and of products

    @classmethod
    def meeting(
        cls,
        kernels: Kernels,
        counts: NDArray[np.float64],
        sums: Release,
        groups: Groups = (),
        products: Release | None = None,
    ) -> tuple[KernelMeans, Target]:
        """Give the embedding for released kernels, and what it is to meet."""
        from sfumato.papers.embedding.training import Target

        # Weights per grid step; the sum kernel's vectors become no longer than 1.
        weights = [1 / math.sqrt(len(kernels.terms)) / kernels.sum_scale]
        values = [sums.values * weights[0]]
        if products:
            weights.append(weights[0] * sums.sigma / products.sigma)
            values.append(products.values * weights[1])
        rows = [part.reshape(kernels.space.classes, -1) for part in values]
        free = kernels.space.size + sum(kernels.space.blocks)
        target = Target.of(
            np.concatenate(rows, axis=1),
            counts,
            weights[0] * sums.sigma,
            [(part.shape[1], free) for part in rows],
        )
        scaled = (weights[0] * kernels.sum_scale, weights[-1] * kernels.product_scale)
        return cls(kernels, groups, scaled), target

    def __call__(self, points: Tensor) -> Tensor:
        """Give the mean embedding of each class, of points (classes, n, size)."""
        import torch

        space = self.kernels.space
        numbers, blocks = with_nulls(space, points.flatten(0, 1))
        numbers = numbers.view(*points.shape[:2], -1)
        blocks = blocks.view(*points.shape[:2], -1)
        means = torch.cat(
            [self.kernels.alone.of_tensor(numbers).mean(1).flatten(1), blocks.mean(1)], dim=1
        )
        parts = [(means - means.new_tensor(self._sum_centre)) * self.weights[0]]
        if self.groups:
            if self.kernels.spectrum:
                numbers = self.kernels.spectrum.of_tensor(numbers)
            parts.append(self._products(numbers, blocks) * self.weights[1])
        return torch.cat(parts, dim=1)

    def _products(self, numbers: Tensor, blocks: Tensor) -> Tensor:
        """Give mean products, in the order of `ProductKernel`."""
        import torch

        features = torch.cat([self.kernels.together.of_tensor(numbers).flatten(2), blocks], dim=2)
        features = features - features.new_tensor(self._product_centre)
        parts = []
        for places, ends, kept in self._places:
            right = features.index_select(2, torch.as_tensor(places, device=features.device))
            left = right
            if self.kernels.degree > 2:
                columns = right.tensor_split(ends, dim=2)
                left = torch.cat(
                    [
                        _products(chosen)
                        for chosen in combinations(columns, self.kernels.degree - 1)
                    ],
                    dim=2,
                )
            matrix = left.transpose(1, 2) @ right / features.shape[1]
            kept_here = torch.as_tensor(kept, device=features.device)
            parts.append(matrix.flatten(1).index_select(1, kept_here))
        return torch.cat(parts, dim=1)

    @cached_property
    def _sum_centre(self) -> NDArray[np.float64]:
        return np.concatenate([table.centre for table in self.kernels.sum_tables])

    @cached_property
    def _product_centre(self) -> NDArray[np.float64]:
        return np.concatenate([table.centre for table in self.kernels.product_tables])

    @cached_property
    def _places(self) -> list[tuple[NDArray[np.int64], list[int], NDArray[np.int64]]]:
        """For each group: where its features are, where its columns part, what is kept."""
        tables = self.kernels.product_tables
        ends = np.cumsum([table.dim for table in tables])
        kernel = self.kernels.product_kernel(self.groups)
        found = []
        for group in self.groups:
            spans = [np.arange(ends[column] - tables[column].dim, ends[column]) for column in group]
            parting = np.cumsum([len(span) for span in spans])[:-1].tolist()
            found.append((np.concatenate(spans), parting, np.flatnonzero(kernel.kept(group))))
        return found


def _products(columns: Sequence[Tensor]) -> Tensor:
    """Give each point's outer product, flat."""
    product, *others = columns
    for other in others:
        product = (product[..., None] * other[:, :, None]).flatten(2)
    return product
