"""Exact discrete Gaussian noise, from the entropy of the operating system.

Floating-point Gaussians are porous: which doubles can occur depends on the private value (Mironov
2012). Here every number is drawn with exactly the probability that it should have,

    P(x) = exp(-x² / 2 sigma²) / Z,

by rejection from a discrete Laplace distribution, many numbers at once. Doubles only *decide
comparisons*: they give bounds on both sides, and where a uniform number lies between these, that
same number gets more bits, and the comparison is made with as many digits as it takes. The proof is
in docs/privacy.md.

The rows of a training's step are chosen by the same bits (`poisson_sample`). A seed never reaches
this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from os import urandom
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import within

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Words: TypeAlias = NDArray[np.uint64]

LEAST_SCALE, LARGEST_SCALE = 0.1, 2.0**55
"""A magnitude is below 2^6 blocks of at most 2^55 numbers."""

_MOST_BLOCKS = 64  # where the density is below exp(-700) of its height
_COINS = 15  # bits of a word that choose a block; one is the sign, and the rest a uniform number
_BITS = 48
_TOLERANCE = 2.0**-30  # of the bounds in doubles, which are far better: see `_Proposal.heights`
_PIECE = 1 << 13  # candidates at a time: as many as stay in a core's own memory
_ROWS = 1 << 20  # at a time: random bits for all rows at once could take much memory


def discrete_gaussian(size: int, sigma: float) -> Integers:
    """Draw `size` values from the discrete Gaussian with P(x) proportional to exp(-x²/2 sigma²)."""
    within(sigma=(sigma, LEAST_SCALE, LARGEST_SCALE))
    proposal = _Proposal.of(sigma)
    values = np.empty(size, np.int64)
    filled = 0
    while filled < size:
        # A little more than half of the candidates are kept.
        more = proposal.draw(min(_PIECE, 2 * (size - filled) + 64))[: size - filled]
        values[filled : filled + len(more)] = more
        filled += len(more)
    return values


def poisson_sample(rows: int, rate: float) -> Integers:
    """Choose each row independently with probability `rate`; give their places.

    A row is chosen where 64 random bits lie below the rate: with at most that probability.
    """
    if rate >= 1:
        return np.arange(rows)
    below = np.uint64(int(rate * 2.0**64))
    chosen = [
        start + np.flatnonzero(_words(min(_ROWS, rows - start)) < below)
        for start in range(0, rows, _ROWS)
    ]
    return np.concatenate([np.zeros(0, np.int64), *chosen])


@dataclass(frozen=True)
class _Proposal:
    """A discrete Laplace distribution in steps, and how to thin it to a discrete Gaussian.

    Block v, of 2^shift magnitudes, is chosen with probability 2^-(v+1), a magnitude in it and a
    sign evenly. A magnitude m is kept with probability `gain` · 2^v · exp(-m²/2 sigma²), for which
    `gain` is small enough that this is never above 1.
    """

    sigma: float
    shift: int
    gain: float

    @classmethod
    def of(cls, sigma: float) -> _Proposal:
        """Choose blocks of 0.59 to 1.18 sigma, for which more than half of what is drawn is kept.

        Within block v a magnitude is at least v · 2^shift, so a gain of at most
        min over v of exp((v 2^shift / sigma)² / 2) / 2^v will do.
        """
        shift = max(0, math.floor(math.log2(1.18 * sigma)))
        width = 2.0**shift / sigma
        heights = (min((v * width) ** 2 / 2, 700) - v * math.log(2) for v in range(_MOST_BLOCKS))
        return cls(sigma, shift, math.exp(min(heights)) * (1 - 2.0**-40))

    def draw(self, candidates: int) -> Integers:
        """Draw candidates, and give those that are kept."""
        words = _words(2 * candidates)
        first, second = words[:candidates], words[candidates:]
        negative = first >> np.uint64(63) == 1
        block = _heads_of(first >> np.uint64(_BITS) & np.uint64((1 << _COINS) - 1))
        uniform = (first & np.uint64((1 << _BITS) - 1)).view(np.int64)
        near = block < _MOST_BLOCKS
        block = np.minimum(block, _MOST_BLOCKS)
        offset = (second & np.uint64((1 << self.shift) - 1)).view(np.int64)
        magnitude = (block << self.shift) + offset
        kept = self._kept(magnitude, block, uniform) & near
        kept &= ~(negative & (magnitude == 0))  # or zero would come twice as often
        return np.where(negative, -magnitude, magnitude)[kept]

    def _kept(self, magnitude: Integers, block: Integers, uniform: Integers) -> NDArray[np.bool_]:
        """Tell where a uniform number, of which this many 2^-48 are known, lies below its bound."""
        bounds = self.heights(magnitude, block) * 2.0**_BITS
        kept = uniform + 1 <= bounds * (1 - _TOLERANCE)
        for place in np.flatnonzero(~kept & (uniform < bounds * (1 + _TOLERANCE))):
            kept[place] = self._is_below(*(int(a[place]) for a in (uniform, magnitude, block)))
        return kept

    def heights(self, magnitude: Integers, block: Integers) -> Floats:
        """Give gain · 2^v · exp(-m²/2 sigma²) to within 2^-31 of itself.

        Sums and products alone are used, which every processor rounds correctly.


        With r = m²/2 sigma², which has a relative error below 2^-49, this is gain · 2^-n · e^-f for
        n = the integer next to r / ln 2 - v, and |f| <= 0.3466. Up to r = 512 the error of f is
        below 2^-38, and the polynomial leaves out f⁹/9! < 2^-32 of e^-f and more. Beyond r = 512,
        2^v e^-r is below 2^-600: less than any uniform number but zero, whichever it is.
        """
        r = magnitude * (math.sqrt(0.5) / self.sigma)
        np.multiply(r, r, out=r)
        np.minimum(r, 512.0, out=r)
        r *= 1 / math.log(2)
        r -= block
        n = np.rint(r)
        r -= n
        r *= -math.log(2)
        series = np.full_like(r, 1 / 40320)
        for factor in (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
            series *= r
            series += factor
        power = (1023 - n.astype(np.int64)) << 52  # the bits of 2^-n
        series *= power.view(np.float64)
        series *= self.gain
        return series

    def _is_below(self, uniform: int, magnitude: int, block: int) -> bool:
        """Decide one comparison exactly: with more digits, and more bits of the uniform number."""
        bits, digits = _BITS, 60
        while True:
            # Decimals are rounded correctly, powers included: ten roundings, the first of them
            # magnified by an exponent below 10^6, leave an error far below 10^(12 - digits).
            with localcontext(Context(prec=digits)):
                exponent = Decimal(magnitude) ** 2 / (2 * Decimal(self.sigma) ** 2)
                bound = Decimal(self.gain) * (-exponent).exp() * 2 ** (block + bits)
                error = bound * Decimal(10) ** (12 - digits)
                if uniform + 1 <= bound - error:
                    return True
                if uniform >= bound + error:
                    return False
            uniform = uniform << 64 | int(_words(1)[0])
            bits, digits = bits + 64, digits + 20


def _heads_of(coins: Words) -> Integers:
    """Count heads (zeros) before the first tail; where all are heads, more coins are thrown."""
    # The exponent of a whole number's double tells its highest bit.
    heads: Integers = _COINS + 1022 - (coins.astype(np.float64).view(np.int64) >> 52)
    more = np.flatnonzero(coins == 0)
    if len(more):
        heads[more] = _COINS + _heads_of(_words(len(more)) >> np.uint64(64 - _COINS))
    return heads


def _words(count: int) -> Words:
    """Draw 64 random bits each."""
    return np.frombuffer(urandom(8 * count), np.uint64)
