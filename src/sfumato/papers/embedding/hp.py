"""DP-HP: a generator whose Hermite mean embedding meets a released one.

Vinaroz et al. (2022). Released, for each class: the number of its rows; the sum kernel, with the
Hermite features of every number (for images: of every pixel) and the one-hot vector of every
category; and the product kernel, with outer products of columns (for images: of low frequencies).

Departures from the paper:

- Features are centred and looked up in tables of whole numbers, which give the exact sensitivity.
  The paper counts with 2 for each kernel; here it is at most sqrt(2), and less for products.
- Products are released once, for all pairs among the columns that vary most by what the sum kernel
  told, and not anew for a few random columns in every epoch. Ten times the pairs bring each of
  them sqrt(10) times the noise, but there are ten times as many to meet at once: as many are taken
  as the rows allow. The paper's way is there by `draws` and `degree`.
- Pixels vary with their neighbours, so products of two of them say little that is new. Those of
  images are of the coefficients of a cosine transform.
- Length scales follow a public rule: the more columns share the budget, the coarser.
- Both kernels count by the inverse of their noise; the paper has a constant gamma for each set.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import SfumatoError, in_open_unit, within
from sfumato.modelling.class_counts import COUNT_SHARE
from sfumato.modelling.spaces import ImageSpace, PointSpace
from sfumato.papers.embedding.base import EmbeddingMethod
from sfumato.papers.embedding.hermite_kernels import KernelMeans, Kernels
from sfumato.papers.embedding.spectrum import Spectrum
from sfumato.privacy.answers import Arrays
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_spend
from sfumato.privacy.statistic import Statistic
from sfumato.statistics.frequencies import LowFrequencies
from sfumato.statistics.hermite import Hermite

if TYPE_CHECKING:
    from sfumato.modelling.networks import Generator
    from sfumato.papers.embedding.training import Embedding, Target

_SHORTEST, _LENGTH = 0.1, 0.05  # at least, and for two columns
_LEAST = 0.01  # that may be asked for: 130 features
_FEATURES = 1.3  # times 1 / length: these leave out less than 1% of the kernel
_IMAGE_CODE = 16  # random numbers behind an image
_GROUP = 45  # columns of which all pairs are taken, or up to twice as many
_QUIET = 0.02  # noise of a product, as a part of the rows, up to which it is of use
_FREQUENCIES = 2 * _GROUP - 1  # of an image: so many that all pairs are taken


@dataclass(frozen=True, kw_only=True)
class Hp(EmbeddingMethod):
    """Hermite mean embeddings, for tables and image sets.

    Parameters
    ----------
    length, product_length
        Length scales of the sum and the product kernel on the unit interval; None takes a rule by
        the number of columns.
    degree
        How many columns are multiplied in a product.
    product_share
        The part of the embeddings' budget that goes to products, where there are rows enough.
    draws
        How often columns are put together for products; each time is a release of its own, and
        the generator is trained on one after the other.
    network
        The generator of images: "dense" or "convolutional".

    `target`, `balanced` and `steps` are those of `EmbeddingMethod`.
    """

    name: ClassVar[str] = "hp"
    free: ClassVar[frozenset[str]] = frozenset({"seed", "steps", "network"})
    notes: ClassVar[tuple[str, ...]] = (
        "Where rows are few, products are made of fewer columns; where they are too few for any, "
        "the sum kernel gets the whole share.",
    )

    length: float | None = None
    product_length: float | None = None
    degree: int = 2
    product_share: float = 0.7
    draws: int = 1
    network: Literal["dense", "convolutional"] = "convolutional"

    def __post_init__(self) -> None:
        super().__post_init__()
        in_open_unit(product_share=self.product_share)
        within(degree=(self.degree, 2, 5), draws=(self.draws, 1, 1000))
        within(length=(self.length, _LEAST, 10), product_length=(self.product_length, _LEAST, 10))
        if self.network not in ("dense", "convolutional"):
            raise SfumatoError(f"network must be dense or convolutional, not {self.network}")

    def kernels(self, space: PointSpace) -> Kernels:
        """Give the kernels of a space, coarser where more columns share the budget.

        None is shorter than a tenth of a column's range: over a shorter distance a generator that
        misses a cluster would not feel it.
        """
        spectrum = None
        terms = factors = space.size + len(space.axes)
        if isinstance(space, ImageSpace):
            spectrum = Spectrum(LowFrequencies(space.codec.shape, _FREQUENCIES))
            factors = spectrum.size
        return Kernels(
            space,
            _hermite(self.length or _length(terms, 0.25)),
            _hermite(self.product_length or _length(factors, 0.5)),
            self.degree,
            spectrum,
        )

    def embeddings(
        self, space: PointSpace, budget: Budget, rows: int | None = None
    ) -> dict[str, tuple[Statistic, float]]:
        """Give both kernels, with products of all columns."""
        kernels = self.kernels(space)
        sum_share, product_share = self._shares(kernels)
        draws = self._draws(np.arange(len(kernels.factors)))
        products = {
            name: (kernels.product_statistic(groups), product_share)
            for name, groups in draws.items()
        }
        return {"sum kernel": (kernels.sum_statistic, sum_share), **products}

    def targets(
        self, curator: Curator, space: PointSpace, counts: NDArray[np.float64]
    ) -> list[tuple[Embedding, Target]]:
        """Release the sum kernel, then the products of as many columns as the noise allows.

        Those that vary most come first. The more products there are, the more noise each gets, and
        in trials those noisier than a certain part of the rows mostly did harm. Where even two
        columns would be too many, the sum kernel gets the whole budget.
        """
        kernels = self.kernels(space)
        sum_share, product_share = self._shares(kernels)
        loudest = _QUIET * counts.sum()

        def quiet(columns: NDArray[np.int64]) -> bool:
            groups = next(iter(self._draws(columns).values()))
            statistic = kernels.product_statistic(groups)
            spend = plan_spend("product kernel", statistic, curator.budget, product_share)
            return bool(spend.sigma <= loudest * kernels.product_scale)

        if not product_share or not quiet(kernels.cheapest_columns):
            sums = curator.release("sum kernel", kernels.sum_statistic, 1 - COUNT_SHARE)
            return [KernelMeans.meeting(kernels, counts, sums)]
        sums = curator.release("sum kernel", kernels.sum_statistic, sum_share)
        columns = kernels.columns_that_vary(sums, counts)
        ends = range(self.degree, len(columns) + 1)
        few = bisect_right(ends, False, key=lambda end: not quiet(columns[:end]))
        draws = self._draws(columns[: max(self.degree, ends[few - 1])])
        targets: list[tuple[Embedding, Target]] = []
        for name, drawn in draws.items():
            groups = _groups_from(curator.layout(name, partial(_group_arrays, drawn)))
            products = curator.release(name, kernels.product_statistic(groups), product_share)
            targets.append(KernelMeans.meeting(kernels, counts, sums, groups, products))
        return targets

    def network_for(self, space: PointSpace) -> Generator:
        """Make the network that was asked for."""
        from sfumato.modelling.networks import ImageGenerator, TableGenerator

        if not isinstance(space, ImageSpace):
            return super().network_for(space)
        if self.network == "dense":
            return TableGenerator(_IMAGE_CODE, space.classes, space.size, ())
        return ImageGenerator(_IMAGE_CODE, space.classes, space.codec.shape)

    def _shares(self, kernels: Kernels) -> tuple[float, float]:
        """Give the share of the sum kernel, and of each draw of products."""
        left = 1 - COUNT_SHARE
        if len(kernels.factors) < self.degree:
            return left, 0.0
        return left * (1 - self.product_share), left * self.product_share / self.draws

    def _draws(self, columns: NDArray[np.int64]) -> dict[str, list[tuple[int, ...]]]:
        """Put columns together at random, anew for each draw."""
        if len(columns) < self.degree:
            return {}
        size = _GROUP if self.degree == 2 else self.degree
        parts = max(1, len(columns) // size)
        draws = {}
        for draw in range(1, self.draws + 1):
            order = np.random.default_rng([self.seed, draw]).permutation(columns)
            groups = [tuple(sorted(part.tolist())) for part in np.array_split(order, parts)]
            draws["product kernel" if self.draws == 1 else f"product kernel {draw}"] = groups
        return draws


def _group_arrays(groups: list[tuple[int, ...]]) -> dict[str, NDArray[np.int64]]:
    sizes = np.array([len(group) for group in groups])
    return {"sizes": sizes, "columns": np.array([column for group in groups for column in group])}


def _groups_from(arrays: Arrays) -> list[tuple[int, ...]]:
    parts = np.split(arrays["columns"], np.cumsum(arrays["sizes"])[:-1])
    return [tuple(part.tolist()) for part in parts]


def _length(columns: int, power: float) -> float:
    return float(max(_SHORTEST, min(1.0, _LENGTH * (columns / 2) ** power)))


def _hermite(length: float) -> Hermite:
    return Hermite.of_length(length, max(1, math.ceil(_FEATURES / length) - 1))
