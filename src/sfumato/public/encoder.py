"""An encoder: what a public network sees in an image, as a short vector no longer than 1.

Let phi(x), of norm 1 at most, be what a view sees of an image (`view.py`).
With the mean m of phi over public images and W its leading principal directions there, each divided
by its deviation,

    v(x) = W (phi(x) - m) / r,   shortened to norm 1 where it is longer,

r being the median length over the public images. All directions count alike, so that a Gaussian
with a diagonal covariance is a fair model of a class.

phi - m is rounded to whole multiples of 2^-18, and is no longer than 2 but for rounding, below 2^20
of them. W is rounded to whole numbers below 2^20. By Cauchy and Schwarz every partial sum of a
product over d averages is a whole number below 2^40 sqrt(d), at most 2^50: exact in any order.
So is the length of v, whose entries are whole multiples of 2^-20 below 2^21 of them. So v(x) is a
function of phi(x) alone, bit by bit, whichever images stand beside it, and what `view.py` says of
phi holds for v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.public.view import View
from sfumato.statistics.exact_map import digest

Floats = NDArray[np.float64]

_STEPS = 2.0**18  # of phi - m
_LARGEST_WEIGHT = 2.0**20
_FINE_STEPS = 2.0**20  # of a vector's entries
_MOST_ENTRIES = 1 << 10
_MOST_AVERAGES = 1 << 20
_AT_ONCE = 1000  # images
_LEAST_LENGTH = 1e-6  # of a direction, as a part of the longest


@dataclass(frozen=True, eq=False)
class Encoder:
    """The vectors above, of private images and of public ones alike.

    Parameters
    ----------
    view
        What gives phi.
    centre
        The mean m, in steps.
    weights
        The directions W, (averages, dim), whole numbers.
    radius
        What a product's length is divided by.
    """

    view: View
    centre: Floats
    weights: Floats
    radius: float

    @classmethod
    def of_public(cls, view: View, images: NDArray[np.uint8], dim: int) -> tuple[Encoder, Floats]:
        """Learn from public images (n, height, width, channels), and give their vectors, too."""
        if len(images) < 2 * dim:
            raise SfumatoError(
                f"{dim} directions need at least {2 * dim} public images, and there are "
                f"{len(images)}"
            )
        seen = np.concatenate([view(_batch(part)) for part in _parts(images)])
        centre = np.rint(seen.mean(axis=0) * _STEPS)
        apart = torch.from_numpy((seen - centre / _STEPS).astype(np.float32))
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            _, lengths, directions = torch.svd_lowrank(apart, dim + 10, niter=4)
        if len(lengths) < dim or not lengths[dim - 1] > _LEAST_LENGTH * lengths[0]:
            raise SfumatoError(
                f"the public images differ in fewer than {dim} ways: bring others, or ask for "
                "fewer directions"
            )
        scaled = (directions[:, :dim] / lengths[:dim]).double().numpy()
        weights = np.rint(scaled * ((_LARGEST_WEIGHT - 1) / np.abs(scaled).max()))
        found = cls(view, centre, weights, 1.0)
        products = np.linalg.norm(found._products(seen), axis=1)
        encoder = cls(view, centre, weights, max(1.0, float(np.median(products))))
        return encoder, encoder._vectors(seen)

    def __post_init__(self) -> None:
        if self.view.dim > _MOST_AVERAGES or self.dim > _MOST_ENTRIES:
            raise SfumatoError("this network has too many averages for exact products")
        if self.centre.shape != (self.view.dim,) or len(self.weights) != self.view.dim:
            raise ValueError("the weights or the centre are for other averages")
        if np.abs(self.weights).max() >= _LARGEST_WEIGHT or np.any(self.weights % 1):
            raise ValueError("the weights are not whole numbers below 2^20")
        if not np.linalg.norm(self.centre) <= 1.5 * _STEPS or np.any(self.centre % 1):
            raise ValueError("the centre is not whole, or longer than a mean of vectors of norm 1")
        if not 0 < self.radius < np.inf:
            raise ValueError("the radius is not a positive number")

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return int(self.weights.shape[1])

    @property
    def norm(self) -> float:
        """No vector is longer."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """Entries have both signs."""
        return False

    def __call__(self, batch: Batch) -> Floats:
        """Encode the images of a batch, one row each."""
        return self._vectors(self.view(batch))

    def of_images(self, images: NDArray[np.uint8]) -> Floats:
        """Encode images (n, height, width, channels)."""
        return np.concatenate([self(_batch(part)) for part in _parts(images)])

    def seen(self, vectors: NDArray[np.floating[Any]]) -> Floats:
        """Give the phi of norm 1 that is nearest to having these vectors."""
        back = np.linalg.pinv(self.weights) * (self.radius / _STEPS)
        found = vectors.astype(np.float64) @ back + self.centre / _STEPS
        return np.asarray(found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9))

    def _vectors(self, seen: Floats) -> Floats:
        entries = self._products(seen) / self.radius
        whole = np.rint(np.clip(entries, -2, 2) * _FINE_STEPS)
        squared = np.einsum("ij,ij->i", whole, whole)
        return np.asarray(whole / np.sqrt(np.maximum(squared, _FINE_STEPS**2))[:, None])

    def describe(self) -> dict[str, Any]:
        """Give the network and the digest of what was learned from public images."""
        learned = digest(self.centre, self.weights, np.array(self.radius))
        return {"encoder": learned, **self.view.describe()}

    def _products(self, seen: Floats) -> Floats:
        apart = np.clip(np.rint(seen * _STEPS) - self.centre, -2 * _STEPS, 2 * _STEPS)
        return np.asarray(apart @ self.weights)


def _parts(images: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    return [images[start : start + _AT_ONCE] for start in range(0, max(1, len(images)), _AT_ONCE)]


def _batch(images: NDArray[np.uint8]) -> Batch:
    flat = images.reshape(len(images), math.prod(images.shape[1:]))
    return Batch(np.zeros((len(images), 1), np.int32), flat)
