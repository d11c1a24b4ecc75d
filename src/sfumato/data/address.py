"""Addresses of tables in databases, and what of them may be told: everything but passwords."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from sfumato.errors import SfumatoError

KINDS = ("duckdb", "sqlite", "postgresql", "postgres")


def is_address(data: Any) -> bool:
    """Tell the address of a database from a path."""
    return isinstance(data, str) and data.partition("://")[0] in KINDS and "://" in data


@dataclass(frozen=True)
class Address:
    """A table, or a query, in a database.

    >>> address = Address.of("postgresql://ann:secret@host:5432/clinic?table=public.visits")
    >>> address.told, address.name
    ('postgresql://ann@host:5432/clinic?table=public.visits', 'public.visits')
    >>> Address.of("duckdb://data/clinic.duckdb?table=visits").file
    PosixPath('data/clinic.duckdb')
    """

    kind: str
    server: str  # where to connect to, with its password: never to be shown
    table: str | None
    query: str | None
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Address:
        """Take an address apart."""
        kind, _, rest = text.partition("://")
        place, _, asked = rest.partition("?")
        given = dict(parse_qsl(asked, keep_blank_values=True))
        table, query = given.pop("table", None), given.pop("query", None)
        if (table is None) == (query is None):
            raise SfumatoError(f"{kind}://…: name one table (?table=…) or one query (?query=…)")
        if kind in ("duckdb", "sqlite"):
            if given:
                raise SfumatoError(f"{kind}://…: only table or query may follow the file")
            return cls(kind, unquote(place), table, query)
        server = f"postgresql://{place}" + (f"?{urlencode(given)}" if given else "")
        passwords = [urlsplit(server).password, given.get("password"), given.get("sslpassword")]
        known = [word for word in passwords if word]
        return cls("postgresql", server, table, query, (*known, *map(unquote, known)))

    @property
    def file(self) -> Path:
        """The file of a database that is one."""
        return Path(self.server)

    @property
    def told(self) -> str:
        """The address without passwords or settings: what ledgers and messages may hold."""
        asked = {"table": self.table} if self.table is not None else {"query": self.query or ""}
        which = urlencode(asked, safe=".", quote_via=quote)
        if self.kind != "postgresql":
            return f"{self.kind}://{self.file.resolve()}?{which}"
        parts = urlsplit(self.server)
        host = parts.netloc.rpartition("@")[2]
        user = f"{parts.username}@" if parts.username else ""
        return urlunsplit(("postgresql", user + host, parts.path, which, ""))

    @property
    def name(self) -> str:
        """The name of the table, or of the database that is queried."""
        if self.table is not None:
            return self.table
        place = self.server if self.kind != "postgresql" else urlsplit(self.server).path
        return Path(place).stem or self.kind

    @property
    def source(self) -> str:
        """What to select from, in SQL."""
        if self.query is not None:
            return f"({self.query.strip().rstrip(';')}\n) AS asked"
        assert self.table is not None
        return ".".join(map(quoted, self.table.split(".")))

    def without_secrets(self, message: object) -> str:
        """Give the first line of a driver's message, without passwords."""
        line = (str(message).strip().splitlines() or [""])[0]
        for secret in self.secrets:
            line = line.replace(secret, "…")
        return line


def quoted(name: str) -> str:
    """Write a name in SQL.

    >>> quoted('the "best" one')
    '"the ""best"" one"'
    """
    return '"' + name.replace('"', '""') + '"'
