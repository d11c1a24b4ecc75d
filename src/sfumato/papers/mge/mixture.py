"""Gaussians in a public feature space: for each class a mixture, of one shape.

Public images are divided into groups; their centres are where private vectors are looked for. In
one release, as `moments` does with pixels: for each class and group, the number of private images
nearest to the centre and the sum of their vectors' distances from it, over a public bound; and for
all together the second moments of these distances. A group's mean is drawn to the public centre,
and the shape to that of public images, by as much as noise drowns them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.modelling.clusters import k_means
from sfumato.modelling.covariance import denoised_shape, shrunk
from sfumato.statistics.exact_map import on_steps
from sfumato.statistics.labelled_vectors import Centres, Residuals, shortened
from sfumato.statistics.moments import LabelledMoments

if TYPE_CHECKING:
    from sfumato.public.encoder import Encoder
    from sfumato.public.pair import Pair

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

_CLUSTERED = 5000  # public images, at most
_UNIT = 16.0  # vectors are enlarged, that the grid of coordinates is fine for them


@dataclass(frozen=True)
class OnGrid:
    """An encoder's vectors, enlarged, on the grid on which distances are exact."""

    encoder: Encoder

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self.encoder.dim

    def __call__(self, batch: Batch) -> Floats:
        """Give the vectors of a batch."""
        return on_steps(_UNIT * self.encoder(batch))

    def describe(self) -> dict[str, Any]:
        """Give the encoder and the unit."""
        return {"on grid": self.encoder.describe(), "unit": _UNIT}


class GaussianMixture:
    """What is asked for a mixture for each class, and what is made of it."""

    def __init__(self, pair: Pair, laid: Mapping[str, NDArray[Any]], classes: int) -> None:
        self._bound = float(laid["bound"])
        self._codebook = Centres.of([laid["centres"]] * classes)
        nearest, public = _nearest(pair, laid["centres"])
        inside = shortened(public - self._codebook.centres[nearest], self._bound)
        self._usual = inside.T @ inside / len(inside)
        self.statistic = LabelledMoments(
            Residuals(OnGrid(pair.encoder), self._codebook, self._bound),
            count=0.5, sum_=1.0, square=0.5, pooled=True,
        )  # fmt: skip

    @staticmethod
    def layout(pair: Pair, groups: int) -> Arrays:
        """Divide public images into groups: their centres, and how far images lie from these."""
        rng = np.random.default_rng(0)
        public = _public(pair)
        some = public[rng.permutation(len(public))[:_CLUSTERED]]
        centres = on_steps(k_means(some, min(groups, len(some)), rng))
        nearest, _ = _nearest(pair, centres)
        apart = np.square(public - centres[nearest]).sum(axis=1)
        return {"centres": centres, "bound": np.sqrt(apart.mean())}

    def learned(self, values: Floats, sigma: float) -> Arrays:
        """Give the groups' sizes and means, and their common shape."""
        found = self.statistic.read(values, sigma)
        counts = np.maximum(found.counts, 0.0)
        sure = np.maximum(found.counts, max(1.0, found.noise.count))
        means = shrunk(found.sums / sure[:, None], (found.noise.sum_ / sure[:, None]) ** 2)
        rows = max(float(found.counts.sum()), 1.0)
        between = (means * counts[:, None]).T @ means / rows
        noise = found.noise.square / rows
        floor = math.sqrt(2 * len(between)) * noise + 1e-9
        shape = denoised_shape(found.squares[0] / rows - between, self._usual, noise, floor)
        return {
            "owner": self._codebook.owner,
            "sizes": counts,
            "means": (self._codebook.centres + self._bound * means) / _UNIT,
            "root": self._bound / _UNIT * np.linalg.cholesky(shape),
        }


def _public(pair: Pair) -> Floats:
    return on_steps(_UNIT * pair.features.astype(np.float64))


def _nearest(pair: Pair, centres: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Give the group of each public image, and its vector."""
    public = _public(pair)
    return Centres.of([centres]).assign(public, np.zeros(len(public), np.int64)), public


def drawn_from_groups(
    arrays: Arrays, classes: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Draw a vector of each class."""
    groups = np.empty(len(classes), np.int64)
    for label in np.unique(classes):
        own = np.flatnonzero(arrays["owner"] == label)
        here = np.flatnonzero(classes == label)
        shares = arrays["sizes"][own] + 1e-9
        groups[here] = rng.choice(own, len(here), p=shares / shares.sum())
    normal = rng.standard_normal((len(classes), len(arrays["root"])))
    return np.asarray(arrays["means"][groups] + normal @ arrays["root"].T)
