"""Between typed columns and numbers: integer cells for counting, the unit cube for kernels.

Everything here follows from the schema alone, row by row: no row's code depends on another row,
which is what lets a statistic bound the influence of one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.data.codes import DEFAULT_CELLS, code_of
from sfumato.data.condition import Condition, Wanted
from sfumato.data.distinct import Distinct
from sfumato.data.review import Review
from sfumato.errors import SfumatoError
from sfumato.schema import Schema


class TableCodec:
    """A table's schema as cells, one `Cells` per modelled column, in the schema's order."""

    def __init__(self, schema: Schema, cells: int = DEFAULT_CELLS) -> None:
        self.schema = schema
        self.names = tuple(schema.modelled)
        self.columns = tuple(code_of(column, cells) for column in schema.modelled.values())

    @property
    def most_cells(self) -> int:
        """The number of cells of the column that has the most."""
        return max((column.size for column in self.columns), default=0)

    def index(self, name: str) -> int:
        """Give a column's position; an error lists what there is."""
        if name not in self.names:
            known = ", ".join(self.names)
            raise SfumatoError(f"the schema has no modelled column '{name}'; it has: {known}")
        return self.names.index(name)

    def conditions(self, given: Mapping[str, Wanted]) -> dict[int, Condition]:
        """Give the condition on each column of which something is wanted, by its position."""
        columns = {self.index(name): name for name in given}
        return {i: Condition.on(name, self.columns[i], given[name]) for i, name in columns.items()}

    def encode(self, rows: pa.RecordBatch, found: Review | None = None) -> Batch:
        """Encode a record batch that holds the schema's columns; tell a review what does not fit.

        What is made lies in memory column by column, as statistics read it.
        """
        codes = np.empty((rows.num_rows, len(self.names)), np.int32, order="F")
        units = []
        for index, (name, cells) in enumerate(zip(self.names, self.columns, strict=True)):
            try:
                column = Distinct.of(rows.column(name))
                cell, unit = cells.encode(column.values)
            except SfumatoError as error:
                raise SfumatoError(f"column '{name}': {error}") from None
            except pa.ArrowException:
                kind = rows.column(name).type
                raise SfumatoError(f"column '{name}': cannot read values of type {kind}") from None
            codes[:, index] = column.spread(cell)
            if unit is not None:
                units.append(column.spread(unit))
            if found is not None:
                found.add(name, column, cells.misfits(column.values))
        flat = np.stack(units).T if units else np.empty((rows.num_rows, 0), np.float32)
        return Batch(codes, flat)

    def decode(
        self,
        codes: NDArray[np.integer[Any]],
        rng: np.random.Generator,
        conditions: Mapping[int, Condition] | None = None,
    ) -> pa.Table:
        """Give typed columns back; values are drawn evenly within a cell, or what is kept of it."""
        decoders = dict(enumerate(self.columns)) | dict(conditions or {})
        return self.assemble(
            [decoder.decode(codes[:, i], rng) for i, decoder in decoders.items()], len(codes)
        )

    def assemble(self, modelled: Sequence[pa.Array], rows: int) -> pa.Table:
        """Make a table of decoded columns, with identifiers numbered anew."""
        arrays = dict(zip(self.names, modelled, strict=True))
        numbers = pa.array(np.arange(1, rows + 1))
        return pa.table({name: arrays.get(name, numbers) for name in self.schema.columns})
