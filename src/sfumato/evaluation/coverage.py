"""Does the synthetic column reach everything that the real one holds?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.coded_table import CodedTable


def coverage(real: CodedTable, synthetic: CodedTable) -> dict[str, float]:
    """Give each column's coverage: range for numbers, categories otherwise."""
    covered = {}
    for index, (name, cells) in enumerate(zip(real.names, real.codec.columns, strict=True)):
        if cells.is_category:
            covered[name] = category_coverage(real.codes[:, index], synthetic.codes[:, index])
        else:
            covered[name] = range_coverage(real.number(name), synthetic.number(name))
    return covered


def range_coverage(real: NDArray[np.float32], synthetic: NDArray[np.float32]) -> float:
    """Give the share of the real range, smallest to largest value, that the synthetic one spans.

    >>> range_coverage(np.array([0.0, 1.0]), np.array([0.25, 0.75]))
    0.5
    """
    real, synthetic = (values[np.isfinite(values)] for values in (real, synthetic))
    if not len(real):
        return 1.0
    if not len(synthetic):
        return 0.0
    low, high = float(real.min()), float(real.max())
    if low == high:
        return float(synthetic.min() <= low <= synthetic.max())
    spanned = min(high, float(synthetic.max())) - max(low, float(synthetic.min()))
    return max(0.0, spanned / (high - low))


def category_coverage(real: NDArray[np.int32], synthetic: NDArray[np.int32]) -> float:
    """Give the share of the categories of the real rows that some synthetic row has.

    >>> category_coverage(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 3]))
    0.6666666666666666
    """
    wanted = np.unique(real)
    return float(np.isin(wanted, synthetic).mean())
