"""Arrow arrays as numbers, moments or texts, each row for itself.

One row must never change how another is read, or the sensitivities would not hold: so every
decision here is taken from an array's type or from one value alone, never by trying a whole array
and falling back.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import SfumatoError

_NUMBER = r"^[+-]?(\d{1,300}\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$"
_FRACTION_END = r"(\.\d*?)0+(Z|[+-]\d{4})?$"
_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d")
EXACT_FLOATS = 2.0**53
"""Whole numbers below this are told apart by doubles."""
_NULL_TEXTS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?")


def texts(array: pa.Array) -> pa.Array:
    """Give each value's canonical text; null stays null."""
    array = plain(array)
    if pa.types.is_floating(array.type):
        array = array.cast(pa.float64())
        whole = pc.and_(pc.equal(pc.floor(array), array), pc.less(pc.abs(array), EXACT_FLOATS))
        integral = pc.if_else(whole, array, None).cast(pa.int64())
        return pc.coalesce(integral.cast(pa.string()), array.cast(pa.string()))
    if pa.types.is_decimal(array.type):
        return _digits(array)
    if pa.types.is_duration(array.type):
        raise SfumatoError("durations cannot be read as categories: give them as numbers or text")
    if pa.types.is_temporal(array.type):
        # How many decimals a column is given may follow from its finest value: zeros are cut.
        written = pc.replace_substring_regex(array.cast(pa.string()), _FRACTION_END, r"\1\2")
        return pc.replace_substring_regex(written, r"\.(Z|[+-]\d{4})?$", r"\1")
    if pa.types.is_nested(array.type) or "binary" in str(array.type):
        raise SfumatoError(f"values of type {array.type} cannot be read as categories")
    return pc.utf8_trim_whitespace(array.cast(pa.string()))


def is_null(texts: pa.Array) -> pa.Array:
    """Tell which texts stand for a missing value."""
    return pc.or_(pc.is_null(texts), pc.is_in(texts, pa.array(_NULL_TEXTS)))


def numbers(array: pa.Array) -> NDArray[np.float64]:
    """Give doubles; whatever is not a number becomes NaN.

    >>> numbers(pa.array([" 1.5", "+2", "1e3", "12 kg", "1e999", None])).tolist()
    [1.5, 2.0, 1000.0, nan, nan, nan]
    """
    array = plain(array)
    kind = array.type
    if pa.types.is_decimal(kind):
        array = array.cast(pa.string())  # digits are read alike, however many zeros follow
    elif pa.types.is_string(kind):
        trimmed = pc.utf8_trim_whitespace(array)
        readable = pc.if_else(pc.match_substring_regex(trimmed, _NUMBER), trimmed, None)
        array = pc.replace_substring_regex(readable, r"^\+", "")
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise SfumatoError(f"values of type {kind} cannot be read as numbers")
    return _doubles(array)


def seconds(array: pa.Array) -> NDArray[np.float64]:
    """Give seconds since 1970 as doubles; whatever is not an ISO date or time becomes NaN.

    >>> seconds(pa.array(["1970-01-02", "1970-01-01T00:01", "1970-01-01 00:00:07.5Z", "soon"]))
    array([8.64e+04, 6.00e+01, 7.00e+00,      nan])
    """
    array = plain(array)
    if pa.types.is_string(array.type):
        iso = pc.replace_substring_regex(pc.utf8_trim_whitespace(array), r"(\.\d+)?Z?$", "")
        iso = pc.replace_substring(iso, "T", " ")
        array = pc.coalesce(*[pc.strptime(iso, form, "s", error_is_null=True) for form in _FORMATS])
    elif not (pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)):
        raise SfumatoError(f"values of type {array.type} cannot be read as dates or times")
    return _doubles(array.cast(pa.timestamp("s"), safe=False).cast(pa.int64()))


def _digits(array: pa.Array) -> pa.Array:
    """Write decimals without exponent and without zeros at the end, each value for itself.

    Arrow's own texts depend on the scale, which a column has from its finest value.
    """
    encoded = array.dictionary_encode()
    written = [f"{value:f}" for value in encoded.dictionary.to_pylist()]
    cut = [text.rstrip("0").rstrip(".") if "." in text else text for text in written]
    return pa.array(cut, pa.string()).take(encoded.indices)


def plain(array: pa.Array) -> pa.Array:
    """Give dictionaries as their values, and one type for all texts."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return array.cast(pa.string())
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    return array


def _doubles(array: pa.Array) -> NDArray[np.float64]:
    doubles = array.cast(pa.float64(), safe=False)
    filled: NDArray[np.float64] = pc.fill_null(doubles, np.nan).to_numpy(zero_copy_only=False)
    return filled
