"""Pixels as an embedding: cosine coefficients of an image, and products of its lowest ones.

Let c(x) hold the lowest frequencies of an image, louder as they get higher, since images have less
of them, and let v(x) = (b, c(x)) with a constant b. The embedding holds entries of the matrix
v v' / |v|²:

- those of b with every frequency, from whose means follow the mean image and, b being constant,
  its contrast;
- those of all pairs of the lowest ones, from whose means follow their variances and relations.

The whole matrix has norm 1, with entries off the diagonal taken once and times sqrt(2), so a part
of it is no longer. Around a centre m, psi(x) = (phi(x) - m) / |phi(x) - m| is taken in its place.

Coefficients come out of whole numbers (`statistics/exact_map.py`) as whole multiples of 2^-12 below
2^9; so |v|² is a sum of whole numbers, no larger than 2^45, and each entry one product and one
quotient of whole numbers. phi - m is rounded to whole multiples of 2^-24. So phi(x) and psi(x) are
functions of x alone, bit by bit.
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
from sfumato.public.perceptual import around, in_ball
from sfumato.statistics.exact_map import ExactMap, digest
from sfumato.statistics.frequencies import LowFrequencies

Floats = NDArray[np.float64]

_CONSTANT = 0.3  # beside coefficients whose brightness is that of a pixel, from 0 to 1
_SCALE = 64.0  # of all of v, so that its steps are fine
_STEPS = 2.0**12  # of the coordinates of an exact map
_LOUDER = 0.5  # the power of the frequency that coefficients are multiplied by


@dataclass(frozen=True, eq=False)
class PixelProducts:
    """The embedding above: of private images exactly, of generated ones with a gradient.

    Parameters
    ----------
    shape
        Height, width and channels of the images.
    coefficients
        How many of the lowest frequencies are taken.
    multiplied
        How many of these are multiplied with each other.
    centre
        The centre m, if there is one, of norm 1 at most.
    """

    shape: tuple[int, int, int]
    coefficients: int
    multiplied: int
    centre: Floats | None = None

    @cached_property
    def _weights(self) -> Floats:
        """What pixels in [0, 1] are multiplied by, (pixels, coefficients)."""
        low = LowFrequencies(self.shape, self.coefficients)
        louder = (1 + low.sizes) ** _LOUDER * _SCALE / math.sqrt(self.shape[0] * self.shape[1])
        return low.matrix.T * louder

    @cached_property
    def _coordinates(self) -> ExactMap:
        return ExactMap.of(self._weights, np.zeros(self.coefficients))

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """The rows and columns of the entries that are taken, and what each is multiplied by."""
        first, second = np.triu_indices(1 + self.multiplied)
        rest = np.arange(1 + self.multiplied, 1 + self.coefficients)
        rows = np.concatenate([first, np.zeros_like(rest)])
        columns = np.concatenate([second, rest])
        return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))

    @property
    def dim(self) -> int:
        """The number of entries."""
        taken = 1 + self.multiplied
        return taken * (taken + 1) // 2 + self.coefficients - self.multiplied

    @property
    def norm(self) -> float:
        """One, or less where pairs of higher frequencies are left out."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """Coefficients have both signs."""
        return False

    @property
    def blocks(self) -> list[int]:
        """It has one part."""
        return [self.dim]

    def around(self, centre: Floats) -> PixelProducts:
        """Give the same embedding around a centre, which is shortened to norm 1."""
        return replace(self, centre=in_ball(centre))

    def __call__(self, batch: Batch) -> Floats:
        """Embed the images of a batch, one row each."""
        coordinates = self._coordinates(batch) * _STEPS
        constant = np.full((len(coordinates), 1), np.rint(_CONSTANT * _SCALE * _STEPS))
        whole = np.concatenate([constant, coordinates], axis=1)
        rows, columns, factors = self._pairs
        squared = np.einsum("ij,ij->i", whole, whole)[:, None]
        found = whole[:, rows] * whole[:, columns] / squared * factors
        return found if self.centre is None else around(self.centre, found)

    def class_means(self, images: Tensor, classes: int) -> Tensor:
        """Give the mean embedding of generated images of each class, one class after another.

        Images are (n, channels, height, width) in [0, 1]. With p = 1 / |phi - m|, the mean of psi
        is that of p v v', less that of p times m: one product of matrices, and no embedding is
        made of any single image.
        """
        pixels = images.permute(0, 2, 3, 1).flatten(1)
        constant = pixels.new_full((len(pixels), 1), _CONSTANT * _SCALE)
        whole = functional.normalize(
            torch.cat([constant, pixels @ self._tensor(self._weights, pixels)], dim=1), dim=1
        )
        low, rest = whole.tensor_split([1 + self.multiplied], dim=1)
        rest = math.sqrt(2) * whole[:, :1] * rest
        weights = torch.ones_like(whole[:, :1])
        if self.centre is not None:
            matrix, row, squared = (self._tensor(each, whole) for each in self._centre)
            weights = low.square().sum(1).square() + rest.square().sum(1) + squared
            weights = weights - 2 * ((low @ matrix * low).sum(1) + rest @ row)
            weights = weights.clamp_min(1e-8).rsqrt()[:, None]
        each = len(pixels) // classes
        low, rest, weights = (
            part.view(classes, each, part.shape[1]) for part in (low, rest, weights)
        )
        products = (weights * low).transpose(1, 2) @ low / low.shape[1]
        rows, columns, factors = self._pairs
        inside = columns <= self.multiplied
        taken = products[:, rows[inside], columns[inside]] * self._tensor(factors[inside], low)
        found = torch.cat([taken, (weights * rest).mean(1)], dim=1)
        if self.centre is not None:
            found = found - weights.mean(1) * self._tensor(self.centre, found)
        return found

    @cached_property
    def _centre(self) -> tuple[Floats, Floats, Floats]:
        """The centre as a symmetric matrix and a row beside it, and its squared length."""
        assert self.centre is not None
        rows, columns, factors = self._pairs
        inside = columns <= self.multiplied
        matrix = np.zeros((1 + self.multiplied,) * 2)
        matrix[rows[inside], columns[inside]] = self.centre[inside] / factors[inside]
        matrix = np.where(np.eye(len(matrix), dtype=bool), matrix, matrix + matrix.T)
        return matrix, self.centre[~inside], np.square(self.centre).sum()

    def _tensor(self, values: Floats, like: Tensor) -> Tensor:
        return torch.as_tensor(values, dtype=like.dtype, device=like.device)

    def describe(self) -> dict[str, Any]:
        """Give the coefficients and the centre."""
        return {
            "pixels": self._coordinates.describe(),
            "multiplied": self.multiplied,
            "centre": None if self.centre is None else digest(self.centre),
        }
