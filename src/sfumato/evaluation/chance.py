"""Chance: what two samples of one distribution score, so that an error can be read beyond it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln


def expected_gap(counts: NDArray[Any], n: int, m: int) -> NDArray[np.float64]:
    """Give E|X/n - Y/m| where the counts X + Y of two samples are split between them at random.

    Let N = n + m rows be dealt out into samples of n and m. Of the c rows in a cell the first
    sample gets X, which is hypergeometric with mean nc/N, and X/n - Y/m = (X - nc/N) (1/n + 1/m).
    The mean deviation has a closed form (Diaconis and Zabell 1991): with v = floor(nc/N) + 1,

        E|X - nc/N| = 2 v (m - c + v) / N · P(X = v).

    >>> expected_gap(np.array([1]), 1, 1).tolist()  # one sample has the row, the other has not
    [1.0]
    """
    c = np.asarray(counts, np.int64)
    rows = n + m
    v = n * c // rows + 1
    possible = (v <= c) & (v <= n)
    v = np.where(possible, v, 0)
    probability = np.exp(_choices(c, v) + _choices(rows - c, n - v) - _choices(rows, n))
    deviation = np.where(possible, 2 * v * (m - c + v) / rows * probability, 0.0)
    return deviation * (1 / n + 1 / m)


def beyond_chance(error: float, chance: float) -> float:
    """Put an error of at most 1 on a scale from 0, where it is all chance, to 1; never below.

    (error - chance) / (1 - chance), as agreement is corrected for chance (Cohen 1960). Where the
    distributions do differ, chance adds less than that to the error: what is left is a cautious
    figure, and fit for comparison between samples of the same sizes.
    """
    return max(0.0, (error - chance) / (1 - chance)) if chance < 1 else 0.0


def _choices(n: Any, k: Any) -> Any:
    """Give the logarithm of n choose k; where there is none, whatever: the result is not used."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(np.maximum(n - k, 0) + 1.0)
