"""DP-MGE: Gaussians in a public feature space, for each class.

Released at once, in one sum for each class: the feature vectors v of its images,
and their squares, entry by entry. Mean and variance follow, the noise's known share taken out, and
draws from N(mean, diag variance) are decoded. With `groups`, a class is a mixture of Gaussians of
one full shape (`mixture.py`).

The paper charges one budget for two releases; here both are parts of one vector, whose norm pays
for both. Squares are small: of a vector of norm 1 whose d entries are alike they have length
1/sqrt(d). So they are enlarged by sqrt(d)/2 and shortened where that passes 1, which in the
features of pictures it rarely does, and get as much signal for their noise as the mean has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import within
from sfumato.modelling.class_counts import COUNT_SHARE
from sfumato.modelling.latent import GRID_BITS, SUMS, Arrays, LatentMethod
from sfumato.modelling.shrinkage import class_means
from sfumato.modelling.spaces import ImageSpace
from sfumato.papers.mge.means import denoised_means
from sfumato.papers.mge.mixture import GaussianMixture, drawn_from_groups
from sfumato.privacy.curator import Curator
from sfumato.privacy.statistic import Statistic
from sfumato.statistics.algebra import FeatureMap
from sfumato.statistics.moments import LabelledMoments

if TYPE_CHECKING:
    from sfumato.public.pair import Pair

_SQUARES = 0.3  # the squares' part of the budget
_LEAST_VARIANCE = 0.01  # of what public images have


@dataclass(frozen=True)
class FirstTwoMoments:
    """A vector of norm 1 beside its squares: [sqrt(1 - s) v ; sqrt(s) q], q = sqrt(d)/2 v².

    Both parts have norm 1 at most, q being shortened where it would be longer: so has the whole.
    Shortening takes the length from the sum of squared entries, in the order in which they stand;
    a row's part is a function of that row alone.
    """

    vectors: FeatureMap

    @property
    def dim(self) -> int:
        """Twice that of the vectors."""
        return 2 * self.vectors.dim

    @property
    def norm(self) -> float:
        """One."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """Vectors have both signs."""
        return False

    @property
    def enlarged(self) -> float:
        """By how much squares are enlarged."""
        return math.sqrt(self.vectors.dim) / 2

    def __call__(self, batch: Batch) -> NDArray[np.float64]:
        """Give the vectors of a batch, one row each."""
        first = np.asarray(self.vectors(batch), np.float64)
        second = first**2 * self.enlarged
        lengths = np.sqrt([math.fsum(row) for row in second**2])
        second /= np.maximum(1.0, lengths)[:, None]
        return np.hstack([math.sqrt(1 - _SQUARES) * first, math.sqrt(_SQUARES) * second])

    def describe(self) -> dict[str, Any]:
        """Give the vectors and the squares' part."""
        return {"moments of": self.vectors.describe(), "squares": _SQUARES}


@dataclass(frozen=True, kw_only=True)
class Mge(LatentMethod):
    """Gaussians for each class, for image sets.

    Parameters
    ----------
    groups
        How many Gaussians of one full shape a class is a mixture of; 0 takes one of its own, with a
        diagonal covariance.
    """

    name: ClassVar[str] = "mge"

    groups: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        within(groups=(self.groups, 0, 1000))

    def features(self, pair: Pair) -> FirstTwoMoments:
        """Give vectors and squares."""
        return FirstTwoMoments(pair.encoder)

    def summed(self, space: ImageSpace, pair: Pair) -> Statistic:
        """Give the sums for each class, or those for each of its groups."""
        if not self.groups:
            return super().summed(space, pair)
        return GaussianMixture(
            pair, GaussianMixture.layout(pair, self.groups), space.classes
        ).statistic

    def noise_of_sum(self, statistic: Statistic, space: ImageSpace, sigma: float) -> float:
        """Give that of the mean: with groups, noise of the second moments is no part of it."""
        if not isinstance(statistic, LabelledMoments):
            return super().noise_of_sum(statistic, space, sigma)
        return statistic.noise(sigma).sum_ * math.sqrt(statistic.vectors.dim * self.groups)

    def learned(
        self, curator: Curator, space: ImageSpace, pair: Pair, counts: NDArray[np.float64]
    ) -> Arrays:
        """Release both sums, and make means and variances of them."""
        if self.groups:
            laid = curator.layout(SUMS, lambda: GaussianMixture.layout(pair, self.groups))
            mixture = GaussianMixture(pair, laid, space.classes)
            released = curator.release(SUMS, mixture.statistic, 1 - COUNT_SHARE)
            return mixture.learned(released.values, released.sigma)
        released = curator.release(SUMS, self.summed(space, pair), 1 - COUNT_SHARE)
        unit, public = float(1 << GRID_BITS), pair.features.astype(np.float64)
        sums, dim = released.values.reshape(space.classes, -1) / unit, pair.encoder.dim
        sigma = released.sigma / unit
        noisy = sums[:, :dim] / math.sqrt(1 - _SQUARES) / counts[:, None]
        first, _ = denoised_means(public, noisy, counts, sigma / math.sqrt(1 - _SQUARES))
        squares, _ = class_means(sums[:, dim:], counts, sigma, [(dim, dim)])
        second = squares / math.sqrt(_SQUARES) / self.features(pair).enlarged
        floor = _LEAST_VARIANCE * public.var(axis=0)
        return {"means": first, "variances": np.maximum(second - first**2, floor)}

    def drawn(
        self, pair: Pair, arrays: Arrays, classes: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw from the Gaussians; what is longer than 1 is shortened, as real vectors are."""
        if self.groups:
            found = drawn_from_groups(arrays, classes, rng)
        else:
            normal = rng.standard_normal((len(classes), pair.encoder.dim))
            found = arrays["means"][classes] + normal * np.sqrt(arrays["variances"][classes])
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.maximum(1.0, lengths))
