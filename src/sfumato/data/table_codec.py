"""Between typed columns and numbers: integer cells for counting, the unit cube for kernels.

Everything here follows from the schema alone, row by row: no row's code depends on another row,
which is what lets a statistic bound the influence of one row.

Where the schema has constraints, what is coded are not the columns themselves but what is modelled
in their place (`rules`); decoded rows have the columns again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.data.codes import DEFAULT_CELLS, ColumnCode, Misfit, code_of
from sfumato.data.condition import Condition, Wanted
from sfumato.data.distinct import Distinct
from sfumato.data.review import Review
from sfumato.data.rules import Rules
from sfumato.errors import SfumatoError
from sfumato.schema import Schema


class TableCodec:
    """A table's schema as cells, one code per modelled column, in the schema's order.

    `declared` are the columns of the data, `names` those that are coded.
    """

    def __init__(self, schema: Schema, cells: int = DEFAULT_CELLS) -> None:
        self.schema = schema
        self.declared = tuple(schema.modelled)
        self._rules = Rules(schema) if schema.constraints or schema.often_round else None
        modelled = self._rules.modelled if self._rules else schema.modelled
        self.names = tuple(modelled)
        self.columns = tuple(code_of(column, cells) for column in modelled.values())

    @property
    def most_cells(self) -> int:
        """The number of cells of the column that has the most."""
        return max((column.size for column in self.columns), default=0)

    def index(self, name: str) -> int:
        """Give a column's position; an error lists what there is."""
        if self._rules:
            self._rules.refuse_made(name)
        if name not in self.names:
            known = ", ".join(self.names)
            raise SfumatoError(f"the schema has no modelled column '{name}'; it has: {known}")
        return self.names.index(name)

    def conditions(self, given: Mapping[str, Wanted]) -> dict[int, Condition]:
        """Give the condition on each column of which something is wanted, by its position."""
        alone, joint = self._rules.conditions(given) if self._rules else (given, {})
        columns = {self.index(name): name for name in alone}
        return {
            i: Condition.on(name, self.columns[i], given[name]) for i, name in columns.items()
        } | {self.names.index(name): condition for name, condition in joint.items()}

    def later_conditions(self, given: Mapping[str, Wanted]) -> dict[str, Condition]:
        """Give the conditions on columns that are not coded: they are met by whole rows only."""
        return self._rules.later_conditions(given) if self._rules else {}

    def misfits(
        self, rows: pa.RecordBatch
    ) -> Iterator[tuple[str, Distinct, dict[Misfit, NDArray[np.bool_]]]]:
        """Tell, column by column, which values the schema has no place for. Private."""
        codes = (
            self._rules.codes if self._rules else dict(zip(self.names, self.columns, strict=True))
        )
        for name, code in codes.items():
            values = Distinct.of(rows.column(name))
            yield name, values, code.misfits(values.values)
        if self._rules:
            broken = self._rules.broken({name: rows.column(name) for name in self.declared})
            for name, found in broken.items():
                yield name, Distinct(pa.nulls(rows.num_rows)), found

    def encode(self, rows: pa.RecordBatch, found: Review | None = None) -> Batch:
        """Encode a record batch that holds the schema's columns; tell a review what does not fit.

        What is made lies in memory column by column, as statistics read it.
        """
        codes = np.empty((rows.num_rows, len(self.names)), np.int32, order="F")
        units = []
        values = {name: rows.column(name) for name in self.declared}
        if self._rules:
            for name, code in self._rules.codes.items():
                # Its type alone may be one that cannot be read.
                _encoded(name, code, values[name].slice(0, 0))
            values = self._rules.hide(values)
        for index, (name, cells) in enumerate(zip(self.names, self.columns, strict=True)):
            column, cell, unit = _encoded(name, cells, values[name])
            codes[:, index] = column.spread(cell)
            if unit is not None:
                units.append(column.spread(unit))
            if found is not None and not self._rules:
                found.add(name, column, cells.misfits(column.values))
        if found is not None and self._rules:
            for told in self.misfits(rows):
                found.add(*told)
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
        return self._numbered(self._rules.restore(arrays) if self._rules else arrays, rows)

    def renumbered(self, table: pa.Table) -> pa.Table:
        """Number identifiers anew."""
        return self._numbered({name: table[name] for name in self.declared}, table.num_rows)

    def _numbered(self, arrays: Mapping[str, Any], rows: int) -> pa.Table:
        numbers = pa.array(np.arange(1, rows + 1))
        return pa.table({name: arrays.get(name, numbers) for name in self.schema.columns})


def _encoded(
    name: str, code: ColumnCode, array: pa.Array
) -> tuple[Distinct, NDArray[np.int32], NDArray[np.float32] | None]:
    """Encode the distinct values of a column; errors name it."""
    try:
        column = Distinct.of(array)
        return column, *code.encode(column.values)
    except SfumatoError as error:
        raise SfumatoError(f"column '{name}': {error}") from None
    except pa.ArrowException:
        raise SfumatoError(f"column '{name}': cannot read values of type {array.type}") from None
