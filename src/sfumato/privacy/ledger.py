"""The ledger: every spend on every data set, over all runs, in one append-only SQLite file.

Contract: a run reserves all that it may spend before its first question, or is refused as a whole;
what it does not spend is free again when it ends. When `record` returns, the spend is on disk. It
is called before anything is worked out from the rows that it pays for, so a crash can lose a
release but never a spend. Checking a limit and writing are one immediate transaction, so processes
that spend at once cannot pass the limit together.

With each spend the ledger keeps the digest of the question that it paid for, and of every answer
that was saved. So a file among the releases that nobody paid for, or that was changed, copied or
rolled back, is noticed. Limits are kept with their history. Who may write this file can change all
of that: see docs/privacy.md.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import (
    Budget,
    Cost,
    Relation,
    Reserved,
    composed_epsilon,
)
from sfumato.storage import write_whole

_TABLES = """
CREATE TABLE IF NOT EXISTS spends (
    id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL,
    relation TEXT NOT NULL, max_rows_per_unit INTEGER NOT NULL, unit TEXT NOT NULL,
    name TEXT NOT NULL, dim INTEGER NOT NULL,
    sensitivity REAL NOT NULL, sigma REAL NOT NULL, rho REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS answers (
    id INTEGER PRIMARY KEY, spend INTEGER NOT NULL, step INTEGER NOT NULL, digest TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS limit_changes (
    id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL,
    relation TEXT NOT NULL, max_rows_per_unit INTEGER NOT NULL, unit TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS reservations (
    id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, time TEXT NOT NULL,
    relation TEXT NOT NULL, max_rows_per_unit INTEGER NOT NULL, unit TEXT NOT NULL,
    run TEXT NOT NULL, name TEXT NOT NULL, rho REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS closings (id INTEGER PRIMARY KEY, reservation INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS identity (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
"""

# REPLACE deletes without a delete trigger: so a number that is taken cannot be inserted, either.
_TRIGGERS = """
CREATE TRIGGER IF NOT EXISTS {table}_stay BEFORE DELETE ON {table}
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS {table}_hold BEFORE UPDATE ON {table}
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS {table}_once BEFORE INSERT ON {table}
    WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""

# What came later than the first ledgers: trainings, and the question that was paid for.
_ADDED_COLUMNS = {
    "rate": "REAL", "steps": "INTEGER", "epsilon": "REAL", "delta": "REAL",
    "noise_multiplier": "REAL", "question": "TEXT", "reservation": "INTEGER",
    "scale": "INTEGER", "chance": "REAL", "grid_bits": "INTEGER",
}  # fmt: skip

Currency = tuple[Relation, int, str]
"""Relation, rows per unit, and what the unit is: spends in other terms cannot be added up."""

ROW = "row"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One spend as the ledger holds it, with its number there."""

    dataset: str
    time: str
    relation: Relation
    max_rows_per_unit: int
    unit: str
    spend: Cost
    number: int

    @property
    def currency(self) -> Currency:
        """The terms in which this was spent."""
        return self.relation, self.max_rows_per_unit, self.unit


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most that may be spent on a data set, as it was set at one time."""

    dataset: str
    time: str
    budget: Budget
    unit: str


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """What a run has set aside and not spent yet."""

    number: int
    dataset: str
    time: str
    currency: Currency
    run: str
    rest: Reserved


class Ledger:
    """All that was ever spent, by data set.

    >>> from sfumato.privacy.budget import Spend
    >>> ledger = Ledger(":memory:")
    >>> ledger.limit("patients", Budget(epsilon=1, delta=1e-6))
    >>> spend = Spend(name="counts", dim=4, sensitivity=1, sigma=1)
    >>> ledger.record("patients", Budget(epsilon=5, delta=1e-6), spend)
    Traceback (most recent call last):
    ...
    sfumato.errors.SfumatoError: 'patients' has a limit of epsilon 1 at delta 1e-06; with 'counts' \
it would reach 5.22: nothing was spent
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        try:
            if self.path != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
                self._notice_loss(Path(self.path).exists())
            self._database = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._database.execute("PRAGMA synchronous = EXTRA")
            self._database.executescript(_TABLES)
            self._bring_up_to_date()
            for table in (
                "spends", "answers", "limit_changes", "reservations", "closings", "identity",
            ):  # fmt: skip
                self._database.executescript(_TRIGGERS.format(table=table))
            if self.path != ":memory:":
                self._notice_exchange()
        except (sqlite3.Error, OSError) as error:
            raise SfumatoError(f"cannot use the ledger {self.path}: {error}") from None

    @classmethod
    def default(cls) -> Ledger:
        """Open the user's own ledger."""
        return cls(cls.default_path())

    @staticmethod
    def default_path() -> Path:
        """Name the user's own ledger: SFUMATO_LEDGER, or a file in the user's data folder."""
        data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
        named = os.environ.get("SFUMATO_LEDGER")
        return Path(named) if named else Path(data) / "sfumato" / "ledger.sqlite"

    def record(
        self,
        dataset: str,
        budget: Budget,
        spend: Cost,
        unit: str = ROW,
        question: str = "",
        reservation: int | None = None,
    ) -> int:
        """Write a spend durably, or refuse it because it would pass the data set's limit.

        `unit` is the column that names the unit of privacy, or that a unit is a row; `question`
        the digest of what is asked; `reservation` the number of what was set aside for it. The
        number of the entry is returned.
        """
        with self._transaction():
            self.check_limit(dataset, budget, spend, unit, reservation)
            return self._write(
                "spends",
                dataset,
                budget,
                spend,
                unit,
                {"question": question, "reservation": reservation},
            )

    def reserve(
        self,
        dataset: str,
        budget: Budget,
        rho: float,
        unit: str = ROW,
        run: str = "",
        instead_of: int | None = None,
    ) -> int:
        """Set aside what a run may spend, or refuse it as a whole; give the reservation's number.

        A run that was interrupted takes up its own: `run` is the digest of what makes it the same.
        `instead_of` is what it has set aside before, which is freed at the same time: nobody else
        can take it in between.
        """
        with self._transaction():
            if instead_of is not None:
                self._insert("closings", {"reservation": instead_of})
            found = self.open_reservation(dataset, run)
            if found is not None:
                return found
            wanted = Reserved(name="the whole run", dim=0, amount=rho)
            self.check_limit(dataset, budget, wanted, unit)
            return self._write("reservations", dataset, budget, wanted, unit, {"run": run})

    def open_reservation(self, dataset: str, run: str) -> int | None:
        """Find what the same run set aside before it was interrupted."""
        found = [each.number for each in self.reservations(dataset) if run and each.run == run]
        return found[0] if found else None

    def close(self, reservation: int) -> None:
        """Free what a run has set aside and not spent."""
        with self._transaction():
            self._insert("closings", {"reservation": reservation})

    def reservations(self, dataset: str | None = None) -> list[Reservation]:
        """List what is set aside and neither spent nor free again."""
        rows = self._database.execute(
            "SELECT r.id, dataset, time, relation, max_rows_per_unit, unit, run, r.rho -"
            " (SELECT COALESCE(SUM(s.rho), 0) FROM spends s WHERE s.reservation = r.id)"
            " FROM reservations r WHERE (?1 IS NULL OR dataset = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM closings c WHERE c.reservation = r.id) ORDER BY r.id",
            (dataset,),
        )
        return [
            Reservation(
                number=number,
                dataset=name,
                time=time,
                currency=(Relation(relation), most, unit),
                run=run,
                rest=Reserved(name="reserved", dim=0, amount=max(0.0, rest)),
            )
            for number, name, time, relation, most, unit, run, rest in rows.fetchall()
        ]

    def _write(
        self,
        table: str,
        dataset: str,
        budget: Budget,
        cost: Cost,
        unit: str,
        more: dict[str, Any],
    ) -> int:
        """Insert a cost with the terms in which it is spent, and give its number."""
        row = {
            "dataset": dataset,
            "time": _now(),
            "relation": str(budget.relation),
            "max_rows_per_unit": budget.max_rows_per_unit,
            "unit": unit,
            **more,
            **cost.to_row(),
        }
        self._insert(table, row)
        (number,) = self._database.execute("SELECT last_insert_rowid()").fetchone()
        return int(number)

    def paid(self, dataset: str, question: str) -> list[Entry]:
        """List the entries that paid for a question about a data set, oldest first."""
        return [entry for entry, asked in self._entries(dataset) if question and asked == question]

    def answered(
        self, number: int, digest: str, *, step: int = 0, after: str | None = None
    ) -> None:
        """Note the digest of an answer to what entry `number` paid for, before it can be seen.

        Answers follow one another: each names the one before it, so that an entry pays for one
        release only, and two runs cannot go on from the same state of a training.
        """
        with self._transaction():
            if self.last_answer(number) != after:
                raise SfumatoError(
                    "another run has used this payment meanwhile: its answer is the one that counts"
                )
            self._insert("answers", {"spend": number, "step": step, "digest": digest})

    def last_answer(self, number: int) -> str | None:
        """Give the digest of the newest answer to what entry `number` paid for."""
        found = self._database.execute(
            "SELECT digest FROM answers WHERE spend = ? ORDER BY id DESC LIMIT 1", (number,)
        ).fetchone()
        return str(found[0]) if found else None

    def limit(self, dataset: str, budget: Budget, unit: str = ROW) -> None:
        """Set the most that may ever be spent on a data set, over all runs, in these terms."""
        with self._transaction():
            self._insert(
                "limit_changes",
                {
                    "dataset": dataset,
                    "time": _now(),
                    "epsilon": budget.epsilon,
                    "delta": budget.delta,
                    "relation": str(budget.relation),
                    "max_rows_per_unit": budget.max_rows_per_unit,
                    "unit": unit,
                },
            )

    def limits(self) -> dict[str, tuple[Budget, str]]:
        """Give the limit that holds for each data set that has one, and its unit."""
        return {change.dataset: (change.budget, change.unit) for change in self.limit_changes()}

    def limit_changes(self) -> list[Limit]:
        """List all limits that were ever set, oldest first."""
        rows = self._database.execute(
            "SELECT dataset, time, epsilon, delta, relation, max_rows_per_unit, unit"
            " FROM limit_changes ORDER BY id"
        )
        return [
            Limit(
                dataset=dataset,
                time=time,
                budget=Budget(
                    epsilon=epsilon,
                    delta=delta,
                    relation=Relation(relation),
                    max_rows_per_unit=max_rows_per_unit,
                ),
                unit=unit,
            )
            for dataset, time, epsilon, delta, relation, max_rows_per_unit, unit in rows
        ]

    def datasets(self) -> list[str]:
        """List the data sets that anything is known of."""
        limits = (change.dataset for change in self.limit_changes())
        reserved = (each.dataset for each in self.reservations())
        return sorted({*limits, *reserved, *(entry.dataset for entry in self.entries())})

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """List the spends, oldest first."""
        return [entry for entry, _ in self._entries(dataset)]

    def _entries(self, dataset: str | None) -> Iterator[tuple[Entry, str]]:
        """Give each spend with the digest of the question that it paid for."""
        found = self._database.execute(
            "SELECT * FROM spends WHERE ?1 IS NULL OR dataset = ?1 ORDER BY id", (dataset,)
        )
        names = [column[0] for column in found.description]
        for values in found:
            row = dict(zip(names, values, strict=True))
            entry = Entry(
                dataset=row["dataset"],
                time=row["time"],
                relation=Relation(row["relation"]),
                max_rows_per_unit=row["max_rows_per_unit"],
                unit=row["unit"],
                spend=Cost.from_row(row),
                number=row["id"],
            )
            yield entry, row["question"] or ""

    def total_rho(self, dataset: str, currency: Currency) -> float:
        """Sum what releases of a data set cost in one currency."""
        return fsum(cost.rho for cost in self._costs(dataset, currency))

    def total_epsilon(self, dataset: str, currency: Currency, delta: float) -> float:
        """Give what was spent on a data set in one currency, as epsilon at this delta."""
        return composed_epsilon(self._costs(dataset, currency), delta, currency[0])

    def _costs(self, dataset: str, currency: Currency) -> list[Cost]:
        return [entry.spend for entry in self.entries(dataset) if entry.currency == currency]

    def check_limit(
        self,
        dataset: str,
        budget: Budget,
        spend: Cost,
        unit: str = ROW,
        reservation: int | None = None,
    ) -> None:
        """Refuse a spend that would pass the data set's limit.

        What others have reserved counts as spent; what was reserved for this very spend does not.
        For releases alone, a limit is a filter: it holds whatever is asked in view of earlier
        answers. With trainings it holds for what was decided on ahead.
        """
        found = self.limits().get(dataset)
        if found is None:
            return
        limit, limit_unit = found
        currency = (limit.relation, limit.max_rows_per_unit, limit_unit)
        asked = (budget.relation, budget.max_rows_per_unit, unit)
        reserved = self.reservations(dataset)
        terms = [
            asked,
            *(e.currency for e in self.entries(dataset)),
            *(r.currency for r in reserved),
        ]
        if any(each != currency for each in terms):
            raise SfumatoError(
                f"the limit of '{dataset}' is for {limit.relation} neighbours with "
                f"{limit.max_rows_per_unit} row(s) per unit ({limit_unit}): it holds only while "
                "everything is spent in the same terms"
            )
        rests = []
        for each in reserved:
            used = spend.rho if each.number == reservation else 0.0
            rests.append(replace(each.rest, amount=max(0.0, each.rest.amount - used)))
        costs = [*self._costs(dataset, currency), *rests, spend]
        reached = composed_epsilon(costs, limit.delta, limit.relation)
        # A run that spends exactly the limit comes out a few rounding errors above it.
        if reached > limit.epsilon * (1 + 1e-9):
            raise SfumatoError(
                f"'{dataset}' has a limit of epsilon {limit.epsilon:g} at delta {limit.delta:g}; "
                f"with '{spend.name}' it would reach {reached:.3g}: nothing was spent"
                + (" ('sfumato ledger show' tells what is reserved)" if rests else "")
            )

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        places = ", ".join("?" for _ in row)
        self._database.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values())
        )

    def _bring_up_to_date(self) -> None:
        """Give an older file what it lacks; nothing in it is forgotten."""
        with self._transaction():
            present = {row[1] for row in self._database.execute("PRAGMA table_info(spends)")}
            for name, kind in _ADDED_COLUMNS.items():
                if name not in present:
                    self._database.execute(f"ALTER TABLE spends ADD COLUMN {name} {kind}")
            if self._database.execute("PRAGMA table_info(limits)").fetchall():
                self._database.execute(
                    "INSERT INTO limit_changes (dataset, time, epsilon, delta, relation,"
                    " max_rows_per_unit, unit) SELECT dataset, 'before limits had a history',"
                    " epsilon, delta, relation, max_rows_per_unit, unit FROM limits"
                )
                self._database.execute("DROP TABLE limits")

    @property
    def _mark(self) -> Path:
        """A small file beside the ledger that tells that there was one, and which."""
        return Path(self.path + ".id")

    def _notice_loss(self, exists: bool) -> None:
        if not exists and self._mark.exists():
            raise SfumatoError(
                f"the ledger {self.path} is gone: bring it back from a backup, for it knows what "
                f"was spent. To begin anew all the same, delete {self._mark}"
            )

    def _notice_exchange(self) -> None:
        with self._transaction():
            found = self._database.execute("SELECT name FROM identity").fetchone()
            name = found[0] if found else secrets.token_hex(8)
            if not found:
                self._insert("identity", {"name": name})
        if not self._mark.exists():
            write_whole(self._mark, name.encode())
        elif self._mark.read_text() != name:
            raise SfumatoError(
                f"{self.path} is not the ledger that was there before: bring that one back, or "
                f"delete {self._mark} to go on with this one"
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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
