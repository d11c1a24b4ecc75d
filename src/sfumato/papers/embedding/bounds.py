"""How far noise on a mean embedding moves the squared MMD, and the generator that minimises it.

The propositions of Harder et al. (2023), "Pre-trained perceptual features improve differentially
private image generation", appendix A. A generator is trained to minimise |a + n|², where a is the
difference between the embeddings of real and of generated rows and n is Gaussian noise, instead of
|a|². Each bound is proved anew here; docstrings say where it differs from the paper's. All of them
rest on one quantile: with probability 1 - p,

    |n|² <= q(p) = tr S + 2 |S|_F sqrt(L) + 2 |S|_op L,    L = log(1/p)

for n of covariance S (Laurent and Massart 2000, lemma 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Noise:
    """Independent Gaussian noise on an embedding in parts: each has one scale and a dimension.

    For two parts of D numbers with sensitivities 2 C1/m and 2 C2/m the Frobenius norm of the
    covariance is 4 s²/m² sqrt((C1⁴ + C2⁴) D); the paper's (9) has C1² + C2² for the root.

    >>> noise = Noise(scales=(0.1, 0.2), dims=(3, 1))
    >>> round(noise.trace, 6), round(noise.operator, 6)
    (0.07, 0.04)
    """

    scales: tuple[float, ...]
    """The standard deviation on each coordinate of a part."""
    dims: tuple[int, ...]

    @property
    def trace(self) -> float:
        """The trace of the covariance: the mean of |n|²."""
        return sum(d * s**2 for s, d in zip(self.scales, self.dims, strict=True))

    @property
    def frobenius(self) -> float:
        """The Frobenius norm of the covariance."""
        return math.sqrt(sum(d * s**4 for s, d in zip(self.scales, self.dims, strict=True)))

    @property
    def operator(self) -> float:
        """The operator norm of the covariance."""
        return max(self.scales) ** 2

    def along(self, distance: float | Sequence[float]) -> float:
        """Give |S^½ a|, the deviation of n·a, from |a| in each part.

        From |a| over all parts alone, the largest that it can be.
        """
        if isinstance(distance, (int, float)):
            return max(self.scales) * distance
        parts = zip(self.scales, distance, strict=True)
        return math.hypot(*(scale * part for scale, part in parts))

    def square(self, failure: float) -> float:
        """Give q: |n|² is larger with at most this probability."""
        tail = math.log(1 / failure)
        return self.trace + 2 * self.frobenius * math.sqrt(tail) + 2 * self.operator * tail


def expected_change(noise: Noise, distance: float | Sequence[float]) -> float:
    """Bound the mean of ||a + n|² - |a|²| (proposition A.1, as in the paper).

        tr S + 2 sqrt(2/pi) |S^½ a|

    >>> round(expected_change(Noise((0.01,), (100,)), 0.5), 5)
    0.01798
    """
    return noise.trace + 2 * math.sqrt(2 / math.pi) * noise.along(distance)


def likely_change(noise: Noise, distance: float | Sequence[float], failure: float) -> float:
    """Bound ||a + n|² - |a|²| for one a, but for a probability (proposition A.2).

        q(p/2) + 2 |S^½ a| sqrt(2 log(2/p))

    The paper adds sqrt(2/pi) |S^½ a|, where its proof gives twice that: twice the mean of |n·a|,
    about which |n·a| concentrates. The tail of a normal variable, P(|g| > t) <= exp(-t²/2), needs
    neither, so that the paper's (12) holds all the same.
    """
    across = noise.along(distance) * math.sqrt(2 * math.log(2 / failure))
    return noise.square(failure / 2) + 2 * across


def uniform_change(noise: Noise, reach: float, failure: float) -> float:
    """Bound ||a + n|² - |a|²| for all rows at once, whose features are no longer than `reach`.

        q(p) + 4 B sqrt(q(p))    (proposition A.3)

    As |a| <= 2B, it is at most |n|² + 4B |n|, so one quantile is enough. The paper bounds |n| and
    |n|² apart, each with p/2, and drops the sqrt(2) of 4B sqrt(2 |S|_op log(2/p)) on the way: its
    bound is too small where p is, from 1e-6 on in one dimension.
    """
    square = noise.square(failure)
    return square + 4 * reach * math.sqrt(square)


def excess(noise: Noise, reach: float, failure: float) -> float:
    """Bound |a'|² - |a*|² for a' that minimises |a + n|², and a* that minimises |a|².

        4 B sqrt(q(p))    (proposition A.4)

    |n|² is common to both: from |a' + n|² <= |a* + n|² follows |a'|² - |a*|² <= 2 n·(a* - a'), and
    two embeddings of generated rows are 2B apart at most. The paper has twice the uniform change.
    """
    return 4 * reach * math.sqrt(noise.square(failure))


def optimistic_excess(noise: Noise, best_distance: float, failure: float) -> float:
    """Bound the same excess where some generator comes close, that is, where |a*| is small.

        4 q(p) + 4 |a*| sqrt(q(p))    (proposition A.5)

    For |a'| <= |a' + n| + |n| <= |a* + n| + |n| <= |a*| + 2 |n|. The paper has 9 q(p/2) for 4 q(p).
    """
    length = math.sqrt(noise.square(failure))
    return 4 * length * (best_distance + length)
