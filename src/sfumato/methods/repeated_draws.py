"""Rows that meet a condition which a model cannot be asked for: drawn again and again until met.

What is kept has exactly the model's distribution given the condition.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_FEWEST, _MOST = 1_000, 100_000  # rows of one draw
_VAIN = 400_000  # rows after which what was never met is taken as impossible
_RAREST = 0.0005  # share of the rows that may meet it, beyond which drawing takes too long


def draw_until(
    count: int,
    draw: Callable[[int], pa.Table],
    meets: Callable[[pa.Table], NDArray[np.bool_]],
    rng: np.random.Generator,
) -> pa.Table | None:
    """Draw until so many rows meet a condition; None where hardly any do.

    >>> rng = np.random.default_rng(0)
    >>> dice = lambda n: pa.table({"eyes": rng.integers(1, 7, n)})
    >>> set(draw_until(9, dice, lambda rows: rows["eyes"].to_numpy() > 5, rng)["eyes"].to_pylist())
    {6}
    """
    kept: list[pa.Table] = []
    found = drawn = 0
    while found < count or not kept:
        share = max(found / max(drawn, 1), _RAREST)
        size = int(np.clip(1.1 * (count - found) / share, _FEWEST, _MOST))
        rows = draw(size)
        met = rows.filter(pa.array(meets(rows)))
        kept.append(met)
        found, drawn = found + met.num_rows, drawn + size
        if drawn >= _VAIN and found < _RAREST * drawn and found < count:
            return None
    # A draw is not in random order, so what is too much is not cut off at its end.
    chosen = np.sort(rng.permutation(found)[:count])
    return pa.concat_tables(kept).take(pa.array(chosen))
