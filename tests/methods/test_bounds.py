"""The bounds on what noise does to an MMD hold in simulations, and are not idle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, norm

from sfumato.papers.embedding.bounds import (
    Noise,
    excess,
    expected_change,
    likely_change,
    optimistic_excess,
    uniform_change,
)

DRAWS = 20_000
NOISES = [
    Noise((0.3,), (1,)),
    Noise((0.02,), (40,)),
    Noise((0.1, 0.01), (3, 20)),
    Noise((0.05, 0.02, 0.4), (10, 10, 1)),
]
DISTANCES = [0.0, 0.05, 1.0]
FAILURES = [0.5, 0.1, 0.01]

Vectors = NDArray[np.float64]


def _draws(noise: Noise, count: int = DRAWS) -> Vectors:
    return np.random.default_rng(1).normal(size=(count, sum(noise.dims))) * _deviations(noise)


def _deviations(noise: Noise) -> Vectors:
    return np.repeat(noise.scales, noise.dims)


def _differences(noise: Noise, distance: float) -> tuple[Vectors, list[float]]:
    """Give a vector of that length, and the lengths of its parts."""
    vector = np.random.default_rng(2).normal(size=sum(noise.dims))
    vector *= distance / np.linalg.norm(vector)
    parts = np.split(vector, np.cumsum(noise.dims)[:-1])
    return vector, [float(np.linalg.norm(part)) for part in parts]


def _change(vector: Vectors, draws: Vectors) -> Vectors:
    found: Vectors = np.abs(((vector + draws) ** 2).sum(axis=1) - (vector**2).sum())
    return found


def _is_rare(violated: NDArray[np.bool_], failure: float) -> bool:
    """Say whether so many violations are likelier than 1e-6 where `failure` is their rate."""
    return bool(binom.sf(violated.sum() - 1, len(violated), failure) > 1e-6)


@pytest.mark.parametrize("noise", NOISES)
def test_the_norms_are_those_of_the_covariance(noise: Noise) -> None:
    covariance = np.diag(_deviations(noise) ** 2)
    assert noise.trace == pytest.approx(np.trace(covariance))
    assert noise.frobenius == pytest.approx(np.linalg.norm(covariance))
    assert noise.operator == pytest.approx(np.linalg.norm(covariance, 2))
    vector, parts = _differences(noise, 0.7)
    assert noise.along(parts) == pytest.approx(np.linalg.norm(_deviations(noise) * vector))
    assert noise.along(parts) <= noise.along(0.7) * (1 + 1e-12)


def test_the_frobenius_norm_of_two_parts_is_not_the_papers() -> None:
    noise = Noise((3.0, 4.0), (10, 10))
    assert noise.frobenius == pytest.approx(math.sqrt(10 * (3**4 + 4**4)))
    assert noise.frobenius < math.sqrt(10) * (3**2 + 4**2)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("distance", DISTANCES)
def test_the_mean_change_is_bounded(noise: Noise, distance: float) -> None:
    vector, parts = _differences(noise, distance)
    changes = _change(vector, _draws(noise))
    mean, error = changes.mean(), changes.std() / math.sqrt(DRAWS)
    bound = expected_change(noise, parts)
    assert mean <= bound + 5 * error
    assert bound <= 2 * mean + 5 * error  # it adds two terms, each of which is no more than twice
    assert bound <= expected_change(noise, distance) * (1 + 1e-12)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("distance", DISTANCES)
def test_a_larger_change_than_likely_is_rare(noise: Noise, distance: float) -> None:
    vector, parts = _differences(noise, distance)
    changes = _change(vector, _draws(noise))
    for failure in FAILURES:
        assert _is_rare(changes > likely_change(noise, parts, failure), failure)
    assert likely_change(noise, parts, 0.01) <= 4 * np.quantile(changes, 0.99)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("reach", [0.01, 1.0])
def test_the_largest_change_over_all_rows_is_bounded(noise: Noise, reach: float) -> None:
    draws = _draws(noise)
    lengths = np.linalg.norm(draws, axis=1)
    worst = draws * (2 * reach / lengths[:, None])
    changes = ((worst + draws) ** 2).sum(axis=1) - (worst**2).sum(axis=1)
    for failure in FAILURES:
        assert _is_rare(changes > uniform_change(noise, reach, failure), failure)
    assert uniform_change(noise, reach, 0.01) <= 4 * np.quantile(changes, 0.99)


def test_without_the_lost_root_of_two_the_uniform_bound_would_fail() -> None:
    """On a line the largest change is n² + 4B|n|, so that its quantile is known."""
    failure, scale = 1e-6, 1e-3
    length = scale * norm.isf(failure / 2)
    exactly = length**2 + 4 * length
    tail = math.log(2 / failure)
    papers = scale**2 * (1 + 2 * math.sqrt(tail) + 2 * tail) + 4 * scale * (1 + math.sqrt(tail))
    assert papers < exactly < uniform_change(Noise((scale,), (1,)), 1.0, failure)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("closest", [0.0, 0.1, 0.8])
def test_the_noisy_minimiser_is_almost_as_good_as_the_best(noise: Noise, closest: float) -> None:
    """Among 200 generators, the best of which has a known distance from the real rows."""
    rng = np.random.default_rng(3)
    real = np.zeros(sum(noise.dims))
    real[0] = closest
    generated = rng.normal(size=(200, len(real)))
    generated *= (rng.random((200, 1)) ** 3) / np.linalg.norm(generated, axis=1, keepdims=True)
    generated[0] = 0
    generated[1:, 0] = -np.abs(generated[1:, 0])  # the first comes closest to the real rows
    differences = real - generated
    squares = (differences**2).sum(axis=1)
    assert squares.argmin() == 0
    draws = _draws(noise, 5_000)
    # |a + n|² but for |n|², which no choice changes.
    chosen = (squares + 2 * draws @ differences.T).argmin(axis=1)
    found = squares[chosen] - squares[0]
    assert found.max() > 0
    for failure in FAILURES:
        assert _is_rare(found > excess(noise, 1.0, failure), failure)
        assert _is_rare(found > optimistic_excess(noise, closest, failure), failure)


def test_the_optimistic_bound_is_reached() -> None:
    """On a line, at +d and -(d + 2r): noise r makes the second as good as the first."""
    distance, length = 0.3, 0.1
    best, other = distance, -(distance + 2 * length)
    assert abs(other + length) == pytest.approx(abs(best + length))
    assert other**2 - best**2 == pytest.approx(4 * length * (distance + length))
