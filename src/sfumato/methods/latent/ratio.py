"""Weights of public images, from what was released of the private ones' feature vectors.

Let a class's mean be known as well as noise allows (`means.py`). Of all weights of public images
that have this mean, those of largest entropy are w = exp(theta v), and theta minimises the convex

    log mean exp(theta v) - theta mean + theta S theta / 2,

in which S, the variance of the noisy mean, keeps theta from explaining noise. So weights
gather where what is known bears it, and stay alike where nothing is known. Where public images are
unlike the private ones, few of them would be left: then the logarithms are weakened by a common
factor until the effective number of images, (sum w)² / sum w², is no less than `FEWEST`.

Such weights put no more on images of the private kind than the encoder can tell them apart: the
mean, over private images, of the probability that one with this vector is of the kind. A sharpness
s above 1 takes w^s: surer images, and fewer of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.latent.means import denoised_means

Floats = NDArray[np.float64]

FEWEST = 30  # images behind a class
_STEPS, _HALVINGS = 30, 40
_NEAR = 1e-7


def class_weights(
    public: Floats, means: Floats, counts: Floats, sigma: float = 0.0, sharpness: float = 1.0
) -> Floats:
    """Give log weights (classes, n) of public vectors (n, dim), for classes with these means.

    `means` are noisy ones, and `sigma` is the noise on each entry of a class's sum.
    """
    targets, variances = denoised_means(public, means, counts, sigma)
    return np.array(
        [
            _left(sharpness * tilted(public, target, variance))
            for target, variance in zip(targets, variances, strict=True)
        ]
    )


def tilted(public: Floats, target: Floats, variance: float) -> Floats:
    """Give the log weights exp(theta v) whose mean is the target, by Newton's method."""
    theta = np.zeros(public.shape[1])
    logs, value = _objective(public, target, variance, theta)
    for _ in range(_STEPS):
        weights = _shares(logs)
        mean = weights @ public
        slope = mean - target + variance * theta
        curve = (public * weights[:, None]).T @ public - np.outer(mean, mean)
        curve[np.diag_indices_from(curve)] += variance + 1e-9
        step, size = np.linalg.solve(curve, slope), 1.0
        while True:
            trial = theta - size * step
            logs, found = _objective(public, target, variance, trial)
            if found <= value - 1e-4 * size * float(slope @ step) or size < _NEAR:
                break
            size /= 2
        gained, theta, value = value - found, trial, found
        if gained < _NEAR:
            break
    return logs


def effective_size(logs: Floats) -> float:
    """Give (sum w)² / sum w² of log weights.

    >>> round(effective_size(np.log([1.0, 1.0, 2.0])), 2)
    2.67
    """
    return float(1 / np.square(_shares(logs)).sum())


def _objective(
    public: Floats, target: Floats, variance: float, theta: Floats
) -> tuple[Floats, float]:
    logs = public @ theta
    largest = logs.max()
    mean = largest + np.log(np.exp(logs - largest).mean())
    return logs, float(mean - theta @ target + variance * (theta @ theta) / 2)


def _shares(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _left(logs: Floats) -> Floats:
    """Weaken log weights until enough images are left, by halving."""
    least = min(FEWEST, 0.9 * len(logs))
    if effective_size(logs) >= least:
        return logs
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if effective_size(middle * logs) >= least else (low, middle)
    return low * logs
