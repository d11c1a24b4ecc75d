"""Rows that meet a condition which a model cannot be asked for: drawn again and again until met.

What is kept has exactly the model's distribution given the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Rows = TypeVar("Rows", bound=Sized)

_FEWEST, _MOST = 1_000, 100_000  # rows of one draw
_VAIN = 400_000  # rows after which what was never met is taken as impossible
_RAREST = 0.0005  # share of the rows that may meet it, beyond which drawing takes too long


def draw_until(
    count: int, draw: Callable[[int], Rows], rng: np.random.Generator
) -> tuple[list[Rows], NDArray[np.int64]] | None:
    """Draw until so many rows met a condition; None where hardly any do.

    `draw` draws so many rows and gives those that meet it. Given back are all of them, and which
    of all, in order, are to be kept: `count`, or none where none is asked for.

    >>> rng = np.random.default_rng(0)
    >>> dice = lambda n: [eyes for eyes in rng.integers(1, 7, n).tolist() if eyes > 5]
    >>> parts, chosen = draw_until(9, dice, rng)
    >>> [sum(parts, [])[place] for place in chosen]
    [6, 6, 6, 6, 6, 6, 6, 6, 6]
    """
    kept: list[Rows] = []
    found = drawn = 0
    while found < count or not kept:
        share = max(found / drawn, _RAREST) if drawn else 1.0
        size = int(np.clip(1.1 * (count - found) / share, _FEWEST, _MOST))
        met = draw(size)
        kept.append(met)
        found, drawn = found + len(met), drawn + size
        if drawn >= _VAIN and found < _RAREST * drawn and found < count:
            return None
    # A draw is not in random order, so what is too much is not cut off at its end.
    return kept, np.sort(rng.permutation(found)[:count])
