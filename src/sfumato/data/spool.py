"""A spool: encoded private rows on disk, for as long as one run reads them.

Reading a value costs far more than reading its cell. Where a data set is large and the run has a
folder, its rows are read once; what later questions need is kept there as encoded rows, in files
that only their owner may read. They are removed at the end, or, after a crash, at the next start.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError

_SHORT = 1 << 15


class Spool:
    """A folder of encoded rows, one file for each part of a data set."""

    def __init__(self, folder: Path, cells: int) -> None:
        self._folder = folder
        self._code = pa.int16() if cells <= _SHORT else pa.int32()

    def clear(self) -> None:
        """Remove all rows, also those of a run that was interrupted."""
        if self._folder.is_dir():
            shutil.rmtree(self._folder)

    def open(self) -> None:
        """Make an empty folder that only its owner may enter."""
        self.clear()
        with self._plain_errors():
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700)

    def keep(self, part: int, batches: Iterable[tuple[Batch, pa.Array | None]]) -> int:
        """Write the rows of a part, with their units where they have some; say how many."""
        count = 0
        with self._plain_errors(), self._new_file(f"{part}.arrow") as file:
            writer = None
            for batch, units in batches:
                rows = self._record(batch, units)
                writer = writer or pa.ipc.new_file(file, rows.schema)
                writer.write(rows)
                count += len(batch)
            if writer:
                writer.close()
        return count

    def batches(self, part: int) -> Iterator[tuple[Batch, pa.Array | None]]:
        """Read the rows of a part, and their units."""
        path = self._folder / f"{part}.arrow"
        if not path.stat().st_size:
            return
        with self._plain_errors(), pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                rows = reader.get_batch(number)
                kept = dict(zip(rows.schema.names, rows.columns, strict=True))
                codes = _matrix(kept["codes"]).astype(np.int32)
                numbers = (
                    _matrix(kept["numbers"])
                    if "numbers" in kept
                    else np.empty((len(codes), 0), np.float32)
                )
                yield Batch(codes, numbers), kept.get("units")

    def keep_ordinals(self, part: int, ordinals: NDArray[np.int32]) -> None:
        """Write which of its unit's rows each row of a part is."""
        with self._plain_errors(), self._new_file(f"{part}.npy") as file:
            np.save(file, ordinals)

    def ordinals(self, part: int) -> NDArray[np.int32]:
        """Read which of its unit's rows each row of a part is."""
        with self._plain_errors():
            found: NDArray[np.int32] = np.load(self._folder / f"{part}.npy")
        return found

    def _record(self, batch: Batch, units: pa.Array | None) -> pa.RecordBatch:
        columns = {"codes": _lists(batch.codes, self._code)}
        if batch.numbers.shape[1]:
            columns["numbers"] = _lists(batch.numbers)
        if units is not None:
            columns["units"] = units
        return pa.record_batch(columns)

    def _new_file(self, name: str) -> IO[bytes]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        return open(os.open(self._folder / name, flags, 0o600), "wb")

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SfumatoError(
                f"cannot keep encoded rows in {self._folder}: {error.strerror or error}"
            ) from None


def _lists(matrix: NDArray[Any], kind: pa.DataType | None = None) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(
        pa.array(matrix.ravel()).cast(kind or pa.from_numpy_dtype(matrix.dtype)), matrix.shape[1]
    )


def _matrix(lists: pa.Array) -> NDArray[Any]:
    flat: NDArray[Any] = lists.flatten().to_numpy()
    return flat.reshape(len(lists), -1)
