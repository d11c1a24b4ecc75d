"""Plans: how much noise a share of a budget asks for. No data are touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import GRADIENT_BITS, Budget, Cost, Spend, TrainingSpend
from sfumato.privacy.sampled_gaussian import LEAST_NOISE, noise_multiplier_for
from sfumato.privacy.statistic import ENTRY_BITS, Statistic, unit_sensitivity
from sfumato.privacy.zcdp import gaussian_scale

if TYPE_CHECKING:
    from sfumato.privacy.dpsgd import Schedule

# Noise this wide could reach the end of 64 bits; a plan that needs it is refused.
_LARGEST_SIGMA = 2.0**55


def plan_spend(name: str, statistic: Statistic, budget: Budget, share: float) -> Spend:
    """Work out the noise for a share of the budget's rho; touches no data.

    The grid is as fine as 64 bits allow. A row can reach its largest entry, so the sensitivity is
    no less, and noise has at least 2^GRID_BITS / mu steps. Refuses what could overflow: large
    entries, or noise near the end of 64 bits.
    """
    sensitivity = unit_sensitivity(statistic, budget)
    sigma = gaussian_scale(sensitivity, share * budget.rho)
    if sensitivity < statistic.largest_entry:
        raise ValueError(f"'{name}': an entry of {statistic.largest_entry} passes its bound")
    entry, noise = (1 << ENTRY_BITS) // statistic.largest_entry, _LARGEST_SIGMA / sigma
    if entry < 1 or noise < 1:
        raise SfumatoError(
            f"'{name}' would need numbers beyond 64 bits: raise epsilon or lower its precision"
        )
    return Spend(
        name=name,
        dim=statistic.dim,
        sensitivity=sensitivity,
        sigma=sigma,
        scale=1 << int(math.log2(min(entry, noise))),
    )


def plan_training(
    name: str, dim: int, schedule: Schedule, budget: Budget, beside: Sequence[Cost] = ()
) -> TrainingSpend:
    """Work out the noise of a training for what other costs leave of a budget; touches no data.

    Refuses a unit of several rows.
    """
    refuse_training(budget, name)
    spend = TrainingSpend(
        name=name,
        dim=dim,
        clip=schedule.clip,
        noise_multiplier=LEAST_NOISE,
        rate=schedule.rate,
        steps=schedule.steps,
        epsilon=budget.epsilon,
        delta=budget.delta,
        grid_bits=GRADIENT_BITS,
    )
    # More noise is nearer to a Gaussian: what the least noise needs is enough to set aside.
    away = spend.log_ratio
    if away >= budget.epsilon:
        raise SfumatoError(f"'{name}' has too many steps for epsilon {budget.epsilon:g}")
    left = replace(budget, epsilon=budget.epsilon - away, delta=(1 - away) * budget.delta)
    noise = noise_multiplier_for(left, schedule.rate, schedule.steps, beside)
    return replace(spend, noise_multiplier=noise).derived(budget.relation)


def refuse_training(budget: Budget, name: str) -> None:
    """Refuse a training where a unit has several rows: they are sampled one by one."""
    if budget.max_rows_per_unit > 1:
        raise SfumatoError(
            f"'{name}' protects single rows: use one row per unit (with an identifier that is the "
            "unit of privacy, one row of each is used)"
        )
