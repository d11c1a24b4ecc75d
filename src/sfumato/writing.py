"""Synthetic data to files: csv or parquet for tables, npz or a folder of PNGs for images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.errors import SfumatoError
from sfumato.images import check_folder_names, write_folder, write_npz
from sfumato.schema import Schema
from sfumato.storage import reserved


@dataclass(frozen=True)
class ImageSet:
    """Synthetic images: pixels (n, height, width, channels) and their labels, if any."""

    x: NDArray[np.uint8]
    y: NDArray[Any] | None


def check_output(path: Path, schema: Schema, data: Path | None = None) -> None:
    """Refuse an output that could not be written, before anything is spent.

    Nor may synthetic data lie among private data, or among those of another model.
    """
    if data is not None and data.resolve() in (path.resolve(), *path.resolve().parents):
        raise SfumatoError(f"{path}: write synthetic data somewhere else than the private data")
    if path.is_dir() and any(path.iterdir()):
        raise SfumatoError(f"{path}: the folder is not empty; name a new one")
    if schema.images:
        if path.suffix not in ("", ".npz"):
            raise SfumatoError(f"{path}: images are written to .npz or to a folder")
        if not path.suffix:
            check_folder_names(schema.images.classes)
    elif path.suffix not in (".csv", ".parquet"):
        raise SfumatoError(f"{path}: a table is written to .csv or .parquet")


def write_synthetic(path: Path, data: pa.Table | ImageSet) -> None:
    """Write a synthetic table or image set by the ending of its path."""
    if isinstance(data, ImageSet):
        if path.suffix == ".npz":
            with reserved(path) as file:
                write_npz(file, data.x, data.y)
        else:
            write_folder(path, data.x, data.y)
        return
    with reserved(path) as file:
        if path.suffix == ".csv":
            pa.csv.write_csv(data, file)
        else:
            pa.parquet.write_table(data, file)
