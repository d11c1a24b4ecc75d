"""Shrinkage: how much of a noisy value is signal, told by the noise's known size."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Floats = NDArray[np.float64]


def signal_variance(values: Floats, noise: Floats) -> Floats:
    """Estimate the variance of a signal of mean 0 along the first axis, seen with noise.

    `noise` holds the noise's variances; the mean of value² - noise is weighted by inverse variance.

    >>> bool(signal_variance(np.full((1000, 1), 2.0), np.ones((1000, 1)))[0] == 3)
    True
    """
    noise = np.broadcast_to(noise, values.shape)
    weights = 1 / noise**2
    mean: Floats = ((values**2 - noise) * weights).sum(axis=0) / weights.sum(axis=0)
    return np.maximum(mean, 0.0)


def shrunk(values: Floats, noise: Floats) -> Floats:
    """Take each value times the share of signal in it (Wiener)."""
    signal = signal_variance(values, noise)
    return values * signal / (signal + noise)


def denoised_shape(moments: Floats, target: Floats, noise: float, floor: float) -> Floats:
    """Of a noisy matrix's departure from a target keep what exceeds the noise; keep it positive.

    In the target's eigenbasis a departure in the directions a and b is taken to have the variance
    t lambda_a lambda_b; t, at most one, is estimated from all entries, most from where signal is
    to be expected, and each entry shrunk by its share of signal. `noise` is the deviation of a
    diagonal entry, sqrt(2) times that of the others.
    """
    scale, axes = np.linalg.eigh(target)
    scale = np.maximum(scale, floor / 2)
    prior = np.outer(scale, scale)
    variance = noise**2 * (1 + np.eye(len(scale))) / 2
    departure = axes.T @ moments @ axes - np.diag(scale)
    weights = prior / variance**2
    found = float((weights * (departure**2 - variance)).sum() / (weights * prior).sum())
    strength = min(max(found, 0.0), 1.0)
    kept = departure * (strength * prior / (strength * prior + variance))
    lengths, turned = np.linalg.eigh(np.diag(scale) + kept)
    turned = axes @ turned
    shape: Floats = (turned * np.maximum(lengths, floor / 6)) @ turned.T
    return shape


def denoised_ordered(moments: Floats, noise: float) -> Floats:
    """Shrink a noisy matrix, the variances of whose axes should fall, to a diagonal one.

    The diagonal is made to fall by isotonic regression, which averages runs where noise exceeds
    signal; so axes of little variance keep little of their noise. `noise` is as above.
    """
    least = noise / math.sqrt(len(moments))  # the deviation of the whole diagonal's mean
    diagonal = isotonic_regression(np.diag(moments), increasing=False).x
    return denoised_shape(moments, np.diag(np.maximum(diagonal, least)), noise, least)
