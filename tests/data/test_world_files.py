"""Files as the world writes them come through whole, or are refused with the right sentence."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from command_line import run
from sfumato.data.codes import ColumnCode, DatetimeCode
from sfumato.data.inspection import draft_schema
from sfumato.data.rows import EncodedTable
from sfumato.data.sources import table_rows
from sfumato.data.table_codec import TableCodec
from sfumato.data.writing import CsvWriting
from sfumato.errors import SfumatoError
from sfumato.privacy.ledger import Ledger
from sfumato.schema import Schema

WORLD = Path(__file__).parents[1] / "world"
RNG = np.random.default_rng(0)

AGE = 'columns.age = {kind = "integer", low = 0, high = 120, nullable = true}\n'
FLAG = 'columns.flag = {kind = "boolean", nullable = true}\n'
TOWN = """columns.town = {kind = "categorical", nullable = true, values = [
    "Ulm", "Köln", "Jena", "Saint-Denis, La Réunion"]}\n"""
SEX = 'columns.sex = {kind = "categorical", values = ["male", "female", "don\'t know"]}\n'
SEMICOLON = 'csv.delimiter = ";"\n'
REUNION = "Saint-Denis, La Réunion"


def pay(marks: str = "") -> str:
    return f'columns.pay = {{kind = "numeric", low = -1e4, high = 1e7, nullable = true{marks}}}\n'


def moment(name: str, unit: str, marks: str = "") -> str:
    bounds = "low = 1950-01-01, high = 2050-01-01"
    return (
        f'columns.{name} = {{kind = "datetime", {bounds}, unit = "{unit}", nullable = true'
        f"{marks}}}\n"
    )


DAY, SEEN = moment("day", "day"), moment("seen", "second")
BERLIN = ', zone = "Europe/Berlin"'
WINTER, SUMMER = datetime(2023, 1, 5, 10, 20, 30), datetime(2023, 7, 5)

Rows = list[tuple[Any, ...]]

WHOLE: dict[str, tuple[str, Rows]] = {
    "pandas_index.csv": (
        AGE + FLAG + moment("seen", "second", BERLIN),
        [(3, True, WINTER), (None, False, None), (41, None, SUMMER)],
    ),
    "r_write_csv.csv": (
        TOWN + AGE + FLAG,
        [("Ulm", 30, True), (None, None, False), ("Köln", 12, None)],
    ),
    "r_write_csv2.csv": (
        TOWN + pay(', decimal = ","') + SEMICOLON,
        [("Ulm", 3.5), (None, None), ("Köln", 1827.25)],
    ),
    "readr.csv": (
        TOWN + FLAG + SEEN + pay(),
        [("Ulm", True, WINTER, 1e5), (None, False, None, 0.1), (REUNION, None, SUMMER, None)],
    ),
    "excel_german.csv": (
        TOWN
        + pay(', decimal = ",", thousands = "."')
        + moment("day", "day", ', format = "%d.%m.%Y"')
        + 'csv = {delimiter = ";", encoding = "windows-1252"}',
        [("Köln", 1827.5, date(2023, 1, 5)), ("Ulm", -3.2, date(2022, 12, 31)), (None, None, None)],
    ),
    "excel_us.csv": (
        TOWN + pay(', thousands = ","') + moment("day", "day", ', format = "%m/%d/%Y"'),
        [("Ulm", 1827.5, date(2023, 1, 5)), ("Köln", -3.2, date(2022, 12, 31)), (None, None, None)],
    ),
    "excel_us_times.csv": (
        moment("seen", "minute", ', format = "%m/%d/%Y %H:%M"') + pay(),
        [(datetime(2023, 1, 5, 3, 7), 1), (datetime(2022, 12, 31, 23, 59), 2)],
    ),
    "excel_sep.csv": (TOWN + pay(', decimal = ","'), [("Ulm", 3.5), ("Köln", 4)]),
    "excel_unicode_text.txt": (
        TOWN + pay(', thousands = ","') + 'csv = {delimiter = "\\t", encoding = "utf-16"}',
        [("Köln", 3), ("Ulm", 1827.5)],
    ),
    "postgres_copy.tsv": (
        TOWN + AGE + FLAG,
        [("Ulm", 3, True), (None, None, None), ("Köln", 4, False)],
    ),
    "mysql.csv": (
        AGE + FLAG + SEEN,
        [(3, True, WINTER), (None, False, None), (4, None, SUMMER)],
    ),
    "sqlite.csv": (AGE + FLAG + SEEN, [(3, True, WINTER), (None, False, SUMMER), (4, None, None)]),
    "sas.csv": (
        moment("day", "day", ', format = "%d%b%Y"')
        + moment("seen", "second", ', format = "%d%b%Y:%H:%M:%S"')
        + AGE,
        [
            (date(2023, 1, 5), WINTER, 3),
            (None, None, None),
            (date(1999, 12, 31), datetime(1999, 12, 31, 23, 59, 59), None),
        ],
    ),
    "sas_days.csv": (
        moment("day", "day", ', format = "days since 1960-01-01"') + AGE,
        [(date(2023, 1, 5), 3), (None, 4), (date(1959, 12, 31), None)],
    ),
    "stata_labels.csv": (SEX + AGE, [("male", 34), ("don't know", None), ("female", None)]),
    "swiss.csv": (
        TOWN + pay(', thousands = "\'"') + SEMICOLON,
        [("Ulm", 1000.5), ("Köln", 1234567.5), ("Ulm", -3)],
    ),
    "french.csv": (
        TOWN + pay(', decimal = ",", thousands = " "') + SEMICOLON,
        [("Ulm", 1000.5), ("Köln", 1234567.5), ("Ulm", -3)],
    ),
    "indian.csv": (
        TOWN + pay(', thousands = ","'),
        [("Ulm", 1234567.5), ("Köln", 1000), ("Ulm", 12)],
    ),
    "months_and_years.csv": (
        DAY + AGE,
        [(date(2023, 5, 1), 3), (date(2023, 1, 1), 4), (date(2023, 1, 5), 5)],
    ),
    "epoch_seconds.csv": (
        moment("seen", "second", ', format = "seconds since 1970-01-01"') + AGE,
        [(datetime(2023, 1, 5, 9, 20, 30), 1), (datetime(1970, 1, 1), 2)],
    ),
    "epoch_milliseconds.csv": (
        moment("seen", "second", ', format = "milliseconds since 1970-01-01"') + AGE,
        [(datetime(2023, 1, 5, 9, 20, 30), 1), (datetime(1970, 1, 1), 2)],
    ),
    "offsets.csv": (
        moment("seen", "minute", BERLIN) + AGE,
        [
            (datetime(2023, 1, 5, 10, 20), 3),
            (datetime(2023, 7, 5, 10, 20), 4),
            (datetime(2023, 7, 5, 10, 20), 5),
        ],
    ),
    "quotes.csv": (
        TOWN + """columns.note = {kind = "categorical", values = ['He said "no"', "5' 3"]}""",
        [(REUNION, 'He said "no"'), ("Ulm", "5' 3")],
    ),
    "crlf_blank_end.csv": (TOWN + AGE, [("Ulm", 3), ("Köln", 4)]),
    "cr_only.csv": (TOWN + AGE, [("Ulm", 3), ("Köln", 4)]),
    "no_newline_at_end.csv": (TOWN + AGE, [("Ulm", 3), ("Köln", 4)]),
    "gzipped.csv.gz": (TOWN + AGE, [("Ulm", 3), ("Köln", 4)]),
    "gzipped_named_csv.csv": (TOWN + AGE, [("Ulm", 3), ("Köln", 4)]),
    "yes_no.csv": (FLAG, [(flag,) for flag in [True, False] * 5 + [True]]),
    "numbers.csv": (pay(), [(n,) for n in (3, 1000, 1500, -3, 3, 0.5, 5, 0.01, 0)]),
    "floats_for_integers.csv": (AGE, [(3,), (4,), (5,)]),
    "same_unused_name_twice.csv": (AGE, [(3,)]),
    "nameless_columns.csv": (AGE, [(4,)]),
}

NO_NUMBER = r'thousands = "," as the file writes numbers; signs such as % or \$ must go'

REFUSED: dict[str, tuple[str, str]] = {
    "excel_us_brackets.csv": (TOWN + pay(', thousands = ","'), r"not a number \('\(1,200.00\)'\)"),
    "excel_sep_ragged.csv": (TOWN + pay(), "line 4 has 3 fields where the header has 2"),
    "spss_codes.csv": (SEX + AGE, "'age': 2 of 3 values .* below 0 .* -99, must be left empty"),
    "indian_typo.csv": (TOWN + pay(', thousands = ","'), r"not a number \('1,23'\)"),
    "iso_weeks.csv": (DAY + AGE, r"not a date or time \('2023-W05', .*format = "),
    "impossible_dates.csv": (DAY + AGE, r"not a date or time \('2023-02-30', '2023-13-01'\)"),
    "offsets.csv": (SEEN + AGE, "with a time zone .* zone = "),
    "gzip_cut_short.csv.gz": (TOWN + AGE, r"gzip_cut_short\.csv\.gz cannot be read to its end"),
    "ragged.csv": (TOWN + AGE, r"ragged\.csv: line 3 has 1 fields where the header has 2"),
    "unquoted_comma.csv": (TOWN + AGE, "line 3 has 3 fields where the header has 2: put quotes"),
    "open_quote.csv": (TOWN + AGE, "line 3: a value holds a line break: close its quote"),
    "latin1_undeclared.csv": (TOWN + AGE, 'line 3 is not in UTF-8: .* encoding = "latin-1"'),
    "utf16_undeclared.csv": (TOWN + AGE, 'it is in UTF-16: write encoding = "utf-16"'),
    "maybe.csv": (FLAG, r"'flag': 1 of 2 values .* neither true nor false \('maybe'\)"),
    "halves_for_integers.csv": (AGE, 'are not whole .* kind = "numeric"'),
    "percent.csv": (pay(), rf"not a number \('3%', '4 %'\).*{NO_NUMBER}"),
    "currency.csv": (pay(), rf"not a number \('\$3', '4 €'\).*{NO_NUMBER}"),
    "decimal_comma_undeclared.csv": (
        TOWN + pay() + SEMICOLON,
        r"not a number \('3,5', '4,25'\).* decimal = \",\"",
    ),
    "semicolons_undeclared.csv": (TOWN + AGE, "no column 'town'.* write delimiter = \";\""),
    "same_name_twice.csv": (AGE, "two columns of the same name: 'age'"),
    "header_only.csv": (TOWN + AGE, "has no rows"),
    "header_only_no_newline.csv": (TOWN + AGE, "it has a header and no rows"),
    "empty.csv": (TOWN + AGE, "the file is empty"),
    "blank_lines_only.csv": (TOWN + AGE, "the file is empty"),
    "json_lines.csv": (TOWN + AGE, "it is no csv but JSON"),
    "html_table.csv": (TOWN + AGE, "it is no csv but HTML"),
    "renamed_column.csv": (TOWN + AGE, r"no column 'town'; .*\(columns: Town, age\)"),
}


def meaning(code: ColumnCode, array: pa.Array) -> Iterable[Any]:
    """Give what the values of a column are taken for."""
    if isinstance(code, DatetimeCode):
        unit, start = code.column.unit, datetime(1970, 1, 1)
        moments = [
            None if np.isnan(count) else start + timedelta(**{f"{unit}s": count})
            for count in code.count(array)
        ]
        return [m.date() if m and unit == "day" else m for m in moments]
    if code.is_category:
        return code.decode(code.encode(array)[0], RNG).to_pylist()  # type: ignore[no-any-return]
    return [None if np.isnan(number) else number for number in code.count(array)]  # type: ignore[attr-defined]


def rows_of(data: Any, codec: TableCodec) -> Rows:
    """Read rows one by one, and check that together they are encoded alike."""
    found: Rows = []
    for batch in table_rows(data, codec.names, codec.schema.csv).batches(codec.names):
        together = codec.encode(batch)
        for place in range(batch.num_rows):
            row = batch.slice(place, 1)
            alone = codec.encode(row)
            assert np.array_equal(alone.codes[0], together.codes[place])
            assert np.array_equal(alone.numbers[0], together.numbers[place])
            columns = zip(codec.names, codec.columns, strict=True)
            found.append(tuple(next(iter(meaning(c, row.column(name)))) for name, c in columns))
    return found


@pytest.fixture
def synth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run `sfumato synth` in a folder of its own; give its exit code and its errors as one line."""
    monkeypatch.chdir(tmp_path)

    def run_synth(data: Path, schema: str, epsilon: str, *options: str) -> tuple[int, str]:
        Path("schema.toml").write_text(schema, encoding="utf-8")
        made = ("-s", "schema.toml", "-e", epsilon, "-o", "out.csv", "-q")
        code, _, error = run(capsys, "synth", str(data), *made, *options)
        return code, " ".join(error.split())

    return run_synth


def test_every_file_of_the_world_is_read() -> None:
    read = {*WHOLE, *REFUSED, *SIXTY_ROWS, "spaces.csv"}
    assert read == {path.name for path in WORLD.iterdir()}


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_comes_through_whole(name: str) -> None:
    text, expected = WHOLE[name]
    assert_whole(WORLD / name, text, expected)


def assert_whole(data: Any, schema: str, expected: Rows) -> None:
    codec = TableCodec(Schema.from_toml(schema))
    assert rows_of(data, codec) == expected
    review = EncodedTable(data, codec).review()
    assert list(review.sentences()) == []
    assert review.rows == len(expected)


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_with_the_right_sentence_before_it_costs(
    name: str, synth: Callable[..., tuple[int, str]], own_ledger: Path
) -> None:
    text, sentence = REFUSED[name]
    code, error = synth(WORLD / name, text, "1")
    assert code == 2
    assert re.search(sentence, error), error
    assert Ledger(own_ledger).entries() == []


def test_spaces_around_names_and_values_are_left_out_and_told() -> None:
    codec = TableCodec(Schema.from_toml(TOWN + AGE + FLAG))
    assert rows_of(WORLD / "spaces.csv", codec) == [("Ulm", 3, True), ("Köln", 4, False)]
    told = list(EncodedTable(WORLD / "spaces.csv", codec).review().sentences())
    assert told == [
        f"column '{name}': {count} values have spaces around them, and are read without"
        for name, count in (("town", 1), ("age", 2), ("flag", 1))
    ]


@pytest.mark.parametrize("name", [*WHOLE, *REFUSED])
def test_a_draft_has_the_columns_of_the_schema_or_says_what_is_wrong(name: str) -> None:
    columns = Schema.from_toml((WHOLE.get(name) or REFUSED[name])[0]).columns
    try:
        drafted = draft_schema(WORLD / name).guesses
    except SfumatoError as error:
        assert name in REFUSED or "UTF-16" in str(error) or "'x'" in str(error)  # noqa: PT017
    else:
        assert "" not in drafted
        assert set(columns) <= set(drafted) or name == "renamed_column.csv"


# Sampling 20,000 rows has a standard error of 0.0035 for a share and of 0.007 standard deviations
# for a mean; at epsilon 10,000, noise is next to none. The tolerances are five times as large.
SIXTY_ROWS = {
    "pandas_sixty.csv": (AGE + FLAG + TOWN, "age", lambda text: text),
    "r_csv2_sixty.csv": (
        pay(', decimal = ","').replace("1e7", "1e4") + FLAG + SEMICOLON,
        "pay",
        lambda text: text.replace(";", "|").replace(",", ".").replace("|", ","),
    ),
}


@pytest.mark.parametrize("name", SIXTY_ROWS)
def test_shares_and_means_survive_the_whole_way(
    name: str, synth: Callable[..., tuple[int, str]]
) -> None:
    schema, number, plain = SIXTY_ROWS[name]
    assert synth(WORLD / name, schema, "1e4", "-n", "20000", "--seed", "0")[0] == 0
    real, made = (
        pd.read_csv(io.StringIO(plain(path.read_text("utf-8"))))
        for path in (WORLD / name, Path("out.csv"))
    )
    assert made["flag"].mean() == pytest.approx(real["flag"].mean(), abs=0.02)
    assert made[number].isna().mean() == pytest.approx(real[number].isna().mean(), abs=0.02)
    assert made[number].mean() == pytest.approx(real[number].mean(), abs=0.04 * real[number].std())


TYPED = AGE + FLAG + TOWN + moment("seen", "second", BERLIN)
TYPED_ROWS: Rows = [(3, True, "Ulm", WINTER), (None,) * 4, (41, False, "Jena", SUMMER)]
MOMENTS = ["2023-01-05T10:20:30+01:00", None, "2023-07-05T00:00:00+02:00"]


def pandas_frame() -> pd.DataFrame:
    seen = pd.to_datetime(pd.Series(MOMENTS), utc=True).dt.tz_convert("Europe/Berlin")
    return pd.DataFrame(
        {
            "age": pd.array([3, None, 41], "Int64"),
            "flag": pd.array([True, None, False], "boolean"),
            "town": pd.Categorical(["Ulm", None, "Jena"]),
            "seen": seen,
        }
    )


def polars_frame(town: Any) -> pl.DataFrame:
    seen = pl.Series(MOMENTS).str.to_datetime(time_zone="Europe/Berlin")
    return pl.DataFrame(
        {
            "age": pl.Series([3, None, 41], dtype=pl.UInt8),
            "flag": [True, None, False],
            "town": pl.Series(["Ulm", None, "Jena"], dtype=town),
            "seen": seen,
        }
    )


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": pandas_frame,
    "pandas with arrow types": lambda: pandas_frame().convert_dtypes(dtype_backend="pyarrow"),
    "polars categories": lambda: polars_frame(pl.Categorical),
    "polars enums": lambda: polars_frame(pl.Enum(["Jena", "Kiel", "Ulm"])),
}


@pytest.mark.parametrize("name", FRAMES)
def test_typed_frames_and_their_parquet_files_come_through_whole(name: str, tmp_path: Path) -> None:
    frame = FRAMES[name]()
    assert_whole(frame, TYPED, TYPED_ROWS)
    path = tmp_path / "a.parquet"
    frame.to_parquet(path) if isinstance(frame, pd.DataFrame) else frame.write_parquet(path)
    assert_whole(path, TYPED, TYPED_ROWS)


def test_parquet_types_of_databases_come_through_whole(tmp_path: Path) -> None:
    noon = datetime(2023, 1, 5, 12, 0, 30, 123456, UTC)
    columns = {
        "pay": pa.array([Decimal("1827.50"), None], pa.decimal128(38, 10)),
        "large": pa.array([2**62, None], pa.uint64()),
        "day": pa.array([date(2023, 1, 5), None], pa.date32()),
        "seen": pa.array([noon, None], pa.timestamp("us", "UTC")),
    }
    pa.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    large = 'columns.large = {kind = "numeric", low = 0, high = 1e19, nullable = true}\n'
    told = (1827.5, 2.0**62, date(2023, 1, 5), noon.replace(microsecond=0, tzinfo=None))
    assert_whole(tmp_path / "a.parquet", pay() + large + DAY + SEEN, [told, (None,) * 4])


@pytest.mark.parametrize("form", ["", ', format = "%Y-%m-%dT%H:%M%z"'])
def test_moments_of_a_zone_are_written_with_their_offset_and_read_again(form: str) -> None:
    schema = Schema.from_toml(
        'columns.seen = {kind = "datetime", low = 2023-07-05, high = 2023-07-05T23:59:00, '
        f'unit = "minute"{BERLIN}{form}}}'
    )
    codec = TableCodec(schema)
    given = pa.record_batch({"seen": ["2023-07-05T10:20+0200", "2023-07-05T08:20Z"]})
    codes = codec.encode(given).codes
    written = CsvWriting(schema).piece(codec.decode(codes, RNG))
    assert written.count(b"10:20") == written.count(b"+0200") == 2
    assert np.array_equal(next(iter(EncodedTable(written, codec))).codes, codes)


def test_workbooks_and_parquet_files_named_csv_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.csv", "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(SfumatoError, match=r"a\.csv: it is no csv but an Excel workbook"):
        table_rows(tmp_path / "a.csv")
    pa.parquet.write_table(pa.table({"age": [1]}), tmp_path / "b.csv")
    with pytest.raises(SfumatoError, match=r"b\.csv: it is no csv but a parquet file"):
        table_rows(tmp_path / "b.csv")


@pytest.mark.parametrize("name", ["PAR1", "[id]", "<age>", "{x}", "sep"])
def test_names_that_only_look_like_another_format_are_names(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{name},age\n1,2\n")
    assert table_rows(tmp_path / "a.csv").names == [name, "age"]


def test_the_line_that_is_in_another_encoding_is_named_in_long_files(tmp_path: Path) -> None:
    lines = [b"town,age"] + [b"Ulm,3"] * 5000
    lines[4000] = "Köln,4".encode("latin-1")
    for end in (b"\n", b"\r\n", b"\r"):
        (tmp_path / "a.csv").write_bytes(end.join(lines))
        with pytest.raises(SfumatoError, match="line 4001 is not in UTF-8"):
            EncodedTable(tmp_path / "a.csv", TableCodec(Schema.from_toml(TOWN + AGE))).review()
