"""How many rows of each unit of privacy are kept, and which."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.batch import Batch
from sfumato.data.identifiers import ordinal_cells
from sfumato.data.row_digest import mixed, row_digests
from sfumato.errors import SfumatoError
from sfumato.schema import Schema

_KEY = b"rows of a unit"
_STEP = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64
_MOST = 1 << 30


class UnitLimit:
    """Of each unit, the `most` rows that come first by a digest are kept (`UnitRows`).

    Rows that name no unit are left out: nobody could say whose they are. Which of a unit's rows are
    kept depends on no other unit, so one unit moves a sum by at most k rows. Where k is more than
    one, a column after all others tells which of its unit's rows a row is.
    """

    def __init__(self, schema: Schema, most: int) -> None:
        self._most = most
        self._cells = ordinal_cells(schema, most)

    def within(self, ordinals: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Tell which rows are kept."""
        return (ordinals > 0) & (ordinals <= self._most)

    def kept(self, batch: Batch, ordinals: NDArray[np.integer]) -> Batch:
        """Give the rows that are kept, numbered where there are several of a unit."""
        if self._cells:
            column = np.minimum(ordinals - 1, self._cells - 1).astype(np.int32)
            batch = Batch(np.column_stack([batch.codes, column]), batch.numbers)
        return batch.where(self.within(ordinals))


class UnitRows:
    """All rows of all units, as far as it takes to put those of each unit in order.

    Their order is that of digests of the unit's name, the encoded row and, where a unit has the
    same row several times, which of them it is. So each of a unit's rows is as likely to come first
    as any other, and the order depends on its rows alone: not on others, nor on where they stand.
    Rows of the same digest are the same row to every statistic, as far as that can be told.

    >>> found = UnitRows()
    >>> rows = Batch(np.array([[0], [1], [1], [0]], np.int32), np.empty((4, 0), np.float32))
    >>> found.add(rows, pa.array(["Ann", "Ann", None, "Bob"]))
    >>> found.ordinals().tolist(), found.counts()
    ([2, 1, 0, 1], Counter({'Ann': 2, 'Bob': 1}))
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._digests: list[int] = []  # of the names
        self._units: list[NDArray[np.int64]] = []
        self._rows: list[NDArray[np.uint64]] = []

    def add(self, batch: Batch, units: pa.Array | None) -> None:
        """Take in more rows, with the names of their units."""
        assert units is not None
        told = units.dictionary_encode()
        places = [self._place(name) for name in told.dictionary.to_pylist()]
        # What names no unit has the last place.
        numbers = told.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
        self._units.append(np.array([*places, -1])[numbers])
        self._rows.append(row_digests(batch))

    def _place(self, name: str) -> int:
        place = self._places.setdefault(name, len(self._places))
        if place == len(self._digests):
            digest = blake2b(name.encode(), digest_size=8, key=_KEY).digest()
            self._digests.append(int.from_bytes(digest, "little"))
        return place

    def ordinals(self) -> NDArray[np.int32]:
        """Tell which of its unit's rows each row is, from 1 on; 0 for rows that name no unit."""
        units = np.concatenate([np.zeros(0, np.int64), *self._units])
        names = np.array([*self._digests, 0], np.uint64)
        digests = mixed(np.concatenate([np.zeros(0, np.uint64), *self._rows]) ^ names[units])
        order = np.lexsort((digests, units))
        new_unit = _differs(units[order])
        copies = _place_in_run(new_unit | _differs(digests[order]))
        copies[units[order] < 0] = 0
        if copies.any():
            again = mixed(digests[order] + copies.astype(np.uint64) * _STEP)
            digests[order] = np.where(copies > 0, again, digests[order])
            order = np.lexsort((digests, units))
        ordinals = np.minimum(_place_in_run(new_unit) + 1, _MOST)
        ordinals[units[order] < 0] = 0
        found = np.empty(len(units), np.int32)
        found[order] = ordinals
        return found

    def counts(self) -> Counter[str]:
        """Count the rows of each unit."""
        units = np.concatenate([np.zeros(0, np.int64), *self._units])
        counts = np.bincount(units[units >= 0], minlength=len(self._places))
        return Counter(dict(zip(self._places, counts.tolist(), strict=True)))


def _differs(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which values differ from the one before."""
    return np.concatenate([np.ones(min(len(values), 1), bool), values[1:] != values[:-1]])


def _place_in_run(starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count, from 0 on, the places since the last start."""
    places = np.arange(len(starts))
    return places - np.maximum.accumulate(np.where(starts, places, 0))


def unit_names(units: pa.Array) -> pa.Array:
    """Give the texts that name units; null for rows that name none."""
    units = parsing.plain(units)
    if pa.types.is_timestamp(units.type) or pa.types.is_time(units.type):
        # A single moment makes moments of a frame's whole numbers, which are then spelt otherwise.
        raise SfumatoError(
            "the identifier of the unit holds moments: give it as whole numbers or as text"
        )
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
