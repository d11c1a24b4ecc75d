"""The certificate in plain words: what was released and what it guarantees."""

from __future__ import annotations

import math
from typing import Any, Protocol

from sfumato.privacy.budget import Guarantee, Relation

FLOATING_POINT = (
    "the noise of training is Gaussian in floating point, made of the operating system's "
    "cryptographic entropy; the accountant reckons with exact arithmetic"
)


class Certified(Protocol):
    """A fitted model of any kind."""

    @property
    def method(self) -> Any:
        """Its settings, which have a name."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""


def certificate_text(model: Certified) -> str:
    """Tell a model's guarantee and every spend behind it."""
    guarantee = model.guarantee
    rho = f"; zCDP rho = {guarantee.rho:.6g}" if guarantee.spends else ""
    lines = [
        f"method: {model.method.name}",
        f"guarantee: epsilon = {guarantee.epsilon:.6g}, delta = {guarantee.delta:g} "
        f"({guarantee.relation}{rho})",
        promise(guarantee),
        "releases:",
    ]
    lines += [
        f"  {s.name}: {s.dim:,} values, sensitivity {s.sensitivity:.6g}, discrete Gaussian noise "
        f"of scale {s.sigma:.6g}, rho {s.rho:.6g}"
        for s in guarantee.spends
    ]
    lines += [
        f"  {t.name}: {t.dim:,} weights, {t.steps:,} noisy steps (DP-SGD); each row is in a step "
        f"with probability {t.rate:.6g} (Poisson sampling), gradients clipped to {t.clip:g}, "
        f"noise multiplier {t.noise_multiplier:.6g}; epsilon {t.epsilon:.6g} at delta {t.delta:g} "
        f"by the privacy loss distribution (dp-accounting)"
        for t in guarantee.trainings
    ]
    if guarantee.trainings:
        lines.append(f"note: {FLOATING_POINT}.")
    return "\n".join(lines)


def promise(guarantee: Guarantee) -> str:
    """Say what the guarantee means for one person, without formulas."""
    odds = math.exp(guarantee.epsilon)
    change = (
        "whether the rows are in the data at all"
        if guarantee.relation is Relation.ADD_REMOVE
        else "what the rows say (the number of rows counts as public)"
    )
    return (
        f"unit of privacy: {unit(guarantee)}. Whatever anyone does with the "
        f"{'model' if guarantee.trainings else 'synthetic data'}, "
        f"the odds of any guess about {change} change by at most a factor of {odds:.3g}, except "
        f"with a probability of {guarantee.delta:g}."
    )


def unit(guarantee: Guarantee) -> str:
    """Name the unit of privacy, and say who sees to it."""
    if guarantee.unit_column:
        return (
            f"all rows with the same '{guarantee.unit_column}' "
            f"(at most {guarantee.max_rows_per_unit} each; further ones were left out)"
        )
    if guarantee.max_rows_per_unit > 1:
        return (
            f"any {guarantee.max_rows_per_unit} rows (that no person has more is the owner's word)"
        )
    return "one row"
