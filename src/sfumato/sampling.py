"""Synthetic tables of any size: drawn in parts, on all cores, and written as they come.

Each part has a seed of its own, which follows from the seed and the part's number: the same rows,
whoever draws them. A table of one part has the rows that the model's own `sample` gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from threadpoolctl import threadpool_limits

from sfumato.data.image_set import ImageSet
from sfumato.data.new_table import NewTable
from sfumato.data.workers import in_order
from sfumato.data.writing import CsvWriting, is_csv, rounded, write_synthetic
from sfumato.modelling.base import Given, Model
from sfumato.modelling.generator import GeneratorModel
from sfumato.schema import Identifier
from sfumato.storage import new_folder, reserved

PART_ROWS = 1 << 17


@dataclass(frozen=True)
class Draw:
    """So many rows of a model, by default about as many as the private data have."""

    model: Model
    rows: int | None = None
    given: Given | None = None
    seed: int = 0
    part_rows: int = field(default_factory=lambda: PART_ROWS)

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.model.how_many(self.rows)

    @property
    def parts(self) -> int:
        """The number of parts; images are drawn in one."""
        return 1 if self.model.schema.images else max(1, -(-self.count // self.part_rows))

    def part(self, number: int) -> pa.Table | ImageSet:
        """Draw a part; identifiers go on from part to part, and none is in two of them."""
        if self.parts == 1:
            return self.model.sample(self.count, given=self.given, seed=self.seed)
        start = number * self.part_rows
        state = np.random.SeedSequence([self.seed, number]).generate_state(1, np.uint64)
        with _one_thread(self.model):
            table = self.model.sample(
                min(self.part_rows, self.count - start), given=self.given, seed=int(state[0])
            )
        for place, (name, column) in enumerate(self.model.schema.columns.items()):
            if isinstance(column, Identifier):
                table = table.set_column(place, name, pc.add(table[name], start))
        return table

    def whole(self, workers: int | None = None) -> pa.Table | ImageSet:
        """Draw everything into memory."""
        if self.parts == 1:
            return self.part(0)
        return pa.concat_tables(in_order(self.part, range(self.parts), workers))

    def csv(self, workers: int | None = None, zipped: bool = False) -> Iterator[bytes]:
        """Draw everything, and give the pieces of a csv file."""
        return in_order(partial(_csv_part, self, zipped), range(self.parts), workers)

    def tables(self, workers: int | None = None) -> Iterator[pa.Table]:
        """Draw everything, and give its parts as tables."""
        return in_order(partial(_rounded_part, self), range(self.parts), workers)

    def write(self, path: Path | NewTable, workers: int | None = None) -> None:
        """Draw everything into a file, a folder of parquet, one file a part, or a database."""
        if isinstance(path, NewTable):
            path.write(self.tables(workers))
        elif self.model.schema.images:
            write_synthetic(path, self.part(0), self.model.schema)
        elif is_csv(path):
            with reserved(path) as file:
                for piece in self.csv(workers, path.suffix == ".gz"):
                    file.write(piece)
        elif path.suffix:
            with reserved(path) as file:
                tables = self.tables(workers)
                first = next(tables)
                with pa.parquet.ParquetWriter(file, first.schema) as writer:
                    writer.write_table(first)
                    for table in tables:
                        writer.write_table(table)
        else:
            with new_folder(path) as folder:
                write = partial(_write_part, self, folder)
                for _ in in_order(write, range(self.parts), workers):
                    pass


def _csv_part(draw: Draw, zipped: bool, number: int) -> bytes:
    writing = CsvWriting(draw.model.schema, zipped)
    return writing.piece(draw.part(number), first=number == 0)


def _rounded_part(draw: Draw, number: int) -> pa.Table:
    return rounded(draw.part(number), draw.model.schema)


def _write_part(draw: Draw, folder: Path, number: int) -> None:
    pa.parquet.write_table(_rounded_part(draw, number), folder / f"part-{number:06d}.parquet")


@contextmanager
def _one_thread(model: Model) -> Iterator[None]:
    """Keep to one thread, as workers do: how many there are can change the last bit of a sum."""
    with threadpool_limits(1):
        if not isinstance(model, GeneratorModel):
            yield
            return
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
