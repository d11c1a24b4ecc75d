"""Spellings: which of the listed values a text stands for, each text for itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.schema import Value, canonical_text

_BOOLEANS = {True: ("true", "yes", "y", "t", "1"), False: ("false", "no", "n", "f", "0")}
_WHOLE_AS_FLOAT = r"^([+-]?\d+)\.0+$"


def whole_numbers_plain(texts: pa.Array) -> pa.Array:
    """Write whole numbers that look like floats as whole numbers, each text for itself.

    >>> whole_numbers_plain(pa.array(["1.0", "1", "1.5", "-07.00"])).to_pylist()
    ['1', '1', '1.5', '-07']
    """
    return pc.replace_substring_regex(texts, _WHOLE_AS_FLOAT, r"\1")


def _number(text: str) -> float:
    """Give the number that a text may be the spelling of, whole or not; else zero."""
    try:
        return float(text)
    except ValueError:
        return 0.0


class Spellings:
    """The listed values of a category, and the texts by which each of them is recognised.

    A text is first looked up as it is; then a whole number that is written as a float as that
    number; then, where the listed values are true and false, the usual words for them in any case.

    >>> Spellings((1, 2)).find(pa.array(["2", "1.0", "2.5"])).to_pylist()
    [1, 0, None]
    >>> Spellings((False, True)).find(pa.array(["True", "NO", "1.0", "maybe"])).to_pylist()
    [1, 0, 1, None]
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self._listed = [canonical_text(value) for value in values]
        self._words = {
            word: place
            for place, value in enumerate(values)
            if isinstance(value, bool)
            for word in _BOOLEANS[value]
            if word not in self._listed or self._listed.index(word) == place
        }
        large = (text for text in self._listed if abs(_number(text)) >= 2**53)
        self.beyond_floats = next(large, None)
        """A listed number that floating point cannot tell from its neighbours, if there is one."""

    def find(self, texts: pa.Array) -> pa.Array:
        """Give the place of each text among the listed values; null where it is none of them."""
        whole = whole_numbers_plain(texts)
        found = pc.coalesce(self._places(texts), self._places(whole))
        if self._words:
            words = pc.index_in(pc.utf8_lower(whole), pa.array(list(self._words)))
            found = pc.coalesce(found, pa.array(list(self._words.values()), pa.int32()).take(words))
        return found

    def _places(self, texts: pa.Array) -> pa.Array:
        return pc.index_in(texts, self._listed_array)

    @cached_property
    def _listed_array(self) -> pa.Array:
        return pa.array(self._listed, pa.string())
