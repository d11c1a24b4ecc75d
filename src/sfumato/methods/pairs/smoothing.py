"""Counts along a line, read through noise: flat where nothing is seen, sharp where something is.

A stretch is halved again and again. At each halving either nothing below differs (it is flat), or
its halves do, by an amount whose scale may be anything. All such trees together are averaged by
their evidence, from the leaves up, as context-tree weighting does (Willems, Shtarkov and Tjalkens
1995); and as where halves begin is arbitrary, several alignments are averaged, too.

Everything here sees released values only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

_SPREADS = 4.0 ** np.arange(1, 10)  # variances of a difference, over that of its noise
_ALIGNMENTS = 16
_GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it are spread evenly over the unit interval
_EVEN = math.log(0.5)


def smoothed(counts: Floats, sigma: float) -> NDArray[np.float64]:
    """Give the posterior mean of each count, whose noise has the deviation `sigma`.

    The sum stays as it is.

    >>> smoothed(np.array([11.0, 8.0, 10.0, 11.0]), 4.0).round().tolist()
    [10.0, 10.0, 10.0, 10.0]
    >>> smoothed(np.array([11.0, 8.0, 10.0, 911.0]), 4.0).round().tolist()
    [10.0, 9.0, 10.0, 911.0]
    """
    values = np.asarray(counts, np.float64) / sigma
    count = len(values)
    if count < 2:
        return values * sigma
    size = 1 << math.ceil(math.log2(2 * count))
    total = np.zeros(count)
    for alignment in range(_ALIGNMENTS):
        first = int(alignment * _GOLDEN % 1 * (size - count + 1))
        total += _averaged_trees(values, first, size)
    return total * (sigma / _ALIGNMENTS)


def _averaged_trees(values: NDArray[np.float64], first: int, size: int) -> NDArray[np.float64]:
    """Average all trees over `size` cells, a power of two, of which the values start at `first`."""
    here = slice(first, first + len(values))
    sums, cells = np.zeros(size), np.zeros(size)
    sums[here], cells[here] = values, 1.0
    evidence = np.zeros(size)  # of what is below, against flatness
    levels = []
    while len(sums) > 1:
        real = (cells[::2] > 0) & (cells[1::2] > 0)  # elsewhere there is nothing to halve
        left, right = np.maximum(cells[::2], 1), np.maximum(cells[1::2], 1)
        scale = np.sqrt(left * right / (left + right))
        found, difference = _shrunk((sums[::2] / left - sums[1::2] / right) * scale)
        below = evidence[::2] + evidence[1::2]
        halved = _EVEN + found + below
        either = np.logaddexp(_EVEN, halved)
        likely = np.where(real, np.exp(halved - either), 1.0)
        levels.append((likely, np.where(real, difference / scale, 0.0), left, right))
        evidence = np.where(real, either, below)
        sums, cells = sums[::2] + sums[1::2], cells[::2] + cells[1::2]
    mean, reached = sums / cells, np.ones(1)
    for likely, difference, left, right in reversed(levels):
        reached = reached * likely  # the evidence that everything above was halved
        apart = reached * difference / (left + right)
        mean = np.stack([mean + apart * right, mean - apart * left], axis=1).ravel()
        reached = np.repeat(reached, 2)
    return mean[here]


def _shrunk(seen: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the log evidence that a difference, seen in units of its noise, is one; and its mean."""
    kept = _SPREADS / (1 + _SPREADS)
    likelihood = (seen**2)[:, None] * kept / 2 - np.log1p(_SPREADS) / 2
    highest = likelihood.max(axis=1)
    weights = np.exp(likelihood - highest[:, None])
    return highest + np.log(weights.mean(axis=1)), seen * (weights @ kept) / weights.sum(axis=1)
