"""A table as the measures see it: cells for categories, the unit interval for numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.codes import ColumnCode
from sfumato.data.sources import table_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.schema import Schema


@dataclass(frozen=True)
class CodedTable:
    """Encoded rows. Both tables of a comparison go through the same schema.

    `codes` has one cell per modelled column, `numbers` one position in [0, 1] per numeric column,
    NaN where the value is missing. Values outside the schema's bounds are clamped, as they are
    when a model is fitted.

    >>> import pyarrow as pa
    >>> from sfumato.schema import Numeric, Schema
    >>> schema = Schema(columns={"age": Numeric(low=0, high=100, integer=True)})
    >>> CodedTable.of(pa.table({"age": [0, 50, 100]}), schema).number("age").tolist()
    [0.0, 0.5, 1.0]
    """

    codec: TableCodec
    codes: NDArray[np.int32]
    numbers: NDArray[np.float32]

    @classmethod
    def of(cls, data: Any, schema: Schema, what: str = "data") -> CodedTable:
        """Read a table, a frame or a file; `what` names it in errors."""
        if not schema.columns:
            raise SfumatoError("this schema describes images, not a table")
        if schema.open:
            raise SfumatoError(
                f"the schema leaves '{next(iter(schema.open))}' to be found privately: use the one "
                "that was found, which 'sfumato show MODEL --schema FILE' writes"
            )
        codec = TableCodec(schema.unconstrained)
        try:
            rows = table_rows(data, codec.names, schema.csv)
        except SfumatoError as error:
            raise SfumatoError(f"the {what}: {error}") from None
        batches = [codec.encode(batch) for batch in rows.batches(codec.names) if len(batch)]
        if not batches:
            raise SfumatoError(f"the {what} have no rows, so there is nothing to evaluate")
        codes = np.concatenate([batch.codes for batch in batches])
        numbers = np.concatenate([batch.unit for batch in batches])
        frame = cls(codec, codes, numbers)
        for place, index in enumerate(frame.numeric):
            cells = codec.columns[index]
            if cells.nullable:
                numbers[codes[:, index] == cells.size - 1, place] = np.nan
        return frame

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def names(self) -> tuple[str, ...]:
        """The modelled columns."""
        return self.codec.names

    @cached_property
    def numeric(self) -> tuple[int, ...]:
        """The positions of the columns that hold numbers or moments."""
        return tuple(
            index for index, cells in enumerate(self.codec.columns) if not cells.is_category
        )

    @cached_property
    def categorical(self) -> tuple[int, ...]:
        """The positions of the other columns."""
        return tuple(i for i in range(len(self.names)) if i not in self.numeric)

    def number(self, name: str) -> NDArray[np.float32]:
        """Give a numeric column in the unit interval, NaN where missing."""
        return self.numbers[:, self.numeric.index(self.codec.index(name))]

    def take(self, rows: NDArray[Any]) -> CodedTable:
        """Give the rows that an index or a mask selects."""
        return CodedTable(self.codec, self.codes[rows], self.numbers[rows])

    def at_most(self, rows: int | None, seed: int) -> CodedTable:
        """Give a seeded sample; sets of equal length lose the same rows."""
        if rows is None or len(self) <= rows:
            return self
        kept = np.random.default_rng(seed).choice(len(self), rows, replace=False)
        return self.take(np.sort(kept))

    def split(self, share: float, seed: int) -> tuple[CodedTable, CodedTable]:
        """Split into a part of this share and the rest, at random."""
        if len(self) < 2:
            raise SfumatoError("at least two real rows are needed to hold some out for testing")
        order = np.random.default_rng(seed).permutation(len(self))
        cut = min(max(round(share * len(self)), 1), len(self) - 1)
        return self.take(np.sort(order[:cut])), self.take(np.sort(order[cut:]))

    def joined(self, other: CodedTable) -> CodedTable:
        """Put the rows of another table of the same schema below these."""
        return CodedTable(
            self.codec,
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.numbers, other.numbers]),
        )

    def missing(self, index: int) -> NDArray[np.bool_]:
        """Say which rows have no value in a column."""
        cells = self.codec.columns[index]
        null: NDArray[np.bool_] = self.codes[:, index] == cells.size - 1
        return null if cells.nullable else np.zeros(len(self), bool)

    def shuffled(self, seed: int) -> CodedTable:
        """Shuffle each column alone: the same one-way marginals, every association gone."""
        rng = np.random.default_rng(seed)
        codes, numbers = self.codes.copy(), self.numbers.copy()
        for index in range(len(self.names)):
            order = rng.permutation(len(self))
            codes[:, index] = codes[order, index]
            if index in self.numeric:
                place = self.numeric.index(index)
                numbers[:, place] = numbers[order, place]
        return CodedTable(self.codec, codes, numbers)


def written(column: ColumnCode, unit: float) -> str:
    """Write a position in the unit interval as the value it stands for."""
    value = column.from_unit(np.array([unit]))[0].as_py()
    return f"{value:.4g}" if isinstance(value, float) else str(value)
