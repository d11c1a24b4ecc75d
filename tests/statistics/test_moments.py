"""Moments of images: exact wherever a row stands, within their bounds, and readable."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.batch import Batch
from sfumato.privacy.budget import Relation
from sfumato.statistics.exact_map import ExactMap, on_steps
from sfumato.statistics.frequencies import LowFrequencies
from sfumato.statistics.labelled_vectors import Centres, CoordinatesAndLength, LogRadius, Residuals
from sfumato.statistics.moments import GRID, LabelledMoments, on_grid
from sfumato.statistics.scattering import Scattering
from sfumato.statistics.slopes import Slopes
from sfumato.statistics.turned import Turned

RNG = np.random.default_rng(0)
SHAPE = (6, 5, 1)
PIXELS = 30
FREQUENCIES = LowFrequencies(SHAPE, 12)
COORDINATES = ExactMap.of(FREQUENCIES.matrix.T, 0.5 * FREQUENCIES.matrix.sum(axis=1))
CODEBOOK = Centres.of([RNG.normal(size=(4, 12)), RNG.normal(size=(1, 12)), np.zeros((2, 12))])
RESIDUALS = Residuals(COORDINATES, CODEBOOK, 0.4)
SEE = Scattering.of(RNG.normal(0, 90, (12, 30)), np.full(30, 99.0), (6, 5))
LAYER = Turned.of(SEE, RNG.normal(0, 0.1, (SEE(np.zeros((1, 12))).shape[1], 9)), np.ones(9))
RADIUS = LogRadius(RESIDUALS, CODEBOOK.centres, np.tile(2 * np.eye(12), (7, 1, 1)))

STATISTICS = {
    "extent": LabelledMoments(CoordinatesAndLength(COORDINATES), 0.25, 1.4),
    "basis": LabelledMoments(RESIDUALS, 0.5, 0.5, 1.0, pooled=True),
    "shape": LabelledMoments(RESIDUALS, 0.4, 0.4, 1.0),
    "steep": LabelledMoments(RESIDUALS, 0.1, 2.0, 1.0),
    "radius": LabelledMoments(RADIUS, 0.0, 1.0),
    "cell": LabelledMoments(RESIDUALS, 1.0, 1.0),
    "one label": LabelledMoments(
        Residuals(COORDINATES, Centres.of([np.zeros((1, 12))]), 0.1), 0.4, 0.4, 1.0
    ),
    "slopes": Slopes.of(COORDINATES, LAYER, RNG.normal(size=(10, 3)), 2.0),
}


def images(rows: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (rows, PIXELS)) * rng.integers(0, 2, (rows, 1))
    return Batch(rng.integers(0, 3, (rows, 1)).astype(np.int32), (pixels / 255).astype(np.float32))


@st.composite
def batches(draw: st.DrawFn, rows: int) -> Batch:
    extreme = st.sampled_from([0.0, 1.0, 0.5, float("nan"), float("inf"), -3.0])
    unit = images(rows, draw(st.integers(0, 10_000))).unit
    for row in range(rows):
        if draw(st.booleans()):
            unit[row] = draw(extreme)
    classes = draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
    return Batch(np.array(classes, np.int32).reshape(-1, 1), unit)


@pytest.mark.parametrize("name", STATISTICS)
@given(rows=batches(3), other=batches(1))
def test_one_row_moves_the_sum_by_at_most_the_sensitivity(
    name: str, rows: Batch, other: Batch
) -> None:
    statistic = STATISTICS[name]
    if name == "one label":
        rows, other = Batch(0 * rows.codes, rows.unit), Batch(0 * other.codes, other.unit)
    rest = statistic.sum(rows.where(slice(1, None)))
    removed = np.linalg.norm((statistic.sum(rows) - rest).astype(float))
    replaced = np.linalg.norm((statistic.sum(rows) - rest - statistic.sum(other)).astype(float))
    assert removed <= statistic.sensitivity(Relation.ADD_REMOVE) * (1 + 1e-12)
    assert replaced <= statistic.sensitivity(Relation.REPLACE_ONE) * (1 + 1e-12)


@pytest.mark.parametrize("name", ["shape", "basis", "steep", "one label"])
def test_replacing_opposite_vectors_comes_near_the_bound(name: str) -> None:
    """The bounds are not loose: directions at the worst angle reach 99 % of them."""
    statistic = STATISTICS[name]
    a, b, c = statistic._lengths
    cosine = max(-1.0, -(b * b) / (2 * c * c)) if name == "one label" or name == "steep" else 0.0
    u = np.eye(12)[0]
    v = cosine * u + np.sqrt(1 - cosine**2) * np.eye(12)[1]
    moved = np.sqrt(
        b**2 * ((u - v) ** 2).sum()
        + c**2
        * (np.outer(u, u) - np.outer(v, v)).ravel()
        @ (np.outer(u, u) - np.outer(v, v)).ravel()
    )
    if name in ("shape", "basis"):  # the worst case is a change of label
        moved = np.sqrt(2) * np.sqrt(a * a + b * b + c * c)
    assert moved <= statistic.sensitivity(Relation.REPLACE_ONE) * (1 + 1e-12)
    assert moved >= 0.99 * statistic.sensitivity(Relation.REPLACE_ONE)


@pytest.mark.parametrize("name", STATISTICS)
def test_a_row_counts_the_same_wherever_it_stands(name: str) -> None:
    rows = images(300)
    if name == "one label":
        rows = Batch(0 * rows.codes, rows.unit)
    statistic = STATISTICS[name]
    whole = statistic.sum(rows)
    assert whole.shape == (statistic.dim,)
    pieces = sum(statistic.sum(rows.where(slice(s, s + 7))) for s in range(0, 300, 7))
    assert np.array_equal(whole, pieces)
    assert np.array_equal(whole, statistic.sum(rows.where(RNG.permutation(300))))
    single = statistic.sum(rows.where(slice(0, 1)))
    assert np.abs(single).max() <= statistic.largest_entry


def test_reading_without_noise_gives_the_plain_moments() -> None:
    rows, statistic = images(500), STATISTICS["shape"]
    found = statistic.read(statistic.sum(rows), 1.0)
    labels, vectors = RESIDUALS(rows)
    assert np.allclose(found.counts, np.bincount(labels, minlength=7), rtol=1e-6)
    for label in range(7):
        part = vectors[labels == label]
        assert np.allclose(found.sums[label], part.sum(axis=0), atol=1e-3 * len(part))
        assert np.allclose(found.squares[label], part.T @ part, atol=1e-3 * len(part))


@given(st.lists(st.lists(st.floats(width=32), min_size=3, max_size=3), min_size=1, max_size=5))
def test_the_grid_keeps_every_vector_in_the_ball(vectors: list[list[float]]) -> None:
    grid = on_grid(np.array(vectors, np.float64))
    assert ((grid**2).sum(axis=1) <= GRID**2).all()
    assert np.array_equal(grid, np.rint(grid))


def test_exact_coordinates_are_those_of_the_plain_transform() -> None:
    rows = images(50)
    pixels = np.rint(rows.unit * 255) / 255
    assert np.allclose(COORDINATES(rows), (pixels - 0.5) @ FREQUENCIES.matrix.T, atol=2**-12)


@pytest.mark.parametrize("shape", [(6, 5, 1), (8, 8, 3)])
def test_frequencies_are_orthonormal_and_within_their_radius(shape: tuple[int, int, int]) -> None:
    size = int(np.prod(shape))
    whole = LowFrequencies(shape, size)
    assert np.allclose(whole.matrix @ whole.matrix.T, np.eye(size), atol=1e-9)
    assert np.linalg.norm(whole.matrix @ np.full(size, 0.5)) <= whole.radius * (1 + 1e-9)


def test_rows_are_assigned_to_the_nearest_centre_of_their_class() -> None:
    z = on_steps(RNG.normal(size=(200, 12)))
    classes = RNG.integers(0, 3, 200)
    labels = CODEBOOK.assign(z, classes)
    assert np.array_equal(CODEBOOK.owner[labels], classes)
    for row in range(200):
        own = np.flatnonzero(CODEBOOK.owner == classes[row])
        distances = ((z[row] - CODEBOOK.centres[own]) ** 2).sum(axis=1)
        assert np.isclose(((z[row] - CODEBOOK.centres[labels[row]]) ** 2).sum(), distances.min())
