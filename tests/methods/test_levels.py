"""Drawn pixels become as dark and as bright as released levels say, and keep their order."""

from __future__ import annotations

import numpy as np

from sfumato.methods.moments.levels import LevelMap, denoised_levels
from sfumato.statistics.pixel_levels import BRIGHTEST, LEVEL_OF_BYTE

SHAPE = (5, 6, 1)
PIXELS = 30


def drawn() -> np.ndarray:
    """Give draws whose pixels differ in brightness."""
    rng = np.random.default_rng(0)
    middle = np.linspace(-0.1, 1.0, PIXELS)
    return (middle + 0.3 * rng.standard_normal((20_000, PIXELS))).astype(np.float32)


def level_shares(images: np.ndarray) -> np.ndarray:
    levels = LEVEL_OF_BYTE[np.rint(255 * np.clip(images, 0, 1)).astype(int)]
    return np.stack([(levels == level).mean(axis=0) for level in range(len(BRIGHTEST))], axis=1)


def test_mapped_pixels_have_the_levels_that_were_asked_for() -> None:
    wanted = np.random.default_rng(1).dirichlet(np.ones(len(BRIGHTEST)), PIXELS)
    mapped = LevelMap.of(drawn(), wanted)(drawn())
    assert mapped.min() >= 0
    assert mapped.max() <= 1
    # What lies between two levels may round to either: in the narrow one of near white, some.
    assert np.abs(level_shares(mapped) - wanted).max() < 0.1
    assert np.abs(level_shares(mapped) - wanted).mean() < 0.005


def test_draws_beyond_all_others_stay_within_the_levels_that_there_are() -> None:
    shares = np.zeros((PIXELS, len(BRIGHTEST)))
    shares[:, 4:6] = 0.5  # bytes 64 to 127
    shares[0], shares[1] = np.eye(len(BRIGHTEST))[[0, -1]]  # black, white
    levels = LevelMap.of(drawn(), shares)
    mapped = 255 * levels(np.linspace(-9, 9, 50, dtype=np.float32)[:, None].repeat(PIXELS, axis=1))
    assert mapped[:, 0].max() == 0
    assert mapped[:, 1].min() >= BRIGHTEST[-2]
    assert mapped[:, 2:].min() >= BRIGHTEST[3]
    assert mapped[:, 2:].max() <= BRIGHTEST[5] + 1e-3


def test_the_darker_of_two_draws_stays_so() -> None:
    wanted = np.random.default_rng(1).dirichlet(np.ones(len(BRIGHTEST)), PIXELS)
    before = np.sort(drawn()[:500], axis=0)
    assert (np.diff(LevelMap.of(drawn(), wanted)(before), axis=0) >= 0).all()


def test_counts_that_stand_out_are_believed_and_noise_is_not() -> None:
    rng, rows = np.random.default_rng(2), 10_000.0
    own = level_shares(drawn())
    wanted = rng.dirichlet(np.ones(len(BRIGHTEST)), PIXELS)
    for truth, sigma in ((wanted, 50.0), (own, 2_000.0)):
        counts = rows * truth + rng.normal(0, sigma, truth.shape)
        found = denoised_levels(counts, sigma, rows, drawn(), SHAPE)
        assert np.allclose(found.sum(axis=1), 1)
        # Noise of 0.005 of the rows is hardly shrunk; of 0.2, hardly anything of it is left.
        assert np.abs(found - truth).mean() < (0.006 if sigma == 50 else 0.03)


def test_what_neighbours_have_in_common_is_seen_through_noise() -> None:
    rng, rows, sigma = np.random.default_rng(3), 10_000.0, 300.0
    truth = level_shares(drawn())
    truth[:, 0] += 0.2
    truth /= truth.sum(axis=1, keepdims=True)
    counts = rows * truth + rng.normal(0, sigma, truth.shape)
    found = denoised_levels(counts, sigma, rows, drawn(), SHAPE)
    assert np.abs(found - truth).mean() < 0.5 * np.abs(counts / rows - truth).mean()


def test_released_levels_of_the_draws_themselves_change_little() -> None:
    levels = LevelMap.of(drawn(), level_shares(drawn()))
    assert np.abs(levels(drawn()) - np.clip(drawn(), 0, 1)).max() < 0.04
