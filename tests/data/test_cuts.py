"""Where a source is cut changes nothing: into parts, pieces, batches, row groups or chunks.

Hostile inputs are drawn and read with cuts of all sizes. The same rows come out, in the same order,
or the input is refused whatever the cuts; and a line more or less is a row more or less.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.data import csv_lines, csv_rows, databases, frames, image_sources, sources, workers
from sfumato.data.csv_rows import CsvRows
from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import encoded_rows
from sfumato.data.sources import TableRows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.schema import Categorical, CsvFormat, Images, Numeric, Schema

FILES = 120  # drawn for each form
CUTS = 6  # of each file
LONGEST = 256  # bytes of a line

MARK = "\ufeff"
FIELDS = [
    "a", "b", "1", "2.50", " 3 ", "", " ", "\t", "NA", "null", "nan", "-", ".", "?", "a,b", "a;b",
    MARK, MARK + "a", MARK + MARK, MARK + '"a"', '"', '""', '"open', '"a"', '"a"b', 'a"b', '"a,b"',
    '"a""b"', "\x00", "\x00a", "\x1a", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\u00a0",
    "word", "word,number", "sep=;", "sep=,", "#", "\\", "\\n", "'", "ü", "€", "😀", "ÿþ", "ï»¿a",
    '"' + MARK + '"', "x" * 60, "x" * 250, "x" * 300, "x" * 600,
]  # fmt: skip
BREAKS = ["a\rb", "\r", "\ra", "a\nb", '"a\nb"', '"a\rb"', '"\r"', "\n", '"a\r\nb"', "\r\r"]
BYTES = [b"\xff", b"\xef", b"\xef\xbb", b"\xc3", b"\xed\xa0\x80", b"\x81", b"\xfe\xff", b"\xff\xfe"]
CODINGS = ["utf-8", "utf-8", "utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-be",
           "gb18030", "utf-32", "ascii"]  # fmt: skip
NAMES = ["word", "number", "note"]


def draw(rng: np.random.Generator, some: Any) -> Any:
    return some[int(rng.integers(len(some)))]


def line(rng: np.random.Generator, columns: int, coding: str, breaks: bool) -> bytes:
    """Draw a line: mostly plain, with something hostile in one of its columns."""
    fields = [draw(rng, ["a", "b", "7", ""]) for _ in range(columns)]
    if rng.random() < 0.3:
        fields[int(rng.integers(columns))] = draw(rng, FIELDS)
    if breaks and rng.random() < 0.03:
        fields[int(rng.integers(columns))] = draw(rng, BREAKS)
    if rng.random() < 0.05:
        return b"" if rng.random() < 0.7 else ",".join(fields[1:]).encode(coding, "replace")
    written = ",".join(fields).encode(coding, "replace")
    if rng.random() < 0.02 and "16" not in coding and "32" not in coding:
        written = draw(rng, BYTES) + written
    return written


def bare(coding: str) -> str:
    """Give the encoding without a mark at the start of each text."""
    return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(coding, coding)


def csv_lines_of(
    rng: np.random.Generator, breaks: bool
) -> tuple[str, list[str], bytes, bytes, list[bytes]]:
    """Draw an encoding, columns, what comes before the rows, the end of a line, and the rows."""
    coding = draw(rng, CODINGS)
    names = NAMES[: int(draw(rng, [1, 1, 3]))]
    end = draw(rng, ["\n", "\n", "\r\n", "\r"]).encode(bare(coding))
    start = "" if coding == bare(coding) and rng.random() < 0.7 else MARK
    for _ in range(int(draw(rng, [0, 0, 0, 3]))):
        start += end.decode(bare(coding))
    head = (start + ",".join(names)).encode(bare(coding), "ignore")
    lines = [line(rng, len(names), bare(coding), breaks) for _ in range(int(rng.integers(1, 15)))]
    return coding, names, head + end, end, lines


def written(path: Path, head: bytes, end: bytes, lines: list[bytes], last: bool) -> Path:
    """Write a csv, with an end of its last line or without; gzipped in several members."""
    content = head + end.join(lines) + (end if last else b"")
    if path.suffix == ".gz":
        middle = len(content) // 2
        content = gzip.compress(content[:middle]) + gzip.compress(content[middle:])
    path.write_bytes(content)
    return path


def texts(rows: TableRows, names: list[str]) -> list[tuple[Any, ...]] | None:
    """Give all values, as they are read; None where the source is refused."""
    try:
        batches = [batch for part in rows.parts() for batch in part.batches(names)]
    except SfumatoError as refused:
        assert 0 < len(str(refused)) < 400  # noqa: PT017
        return None
    return [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


def opened(path: Path, names: list[str], coding: str) -> list[tuple[Any, ...]] | None:
    try:
        return texts(CsvRows(path, CsvFormat(encoding=coding)), names)
    except SfumatoError:
        return None


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that sets the sizes of all cuts of a csv."""
    monkeypatch.setattr(csv_lines, "LONGEST_LINE", LONGEST)

    def sizes(part: int, piece: int) -> None:
        monkeypatch.setattr(workers, "PART_BYTES", part)
        monkeypatch.setattr(csv_lines, "PIECE_BYTES", piece)
        monkeypatch.setattr(csv_rows, "_LONG", piece)

    return sizes


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_csv_is_read_the_same_however_it_is_cut(tmp_path: Path, cut: Any, ending: str) -> None:
    rng = np.random.default_rng(1)
    read = 0
    for number in range(2 * FILES):
        coding, names, *content = csv_lines_of(rng, breaks=True)
        path = written(tmp_path / f"{number}{ending}", *content, last=bool(rng.random() < 0.8))
        cut(1 << 20, LONGEST)
        whole = opened(path, names, coding)
        read += bool(whole)
        for _ in range(CUTS):
            cut(int(rng.integers(1, 200)), int(draw(rng, [1, 2, 3, 7, *range(10, 200)])))
            assert opened(path, names, coding) == whole, (path.read_bytes(), coding)
    assert read > FILES / 2  # refusing everything would be no proof


def test_a_line_more_is_a_row_more_and_changes_no_other(tmp_path: Path, cut: Any) -> None:
    rng = np.random.default_rng(2)
    read = 0
    for number in range(2 * FILES):
        coding, names, head, end, lines = csv_lines_of(rng, breaks=False)
        place = int(rng.integers(len(lines)))
        fewer = lines[:place] + lines[place + 1 :]
        cut(int(rng.integers(1, 200)), int(rng.integers(1, 200)))
        found = [
            opened(written(tmp_path / f"{number}.csv", head, end, some, True), names, coding)
            for some in (lines, fewer)
        ]
        if found[0] is None or found[1] is None:
            continue
        read += 1
        more, less = found
        before = len(less)
        for index, (one, other) in enumerate(zip(more, less, strict=False)):
            if one != other:
                before = index
                break
        assert more in (less, less[:before] + more[before : before + 1] + less[before:])
    assert read > FILES / 2


def test_a_mark_at_a_cut_stays_in_its_row(tmp_path: Path, cut: Any) -> None:
    for coding in ("utf-8", "utf-8-sig"):
        path = tmp_path / f"{coding}.csv"
        path.write_text("word,number\n" + f"{MARK}a,1\nb,2\n" * 9, encoding=coding)
        for size in (1, 5, 8, 13, 1 << 20):
            cut(size, 200)
            expected = [(MARK + "a", "1"), ("b", "2")] * 9
            assert opened(path, ["word", "number"], coding) == expected


def test_a_long_line_is_refused_by_its_number_wherever_it_stands(tmp_path: Path, cut: Any) -> None:
    for before in (0, 1, 40):
        path = tmp_path / "a.csv"
        path.write_text("word\n" + "a\n" * before + "x" * LONGEST + "\n" + "a\n" * 30)
        for part, piece in ((1, 1), (30, 200), (1 << 20, 7)):
            cut(part, piece)
            rows = opened(path, ["word"], "utf-8")
            assert rows is not None
            assert len(rows) == before + 31
        path.write_text("word\n" + "a\n" * before + "x" * LONGEST + "y\n" + "a\n" * 30)
        for part, piece in ((1, 1), (30, 200), (1 << 20, 7)):
            cut(part, piece)
            with pytest.raises(SfumatoError, match=rf"a\.csv: line {before + 2} is longer"):
                [list(part.batches(["word"])) for part in CsvRows(path).parts()]


SCHEMA = Schema(
    columns={
        "word": Categorical(values=("a", "b", "1"), other=True, nullable=True),
        "code": Categorical(values=(1, 2, 2.5), other=True, nullable=True),
        "number": Numeric(low=0, high=9, nullable=True),
    }
)
WORDS = ["a", "b", "1", "1.0", " a", MARK + "a", "", "NA", None, "\x00", "ü", "x" * 300, "\u2028"]
CODES: list[list[Any]] = [[1, 2, None], [1.0, 2.5, None], ["1", "2.50", "x", None]]


def drawn_table(rng: np.random.Generator, rows: int) -> pa.Table:
    words = pa.array([draw(rng, WORDS) for _ in range(rows)], pa.string())
    kind = draw(rng, CODES)
    return pa.table(
        {
            "word": words.dictionary_encode() if rng.random() < 0.5 else words,
            "code": [draw(rng, kind) for _ in range(rows)],
            "number": rng.integers(-1, 12, rows) / float(draw(rng, [1, 4])),
        }
    )


def encoded(data: Any) -> list[bytes]:
    """Give the encoded rows, in order."""
    return [
        batch.codes[row].tobytes() + batch.unit[row].tobytes()
        for batch in encoded_rows(data, TableCodec(SCHEMA))
        for row in range(len(batch))
    ]


def batched(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    for module in (sources, frames, databases):
        monkeypatch.setattr(module, "BATCH_ROWS", rows)


def stored(folder: Path, rng: np.random.Generator, table: pa.Table) -> Iterator[Any]:
    """Give the same table in all forms, with cuts of all sizes."""
    cuts = np.sort(rng.integers(0, len(table) + 1, 3))
    pieces = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]
    # Each piece of a column has a dictionary of its own.
    plain = [piece.set_column(0, "word", piece["word"].cast(pa.string())) for piece in pieces]
    yield pa.concat_tables(pieces)
    yield pa.concat_tables([
        piece.set_column(0, "word", piece["word"].dictionary_encode()) for piece in plain
    ]) if len(table) else table  # fmt: skip
    yield pl.DataFrame(pa.concat_tables(plain))
    frame = table.to_pandas()
    yield frame.astype({"word": object})
    yield frame.astype({"word": "category"})
    for form in ({"use_dictionary": False}, {"dictionary_pagesize_limit": 64}):
        path = folder / "a.parquet"
        size = int(rng.integers(1, 20))
        pa.parquet.write_table(table, path, row_group_size=size, data_page_size=64, **form)
        yield path
    (folder / "many").mkdir()
    for number, piece in enumerate(pieces):
        pa.parquet.write_table(piece, folder / "many" / f"{number}.parquet")
    yield folder / "many"


def test_tables_are_read_the_same_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    for number in range(FILES // 4):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = drawn_table(rng, int(rng.integers(1, 40)))
        batched(monkeypatch, 1 << 16)
        monkeypatch.setattr(sources, "PART_ROWS", 1 << 18)
        expected = encoded(table)
        for form in stored(folder, rng, table):
            batched(monkeypatch, int(rng.integers(1, 20)))
            monkeypatch.setattr(sources, "PART_ROWS", int(rng.integers(1, 20)))
            assert encoded(form) == expected, type(form)


def test_the_type_of_one_file_of_a_folder_changes_no_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    for number in range(FILES // 4):
        folder, expected = tmp_path / str(number), []
        folder.mkdir()
        for place in range(3):
            pa.parquet.write_table(drawn_table(rng, 9), folder / f"{place}.parquet")
            expected += encoded(folder / f"{place}.parquet")
        assert encoded(folder) == expected


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_databases_are_read_the_same_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    rng = np.random.default_rng(5)
    frame = drawn_table(rng, 40).to_pandas().astype({"word": object})
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(tmp_path / "a.duckdb") as base:
            base.execute("CREATE TABLE t AS SELECT * FROM frame")
    else:
        import sqlite3

        with sqlite3.connect(tmp_path / "a.sqlite") as base:
            frame.to_sql("t", base, index=False)
    address = f"{kind}://{tmp_path / f'a.{kind}'}?table=t"
    expected = encoded(address)
    assert len(expected) == 40
    for size in (1, 3, 7, 39, 41):
        batched(monkeypatch, size)
        assert encoded(address) == expected


def test_images_are_read_the_same_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 256, (23, 2, 3), np.uint8)
    y = np.array([draw(rng, ["1", "1.0", "cat", "x"]) for _ in x])
    codec = ImageCodec(Images(height=2, width=3, classes=(1, "cat", "x")))
    np.savez(tmp_path / "a.npz", x=x, y=y)

    def seen(data: Any) -> list[bytes]:
        return [
            batch.codes[row].tobytes() + batch.numbers[row].tobytes()
            for batch in encoded_rows(data, codec)
            for row in range(len(batch))
        ]

    expected = seen((x, y))
    for size in (1, 2, 22, 23, 24):
        monkeypatch.setattr(image_sources, "_BATCH", size)
        assert seen((x, y)) == seen(tmp_path / "a.npz") == expected


def test_numbers_beside_odd_texts_are_read_as_alone() -> None:
    odd = ["1", "01", "-1", "--1", "1-", ".", "-.", "5.", ".5", "-.5", "1.2.3", "", " 1", "9" * 299,
           "9" * 301, "1/2", "-0", "٣", "1e1", "+1", "\x00", MARK + "1", None]  # fmt: skip
    codec = TableCodec(SCHEMA)

    def numbers(texts: list[str | None]) -> list[bytes]:
        table = pa.table({
            "word": pa.nulls(len(texts), pa.string()), "code": pa.nulls(len(texts), pa.string()),
            "number": pa.array(texts, pa.string()),
        })  # fmt: skip
        (batch,) = encoded_rows(table, codec)
        return [c.tobytes() + u.tobytes() for c, u in zip(batch.codes, batch.unit, strict=True)]

    alone = {text: numbers([text])[0] for text in odd}
    rng = np.random.default_rng(7)
    for _ in range(200):
        some = [draw(rng, odd) for _ in range(int(rng.integers(2, 9)))]
        assert numbers(some) == [alone[text] for text in some]
