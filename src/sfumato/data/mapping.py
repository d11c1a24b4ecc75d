"""Mappings: which of a list of values goes with a category, a number or a range of numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.codes import MISSING, CategoryCode
from sfumato.data.functions import Floats, NamedFunction
from sfumato.errors import SfumatoError
from sfumato.schema import OTHER

FROM = ".."
"""What ends a key that stands for a number and all above it, up to the next key."""

_MOST_VALUES = 10_000  # of a whole number that may all be listed


class Mapped(ABC):
    """The keys of a mapping, in their order, and the place among them that a row has."""

    keys: Sequence[str]

    @abstractmethod
    def places(self, arrays: Sequence[pa.Array]) -> NDArray[np.int64]:
        """Give the place of each row's key; -1 where there is none."""

    @property
    @abstractmethod
    def lacking(self) -> list[str]:
        """What has no key and should have one, or some of it."""

    @property
    def _null(self) -> int:
        return self.keys.index(MISSING) if MISSING in self.keys else -1


@dataclass(frozen=True, eq=False)
class MappedCategory(Mapped):
    """Keys that are the values of a category, "(other)" or "(missing)"."""

    keys: Sequence[str]
    source: CategoryCode

    def __post_init__(self) -> None:
        strange = set(self.keys) - {*self.source.names, MISSING, OTHER}
        if strange:
            raise SfumatoError(f"the mapping's key '{min(strange)}' is not one of its values")

    def places(self, arrays: Sequence[pa.Array]) -> NDArray[np.int64]:
        found = [self.keys.index(n) if n in self.keys else -1 for n in self.source.names]
        return np.array(found, np.int64)[self.source.encode(arrays[0])[0]]

    @property
    def lacking(self) -> list[str]:
        return [name for name in self.source.names if name not in self.keys]


@dataclass(frozen=True, eq=False)
class MappedNumber(Mapped):
    """Keys that are numbers, or where ranges of numbers begin; `read` makes numbers of them."""

    keys: Sequence[str]
    function: NamedFunction
    read: Callable[[str], float]

    @cached_property
    def _numbers(self) -> Floats:
        told = [math.nan if k == MISSING else self.read(k.removesuffix(FROM)) for k in self.keys]
        for key, number in zip(self.keys, told, strict=True):
            if not math.isfinite(number) and key != MISSING:
                raise SfumatoError(f"the mapping's key '{key}' is no number of its column")
        return np.array(told)

    @cached_property
    def _ranges(self) -> NDArray[np.int64]:
        """The places of the keys that begin ranges, in the order of their numbers."""
        begins = np.array([place for place, k in enumerate(self.keys) if k.endswith(FROM)], int)
        return np.asarray(begins[np.argsort(self._numbers[begins])], np.int64)

    def places(self, arrays: Sequence[pa.Array]) -> NDArray[np.int64]:
        return self.places_of(self.function(arrays))

    def places_of(self, numbers: Floats) -> NDArray[np.int64]:
        """Give the place of each number's key: its own, or that of the range that it is in."""
        after = np.searchsorted(self._numbers[self._ranges], numbers, side="right")
        found = np.concatenate([[-1], self._ranges])[after]
        for place, key in enumerate(self.keys):
            if not key.endswith(FROM):
                found[numbers == self._numbers[place]] = place
        found[np.isnan(numbers)] = self._null
        return np.asarray(found, np.int64)

    @property
    def lacking(self) -> list[str]:
        low, high = self.function.reach
        tried = np.array([low, high])
        if self.function.is_whole and high - low < _MOST_VALUES:
            tried = np.arange(low, high + 1)
        elif not len(self._ranges):
            return [f"{low:g}"]  # nothing but ranges holds all numbers
        nullable = any(source.nullable for source in self.function.sources)
        none = [f"{number:g}" for number in tried[self.places_of(tried) < 0]]
        return none + [MISSING] * (nullable and MISSING not in self.keys)
