"""The ledger: every spend on every data set, over all runs, in one append-only SQLite file.

Contract: when `record` returns, the spend is on disk. It is called before the first row is read,
so a crash can lose a release but never a spend. Checking a limit and writing the spend are one
immediate transaction, so processes that spend at once cannot pass the limit together.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, Relation, Spend, TrainingSpend, composed_epsilon

_TABLES = """
CREATE TABLE IF NOT EXISTS spends (
    id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL,
    relation TEXT NOT NULL, max_rows_per_unit INTEGER NOT NULL, unit TEXT NOT NULL,
    name TEXT NOT NULL, dim INTEGER NOT NULL,
    sensitivity REAL NOT NULL, sigma REAL NOT NULL, rho REAL NOT NULL,
    rate REAL, steps INTEGER, epsilon REAL, delta REAL
);
CREATE TABLE IF NOT EXISTS limits (
    dataset TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL,
    relation TEXT NOT NULL, max_rows_per_unit INTEGER NOT NULL, unit TEXT NOT NULL
);
CREATE TRIGGER IF NOT EXISTS spends_stay BEFORE DELETE ON spends
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS spends_hold BEFORE UPDATE ON spends
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""

# What a training has and a release has not; older files lack these columns.
_TRAINING_COLUMNS = {"rate": "REAL", "steps": "INTEGER", "epsilon": "REAL", "delta": "REAL"}

Currency = tuple[Relation, int, str]
"""Relation, rows per unit, and what the unit is: spends in other terms cannot be added up."""

ROW = "row"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One spend as the ledger holds it."""

    dataset: str
    time: str
    relation: Relation
    max_rows_per_unit: int
    unit: str
    spend: Spend | TrainingSpend

    @property
    def currency(self) -> Currency:
        """The terms in which this was spent."""
        return self.relation, self.max_rows_per_unit, self.unit


class Ledger:
    """All that was ever spent, by data set.

    >>> ledger = Ledger(":memory:")
    >>> ledger.limit("patients", Budget(epsilon=1, delta=1e-6))
    >>> spend = Spend(name="counts", dim=4, sensitivity=1, sigma=1, rho=0.5)
    >>> ledger.record("patients", Budget(epsilon=5, delta=1e-6), spend)
    Traceback (most recent call last):
    ...
    sfumato.errors.SfumatoError: 'patients' has a limit of epsilon 1 at delta 1e-06; with 'counts' \
it would reach 5.22: nothing was read
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        try:
            if self.path != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._database.execute("PRAGMA synchronous = EXTRA")
            self._database.executescript(_TABLES)
            self._add_training_columns()
        except (sqlite3.Error, OSError) as error:
            raise SfumatoError(f"cannot use the ledger {self.path}: {error}") from None

    @classmethod
    def default(cls) -> Ledger:
        """Open the user's own ledger: SFUMATO_LEDGER, or a file in the user's data folder."""
        data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
        return cls(os.environ.get("SFUMATO_LEDGER") or Path(data) / "sfumato" / "ledger.sqlite")

    def record(
        self, dataset: str, budget: Budget, spend: Spend | TrainingSpend, unit: str = ROW
    ) -> None:
        """Write a spend durably, or refuse it because it would pass the data set's limit.

        `unit` is the column that names the unit of privacy, or that a unit is a row.
        """
        costs = (spend.rho,) if isinstance(spend, Spend) else (spend.epsilon, spend.delta)
        if not all(cost >= 0 and math.isfinite(cost) for cost in costs):
            raise SfumatoError(f"'{spend.name}' has no finite cost")
        with self._transaction():
            self._check_limit(dataset, budget, spend, unit)
            self._database.execute(
                "INSERT INTO spends VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    dataset,
                    datetime.now(UTC).isoformat(timespec="seconds"),
                    str(budget.relation),
                    budget.max_rows_per_unit,
                    unit,
                    *_cells(spend),
                ),
            )

    def limit(self, dataset: str, budget: Budget, unit: str = ROW) -> None:
        """Set the most that may ever be spent on a data set, over all runs, in these terms."""
        with self._transaction():
            self._database.execute(
                "INSERT OR REPLACE INTO limits VALUES (?, ?, ?, ?, ?, ?)",
                (
                    dataset,
                    budget.epsilon,
                    budget.delta,
                    str(budget.relation),
                    budget.max_rows_per_unit,
                    unit,
                ),
            )

    def limits(self) -> dict[str, tuple[Budget, str]]:
        """Give the limit of each data set that has one, and its unit."""
        rows = self._database.execute("SELECT * FROM limits ORDER BY dataset")
        return {
            dataset: (
                Budget(
                    epsilon=epsilon,
                    delta=delta,
                    relation=Relation(relation),
                    max_rows_per_unit=max_rows_per_unit,
                ),
                unit,
            )
            for dataset, epsilon, delta, relation, max_rows_per_unit, unit in rows
        }

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """List the spends, oldest first."""
        rows = self._database.execute(
            "SELECT dataset, time, relation, max_rows_per_unit, unit, name, dim, sensitivity,"
            " sigma, rho, rate, steps, epsilon, delta FROM spends"
            " WHERE ?1 IS NULL OR dataset = ?1 ORDER BY id",
            (dataset,),
        )
        return [
            Entry(
                dataset=row[0],
                time=row[1],
                relation=Relation(row[2]),
                max_rows_per_unit=row[3],
                unit=row[4],
                spend=_spend(row[5:]),
            )
            for row in rows
        ]

    def total_rho(self, dataset: str, currency: Currency) -> float:
        """Sum what releases of a data set cost in one currency."""
        return math.fsum(spend.rho for spend in self._of(dataset, currency)[0])

    def total_epsilon(self, dataset: str, currency: Currency, delta: float) -> float:
        """Give what was spent on a data set in one currency, as epsilon at this delta."""
        return composed_epsilon(*self._of(dataset, currency), delta)

    def total_delta(self, dataset: str, currency: Currency) -> float:
        """Sum the deltas of the trainings on a data set."""
        return math.fsum(training.delta for training in self._of(dataset, currency)[1])

    def _of(self, dataset: str, currency: Currency) -> tuple[list[Spend], list[TrainingSpend]]:
        found = [e.spend for e in self.entries(dataset) if e.currency == currency]
        return (
            [spend for spend in found if isinstance(spend, Spend)],
            [spend for spend in found if isinstance(spend, TrainingSpend)],
        )

    def _check_limit(
        self, dataset: str, budget: Budget, spend: Spend | TrainingSpend, unit: str
    ) -> None:
        found = self.limits().get(dataset)
        if found is None:
            return
        limit, limit_unit = found
        currency = (limit.relation, limit.max_rows_per_unit, limit_unit)
        asked = (budget.relation, budget.max_rows_per_unit, unit)
        if any(
            other != currency for other in (asked, *(e.currency for e in self.entries(dataset)))
        ):
            raise SfumatoError(
                f"the limit of '{dataset}' is for {limit.relation} neighbours with "
                f"{limit.max_rows_per_unit} row(s) per unit ({limit_unit}): it holds only while "
                "everything is spent in the same terms"
            )
        releases, trainings = self._of(dataset, currency)
        if isinstance(spend, Spend):
            releases.append(spend)
        else:
            trainings.append(spend)
        reached = composed_epsilon(releases, trainings, limit.delta)
        # A run that spends exactly the limit comes out a few rounding errors above it.
        if reached > limit.epsilon * (1 + 1e-9):
            raise SfumatoError(
                f"'{dataset}' has a limit of epsilon {limit.epsilon:g} at delta {limit.delta:g}; "
                f"with '{spend.name}' it would reach {reached:.3g}: nothing was read"
            )

    def _add_training_columns(self) -> None:
        """Bring an older file up to date; a version that cannot read trainings can't write it."""
        with self._transaction():
            present = {row[1] for row in self._database.execute("PRAGMA table_info(spends)")}
            for name, kind in _TRAINING_COLUMNS.items():
                if name not in present:
                    self._database.execute(f"ALTER TABLE spends ADD COLUMN {name} {kind}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Hold the write lock from the first look to the commit."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise SfumatoError(f"cannot write the ledger {self.path}: {error}") from None
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException as error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise SfumatoError(f"cannot write the ledger {self.path}: {error}") from None
            raise


def _cells(spend: Spend | TrainingSpend) -> tuple[str | float | None, ...]:
    """Give a row of the table, from the name on; a training's noise is that of one step."""
    if isinstance(spend, Spend):
        parts = (spend.sensitivity, spend.sigma, spend.rho, None, None, None, None)
        return spend.name, spend.dim, *parts
    noise = spend.noise_multiplier * spend.clip
    costs = (0.0, spend.rate, spend.steps, spend.epsilon, spend.delta)
    return spend.name, spend.dim, spend.clip, noise, *costs


def _spend(cells: tuple[Any, ...]) -> Spend | TrainingSpend:
    """Read back what `_cells` gave."""
    name, dim, sensitivity, sigma, rho, rate, steps, epsilon, delta = cells
    if epsilon is None:
        return Spend(name=name, dim=dim, sensitivity=sensitivity, sigma=sigma, rho=rho)
    return TrainingSpend(
        name=name,
        dim=dim,
        clip=sensitivity,
        noise_multiplier=sigma / sensitivity,
        rate=rate,
        steps=steps,
        epsilon=epsilon,
        delta=delta,
    )
