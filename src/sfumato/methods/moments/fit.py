"""The releases of `moments`, step by step, each laid out by the ones before.

Extent, basis, shapes, radii, cells: whatever is decided on the way (axes, bounds, groups, cells)
follows from earlier releases and the known size of their noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.data.image_codec import ImageCodec
from sfumato.methods.moments.classifier_fit import (
    feature_count,
    learn_classifier,
    plan_classifier,
)
from sfumato.methods.moments.detail import Detail
from sfumato.methods.moments.image_model import Basis, Cells, Ellipses, ImageModel
from sfumato.methods.moments.levels import LevelMap, denoised_levels
from sfumato.modelling.clusters import k_means
from sfumato.modelling.covariance import denoised_ordered, denoised_shape, shrunk
from sfumato.modelling.expectation import Expectation, smallest_class
from sfumato.privacy.budget import Budget, Relation, Spend
from sfumato.privacy.curator import Curator
from sfumato.privacy.planning import plan_spend
from sfumato.privacy.statistic import Statistic
from sfumato.progress import Progress
from sfumato.statistics.exact_map import ExactMap
from sfumato.statistics.frequencies import LowFrequencies
from sfumato.statistics.labelled_vectors import (
    Centres,
    CoordinatesAndLength,
    LogRadius,
    Residuals,
    shortened,
)
from sfumato.statistics.moments import LabelledMoments, LabelledVectors, MomentSums, Sizes
from sfumato.statistics.pixel_levels import PixelLevels

Floats = NDArray[np.float64]

# Shares of the budget.
_EXTENT, _BASIS, _SHAPE, _RADIUS, _CELL = 0.03, 0.20, 0.35, 0.03, 0.39
_LEVEL = 0.05  # taken from that of the cells where there are levels
_CLASSIFIER = 0.20  # taken from all but the extent where there is a classifier

_COEFFICIENTS = (16, 200)  # the fewest and the most
_FEWEST_AXES = 8
_AXES, _ROWS_PER_AXIS = (60, 120), 50  # the most, by the images of a class
_EDGE = 0.2  # denoised eigenvalues are kept from this share of the noise's largest one
_WHITENING = 0.30  # axes are scaled by eigenvalue ** -this; 0.5 would whiten
_BOUNDS = (0.7, 0.7, 0.8)  # of basis, shape and cell vectors, over their root mean square length
_ROWS_PER_GROUP, _MOST_GROUPS, _MOST_GROUPS_IN_ALL = 200.0, 20, 1000  # rows over the noise
_ROWS_PER_CELL, _MOST_CELLS, _MOST_CELLS_IN_ALL = 20.0, 200, 10_000
_DRAWS = 200_000  # in all, to learn what is expected of groups and cells
_DRAWS_FOR_CENTRES = 3000  # of each class, or 20 for each centre where that is more
_MOST_LEVELLED = 4096  # pixels of an image: the noise on their levels takes time
_DRAWS_FOR_LEVELS, _VALUES_FOR_LEVELS = 20_000, 20_000_000  # in all, at the most
_FIRST_RADIUS = (-0.03, 0.25)  # of the log radius, until it is released


def plan_moments(
    codec: ImageCodec,
    budget: Budget,
    share: float = 1.0,
    axes: int | None = None,
    levels: bool = False,
    relabel: bool = False,
) -> tuple[Spend, ...]:
    """Say what a fit for a share of the budget would release at the most."""
    k, p = codec.classes, min(_COEFFICIENTS[1], math.prod(codec.shape))
    d = min(p, axes or _AXES[1])
    groups = min(k * _MOST_GROUPS, max(k, _MOST_GROUPS_IN_ALL))
    cells = min(k * _MOST_CELLS, max(k, _MOST_CELLS_IN_ALL))
    planned: list[tuple[str, Statistic, float]] = [
        ("extent", _extent(Sizes(1, p + 1)), _EXTENT),
        ("basis", _basis(Sizes(k, p)), _BASIS),
        ("classes", _shape(Sizes(k, d)), _SHAPE / 2),
        ("groups", _shape(Sizes(groups, d)), _SHAPE / 2),
        ("radius", _radius(Sizes(groups, 2)), _RADIUS),
        ("cells", _cell(Sizes(cells, d), budget), _CELL - _level_share(codec, levels)),
    ]
    if _level_share(codec, levels):
        planned.append(("levels", PixelLevels(math.prod(codec.shape)), _LEVEL))
    relabel = relabel and k > 1
    extent, *others = (
        plan_spend(name, what, budget, share * part * (_left(relabel) if number else 1.0))
        for number, (name, what, part) in enumerate(planned)
    )
    classifier = plan_classifier(k, budget, share * _CLASSIFIER) if relabel else ()
    return (extent, *others, *classifier)


def _left(relabel: bool) -> float:
    """The part that a classifier leaves of the shares of all but the extent."""
    return 1.0 - _CLASSIFIER / (1.0 - _EXTENT) if relabel else 1.0


def _level_share(codec: ImageCodec, wanted: bool) -> float:
    return _LEVEL if wanted and math.prod(codec.shape) <= _MOST_LEVELLED else 0.0


def expect_moments(
    codec: ImageCodec, budget: Budget, rows: int, relabel: bool
) -> tuple[Expectation, ...]:
    """Say what the noise lets expect, were the images spread evenly over the classes.

    Coefficients are released in units of `_BOUNDS[0]` times the deviation of images, which is at
    most half the range of a pixel at each of them. They are orthonormal: noise of scale s on p of
    them is one of s sqrt(p / pixels) at a pixel, on average.
    """
    pixels = math.prod(codec.shape)
    relabel = relabel and feature_count(codec.classes, budget, rows, _CLASSIFIER) > 0
    count = _coefficients(codec, budget, rows, _left(relabel))
    basis = _basis(Sizes(codec.classes, count))
    noise = basis.noise(plan_spend("basis", basis, budget, _left(relabel) * _BASIS).sigma)
    of_class = rows / codec.classes
    unit = _BOUNDS[0] * 0.5 * math.sqrt(pixels)
    of_pixel = unit * noise.sum_ * math.sqrt(count / pixels) / of_class
    return (
        Expectation(
            what="error of the number of images of a class", part=noise.count / of_class,
            good=0.05, usable=0.3, words=f"{noise.count:,.0f} images",
        ),
        Expectation(
            what="error of a class's mean, of a pixel's range (at most)", part=of_pixel,
            good=0.02, usable=0.1, words=f"{count} frequencies",
        ),
        smallest_class(
            "smallest class whose mean is seen", noise.sum_ * math.sqrt(count), rows
        ),
    )  # fmt: skip


def _coefficients(codec: ImageCodec, budget: Budget, rows: float, share: float) -> int:
    """Take fewer coefficients for few images: the noise's eigenvalues stay below a tenth."""
    fewest, most = _COEFFICIENTS
    most = min(most, math.prod(codec.shape))
    basis = _basis(Sizes(codec.classes, most))
    per_row = basis.noise(plan_spend("basis", basis, budget, share * _BASIS).sigma).square
    return int(np.clip((0.1 * rows / per_row) ** 2 / 2, fewest, most))


def _extent(vectors: LabelledVectors) -> LabelledMoments:
    return LabelledMoments(vectors, count=0.25, sum_=math.sqrt(2))


def _basis(vectors: LabelledVectors) -> LabelledMoments:
    # sum² <= 2 count square: then replacing a row costs no more than sqrt(2) of removing one.
    return LabelledMoments(vectors, count=0.5, sum_=0.5, square=1.0, pooled=True)


def _shape(vectors: LabelledVectors) -> LabelledMoments:
    return LabelledMoments(vectors, count=0.4, sum_=0.4, square=1.0)


def _radius(vectors: LabelledVectors) -> LabelledMoments:
    return LabelledMoments(vectors, count=0.0, sum_=1.0)


def _cell(vectors: LabelledVectors, budget: Budget) -> LabelledMoments:
    # Under replace-one a row that stays in its cell costs 2 anyway: the count comes free.
    return LabelledMoments(
        vectors, count=0.4 if budget.relation is Relation.ADD_REMOVE else 1.0, sum_=1.0
    )


class MomentFit:
    """One fit: releases, each laid out by the ones before, for a share of the budget."""

    def __init__(
        self,
        curator: Curator,
        codec: ImageCodec,
        rng: np.random.Generator,
        progress: Progress,
        detail: bool = False,
        share: float = 1.0,
        axes: int | None = None,
        levels: bool = False,
        relabel: bool = False,
    ) -> None:
        self._curator = curator
        self._codec = codec
        self._rng = rng
        self._progress = progress
        self._with_detail = detail
        self._whole = self._share = share
        self._axes = axes
        self._level = _level_share(codec, levels)
        self._cell = _CELL - self._level
        self._relabel = relabel

    def model(self) -> ImageModel:
        """Go through all releases."""
        self._learn_extent()
        self._learn_basis()
        self._learn_shapes()
        self._learn_radii()
        model = self._learn_cells()
        if self._level:
            model = self._with_levels(model)
        return self._with_classifier(model) if self._features else model

    def _release(self, name: str, moments: LabelledMoments, share: float) -> MomentSums:
        release = self._curator.release(name, moments, self._share * share)
        return moments.read(release.values, release.sigma)

    def _noise(self, moments: LabelledMoments, share: float) -> float:
        return plan_spend("noise", moments, self._curator.budget, self._share * share).sigma

    def _learn_extent(self) -> None:
        """Where the images lie and how far they spread: centre, variance, and how many."""
        most = min(_COEFFICIENTS[1], math.prod(self._codec.shape))
        frequencies = LowFrequencies(self._codec.shape, most)
        radius = frequencies.radius
        found = self._release(
            "extent", _extent(CoordinatesAndLength(_exact(frequencies, radius))), _EXTENT
        )
        rows = max(float(found.counts[0]), 10.0)
        means = math.sqrt(2) * found.sums[0] / rows
        noise = np.full(frequencies.count, (math.sqrt(2) * found.noise.sum_ / rows) ** 2)
        centre = shrunk_vector(means[:-1], noise)
        variance = max(float(means[-1] - centre @ centre), 0.02) * radius**2
        classes, budget = self._codec.classes, self._curator.budget
        for_classifier = self._whole * _CLASSIFIER
        self._features = (
            feature_count(classes, budget, rows, for_classifier) if self._relabel else 0
        )
        self._share *= _left(self._features > 0)
        count = _coefficients(self._codec, budget, rows, self._share)
        laid = self._curator.layout(
            "basis", lambda: {"centre": radius * centre[:count], "variance": np.array(variance)}
        )
        self._centre, self._variance = laid["centre"], float(laid["variance"])
        self._frequencies = LowFrequencies(self._codec.shape, len(self._centre))

    def _learn_basis(self) -> None:
        """Class sizes and means, and the axes along which images vary most."""
        classes, count = self._codec.classes, self._frequencies.count
        bound = _BOUNDS[0] * math.sqrt(self._variance)
        coordinates = _exact(self._frequencies, bound, self._centre)
        origin = Centres.of([np.zeros((1, count))] * classes)
        found = self._release("basis", _basis(Residuals(coordinates, origin, 1.0)), _BASIS)
        self._counts = np.maximum(found.counts, 1.0)
        rows = float(self._counts.sum())
        mean = found.sums.sum(axis=0) / rows
        # Coefficients come by frequency, and the variance of images falls with it.
        covariance = denoised_ordered(
            found.squares[0] / rows - np.outer(mean, mean), found.noise.square / rows
        )
        values, axes = np.linalg.eigh(covariance)
        values, axes = values[::-1], axes[:, ::-1]
        edge = _EDGE * math.sqrt(2 * count) * found.noise.square / rows  # of a semicircle
        most = self._axes or int(np.clip(rows / classes / _ROWS_PER_AXIS, *_AXES))
        kept = int(np.clip((values > edge).sum(), min(_FEWEST_AXES, count, most), most))
        values, axes = np.maximum(values[:kept], edge / 2), axes[:, :kept]
        scale = values**-_WHITENING
        departures = found.sums / self._counts[:, None] - mean
        means = departures @ (axes * scale)
        noise = found.noise.sum_ / self._counts[:, None]
        laid = self._curator.layout(
            "classes",
            lambda: {
                "centre": self._centre + bound * mean,
                "axes": axes,
                "scale": scale / bound,
                "means": (
                    shrunk(means, (noise * scale) ** 2) if classes > 1 else np.zeros_like(means)
                ),
                "spread": values * scale**2,
            },
        )
        self._basis = Basis(self._frequencies, laid["centre"], laid["axes"], laid["scale"])
        self._coordinates = _exact_basis(self._basis)
        self._means, self._spread = laid["means"], laid["spread"]
        departures = shrunk(departures, noise**2) if classes > 1 else np.zeros_like(departures)
        between = (departures * (self._counts / rows)[:, None]).T @ departures
        self._detail = Detail.of(
            bound**2 * (covariance - between), bound * departures, self._basis.axes,
            self._basis.scale,
        )  # fmt: skip

    def _learn_shapes(self) -> None:
        """An ellipsoid for each class, and for each group where a class has rows enough."""
        classes = self._codec.classes
        between = float((self._means**2).sum(axis=1) @ self._counts / self._counts.sum())
        within = max(float(self._spread.sum()) - between, float(self._spread.sum()) / 4)
        trial = _shape(Sizes(classes, self._coordinates.dim))
        per_row = trial.noise(self._noise(trial, _SHAPE / 2)).square
        most = min(_MOST_GROUPS, max(1, _MOST_GROUPS_IN_ALL // classes))
        sizes = np.clip(self._counts / (_ROWS_PER_GROUP * per_row), 1, most).astype(int)
        grouped = bool(sizes.max() > 1)
        share = _SHAPE / 2 if grouped else _SHAPE
        self._codebook = Centres.of([mean[None] for mean in self._means])
        ellipses = self._ellipses("classes", share, _BOUNDS[1] * math.sqrt(within), self._counts)
        self._means = ellipses.means
        if grouped:
            model = ImageModel(self._basis, ellipses, self._counts)
            laid = self._curator.layout("groups", lambda: self._groups(model, sizes))
            self._codebook = Centres(laid["centres"], tuple(sizes.tolist()))
            bound = float(laid["bound"])
            ellipses = self._ellipses("groups", share, bound, None, laid["targets"])
        self._ellipse = ellipses

    def _groups(self, model: ImageModel, sizes: NDArray[np.int64]) -> dict[str, Floats]:
        """Lay out groups: their centres, how long residuals are, and what shapes to expect."""
        drawn, codebook = self._laid_out(model, sizes)
        labels = _assigned(codebook, drawn)
        residuals = np.concatenate(drawn) - codebook.centres[labels]
        bound = _BOUNDS[1] * math.sqrt(float((residuals**2).sum(axis=1).mean()))
        targets = _second_moments(shortened(residuals, bound), labels, int(sizes.sum()))
        return {"centres": codebook.centres, "bound": np.array(bound), "targets": targets}

    def _ellipses(
        self,
        name: str,
        share: float,
        bound: float,
        counts: Floats | None,
        targets: Floats | None = None,
    ) -> Ellipses:
        """Release the moments of residuals from the codebook's centres; shrink them to targets.

        Without known counts the released ones are taken; without targets, the pooled moments.
        """
        residuals = Residuals(self._coordinates, self._codebook, bound)
        found = self._release(name, _shape(residuals), share)
        if counts is None:
            counts = np.maximum(found.counts, found.noise.count)
        means = shrunk(found.sums / counts[:, None], (found.noise.sum_ / counts[:, None]) ** 2)
        moments = found.squares / counts[:, None, None]
        if targets is None:
            targets = np.broadcast_to(found.squares.sum(axis=0) / counts.sum(), moments.shape)
        floor = math.sqrt(2 * residuals.dim * residuals.labels) * found.noise.square / counts.sum()
        shapes = [
            denoised_shape(moment, target, found.noise.square / count, floor)
            for moment, target, count in zip(moments, targets, counts, strict=True)
        ]
        return Ellipses(
            owner=self._codebook.owner,
            counts=counts,
            means=self._codebook.centres + bound * means,
            roots=bound * np.linalg.cholesky(np.stack(shapes)),
            radius_mean=np.full(len(counts), _FIRST_RADIUS[0]),
            radius_deviation=np.full(len(counts), _FIRST_RADIUS[1]),
        )

    def _learn_radii(self) -> None:
        """How the radius of each ellipsoid varies: heavy tails, which shapes do not tell."""
        e = self._ellipse
        laid = self._curator.layout(
            "radius", lambda: {"means": e.means, "inverse": np.linalg.inv(e.roots)}
        )
        residuals = Residuals(self._coordinates, self._codebook, 1.0)
        vectors = LogRadius(residuals, laid["means"], laid["inverse"])
        found = self._release("radius", _radius(vectors), _RADIUS)
        sums = math.sqrt(2) * found.sums
        pooled = sums.sum(axis=0) / e.counts.sum()
        noise = (math.sqrt(2) * found.noise.sum_ / e.counts[:, None]) ** 2
        mean, square = (pooled + shrunk(sums / e.counts[:, None] - pooled, noise)).T
        deviation = np.sqrt(np.clip(square - mean**2, 1e-4, 0.3))
        self._ellipse = Ellipses(
            e.owner, e.counts, e.means, e.roots, vectors.span * mean, vectors.span * deviation
        )

    def _learn_cells(self) -> ImageModel:
        """Compare cells of draws with what is released about them; mend weights and means."""
        model = ImageModel(self._basis, self._ellipse, self._counts)
        classes, budget = self._codec.classes, self._curator.budget
        trial = _cell(Sizes(classes, self._coordinates.dim), budget)
        per_row = trial.noise(self._noise(trial, self._cell)).sum_
        most = min(_MOST_CELLS, max(1, _MOST_CELLS_IN_ALL // classes))
        sizes = np.clip(self._counts / (_ROWS_PER_CELL * per_row), 1, most).astype(int)
        laid = self._curator.layout("cells", lambda: self._cells(model, sizes))
        codebook, bound = Centres(laid["centres"], tuple(sizes.tolist())), float(laid["bound"])
        expected, expected_means = laid["expected"], laid["expected_means"]
        vectors = Residuals(self._coordinates, codebook, bound)
        found = self._release("cells", _cell(vectors, budget), self._cell)
        base = np.maximum(expected, 1.0)
        excess = shrunk((found.counts - expected) / base, (found.noise.count / base) ** 2) * base
        counts = np.maximum(expected + excess, 0.02 * expected + 0.5)
        means = found.sums / counts[:, None]
        noise = (found.noise.sum_ / counts[:, None]) ** 2
        shifts = bound * shrunk(means - expected_means, noise)
        return ImageModel(
            self._basis,
            self._ellipse,
            self._counts,
            Cells(codebook, counts / np.maximum(expected, 1e-9), shifts),
            self._detail if self._with_detail else None,
        )

    def _with_levels(self, model: ImageModel) -> ImageModel:
        """Make pixels as dark and bright as released, where images have their detail."""
        statistic = PixelLevels(math.prod(self._codec.shape))
        release = self._curator.release("levels", statistic, self._share * self._level)
        rows = float(self._counts.sum())
        draws = min(_DRAWS_FOR_LEVELS, _VALUES_FOR_LEVELS // statistic.pixels)
        sizes = np.ceil(draws * self._counts / rows).astype(int).tolist()
        # Of their own: the others' state depends on whether layouts were computed or kept.
        rng = np.random.default_rng(0)
        drawn = np.concatenate(
            [model.unbounded(label, size, rng) for label, size in enumerate(sizes)]
        )
        counts = statistic.read(release.values)
        shares = denoised_levels(counts, release.sigma, rows, drawn, self._codec.shape)
        return replace(model, levels=LevelMap.of(drawn, shares))

    def _with_classifier(self, model: ImageModel) -> ImageModel:
        """Let a classifier of private images say of which class a draw is."""
        classifier = learn_classifier(
            self._curator, model, self._coordinates, self._features, self._whole * _CLASSIFIER,
            self._progress,
        )  # fmt: skip
        return replace(model, classifier=classifier)

    def _cells(self, model: ImageModel, sizes: NDArray[np.int64]) -> dict[str, Floats]:
        """Lay out cells: their centres, how long residuals are, and what to expect in each."""
        drawn, codebook = self._laid_out(model, sizes)
        labels = _assigned(codebook, drawn)
        residuals = np.concatenate(drawn) - codebook.centres[labels]
        bound = _BOUNDS[2] * math.sqrt(float((residuals**2).sum(axis=1).mean()))
        cells = len(codebook.centres)
        hits = np.bincount(labels, minlength=cells)
        expected = hits * np.repeat(self._counts / [len(z) for z in drawn], sizes)
        inside = shortened(residuals, bound)
        means = np.zeros((cells, inside.shape[1]))
        np.add.at(means, labels, inside)
        return {
            "centres": codebook.centres,
            "bound": np.array(bound),
            "expected": expected,
            "expected_means": means / np.maximum(hits, 1)[:, None],
        }

    def _laid_out(
        self, model: ImageModel, sizes: NDArray[np.int64]
    ) -> tuple[list[Floats], Centres]:
        """Draw from a model, and divide each class's draws by so many centres."""
        drawn, centres = [], []
        for label, size in enumerate(sizes):
            self._progress("laying out cells", label / len(sizes))
            few = max(_DRAWS_FOR_CENTRES, 20 * size)
            z = model.draw(label, max(few, _DRAWS // len(sizes)), self._rng)
            drawn.append(z)
            # Draws come group by group: a part for the centres is taken in steps.
            centres.append(k_means(z[:: len(z) // few], size, self._rng))
        return drawn, Centres.of(centres)


def _assigned(codebook: Centres, drawn: list[Floats]) -> NDArray[np.int64]:
    return np.concatenate([codebook.assign(z, np.full(len(z), j)) for j, z in enumerate(drawn)])


def shrunk_vector(values: Floats, noise: Floats) -> Floats:
    """Shrink the entries of one vector by their common share of signal."""
    return shrunk(values[:, None], noise[:, None])[:, 0]


def _exact(frequencies: LowFrequencies, unit: float, centre: Floats | float = 0.0) -> ExactMap:
    """Map pixels to coefficients relative to a centre, over a unit of length."""
    weights = frequencies.matrix.T / unit
    return ExactMap.of(weights, (0.5 * frequencies.matrix.sum(axis=1) + centre) / unit)


def _exact_basis(basis: Basis) -> ExactMap:
    """Map pixels to the coordinates of a basis."""
    matrix = basis.frequencies.matrix
    turn = basis.axes * basis.scale
    return ExactMap.of(matrix.T @ turn, (0.5 * matrix.sum(axis=1) + basis.centre) @ turn)


def _second_moments(vectors: Floats, labels: NDArray[np.int64], count: int) -> Floats:
    parts: Sequence[Floats] = [vectors[labels == label] for label in range(count)]
    return np.stack([part.T @ part / max(len(part), 1) for part in parts])
