"""The code of categories: a cell for each listed value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.data import parsing
from sfumato.data.column_code import MISSING, MISSING_VALUE, ColumnCode, Misfit
from sfumato.data.spelling import Spellings
from sfumato.errors import SfumatoError
from sfumato.schema import OTHER, Categorical, Value, canonical_text

_UNLISTED = Misfit("not listed", "", "values: list them if they are public, or other = true", True)
_NEITHER = Misfit("neither true nor false", "", 'kind = "categorical" with values', True)


@dataclass(frozen=True)
class CategoryCode(ColumnCode):
    """One cell for each listed value, then other, then null."""

    values: tuple[Any, ...]
    other: bool
    nullable: bool
    prefix: int | None = None

    @classmethod
    def of(cls, column: Categorical) -> CategoryCode:
        """Give each listed value a cell: in the order of their texts where prefixes matter."""
        values = column.values
        if column.prefix is not None:
            values = tuple(sorted(values, key=canonical_text))
        return cls(values, column.other, column.nullable, column.prefix)

    @property
    def ordered(self) -> int:
        return len(self.values) if self.prefix is not None else 0

    @property
    def slots(self) -> NDArray[np.int32] | None:
        if self.prefix is None:
            return None
        begins = [canonical_text(value)[: self.prefix] for value in self.values]
        return np.cumsum(
            [a != b for a, b in zip(begins, begins[:1] + begins, strict=False)]
        ).astype(np.int32)

    @property
    def size(self) -> int:
        return len(self.values) + self.other + self.nullable

    @property
    def is_category(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(canonical_text(value) for value in self.meanings)

    @property
    def meanings(self) -> tuple[Value, ...]:
        return (*self.values, *[OTHER] * self.other, *[MISSING] * self.nullable)

    @property
    def default(self) -> int:
        """Where unlisted values go: other, else null, else the first listed value."""
        return len(self.values) if self.other or self.nullable else 0

    @cached_property
    def spellings(self) -> Spellings:
        """The texts by which the listed values are recognised."""
        return Spellings(self.values)

    def encode(self, array: pa.Array) -> tuple[NDArray[np.int32], None]:
        """Give the cell of each value."""
        texts, known = self.recognised(array)
        codes = pc.fill_null(known, self.default).to_numpy(zero_copy_only=False).astype(np.int32)
        if self.nullable:
            missing = pc.and_(pc.is_null(known), parsing.is_null(texts))
            codes[missing.to_numpy(zero_copy_only=False)] = self.size - 1
        return codes, None

    def recognised(self, array: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Give each value's text, and its place among the listed ones: null for none of them."""
        array = parsing.plain(array)
        if pa.types.is_floating(array.type) and self.spellings.beyond_floats is not None:
            # A single null makes floating-point numbers of a frame's whole numbers.
            raise SfumatoError(
                f"floating-point numbers cannot tell {self.spellings.beyond_floats} from its "
                "neighbours: give the column as whole numbers or as text"
            )
        texts = parsing.texts(array)
        return texts, self.spellings.find(texts)

    @property
    def listed(self) -> tuple[Value, ...]:
        return self.values

    def misfits(self, array: pa.Array) -> dict[Misfit, NDArray[np.bool_]]:
        texts, known = self.recognised(array)
        strange = pc.is_null(known).to_numpy(zero_copy_only=False)
        missing = strange & parsing.is_null(texts).to_numpy(zero_copy_only=False)
        unlisted = _NEITHER if self.values == (False, True) else _UNLISTED
        if self.other:
            unlisted = replace(unlisted, advice="values: check how they are spelt", usual=0.5)
        found = {replace(unlisted, becomes=self._default_name): strange & ~missing}
        if not self.nullable:
            found[replace(MISSING_VALUE, becomes=self._default_name)] = missing
        return found

    @property
    def _default_name(self) -> str:
        return f"'{self.names[self.default]}'"

    def exact(self, given: pa.Array) -> pa.Scalar | None:
        texts, known = self.recognised(given)
        other = self.other and texts[0].as_py() == OTHER
        missing = self.nullable and parsing.is_null(texts)[0].as_py()
        if not (known[0].is_valid or other or missing):
            return None
        return self.decode(self.encode(given)[0], np.random.default_rng(0))[0]

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> pa.Array:
        """Give the value of each cell."""
        names: list[Any] = list(self.values)
        if len({type(name) for name in names}) > 1 or (self.other and type(names[0]) is not str):
            names = [canonical_text(name) for name in names]
        dictionary = names + [OTHER] * self.other + [None] * self.nullable
        return pa.array(dictionary).take(pa.array(codes))
