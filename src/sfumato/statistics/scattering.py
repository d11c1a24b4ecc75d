"""Scattering: how much of each orientation and scale a picture has where, and how that varies.

A picture is filtered by waves of two lengths and six orientations, each within a small window;
what is left of the short ones is filtered by the long ones again. Lengths of the responses, with
no regard to their phase, are averaged over cells (Bruna and Mallat 2013). A classifier that is
linear in the roots of these averages knows edges and textures wherever they lie, before it has seen
a single private image: filters are public and the same for all data.

As in `exact_map`, a row's values are the same bits whatever rows stand beside it. Points are
multiples of 2^-12 below 2^9, and what they bring to a pixel one of 2^-10 up to 2^10: 21 + 20 bits,
and up to 2^12 of them keep a sum within the 53 of double precision. Grey levels are then whole
numbers up to 255, filters are whole numbers whose lengths add up to 2^12 at most, and a response's
length is rounded to whole eighths of a level, 2040 at most. Every partial sum is thus a whole
number below 2040 * 2^12 < 2^23, exact in single precision; averages of weights that add up to 2^6
along each side, too. The rest is done number by number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sfumato.statistics.exact_map import digest, on_steps

_ORIENTATIONS = 6
_FILTER, _AVERAGE, _EIGHTHS = 2.0**12, 2.0**6, 8.0
_BRIGHTEST = 255.0
_PIXEL_STEPS, _LARGEST_PIXEL = 2.0**10, 2.0**10  # of the grey levels that a coordinate brings
_AT_ONCE = 256

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Scattering:
    """Values of points: the scattering of the pictures that they stand for, and the points.

    A point z is seen as the picture ``z @ pixels + middle``, in grey levels.

    >>> see = Scattering.of(np.ones((1, 64)), np.zeros(64), (8, 8))
    >>> see(np.array([[16.0], [-1.0]]))[:, [0, -1]].tolist()  # doctest: +ELLIPSIS
    [[10.606..., 16.0], [0.0, -1.0]]
    """

    pixels: Floats  # (dim of points, pixels)
    middle: Floats  # (pixels,)
    shape: tuple[int, int]

    @classmethod
    def of(cls, pixels: Floats, middle: Floats, shape: tuple[int, int]) -> Scattering:
        """Round the map to the grid on which its products with points are exact."""
        return cls(_on_pixel_steps(pixels), _on_pixel_steps(middle), shape)

    def __call__(self, points: Floats) -> Floats:
        """Give the values of points, multiples of 2^-12; points are rounded to their grid first."""
        points = on_steps(points)
        parts = [points[start : start + _AT_ONCE] for start in range(0, len(points), _AT_ONCE)]
        seen = [on_steps(np.sqrt(self._averages(part))) for part in parts]
        return np.concatenate([np.concatenate(seen), points], axis=1)

    def _averages(self, points: Floats) -> Floats:
        grey = np.clip(np.rint(points @ self.pixels + self.middle), 0.0, _BRIGHTEST)
        pictures = grey.astype(np.float32).reshape(-1, *self.shape)
        short = _responses(pictures, 0, 2, _EIGHTHS / _FILTER)
        long = _responses(pictures, 1, 2, _EIGHTHS / _FILTER)
        both = _responses(short.reshape(-1, *short.shape[2:]), 0.5, 1, 1 / _FILTER)
        both = both.reshape(len(points), -1, *both.shape[2:])
        averages = [
            _averaged(np.float32(_EIGHTHS) * pictures[:, None], 4, 1.6),
            _averaged(short, 2, 0.8),
            _averaged(long, 2, 0.8),
            _averaged(both, 4, 1.6),
        ]
        whole = np.concatenate([each.reshape(len(points), -1) for each in averages], axis=1)
        return whole.astype(np.float64) / _AVERAGE**2

    def digest(self) -> str:
        """Give a short name that changes with any bit of the map."""
        return digest(self.pixels, self.middle, np.array(self.shape))


def _on_pixel_steps(levels: Floats) -> Floats:
    rounded = np.rint(levels * _PIXEL_STEPS) / _PIXEL_STEPS
    return np.clip(rounded, -_LARGEST_PIXEL, _LARGEST_PIXEL)


def _responses(pictures: Singles, octave: float, stride: int, unit: float) -> Singles:
    """Filter pictures (n, height, width) by waves of an octave: (n, orientations, height, width).

    What is given are the lengths of complex responses, in whole units.
    """
    filters = _waves(octave)
    side = math.isqrt(len(filters))
    edges = (side // 2, side // 2)
    padded = np.pad(pictures, ((0, 0), edges, edges), mode="edge")
    windows = sliding_window_view(padded, (side, side), axis=(1, 2))[:, ::stride, ::stride]
    places = windows.transpose(3, 4, 0, 1, 2)
    real, imaginary = (filters.T @ places.reshape(side * side, -1)).reshape(2, _ORIENTATIONS, -1)
    lengths = np.rint(np.sqrt(real * real + imaginary * imaginary) * np.float32(unit))
    maps: Singles = np.moveaxis(lengths.reshape(_ORIENTATIONS, *places.shape[2:]), 0, 1)
    return maps


@cache
def _waves(octave: float) -> Singles:
    """Give Morlet wavelets (pixels of a window, real parts and then imaginary ones).

    The octave 0.5 stands for the waves of octave 1 on pictures of half the resolution.
    """
    half, scale = (6, 2.0) if octave == 1 else (3, 1.0)
    down, across = np.mgrid[-half : half + 1, -half : half + 1] / scale
    found = []
    for turn in np.pi * np.arange(_ORIENTATIONS) / _ORIENTATIONS:
        along = across * np.cos(turn) + down * np.sin(turn)
        beside = down * np.cos(turn) - across * np.sin(turn)
        window = np.exp(-(along**2 + (beside / 2) ** 2) / (2 * 0.8**2))
        wave = window * np.exp(0.75j * np.pi * along)
        wave -= window * (wave.sum() / window.sum())
        found.append((_FILTER * wave / np.abs(wave).sum()).ravel())
    waves = np.stack(found, axis=1)
    whole: Singles = np.trunc(np.concatenate([waves.real, waves.imag], axis=1)).astype(np.float32)
    return whole


def _averaged(maps: Singles, stride: int, deviation: float) -> Singles:
    """Average maps (n, channels, height, width) over cells, in units of 1 / _AVERAGE²."""
    rows, columns = (_weights(size, stride, deviation) for size in maps.shape[2:])
    across: Singles = maps @ columns.T
    averages: Singles = across.swapaxes(2, 3) @ rows.T
    return averages


@cache
def _weights(size: int, stride: int, deviation: float) -> Singles:
    """Give the weights of places (cells, places) around each cell's middle; edges go on."""
    reach = round(2.5 * deviation)
    offsets = np.arange(-reach, reach + 1)
    bell = np.exp(-(offsets**2) / (2 * deviation**2))
    bell = np.trunc(_AVERAGE * bell / bell.sum())
    weights = np.zeros((-(-size // stride), size), np.float32)
    for cell, row in enumerate(weights):
        np.add.at(row, np.clip(stride * cell + offsets, 0, size - 1), bell)
    return weights
