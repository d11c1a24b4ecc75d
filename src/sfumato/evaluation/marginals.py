"""Marginal errors: how far k columns together are distributed as in the real data.

The error of one marginal is the total variation distance 1/2 sum |p - q|; the error of a table is
its mean over the sets of k columns (Zhang et al. 2017; Vinaroz et al. 2022, Table 1).

Two samples of one distribution are apart, too, and in a table of many cells they are far apart.
What is expected of them, 1/2 sum E|p - q| over random splits of the pooled rows (`chance.py`), is
given beside each error, and so is what is left of the error beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.chance import beyond_chance, expected_gap
from sfumato.evaluation.coded_table import CodedTable

BINS = 20
_LARGEST_TABLE = 1 << 22


@dataclass(frozen=True)
class Binned:
    """Two tables on common bins: the cells of categories, quantile bins of the real numbers."""

    real: NDArray[np.int64]
    synthetic: NDArray[np.int64]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, real: CodedTable, synthetic: CodedTable, bins: int = BINS) -> Binned:
        """Bin numbers at quantiles of the real rows; missing values get a bin of their own.

        Equal quantiles fall together, so that a value that many rows share makes one bin.
        """
        coded = [frame.codes.astype(np.int64) for frame in (real, synthetic)]
        sizes = []
        for index, cells in enumerate(real.codec.columns):
            if cells.is_category:
                sizes.append(cells.size)
                continue
            name = real.names[index]
            edges = quantile_edges(real.number(name), bins)
            for frame, codes in zip((real, synthetic), coded, strict=True):
                numbers = frame.number(name)
                binned = np.searchsorted(edges, numbers)
                codes[:, index] = np.where(np.isfinite(numbers), binned, len(edges) + 1)
            sizes.append(len(edges) + 2)
        return cls(coded[0], coded[1], tuple(sizes))

    def error(self, columns: Iterable[int]) -> float:
        """Give the total variation distance of one marginal."""
        return self.compare(columns)[0]

    def compare(self, columns: Iterable[int]) -> tuple[float, float]:
        """Give the total variation distance of one marginal, and what chance alone would give."""
        columns = list(columns)
        real, synthetic = (
            _joint(codes, columns, self.sizes) for codes in (self.real, self.synthetic)
        )
        size = int(np.prod([self.sizes[column] for column in columns], dtype=np.float64))
        if size > _LARGEST_TABLE:  # more cells than rows could fill: number the ones in use
            both = np.unique(np.concatenate([real, synthetic]), return_inverse=True)[1]
            real, synthetic = both[: len(real)], both[len(real) :]
            size = int(both.max()) + 1
        n, m = len(real), len(synthetic)
        counts = [np.bincount(codes, minlength=size) for codes in (real, synthetic)]
        cells = np.bincount(counts[0] + counts[1])  # how many cells hold how many rows
        pooled = np.flatnonzero(cells)
        chance = (cells[pooled] * expected_gap(pooled, n, m)).sum() / 2
        return float(np.abs(counts[0] / n - counts[1] / m).sum() / 2), float(chance)


def quantile_edges(numbers: NDArray[np.floating], bins: int) -> NDArray[np.float32]:
    """Give the inner edges of quantile bins, each bin open to the left; equal ones fall together.

    >>> quantile_edges(np.array([0.0, 0.0, 0.0, 0.5, 1.0]), 4).tolist()
    [0.0, 0.5]
    """
    present = numbers[np.isfinite(numbers)]
    if not len(present):
        return np.zeros(0, np.float32)
    inner = np.quantile(present, np.linspace(0, 1, bins + 1)[1:-1], method="inverted_cdf")
    return np.unique(inner).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class MarginalError:
    """The errors of the marginals of k columns: mean and largest over the `counted` sets.

    `chance` is the mean that two samples of one distribution, of these sizes, would have, and
    `beyond_chance` what the mean is beyond it.
    """

    columns: int
    mean: float
    largest: float
    chance: float
    beyond_chance: float
    counted: int
    of: int


def marginal_error(
    binned: Binned, columns: int, most: int | None = None, seed: int = 0
) -> MarginalError:
    """Give the error over all sets of so many columns, or over `most` sets drawn at random."""
    width = len(binned.sizes)
    total = comb(width, columns)
    sets: Iterable[tuple[int, ...]] = combinations(range(width), columns)
    if most is not None and total > most:
        sets = _drawn_sets(width, columns, most, seed)
    compared = np.array([binned.compare(chosen) for chosen in sets])
    errors = compared[:, 0].tolist()
    mean, chance = compared.mean(axis=0).tolist()
    return MarginalError(
        columns=columns,
        mean=mean,
        largest=max(errors),
        chance=chance,
        beyond_chance=beyond_chance(mean, chance),
        counted=len(errors),
        of=total,
    )


def marginal_errors(
    real: CodedTable,
    synthetic: CodedTable,
    most: int = 200,
    most_pairs: int | None = None,
    seed: int = 0,
) -> dict[int, MarginalError]:
    """Give the errors of 1- to 4-way marginals: all columns, all pairs, `most` of the others."""
    binned = Binned.of(real, synthetic)
    limits = {1: None, 2: most_pairs, 3: most, 4: most}
    return {
        k: marginal_error(binned, k, limit, seed)
        for k, limit in limits.items()
        if k <= len(binned.sizes)
    }


def _joint(
    codes: NDArray[np.int64], columns: list[int], sizes: tuple[int, ...]
) -> NDArray[np.int64]:
    joint = np.zeros(len(codes), np.int64)
    for column in columns:
        joint = joint * sizes[column] + codes[:, column]
    return joint


def _drawn_sets(width: int, columns: int, most: int, seed: int) -> Iterator[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    seen: set[tuple[int, ...]] = set()
    while len(seen) < most:
        chosen = tuple(sorted(rng.choice(width, columns, replace=False).tolist()))
        if chosen not in seen:
            seen.add(chosen)
            yield chosen
