"""For the owner's eyes: a first schema of a table, and how the data fit a schema.

`draft_schema` writes no value of the data. What `reviewed` says is private.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.data.csv_rows import CsvRows
from sfumato.data.image_codec import ImageCodec
from sfumato.data.review import Review
from sfumato.data.rows import EncodedImages, EncodedTable
from sfumato.data.sources import ParquetRows, table_rows
from sfumato.data.table_codec import TableCodec
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


def reviewed(data: Any, schema: Schema) -> tuple[Review, list[str]]:
    """Hold data against a schema, and name the columns that the schema leaves out. Private."""
    if schema.images:
        return EncodedImages(data, ImageCodec(schema.images)).review(), []
    review = EncodedTable(data, TableCodec(schema), max_rows_per_unit=1).review()
    return review, [
        name for name in table_rows(data, form=schema.csv).names if name not in schema.columns
    ]


def _typed_fields(data: Any) -> pa.Schema:
    rows = table_rows(data)
    if isinstance(rows, CsvRows | ParquetRows):
        return rows.first_kinds()
    return next(iter(rows.batches(rows.names)), pa.record_batch({})).schema


def _kind(arrow: pa.DataType) -> str:
    if pa.types.is_boolean(arrow):
        return "boolean"
    if pa.types.is_integer(arrow):
        return "integer"
    if pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return "numeric"
    return "datetime" if pa.types.is_temporal(arrow) else "categorical"
