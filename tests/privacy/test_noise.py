"""The noise is the discrete Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sfumato.privacy.noise import discrete_gaussian


@pytest.mark.parametrize("sigma", [0.7, 3.0, 40.0])
def test_noise_has_the_discrete_gaussian_distribution(sigma: float) -> None:
    """A chi-square test; false-alarm rate 1e-7 for each scale (the noise has no seed)."""
    draws = discrete_gaussian(40_000, sigma)
    reach = int(12 * sigma) + 12
    support = np.arange(-reach, reach + 1)
    mass = np.exp(-(support.astype(float) ** 2) / (2 * sigma**2))
    expected = len(draws) * mass / mass.sum()
    kept = expected >= 20
    observed = np.bincount(draws + reach, minlength=len(support))
    observed = np.append(observed[kept], observed[~kept].sum())
    expected = np.append(expected[kept], expected[~kept].sum())
    observed, expected = observed[expected > 1], expected[expected > 1]
    expected *= observed.sum() / expected.sum()
    assert stats.chisquare(observed, expected).pvalue > 1e-7


def test_chunks_are_joined_to_the_asked_size_and_differ() -> None:
    """Two chunks of wide noise coincide with probability below 1e-300."""
    draws = discrete_gaussian(2 * (1 << 14) + 5, 1e6)
    assert draws.shape == (2 * (1 << 14) + 5,)
    assert not np.array_equal(draws[: 1 << 14], draws[1 << 14 : 2 << 14])


def test_no_coordinates_no_noise() -> None:
    assert discrete_gaussian(0, 1.0).shape == (0,)


def test_a_numpy_seed_does_not_fix_the_noise() -> None:
    """Equal draws have probability below 1e-300."""
    np.random.seed(0)
    first = discrete_gaussian(100, 1e6)
    np.random.seed(0)
    assert not np.array_equal(first, discrete_gaussian(100, 1e6))
