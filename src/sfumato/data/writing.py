"""Synthetic data to files: csv or parquet for tables, npz or a folder of PNGs for images."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray
from PIL import Image

from sfumato.data.image_codec import Labels
from sfumato.data.image_set import ImageSet
from sfumato.errors import SfumatoError
from sfumato.schema import Schema
from sfumato.storage import reserved


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
