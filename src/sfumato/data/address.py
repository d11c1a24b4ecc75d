"""Addresses of tables in databases, and what of them may be told: everything but passwords."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sfumato.errors import SfumatoError
from sfumato.storage import local

_PLACES = ("host", "port", "dbname")  # settings that say where the database is
KINDS = ("duckdb", "sqlite", "postgresql", "postgres")


def is_address(data: Any) -> bool:
    """Tell the address of a database from a path."""
    return isinstance(data, str) and "://" in data and data.partition("://")[0] in KINDS


@dataclass(frozen=True)
class Address:
    """A table, or a query, in a database.

    >>> address = Address.of("postgresql://ann:secret@host:5432/clinic?table=public.visits")
    >>> address.told, address.name
    ('postgresql://ann@host:5432/clinic?table=public.visits', 'public.visits')
    >>> Address.of("duckdb://data/clinic.duckdb?table=visits").file
    PosixPath('data/clinic.duckdb')
    >>> Address.of("sqlite://x.db?query=SELECT a+1 FROM b WHERE c LIKE '%de&'").query
    "SELECT a+1 FROM b WHERE c LIKE '%de&'"
    """

    kind: str
    server: str  # where to connect to, with its password: never to be shown
    table: str | None
    query: str | None
    secrets: tuple[str, ...] = ()
    external: bool = False  # whether DuckDB may read other files, as its owner says

    @classmethod
    def of(cls, text: str) -> Address:
        """Take an address apart. A query comes last, and is taken as it is written."""
        kind, _, rest = text.partition("://")
        begins = re.search(r"[?&]query=", rest)
        query = rest[begins.end() :] if begins else None
        place, _, asked = rest[: begins.start() if begins else None].partition("?")
        settings = [setting.partition("=")[::2] for setting in asked.split("&") if setting]
        if kind.startswith("postgres"):
            _refuse_raw_marks(place, [key for key, _ in settings])
        tables = [value for key, value in settings if key == "table"]
        others = [(key, value) for key, value in settings if key != "table"]
        if len(tables) + (query is not None) != 1:
            raise SfumatoError(f"{kind}://…: name one table (?table=…) or one query (?query=…)")
        table = tables[0] if tables else None
        if kind in ("duckdb", "sqlite"):
            external = kind == "duckdb" and others == [("external", "yes")]
            if others and not external:
                more = ", or external=yes before them," if kind == "duckdb" else ""
                raise SfumatoError(f"{kind}://…: only table or query{more} may follow the file")
            return cls(kind, place, table, query, external=external)
        asked = "&".join(f"{key}={value}" for key, value in others)
        server = f"postgresql://{place}" + (f"?{asked}" if asked else "")
        words = [urlsplit(server).password, *(v for k, v in others if "password" in k)]
        secrets = {spelt for word in words if word for spelt in (word, unquote(word))}
        longest_first = sorted(secrets, key=len, reverse=True)
        return cls("postgresql", server, table, query, tuple(longest_first))

    @property
    def file(self) -> Path:
        """The file of a database that is one."""
        return local(self.server)

    @property
    def told(self) -> str:
        """The address without passwords or settings: what ledgers and messages may hold."""
        which = f"table={self.table}" if self.query is None else f"query={_masked(self.query)}"
        if self.kind != "postgresql":
            return f"{self.kind}://{self.file.resolve()}?{which}"
        parts = urlsplit(self.server)
        user = f"{parts.username}@" if parts.username else ""
        where = [each for each in parts.query.split("&") if each.partition("=")[0] in _PLACES]
        place = f"{user}{parts.netloc.rpartition('@')[2]}{parts.path}"
        return f"postgresql://{place}?{'&'.join([*where, which])}"

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
        line = _masked((str(message).strip().splitlines() or [""])[0])
        for secret in self.secrets:
            line = line.replace(secret, "…")
        return line


def _refuse_raw_marks(place: str, keys: Iterable[str]) -> None:
    """Refuse marks that end a password where they stand: its rest would pass for a host's name."""
    server, _, path = place.partition("/")
    if server.count("@") > 1 or "#" in place or any("@" in each for each in (path, *keys)):
        raise SfumatoError(
            "postgresql://…: in a password, write %40 for @, %2F for /, %3F for ? and %23 for #, "
            "or use PGPASSWORD"
        )


def _masked(text: str) -> str:
    """Leave out the passwords of other servers, which a query may name.

    >>> _masked("FROM postgres_scan('host=h password=s3cret', 'a') -- http://ann:s3cret@host")
    "FROM postgres_scan('host=h password=…', 'a') -- http://ann:…@host"
    """
    text = re.sub(r"(?i)(password\s*=\s*)('[^']+'|[^\s'\"&;,)]+)", r"\1…", text)
    return re.sub(r"(://[^\s:/@]*:)[^\s@]+@", r"\1…@", text)


def quoted(name: str) -> str:
    """Write a name in SQL.

    >>> quoted('the "best" one')
    '"the ""best"" one"'
    """
    return '"' + name.replace('"', '""') + '"'
