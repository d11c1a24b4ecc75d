"""Slopes are the gradients of the likelihood, shortened row by row."""

from __future__ import annotations

import numpy as np

from sfumato.data.batch import Batch
from sfumato.privacy.budget import Relation
from sfumato.statistics.exact_map import ExactMap
from sfumato.statistics.moments import GRID
from sfumato.statistics.scattering import Scattering
from sfumato.statistics.slopes import Slopes, chances
from sfumato.statistics.turned import Turned

RNG = np.random.default_rng(0)
COORDINATES = ExactMap.of(np.eye(4), np.full(4, 0.5))
SEE = Scattering.of(RNG.normal(0, 90, (4, 9)), np.full(9, 99.0), (3, 3))
LAYER = Turned.of(SEE, RNG.normal(0, 0.03, (SEE(np.zeros((1, 4))).shape[1], 5)), np.zeros(5))
WEIGHTS = RNG.normal(size=(6, 3))


def rows(count: int) -> Batch:
    pixels = RNG.integers(0, 256, (count, 4)).astype(np.uint8)
    return Batch(RNG.integers(0, 3, (count, 1)).astype(np.int32), pixels)


def likelihood(batch: Batch, weights: np.ndarray) -> float:
    given = chances(LAYER(COORDINATES(batch)) @ weights)
    return float(np.log(given[np.arange(len(batch)), batch.codes[:, 0]]).sum())


def test_slopes_of_rows_within_the_bound_are_those_of_the_likelihood() -> None:
    batch = rows(50)
    slopes = Slopes.of(COORDINATES, LAYER, WEIGHTS, 20.0)
    found = slopes.read(slopes.sum(batch).astype(float))
    assert np.abs(found).max() > 10
    for place in np.ndindex(6, 3):
        step = np.zeros((6, 3))
        step[place] = 1e-4
        rise = likelihood(batch, WEIGHTS + step) - likelihood(batch, WEIGHTS - step)
        # Each of 50 rows is rounded by half a step of the bound, in both of its factors.
        assert abs(found[place] - rise / 2e-4) < 50 * 20 / GRID


def test_steep_rows_are_shortened_to_the_bound_and_keep_their_direction() -> None:
    batch = rows(1)
    plain, short = (Slopes.of(COORDINATES, LAYER, WEIGHTS, bound) for bound in (3.0, 1e-3))
    found = [each.read(each.sum(batch).astype(float)).ravel() for each in (plain, short)]
    assert abs(np.linalg.norm(found[1]) / 1e-3 - 1) < 0.01
    assert found[0] @ found[1] > 0.99 * np.linalg.norm(found[0]) * np.linalg.norm(found[1])


def test_replacing_a_class_comes_near_the_bound() -> None:
    """Two classes: the slopes of the same image in one and the other are opposite."""
    slopes = Slopes.of(COORDINATES, LAYER, np.zeros((6, 2)), 1e-3)
    image = rows(1).numbers
    one, other = (slopes.sum(Batch(np.array([[c]], np.int32), image)) for c in (0, 1))
    moved = np.linalg.norm((one - other).astype(float))
    bound = slopes.sensitivity(Relation.REPLACE_ONE)
    assert 0.99 * bound < moved <= bound
