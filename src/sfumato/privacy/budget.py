"""What is promised, to whom: the relation between neighbours, the budget, and the guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from sfumato.errors import SfumatoError, in_open_unit, positive
from sfumato.privacy.zcdp import epsilon_of, rho_for


class Relation(StrEnum):
    """Which two data sets count as neighbours."""

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
        in_open_unit(delta=self.delta)
        if self.max_rows_per_unit < 1:
            raise SfumatoError(
                f"max_rows_per_unit must be at least 1, got {self.max_rows_per_unit}"
            )

    @cached_property
    def rho(self) -> float:
        """The zCDP budget that implies this (epsilon, delta)."""
        return rho_for(self.epsilon, self.delta)


@dataclass(frozen=True, kw_only=True)
class Spend:
    """One release's cost: `rho`-zCDP for noise of scale `sigma` on a sum of this sensitivity."""

    name: str
    dim: int
    sensitivity: float
    sigma: float
    rho: float


@dataclass(frozen=True, kw_only=True)
class TrainingSpend:
    """The cost of training by noisy gradients (DP-SGD).

    Each of `steps` sums is over rows taken with probability `rate` each (Poisson sampling), of
    gradients no longer than `clip`, with Gaussian noise of scale `noise_multiplier` · `clip`. The
    whole is (`epsilon`, `delta`)-DP by its privacy loss distribution. It has no rho.
    """

    name: str
    dim: int
    clip: float
    noise_multiplier: float
    rate: float
    steps: int
    epsilon: float
    delta: float


def composed_epsilon(
    spends: Iterable[Spend], trainings: Iterable[TrainingSpend], delta: float
) -> float:
    """Give the epsilon, at this delta, of releases and trainings together.

    Basic composition: what the trainings leave of delta, delta - sum delta_i, is spent on
    exchanging the releases' rho; the epsilons add. Questions may depend on earlier answers. Costs
    may, too, among releases alone or among trainings alone (Rogers et al. 2016); how much of both
    there is must be fixed in advance. Infinite where the trainings' deltas leave nothing.
    """
    found = list(trainings)
    rho = math.fsum(spend.rho for spend in spends)
    epsilon = math.fsum(training.epsilon for training in found)
    left = delta - math.fsum(training.delta for training in found)
    if rho == 0:
        return epsilon if left >= -1e-9 * delta else math.inf
    return epsilon + epsilon_of(rho, left) if left > 1e-9 * delta else math.inf


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The promise that a model or a synthetic data set carries, with every spend behind it."""

    epsilon: float
    delta: float
    relation: Relation
    max_rows_per_unit: int
    unit_column: str | None
    spends: tuple[Spend, ...]
    trainings: tuple[TrainingSpend, ...] = ()

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
            epsilon=composed_epsilon(spends, trainings, budget.delta),
            delta=budget.delta,
            relation=budget.relation,
            max_rows_per_unit=budget.max_rows_per_unit,
            unit_column=unit_column,
            spends=spends,
            trainings=trainings,
        )

    @property
    def rho(self) -> float:
        """The total zCDP cost of the releases."""
        return sum(spend.rho for spend in self.spends)

    def to_dict(self) -> dict[str, Any]:
        """Give plain values for JSON."""
        return asdict(self) | {"relation": str(self.relation)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Guarantee:
        """Read back what `to_dict` gave."""
        read = {
            "relation": Relation(record["relation"]),
            "spends": tuple(Spend(**spend) for spend in record["spends"]),
            "trainings": tuple(TrainingSpend(**each) for each in record.get("trainings", ())),
        }
        return cls(**record | read)
