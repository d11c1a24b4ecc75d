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

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, Relation, Spend
from sfumato.privacy.zcdp import epsilon_of

_TABLES = """
CREATE TABLE IF NOT EXISTS spends (
    id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL,
    relation TEXT NOT NULL, max_rows_per_unit INTEGER NOT NULL, unit TEXT NOT NULL,
    name TEXT NOT NULL, dim INTEGER NOT NULL,
    sensitivity REAL NOT NULL, sigma REAL NOT NULL, rho REAL NOT NULL
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
    spend: Spend

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
        except (sqlite3.Error, OSError) as error:
            raise SfumatoError(f"cannot use the ledger {self.path}: {error}") from None

    @classmethod
    def default(cls) -> Ledger:
        """Open the user's own ledger: SFUMATO_LEDGER, or a file in the user's data folder."""
        data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
        return cls(os.environ.get("SFUMATO_LEDGER") or Path(data) / "sfumato" / "ledger.sqlite")

    def record(self, dataset: str, budget: Budget, spend: Spend, unit: str = ROW) -> None:
        """Write a spend durably, or refuse it because it would pass the data set's limit.

        `unit` is the column that names the unit of privacy, or that a unit is a row.
        """
        if not (spend.rho >= 0 and math.isfinite(spend.rho)):
            raise SfumatoError(f"'{spend.name}' has no finite cost")
        with self._transaction():
            self._check_limit(dataset, budget, spend, unit)
            self._database.execute(
                "INSERT INTO spends VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    dataset,
                    datetime.now(UTC).isoformat(timespec="seconds"),
                    str(budget.relation),
                    budget.max_rows_per_unit,
                    unit,
                    spend.name,
                    spend.dim,
                    spend.sensitivity,
                    spend.sigma,
                    spend.rho,
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
            " sigma, rho FROM spends WHERE ?1 IS NULL OR dataset = ?1 ORDER BY id",
            (dataset,),
        )
        return [
            Entry(
                dataset=row[0],
                time=row[1],
                relation=Relation(row[2]),
                max_rows_per_unit=row[3],
                unit=row[4],
                spend=Spend(name=row[5], dim=row[6], sensitivity=row[7], sigma=row[8], rho=row[9]),
            )
            for row in rows
        ]

    def total_rho(self, dataset: str, currency: Currency) -> float:
        """Sum what was spent on a data set in one currency."""
        return math.fsum(
            entry.spend.rho for entry in self.entries(dataset) if entry.currency == currency
        )

    def _check_limit(self, dataset: str, budget: Budget, spend: Spend, unit: str) -> None:
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
        total = self.total_rho(dataset, currency) + spend.rho
        reached = epsilon_of(total, limit.delta)
        # A run that spends exactly the limit comes out a few rounding errors above it.
        if reached > limit.epsilon * (1 + 1e-9):
            raise SfumatoError(
                f"'{dataset}' has a limit of epsilon {limit.epsilon:g} at delta {limit.delta:g}; "
                f"with '{spend.name}' it would reach {reached:.3g}: nothing was read"
            )

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
