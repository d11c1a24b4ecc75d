"""Means of classes from noisy sums, drawn to the mean of all rows where noise drowns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def class_means(
    sums: NDArray[Any],
    counts: NDArray[Any],
    sigma: float,
    parts: Sequence[tuple[int, int]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Divide noisy sums (classes, dim) by counts, and draw noisy classes to the mean of all.

    A small class's mean can be mostly noise, which would set it far apart from all other rows.
    As James and Stein (1961) do, the distance of a class's mean t from the mean p of all rows
    is shrunk by what is known of the noise, of variance v on each coordinate:

        p + s (t - p),   s = S / (S + f v),   S = max(0, ||t - p||² - D v)

    where S estimates the squared distance without noise. Of the noise on D coordinates, only
    that along the f directions that matter does harm. `parts` gives D and f of each part of the
    vector; each is shrunk apart. The means come with their expected squared distances from the
    truth.
    """
    classes, rows = len(counts), counts.sum()
    pooled = sums.sum(axis=0) / rows
    apart = sums / counts[:, None] - pooled
    variance = sigma**2 * (1 / counts**2 - 2 / (counts * rows) + classes / rows**2)
    noise = np.full(classes, classes * sums.shape[1] * (sigma / rows) ** 2)
    start = 0
    for dim, free in parts:
        part = apart[:, start : start + dim]
        signal = np.maximum(np.square(part).sum(axis=1) - dim * variance, 0)
        shrunk = signal / np.maximum(signal + min(dim, free) * variance, 1e-12)
        part *= shrunk[:, None]
        noise += shrunk**2 * dim * variance + (1 - shrunk) ** 2 * signal
        start += dim
    return pooled + apart, noise
