"""Tables of databases are the same rows as files, in one snapshot, and passwords stay secret."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import sfumato as sf
from command_line import run
from sfumato.data import databases
from sfumato.data.rows import encoded_rows
from sfumato.data.sources import dataset_name, source_name
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from support import SCHEMA, people, seeded_fit

BUDGET = sf.Budget(epsilon=8, delta=1e-5)
ROWS = people(700)
DEBIAN = sorted(str(path.parent) for path in Path("/usr/lib/postgresql").glob("*/bin/postgres"))
POSTGRES = shutil.which("postgres", path=os.pathsep.join([*DEBIAN[-1:], os.environ["PATH"]]))


def sqlite_file(folder: Path) -> str:
    with sqlite3.connect(folder / "people.db") as base:
        base.execute("CREATE TABLE people (age INTEGER, pay REAL, town TEXT, sick BOOLEAN)")
        rows = [tuple(row.values()) for row in ROWS.to_pylist()]
        base.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", rows)
    base.close()
    return f"sqlite://{folder / 'people.db'}"


def duckdb_file(folder: Path) -> str:
    duckdb = pytest.importorskip("duckdb")
    given = ROWS  # noqa: F841 (found by its name)
    with duckdb.connect(folder / "people.duckdb") as base:
        base.execute("CREATE TABLE people AS SELECT * FROM given")
    return f"duckdb://{folder / 'people.duckdb'}"


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Start a PostgreSQL server of our own, with a user who has a password."""
    pytest.importorskip("adbc_driver_postgresql")
    if POSTGRES is None:
        pytest.skip("there is no PostgreSQL server here")
    # Not among pytest's own folders, which other users may not enter.
    folder = Path(tempfile.mkdtemp(prefix="sfumato-postgres-"))
    as_user: dict[str, Any] = {}
    if os.getuid() == 0:  # whom the server refuses
        try:
            shutil.chown(folder, "postgres")
        except LookupError:
            folder.rmdir()
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        as_user = {"user": "postgres"}
    (folder / "password").write_text("s3cret/word")
    (folder / "password").chmod(0o644)
    programs = Path(POSTGRES).resolve().parent
    quiet: dict[str, Any] = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL, **as_user}
    subprocess.run(
        [programs / "initdb", "-D", folder / "base", "-U", "ann", "-A", "scram-sha-256",
         f"--pwfile={folder / 'password'}", "--no-sync"], **quiet,
    )  # fmt: skip
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -F"
    subprocess.run(
        [programs / "pg_ctl", "-D", folder / "base", "-w", "-l", folder / "log", "-o", options,
         "start"], **quiet,
    )  # fmt: skip
    yield f"host={folder}"
    subprocess.run([programs / "pg_ctl", "-D", folder / "base", "-m", "immediate", "stop"], **quiet)
    shutil.rmtree(folder, ignore_errors=True)


def postgres_base(server: str) -> str:
    from adbc_driver_postgresql import dbapi

    address = f"postgresql://ann:s3cret%2Fword@/postgres?{server}"
    with dbapi.connect(address) as base, base.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS people")
        cursor.adbc_ingest("people", ROWS)
        cursor.execute("ALTER TABLE people ALTER COLUMN pay TYPE numeric(12, 4)")
        base.commit()
    return address


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the address of a data base that holds the table `people`."""
    if request.param == "postgresql":
        return postgres_base(request.getfixturevalue("server"))
    return {"sqlite": sqlite_file, "duckdb": duckdb_file}[request.param](tmp_path)


def asked(base: str, what: str) -> str:
    return f"{base}{'&' if '?' in base else '?'}{what}"


def codes(data: object) -> Counter[tuple[int, ...]]:
    rows = encoded_rows(data, TableCodec(SCHEMA))
    found = Counter(tuple(row) for batch in rows for row in batch.codes.tolist())
    rows.close()
    return found


def test_a_table_and_a_query_are_the_same_rows_as_a_frame(base: str) -> None:
    assert codes(asked(base, "table=people")) == codes(ROWS)
    some = asked(base, "query=SELECT * FROM people WHERE age + 1 < 31 AND town NOT LIKE '%de';")
    assert codes(some) == codes(ROWS.filter(pa.compute.less(ROWS["age"], 30)))


def test_releases_have_the_same_bits_and_rows_are_read_once(base: str, tmp_path: Path) -> None:
    def released(data: Any, spool: Path | None) -> list[bytes]:
        method = sf.Pairs(target="sick", components=3, restarts=1)
        model = seeded_fit(method, data, SCHEMA, BUDGET, 2, spool)
        return [release.noisy.tobytes() for release in model.releases]

    address = asked(base, "table=people")
    assert released(address, None) == released(ROWS, None)
    assert released(address, tmp_path / "spool") == released(ROWS, None)


def test_all_passes_see_one_snapshot_and_nothing_can_be_written(server: str) -> None:
    address = postgres_base(server)
    rows = encoded_rows(asked(address, "table=people"), TableCodec(SCHEMA))
    assert rows.review().rows == 700
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address) as base, base.cursor() as cursor:
        cursor.execute("DELETE FROM people WHERE age < 50")
        base.commit()
    assert rows.review().rows == 700
    delete = "query=WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone"
    with pytest.raises(SfumatoError):
        encoded_rows(asked(address, delete), TableCodec(SCHEMA)).review()
    assert codes(asked(address, "table=people")).total() < 700


def test_a_lost_connection_is_one_line_and_a_wrong_password_is_not_told(server: str) -> None:
    address = postgres_base(server)
    rows = encoded_rows(asked(address, "table=people"), TableCodec(SCHEMA))
    ended_by_the_server(address)
    with pytest.raises(SfumatoError, match="the connection was lost"):
        rows.review()
    wrong = address.replace("s3cret%2Fword", "gu3ssed")
    with pytest.raises(SfumatoError, match="password authentication failed") as refused:
        encoded_rows(asked(wrong, "table=people"), TableCodec(SCHEMA))
    assert "gu3ssed" not in str(refused.value)


def ended_by_the_server(address: str) -> None:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address) as base, base.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND usename = 'ann'"
        )
        cursor.fetchall()


def test_what_goes_wrong_with_a_server_is_one_line_and_costs_nothing(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_LEDGER", str(tmp_path / "ledger.sqlite"))
    address = postgres_base(server)
    wide = SCHEMA.columns | {"weight": sf.Numeric(low=0, high=200)}
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    (tmp_path / "wide.toml").write_text(sf.Schema(columns=wide).to_toml())

    def refused(address: str, schema: str = "people.toml") -> str:
        source = asked(address, "table=people")
        code, out, err = run(capsys, "synth", source, "-s", schema, "-e", "1", "-o", "a.csv", "-q")
        assert (code, out) == (2, "")
        lines = [line for line in err.splitlines() if "others on this machine" not in line]
        assert len(lines) == 1
        assert "s3cret" not in err
        assert "gu3ssed" not in err
        return lines[0]

    assert "password authentication failed" in refused(address.replace("s3cret", "gu3ssed"))
    assert "the data have no column 'weight'" in refused(address, "wide.toml")
    selected = databases.PostgresRows._selected

    def lost(self: Any, query: str, names: Any) -> Any:
        ended_by_the_server(address)
        return selected(self, query, names)

    with monkeypatch.context() as patch:
        patch.setattr(databases.PostgresRows, "_selected", lost)
        assert "the connection was lost" in refused(address)
    assert not list(tmp_path.glob("*/.rows*"))
    assert "people" not in run(capsys, "ledger", "show")[1]


def test_passwords_are_in_no_file_and_no_message(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    address = asked(postgres_base(server), "table=people")
    code, out, err = run(
        capsys, "synth", address, "-s", "people.toml", "-e", "3", "-o", "out.csv", "--model",
        "out.sfumato", "--report", "out.html", "--set", "components=3", "--set", "restarts=1",
    )  # fmt: skip
    assert code == 0, err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 5
    for secret in (b"s3cret", b"%2Fword"):
        assert not any(secret in path.read_bytes() for path in files)
        assert secret not in (out + err).encode()
    code, out, err = run(capsys, "ledger", "show")
    assert "people" in out


def test_addresses_are_told_without_passwords() -> None:
    for address in (
        "postgresql://ann:s3cret@host/base?table=visits",
        "postgresql://ann@host/base?password=s3cret&sslmode=require&table=visits",
        "postgres://ann:s3cret@host/base?table=visits&sslpassword=s3cret",
    ):
        assert source_name(address) == "postgresql://ann@host/base?table=visits"
        assert dataset_name(address) == "visits"
    elsewhere = source_name("postgresql://ann:s3cret@/base?host=/run/pg&table=visits")
    assert elsewhere == "postgresql://ann@/base?host=/run/pg&table=visits"
    assert dataset_name("duckdb://x/clinic.duckdb?query=SELECT 1") == "clinic"


@pytest.mark.parametrize("password", ["s3/cret", "s3?cret", "s3#cret", "s3@cret", "@", "a:b/@c"])
def test_a_password_with_marks_of_its_own_is_refused_without_being_told(password: str) -> None:
    with pytest.raises(SfumatoError, match="write %40 for @") as refused:
        source_name(f"postgresql://ann:{password}@host/base?table=visits")
    assert password not in str(refused.value).replace("%40 for @", "")


def test_queries_are_told_without_passwords() -> None:
    query = "SELECT * FROM postgres_scan('host=h password=s3cret', 'visits')"
    assert "s3cret" not in source_name(f"duckdb://x.duckdb?query={query}")
    assert "visits" in source_name(f"duckdb://x.duckdb?query={query}")


@pytest.mark.parametrize(("address", "message"), [
    ("sqlite://nowhere.db?table=people", "there is no file nowhere.db"),
    ("sqlite://nowhere.db", "name one table"),
    ("duckdb://x.duckdb?table=a&query=b", "name one table"),
    ("{sqlite}?table=nobody", "no such table: nobody"),
    ("{sqlite}?query=SELECT age FROM people", "the data have no column 'pay'"),
    ("{sqlite}?query=SELEC", "cannot open sqlite://"),
])  # fmt: skip
def test_what_cannot_be_read_is_one_clear_line(tmp_path: Path, address: str, message: str) -> None:
    given = address.replace("{sqlite}", sqlite_file(tmp_path))
    with pytest.raises(SfumatoError, match=message) as refused:
        encoded_rows(given, TableCodec(SCHEMA))
    assert "\n" not in str(refused.value)


WRITES = {
    "sqlite": (
        "ATTACH '{stolen}' AS s", "VACUUM INTO '{stolen}'", "CREATE TABLE stolen (a INTEGER)",
        "DELETE FROM people", "PRAGMA journal_mode = wal",
    ),
    "duckdb": (
        "COPY people TO '{stolen}'", "ATTACH '{stolen}'", "EXPORT DATABASE '{stolen}'",
        "CREATE TABLE stolen (a INTEGER)", "DELETE FROM people RETURNING *",
        "SET enable_external_access = true", "INSTALL httpfs", "LOAD json", "CALL pragma_version()",
        "PRAGMA version", "PIVOT people ON town",
    ),
    "postgresql": (
        "COPY people TO '{stolen}'", "COPY people TO PROGRAM 'cat > {stolen}'",
        "CREATE TABLE stolen (a INTEGER)", "DELETE FROM people RETURNING *",
        "WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone",
        "SET TRANSACTION READ WRITE",
    ),
}  # fmt: skip
AROUND = (
    "{}",
    "{};",
    "SELECT * FROM people; {}",
    "SELECT * FROM people) AS x; {}; SELECT * FROM (SELECT * FROM people",
    "SELECT * FROM people) AS x; COMMIT; {}; SELECT * FROM (SELECT * FROM people",
    "SELECT * FROM people) AS x; COMMIT; {} --",
    "SELECT * FROM people) AS x; {} /*",
    "{}; SELECT * FROM people",
    "SELECT * FROM people) AS x UNION ALL (SELECT * FROM people); {} --",
)
POSTGRES_AROUND = (
    "SELECT * FROM people) TO PROGRAM 'cat > {stolen}' --",
    "SELECT * FROM people) AS x) TO PROGRAM 'cat > {stolen}'; COMMIT; --",
)


def test_a_query_that_is_more_than_one_select_is_refused(base: str, tmp_path: Path) -> None:
    kind = base.partition("://")[0]
    # PostgreSQL writes as its own user, and into its own folder.
    folder = Path(base.partition("?host=")[2]) if kind == "postgresql" else tmp_path
    before = sorted(folder.iterdir())
    queries = [form.format(write) for form in AROUND for write in WRITES[kind]]
    for query in [*queries, *(POSTGRES_AROUND if kind == "postgresql" else ())]:
        address = asked(base, "query=" + query.format(stolen=folder / "stolen"))
        with pytest.raises(SfumatoError) as refused:
            codes(address)
        assert "\n" not in str(refused.value)
        assert sorted(folder.iterdir()) == before, query
    assert codes(asked(base, "table=people")) == codes(ROWS)
    with pytest.raises(SfumatoError):
        codes(asked(base, "table=stolen"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM people -- all ; of them",
        "/* all; of them */ SELECT * FROM people;;",
        "WITH all_of_them AS (SELECT * FROM people) SELECT * FROM all_of_them",
        "SELECT age, pay, town, sick FROM people WHERE town <> '); DROP TABLE people; --'",
    ],
)
def test_one_select_may_hold_marks_of_any_kind(base: str, query: str) -> None:
    assert codes(asked(base, f"query={query}")) == codes(ROWS)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM glob('{secret}*')",
        "SELECT * FROM people, (SELECT count(*) FROM read_blob('{secret}'))",
        "SELECT * FROM elsewhere",
    ],
)
def test_a_query_of_duckdb_reads_no_other_file_unless_the_owner_says_so(
    tmp_path: Path, query: str
) -> None:
    base = duckdb_file(tmp_path)
    secret = tmp_path / "secret.csv"
    secret.write_text("age,pay,town,sick\n30,7,Ulm,true\n")
    import duckdb

    with duckdb.connect(tmp_path / "people.duckdb") as file:
        file.execute(f"CREATE VIEW elsewhere AS SELECT * FROM read_csv('{secret}')")
    with pytest.raises(SfumatoError, match="cannot open duckdb://") as refused:
        codes(f"{base}?query={query.format(secret=secret)}")
    assert "\n" not in str(refused.value)
    if "Permission" in str(refused.value):
        assert "external=yes" in str(refused.value)
    row = {"age": [30], "pay": [7.0], "town": ["Ulm"], "sick": [True]}
    for what in (f"query=SELECT * FROM '{secret}'", "table=elsewhere"):
        assert codes(f"{base}?external=yes&{what}") == codes(pa.table(row))
    with pytest.raises(SfumatoError, match="must be one SELECT"):
        codes(f"{base}?external=yes&query=COPY people TO '{tmp_path / 'stolen'}'")
    assert not (tmp_path / "stolen").exists()


def test_a_query_of_duckdb_sees_no_frames_of_the_program(tmp_path: Path) -> None:
    base = duckdb_file(tmp_path)
    names = ROWS  # noqa: F841 (as one of the module that asks)
    with pytest.raises(SfumatoError, match="names does not exist"):
        codes(f"{base}?table=names")


@pytest.mark.parametrize("call", ["readfile('/etc/passwd')", "writefile('stolen', 'x')",
                                  "load_extension('stolen')"])  # fmt: skip
def test_a_query_of_sqlite_reaches_no_other_file(tmp_path: Path, call: str) -> None:
    with pytest.raises(SfumatoError, match=r"cannot (open|be read)"):
        codes(f"{sqlite_file(tmp_path)}?query=SELECT age, {call} AS pay, town, sick FROM people")


@pytest.mark.parametrize(("kind", "setting"), [
    ("sqlite", "external=yes"), ("duckdb", "external=no"), ("duckdb", "mode=rw"),
    ("duckdb", "external=yes&mode=rw"),
])  # fmt: skip
def test_settings_of_files_that_are_unknown_are_refused(kind: str, setting: str) -> None:
    with pytest.raises(SfumatoError, match="may follow the file"):
        source_name(f"{kind}://x?{setting}&table=people")


@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
def test_a_missing_driver_is_one_clear_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").touch()
    monkeypatch.setitem(
        sys.modules, {"duckdb": "duckdb", "postgresql": "adbc_driver_postgresql"}[kind], None
    )
    with pytest.raises(SfumatoError, match=r"pip install 'sfumato\[databases\]'"):
        encoded_rows(f"{kind}://{tmp_path / 'x'}?table=people", TableCodec(SCHEMA))


def test_values_of_sqlite_are_read_each_for_itself(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "odd.db") as base:
        base.execute("CREATE TABLE odd (age INTEGER, pay, town, sick)")
        base.execute("INSERT INTO odd VALUES ('old', 12.5, 'Ulm', 'yes'), (30, '7', 3, 0)")
        base.execute("INSERT INTO odd VALUES (NULL, x'ff', CAST(x'ff' AS TEXT), 1)")
    base.close()
    found = codes(f"sqlite://{tmp_path / 'odd.db'}?table=odd")
    table = {"age": ["old", "30", None], "pay": ["12.5", "7", "?"], "town": ["Ulm", "3", "�"],
             "sick": ["yes", "0", "1"]}  # fmt: skip
    assert found == codes(pa.table(table))
    assert np.sum(list(found.values())) == 3


def test_synthetic_rows_become_a_new_table(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sfumato.sampling.PART_ROWS", 300)
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    source, place = asked(base, "table=people"), asked(base, "table=synthetic")
    arguments = ["synth", source, "-s", "people.toml", "-e", "3", "-n", "800", "--workers", "1",
                 "--releases", "kept", "--set", "components=3", "--set", "restarts=1"]  # fmt: skip
    code, out, err = run(capsys, *arguments, "-o", place, "--model", "m.sfumato", "--force")
    assert code == 0, err
    assert out.strip() == source_name(place)
    drawn = pa.concat_tables(sf.sampling.Draw(sf.load("m.sfumato"), 800).tables(1))
    assert codes(place) == codes(drawn)
    spent = run(capsys, "ledger", "show")
    code, _, err = run(capsys, *arguments, "-o", place)
    assert code == 2
    assert "such a table already; --force replaces it" in err
    code, _, err = run(capsys, *arguments, "-o", source, "--force")
    assert code == 2
    assert "is the input" in err
    assert run(capsys, "ledger", "show") == spent
    code, _, err = run(capsys, "sample", "m.sfumato", "-n", "5", "-o", place, "--force")
    assert code == 0, err
    assert codes(place).total() == 5
    assert codes(source) == codes(ROWS)


def test_a_table_that_is_written_in_part_is_not_there(tmp_path: Path) -> None:
    from sfumato.data.new_table import new_table

    def parts() -> Iterator[pa.Table]:
        yield ROWS
        raise SfumatoError("a worker died")

    for base in (sqlite_file(tmp_path), duckdb_file(tmp_path)):
        with pytest.raises(SfumatoError, match="a worker died"):
            new_table(f"{base}?table=synthetic").write(parts())
        with pytest.raises(SfumatoError, match="cannot open"):
            codes(f"{base}?table=synthetic")


def test_a_schema_is_drafted_from_a_database(base: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "schema", "init", asked(base, "table=people"))
    assert code == 0, err
    assert [line for line in out.splitlines() if line.startswith("[columns")] == [
        f"[columns.{name}]" for name in SCHEMA.columns
    ]
    assert 'kind = "boolean"' in out


VISITS = pa.table(
    {
        "who": [f"{number * 7 % 30}" for number in range(90)],
        "age": [number * 37 % 90 for number in range(90)],
    }
)
OF_UNITS = sf.Schema(
    columns={
        "who": sf.Identifier(unit=True),
        "age": sf.Numeric(low=0, high=99, integer=True),
    }
)


def kept_ages(data: object, most: int) -> Counter[int]:
    rows = encoded_rows(data, TableCodec(OF_UNITS), most)
    return Counter(code for batch in rows for code in batch.codes[:, 0].tolist())


@pytest.mark.parametrize("most", [1, 2])
def test_which_rows_of_a_unit_are_kept_depends_on_no_other_unit(base: str, most: int) -> None:
    """An order turned round stands for all that a database may make of rows, for any reason."""
    with_visits(base)
    whole = kept_ages(asked(base, "table=visits"), most)
    assert whole.total() == 30 * most
    for query in ("SELECT * FROM visits ORDER BY age", "SELECT * FROM visits ORDER BY age DESC"):
        assert kept_ages(asked(base, f"query={query}"), most) == whole
    alone = [
        kept_ages(asked(base, f"query=SELECT * FROM visits WHERE who = '{who}'"), most)
        for who in range(30)
    ]
    assert sum(alone, Counter()) == whole


def test_relations_of_duckdb_have_an_order_that_lasts() -> None:
    duckdb = pytest.importorskip("duckdb")
    given = VISITS  # noqa: F841 (found by its name)
    rising = duckdb.sql("SELECT * FROM given ORDER BY age")
    falling = duckdb.sql("SELECT * FROM given ORDER BY age DESC")
    assert kept_ages(rising, 1) == kept_ages(falling, 1)


def with_visits(base: str) -> None:
    """Put the table `visits` beside `people`."""
    kind, _, place = base.partition("://")
    if kind == "postgresql":
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(base) as server, server.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS visits")
            cursor.adbc_ingest("visits", VISITS)
            server.commit()
    elif kind == "duckdb":
        import duckdb

        given = VISITS  # noqa: F841 (found by its name)
        with duckdb.connect(place) as file:
            file.execute("CREATE TABLE visits AS SELECT * FROM given")
    else:
        with sqlite3.connect(place) as lite:
            lite.execute("CREATE TABLE visits (who TEXT, age INTEGER)")
            rows = [tuple(row.values()) for row in VISITS.to_pylist()]
            lite.executemany("INSERT INTO visits VALUES (?, ?)", rows)
        lite.close()
