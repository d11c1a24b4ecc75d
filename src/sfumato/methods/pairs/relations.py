"""What released tables say of two columns beyond a fitted mixture.

A mixture holds what columns have in common. A relation of two columns alone (a grade and its
number, two blood pressures) is a small part of all tables, and the mixture smooths it. But its own
table may show it well: the residual D of a pair, pooled over classes, is noise plus a departure

    D ~ N(0, kappa A_i (x) A_j + noise)

where A is the one-way estimate on the diagonal, times a correlation: none between categories, and
exp(-distance² / 2 length²) between groups of a line, the distance of their ranks. Margins are known
better from all tables, so A is made orthogonal to them. With the eigenvectors of A_i and A_j, D has
independent entries, and evidence and posterior mean of each kappa and length are sums over them.
All are averaged by their evidence, with even odds that there is nothing at all.

Everything here sees released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.pairs.mixture import Mixture
from sfumato.methods.pairs.noisy_tables import NoisyTables

Floats = NDArray[np.floating[Any]]

_KAPPAS = 10.0 ** np.arange(-4.5, 0.6, 0.5)[:, None, None]
_LENGTHS = (0.1, 0.3, 1.0)  # of a line's whole mass
_FLOOR = 1e-3  # share of a column spread evenly, so that no group is without any


@dataclass(frozen=True, eq=False)
class ColumnPair:
    """The log evidence of a departure from the mixture, and the table with it, in shares.

    `seen` is the released table, `noise` the deviation of its cells, and `freedom` how much the
    table moves with it: the sum of its cells' derivatives by what is seen.
    """

    evidence: float
    table: NDArray[np.float64]
    seen: NDArray[np.float64]
    noise: float
    freedom: float

    @property
    def turned(self) -> ColumnPair:
        """The same with its columns exchanged."""
        return replace(self, table=self.table.T, seen=self.seen.T)


def find_relations(
    tables: NoisyTables, mixture: Mixture, one_way: Sequence[Floats], ordered: Sequence[int]
) -> dict[tuple[int, int], ColumnPair]:
    """Look at every released pair for what the mixture does not hold of it.

    `one_way[i]` is the estimated mass of each group of column i, whose first `ordered[i]` groups
    lie along a line.
    """
    axes = [_axes(mass, along) for mass, along in zip(one_way, ordered, strict=True)]
    weights = mixture.class_shares @ mixture.weights
    rows = max(float(np.sum(one_way[0])), 1.0) if one_way else 1.0
    noise = tables.sigma * np.sqrt(tables.classes) / rows  # of the share of a cell
    found, blocks = {}, mixture.blocks
    for (i, j), counts in tables.pairs.items():
        first, second = (mixture.probabilities[:, blocks[column]] for column in (i, j))
        held = (first * weights[:, None]).T.astype(np.float64) @ second
        seen = np.asarray(counts, np.float64).sum(axis=0) / rows
        evidence, departure, freedom = _departure((seen - held) / noise, axes[i], axes[j], noise)
        found[i, j] = ColumnPair(evidence, held + noise * departure, seen, noise, freedom)
    return found


def _departure(
    residual: NDArray[np.float64],
    first: Sequence[tuple[Floats, Floats]],
    second: Sequence[tuple[Floats, Floats]],
    noise: float,
) -> tuple[float, NDArray[np.float64], float]:
    """Average over kappas and lengths: log evidence, departure in units of the noise, freedom."""
    logs, means, freedoms = [], [], []
    for place in range(max(len(first), len(second))):
        (left, u), (right, v) = (axes[min(place, len(axes) - 1)] for axes in (first, second))
        seen = u.T @ residual @ v
        variance = _KAPPAS * np.outer(left, right) / noise**2
        kept = variance / (1 + variance)
        logs.append(np.sum(kept * seen**2 - np.log1p(variance), axis=(1, 2)) / 2)
        means.append(u @ (kept * seen) @ v.T)
        freedoms.append(kept.sum(axis=(1, 2)))
    log, mean, freedom = map(np.concatenate, (logs, means, freedoms))
    highest = max(float(log.max()), 0.0)
    weights = np.exp(log - highest) / len(log)
    evidence = highest + float(np.log(max(weights.sum(), 1e-300)))
    weights /= weights.sum() + np.exp(-highest)  # the rest is for nothing at all
    return evidence, np.tensordot(weights, mean, 1), float(weights @ freedom)


def _axes(mass: Floats, ordered: int) -> list[tuple[Floats, Floats]]:
    """Give eigenvalues and eigenvectors of A: without neighbours, and for each length."""
    share = np.asarray(mass, np.float64) / max(float(np.sum(mass)), 1e-12)
    share = (1 - _FLOOR) * share + _FLOOR / len(share)
    share /= share.sum()
    root = np.sqrt(share)
    rank = np.cumsum(share[:ordered]) - share[:ordered] / 2
    distance = np.abs(rank[:, None] - rank) / max(float(share[:ordered].sum()), 1e-12)
    apart = np.eye(len(share)) - np.outer(root, root)  # orthogonal to the margin
    found = []
    for length in (None, *(_LENGTHS if ordered > 1 else ())):
        near = np.eye(len(share))
        if length is not None:
            near[:ordered, :ordered] = np.exp(-((distance / length) ** 2) / 2)
        values, vectors = np.linalg.eigh(root[:, None] * (apart @ near @ apart) * root)
        found.append((np.maximum(values, 0.0), vectors))
    return found
