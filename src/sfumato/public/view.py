"""What an encoder looks with: a vector of norm 1 at most for each image, from a public network."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.public.extractor import Extractor
from sfumato.public.perceptual import PerceptualMap
from sfumato.public.provenance import Provenance

Floats = NDArray[np.float64]
Shape = tuple[int, int, int]

_LATER = 2 / 3  # of the layers
_LEAST_PLACES, _MOST_DOUBLINGS = 2, 4


class View(Protocol):
    """Gives a vector of norm 1 at most for each image."""

    @property
    def shape(self) -> Shape:
        """Height, width and channels of the images."""

    @property
    def dim(self) -> int:
        """The length of a vector."""

    @property
    def about(self) -> Provenance:
        """The network, and what a reader of the certificate must know of how it looks."""

    def __call__(self, batch: Batch) -> Floats:
        """Look at the images of a batch, one row each."""

    def describe(self) -> dict[str, Any]:
        """Give what determines the vectors, as plain values."""


class ExactView:
    """The averages of the maps of a network's later layers, in whole numbers (`perceptual.py`).

    A small image is doubled until the network's last map has two places each way, or a network for
    pictures of 224 would see little in it: with EfficientNet-Lite0, the nearest class mean is then
    right on 70% of CIFAR-10 where it was on 61%. Doubling is bilinear, in whole numbers too. So the
    vector is a function of the image alone, bit by bit, on any machine.
    """

    def __init__(self, network: Extractor, shape: Shape) -> None:
        self.shape, self.about = shape, network.about
        seen = seen_shape(network, shape)
        layers = len(network.sizes(*seen))
        self._averages = PerceptualMap(network, seen, grid=1, last=max(1, round(_LATER * layers)))

    @property
    def dim(self) -> int:
        """The number of averages."""
        return self._averages.dim

    def __call__(self, batch: Batch) -> Floats:
        """Look at the images of a batch, one row each."""
        images = batch.pixels.astype(np.uint8).reshape(-1, *self.shape)
        while images.shape[1] < self._averages.shape[0]:
            images = doubled(images)
        flat = images.reshape(len(images), math.prod(images.shape[1:]))
        return self._averages(Batch(np.zeros((len(images), 1), np.int32), flat))

    def describe(self) -> dict[str, Any]:
        """Give the network and how its maps are put together."""
        return {"seen of": list(self.shape), **self._averages.describe()}


def seen_shape(network: Extractor, shape: Shape) -> Shape:
    """Give the shape at which a network looks at such images."""
    height, width, channels = shape
    for _ in range(_MOST_DOUBLINGS):
        try:
            if min(network.sizes(height, width, channels)[-1][1:]) >= _LEAST_PLACES:
                break
        except SfumatoError:  # too small
            pass
        height, width = 2 * height, 2 * width
    return height, width, channels


def doubled(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Give images (n, height, width, channels) at twice the size, bilinear, in whole numbers."""
    found = images.astype(np.int32)
    for axis in (1, 2):
        places = np.arange(found.shape[axis])
        before = found.take(np.maximum(places - 1, 0), axis)
        after = found.take(np.minimum(places + 1, len(places) - 1), axis)
        both = np.stack([3 * found + before, 3 * found + after], axis + 1)
        found = both.reshape(*found.shape[:axis], 2 * len(places), *found.shape[axis + 1 :])
    return ((found + 8) // 16).astype(np.uint8)
