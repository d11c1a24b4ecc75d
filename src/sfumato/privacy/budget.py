"""What is promised, to whom: the relation between neighbours, the budget, and the guarantee."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from sfumato.errors import SfumatoError, in_open_unit, positive
from sfumato.notebook import html_table
from sfumato.privacy import zcdp
from sfumato.privacy.gaussian import GRID_BITS, epsilon_of, log_ratio, rho_for, squared_distance
from sfumato.privacy.zcdp import gaussian_rho

MOST_EPSILON = 10_000
"""With more there is neither privacy nor noise, and numbers overflow."""

GRADIENT_BITS = 36
"""Gradients are rounded to steps of 2^-36 of the clipping norm: far below any noise."""

_EARLIER_BITS = 22  # of trainings whose noise was drawn in floating point


class Relation(StrEnum):
    """Which two data sets count as neighbours.

    >>> Budget(epsilon=1, relation="replace-one").relation is Relation.REPLACE_ONE
    True
    """

    ADD_REMOVE = "add-remove"
    """One unit is present in one and absent from the other; the number of rows is private."""

    REPLACE_ONE = "replace-one"
    """One unit's rows are exchanged for others; the number of rows is public."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much may be learned about one unit of privacy from everything that is released.

    The unit is one row, or one person with at most `max_rows_per_unit` rows. Where the schema
    marks an identifier with ``unit = true``, further rows of the same person are left out; without
    such a column the number is the owner's promise.

    >>> Budget(epsilon=1.0, delta=1e-5).rho < Budget(epsilon=2.0, delta=1e-5).rho
    True
    """

    epsilon: float
    delta: float = 1e-6
    relation: Relation = Relation.ADD_REMOVE
    max_rows_per_unit: int = 1

    def __post_init__(self) -> None:
        if self.relation not in set(Relation):
            raise SfumatoError(
                f"relation must be one of {', '.join(Relation)}, not {self.relation}"
            )
        object.__setattr__(self, "relation", Relation(self.relation))
        positive(epsilon=self.epsilon)
        if self.epsilon > MOST_EPSILON:
            raise SfumatoError(
                f"epsilon {self.epsilon:g} promises nothing: take at most {MOST_EPSILON:,}, "
                "and for a promise worth its name at most 10"
            )
        in_open_unit(delta=self.delta)
        if self.max_rows_per_unit < 1:
            raise SfumatoError(
                f"max_rows_per_unit must be at least 1, got {self.max_rows_per_unit}"
            )

    @classmethod
    def of(cls, given: Budget | float) -> Budget:
        """Give a budget as it is, or one of this epsilon with the usual delta.

        >>> Budget.of(1).delta
        1e-06
        """
        if isinstance(given, Budget):
            return given
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise SfumatoError(
                f"a budget is a Budget or a number (epsilon), not a {type(given).__name__}"
            )
        return cls(epsilon=float(given))

    @cached_property
    def rho(self) -> float:
        """What all releases may cost: mu²/2 of the Gaussian mechanism of this (epsilon, delta)."""
        return rho_for(self.epsilon, self.delta)

    def without_chance(self, missed: float) -> float:
        """Give the share of rho that is left where a chance of `missed` is paid for, too."""
        if not missed:
            return 1.0
        left = self.delta - (1 + math.exp(min(self.epsilon, 700))) * missed
        return rho_for(self.epsilon, left) / self.rho * (1 - 1e-9)

    def part(self, share: float) -> Budget:
        """Give the budget of which a share of rho is left."""
        left = share * self.rho * (1 - 1e-9)
        low, high = 0.0, self.epsilon
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if rho_for(middle, self.delta) <= left else (low, middle)
        return replace(self, epsilon=low)


@dataclass(frozen=True, kw_only=True)
class Cost(ABC):
    """What something cost: a rho that adds up with others, or the steps of a training."""

    name: str
    dim: int

    @property
    def rho(self) -> float:
        """What it costs: mu²/2 of a Gaussian mechanism, which is also its rho in zCDP."""
        return 0.0

    @property
    def squared_distance(self) -> float:
        """How far its noise is from a rounded Gaussian in total variation, squared."""
        return 0.0

    @property
    def log_ratio(self) -> float:
        """How far its noise is from that of a training's accountant, by logarithms of chances."""
        return 0.0

    @property
    def missed(self) -> float:
        """How far it is, besides, from a mechanism that costs its rho, in total variation."""
        return 0.0

    @property
    def trainings(self) -> tuple[tuple[float, float, int], ...]:
        """The steps of trainings: noise multiplier, rate and number, of each."""
        return ()

    @abstractmethod
    def in_words(self) -> tuple[str, str]:
        """Tell the noise, and what it cost."""

    @abstractmethod
    def to_row(self) -> dict[str, str | float]:
        """Give what the ledger keeps of it, by column."""

    @staticmethod
    def from_row(row: Mapping[str, Any]) -> Cost:
        """Read back what `to_row` gave; a rho is derived and not read."""
        common = {"name": row["name"], "dim": row["dim"]}
        if row["epsilon"] is None:
            noise = {
                "sensitivity": row["sensitivity"],
                "sigma": row["sigma"],
                "scale": row["scale"] or 1,  # earlier ledgers know no other
            }
            return spend_of(common | noise | ({"chance": row["chance"]} if row["chance"] else {}))
        multiplier = row["noise_multiplier"]  # earlier ledgers have the noise of a step instead
        if multiplier is None:
            multiplier = row["sigma"] / row["sensitivity"]
        columns = ("rate", "steps", "epsilon", "delta")
        return TrainingSpend(
            **common,
            clip=row["sensitivity"],
            noise_multiplier=multiplier,
            grid_bits=row["grid_bits"] or _EARLIER_BITS,
            **{column: row[column] for column in columns},
        )


@dataclass(frozen=True, kw_only=True)
class Spend(Cost):
    """One release's cost: noise of scale `sigma` on a sum of this sensitivity.

    >>> round(Spend(name="counts", dim=4, sensitivity=1, sigma=2).rho, 6)
    0.125
    """

    sensitivity: float
    sigma: float
    scale: int = 1
    """The power of two by which sums were multiplied before noise was added, in whole numbers."""

    def __post_init__(self) -> None:
        positive(sensitivity=self.sensitivity, sigma=self.sigma, scale=self.scale)

    @property
    def rho(self) -> float:
        """What it costs: derived, and never stored."""
        return gaussian_rho(self.sensitivity, self.sigma)

    @property
    def mu(self) -> float:
        """The parameter of the Gaussian mechanism that it is."""
        return math.sqrt(2 * self.rho)

    @property
    def squared_distance(self) -> float:
        """Bound how far its noise is from a rounded Gaussian, squared: see `gaussian`."""
        return squared_distance(self.dim, self.scale * self.sigma)

    def in_words(self) -> tuple[str, str]:
        return f"{self.sigma:.6g}", f"mu {self.mu:.4g}"

    def to_row(self) -> dict[str, str | float]:
        return asdict(self) | {"rho": self.rho}


@dataclass(frozen=True, kw_only=True)
class SelectionSpend(Spend):
    """The cost of telling which values exist: noisy counts of those that do, above a threshold.

    `chance` bounds the chance that a value of one unit alone passes the threshold: see `selection`.
    How many values are counted is private; `dim` is how many columns they are of.
    """

    chance: float

    def __post_init__(self) -> None:
        super().__post_init__()
        in_open_unit(chance=self.chance)

    @property
    def squared_distance(self) -> float:
        """Bound how far the noise is from a rounded Gaussian, squared, for all rows' values."""
        return squared_distance(1 << 32, self.scale * self.sigma)

    @property
    def missed(self) -> float:
        return self.chance

    def in_words(self) -> tuple[str, str]:
        noise, cost = super().in_words()
        return noise, f"{cost}, chance {self.chance:.2g}"


def spend_of(fields: Mapping[str, Any]) -> Spend:
    """Make a spend of its fields, of the kind that has them."""
    return SelectionSpend(**fields) if "chance" in fields else Spend(**fields)


@dataclass(frozen=True, kw_only=True)
class Reserved(Cost):
    """What a run has set aside for questions that it has not asked yet."""

    amount: float

    @property
    def rho(self) -> float:
        return self.amount

    @property
    def squared_distance(self) -> float:
        """Bound how far the noise of `dim` values will be from a Gaussian, on its coarsest grid."""
        return squared_distance(self.dim, 2.0**GRID_BITS / max(math.sqrt(2 * self.amount), 1e-9))

    def in_words(self) -> tuple[str, str]:
        return "", f"rho {self.rho:.4g}"

    def to_row(self) -> dict[str, str | float]:
        return {"name": self.name, "rho": self.amount}


@dataclass(frozen=True, kw_only=True)
class TrainingSpend(Cost):
    """The cost of training by noisy gradients (DP-SGD).

    Each of `steps` sums is over rows taken with probability `rate` each (Poisson sampling), of
    gradients no longer than `clip`, rounded to a grid of 2^-`grid_bits` of that, with discrete
    Gaussian noise on the same grid. The noise has `noise_multiplier` times the scale of what one
    row can change, rounding included: see `sensitivity`. By itself it is (`epsilon`, `delta`)-DP by
    its privacy loss distribution; with other costs it is composed jointly. It has no rho.
    """

    clip: float
    noise_multiplier: float
    rate: float
    steps: int
    epsilon: float
    delta: float
    grid_bits: int = _EARLIER_BITS  # what says nothing of it comes from an earlier version

    def __post_init__(self) -> None:
        positive(clip=self.clip, noise_multiplier=self.noise_multiplier, steps=self.steps)
        positive(rate=self.rate, epsilon=self.epsilon)
        in_open_unit(delta=self.delta)

    @property
    def trainings(self) -> tuple[tuple[float, float, int], ...]:
        return ((self.noise_multiplier, self.rate, self.steps),)

    @property
    def grid(self) -> float:
        """The step of the grid that sums and noise are rounded to."""
        return self.clip * 2.0**-self.grid_bits

    @property
    def sensitivity(self) -> float:
        """How far one row can move a rounded sum: its own length, and one step per coordinate.

        Rounding moves each of `dim` coordinates by at most half a step, before and after the row
        is added: sqrt(dim) steps in all.
        """
        return self.clip + math.sqrt(self.dim) * self.grid

    @property
    def sigma(self) -> float:
        """The scale of the noise on each sum."""
        return self.noise_multiplier * self.sensitivity

    @property
    def sigma_in_steps(self) -> float:
        """The same in steps of the grid."""
        return self.sigma / self.grid

    @property
    def log_ratio(self) -> float:
        """Bound how far all its noise is from a rounded Gaussian: see `gaussian.log_ratio`.

        It holds for each step given the earlier steps and the rows that are taken, so it adds over
        steps, and holds for the mixture over the rows that are taken, too.
        """
        if self.grid_bits == _EARLIER_BITS:
            return 0.0
        return log_ratio(self.dim * self.steps, self.sigma_in_steps)

    def in_words(self) -> tuple[str, str]:
        noise = f"{self.noise_multiplier:.6g} × {self.clip:g}"
        if self.grid_bits == _EARLIER_BITS:
            noise += ", drawn in floating point by an earlier version"
        return (
            f"{noise}, {self.steps:,} steps at rate {self.rate:.4g}",
            f"epsilon {self.epsilon:.4g}, delta {self.delta:.4g}",
        )

    def to_row(self) -> dict[str, str | float]:
        """Give its columns; the sensitivity of a training is its clipping norm."""
        row = asdict(self) | {"sensitivity": self.clip, "sigma": self.sigma, "rho": 0.0}
        del row["clip"]
        return row

    def derived(self, relation: Relation) -> TrainingSpend:
        """Give the same training with the epsilon that its noise, rate and steps amount to."""
        return replace(self, epsilon=composed_epsilon([self], self.delta, relation))


def composed_epsilon(costs: Iterable[Cost], delta: float, relation: Relation) -> float:
    """Give the epsilon, at this delta, of all costs together.

    Releases alone have a closed form. With trainings, all are composed jointly, by the privacy loss
    distributions of the releases' Gaussian and of the trainings' steps; what the releases' noise is
    away from a Gaussian takes a hundredth of delta; what the trainings' noise is, adds next to
    nothing to both. Questions may depend on earlier answers, and costs, too; how much there is in
    total must be fixed in advance. What lies a chance m away from a mechanism of its cost, by total
    variation, takes (1 + e^epsilon) m of delta.
    """
    found = list(costs)
    missed = math.fsum(cost.missed for cost in found)
    if missed:
        return _beside(missed, delta, lambda left: _composed(found, left, relation))
    return _composed(found, delta, relation)


def _beside(missed: float, delta: float, epsilon_at: Callable[[float], float]) -> float:
    """Give an epsilon that holds with what is left of delta at it; infinite if none is found."""
    epsilon = epsilon_at(delta)
    for _ in range(100):
        tried = epsilon * (1 + 1e-9)
        left = delta - (1 + math.exp(min(tried, 700))) * missed
        if left <= 0:
            break
        epsilon = epsilon_at(left)
        if epsilon <= tried:
            return tried
    return math.inf


def _composed(found: Sequence[Cost], delta: float, relation: Relation) -> float:
    rho = math.fsum(cost.rho for cost in found)
    squared = math.fsum(cost.squared_distance for cost in found)
    trainings = tuple(sorted(each for cost in found for each in cost.trainings))
    if not trainings:
        return epsilon_of(rho, squared, delta)
    from sfumato.privacy.sampled_gaussian import joint_epsilon

    away = math.fsum(cost.log_ratio for cost in found)
    if away >= 1:
        return math.inf
    return joint_epsilon(trainings, rho, squared, (1 - away) * delta, relation) + away


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The promise that a model or a synthetic data set carries, with every spend behind it.

    Its epsilon is always worked out from the spends, also of a file that states one.

    >>> spend = Spend(name="counts", dim=4, sensitivity=1, sigma=4.6)
    >>> promised = Guarantee.of(Budget(epsilon=1, delta=1e-6), (spend,))
    >>> round(promised.epsilon, 2), round(promised.content_epsilon, 2)
    (0.98, 2.08)

    Parameters
    ----------
    caveats
        What was read from private rows without being paid for: where there is any, nothing is
        promised.
    """

    delta: float
    relation: Relation
    max_rows_per_unit: int
    unit_column: str | None
    spends: tuple[Spend, ...]
    trainings: tuple[TrainingSpend, ...] = ()
    caveats: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        budget: Budget,
        spends: tuple[Spend, ...],
        unit_column: str | None = None,
        trainings: tuple[TrainingSpend, ...] = (),
    ) -> Guarantee:
        """Give the guarantee of these spends at the budget's delta."""
        return cls(
            delta=budget.delta,
            relation=budget.relation,
            max_rows_per_unit=budget.max_rows_per_unit,
            unit_column=unit_column,
            spends=spends,
            trainings=trainings,
        )

    @cached_property
    def epsilon(self) -> float:
        """What the spends amount to at `delta`."""
        return composed_epsilon(self.costs, self.delta, self.relation)

    @cached_property
    def content_epsilon(self) -> float:
        """What protects what a unit's rows say, from someone who knows that they are there.

        Where neighbours differ by presence, exchanging a unit's rows for others is two steps: one
        out, one in. A sum moves twice as far, which costs four times its rho; a training is
        accounted for anew, with replaced rows. Where neighbours differ by content, it is epsilon.
        """
        if self.relation is Relation.REPLACE_ONE:
            return self.epsilon
        spends = [replace(spend, sensitivity=2 * spend.sensitivity) for spend in self.spends]
        return composed_epsilon([*spends, *self.trainings], self.delta, Relation.REPLACE_ONE)

    @property
    def rho(self) -> float:
        """What the releases cost in zCDP."""
        return sum(spend.rho for spend in self.spends)

    @property
    def missed(self) -> float:
        """The chance that values of one unit alone were told: see `selection`."""
        return math.fsum(spend.missed for spend in self.spends)

    @property
    def zcdp_epsilon(self) -> float:
        """What zCDP alone makes of the releases' rho, for those who must state that."""
        if self.missed:
            return _beside(self.missed, self.delta, lambda left: zcdp.epsilon_of(self.rho, left))
        return zcdp.epsilon_of(self.rho, self.delta)

    @property
    def mu(self) -> float:
        """The parameter of the Gaussian mechanism that all releases are together."""
        return math.sqrt(2 * self.rho)

    def _repr_html_(self) -> str:
        """Show the promise in a notebook."""
        lines = [(cost.name, f"{cost.dim:,}", *cost.in_words()) for cost in self.costs]
        title = f"epsilon = {self.epsilon:.6g}, delta = {self.delta:g} ({self.relation})"
        if self.caveats:
            title = f"NOT CERTIFIED: {'; '.join(self.caveats)}"
        return html_table(title, ["release", "values", "noise", "cost"], lines)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """All spends and trainings."""
        return (*self.spends, *self.trainings)

    def to_dict(self) -> dict[str, Any]:
        """Give plain values for JSON; epsilon and rhos are for the reader and not read back."""
        spends = [asdict(spend) | {"rho": spend.rho, "mu": spend.mu} for spend in self.spends]
        return asdict(self) | {
            "relation": str(self.relation),
            "epsilon": self.epsilon,
            "content_epsilon": self.content_epsilon,
            "zcdp_epsilon": self.zcdp_epsilon,
            "mu": self.mu,
            "spends": spends,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Guarantee:
        """Read back what `to_dict` gave; what can be derived is derived anew."""
        relation = Relation(record["relation"])
        in_open_unit(delta=record["delta"])
        trainings = (TrainingSpend(**each) for each in record.get("trainings", ()))
        return cls(
            delta=record["delta"],
            relation=relation,
            max_rows_per_unit=record["max_rows_per_unit"],
            unit_column=record["unit_column"],
            spends=tuple(
                spend_of({key: each for key, each in spend.items() if key not in ("rho", "mu")})
                for spend in record["spends"]
            ),
            trainings=tuple(training.derived(relation) for training in trainings),
            caveats=tuple(record.get("caveats", ())),
        )
