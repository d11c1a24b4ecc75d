"""Numbers that are mostly multiples of something: whether one is, is a column of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.data.codes import NumericCode
from sfumato.data.constraints import Arrays, Broken, Rule
from sfumato.schema import Boolean, Column, Numeric


@dataclass(frozen=True, eq=False)
class RoundingRule(Rule):
    """A number of which many values are multiples of `column.often_multiple_of`.

    Modelled are the number and whether it is such a multiple; where it is, the nearest one is made.
    """

    name: str
    column: Numeric

    @property
    def made(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.name,)

    @property
    def _flag(self) -> str:
        return f"{self.name} is a multiple"

    @property
    def _coarse(self) -> NumericCode:
        """The same number on the multiples alone."""
        each = self.column.often_multiple_of
        assert each is not None
        low = np.ceil(self.column.low / each - 1e-6) * each
        high = max(np.floor(self.column.high / each + 1e-6) * each, low)
        around = {"low": float(low), "high": float(high), "step": each, "often": ()}
        plain = {"often_multiple_of": None}
        return NumericCode.of(self.column.model_copy(update=around | plain), 1)

    @property
    def hidden(self) -> dict[str, Column]:
        plain = self.column.model_copy(update={"often_multiple_of": None})
        return {self.name: plain, self._flag: Boolean()}

    def hide(self, rows: Arrays) -> tuple[dict[str, pa.Array], Broken]:
        numbers = NumericCode.of(self.column, 1).settled(rows[self.name])
        gap = np.abs(self._coarse.stepped(numbers) - numbers)
        is_multiple = gap <= 1e-6 * (self.column.often_multiple_of or 1)  # NaN is none
        return {self.name: rows[self.name], self._flag: pa.array(is_multiple)}, {}

    def restore(self, rows: Arrays) -> dict[str, pa.Array]:
        code = NumericCode.of(self.column, 1)
        numbers = code.settled(rows[self.name])
        coarse = self._coarse
        flags = rows[self._flag].to_numpy(zero_copy_only=False)
        nearest = np.clip(coarse.stepped(numbers), *coarse.bounds)
        found = np.where(flags & ~np.isnan(numbers), nearest, numbers)
        missing = np.isnan(found)
        return {self.name: code.typed(np.where(missing, 0, found), missing)}
