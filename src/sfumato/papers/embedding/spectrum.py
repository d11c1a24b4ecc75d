"""The spectrum of images: low frequencies as columns of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.statistics.counts import Axis
from sfumato.statistics.exact_map import ExactMap
from sfumato.statistics.frequencies import LowFrequencies

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The coefficients of low frequencies, each on the unit interval.

    No coefficient is larger than the norm of an image, at most r with pixels within 1/2 of grey.
    Those of pictures fall about as one over the frequency f, so each has the range r / (1 + f)
    either way of zero; what lies outside is set on the edge.
    """

    frequencies: LowFrequencies

    levels: int = 1023
    axes: tuple[Axis, ...] = ()

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.frequencies.matrix)

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """What a pixel adds to each number, (pixels, size)."""
        ranges = self.frequencies.radius / (1 + self.frequencies.sizes)
        return self.frequencies.matrix.T / (2 * ranges)

    @cached_property
    def _offset(self) -> NDArray[np.float64]:
        """What is taken away, so that a grey image is in the middle of all ranges."""
        return np.asarray((self._weights.sum(axis=0) - 1) / 2)

    @cached_property
    def _exact(self) -> ExactMap:
        return ExactMap.of(self._weights, self._offset)

    def __call__(self, batch: Batch) -> NDArray[np.float32]:
        """Give the numbers of a batch's images, the same bits wherever an image stands."""
        return self._exact(batch).astype(np.float32)

    def of_tensor(self, pixels: Tensor) -> Tensor:
        """Give the numbers of generated images, differentiably."""
        numbers = pixels @ pixels.new_tensor(self._weights) - pixels.new_tensor(self._offset)
        return numbers.clamp(0, 1)

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify the numbers."""
        return {"spectrum": self._exact.describe()}
