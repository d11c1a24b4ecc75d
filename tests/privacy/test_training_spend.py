"""The noise of a training covers what one row moves on the grid, and its cost is derived."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from learners import Plain
from seeded import NoNoise, drawing
from sfumato.privacy import dpsgd, wall
from sfumato.privacy.budget import (
    GRADIENT_BITS,
    Budget,
    Guarantee,
    Relation,
    TrainingSpend,
)

SPEND = TrainingSpend(
    name="t", dim=4000, clip=0.7, noise_multiplier=2.0, rate=1.0, steps=3, epsilon=1, delta=1e-5,
    grid_bits=GRADIENT_BITS,
)  # fmt: skip


class Shown(NoNoise):
    """Shows the noise that it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float] = []

    def noise(self, size: int, sigma: float) -> np.ndarray:
        self.asked.append(sigma)
        return super().noise(size, sigma)


class Sums(Plain):
    """Rows are gradients as they are, in units of the clipping norm: the test keeps to it."""

    def clipped_sum(self, examples: Any, clip: float) -> list[torch.Tensor]:
        return [examples[0].double().sum(0)]


def moved(gradients: np.ndarray, spend: TrainingSpend) -> float:
    """Give how far the first row moves the rounded sum, in steps of the grid."""
    learner = Sums(spend.dim)
    sums = [
        dpsgd.grid_sum(learner, [torch.from_numpy(rows)], np.arange(len(rows)), spend)
        for rows in (gradients, gradients[1:])
    ]
    return math.sqrt(float(((sums[0] - sums[1]).astype(object) ** 2).sum()))


def hostile(dim: int, seed: int) -> np.ndarray:
    """Two rows whose sum rounding moves as far as it can: half steps that add up to whole ones."""
    step = 2.0**-GRADIENT_BITS
    signs = np.where(np.random.default_rng(seed).random(dim) < 0.5, -1.0, 1.0)
    entry = np.floor(0.999999 / math.sqrt(dim) / step) * step
    first = signs * (entry + 0.25 * step)
    second = signs * (0.375 * step)  # alone it rounds to nothing, with the first to a whole step
    return np.stack([first, second])


@given(dim=st.integers(1, 4000), seed=st.integers(0, 99))
def test_no_row_moves_the_rounded_sum_by_more_than_is_paid_for(dim: int, seed: int) -> None:
    gradients = hostile(dim, seed)
    spend = replace(SPEND, dim=dim)
    assert np.linalg.norm(gradients[0]) <= 1
    assert moved(gradients, spend) <= spend.sensitivity / spend.grid


def test_rounding_alone_moves_the_sum_beyond_the_clipping_norm() -> None:
    """So the clipping norm is not bound enough: nearly a step for each coordinate is needed."""
    gradients = hostile(4000, 0)
    length = float(np.linalg.norm(gradients[0])) * 2.0**GRADIENT_BITS
    assert moved(gradients, SPEND) > length + 0.7 * math.sqrt(4000)
    paid = SPEND.sensitivity / SPEND.grid - 2.0**GRADIENT_BITS
    assert paid == pytest.approx(math.sqrt(4000), rel=1e-3)


COARSE = replace(SPEND, grid_bits=10)  # on which rounding is a large part of what a row moves


@pytest.mark.parametrize("spend", [SPEND, replace(SPEND, clip=1e-9, dim=10**8), COARSE])
def test_the_noise_that_is_drawn_is_the_noise_that_is_claimed(spend: TrainingSpend) -> None:
    with drawing(Shown()) as random:
        wall.noisy_gradient(Sums(3), [], spend)
    (drawn,) = random.asked
    assert drawn * spend.grid == pytest.approx(spend.noise_multiplier * spend.sensitivity)
    assert drawn >= spend.noise_multiplier * 2.0**spend.grid_bits


@pytest.mark.parametrize("relation", list(Relation))
def test_what_a_file_says_of_a_trainings_epsilon_is_not_believed(relation: Relation) -> None:
    budget = Budget(epsilon=9, delta=1e-5, relation=relation)
    written = Guarantee.of(budget, (), trainings=(replace(SPEND, epsilon=0.001),)).to_dict()
    read = Guarantee.from_dict(written)
    assert read.trainings[0].epsilon > 1
    assert read.epsilon > 1
    assert "0.001" not in read.trainings[0].in_words()[1]


def test_noise_of_an_earlier_version_is_named() -> None:
    old = replace(SPEND, grid_bits=22)
    assert "floating point" in old.in_words()[0]
    assert "floating point" not in SPEND.in_words()[0]


def test_the_distance_from_a_gaussian_is_paid_for() -> None:
    """It is next to nothing, but counted: with steps as wide as noise it would be the most."""
    budget = Budget(epsilon=9, delta=1e-5)
    fine = Guarantee.of(budget, (), trainings=(SPEND,)).epsilon
    coarse = Guarantee.of(budget, (), trainings=(replace(SPEND, grid_bits=12),)).epsilon
    assert coarse > fine + replace(SPEND, grid_bits=12).log_ratio
    hopeless = replace(SPEND, grid_bits=1)
    assert Guarantee.of(budget, (), trainings=(hopeless,)).epsilon == math.inf
