"""Encoded rows, the only form in which statistics see private data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Batch:
    """Encoded rows.

    `codes` holds one integer cell per modelled column (for image sets: the class). `numbers` holds
    one number per numeric column, scaled to the unit interval; or, for image sets, the pixels as
    the bytes that they are.

    >>> batch = Batch(np.array([[1]], np.int32), np.array([[0, 255]], np.uint8))
    >>> batch.unit.tolist(), batch.pixels.tolist()
    ([[0.0, 1.0]], [[0.0, 255.0]])
    """

    codes: NDArray[np.int32]
    numbers: NDArray[np.float32] | NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def unit(self) -> NDArray[np.float32]:
        """The numbers in the unit cube."""
        if self.numbers.dtype != np.uint8:
            return self.numbers  # type: ignore[return-value]
        unit: NDArray[np.float32] = self.numbers.astype(np.float32)
        unit /= 255
        return unit

    @property
    def pixels(self) -> NDArray[np.float64]:
        """The numbers as whole ones from 0 to 255, whatever they hold."""
        if self.numbers.dtype == np.uint8:
            return self.numbers.astype(np.float64)
        inside = np.clip(np.nan_to_num(self.numbers), 0, 1).astype(np.float64)
        whole: NDArray[np.float64] = np.rint(inside * 255)
        return whole

    def where(self, mask: NDArray[Any] | slice) -> Batch:
        """Give the rows that a mask, an index or a slice selects."""
        return Batch(self.codes[mask], self.numbers[mask])
