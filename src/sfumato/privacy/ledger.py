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

What is recorded is never changed. Beside it lie two things that follow from it, so that a run costs
no more after many others: the total of each data set's spends (`totals.py`), exact and as far as it
was added up, and the numbers of open reservations, which triggers keep. `check` compares both with
the record.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.errors import SfumatoError, shortened
from sfumato.privacy.budget import (
    Budget,
    Cost,
    Relation,
    Reserved,
    composed_epsilon,
)
from sfumato.privacy.totals import VERSION, Total
from sfumato.storage import locked, writable, write_whole

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
CREATE TABLE IF NOT EXISTS totals (
    dataset TEXT PRIMARY KEY, version INTEGER NOT NULL, through INTEGER NOT NULL,
    content TEXT NOT NULL
);
"""

_INDEXES = """
CREATE INDEX IF NOT EXISTS spends_of ON spends (dataset);
CREATE INDEX IF NOT EXISTS questions ON spends (dataset, question);
CREATE INDEX IF NOT EXISTS drawn_on ON spends (reservation) WHERE reservation IS NOT NULL;
CREATE INDEX IF NOT EXISTS answers_to ON answers (spend);
CREATE INDEX IF NOT EXISTS closings_of ON closings (reservation);
"""

_CLOSED = "EXISTS (SELECT 1 FROM closings c WHERE c.reservation = r.id)"

# Triggers, so that no other version that writes to the same file leaves it behind.
_OPEN = f"""
CREATE TABLE open_reservations (id INTEGER PRIMARY KEY);

INSERT INTO open_reservations SELECT id FROM reservations r WHERE NOT {_CLOSED};

CREATE TRIGGER reservations_open AFTER INSERT ON reservations
    BEGIN INSERT INTO open_reservations VALUES (NEW.id); END;

CREATE TRIGGER closings_close AFTER INSERT ON closings
    BEGIN DELETE FROM open_reservations WHERE id = NEW.reservation; END;
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

# SQLite keeps in a column whatever was written there: what is read must be what was declared.
_DECLARED = {**dict(re.findall(r"(\w+) (TEXT|INTEGER|REAL)", _TABLES)), **_ADDED_COLUMNS}
_READ_AS = {"TEXT": str, "INTEGER": int, "REAL": int | float}

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
    reservation: int | None

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
        self._asked: set[str] = set()
        with self._told():
            if self.path != ":memory:":
                writable(self.path).parent.mkdir(parents=True, exist_ok=True)
                self._notice_loss(Path(self.path).exists())
            self._database = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._database.execute("PRAGMA synchronous = EXTRA")
            self._database.executescript(_TABLES)
            self._bring_up_to_date()
            self._database.executescript(_INDEXES)
            self._follow_reservations()
            for table in (
                "spends", "answers", "limit_changes", "reservations", "closings", "identity",
            ):  # fmt: skip
                self._database.executescript(_TRIGGERS.format(table=table))
            if self.path != ":memory:":
                self._notice_exchange()

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
            terms = {"question": question, "reservation": reservation}
            number = self._write("spends", dataset, budget, spend, unit, terms)
            self._keep_totals(dataset, number)
            return number

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
            if rho:
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
        rows = self._rows(
            "SELECT r.id, dataset, time, relation, max_rows_per_unit, unit, run, r.rho,"
            " (SELECT COALESCE(SUM(s.rho), 0) FROM spends s WHERE s.reservation = r.id)"
            " FROM open_reservations o CROSS JOIN reservations r ON r.id = o.id"
            " WHERE ?1 IS NULL OR dataset = ?1 ORDER BY r.id",
            dataset,
        )
        with self._sound():
            return [
                Reservation(
                    number=number,
                    dataset=name,
                    time=time,
                    currency=(Relation(relation), most, unit),
                    run=run,
                    rest=Reserved(name="reserved", dim=0, amount=max(0.0, whole - used)),
                )
                for number, name, time, relation, most, unit, run, whole, used in rows
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
        ((number,),) = self._rows("SELECT last_insert_rowid()")
        return int(number)

    def paid(self, dataset: str, question: str) -> list[Entry]:
        """List the entries that paid for a question about a data set, oldest first."""
        if not question:
            return []
        return list(self._entries("dataset = ? AND question = ? ORDER BY id", dataset, question))

    def rounds(self, dataset: str, question: str) -> int:
        """Count how often a question was asked anew: as itself, and as `question.1`, … ."""
        ((found,),) = self._rows(
            "SELECT COUNT(DISTINCT question) FROM spends"
            " WHERE dataset = ?1 AND question >= ?2 AND question < ?2 || '/'"
            " AND (question = ?2 OR question > ?2 || '.')",
            dataset,
            question,
        )
        return int(found)

    @contextmanager
    def holding(self, question: str, waiting: Callable[[], None]) -> Iterator[None]:
        """Let no other process ask this question until the block ends or this process does.

        So whoever finds a payment without an answer here knows that its run has died. A ledger in
        memory is known to one process only.
        """
        if question in self._asked:
            raise SfumatoError("another run in this process is asking the same")
        self._asked.add(question)
        file = Path(f"{self.path}.{question[:16]}")
        try:
            with nullcontext() if self.path == ":memory:" else locked(file, waiting):
                yield
        finally:
            self._asked.remove(question)

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
        found = self._rows(
            "SELECT digest FROM answers WHERE spend = ? ORDER BY id DESC LIMIT 1", number
        )
        return str(found[0][0]) if found else None

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
        rows = self._rows(
            "SELECT dataset, time, epsilon, delta, relation, max_rows_per_unit, unit"
            " FROM limit_changes ORDER BY id"
        )
        with self._sound():
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
        if dataset is None:
            return list(self._entries("TRUE ORDER BY id"))
        return list(self._entries("dataset = ? ORDER BY id", dataset))

    def _entries(self, which: str, *values: str | int) -> Iterator[Entry]:
        names = [name for _, name, *_ in self._rows("PRAGMA table_info(spends)")]
        for cells in self._rows(f"SELECT * FROM spends WHERE {which}", *values):
            row = dict(zip(names, cells, strict=True))
            with self._sound():
                entry = Entry(
                    dataset=row["dataset"],
                    time=row["time"],
                    relation=Relation(row["relation"]),
                    max_rows_per_unit=row["max_rows_per_unit"],
                    unit=row["unit"],
                    spend=Cost.from_row(row),
                    number=row["id"],
                    reservation=row["reservation"],
                )
            yield entry

    def total_rho(self, dataset: str, currency: Currency) -> float:
        """Sum what releases of a data set cost in one currency."""
        return self._totals(dataset).get(currency, Total()).rho

    def total_epsilon(self, dataset: str, currency: Currency, delta: float) -> float:
        """Give what was spent on a data set in one currency, as epsilon at this delta."""
        total = self._totals(dataset).get(currency, Total())
        return composed_epsilon([total], delta, currency[0])

    def _totals(self, dataset: str) -> dict[Currency, Total]:
        """Give what was spent, by its terms: what is kept, and what came after it."""
        found = self._rows(
            "SELECT through, content FROM totals WHERE dataset = ? AND version = ?",
            dataset,
            VERSION,
        )
        through, content = found[0] if found else (0, "[]")
        with self._sound():
            totals = {
                (Relation(relation), most, unit): Total.of_text(total)
                for relation, most, unit, total in json.loads(content)
            }
        for entry in self._entries("dataset = ? AND id > ?", dataset, through):
            totals[entry.currency] = totals.get(entry.currency, Total()).plus(entry.spend)
        return totals

    def _keep_totals(self, dataset: str, through: int) -> None:
        """Keep the totals of all entries up to one, so that nobody need add them up again."""
        content = [[*currency, total.text()] for currency, total in self._totals(dataset).items()]
        self._database.execute(
            "INSERT OR REPLACE INTO totals VALUES (?, ?, ?, ?)",
            (dataset, VERSION, through, json.dumps(content)),
        )

    def check(self) -> None:
        """Add everything up anew, and refuse a ledger whose totals are others."""
        with self._transaction():
            added: dict[tuple[str, Currency], Total] = {}
            for entry in self._entries("TRUE"):
                key = entry.dataset, entry.currency
                added[key] = added.get(key, Total()).plus(entry.spend)
            datasets = {dataset for dataset, _ in added} | {
                dataset for (dataset,) in self._rows("SELECT dataset FROM totals")
            }
            kept = {
                (dataset, currency): total
                for dataset in datasets
                for currency, total in self._totals(dataset).items()
            }
            opened = self._rows("SELECT id FROM open_reservations ORDER BY id")
            unclosed = self._rows(f"SELECT id FROM reservations r WHERE NOT {_CLOSED} ORDER BY id")
            if kept != added or opened != unclosed:
                raise SfumatoError(
                    f"the totals of the ledger {self.path} are not those of its entries: it was "
                    "changed or damaged. Bring it back from a backup"
                )

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
        reserved, totals = self.reservations(dataset), self._totals(dataset)
        terms = [asked, *totals, *(each.currency for each in reserved)]
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
        costs = [totals.get(currency, Total()), *rests, spend]
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

    def _follow_reservations(self) -> None:
        """Have the file itself keep the numbers of open reservations, from now on."""
        if self._database.execute("PRAGMA table_info(open_reservations)").fetchall():
            return
        with self._transaction():
            if not self._database.execute("PRAGMA table_info(open_reservations)").fetchall():
                for statement in _OPEN.split(";\n\n"):
                    self._database.execute(statement)

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
            found = self._rows("SELECT name FROM identity")
            name = found[0][0] if found else secrets.token_hex(8)
            if not found:
                self._insert("identity", {"name": name})
        if not self._mark.exists():
            write_whole(self._mark, name.encode())
        elif self._mark.read_bytes() != name.encode():
            raise SfumatoError(
                f"{self.path} is not the ledger that was there before: bring that one back, or "
                f"delete {self._mark} to go on with this one"
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Hold the write lock from the first look to the commit."""
        with self._told("write"):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *values: str | int | None) -> list[tuple[Any, ...]]:
        """Give what a query finds, each cell of the kind that its column was declared to have."""
        with self._told():
            found = self._database.execute(query, values)
            kinds = [_READ_AS.get(_DECLARED.get(column[0], "")) for column in found.description]
            rows = found.fetchall()
        for row in rows:
            for kind, cell in zip(kinds, row, strict=True):
                if kind and cell is not None and not isinstance(cell, kind):
                    raise self._damaged()
        return rows

    @contextmanager
    def _told(self, what: str = "use") -> Iterator[None]:
        """Say in one line what SQLite or the system have against the file, or SQLite a text."""
        try:
            yield
        except UnicodeEncodeError:
            raise SfumatoError("the ledger keeps names in UTF-8 only: name it otherwise") from None
        except OverflowError:
            raise SfumatoError("the ledger keeps whole numbers below 2^63 only") from None
        except (sqlite3.Error, OSError) as error:
            why = shortened(str(error))
            raise SfumatoError(f"cannot {what} the ledger {self.path}: {why}") from None

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Say that the file is damaged where its content makes no sense."""
        try:
            yield
        except (SfumatoError, LookupError, TypeError, ValueError, ArithmeticError):
            raise self._damaged() from None

    def _damaged(self) -> SfumatoError:
        return SfumatoError(
            f"the ledger {self.path} was changed or damaged: bring it back from a backup"
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
