"""The distinct values of a piece of a column: what is worked out once for all rows that share one.

Values are read each for itself, so reading each of them once gives what reading every row would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.data import parsing

Found = TypeVar("Found", bound=np.generic)


@dataclass(frozen=True)
class Distinct:
    """Values, and the place of each row's among them; without places, they are the rows' own.

    >>> towns = Distinct.of(pa.array(["Ulm", None, "Ulm", "Ulm"]))
    >>> towns.values.to_pylist(), towns.spread(np.array([7, 0])).tolist()
    (['Ulm', None], [7, 0, 7, 7])
    >>> ages = Distinct.of(pa.array([30, 32, None, 30, 30, 32, 32, 30]))
    >>> ages.values.to_pylist(), ages.places.tolist()
    ([30, 31, 32, None], [0, 2, 3, 0, 0, 2, 2, 0])
    """

    values: pa.Array
    places: NDArray[np.integer[Any]] | None = None

    @classmethod
    def of(cls, array: pa.Array) -> Distinct:
        """Tell distinct texts, truth values, whole numbers or days apart, unless most rows differ.

        Among whole numbers that lie close together, some may be no row's.
        """
        kind = array.type
        if (pa.types.is_integer(kind) and kind != pa.uint64()) or pa.types.is_date32(kind):
            return _close_together(array) or cls(array)
        if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
            array = array.dictionary_encode()
        if not pa.types.is_dictionary(array.type):
            return cls(array)
        if 2 * len(array.dictionary) > len(array):
            return cls(parsing.plain(array))
        values = parsing.plain(array.dictionary)
        places = array.indices.cast(pa.int64())  # a short type may have no number left for null
        if places.null_count:
            places = places.fill_null(len(values))
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        return cls(values, places.to_numpy(zero_copy_only=False))

    def spread(self, found: NDArray[Found]) -> NDArray[Found]:
        """Give each row what was found for its value."""
        return found if self.places is None else found[self.places]


def _close_together(array: pa.Array) -> Distinct | None:
    """Give the range of whole numbers or days as values, if it is shorter than half the rows."""
    numbers = array.view(pa.int32()) if pa.types.is_date32(array.type) else array
    ends = pc.min_max(numbers)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is None or 2 * (high - low + 1) > len(array):
        return None
    values = pa.array(np.arange(low, high + 1), numbers.type).view(array.type)
    places = numbers.fill_null(low).to_numpy(zero_copy_only=False).astype(np.int64) - low
    if array.null_count:
        places[array.is_null().to_numpy(zero_copy_only=False)] = len(values)
        values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return Distinct(values, places)
