"""DP-MERF: a generator whose random Fourier mean embedding meets a released one.

Harder, Adamczewski and Park (2021). Two releases: the number of rows of each class, and for each
class the sum of

    h(x) = [phi(x_num) ; x_cat / sqrt(q)]

with phi the Fourier features of the numbers (for images: of the pixels) and x_cat the one-hot
vectors of q categories. Both parts have norm 1. The categories are counted, so that replacing a
row costs sqrt(2) instead of 2 for them, and sqrt(6) in all, where the paper has 2 sqrt(2). All
that follows is training on released values.

Departures from the paper: length scales follow a public rule, and not the rows; noisy classes are
drawn to the mean of all; the loss has no bias from small batches; training ends at the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SfumatoError, within
from sfumato.modelling.class_counts import COUNT_SHARE
from sfumato.modelling.spaces import ImageSpace, PointSpace
from sfumato.papers.embedding.base import EmbeddingMethod, with_nulls
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.statistic import Statistic
from sfumato.privacy.zcdp import gaussian_scale
from sfumato.statistics.algebra import Concat, PerClass, Quantized, Weighted
from sfumato.statistics.counts import Counts
from sfumato.statistics.fourier import Fourier, best_features

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.papers.embedding.training import Embedding, Target

MOST_FEATURES = 2_000  # bounds the time of a training step

_GRID_BITS = 20
_GRID = 1 << _GRID_BITS
_IMAGE_SCALE = 0.2  # times sqrt(pixels); on 28x28 the paper's is 0.37
_TABLE_SCALE = 0.3


@dataclass(frozen=True, kw_only=True)
class Merf(EmbeddingMethod):
    """Random Fourier mean embeddings, for tables and image sets.

    Parameters
    ----------
    features
        The number of Fourier features; None takes the number, up to 2,000, with the smallest error
        bound for the budget and the noisy number of rows.

    `target`, `balanced` and `steps` are those of `EmbeddingMethod`.
    """

    name: ClassVar[str] = "merf"

    features: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        within(features=(self.features, 2, 100_000))
        if self.features is not None and self.features % 2:
            raise SfumatoError(f"features must be an even number, got {self.features}")

    def embeddings(
        self, space: PointSpace, budget: Budget, rows: int | None = None
    ) -> dict[str, tuple[Statistic, float]]:
        """Give the embedding with as many features as there may be, or as the rows suggest."""
        features = self.features or MOST_FEATURES
        if rows is not None:
            features = self._features(space, budget, rows)
        embedding = MeanEmbedding(space, features, self.seed)
        return {"mean embedding": (embedding.statistic, 1 - COUNT_SHARE)}

    def targets(
        self, curator: Curator, space: PointSpace, counts: NDArray[np.float64]
    ) -> list[tuple[Embedding, Target]]:
        """Release the embedding, with the number of features that suits the number of rows."""
        from sfumato.papers.embedding.training import Target

        features = self._features(space, curator.budget, counts.sum())
        laid = curator.layout(
            "mean embedding", lambda: {"features and seed": np.array([features, self.seed])}
        )
        embedding = MeanEmbedding(space, *laid["features and seed"].tolist())
        release = curator.release("mean embedding", embedding.statistic, 1 - COUNT_SHARE)
        target = Target.of(
            release.values.reshape(space.classes, -1) / _GRID,
            counts,
            release.sigma / _GRID,
            embedding.freedoms,
        )
        return [(embedding, target)]

    def _features(self, space: PointSpace, budget: Budget, rows: float) -> int:
        """Give the number of features that was asked for, or that suits the number of rows."""
        noise = gaussian_scale(1.0, (1 - COUNT_SHARE) * budget.rho)
        # The noise of all classes meets in the loss: as if there were fewer rows.
        apart = rows / math.sqrt(space.classes)
        return self.features or best_features(apart, noise, MOST_FEATURES)


@dataclass(frozen=True, eq=False)
class MeanEmbedding:
    """The embedding h: of private rows as a statistic, of generated points as a tensor."""

    space: PointSpace
    features: int
    seed: int

    @cached_property
    def fourier(self) -> Fourier:
        """The map of the numbers."""
        return Fourier(self.space, self.features, length_scales(self.space), self.seed)

    @property
    def weight(self) -> int:
        """The grid steps of one count, for a norm of 1 over all categories."""
        return max(1, int(_GRID / math.sqrt(max(1, len(self.space.axes)))))

    @property
    def parts(self) -> list[Statistic]:
        """The statistics of the numbers and of the categories, whichever there are."""
        parts: list[Statistic] = []
        if self.space.size:
            parts.append(Quantized(self.fourier, bits=_GRID_BITS))
        if self.space.axes:
            parts.append(Weighted(Counts([(axis,) for axis in self.space.axes]), self.weight))
        return parts

    @property
    def freedoms(self) -> list[tuple[int, int]]:
        """The size of each part, and in how many directions points can move it."""
        categories = sum(self.space.blocks)
        sizes = [(self.features, self.space.size), (categories, categories)]
        return [(size, free) for size, free in sizes if free]

    @property
    def statistic(self) -> Statistic:
        """The sum over the rows of each class."""
        whole = Concat(self.parts)
        if self.space.classes == 1:
            return whole
        return PerClass(whole, self.space.class_column, self.space.classes)

    def __call__(self, points: Tensor) -> Tensor:
        """Give the mean over the points of each class."""
        classes, each, _ = points.shape
        return self.of_tensor(points.flatten(0, 1)).view(classes, each, -1).mean(1)

    def of_tensor(self, points: Tensor) -> Tensor:
        """Embed generated points, differentiably."""
        import torch

        numbers, blocks = with_nulls(self.space, points)
        parts = []
        if self.space.size:
            parts.append(self.fourier.of_tensor(numbers))
        if self.space.axes:
            parts.append(blocks * (self.weight / _GRID))
        return torch.cat(parts, dim=1)


def length_scales(space: PointSpace) -> tuple[float, ...]:
    """Choose length scales by the number of coordinates alone.

    Rows in the unit cube are about sqrt(d) apart. The more coordinates, the less their distances
    differ, and the less do scales far off say: with few coordinates the scales are spread wide,
    for rows may crowd in a small part of generous bounds.
    """
    root = math.sqrt(space.size)
    if isinstance(space, ImageSpace):
        return (_IMAGE_SCALE * root,)
    spread = 1 + 8 / root
    return tuple(_TABLE_SCALE * root * factor for factor in (1 / spread, 1, spread))
