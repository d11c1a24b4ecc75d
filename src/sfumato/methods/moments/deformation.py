"""Small deformations at random: what a model of means and shapes cannot draw by itself.

Ellipsoids in pixel space blur whatever turns, leans, grows or moves from image to image: the
average of two strokes is no stroke. Turning drawn images a little, each by its own angle, brings
such variety back. How images are deformed is public and depends on no data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]

# Standard deviations at an amount of 1.
_TURN = 0.05  # radians
_GROWTH = 0.04  # along each axis, of the size
_SLANT = 0.06  # pixels across, for each pixel down
_SHIFT = 0.4 / 28  # of the height and width


@dataclass(frozen=True)
class Deformation:
    """Turns, stretches, slants and shifts images, each by normal numbers of its own.

    >>> images = np.zeros((2, 9, 9, 1), np.float32)
    >>> images[:, 4] = 1
    >>> drawn = Deformation(2.0)(images, np.random.default_rng(0))
    >>> drawn.shape, bool((drawn[0] == drawn[1]).all())
    ((2, 9, 9, 1), False)
    """

    amount: float

    def __call__(self, images: Singles, rng: np.random.Generator) -> Singles:
        """Deform images (n, height, width, channels); what comes in from outside is the edge."""
        count, height, width, _ = images.shape
        turn, tall, wide, slant = (
            self.amount * rng.standard_normal((4, count, 1, 1), np.float32)
            * np.array([_TURN, _GROWTH, _GROWTH, _SLANT], np.float32).reshape(4, 1, 1, 1)
        )  # fmt: skip
        shifts = self.amount * _SHIFT * rng.standard_normal((2, count, 1, 1), np.float32)
        down = np.arange(height, dtype=np.float32)[:, None] - (height - 1) / 2
        across = np.arange(width, dtype=np.float32) - (width - 1) / 2
        stretched, slanted = (1 + tall) * down, slant * down + (1 + wide) * across
        rows = np.cos(turn) * stretched - np.sin(turn) * slanted
        columns = np.sin(turn) * stretched + np.cos(turn) * slanted
        return _looked_up(
            images,
            rows + (height - 1) / 2 + height * shifts[0],
            columns + (width - 1) / 2 + width * shifts[1],
        )


def _looked_up(images: Singles, rows: Singles, columns: Singles) -> Singles:
    """Give the values at places between pixels, (n, height, width) each, linearly."""
    above, below, down = _between(rows, images.shape[1])
    left, right, across = _between(columns, images.shape[2])
    each = np.arange(len(images))[:, None, None]
    upper = images[each, above, left] * (1 - across) + images[each, above, right] * across
    lower = images[each, below, left] * (1 - across) + images[each, below, right] * across
    return (upper * (1 - down) + lower * down).astype(np.float32)


def _between(places: Singles, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Singles]:
    """Give the pixels on both sides of places, and how far they are from the first to the next."""
    inside = np.clip(places, 0, size - 1)
    first = inside.astype(np.int64)
    part = (inside - first).astype(np.float32)[..., None]
    return first, np.minimum(first + 1, size - 1), part
