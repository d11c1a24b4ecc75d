"""The nearest distribution to noisy shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def project_to_simplex(values: NDArray[np.floating[Any]], total: float) -> NDArray[np.float64]:
    """The nearest non-negative vector with the given sum.

    >>> project_to_simplex(np.array([3.0, 1.0, -5.0]), 2.0).tolist()
    [2.0, 0.0, 0.0]
    """
    if total <= 0:
        return np.zeros(len(values))
    falling = np.sort(np.asarray(values, np.float64))[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.asarray(np.maximum(values - excess[last], 0.0), np.float64)
