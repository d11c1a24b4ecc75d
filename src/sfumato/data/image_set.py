"""Synthetic images and their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ImageSet:
    """Synthetic images: pixels (n, height, width, channels) and their labels, if any."""

    x: NDArray[np.uint8]
    y: NDArray[Any] | None
