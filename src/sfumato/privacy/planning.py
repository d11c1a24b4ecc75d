"""Plans: how much noise a share of a budget asks for. No data are touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, Spend, TrainingSpend, composed_epsilon
from sfumato.privacy.sampled_gaussian import noise_multiplier_for, sampled_epsilon
from sfumato.privacy.statistic import ENTRY_BITS, Statistic, unit_sensitivity
from sfumato.privacy.zcdp import gaussian_scale

if TYPE_CHECKING:
    from sfumato.privacy.dpsgd import Schedule

# Noise this wide could reach the end of 64 bits; a plan that needs it is refused.
_LARGEST_SIGMA = 2.0**55
# What a training after releases takes of delta: their exchange of rho needs some of it, too.
_TRAINING_DELTA = 0.9


def plan_spend(name: str, statistic: Statistic, budget: Budget, share: float) -> Spend:
    """Work out the noise for a share of the budget's rho; touches no data.

    Refuses what could overflow: entries beyond 2^24, or noise near the end of 64 bits.
    """
    sensitivity = unit_sensitivity(statistic, budget)
    sigma = gaussian_scale(sensitivity, share * budget.rho)
    if statistic.largest_entry > 1 << ENTRY_BITS or sigma > _LARGEST_SIGMA:
        raise SfumatoError(
            f"'{name}' would need numbers beyond 64 bits: raise epsilon or lower its precision"
        )
    return Spend(name=name, dim=statistic.dim, sensitivity=sensitivity, sigma=sigma)


def plan_training(
    name: str, dim: int, schedule: Schedule, budget: Budget, spends: tuple[Spend, ...] = ()
) -> TrainingSpend:
    """Work out the noise of a training with all that `spends` leave of a budget; touches no data.

    Refuses a unit of several rows: rows are sampled and clipped one by one.
    """
    epsilon, delta = left_for_training(budget, spends, name)
    noise = noise_multiplier_for(epsilon, delta, schedule.rate, schedule.steps, budget.relation)
    reached = sampled_epsilon(noise, schedule.rate, schedule.steps, delta, budget.relation)
    return TrainingSpend(
        name=name,
        dim=dim,
        clip=schedule.clip,
        noise_multiplier=noise,
        rate=schedule.rate,
        steps=schedule.steps,
        epsilon=reached,
        delta=delta,
    )


def left_for_training(budget: Budget, spends: tuple[Spend, ...], name: str) -> tuple[float, float]:
    """Give the epsilon and delta that releases leave for a training; refuse what cannot be."""
    if budget.max_rows_per_unit > 1:
        raise SfumatoError(
            f"'{name}' protects single rows: use one row per unit (with an identifier that is the "
            "unit of privacy, the first row of each is kept)"
        )
    if not spends:
        return budget.epsilon, budget.delta
    delta = _TRAINING_DELTA * budget.delta
    epsilon = budget.epsilon - composed_epsilon(spends, budget.delta - delta)
    if epsilon <= 0:
        raise SfumatoError(f"'{name}' would cost more than what is left of the budget")
    return epsilon, delta
