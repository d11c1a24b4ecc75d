"""An attack on a tiny model: no more than the claimed epsilon, unless the noise is too small.

Each canary is a row whose gradient is far too long and points where no other does, so that one
training tells as much as many: the places of thousands of canaries are thousands of independent
trials, half of them of a data set with the canary and half without. The attacker sees every saved
state. For an (epsilon, delta)-private training, at every threshold,

    P(above | with the canary) <= exp(epsilon) P(above | without) + delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy.stats import beta
from torch import Tensor

from learners import Plain, trained
from seeded import Seeded
from sfumato.privacy.budget import Budget
from sfumato.privacy.dpsgd import Schedule
from sfumato.privacy.gradients import clip_factors
from sfumato.privacy.planning import plan_training

EPSILON, DELTA = 1.0, 1e-3
CLIP = 0.5
SCHEDULE = Schedule(rate=0.5, epochs=1.5, clip=CLIP, learning_rate=1.0)
TRIALS = 40_000
ERROR = 1e-6  # of both confidence bounds together
LENGTH = 7.0


class Canaries(Plain):
    """The gradient of canary i is LENGTH in its own direction and nothing elsewhere."""

    def clipped_sum(self, examples: Sequence[Tensor], clip: float) -> list[Tensor]:
        (numbers,) = examples
        factors = clip_factors(torch.full((len(numbers),), LENGTH**2), clip)
        return [torch.bincount(numbers, LENGTH * factors / clip, len(self.module.place))]


class Everybody(Seeded):
    """Takes every row in every step, which the accountant of a sampled training does not expect."""

    def chosen(self, rows: int, rate: float) -> np.ndarray:
        return np.arange(rows)


def least_delta(random: Seeded) -> float:
    """Give a lower confidence bound on the delta at the claimed epsilon."""
    spend = plan_training("t", 2 * TRIALS, SCHEDULE, Budget(epsilon=EPSILON, delta=DELTA))
    learner = Canaries(2 * TRIALS)
    last = trained(learner, (np.arange(TRIALS),), SCHEDULE, spend, random)
    seen = -last.arrays["weights/place"]
    threshold = 3 * spend.noise_multiplier * random.scale  # where the worst of the loss lies
    present, absent = (int((part > threshold).sum()) for part in (seen[:TRIALS], seen[TRIALS:]))
    lowest = beta.ppf(ERROR / 2, present, TRIALS - present + 1)
    highest = beta.ppf(1 - ERROR / 2, absent + 1, TRIALS - absent)
    return float(lowest - math.exp(EPSILON) * highest)


def test_the_claimed_epsilon_withstands_a_canary() -> None:
    assert least_delta(Seeded(0)) <= DELTA


@pytest.mark.parametrize("random", [Seeded(0, scale=0.5), Everybody(0)])
def test_half_the_noise_or_no_sampling_does_not(random: Seeded) -> None:
    assert least_delta(random) > DELTA
