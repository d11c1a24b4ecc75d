"""Image sets: npz, idx and folders of pictures, as re-iterable batches, and back to files."""

from __future__ import annotations

import copy
import gzip
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from sfumato.data.spelling import Spellings
from sfumato.errors import SfumatoError, listing, not_read
from sfumato.schema import Images
from sfumato.storage import local

Labels = Sequence[Any] | NDArray[Any]

_BATCH = 2048
_PICTURES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
_SHOWN = 3
# What the decoders of pictures and archives make of damaged ones.
_DAMAGE = (
    OSError, EOFError, ValueError, SyntaxError, LookupError, OverflowError, struct.error,
    zlib.error, lzma.LZMAError, zipfile.BadZipFile,
    RuntimeError,  # of archives with a password, or a compression that Python does not know
)  # fmt: skip


class ImageRows(Protocol):
    """An image set that can be read again and again."""

    def batches(self) -> Iterator[tuple[NDArray[np.uint8], Labels | None]]:
        """Read pixels (n, height, width, channels) and labels."""

    def parts(self) -> Sequence[ImageRows]:
        """Give parts that other processes can read; itself where it cannot be divided."""


class ArrayRows:
    """Images in memory: `x` (n, height, width[, channels]) of uint8 and labels `y`."""

    def __init__(self, x: NDArray[np.uint8], y: Labels | None, images: Images) -> None:
        self.x, self.y = x, y
        _check_shape("the array x", x.shape[1:], x.dtype, images)
        if y is not None and len(y) != len(x):
            raise SfumatoError(f"there are {len(x)} images but {len(y)} labels")
        if images.classes and y is None:
            raise SfumatoError("there are no labels, but the schema has classes")

    def batches(self) -> Iterator[tuple[NDArray[np.uint8], Labels | None]]:
        """Read slices."""
        for start in range(0, len(self.x), _BATCH):
            labels = None if self.y is None else self.y[start : start + _BATCH]
            yield _four(self.x[start : start + _BATCH]), labels

    def parts(self) -> list[ArrayRows]:
        """Give itself."""
        return [self]


class StreamedRows:
    """Images in a file whose header gives their shape: read piece by piece."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[IO[bytes]]],
        header: Callable[[IO[bytes]], tuple[tuple[int, ...], np.dtype[Any]]],
        labels: Labels | None,
        place: str,
        images: Images,
    ) -> None:
        self._opened, self._header, self._labels = opened, header, labels
        self._place = place
        with opened() as stream:
            shape, dtype = header(stream)
        _check_shape(place, shape[1:], dtype, images)
        if images.classes and (labels is None or len(labels) != shape[0]):
            raise SfumatoError(f"{place} has no label for each image, but the schema has classes")

    def batches(self) -> Iterator[tuple[NDArray[np.uint8], Labels | None]]:
        """Read pieces of the file."""
        with self._opened() as stream:
            shape, _ = self._header(stream)
            for start in range(0, shape[0], _BATCH):
                count = min(_BATCH, shape[0] - start)
                labels = None if self._labels is None else self._labels[start : start + count]
                yield _four(self._read(stream, (count, *shape[1:]))), labels

    def parts(self) -> list[StreamedRows]:
        """Give itself."""
        return [self]

    def _read(self, stream: IO[bytes], shape: tuple[int, ...]) -> NDArray[np.uint8]:
        try:
            data = stream.read(int(np.prod(shape)))
            return np.frombuffer(data, np.uint8).reshape(shape)
        except _DAMAGE as error:
            damaged = f"{self._place} cannot be read to its end: it is damaged"
            raise not_read(self._place, error, damaged) from None


class FolderRows:
    """A folder of pictures, one subfolder per class; resized to the schema's size."""

    def __init__(self, folder: Path, images: Images) -> None:
        self._images = images
        pictures = sorted(p for p in folder.rglob("*") if p.suffix.lower() in _PICTURES)
        if not pictures:
            raise SfumatoError(f"{folder} holds no pictures")
        self._files = [(p, p.relative_to(folder).parts[0]) for p in pictures]
        if images.classes:
            self._check_classes(folder)

    def _check_classes(self, folder: Path) -> None:
        """Refuse pictures without a class, and folders that are not named after one."""
        flat = [path.name for path, _ in self._files if path.parent == folder]
        if flat:
            raise SfumatoError(
                f"{folder} holds pictures without a class ({_few(flat)}): put them into one folder "
                "per class, or remove classes from the schema"
            )
        labels = list(dict.fromkeys(label for _, label in self._files))
        places = Spellings(self._images.classes).find(pa.array(labels)).to_pylist()
        unknown = [label for label, place in zip(labels, places, strict=True) if place is None]
        if unknown:
            raise SfumatoError(
                f"{folder} has folders that are no classes of the schema ({_few(unknown)}): list "
                "them under classes, or move them out"
            )

    def batches(self) -> Iterator[tuple[NDArray[np.uint8], Labels | None]]:
        """Read pictures one by one."""
        for start in range(0, len(self._files), _BATCH):
            files = self._files[start : start + _BATCH]
            pixels = np.stack([self._read(path) for path, _ in files])
            yield _four(pixels), [label for _, label in files]

    def parts(self) -> list[FolderRows]:
        """Divide the list of pictures."""
        found = []
        for start in range(0, len(self._files), _BATCH):
            part = copy.copy(self)
            part._files = self._files[start : start + _BATCH]
            found.append(part)
        return found

    def _read(self, path: Path) -> NDArray[np.uint8]:
        size = (self._images.width, self._images.height)
        try:
            with Image.open(path) as picture:
                plain = picture.convert("L" if self._images.channels == 1 else "RGB")
                return np.asarray(plain if plain.size == size else plain.resize(size))
        except Image.DecompressionBombError:
            raise SfumatoError(f"the picture {path} has too many pixels: make it smaller") from None
        except _DAMAGE as error:
            damaged = f"cannot read the picture {path}: remove or repair it"
            raise not_read(path, error, damaged) from None


def image_rows(data: Any, images: Images) -> ImageRows:
    """Open an image set: npz, idx, a folder, or a pair of arrays (x, y)."""
    if isinstance(data, tuple) and len(data) == 2:
        return ArrayRows(np.asarray(data[0]), data[1], images)
    if not isinstance(data, str | Path):
        raise SfumatoError(f"cannot read images from a {type(data).__name__}")
    path = local(data)
    if not path.exists():
        raise SfumatoError(f"there is no file {path}")
    if path.is_dir():
        return FolderRows(path, images)
    if path.suffix == ".npz":
        return _npz_rows(path, images)
    if "idx" in path.name:
        return _idx_rows(path, images)
    raise SfumatoError(f"cannot tell what {path} is: images come as .npz, idx or a folder")


def _npz_rows(path: Path, images: Images) -> ImageRows:
    def header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0}.get(
            version, np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(stream)
        if fortran:
            raise SfumatoError(f"{path}: save x in C order (numpy.ascontiguousarray)")
        return shape, dtype

    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
        if "x.npy" not in members:
            raise SfumatoError(f"{path} has no array x; it has {listing(members)}")
        with np.load(path, allow_pickle=False) as arrays:
            labels = arrays["y"] if "y.npy" in members else None
        if labels is not None and (labels.ndim != 1 or labels.dtype.kind not in "biufSU"):
            raise SfumatoError(f"{path}: y must hold one label, a text or a number, for each image")
        return StreamedRows(
            lambda: zipfile.ZipFile(path).open("x.npy"), header, labels, f"{path}, x", images
        )
    except _DAMAGE as error:
        raise not_read(path, error, f"{path} is not a readable npz file") from None


def _idx_rows(path: Path, images: Images) -> ImageRows:
    def opened(file: Path) -> IO[bytes]:
        return gzip.open(file) if file.suffix == ".gz" else file.open("rb")  # type: ignore[return-value]

    def header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        magic = stream.read(4)
        if len(magic) < 4 or magic[:3] != b"\0\0\x08":
            raise SfumatoError(f"{path} is not an idx file of bytes")
        shape = np.frombuffer(stream.read(4 * magic[3]), ">i4")
        if (shape < 0).any():
            raise ValueError("a size below zero")
        return tuple(int(size) for size in shape), np.dtype(np.uint8)

    labels = None
    beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    try:
        if beside != path and beside.exists():
            with opened(beside) as stream:
                count = header(stream)[0][0]
                labels = np.frombuffer(stream.read(count), np.uint8)
        return StreamedRows(lambda: opened(path), header, labels, str(path), images)
    except _DAMAGE as error:
        damaged = f"{path}, or the labels beside it, is damaged"
        raise not_read(path, error, damaged) from None


def _check_shape(place: str, shape: tuple[int, ...], dtype: np.dtype[Any], images: Images) -> None:
    wanted = (images.height, images.width, images.channels)
    if dtype != np.uint8:
        raise SfumatoError(f"{place} holds {dtype}; images are uint8 from 0 to 255")
    if (shape if len(shape) == 3 else (*shape, 1)) != wanted:
        raise SfumatoError(f"{place} has images of shape {shape}; the schema says {wanted}")


def _few(names: Sequence[str]) -> str:
    return listing(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def _four(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return pixels if pixels.ndim == 4 else pixels[..., None]
