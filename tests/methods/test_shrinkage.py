"""Shrinkage brings noisy values nearer to the truth, and leaves what is not noisy."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.modelling.covariance import denoised_ordered, denoised_shape, shrunk


def noisy(truth: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Add symmetric noise of this deviation on the diagonal, 1/sqrt(2) of it elsewhere."""
    drawn = rng.normal(0, noise, truth.shape)
    return truth + np.where(np.eye(len(truth)) > 0, drawn, (drawn + drawn.T) / 2)


def covariance(rng: np.random.Generator, size: int = 30) -> np.ndarray:
    """Falling variances with some correlation."""
    turn = np.linalg.qr(np.eye(size) + 0.1 * rng.normal(size=(size, size)))[0]
    return turn @ np.diag(2.0 ** -np.arange(size)) @ turn.T


def test_shrinking_brings_values_nearer_to_the_truth() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 0.5, (2000, 2))
    seen = truth + rng.normal(size=truth.shape)
    assert ((shrunk(seen, np.ones_like(seen)) - truth) ** 2).mean() < 0.25
    assert np.allclose(shrunk(seen, np.full_like(seen, 1e-9)), seen, rtol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_an_ordered_matrix_loses_noise_and_keeps_its_signal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = covariance(rng)
    seen = noisy(truth, 0.05, rng)
    found = denoised_ordered(seen, 0.05)
    assert np.linalg.norm(found - truth) < 0.7 * np.linalg.norm(seen - truth)
    assert np.linalg.eigvalsh(found).min() > 0
    assert np.allclose(denoised_ordered(truth, 1e-6), truth, atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_a_matrix_without_any_signal_becomes_small(seed: int) -> None:
    seen = noisy(np.zeros((40, 40)), 1.0, np.random.default_rng(seed))
    found = denoised_ordered(seen, 1.0)
    assert np.linalg.eigvalsh(found).min() > 0
    assert np.linalg.norm(found) < 0.3 * np.linalg.norm(seen)


def test_a_departure_from_the_target_is_kept_only_where_it_exceeds_the_noise() -> None:
    rng = np.random.default_rng(0)
    target = covariance(rng)
    seen = noisy(target, 10.0, rng)
    assert np.allclose(denoised_shape(seen, target, 10.0, 1e-6), target, atol=0.1)
    assert np.allclose(denoised_shape(1.3 * target, target, 1e-6, 1e-6), 1.3 * target, atol=1e-5)
