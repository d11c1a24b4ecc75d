"""The certificate in plain words: what was released and what it guarantees."""

from __future__ import annotations

import math

from sfumato.methods.base import Model
from sfumato.privacy.budget import Guarantee, Relation


def certificate_text(model: Model) -> str:
    """Tell a model's guarantee and every spend behind it."""
    guarantee = model.guarantee
    lines = [
        f"method: {model.method.name}",
        f"guarantee: epsilon = {guarantee.epsilon:.6g}, delta = {guarantee.delta:g} "
        f"({guarantee.relation}; zCDP rho = {guarantee.rho:.6g})",
        promise(guarantee),
        "releases:",
    ]
    lines += [
        f"  {s.name}: {s.dim:,} values, sensitivity {s.sensitivity:.6g}, discrete Gaussian noise "
        f"of scale {s.sigma:.6g}, rho {s.rho:.6g}"
        for s in guarantee.spends
    ]
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
        f"unit of privacy: {unit(guarantee)}. Whatever anyone does with the synthetic data, "
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
