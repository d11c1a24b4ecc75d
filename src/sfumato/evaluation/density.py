"""Likelihood under a known density, for experiments where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp


def mixture_nll(
    points: NDArray[np.floating[Any]],
    means: NDArray[np.floating[Any]],
    deviations: NDArray[np.floating[Any]] | float,
    weights: NDArray[np.floating[Any]] | None = None,
) -> float:
    """Give the mean negative log-likelihood of points under a mixture of round Gaussians.

    Parameters
    ----------
    points
        One per row, shape (n, d).
    means
        The centres, shape (k, d).
    deviations
        The standard deviation of each component, or one for all.
    weights
        The share of each component; even by default.

    >>> round(mixture_nll(np.zeros((1, 2)), np.zeros((1, 2)), 1.0), 4)  # log(2 pi)
    1.8379
    """
    components, width = means.shape
    scale = np.broadcast_to(np.asarray(deviations, float), components)
    shares = np.full(components, 1 / components) if weights is None else np.asarray(weights)
    squared = ((points[:, None, :] - means[None, :, :]) ** 2).sum(axis=2)
    with np.errstate(divide="ignore"):
        logs = np.log(shares) - width / 2 * np.log(2 * np.pi * scale**2) - squared / (2 * scale**2)
    return float(-logsumexp(logs, axis=1).mean())
