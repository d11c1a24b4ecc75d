"""Means of classes in a feature space, from noisy ones: what public images tell of where they lie.

A class's released mean is seen with noise of a known variance s², to which that of a finite number
of images comes. Means of kinds of images do not lie just anywhere: the centres of public clusters
tell in which directions they differ, and by how much more in one than in another. With their
covariance B, in units of the signal that is left when the noise's expected share is taken from the
means' lengths, the mean given its noisy self is B (B + s²)^-1 of it (Wiener). This is done twice:
from the public mean to that of all private images, of which more is known, and from there to each
class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.modelling.clusters import k_means

Floats = NDArray[np.float64]

_CLUSTERS = 100
_CLUSTERED = 5000  # public images, at most


def denoised_means(
    public: Floats, means: Floats, counts: Floats, sigma: float
) -> tuple[Floats, Floats]:
    """Give means (classes, dim) without their noise, and the variance of each entry before.

    `public` are vectors (n, dim), and `sigma` is the noise on each entry of a class's sum.
    """
    rows = counts.sum()
    whole, centre = counts @ means / rows, public.mean(axis=0)
    spread = float(public.var(axis=0).mean())
    kinds = Kinds.of(public)
    of_whole = np.array([len(counts) * (sigma / rows) ** 2 + spread / rows])
    found = centre + kinds.found((whole - centre)[None], of_whole)
    variances = (sigma / counts) ** 2 + spread / counts
    if len(counts) > 1:
        found = found + kinds.found(means - whole, variances)
    return found, variances


class Kinds:
    """In which directions kinds of images differ: the covariance of public clusters' centres."""

    def __init__(self, axes: Floats, shares: Floats) -> None:
        self._axes, self._shares = axes, shares

    @classmethod
    def of(cls, public: Floats) -> Kinds:
        """Cluster public vectors."""
        rng = np.random.default_rng(0)
        some = public[rng.permutation(len(public))[:_CLUSTERED]]
        centres = k_means(some, max(2, min(_CLUSTERS, len(some) // 4)), rng)
        lengths, axes = np.linalg.eigh(np.atleast_2d(np.cov(centres.T)))
        lengths = np.maximum(lengths, 1e-3 * lengths.max())
        return cls(axes, lengths / lengths.sum())

    def found(self, noisy: Floats, variances: Floats) -> Floats:
        """Give vectors (k, dim) without their noise, of these variances in each entry."""
        lengths = np.square(noisy).sum(axis=1) - noisy.shape[1] * variances
        prior = max(0.0, float(lengths.mean())) * self._shares
        heard = prior / (prior + variances[:, None] + 1e-12)
        return np.asarray((noisy @ self._axes * heard) @ self._axes.T)
