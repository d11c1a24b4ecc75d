"""Embeddings side by side, each with its share of the budget, as one of norm 1.

For embeddings phi_i of norm 1 and shares s_i that sum to 1, [ sqrt(s_i) phi_i ] has norm 1. Noise
of one size on all of it is the same as releases of each that share the mu² of the budget by s_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sfumato.data.batch import Batch

Floats = NDArray[np.float64]


class ImageMap(Protocol):
    """A vector of norm 1 at most for each image, exactly or with a gradient."""

    @property
    def dim(self) -> int:
        """The length of a vector."""

    @property
    def nonnegative(self) -> bool:
        """Whether no entry is ever negative."""

    @property
    def blocks(self) -> list[int]:
        """The lengths of its parts."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the images."""

    def around(self, centre: Floats) -> ImageMap:
        """Give the same embedding around a centre, which is shortened to norm 1."""

    def __call__(self, batch: Batch) -> Floats:
        """Embed the images of a batch, one row each."""

    def class_means(self, images: Tensor, classes: int) -> Tensor:
        """Give the mean embeddings of generated images (n, channels, height, width) in [0, 1].

        There are as many of each class; those of one class come after those of another.
        """

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify this map."""


@dataclass(frozen=True, eq=False)
class JoinedMap:
    """Embeddings and their shares.

    Parameters
    ----------
    maps
        The embeddings, of images of one shape.
    shares
        Their shares of the squared norm, which sum to 1.
    looks
        Which part of the generated images each map looks at in a step of training. This changes no
        embedding.
    """

    maps: tuple[ImageMap, ...]
    shares: tuple[float, ...]
    looks: tuple[float, ...]

    def __post_init__(self) -> None:
        if not math.isclose(sum(self.shares), 1) or min(self.shares) < 0:
            raise ValueError("the shares do not sum to 1")

    @property
    def dim(self) -> int:
        """The length of all together."""
        return sum(each.dim for each in self.maps)

    @property
    def norm(self) -> float:
        """One at most."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """Whether no entry of any is ever negative."""
        return all(each.nonnegative for each in self.maps)

    @property
    def blocks(self) -> list[int]:
        """The lengths of all parts."""
        return [size for each in self.maps for size in each.blocks]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the images."""
        return self.maps[0].shape

    def around(self, centre: Floats) -> JoinedMap:
        """Give each embedding around its own part of a centre."""
        ends = np.cumsum([each.dim for each in self.maps])[:-1]
        parts = zip(self.maps, np.split(centre, ends), self._roots, strict=True)
        maps = tuple(each.around(part / root) for each, part, root in parts)
        return JoinedMap(maps, self.shares, self.looks)

    def __call__(self, batch: Batch) -> Floats:
        """Embed the images of a batch, one row each."""
        parts = zip(self.maps, self._roots, strict=True)
        return np.concatenate([root * each(batch) for each, root in parts], axis=1)

    def class_means(self, points: Tensor) -> Tensor:
        """Give the mean embedding of the points (classes, n, size) of each class."""
        classes = len(points)
        height, width, colours = self.shape
        found = []
        for each, root, part in zip(self.maps, self._roots, self.looks, strict=True):
            most = math.ceil(part * points.shape[1])
            some = points[:, :most].reshape(-1, height, width, colours).permute(0, 3, 1, 2)
            found.append(root * each.class_means(some, classes))
        return torch.cat(found, dim=1)

    def describe(self) -> dict[str, Any]:
        """Give the embeddings and their shares."""
        return {"joined": [each.describe() for each in self.maps], "shares": list(self.shares)}

    @property
    def _roots(self) -> list[float]:
        return [math.sqrt(share) for share in self.shares]
