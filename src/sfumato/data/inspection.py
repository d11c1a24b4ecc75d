"""For the owner's eyes: a first schema of a table, and how the data fit a schema.

`draft_schema` writes no value of the data. What `reviewed` says is private.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.data.codebook import Codebook, Settings
from sfumato.data.csv_header import header_line, likely_format
from sfumato.data.csv_rows import CsvRows
from sfumato.data.databases import DatabaseRows
from sfumato.data.draft import Draft
from sfumato.data.image_codec import ImageCodec
from sfumato.data.review import Review
from sfumato.data.rows import EncodedImages, EncodedTable
from sfumato.data.sources import ParquetRows, table_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError, quoted
from sfumato.schema import CsvFormat, Schema, validated


def draft_schema(
    data: Any, book: Codebook = Codebook(), said: Mapping[str, str] | None = None
) -> Draft:
    """Put together the names of the columns, their kinds, and what a code book says of them.

    What is `said` of csv files goes before what a code book says, and that before a guess.
    """
    csv: Settings | None = dict(said) if said else None
    path = Path(data) if isinstance(data, str | Path) else None
    if path and path.name.lower().endswith((".csv", ".csv.gz")) and path.is_file():
        csv = likely_format(header_line(path)) | book.csv | (csv or {})
    form = validated(f"{book.origin}, [csv]", CsvFormat, csv) if csv else None
    fields = _typed_fields(data, form)
    # Row numbers and the ends of lines often have no name: nothing to model.
    named = {field.name: _kind(field.type) for field in fields if field.name}
    return Draft(named, book, csv)


def reviewed(data: Any, schema: Schema) -> tuple[Review, list[str]]:
    """Hold data against a schema, and name the columns that the schema leaves out. Private."""
    if schema.images:
        return EncodedImages(data, ImageCodec(schema.images), None).review(), []
    review = EncodedTable(data, TableCodec(schema), workers=None).review()
    return review, [
        name for name in table_rows(data, form=schema.csv).names if name not in schema.columns
    ]


def _typed_fields(data: Any, form: CsvFormat | None = None) -> pa.Schema:
    rows = table_rows(data, form=form)
    twice = [name for name in rows.names if name and rows.names.count(name) > 1]
    if twice:
        raise SfumatoError(f"the data have two columns of the same name: {quoted(twice[0])}")
    if isinstance(rows, CsvRows | ParquetRows | DatabaseRows):
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
