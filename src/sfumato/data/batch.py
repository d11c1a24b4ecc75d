"""Encoded rows, the only form in which statistics see private data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Batch:
    """Encoded rows, the only form in which statistics see private data.

    `codes` holds one integer cell per modelled column (for image sets: the class), `unit` the
    numbers scaled to the unit cube, one per numeric column (for image sets: one per pixel).
    """

    codes: NDArray[np.int32]
    unit: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.codes)

    def where(self, mask: NDArray[Any] | slice) -> Batch:
        """Give the rows that a mask, an index or a slice selects."""
        return Batch(self.codes[mask], self.unit[mask])
