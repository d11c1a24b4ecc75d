"""The certificate in plain words: what was released and what it guarantees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Protocol

from sfumato.privacy.budget import Guarantee, Relation
from sfumato.public.provenance import Provenance
from sfumato.schema import Schema


class Certified(Protocol):
    """A fitted model of any kind."""

    @property
    def method(self) -> Any:
        """Its settings, which have a name."""

    @property
    def schema(self) -> Schema:
        """What is public of the rows, found bounds and values included."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""

    @property
    def public(self) -> tuple[Provenance, ...]:
        """The public inputs that it builds on."""


def certificate_text(
    model: Certified, *, date: str | None = None, files: Mapping[str, str] | None = None
) -> str:
    """Tell a model's guarantee and every spend behind it.

    `files` gives the SHA-256 of the files that it is about.
    """
    guarantee = model.guarantee
    rho = ""
    if guarantee.spends:
        rho = (
            f"; Gaussian DP mu = {guarantee.mu:.6g}; zCDP rho = {guarantee.rho:.6g}, from which "
            f"alone epsilon would be {guarantee.zcdp_epsilon:.6g}"
        )
    lines = [f"made by: {made_by()}{f', {date}' if date else ''}"]
    lines += [f"SHA-256 of {what}: {digest}" for what, digest in (files or {}).items()]
    lines.append(f"method: {method_in_words(model.method)}")
    if guarantee.caveats:
        lines.append(f"NOT CERTIFIED, nothing is promised: {'; '.join(guarantee.caveats)}.")
        lines.append("What would hold if that had been public:")
    lines += [
        f"guarantee: epsilon = {guarantee.epsilon:.6g}, delta = {guarantee.delta:g} "
        f"({guarantee.relation}{rho})",
        f"unit of privacy: {unit(guarantee)}.",
        *promises(guarantee),
        "releases:",
    ]
    lines += [
        f"  {s.name}: {s.dim:,} values, sensitivity {s.sensitivity:.6g}, discrete Gaussian noise "
        f"of scale {s.sigma:.6g} in steps of 1/{s.scale}, mu {s.mu:.6g}, rho {s.rho:.6g}"
        for s in guarantee.spends
    ]
    if guarantee.missed:
        lines.append(
            f"  values were told that many rows have; one that a single unit has, with a chance of "
            f"at most {guarantee.missed:.3g}: (1 + e^epsilon) times that is part of delta"
        )
    lines += [
        f"  {t.name}: {t.dim:,} weights, {t.steps:,} noisy steps (DP-SGD); each row is in a step "
        f"with probability {t.rate:.6g} (Poisson sampling), gradients clipped to {t.clip:g}, "
        f"noise multiplier {t.noise_multiplier:.6g}, on a grid of {t.grid:.3g}; epsilon "
        f"{t.epsilon:.6g} at delta {t.delta:g} by the privacy loss distribution (dp-accounting)"
        for t in guarantee.trainings
    ]
    lines += [f"public input: {each.in_words()}" for each in model.public]
    lines += [
        f"of column '{name}' nothing is told: all rows have {value}"
        for name, value in model.schema.settled.items()
    ]
    note = getattr(model.method, "arithmetic", "")
    return "\n".join([*lines, *([f"note: {note}."] if note else [])])


def method_in_words(method: Any) -> str:
    """Name a method, and the package that has it if it is another one."""
    package = type(method).__module__.partition(".")[0]
    if package == "sfumato":
        return str(method.name)
    return (
        f"{method.name}, of the package {package}: that its statistics keep to their bounds is "
        "that package's claim"
    )


def promises(guarantee: Guarantee) -> list[str]:
    """Say what the guarantee means for one person: for presence, and for content.

    In the words of the definition: for every set of outcomes, P with <= e^epsilon P without +
    delta, and the other way round. Delta is not the chance that the factor is passed; that chance
    can be some times as large.
    """
    what = "model" if guarantee.trainings else "synthetic data"
    factor = odds_factor(guarantee.epsilon)
    if guarantee.relation is Relation.REPLACE_ONE:
        return [
            f"content: whatever anyone makes of the {what}, an outcome has with one content of the "
            f"unit's rows at most {factor:.3g} times the probability that it has with any other, "
            f"plus delta. The number of rows counts as public."
        ]
    return [
        f"presence: whatever anyone makes of the {what}, an outcome has with the unit's rows at "
        f"most {factor:.3g} times the probability that it has without them, plus delta; and the "
        "other way round.",
        "content: to someone who knows that the unit is in the data, the factor between one "
        f"content of its rows and another is up to {odds_factor(guarantee.content_epsilon):.3g}, "
        "plus delta: that is two steps, one out and one in.",
    ]


def odds_factor(epsilon: float) -> float:
    """Give e^epsilon, however large."""
    return math.exp(epsilon) if epsilon < 700 else math.inf


def made_by() -> str:
    """Name this program with its version."""
    return f"sfumato {version('sfumato')}"


def used_rows(unit_column: str, most: int) -> str:
    """Say which rows of a unit are used: this follows from schema and budget alone."""
    rows = "1 row is" if most == 1 else f"{most} rows are"
    return f"of each '{unit_column}', at most {rows} used, chosen by a digest; others are left out"


def unit(guarantee: Guarantee) -> str:
    """Name the unit of privacy, and say who sees to it."""
    if guarantee.unit_column:
        return f"all rows with the same '{guarantee.unit_column}'; " + used_rows(
            guarantee.unit_column, guarantee.max_rows_per_unit
        )
    rows = guarantee.max_rows_per_unit
    what = "one row" if rows == 1 else f"any {rows} rows"
    return f"{what} (that no person has more is the owner's promise, which nothing here checks)"
