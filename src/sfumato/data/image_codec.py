"""Pixels to the unit cube and labels to class numbers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.data.codes import CategoryCode, Misfit
from sfumato.data.spelling import Spellings
from sfumato.errors import SfumatoError
from sfumato.schema import Images, canonical_text

Labels = Sequence[Any] | NDArray[Any]

IMAGE_CLASS = "class"
"""The name under which an image's class can be given."""

_FLOATS = (np.float16, np.float32, np.float64)


class ImageCodec:
    """Pixels to the unit cube and labels to class numbers, and back."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self._spellings = Spellings(images.classes)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.images.height, self.images.width, self.images.channels

    @property
    def classes(self) -> int:
        """The number of classes; an unlabelled set is one class."""
        return max(1, len(self.images.classes))

    @property
    def class_code(self) -> CategoryCode:
        """The code of the labels."""
        return CategoryCode(self.images.classes, other=False, nullable=False)

    def encode(self, raw: tuple[NDArray[np.uint8], Labels | None]) -> Batch:
        """Encode a batch; labels that are not listed count as the first class."""
        pixels, labels = raw
        codes = np.zeros((len(pixels), 1), np.int32)
        if self.images.classes and labels is not None:
            if self._spellings.beyond_floats and getattr(labels, "dtype", None) in _FLOATS:
                raise SfumatoError(
                    f"floating-point labels cannot tell {self._spellings.beyond_floats} from its "
                    "neighbours: give labels as whole numbers or as text"
                )
            found = self._spellings.find(pa.array(label_texts(labels), pa.string()))
            codes[:, 0] = pc.fill_null(found, 0).to_numpy(zero_copy_only=False)
        return Batch(codes, pixels.reshape(len(pixels), -1))

    def misfits(self, labels: Labels) -> tuple[pa.Array, dict[Misfit, NDArray[np.bool_]]]:
        """Give the labels as texts, and tell which of them are not listed. Private."""
        texts = pa.array(label_texts(labels), pa.string())
        if not self.images.classes:
            return texts, {}
        first = canonical_text(self.images.classes[0])
        unlisted = Misfit("not listed", f"'{first}'", "classes: list all that there may be", True)
        where = pc.is_null(self._spellings.find(texts)).to_numpy(zero_copy_only=False)
        return texts, {unlisted: where}

    def decode(self, unit: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
        """Give pixels back, rounded and clipped to their range."""
        pixels: NDArray[np.uint8] = np.rint(np.clip(unit, 0, 1) * 255).astype(np.uint8)
        return pixels.reshape(-1, *self.shape)


def label_texts(labels: Labels) -> list[str]:
    """Give each label's canonical text, from that label alone.

    >>> label_texts([2.0, "unknown", np.int64(3)])
    ['2', 'unknown', '3']
    """
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if any(isinstance(value, list | tuple | np.ndarray) for value in plain):
        raise SfumatoError("labels must be one for each image, not a list for each")
    return [canonical_text(value) for value in plain]
