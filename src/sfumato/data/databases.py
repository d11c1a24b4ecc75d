"""Tables of databases: DuckDB, SQLite and PostgreSQL, read only, all passes in one snapshot.

Drivers are imported where they are needed. What a driver says before a row is read is passed on,
without passwords; what it says afterwards could quote a private value, and is not.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import pyarrow as pa

from sfumato.data.address import Address, quoted
from sfumato.data.frames import BATCH_ROWS
from sfumato.errors import SfumatoError

_EXTRA = "pip install 'sfumato[databases]'"


class DatabaseRows(ABC):
    """A table or a query of a database.

    Rows come in the order in which it gives them. That can depend on all rows, and on its threads:
    one pass may see another order than the next. Where a pass says by their places which rows are
    used, they are asked for in the order of a digest (`by_digest`), which each has for itself.
    """

    slow = True
    by_digest = False

    def __init__(self, address: Address) -> None:
        self._address = address
        with self._told_errors():
            self._connection = self._connect()
            try:
                self._kinds = self._described()
            except BaseException:
                self.close()
                raise
        self.names = self._kinds.names

    def first_kinds(self) -> pa.Schema:
        """Give the types of the columns."""
        return self._kinds

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the named columns, and no others."""
        columns = ", ".join(f"{self._column(name)} AS {quoted(name)}" for name in names)
        query = f"SELECT {columns or 'NULL'} FROM {self._address.source}"
        if self.by_digest:
            query += f" ORDER BY {self._order(names)}"
        try:
            for batch in self._selected(query, names):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(start, BATCH_ROWS)
        except self._failures():
            raise SfumatoError(
                f"{self._address.told} cannot be read to its end: the connection was lost, or the "
                "database refused to go on"
            ) from None

    def close(self) -> None:
        """End the transaction and the connection."""
        self._connection.close()

    def parts(self) -> list[DatabaseRows]:
        """Give itself: one connection has the snapshot."""
        return [self]

    @contextmanager
    def _told_errors(self) -> Iterator[None]:
        try:
            yield
        except self._failures() as error:
            why = self._address.without_secrets(error)
            raise SfumatoError(f"cannot open {self._address.told}: {why}") from None

    def _column(self, name: str) -> str:
        return quoted(name)

    def _order(self, names: Sequence[str]) -> str:
        return digest_order(names)

    @abstractmethod
    def _failures(self) -> tuple[type[Exception], ...]:
        """Give the errors of the driver, and those of Arrow and the system."""

    @abstractmethod
    def _connect(self) -> Any:
        """Open a connection that can write nothing, and begin its one transaction."""

    @abstractmethod
    def _described(self) -> pa.Schema:
        """Give the columns and their types, without reading rows."""

    @abstractmethod
    def _selected(self, query: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Run a query."""


_ALONE = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}


class DuckDBRows(DatabaseRows):
    """A table in a DuckDB file.

    DuckDB would run several statements, and read and write whatever file they name: a query is one
    SELECT, and sees this file alone unless the owner says otherwise.
    """

    def _failures(self) -> tuple[type[Exception], ...]:
        return (duckdb_driver().Error, pa.ArrowException, OSError)

    def _connect(self) -> Any:
        _existing_file(self._address)
        # It would fill most of the memory with what it has read, and find frames of this program.
        bounded = {"memory_limit": "1GB", "python_enable_replacements": "false"}
        connection = duckdb_driver().connect(
            str(self._address.file.resolve()), read_only=True,
            config=bounded if self._address.external else bounded | _ALONE,
        )  # fmt: skip
        connection.begin()
        return connection

    def _described(self) -> pa.Schema:
        driver = duckdb_driver()
        if self._address.query is not None:
            # What is whole by itself cannot end the parentheses that are put around it.
            asked = self._connection.extract_statements(self._address.query)
            if [each.type for each in asked] != [driver.StatementType.SELECT]:
                raise SfumatoError(f"{self._address.told}: a query must be one SELECT")
        try:
            relation = self._connection.sql(f"SELECT * FROM {self._address.source} LIMIT 0")
        except driver.PermissionException as error:
            raise SfumatoError(
                f"cannot open {self._address.told}: {self._address.without_secrets(error)}; if it "
                f"is to read other files, say so: duckdb://{self._address.server}?external=yes&…"
            ) from None
        return relation.to_arrow_table().schema

    def _selected(self, query: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._connection.sql(query).to_arrow_reader(BATCH_ROWS) as reader:
            yield from reader


class SQLiteRows(DatabaseRows):
    """A table in an SQLite file.

    Its values have types of their own, whatever their column's: each becomes text for itself.
    """

    _AFFINITIES = (
        ("BOOL", pa.bool_()), ("INT", pa.int64()), ("DATE", pa.timestamp("s")),
        ("REAL", pa.float64()), ("FLOA", pa.float64()), ("DOUB", pa.float64()),
        ("NUM", pa.float64()), ("DEC", pa.float64()),
    )  # fmt: skip

    def _failures(self) -> tuple[type[Exception], ...]:
        return (sqlite3.Error, OSError)

    def _connect(self) -> sqlite3.Connection:
        _existing_file(self._address)
        connection = sqlite3.connect(
            f"{self._address.file.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None
        )
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.create_function("digest", -1, _digest, deterministic=True)
        connection.execute("BEGIN")
        return connection

    def _described(self) -> pa.Schema:
        cursor = self._connection.execute(f"SELECT * FROM {self._address.source} LIMIT 0")
        names = [column[0] for column in cursor.description]
        declared = {}
        if self._address.table is not None:
            found = self._connection.execute(
                "SELECT name, type FROM pragma_table_info(?)", [self._address.table]
            )
            declared = {name: str(kind).upper() for name, kind in found}
        return pa.schema([(name, self._kind(declared.get(name, ""))) for name in names])

    def _order(self, names: Sequence[str]) -> str:
        return f"digest({', '.join(f'CAST({quoted(name)} AS BLOB)' for name in names)})"

    def _kind(self, declared: str) -> pa.DataType:
        kinds = (kind for word, kind in self._AFFINITIES if word in declared)
        return next(kinds, pa.string())

    def _selected(self, query: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        cursor = self._connection.execute(query)
        while rows := cursor.fetchmany(BATCH_ROWS):
            columns = zip(*rows, strict=True)
            texts = [pa.array(map(_text, column), pa.string()) for column in columns]
            yield pa.record_batch(texts, names=list(names))


class PostgresRows(DatabaseRows):
    """A table in a PostgreSQL database."""

    def _failures(self) -> tuple[type[Exception], ...]:
        return (postgresql_driver().Error, pa.ArrowException, OSError)

    def _connect(self) -> Any:
        connection = postgresql_driver().connect(self._address.server)
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return connection

    def _described(self) -> pa.Schema:
        # What the driver describes the server prepares, which refuses more than one statement.
        with self._connection.cursor() as cursor:
            return cursor.adbc_execute_schema(f"SELECT * FROM {self._address.source}")

    def _column(self, name: str) -> str:
        """Ask for text where Arrow has no type of its own, and for numbers without idle zeros."""
        field = self._kinds.field(name)
        written = (field.metadata or {}).get(b"POSTGRESQL:type", b"")
        if written == b"numeric":
            return f"trim_scale({quoted(name)})::text"
        strange = isinstance(field.type, pa.BaseExtensionType) or pa.types.is_nested(field.type)
        return f"{quoted(name)}::text" if strange else quoted(name)

    def _order(self, names: Sequence[str]) -> str:
        return digest_order(names, ' COLLATE "C"')

    def _selected(self, query: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            yield from cursor.fetch_record_batch()

    def __del__(self) -> None:
        """Close the connection, which would warn otherwise."""
        if hasattr(self, "_connection"):
            self.close()


def digest_order(names: Sequence[str], collation: str = "") -> str:
    """Order rows, in SQL, by a digest of what they hold as text; what is left is alike."""
    texts = ", ".join(f"CAST({quoted(name)} AS TEXT){collation}" for name in names)
    return f"md5(concat_ws(chr(31), {texts})), {texts}"


def _digest(*values: bytes | None) -> bytes:
    return sha256(repr(values).encode()).digest()


def database_rows(text: str) -> DatabaseRows:
    """Open a table at an address."""
    address = Address.of(text)
    kinds: dict[str, type[DatabaseRows]] = {"duckdb": DuckDBRows, "sqlite": SQLiteRows}
    return kinds.get(address.kind, PostgresRows)(address)


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if value is None else str(value)


def _existing_file(address: Address) -> None:
    if not address.file.is_file():
        raise SfumatoError(f"there is no file {address.file} ({address.kind})")


def duckdb_driver() -> Any:
    """Import the driver, or say how to install it."""
    try:
        import duckdb
    except ImportError:
        raise SfumatoError(f"to read DuckDB, the package duckdb is needed: {_EXTRA}") from None
    return duckdb


def postgresql_driver() -> Any:
    """Import the driver, or say how to install it."""
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise SfumatoError(
            f"to read PostgreSQL, the package adbc-driver-postgresql is needed: {_EXTRA}"
        ) from None
    return dbapi
