"""Identifiers of synthetic rows: which of them belong to one unit of privacy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.schema import Schema

_MOST_ORDINALS = 64


def ordinal_cells(schema: Schema, max_rows_per_unit: int) -> int:
    """Say how many cells tell which of its unit's rows a row is; none where each has one row.

    Encoded rows have them as a column after all others. The number of rows in cell j is the number
    of units with more than j rows; the last cell takes all further rows.
    """
    several = schema.unit_column is not None and max_rows_per_unit > 1
    return min(max_rows_per_unit, _MOST_ORDINALS) if several else 0


def shared_identifiers(rows: int, at_least: Sequence[float], rng: np.random.Generator) -> pa.Array:
    """Give each row an identifier, shared so that units have plausibly many rows.

    Of all identifiers, the number with at least j rows is in proportion to `at_least[j - 1]`, up
    to one. Noisy numbers may rise with j, which true ones never do: the nearest ones that do not
    are taken. Rows share an identifier at random, whatever else they hold, and identifiers are
    numbered in the order of their first rows.

    >>> shared_identifiers(9, [4.1, 1.8, -0.3], np.random.default_rng(0)).to_pylist()
    [1, 2, 3, 4, 5, 3, 6, 4, 6]
    """
    units = _whole(_falling(at_least), rows)
    drawn = rng.permutation(np.concatenate([np.arange(0), *map(np.arange, units)]))
    _, first, place = np.unique(drawn, return_index=True, return_inverse=True)
    return pa.array(np.argsort(np.argsort(first))[place] + 1)


def _falling(at_least: Sequence[float]) -> NDArray[np.float64]:
    """Give the nearest numbers that never rise, and are not negative; a row each without any."""
    from scipy.optimize import isotonic_regression  # late: workers have no need of it

    falling = np.maximum(isotonic_regression(at_least, increasing=False).x, 0.0)
    return falling if falling.any() else np.ones(1)


def _whole(falling: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Give whole numbers with this sum, in proportion up to one; they fall as the given ones do."""
    shares = falling / falling.sum() * total
    whole: NDArray[np.int64] = np.floor(shares).astype(np.int64)
    largest = np.argsort(whole - shares, kind="stable")[: total - int(whole.sum())]
    whole[largest] += 1
    return whole
