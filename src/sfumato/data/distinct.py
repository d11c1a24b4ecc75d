"""The distinct values of a piece of a column: what is worked out once for all rows that share one.

Values are read each for itself, so reading each of them once gives what reading every row would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data import parsing

Found = TypeVar("Found", bound=np.generic)


@dataclass(frozen=True)
class Distinct:
    """Values, and the place of each row's among them; without places, they are the rows' own.

    >>> towns = Distinct.of(pa.array(["Ulm", None, "Ulm", "Ulm"]))
    >>> towns.values.to_pylist(), towns.spread(np.array([7, 0])).tolist()
    (['Ulm', None], [7, 0, 7, 7])
    """

    values: pa.Array
    places: NDArray[np.integer[Any]] | None = None

    @classmethod
    def of(cls, array: pa.Array) -> Distinct:
        """Tell the distinct texts or truth values apart, unless most rows differ."""
        kind = array.type
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
