"""A spool: encoded private rows on disk, for as long as one run reads them.

Reading a value costs far more than reading its cell. Where a data set is large and the run has a
folder, its rows are read once; what later questions need is kept there as encoded rows, in files
that only their owner may read. They are removed at the end, or, after a crash, at the next start:
each run has a folder of its own, and holds it, so that nobody takes it for what a crash left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.storage import Hold, let_go, new_held, remove, sweep

_SHORT = 1 << 15


class Spool:
    """A folder of encoded rows, one file for each part of a data set.

    Its name is `path` and an ending of its own. Workers get it as it is, and never make it: one
    that outlives its run finds nothing to write into.
    """

    def __init__(self, path: Path, cells: int) -> None:
        self.place = path
        self._folder: Path | None = None
        self._hold: Hold = None
        self._code = np.int16 if cells <= _SHORT else np.int32

    def clear(self) -> None:
        """Remove all rows, also those of runs that died."""
        if self._folder is not None:
            remove(self._folder)
            let_go(self._hold)
            self._folder = None
        sweep(self.place.parent, self.place.name)

    def open(self) -> None:
        """Make a folder that only its owner may enter, unless it is made."""
        if self._folder is None:
            with self.plain_errors():
                self.place.parent.mkdir(parents=True, exist_ok=True)
                made = new_held(self.place.parent, f"{self.place.name}-", folder=True)
                self._folder, self._hold = made

    def keep(self, part: int, batches: Iterable[tuple[Batch, pa.Array | None]]) -> int:
        """Write the rows of a part, with their units where they have some; say how many."""
        count = 0
        with self.plain_errors(), self.new_file(f"{part}.arrow") as file:
            writer = None
            for batch, units in batches:
                if len(batch):
                    rows = self._record(batch, units)
                    writer = writer or pa.ipc.new_file(file, rows.schema)
                    writer.write(rows)
                    count += len(batch)
            if writer:
                writer.close()
        return count

    def batches(self, part: int) -> Iterator[tuple[Batch, pa.Array | None]]:
        """Read the rows of a part, and their units."""
        path = self.path(f"{part}.arrow")
        if not path.stat().st_size:
            return
        with self.plain_errors(), pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                (kept,) = reader.get_batch(number).to_struct_array()
                count = kept["rows"].as_py()
                codes = _matrix(kept["codes"], count).astype(np.int32)
                units = kept["units"].values if kept["units"].is_valid else None
                yield Batch(codes, _matrix(kept["numbers"], count)), units

    def keep_ordinals(self, part: int, ordinals: NDArray[np.int32]) -> None:
        """Write which of its unit's rows each row of a part is."""
        with self.plain_errors(), self.new_file(f"{part}.npy") as file:
            np.save(file, ordinals)

    def ordinals(self, part: int) -> NDArray[np.int32]:
        """Read which of its unit's rows each row of a part is."""
        with self.plain_errors():
            found: NDArray[np.int32] = np.load(self.path(f"{part}.npy"))
        return found

    def _record(self, batch: Batch, units: pa.Array | None) -> pa.RecordBatch:
        """Give a batch as one row of lists."""
        kept = {
            "rows": pa.array([len(batch)]),
            "codes": _flat(batch.codes.astype(self._code)),
            "numbers": _flat(batch.numbers),
            "units": pa.nulls(1, pa.large_list(pa.string())) if units is None else _list(units),
        }
        return pa.record_batch(kept)

    def path(self, name: str) -> Path:
        """Give the place of a file."""
        assert self._folder is not None, "a spool is opened before it is used"
        return self._folder / name

    def new_file(self, name: str) -> IO[bytes]:
        """Open a new file for writing, which only its owner may read."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        return open(os.open(self.path(name), flags, 0o600), "wb")

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        """Say in one line what the disk refuses."""
        try:
            yield
        except OSError as error:
            raise SfumatoError(
                f"cannot keep encoded rows in {self.place.parent}: {error.strerror or error}"
            ) from None


def _flat(matrix: NDArray[Any]) -> pa.Array:
    return _list(pa.array(matrix.ravel(_order(matrix.dtype))))


def _list(values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _matrix(kept: pa.Scalar, rows: int) -> NDArray[Any]:
    flat: NDArray[Any] = kept.values.to_numpy()
    return flat.reshape(rows, -1, order=_order(flat.dtype))


def _order(kind: np.dtype[Any]) -> Literal["C", "F"]:
    """Say how a matrix lies: pixels image by image, what tables hold column by column."""
    return "C" if kind == np.uint8 else "F"
