"""Counts along a line keep what stands out, and lose what is noise."""

import numpy as np
import pytest

from sfumato.methods.pairs.smoothing import smoothed


@pytest.mark.parametrize("count", [1, 2, 3, 64, 1000])
def test_the_sum_stays(count: int) -> None:
    counts = np.random.default_rng(count).normal(50, 30, count)
    assert smoothed(counts, 10.0).sum() == pytest.approx(counts.sum())


def test_noise_without_anything_behind_it_becomes_flat() -> None:
    """The mean is all that is left: its error is sigma / sqrt(n), far below the bound."""
    counts = 100 + np.random.default_rng(0).normal(0, 20, 500)
    assert np.abs(smoothed(counts, 20.0) - 100).max() < 10


def test_steps_and_single_values_stay_sharp() -> None:
    truth = np.repeat([0.0, 500.0, 40.0], [100, 37, 163])
    truth[222] = 2000
    found = smoothed(truth + np.random.default_rng(1).normal(0, 20, 300), 20.0)
    assert found[222] == pytest.approx(2000, abs=100)  # five deviations of its noise
    assert found[[95, 105, 132, 142]] == pytest.approx([0, 500, 500, 40], abs=60)
    assert np.abs(found - truth).mean() < 5  # a quarter of the noise


def test_without_noise_everything_stays() -> None:
    counts = np.random.default_rng(2).integers(0, 1000, 90).astype(float)
    assert smoothed(counts, 1e-6) == pytest.approx(counts, abs=0.05)
