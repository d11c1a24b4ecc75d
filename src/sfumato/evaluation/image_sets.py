"""Image sets as the measures see them: arrays of one shape, classes numbered alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.image_codec import Labels
from sfumato.data.image_sources import image_rows
from sfumato.errors import SfumatoError
from sfumato.schema import Images, canonical_text


@dataclass(frozen=True)
class NumberedImages:
    """Images (n, height, width, channels) of uint8 and their class numbers, if they have any."""

    x: NDArray[np.uint8]
    y: NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: NDArray[Any]) -> NumberedImages:
        """Give the images that an index selects."""
        return NumberedImages(self.x[rows], None if self.y is None else self.y[rows])

    def at_most(self, count: int | None, seed: int) -> NumberedImages:
        """Give a seeded sample."""
        if count is None or len(self) <= count:
            return self
        return self.take(np.random.default_rng(seed).choice(len(self), count, replace=False))

    def split(self, share: float, seed: int) -> tuple[NumberedImages, NumberedImages]:
        """Split at random into a part of this share and the rest."""
        order = np.random.default_rng(seed).permutation(len(self))
        cut = min(max(round(share * len(self)), 1), len(self) - 1)
        return self.take(order[:cut]), self.take(order[cut:])


def read_images(data: Any, images: Images) -> tuple[NDArray[np.uint8], Labels | None]:
    """Read an image set whole: npz, idx, a folder, or a pair of arrays."""
    pixels, labels = [], []
    for x, y in image_rows(data, images).batches():
        pixels.append(x)
        labels.append(y)
    if not pixels:
        raise SfumatoError("the image set is empty")
    if any(y is None for y in labels):
        return np.concatenate(pixels), None
    return np.concatenate(pixels), np.concatenate([np.asarray(y) for y in labels if y is not None])


def image_sets(
    *given: tuple[str, NDArray[np.uint8] | None, Labels | None],
) -> tuple[list[str], list[NumberedImages | None]]:
    """Check the arrays and number the classes of all sets alike."""
    texts = {what: [canonical_text(label) for label in y] for what, _, y in given if y is not None}
    names = sorted({text for each in texts.values() for text in each}, key=_natural)
    numbers = {name: number for number, name in enumerate(names)}
    sets: list[NumberedImages | None] = []
    shape: tuple[int, ...] | None = None
    for what, x, _ in given:
        if x is None:
            sets.append(None)
            continue
        x = x[..., None] if x.ndim == 3 else x
        if not len(x):
            raise SfumatoError(f"there are no {what} images, so there is nothing to evaluate")
        if x.dtype != np.uint8 or x.ndim != 4 or (shape or x.shape[1:]) != x.shape[1:]:
            raise SfumatoError(
                f"the {what} images must be uint8 of one shape (n, height, width, channels); "
                f"got {x.dtype} of shape {x.shape}"
            )
        shape = x.shape[1:]
        if what in texts and len(texts[what]) != len(x):
            raise SfumatoError(f"there are {len(x)} {what} images but {len(texts[what])} labels")
        y = np.array([numbers[t] for t in texts[what]], np.int64) if what in texts else None
        sets.append(NumberedImages(x, y))
    return names, sets


def _natural(text: str) -> tuple[bool, int, str]:
    """Order numbers by size, before words."""
    return (not text.isdecimal(), int(text) if text.isdecimal() else 0, text)
