"""For the owner's eyes: a first schema of a table, and how the data fit a schema.

`draft_schema` writes no value of the data. What `misfits` says is private.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from sfumato.data.codes import code_of
from sfumato.data.sources import CsvRows, ParquetRows, table_rows
from sfumato.schema import Schema, toml_key

_HEADER = """\
# Fill in the open lines from public knowledge: a code book, physical limits, opening hours.
# Bounds and categories that are read from the private rows would leak them: an unusual salary
# as the upper bound is that person's salary. Values outside the bounds are clamped, so rather
# take wide ones. Kinds were guessed from the first rows: confirm them, too, from what is public.
# Columns that you remove are left out.
"""
_OPEN = {
    "numeric": ["low = ", "high = "],
    "integer": ["low = ", "high = "],
    "categorical": ['values = ["…", "…"]', "other = true     # a cell for values not listed"],
    "boolean": [],
    "datetime": [
        "low = 2000-01-01",
        "high = 2030-12-31",
        'unit = "day"     # hour, minute, second',
    ],
}


def draft_schema(data: Any) -> str:
    """Write names and kinds as TOML, with the bounds left open."""
    sections = []
    for field in _typed_fields(data):
        kind = _kind(field.type)
        opened = "".join(f"# {line}\n" for line in _OPEN[kind])
        sections.append(f'[columns.{toml_key(field.name)}]\nkind = "{kind}"\n{opened}')
    return "\n".join([_HEADER, *sections])


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


def _typed_fields(data: Any) -> pa.Schema:
    rows = table_rows(data)
    if isinstance(rows, CsvRows):
        with pa.csv.open_csv(pa.input_stream(str(rows.path), compression="detect")) as reader:
            return reader.schema
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
