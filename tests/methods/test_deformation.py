"""Deformed images are the same pictures, turned and moved a little, each in its own way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.methods.moments.deformation import Deformation


def bars(count: int) -> np.ndarray:
    """Upright bars in the middle of images of 21 x 15."""
    images = np.zeros((count, 21, 15, 2), np.float32)
    images[:, 5:16, 6:9, 0] = 1
    images[:, 5:16, 6:9, 1] = 0.5
    return images


def test_an_amount_of_nothing_changes_nothing() -> None:
    images = np.random.default_rng(0).random((4, 7, 9, 3)).astype(np.float32)
    assert np.allclose(Deformation(0.0)(images, np.random.default_rng(1)), images, atol=1e-6)


def test_what_comes_in_from_outside_is_the_edge() -> None:
    images = np.full((5, 8, 8, 1), 0.3, np.float32)
    assert np.allclose(Deformation(5.0)(images, np.random.default_rng(0)), 0.3, atol=1e-6)


def test_strokes_lean_both_ways_move_and_keep_their_colour() -> None:
    drawn = Deformation(1.5)(bars(2000), np.random.default_rng(0))
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    assert np.allclose(drawn[..., 1], drawn[..., 0] / 2, atol=1e-6)
    mass = drawn[..., 0].sum(axis=(1, 2))
    across = (drawn[..., 0] * np.arange(15)).sum(axis=(1, 2)) / mass
    down = drawn[..., 0] * (np.arange(21) - 10)[:, None]
    lean = (down * (np.arange(15) - 7)).sum(axis=(1, 2)) / (down * down).sum(axis=(1, 2))
    # Of 2,000 signs, fewer than 800 fall on one side with a chance below 1e-18.
    assert 800 < (lean > 0).sum() < 1200
    assert 800 < (across > 7).sum() < 1200
    assert 0.1 < across.std() < 1
    assert mass.mean() == pytest.approx(33, rel=0.05)


def test_moments_deforms_what_it_draws_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (200, 8, 8)).astype(np.uint8)
    y = rng.integers(0, 2, 200)
    schema = sf.Schema(images=sf.Images(height=8, width=8, classes=(0, 1)))
    budget = sf.Budget(epsilon=1, delta=1e-5)
    plain, deformed = (sf.Moments(deform=amount) for amount in (0.0, 1.5))
    assert plain.plan(schema, budget).spends == deformed.plan(schema, budget).spends
    model = deformed.fit((x, y), schema, budget)
    first, again = (model.sample(20, seed=1).x for _ in range(2))
    assert (first == again).all()
    assert (first != replace(model, method=plain).sample(20, seed=1).x).any()


def test_a_setting_out_of_range_is_refused() -> None:
    with pytest.raises(sf.SfumatoError, match="deform must lie between 0 and 10"):
        sf.Moments(deform=-1)
