"""LevelMap: pixels as dark and as bright as they were released to be.

Draws are sums of smooth waves. Their pixels are a little above black where a real background is
black, and grey where real edges are sharp. So each pixel's values are mapped, in their order, to
those that the released levels of that pixel have, all classes together: which draw is the darker
one stays, and how dark it is, is as released. A map for each class would be a mark by which a
classifier tells synthetic classes apart, and which real images do not bear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn, idctn
from scipy.optimize import isotonic_regression

from sfumato.modelling.simplex import project_to_simplex
from sfumato.statistics.pixel_levels import BRIGHTEST, LEVEL_OF_BYTE

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LevelMap:
    """For each pixel, the largest drawn value of each level, and between which bytes it stays.

    >>> half_black = np.array([[0.5, *[0] * 9, 0.5]])
    >>> levels = LevelMap.of(np.linspace(-0.2, 0.8, 101, dtype=np.float32)[:, None], half_black)
    >>> levels(np.array([[0.1], [0.29], [0.8]], np.float32)).round(2).ravel().tolist()
    [0.0, 0.0, 1.0]
    """

    knots: Floats  # (pixels, levels), rising
    darkest: Floats  # (pixels,), in the unit interval
    brightest: Floats

    @classmethod
    def of(cls, drawn: Singles, shares: Floats) -> LevelMap:
        """Find the knots at which drawn pixels (images, pixels) have these shares of levels."""
        ordered = np.sort(drawn, axis=0)
        ends = np.rint(np.cumsum(shares, axis=1) * len(ordered)).astype(np.int64)
        places = np.clip(ends - 1, 0, len(ordered) - 1)
        knots = np.take_along_axis(ordered.T, places, axis=1).astype(np.float64)
        # Draws to come may lie beyond all of these: they stay within levels that have a share.
        there = np.diff(ends, axis=1, prepend=0) > 0
        first, last = there.argmax(axis=1), len(BRIGHTEST) - 1 - there[:, ::-1].argmax(axis=1)
        edges = np.concatenate([[0], BRIGHTEST]) / 255
        return cls(knots + 1e-9 * np.arange(knots.shape[1]), edges[first], edges[last + 1])

    def __call__(self, pixels: Singles) -> Singles:
        """Map drawn values (images, pixels) to the unit interval."""
        mapped = np.empty_like(pixels)
        for place, knots in enumerate(self.knots):
            mapped[:, place] = np.interp(pixels[:, place], knots, BRIGHTEST / 255)
        bounds = (each.astype(np.float32) for each in (self.darkest, self.brightest))
        return np.clip(mapped, *bounds)


def denoised_levels(
    counts: NDArray[Any], sigma: float, rows: float, drawn: Singles, shape: tuple[int, int, int]
) -> Floats:
    """Give the shares of each pixel's levels: drawn ones, moved to what stands out of the noise.

    Neighbouring pixels differ little from each other: what is released beyond the draws is taken
    apart by frequency over the image, and of each is kept the share of signal in it (Wiener). The
    signal is taken to fall with the frequency, as isotonic regression finds it.
    """
    levels = LEVEL_OF_BYTE[np.rint(255 * np.clip(drawn, 0, 1)).astype(np.uint8)]
    held = np.stack([(levels == level).mean(axis=0) for level in range(len(BRIGHTEST))], axis=1)
    departure = (np.asarray(counts, np.float64) / rows - held).reshape(*shape, -1)
    waves = dctn(departure, axes=(0, 1), norm="ortho")
    power, noise = np.mean(waves**2, axis=(2, 3)), (sigma / rows) ** 2
    order = np.argsort(np.hypot(*np.indices(power.shape)), axis=None, kind="stable")
    signal = np.empty(power.size)
    signal[order] = isotonic_regression(power.ravel()[order], increasing=False).x - noise
    signal = np.maximum(signal, 0.0)
    kept = signal / np.maximum(signal + noise, 1e-300)
    found = idctn(waves * kept.reshape(*power.shape, 1, 1), axes=(0, 1), norm="ortho")
    shares = held + found.reshape(held.shape)
    return np.stack([project_to_simplex(pixel, 1.0) for pixel in shares])
