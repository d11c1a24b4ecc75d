"""What noise hides of a column, guessed by a public rule: how a line ends, and rare categories.

Noise drops the thin ends of a number and the rarest of its categories. That they are there is
known: from the schema, and from how mass falls off where it is still seen. What is put there is
about as much as the noise could hide, and little; a model tells how much of a column it is.

Everything here sees released values only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

RARE_ROWS = 8.0  # of a category: a sample of all rows misses it with probability exp(-8)
_TAIL_SIGMAS = 0.5  # mass of a tail in units of the noise of a slot,
_TAIL_SHARE = 0.001  # and at the most, of all rows
_RARE_SHARE = 0.01  # of all rows, at the most, for all rare categories of a column


def with_tails(mass: Floats, ordered: int, sigma: float) -> NDArray[np.float64]:
    """Let what lies along a line fade out towards both bounds, instead of breaking off.

    A tail of mass t goes on where the last mass is seen, at a distance d from the median. It falls
    off as the exponential distribution does that has a mass of t beyond d: on the scale
    d / log(h / t), where h is the mass of half the line.

    >>> with_tails(np.array([600.0, 300, 100, 0, 0, 0]), 6, 10.0).round(2).tolist()
    [599.4, 299.7, 99.9, 0.95, 0.04, 0.0]
    """
    found = np.array(mass, np.float64)
    along, rows = found[:ordered], float(np.sum(mass))
    tail = min(_TAIL_SIGMAS * sigma, _TAIL_SHARE * rows)
    half = along.sum() / 2
    seen = np.flatnonzero(along > 0)
    if not len(seen) or half <= tail or tail <= 0:
        return found
    median = int(np.searchsorted(np.cumsum(along), half))
    beyond = np.zeros(ordered)
    for last, cells in (
        (seen[-1], np.arange(seen[-1] + 1, ordered)),
        (seen[0], np.arange(seen[0])[::-1]),
    ):
        distance = abs(int(last) - median)
        if distance and len(cells):
            falling = (tail / half) ** (np.arange(len(cells)) / distance)
            beyond[cells] = tail * falling / falling.sum()
    found[:ordered] = along + beyond
    return np.asarray(found * (rows / found.sum()))


def with_rare(mass: Floats, listed: int) -> NDArray[np.float64]:
    """Give each of the first `listed` cells, the categories that a schema names, a few rows.

    >>> with_rare(np.array([9000.0, 1000.0, 0.0]), 3).round(1).tolist()
    [8992.8, 999.2, 8.0]
    """
    found = np.array(mass, np.float64)
    rows = float(found.sum())
    least = min(RARE_ROWS, _RARE_SHARE * rows / max(listed, 1))
    rare = (np.arange(len(found)) < listed) & (found < least)
    if rare.all():
        return found
    found[rare] = least
    found[~rare] *= (rows - found[rare].sum()) / found[~rare].sum()
    return found


def guessed_share(seen: Floats, found: Floats) -> float:
    """Give the share of the rows that were put where noise had left nothing to be seen."""
    return float(np.maximum(found - seen, 0.0).sum() / max(float(np.sum(found)), math.ulp(1.0)))
