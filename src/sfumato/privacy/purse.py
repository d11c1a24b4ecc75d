"""The purse: what one run may spend, what it has spent, and what it reserves in the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import (
    Budget,
    Cost,
    Guarantee,
    Reserved,
    Spend,
    TrainingSpend,
    composed_epsilon,
)
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.privacy.search_budget import SearchBudget

_SLACK = 1 + 1e-9  # of sums in floating point
_LATER_VALUES = 10**6
"""So many values are expected after a training; it matters where epsilon is far above 10."""


class Purse:
    """A run's budget, as a filter that no sequence of questions can pass.

    What is asked, and for which share, may depend on earlier answers: for Gaussian mechanisms that
    is as good as a fixed sequence (Smith and Thakurta 2022).

    Parameters
    ----------
    whole
        What all answers together may cost.
    ahead
        What is kept back of it for finding what the schema leaves open. So is the gate's share of
        the run; `budget` is the rest.
    run
        Names the ledger and the data set.
    unit
        What the unit of privacy is called there.
    """

    def __init__(self, whole: Budget, ahead: SearchBudget, run: Run, unit: str) -> None:
        assert run.ledger is not None
        assert run.dataset is not None
        kept = run.gate.share + ahead.share
        left = whole.without_chance(ahead.chance) - kept
        self.whole = whole
        self.budget = whole.part(left) if left < 1 else whole
        self.spends: list[Spend] = []
        self.trainings: list[TrainingSpend] = []
        self._kept_back, self._chance = kept * whole.rho, ahead.chance
        self._room = self.budget.rho  # for releases, in all
        self._spent_ahead = 0.0
        self._ledger: Ledger = run.ledger
        self._dataset: str = run.dataset
        self._unit = unit
        self._reservation: int | None = None

    def guarantee(self, unit_column: str | None) -> Guarantee:
        """Say what has been promised so far."""
        return Guarantee.of(self.budget, tuple(self.spends), unit_column, tuple(self.trainings))

    @property
    def left(self) -> float:
        """The share of the budget that is not spent yet; after a training, what it has left."""
        return max(0.0, (self._room - self._spent) / self.budget.rho)

    @property
    def costs(self) -> tuple[Cost, ...]:
        """All that was spent."""
        return (*self.spends, *self.trainings)

    @property
    def _spent(self) -> float:
        """The rho of all releases but those that have a part of the budget for themselves."""
        return sum(spend.rho for spend in self.spends) - self._spent_ahead

    @property
    def _still_to_spend(self) -> float:
        return self._kept_back - self._spent_ahead + self._room - self._spent

    def refuse(self, spend: Spend) -> None:
        """Refuse a release that costs more than what is left."""
        if self._spent + spend.rho > self._room * _SLACK or not self._affords(spend):
            raise SfumatoError(f"'{spend.name}' would cost more than what is left of the budget")

    def refuse_ahead(self, spend: Spend) -> None:
        """Refuse a release that costs more than what is kept back."""
        missed = spend.missed + sum(each.missed for each in self.spends)
        rho = self._spent_ahead + spend.rho
        if rho > self._kept_back * _SLACK or missed > self._chance * _SLACK:
            raise SfumatoError(f"'{spend.name}' would cost more than what is kept back for it")

    def later(self, name: str, share: float | None) -> float:
        """Give the rho of what may follow a training that takes this share; refuse too large a one.

        Without a share it takes all that is left. There is one training in a run.
        """
        rho = 0.0 if share is None else (self.left - share) * self.budget.rho
        if self.trainings or rho < 0 or (self.spends and self.left <= 0):
            raise SfumatoError(f"'{name}' would cost more than what is left of the budget")
        return rho

    def beside(self, later: float) -> Sequence[Cost]:
        """Give all that a training is composed with, what may follow it included."""
        return (
            *self.spends,
            Reserved(name="later releases", dim=_LATER_VALUES, amount=later),
        )

    def _affords(self, cost: Cost) -> bool:
        """Tell whether trainings and releases, the gate's among them, keep to the budget."""
        return not self.trainings or self.within([*self.costs, cost])

    def within(self, costs: Sequence[Cost]) -> bool:
        """Tell whether costs that hold a training keep to the whole budget."""
        reached = composed_epsilon(costs, self.whole.delta, self.whole.relation)
        return reached <= self.whole.epsilon * _SLACK

    def add(self, spend: Spend, ahead: bool = False) -> None:
        """Take a release into account."""
        self.spends.append(spend)
        self._spent_ahead += spend.rho if ahead else 0.0

    def leave(self, later: float) -> None:
        """Keep so much for what follows a training."""
        self._room = self._spent + later

    def check_limit(self, cost: Cost, held: int | None) -> None:
        """Refuse a whole run that would pass the limit, before its first question."""
        if held is None and isinstance(cost, Spend):
            cost = Reserved(name="the whole run", dim=0, amount=self._still_to_spend)
        self._ledger.check_limit(self._dataset, self.budget, cost, self._unit, held)

    def unanswered(self, question: str, cost: Cost) -> int | None:
        """Find a payment for this very question whose answer nobody has seen: a crash came before.

        The ledger lets an entry have one answer only, so that even two runs that find it at once
        give one.
        """
        for entry in self._ledger.paid(self._dataset, question):
            if entry.spend == cost and self._ledger.last_answer(entry.number) is None:
                return entry.number
        return None

    def pay(self, cost: Cost, question: str, run: str) -> int:
        """Give the number of a payment that is there already, or of a new one.

        What the whole run may spend is reserved before its first question.
        """
        number = self.unanswered(question, cost)
        if number is not None:
            return number
        if self._reservation is None and isinstance(cost, Spend):
            self._reservation = self._ledger.reserve(
                self._dataset, self.whole, self._still_to_spend, self._unit, run
            )
        return self._ledger.record(
            self._dataset, self.budget, cost, self._unit, question, self._reservation
        )

    def reserve_instead(self, rho: float, run: str, held: int | None) -> None:
        """Set aside what may follow a training, and free what releases alone could have cost.

        Also where nothing may: until it is closed, the run is known to have been interrupted.
        """
        self._reservation = self._ledger.reserve(
            self._dataset, self.whole, rho, self._unit, run, self.held(held)
        )

    def held(self, earlier: int | None) -> int | None:
        """Give the number of what is reserved for this run, also before it was interrupted."""
        return self._reservation or earlier

    def close(self, held: int | None) -> None:
        """Free what was reserved and not spent."""
        held = self.held(held)
        if held is not None:
            self._ledger.close(held)
            self._reservation = None
