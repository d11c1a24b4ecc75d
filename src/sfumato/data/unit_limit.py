"""How many rows of each unit of privacy are kept, and which."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.batch import Batch
from sfumato.data.identifiers import ordinal_cells
from sfumato.errors import SfumatoError
from sfumato.schema import Schema


class UnitLimit:
    """The first `most` rows of each unit are kept; rows that name none are left out.

    Nobody could say whose the latter are. Which of a unit's rows are kept depends on no other unit,
    so one unit moves a sum by at most k rows. Where k is more than one, a column after all others
    tells which of its unit's rows a row is.
    """

    def __init__(self, schema: Schema, most: int) -> None:
        self._most = most
        self._cells = ordinal_cells(schema, most)

    def ordinals(self, units: pa.Array | None, seen: Counter[str]) -> NDArray[np.int64]:
        """Tell which of its unit's rows each row is, from 1 on; 0 for rows that name no unit."""
        assert units is not None
        found = np.zeros(len(units), np.int64)
        for row, unit in enumerate(units.to_pylist()):
            if unit is not None:
                seen[unit] += 1
                found[row] = seen[unit]
        return found

    def within(self, ordinals: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Tell which rows are kept."""
        return (ordinals > 0) & (ordinals <= self._most)

    def kept(self, batch: Batch, ordinals: NDArray[np.integer]) -> Batch:
        """Give the rows that are kept, numbered where there are several of a unit."""
        if self._cells:
            column = np.minimum(ordinals - 1, self._cells - 1).astype(np.int32)
            batch = Batch(np.column_stack([batch.codes, column]), batch.numbers)
        return batch.where(self.within(ordinals))


def unit_names(units: pa.Array) -> pa.Array:
    """Give the texts that name units; null for rows that name none."""
    units = parsing.plain(units)
    exact = {pa.float16(): 2.0**11, pa.float32(): 2.0**24}.get(units.type, parsing.EXACT_FLOATS)
    if (
        pa.types.is_floating(units.type)
        and pc.any(pc.greater_equal(pc.abs(units.cast(pa.float64())), exact)).as_py()
    ):
        # A single null makes floating-point numbers of a frame's whole ones, and merges people.
        raise SfumatoError(
            "the identifier of the unit holds floating-point numbers too large to be told apart: "
            "give it as whole numbers or as text (in pandas: astype('Int64') before nulls come in)"
        )
    names = parsing.texts(units)
    return pc.if_else(parsing.is_null(names), None, names)
