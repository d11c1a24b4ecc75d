"""Synthetic data to files: csv or parquet for tables, npz or a folder of PNGs for images."""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray
from PIL import Image

from sfumato.data.codes import DEFAULT_CELLS, NumericCode
from sfumato.data.image_codec import Labels
from sfumato.data.image_set import ImageSet
from sfumato.data.new_table import NewTable
from sfumato.errors import SfumatoError
from sfumato.schema import Column, Datetime, Numeric, Schema
from sfumato.storage import new_folder, reserved

_WITH_OFFSET = "%Y-%m-%d %H:%M:%S%z"  # what Arrow writes; older ones know no fixed offsets


def check_output(path: Path | NewTable, schema: Schema, data: object = None) -> None:
    """Refuse an output that could not be written, before anything is spent.

    Nor may synthetic images lie among those of another model, or a table be that of the `data`.
    """
    if isinstance(path, NewTable):
        if schema.images:
            raise SfumatoError(f"{path.told}: images are written to .npz or to a folder")
        path.check(data)
        return
    if schema.images:
        if path.suffix not in ("", ".npz"):
            raise SfumatoError(f"{path}: images are written to .npz or to a folder")
        if path.is_dir() and any(path.iterdir()):
            raise SfumatoError(f"{path}: the folder is not empty; name a new one")
        if not path.suffix:
            check_folder_names(schema.images.classes)
    elif not path.suffix:
        if path.is_dir() and any(path.iterdir()):
            raise SfumatoError(f"{path}: the folder is not empty; name a new one")
    elif not is_csv(path) and path.suffix != ".parquet":
        raise SfumatoError(
            f"{path}: a table is written to .csv, .csv.gz, .parquet or a folder of parquet files"
        )


def write_synthetic(path: Path, data: pa.Table | ImageSet, schema: Schema) -> None:
    """Write a synthetic table or image set by the ending of its path."""
    if isinstance(data, ImageSet):
        if path.suffix == ".npz":
            with reserved(path) as file:
                write_npz(file, data.x, data.y)
        else:
            with new_folder(path) as folder:
                write_folder(folder, data.x, data.y)
        return
    if not path.suffix:
        with new_folder(path) as folder:
            pa.parquet.write_table(rounded(data, schema), folder / "part-000000.parquet")
        return
    with reserved(path) as file:
        if is_csv(path):
            file.write(CsvWriting(schema, path.suffix == ".gz").piece(data))
        else:
            pa.parquet.write_table(rounded(data, schema), file)


def rounded(table: pa.Table, schema: Schema) -> pa.Table:
    """Leave numbers with the decimals that their cells tell apart; derived ones follow them."""
    for place, name in enumerate(table.column_names):
        column = schema.columns.get(name)
        if isinstance(column, Numeric) and not column.integer and name not in schema.derived:
            values = table[name].combine_chunks()
            numbers = NumericCode.of(column, DEFAULT_CELLS).rounded(
                values.to_numpy(zero_copy_only=False)
            )
            kept = pa.array(numbers, mask=values.is_null().to_numpy(zero_copy_only=False))
            table = table.set_column(place, name, kept)
    return table


@dataclass(frozen=True)
class CsvWriting:
    """How the schema says that its csv files are written; gzipped where that is asked for."""

    schema: Schema
    zipped: bool = False

    def piece(self, table: pa.Table, first: bool = True) -> bytes:
        """Write rows; only the first piece of a file has what begins it, as the names."""
        columns = {
            name: _as_written(values, self.schema.columns.get(name))
            for name, values in zip(
                table.column_names, rounded(table, self.schema).columns, strict=True
            )
        }
        buffer = io.BytesIO()
        options = pa.csv.WriteOptions(include_header=first, delimiter=self.schema.csv.delimiter)
        pa.csv.write_csv(pa.table(columns), buffer, options)
        text = buffer.getvalue()
        if self.schema.csv.encoding != "utf-8":
            encoder = codecs.getincrementalencoder(self.schema.csv.encoding)()
            if not first:
                encoder.encode("\n")  # takes with it the mark that some files begin with
            text = encoder.encode(text.decode(), final=True)
        return gzip.compress(text) if self.zipped else text


def _as_written(values: pa.ChunkedArray, column: Column | None) -> pa.ChunkedArray:
    """Write moments by their format, and numbers with their decimal mark."""
    if isinstance(column, Numeric) and column.decimal != ".":
        return pc.replace_substring(values.cast(pa.string()), ".", column.decimal)
    if isinstance(column, Datetime):
        zoned = pa.types.is_timestamp(values.type) and values.type.tz is not None
        form = column.format or (_WITH_OFFSET if zoned else None)
        if form:
            return pa.chunked_array([[moment_text(v, form) for v in values.to_pylist()]])
    return values


def moment_text(moment: date | datetime | None, form: str) -> str | None:
    """Write a moment by a format of the schema.

    >>> moment_text(date(2023, 5, 1), "%d/%m/%Y")
    '01/05/2023'
    >>> moment_text(datetime(2023, 5, 1, 10), "%Y-%m-%d %H:%M%z")
    '2023-05-01 10:00+0000'
    >>> moment_text(date(1960, 1, 3), "days since 1960-01-01")
    '2'
    """
    if moment is None:
        return None
    if " since " not in form:
        # A format with an offset needs one, or what is written could not be read again.
        zone = getattr(moment, "tzinfo", None) or UTC
        return datetime(*moment.timetuple()[:6], tzinfo=zone).strftime(form)
    unit, _, day = form.split()
    if isinstance(moment, datetime) and moment.tzinfo and unit != "days":
        moment = moment.astimezone(UTC)  # as counts of seconds are
    told = datetime(*moment.timetuple()[:6]) - datetime.fromisoformat(day)
    scale = {"days": 86400.0, "seconds": 1.0, "milliseconds": 0.001}[unit]
    return f"{told.total_seconds() / scale:.15g}"


def is_csv(path: Path) -> bool:
    """Tell an output that is csv by its ending."""
    return path.name.endswith((".csv", ".csv.gz", ".tsv"))


def write_npz(file: BinaryIO, pixels: NDArray[np.uint8], labels: Labels | None) -> None:
    """Write an npz file with the arrays x and, where there are labels, y."""
    arrays = {"x": pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels}
    np.savez_compressed(file, **arrays if labels is None else arrays | {"y": np.asarray(labels)})


def write_folder(folder: Path, pixels: NDArray[np.uint8], labels: Labels | None) -> None:
    """Write a folder of PNGs, one subfolder per class, and nothing outside it."""
    names = [] if labels is None else [str(label) for label in labels]
    check_folder_names(dict.fromkeys(names))
    for index, image in enumerate(pixels):
        place = folder / names[index] if names else folder
        place.mkdir(parents=True, exist_ok=True)
        plain = image[..., 0] if image.shape[-1] == 1 else image
        Image.fromarray(plain).save(place / f"{index:06d}.png")


def check_folder_names(labels: Iterable[Any]) -> None:
    """Refuse class labels that would lead out of a folder."""
    for name in map(str, labels):
        if name in ("", ".", "..") or any(mark in name for mark in "/\\\0"):
            raise SfumatoError(
                f"the class '{name}' cannot name a folder: write the images to .npz instead"
            )
