"""Record and replay from raw bytes: one row never changes how another is read.

Neighbouring files and frames are drawn, hostile rows among them, and go the whole way into encoded
rows. The neighbour's rows must be the same rows less one, in order, or one of both inputs is
refused with a clear line, which costs nothing.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

from sfumato.data import workers
from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import encoded_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.schema import Boolean, Categorical, Datetime, Identifier, Images, Numeric, Schema

PAIRS = 240  # drawn for each format; there are twelve of them

SCHEMA = Schema(
    columns={
        "number": Numeric(low=-5, high=50, nullable=True),
        "code": Categorical(values=(1, 2, 2.5), other=True, nullable=True),
        "word": Categorical(values=("a", "b c", "1.0"), other=True),
        "flag": Boolean(nullable=True),
        "day": Datetime(low=datetime(2020, 1, 1), high=datetime(2024, 12, 31), nullable=True),
    }
)
UNITS = Schema(columns={**SCHEMA.columns, "who": Identifier(unit=True)})
NAMES = [*SCHEMA.columns, "who", "note"]

# What people and programs write, and what an attacker would.
TEXTS: dict[str, list[str]] = {
    "number": ["1", "2.50", "-3", "1e1", "", "NA", "1,5", "inf", "nan", "999999", "٣"],
    "code": ["1", "2", "1.0", "2.5", "2.50", "x", "", "01", "1e0"],
    "word": ["a", "b c", " a ", "1.0", "1", 'say "no"', "it's", "ü", "-", "#", "a,b", "a;b"],
    "flag": ["true", "False", "1", "0", "YES", "f", "", "maybe"],
    "day": ["2020-02-03", "2021-01-01T10:00", "2020-02-30", "soon", "", "2022-05-06 07:08:09.25"],
    "who": ["7", "8", "9007199254740993", "x", ""],
    "note": ["", "fine", '"', '""', 'open "', "a\\", "tab\t", "\ufeff", "$x$", "'"],
}
# Written as they are, without quoting: what a broken export, or an attacker, leaves.
RAW = ['"open', 'a"b"', '"x" y', "a\rb", "a\nb", '"a\nb"', '""', '"', "\x00", "\x1a", '",', "\\"]


def texts(rng: np.random.Generator, rows: int) -> list[list[str]]:
    return [[str(rng.choice(TEXTS[name])) for name in NAMES] for _ in range(rows)]


def line(row: list[str], quoting: int) -> str:
    """Write a row of csv as some program would."""
    out = io.StringIO()
    csv.writer(out, quoting=quoting, lineterminator="").writerow(row)
    return out.getvalue()


def csv_pair(
    folder: Path, rng: np.random.Generator, name: str, encode: Callable[[str], bytes]
) -> tuple[Path, Path]:
    rows, place = texts(rng, 12), int(rng.integers(12))
    quoting = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    end = str(rng.choice(["\n", "\r\n", "\r"]))
    lines = [line(row, quoting) for row in rows]
    if rng.random() < 0.6:
        spoilt = list(rows[place])
        spoilt[int(rng.integers(len(NAMES)))] = str(rng.choice(RAW))
        lines[place] = ",".join(spoilt)
    head = ",".join(NAMES)
    with_row = end.join([head, *lines]) + end
    without = end.join([head, *lines[:place], *lines[place + 1 :]]) + end
    paths = folder / f"with{name}", folder / f"without{name}"
    for path, content in zip(paths, (with_row, without), strict=True):
        path.write_bytes(encode(content))
    return paths


def plain_csv(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    mark = "\ufeff" if rng.random() < 0.3 else ""
    return csv_pair(folder, rng, ".csv", lambda text: (mark + text).encode("utf-8"))


def cut_csv(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    """Files that are read in several parts, as large ones are."""
    return plain_csv(folder, rng)


def zipped_csv(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    return csv_pair(folder, rng, ".csv.gz", lambda text: gzip.compress(text.encode("utf-8")))


def latin_csv(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    coding = str(rng.choice(["latin-1", "utf-16", "utf-8"]))
    return csv_pair(folder, rng, ".csv", lambda text: text.encode(coding, errors="replace"))


VALUES: dict[str, list[list[Any]]] = {
    "number": [[1, 2, 30, None], [1.5, 2.0, None, np.nan], [Decimal("1.5"), Decimal("2.25")]],
    "code": [
        [1, 2, None],
        [1.0, 2.0, 2.5, None],
        [Decimal("2.5"), Decimal("1.00")],
        ["1", "2.50"],
        [Decimal(1), Decimal(2), Decimal("0.0000001")],
    ],
    "word": [["a", "b c", None], ["1.0", "1"], [b"a", b"z"]],
    "flag": [[True, False, None], ["True", "no", None], [1, 0], [1.0, 0.0, None]],
    "day": [["2020-02-03", "soon", None], [None]],
    "who": [[7, 8, None], [2**53 + 1, 2**53, None], ["x", "y"], [7.0, 8.5]],
    "note": [["n"], [None, 1]],
}
STRANGE: list[Any] = [
    None, "unknown", 1.25, True, Decimal("1.125"), Decimal("1e-9"), b"a", 2**53 + 1, np.nan, (1, 2),
    pd.Timestamp(0),
]  # fmt: skip


def values(rng: np.random.Generator, rows: int = 12) -> tuple[dict[str, list[Any]], int]:
    """Draw columns of one kind each, and a row in which some value may be strange."""
    table = {
        name: [kinds[k][int(rng.integers(len(kinds[k])))] for _ in range(rows)]
        for name, kinds in VALUES.items()
        for k in [int(rng.integers(len(kinds)))]
    }
    place = int(rng.integers(rows))
    if rng.random() < 0.6:
        table[str(rng.choice(NAMES))][place] = STRANGE[int(rng.integers(len(STRANGE)))]
    return table, place


def without(table: dict[str, list[Any]], place: int) -> dict[str, list[Any]]:
    return {name: column[:place] + column[place + 1 :] for name, column in table.items()}


def pandas_frames(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    table, place = values(rng)
    return pd.DataFrame(table), pd.DataFrame(without(table, place))


def pandas_categories(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    pair = pandas_frames(folder, rng)
    return tuple(frame.astype({"code": "category", "word": "category"}) for frame in pair)  # type: ignore[return-value]


def polars_frames(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    table, place = values(rng)
    return pl.DataFrame(table, strict=True), pl.DataFrame(without(table, place), strict=True)


def arrow_tables(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    table, place = values(rng)
    return pa.table(table), pa.table(without(table, place))


def parquet_files(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    paths = folder / "with.parquet", folder / "without.parquet"
    for path, table in zip(paths, arrow_tables(folder, rng), strict=True):
        pa.parquet.write_table(table, path, row_group_size=int(rng.integers(1, 15)))
    return paths


IMAGES = Images(height=2, width=3, classes=(2, "cat", True, 7.5))
LABELS: list[list[Any]] = [
    [2.0, 7.5, 1.0],
    [2, 1],
    ["cat", "dog", "2", "2.0"],
    [True, False],
    [b"2"],
]


def pictures(rng: np.random.Generator) -> tuple[np.ndarray, list[Any], int]:
    kind = LABELS[int(rng.integers(len(LABELS)))]
    labels = [kind[int(rng.integers(len(kind)))] for _ in range(9)]
    place = int(rng.integers(9))
    if rng.random() < 0.6:
        strange: list[Any] = ["unknown", None, 3.25, True, np.float32(2), b"cat", float("nan")]
        labels[place] = strange[int(rng.integers(len(strange)))]
    return rng.integers(0, 256, (9, 2, 3), dtype=np.uint8), labels, place


def arrays_with_lists(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    x, y, place = pictures(rng)
    return (x, y), (np.delete(x, place, axis=0), y[:place] + y[place + 1 :])


def npz_files(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    (x, y), (less, rest) = arrays_with_lists(folder, rng)
    # An archive holds typed arrays: labels of one type, or texts.
    kind = str if any(isinstance(label, str | type(None) | bytes) for label in y) else float
    paths = folder / "with.npz", folder / "without.npz"
    np.savez(paths[0], x=x, y=np.array(y, kind))
    np.savez(paths[1], x=less, y=np.array(rest, kind))
    return paths


def picture_folders(folder: Path, rng: np.random.Generator) -> tuple[Any, Any]:
    x, _, place = pictures(rng)
    names = [str(rng.choice(["cat", "2", "2.0", "True"])) for _ in x]
    for where, left_out in (("with", None), ("without", place)):
        for index, (image, name) in enumerate(zip(x, names, strict=True)):
            if index != left_out:
                (folder / where / name).mkdir(parents=True, exist_ok=True)
                size = (3, 2) if index % 3 else (5, 4)
                Image.fromarray(image).resize(size).save(folder / where / name / f"{index}.png")
    return folder / "with", folder / "without"


TABLES = [
    plain_csv, cut_csv, zipped_csv, latin_csv, pandas_frames, pandas_categories, polars_frames,
    arrow_tables, parquet_files,
]  # fmt: skip
PICTURES = [arrays_with_lists, npz_files, picture_folders]


def rows_of(data: Any, codec: TableCodec | ImageCodec, most: int = 1) -> list[bytes] | None:
    """Give each encoded row's bytes; None where the data are refused."""
    try:
        batches = list(encoded_rows(data, codec, most))
    except SfumatoError as refused:
        assert 0 < len(str(refused)) < 400  # noqa: PT017
        return None
    # Which of its unit's rows a row is, in a last column, is no matter of reading it.
    columns = len(codec.names) if isinstance(codec, TableCodec) else 1
    return [
        batch.codes[row, :columns].tobytes() + batch.unit[row].tobytes()
        for batch in batches
        for row in range(len(batch))
    ]


def same_but_one(rows: list[bytes], neighbour: list[bytes]) -> bool:
    """Tell whether the neighbour's are the same rows, in order, less one, or all of them."""
    start = next(
        (i for i, (a, b) in enumerate(zip(rows, neighbour, strict=False)) if a != b), len(neighbour)
    )
    return rows == neighbour or rows[:start] + rows[start + 1 :] == neighbour


def pairs_of(make: Any, folder: Path) -> Iterator[tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    for number in range(PAIRS):
        place = folder / str(number)
        place.mkdir()
        try:
            yield make(place, rng)
        except (TypeError, ValueError, pa.ArrowException, pl.exceptions.PolarsError, OverflowError):
            continue  # the library that makes the frame refuses the mixture itself


@pytest.mark.parametrize("make", TABLES, ids=lambda make: make.__name__)
def test_one_row_of_a_table_never_changes_another(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if make is cut_csv:
        monkeypatch.setattr(workers, "PART_BYTES", 120)
    read = 0
    for data, neighbour in pairs_of(make, tmp_path):
        for schema in (SCHEMA, UNITS):
            rows = rows_of(data, TableCodec(schema), 2)
            fewer = rows_of(neighbour, TableCodec(schema), 2)
            if rows is None or fewer is None:
                continue
            read += 1
            if schema is UNITS:
                # Without a row of a unit, its next one may be let in: one row goes, one comes.
                many, few = Counter(rows), Counter(fewer)
                assert (many - few).total() <= 1, (data, neighbour)
                assert (few - many).total() <= 1, (data, neighbour)
            else:
                assert same_but_one(rows, fewer), (data, neighbour)
    assert read > PAIRS / 4  # refusing everything would be no proof


@pytest.mark.parametrize("make", PICTURES, ids=lambda make: make.__name__)
def test_one_picture_never_changes_another(make: Any, tmp_path: Path) -> None:
    read = 0
    for data, neighbour in pairs_of(make, tmp_path):
        rows, fewer = rows_of(data, ImageCodec(IMAGES)), rows_of(neighbour, ImageCodec(IMAGES))
        if rows is not None and fewer is not None:
            read += 1
            assert same_but_one(rows, fewer), (data, neighbour)
    assert read > PAIRS / 2
