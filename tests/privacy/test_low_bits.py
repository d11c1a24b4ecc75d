"""The bits of a noisy gradient tell nothing that its value does not.

The attack: some columns are filled in one row only. Without that row their sum is zero, and
floating-point noise keeps all its bits; with it, the noise is rounded to the coarser bits of the
row's value. A small noisy value with finer bits than the row's value could leave proves that the
row is absent. Both saved states and gradients carry these bits.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from learners import Plain, trained
from seeded import Seeded
from sfumato.privacy import dpsgd, wall
from sfumato.privacy.budget import GRADIENT_BITS, Relation, TrainingSpend
from sfumato.privacy.dpsgd import Schedule

COLUMNS = 20
SCHEDULE = Schedule(rate=1.0, epochs=1.0, clip=1.0, learning_rate=1.0)
SPEND = TrainingSpend(
    name="t", dim=COLUMNS, clip=1.0, noise_multiplier=4.0, rate=1.0, steps=1, epsilon=1, delta=1e-6,
    grid_bits=GRADIENT_BITS,
)  # fmt: skip
RUNS = 400


def first_saved(rows: np.ndarray, seed: int) -> np.ndarray:
    """Give what an attacker sees of a training of one step."""
    learner = Plain(COLUMNS)
    state = trained(learner, (rows,), SCHEDULE, SPEND, Seeded(seed))
    return -state.arrays["weights/place"].astype(np.float64)


def proves_absence(seen: np.ndarray) -> bool:
    """Look for bits that are finer than the row's value, about 1/5 per column, lets through."""
    fine = seen * 2.0**26
    return bool(((np.abs(seen) < 2**-5) & (fine != np.rint(fine))).any())


def least_delta() -> float:
    """Give the delta, at the claimed epsilon, that the attack shows."""
    absent, present = np.zeros((1, COLUMNS), np.float32), np.full((1, COLUMNS), 0.2, np.float32)
    told = [
        np.mean([proves_absence(first_saved(rows, seed)) for seed in range(RUNS)])
        for rows in (absent, present)
    ]
    epsilon = SPEND.derived(Relation.ADD_REMOVE).epsilon
    return float(told[0] - math.exp(epsilon) * told[1])


def test_the_attack_finds_nothing_on_the_grid() -> None:
    assert least_delta() <= 0


def test_the_attack_finds_something_in_floating_point(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)

    def floating(learner: dpsgd.Learner, rows: list, spend: TrainingSpend) -> np.ndarray:
        (total,) = learner.clipped_sum(rows, spend.clip)
        noise = (spend.sigma * rng.standard_normal(COLUMNS)).astype(np.float32)
        return (total.numpy().astype(np.float32) + noise) * np.float32(2**GRADIENT_BITS)

    monkeypatch.setattr(wall, "noisy_gradient", floating)
    assert least_delta() > 0.05
