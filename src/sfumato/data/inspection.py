"""For the owner's eyes: a first schema of a table, and how the data fit a schema.

`draft_schema` writes no value of the data. What `misfits` says is private.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.data.codebook import Codebook
from sfumato.data.codes import code_of
from sfumato.data.csv_header import header_line, likely_format
from sfumato.data.draft import Draft
from sfumato.data.sources import ParquetRows, table_rows
from sfumato.errors import SfumatoError
from sfumato.schema import CsvFormat, Schema, validated


def draft_schema(data: Any, book: Codebook = Codebook()) -> Draft:
    """Put together the names of the columns, their kinds, and what a code book says of them."""
    path = Path(data) if isinstance(data, str | Path) else None
    if path and path.name.lower().endswith((".csv", ".csv.gz")) and path.exists():
        csv = likely_format(header_line(path)) | book.csv
        fields = _csv_fields(path, validated(f"{book.origin}, [csv]", CsvFormat, csv))
    else:
        csv, fields = None, _typed_fields(data)
    return Draft({field.name: _kind(field.type) for field in fields}, book, csv)


def misfits(data: Any, schema: Schema) -> Iterator[str]:
    """Say, for each column, which values lie outside the schema. Private."""
    rows = table_rows(data, list(schema.columns))
    codes = {name: code_of(column) for name, column in schema.modelled.items()}
    counts: dict[str, Counter[str]] = {name: Counter() for name in schema.columns}
    for batch in rows.batches(list(schema.columns)):
        for name, column in codes.items():
            counts[name].update(column.outside(batch.column(name)))
    for name, found in counts.items():
        for what, count in found.most_common(5):
            yield f"{name}: {count} × {what}"
        if len(found) > 5:
            yield f"{name}: … and {len(found) - 5} more"
    for name in rows.names:
        if name not in schema.columns:
            yield f"{name}: not in the schema, left out"


def _csv_fields(path: Path, form: CsvFormat) -> pa.Schema:
    """Let Arrow take the types from the first rows; its errors quote them, so they are kept."""
    try:
        with pa.csv.open_csv(
            pa.input_stream(str(path), compression="detect"),
            read_options=pa.csv.ReadOptions(encoding=form.encoding),
            parse_options=pa.csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True),
        ) as reader:
            fields = reader.schema
            names = fields.names
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError):
        raise SfumatoError(
            f"{path} is empty or not well-formed csv: every row needs as many fields as the "
            f"header, divided by {form.delimiter!r}, in {form.encoding}"
        ) from None
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SfumatoError(f"the data have two columns of the same name: '{twice[0]}'")
    return fields


def _typed_fields(data: Any) -> pa.Schema:
    rows = table_rows(data)
    if isinstance(rows, ParquetRows):
        return pa.parquet.read_schema(rows.path)
    return next(iter(rows.batches(rows.names)), pa.record_batch({})).schema


def _kind(arrow: pa.DataType) -> str:
    if pa.types.is_boolean(arrow):
        return "boolean"
    if pa.types.is_integer(arrow):
        return "integer"
    if pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return "numeric"
    return "datetime" if pa.types.is_temporal(arrow) else "categorical"
