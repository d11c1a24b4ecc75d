"""Pictures of pictures: a sheet of sample images, one row per class."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PER_CLASS = 10
MOST_CLASSES = 10
_GAP = 2
_WIDE = 640


def sample_grid(
    pixels: NDArray[np.uint8],
    labels: NDArray[Any] | None = None,
    per_class: int = PER_CLASS,
    classes: int = MOST_CLASSES,
) -> bytes:
    """Give a PNG with the first images of each class, enlarged by a whole factor."""
    if pixels.ndim == 3:
        pixels = pixels[..., None]
    if labels is None:
        rows = [pixels[start : start + per_class] for start in range(0, len(pixels), per_class)]
    else:
        rows = [pixels[labels == label][:per_class] for label in np.unique(labels)]
    height, width, channels = pixels.shape[1:]
    rows = rows[:classes]
    across = (width + _GAP) * per_class - _GAP
    sheet = np.full(((height + _GAP) * len(rows) - _GAP, across, channels), 128, np.uint8)
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            top, left = i * (height + _GAP), j * (width + _GAP)
            sheet[top : top + height, left : left + width] = image
    picture = Image.fromarray(sheet[..., 0] if channels == 1 else sheet)
    factor = max(1, _WIDE // across)
    picture = picture.resize(
        (picture.width * factor, picture.height * factor), Image.Resampling.NEAREST
    )
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


def as_text(png: bytes) -> str:
    """Give base64 for JSON and for a page."""
    return base64.b64encode(png).decode("ascii")
