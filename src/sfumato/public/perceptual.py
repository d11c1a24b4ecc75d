"""Perceptual embeddings: the maps of a public network, and their squares, as one unit vector.

Let e(x) hold the maps of an image x, layer after layer, each averaged over a coarse grid and
divided by its layer's usual length, and let e² hold their squares. The embedding is

    phi(x) = [ sqrt(1 - s) e(x) / ||e(x)|| ; sqrt(s) e²(x) / ||e²(x)|| ]

of norm 1, or shorter where all of e is zero: adding or removing an image moves a sum of phi by at
most 1. Entries are non-negative after rectifiers, so that replacing an image costs sqrt(2); where a
network has none, 2. Noise of one size on both parts is the same as two releases that share the
budget's mu² as 1 - s to s. Harder et al. (2023) release both apart and count with 2; their code
counts with 1 for the squares, whose replacement moves them by up to sqrt(2).

Most of phi is the same for all images of a set (0.7 to 0.95 of its length, in the networks that
were tried): it says nothing, and costs noise. So with a public centre m, such as a released mean,

    psi(x) = (phi(x) - m) / ||phi(x) - m||

is taken in its place. It has norm 1, or 0, and both signs: replacing an image costs 2. Classes lie
1.4 to 3 times as far apart in it (`benchmarks/mepf.py apart`), for sqrt(2) times the noise; under
add-remove, for no more.

All norms are exact, being roots of sums of whole numbers below 2^53. The entries of e, and those of
e², are whole multiples of 2^-16 no larger than 1, and there are at most 2^21 of them. Those of
phi - m are whole multiples of 2^-24, and it is no longer than 2, since m has norm 1 at most.
Together with maps in whole numbers (`public/whole_numbers.py`) this makes phi(x) and psi(x)
functions of x alone, bit by bit.

The usual lengths are those of maps of random smooth images, drawn in whole numbers from a fixed
public seed: nothing is learned from private images, and nothing is asked of the network's makers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.public.extractor import Extractor
from sfumato.statistics.exact_map import digest

Floats = NDArray[np.float64]

_STEPS = 2.0**16  # of the grid of entries, from 0 to 1
_FINE_STEPS = 2.0**24  # of phi - m
_MOST_FEATURES = 1 << 21  # so that the norms are exact
_DRAWN = 32  # random images, for the usual lengths


@dataclass(frozen=True, eq=False)
class PerceptualMap:
    """The embedding above: of private images exactly, of generated ones with a gradient.

    Parameters
    ----------
    extractor
        The public network.
    shape
        Height, width and channels of the images.
    grid
        Maps are averaged over a grid of so many cells each way, or fewer where they are smaller.
    squares
        The part s of the budget that goes to squares, from 0 (none) to below 1.
    last
        How many of the network's last layers are taken; None takes all.
    centre
        The centre m, if there is one, of norm 1 at most.
    """

    extractor: Extractor
    shape: tuple[int, int, int]
    grid: int
    squares: float = 0.0
    last: int | None = None
    centre: Floats | None = None

    def __post_init__(self) -> None:
        if self.dim > _MOST_FEATURES:
            raise SfumatoError(
                f"{self.dim:,} features are too many for exact norms ({_MOST_FEATURES:,}): take a "
                "smaller grid"
            )
        if self.centre is not None and not (
            self.centre.shape == (self.dim,) and np.linalg.norm(self.centre) <= 1 + 1e-6
        ):
            raise ValueError("the centre is not a vector of norm 1 at most")

    @cached_property
    def _sizes(self) -> list[tuple[int, int, int]]:
        """The channels, height and width of each averaged map."""
        maps = self._taken(self.extractor.sizes(*self.shape))
        return [(count, min(high, self.grid), min(wide, self.grid)) for count, high, wide in maps]

    @property
    def dim(self) -> int:
        """The number of features."""
        return sum(math.prod(size) for size in self._sizes) * (2 if self.squares else 1)

    @property
    def blocks(self) -> list[int]:
        """The lengths of the maps' part and the squares'."""
        return [self.dim // 2] * 2 if self.squares else [self.dim]

    @property
    def norm(self) -> float:
        """One, or zero for an image of which the network sees nothing."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """Whether no entry is ever negative: squares never are."""
        return self.extractor.nonnegative and self.centre is None

    @cached_property
    def _drawn(self) -> list[Floats]:
        """The averaged maps of random smooth images."""
        pieces = self.extractor.exact_pieces(_smooth_images(self.shape), self._averaged)
        return [np.concatenate(maps) for maps in zip(*pieces, strict=True)]

    @cached_property
    def _usual(self) -> list[float]:
        """The usual length of each averaged map, times the root of their number."""
        lengths = [np.sqrt(np.square(each).sum(axis=(1, 2, 3))).mean() for each in self._drawn]
        # In single precision, so that another machine's last bits do not show.
        return [math.sqrt(len(lengths)) * max(float(np.float32(each)), 1e-9) for each in lengths]

    @cached_property
    def _square_unit(self) -> float:
        """By how much squares are multiplied, a power of two, so that they fill their range."""
        entries = self._side_by_side(self._drawn)
        usual = float(np.sqrt(np.square(entries**2).sum(axis=1)).mean())
        return 2.0 ** math.floor(-math.log2(max(usual, 2.0**-16)))

    def __call__(self, batch: Batch) -> Floats:
        """Embed the images of a batch, one row each."""
        entries = self.entries(batch.pixels.astype(np.uint8).reshape(-1, *self.shape))
        found = math.sqrt(1 - self.squares) * _unit(entries)
        if self.squares:
            squared = _on_steps(np.square(entries / _STEPS) * self._square_unit)
            found = np.concatenate([found, math.sqrt(self.squares) * _unit(squared)], axis=1)
        return found if self.centre is None else _around(self.centre, found)

    def entries(self, images: NDArray[np.uint8]) -> Floats:
        """Give e of each image, in whole steps."""
        self._usual  # noqa: B018 (once, and not by each of several threads)
        return np.concatenate(
            self.extractor.exact_pieces(
                images, lambda maps: _on_steps(self._side_by_side(self._averaged(maps)))
            )
        )

    def around(self, centre: Floats) -> PerceptualMap:
        """Give the same embedding around a centre, which is shortened to norm 1."""
        return replace(self, centre=_in_ball(centre))

    def of_tensor(self, images: Tensor) -> Tensor:
        """Embed generated images (n, channels, height, width) in [0, 1]."""
        maps = self._taken(self.extractor.maps(images))
        parts = [
            functional.adaptive_avg_pool2d(found, size[1:]).flatten(1) / usual
            for found, size, usual in zip(maps, self._sizes, self._usual, strict=True)
        ]
        entries = torch.cat(parts, dim=1)
        found = math.sqrt(1 - self.squares) * functional.normalize(entries, dim=1)
        if self.squares:
            squared = functional.normalize(entries.square(), dim=1)
            found = torch.cat([found, math.sqrt(self.squares) * squared], dim=1)
        if self.centre is not None:
            found = functional.normalize(found - torch.from_numpy(self.centre).to(found), dim=1)
        return found

    def class_means(self, points: Tensor) -> Tensor:
        """Give the mean embedding of generated points (classes, n, size) of each class."""
        images = points.reshape(-1, *self.shape).permute(0, 3, 1, 2)
        return self.of_tensor(images).view(len(points), -1, self.dim).mean(1)

    def describe(self) -> dict[str, Any]:
        """Give the network and how its maps are put together."""
        return {
            "perceptual": self.extractor.identity,
            "shape": list(self.shape),
            "grid": self.grid,
            "squares": self.squares,
            "last": self.last,
            "centre": None if self.centre is None else digest(self.centre),
        }

    def _taken(self, layers: list[Any]) -> list[Any]:
        return layers if self.last is None else layers[-self.last :]

    def _averaged(self, maps: list[Floats]) -> list[Floats]:
        """Average maps over cells: exact sums of whole steps, each divided once."""
        found = []
        for each, (_, high, wide) in zip(self._taken(maps), self._sizes, strict=True):
            rows, columns = _cells(each.shape[2], high), _cells(each.shape[3], wide)
            sums = rows @ each @ columns.T
            found.append(sums / (rows.sum(axis=1)[:, None] * columns.sum(axis=1)))
        return found

    def _side_by_side(self, averaged: list[Floats]) -> Floats:
        """Give all averaged maps side by side, each in units of its usual length."""
        return np.concatenate(
            [
                each.reshape(len(each), -1) / usual
                for each, usual in zip(averaged, self._usual, strict=True)
            ],
            axis=1,
        )


def _in_ball(centre: Floats) -> Floats:
    """Shorten a noisy mean to norm 1, which the mean of vectors of norm 1 cannot pass."""
    return np.asarray(centre / max(1.0, float(np.linalg.norm(centre))))


def _around(centre: Floats, vectors: Floats) -> Floats:
    """Give where vectors of norm 1 lie from a centre of norm 1 at most, as vectors of norm 1."""
    return _unit(np.rint((vectors - centre) * _FINE_STEPS))


def _cells(size: int, count: int) -> Floats:
    """Say which of `size` places each of `count` cells takes in, as adaptive pooling does."""
    places = np.arange(size)
    starts = [index * size // count for index in range(count)]
    ends = [-(-(index + 1) * size // count) for index in range(count)]
    return np.array(
        [(places >= a) & (places < b) for a, b in zip(starts, ends, strict=True)], np.float64
    )


def _on_steps(entries: Floats) -> Floats:
    """Give entries in whole steps."""
    return np.rint(np.clip(entries, -1, 1) * _STEPS)


def _unit(whole: Floats) -> Floats:
    """Divide rows of whole numbers by their norms; rows of zeros stay zero."""
    squared = np.einsum("ij,ij->i", whole, whole)
    return np.asarray(whole / np.sqrt(np.maximum(squared, 1.0))[:, None])


def _smooth_images(shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Draw images that are rough at every scale, in whole numbers from a fixed seed."""
    height, width, channels = shape
    rng = np.random.default_rng(0)
    total = np.zeros((_DRAWN, *shape), np.int64)
    scales = [1 << power for power in range(max(1, min(height, width).bit_length() - 1))]
    for scale in scales:
        coarse = rng.integers(0, 256, (_DRAWN, -(-height // scale), -(-width // scale), channels))
        total += coarse.repeat(scale, axis=1).repeat(scale, axis=2)[:, :height, :width]
    return (total // len(scales)).astype(np.uint8)
