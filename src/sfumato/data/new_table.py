"""A synthetic table in a database: written in one transaction, so that it is whole or absent."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

from sfumato.data.address import Address, quoted
from sfumato.data.databases import duckdb_driver, postgresql_driver
from sfumato.data.sources import source_name
from sfumato.errors import SfumatoError
from sfumato.storage import writable


class NewTable(ABC):
    """A table that is to be made; one that is there is only replaced where that is asked for."""

    def __init__(self, address: Address, replace: bool = False) -> None:
        if address.table is None:
            raise SfumatoError(f"{address.told}: name the table to write, by ?table=…")
        self._address = address
        self._replace = replace

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._address.name

    @property
    def told(self) -> str:
        """Its address, without passwords."""
        return self._address.told

    def check(self, data: object = None) -> None:
        """Make an empty table and take it back: what stands in the way is noticed now.

        Nor may the table be that of the private data.
        """
        if source_name(data) == self.told:
            raise SfumatoError(f"{self.told} is the input: name another table")
        with self._transaction() as base:
            self._execute(base, f"CREATE TABLE {self._address.source} (x INTEGER)")
            base.rollback()

    def write(self, parts: Iterable[pa.Table]) -> None:
        """Make the table of all its parts."""
        with self._transaction() as base:
            for number, part in enumerate(parts):
                self._add(base, part, first=number == 0)
            base.commit()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        try:
            with closing(self._connect()) as base:
                if self._replace:
                    self._execute(base, f"DROP TABLE IF EXISTS {self._address.source}")
                yield base
        except self._failures() as error:
            why = self._address.without_secrets(error)
            if "already exists" in why:
                why = "there is such a table already; --force replaces it"
            raise SfumatoError(f"cannot write {self.told}: {why}") from None

    def _execute(self, base: Any, statement: str) -> None:
        base.execute(statement)

    @abstractmethod
    def _failures(self) -> tuple[type[Exception], ...]:
        """Give the errors of the driver, and those of the system."""

    @abstractmethod
    def _connect(self) -> Any:
        """Open a connection, in a transaction."""

    @abstractmethod
    def _add(self, base: Any, part: pa.Table, first: bool) -> None:
        """Add rows to the table, which the first part makes."""


class NewDuckDBTable(NewTable):
    """A table in a DuckDB file, which is made where there is none."""

    def _failures(self) -> tuple[type[Exception], ...]:
        return (duckdb_driver().Error, OSError)

    def _connect(self) -> Any:
        base = duckdb_driver().connect(str(self._address.file.resolve()))
        base.begin()
        return base

    def _add(self, base: Any, part: pa.Table, first: bool) -> None:
        base.register("synthetic_part", part)
        begin = "CREATE TABLE {} AS" if first else "INSERT INTO {}"
        base.execute(f"{begin.format(self._address.source)} SELECT * FROM synthetic_part")
        base.unregister("synthetic_part")


class NewSQLiteTable(NewTable):
    """A table in an SQLite file, which is made where there is none; moments are ISO texts."""

    def _failures(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error, OSError)

    def _connect(self) -> sqlite3.Connection:
        base = sqlite3.connect(self._address.file, isolation_level=None)
        base.execute("BEGIN IMMEDIATE")
        return base

    def _add(self, base: sqlite3.Connection, part: pa.Table, first: bool) -> None:
        names = ", ".join(f"{quoted(field.name)} {_affinity(field.type)}" for field in part.schema)
        if first:
            base.execute(f"CREATE TABLE {self._address.source} ({names})")
        columns = [
            column.cast(pa.string()) if pa.types.is_temporal(column.type) else column
            for column in part.columns
        ]
        marks = ", ".join("?" * len(columns))
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        base.executemany(f"INSERT INTO {self._address.source} VALUES ({marks})", rows)


class NewPostgresTable(NewTable):
    """A table in a PostgreSQL database."""

    def _failures(self) -> tuple[type[Exception], ...]:
        return (postgresql_driver().Error, pa.ArrowException, OSError)

    def _connect(self) -> Any:
        return postgresql_driver().connect(self._address.server)

    def _execute(self, base: Any, statement: str) -> None:
        with base.cursor() as cursor:
            cursor.execute(statement)

    def _add(self, base: Any, part: pa.Table, first: bool) -> None:
        assert self._address.table is not None
        *schema, name = self._address.table.split(".")
        with base.cursor() as cursor:
            cursor.adbc_ingest(
                name, part, "create" if first else "append", db_schema_name=".".join(schema) or None
            )


def new_table(text: str, replace: bool = False) -> NewTable:
    """Name a table to write by its address."""
    address = Address.of(text)
    kinds: dict[str, type[NewTable]] = {"duckdb": NewDuckDBTable, "sqlite": NewSQLiteTable}
    if address.kind in kinds:
        writable(address.file)
    return kinds.get(address.kind, NewPostgresTable)(address, replace)


def _affinity(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "BOOLEAN"
    if pa.types.is_integer(kind):
        return "INTEGER"
    if pa.types.is_floating(kind):
        return "REAL"
    return "DATETIME" if pa.types.is_temporal(kind) else "TEXT"
