"""Column codes: the values of a column as integer cells on a public grid, and back."""

from __future__ import annotations

from sfumato.data.category_code import CategoryCode
from sfumato.data.column_code import MISSING, ColumnCode, Misfit
from sfumato.data.datetime_code import DatetimeCode
from sfumato.data.numeric_code import NumericCode
from sfumato.data.open_codes import open_code_of
from sfumato.errors import SfumatoError
from sfumato.schema import (
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Numeric,
    OpenCategory,
    OpenMoment,
    OpenNumber,
)

__all__ = [
    "DEFAULT_CELLS",
    "MISSING",
    "CategoryCode",
    "ColumnCode",
    "DatetimeCode",
    "Misfit",
    "NumericCode",
    "code_of",
]

DEFAULT_CELLS = 4096


def code_of(column: Column, cells: int = DEFAULT_CELLS) -> ColumnCode:
    """Give the code of a modelled column, at most `cells` for a number."""
    match column:
        case Numeric():
            return NumericCode.of(column, cells)
        case Datetime():
            return DatetimeCode.of(column, cells)
        case Categorical():
            return CategoryCode.of(column)
        case Boolean():
            return CategoryCode((False, True), False, column.nullable)
        case Identifier():
            raise SfumatoError("an identifier is never modelled")
        case OpenNumber() | OpenMoment() | OpenCategory():
            return open_code_of(column)
