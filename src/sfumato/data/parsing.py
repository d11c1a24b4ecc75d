"""Arrow arrays as numbers, moments or texts, each row for itself.

One row must never change how another is read, or the sensitivities would not hold: so every
decision here is taken from an array's type or from one value alone, never by trying a whole array
and falling back.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from string import ascii_letters

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import SfumatoError

_NUMBER = r"^[+-]?(\d{1,300}\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$"
_FRACTION_END = r"(\.\d*?)0+(Z|[+-]\d{4})?$"
_ISO = (
    r"^(?P<year>\d{4})(?:-?(?P<month>\d{2})(?:-?(?P<day>\d{2}))?)?"
    r"(?:[T ](?P<hour>\d{2})(?::?(?P<minute>\d{2})(?::?(?P<second>\d{2})(?:[.,]\d+)?)?)?"
    r" ?(?:(?P<utc>Z|z|UTC|GMT)|(?P<ahead>[+-]\d{2}):?(?P<past>\d{2})?)?)?$"
)
_LONGEST = 300  # digits
_EPOCH = datetime(1970, 1, 1)
EXACT_FLOATS = 2.0**53
"""Whole numbers below this are told apart by doubles."""
# What pandas, R, SAS, Stata, SPSS, SQL dumps and spreadsheets write for a missing value.
_NULL_TEXTS = (
    "", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "-NaN", "null", "NULL", "Null", "None", "<NA>",
    "NaT", "#N/A", "#N/A N/A", "#NA", "#NV", "#NULL!", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
    "\\N", "(null)", "[NULL]", "?", ".", *(f".{letter}" for letter in "_" + ascii_letters),
)  # fmt: skip


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


def refuse_large_floats(array: pa.Array) -> None:
    """Refuse floating-point numbers too large to be told apart, where they are names of something.

    One missing value makes floating-point numbers of a whole column of a frame, and other texts of
    numbers of 2^53 and more: one row would change how all others are read.
    """
    array = plain(array)
    if pa.types.is_floating(array.type):
        large = pc.greater_equal(pc.abs(array.cast(pa.float64())), EXACT_FLOATS)
        if pc.any(large).as_py():
            raise SfumatoError(
                "floating-point numbers of 2^53 and more cannot be told apart: give whole numbers "
                "or texts (in pandas: astype('Int64') before nulls come in)"
            )


def is_null(texts: pa.Array) -> pa.Array:
    """Tell which texts stand for a missing value."""
    return pc.or_(pc.is_null(texts), pc.is_in(texts, pa.array(_NULL_TEXTS)))


def is_missing(array: pa.Array) -> NDArray[np.bool_]:
    """Tell which values are missing: null, not-a-number, or a text that stands for it."""
    array = plain(array)
    if pa.types.is_string(array.type):
        missing = is_null(pc.utf8_trim_whitespace(array))
    else:
        missing = pc.is_null(array, nan_is_null=True)
    told: NDArray[np.bool_] = missing.to_numpy(zero_copy_only=False)
    return told


def has_spaces(array: pa.Array) -> NDArray[np.bool_]:
    """Tell which texts have spaces around them; they are read without."""
    array = plain(array)
    if not pa.types.is_string(array.type) or not _may_hold_spaces(array):
        return np.zeros(len(array), bool)
    spaced = pc.not_equal(pc.utf8_trim_whitespace(array), array)
    told: NDArray[np.bool_] = pc.fill_null(spaced, False).to_numpy(zero_copy_only=False)
    return told


def _may_hold_spaces(texts: pa.Array) -> bool:
    """Tell whether any byte is a space of ASCII, or part of another character."""
    content = texts.buffers()[2]
    marks = np.frombuffer(content or b"", np.uint8)
    return bool(((marks <= ord(" ")) | (marks > 0x7E)).any())


def numbers(
    array: pa.Array, decimal: str = ".", thousands: str | None = None
) -> NDArray[np.float64]:
    """Give doubles; whatever is not a number becomes NaN.

    >>> numbers(pa.array([" 1.5", "+2", "1e3", "12 kg", "1e999", None])).tolist()
    [1.5, 2.0, 1000.0, nan, nan, nan]
    >>> numbers(pa.array(["1.827,50", "1827,5", "1.5"]), ",", ".").tolist()
    [1827.5, 1827.5, nan]
    """
    array = plain(array)
    kind = array.type
    if pa.types.is_decimal(kind):
        array = array.cast(pa.string())  # digits are read alike, however many zeros follow
    elif pa.types.is_string(kind):
        if decimal == "." and _only_digits(array):
            with suppress(pa.ArrowInvalid):  # two points in a number, or a sign within it
                return _doubles(array)
        array = _plain_numbers(pc.utf8_trim_whitespace(array), decimal, thousands)
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise SfumatoError(f"values of type {kind} cannot be read as numbers")
    return _doubles(array)


def _only_digits(texts: pa.Array) -> bool:
    """Tell whether all texts are made of digits, points and minus signs, and none is too long.

    Of such texts Arrow reads what `_NUMBER` allows, and refuses all else: then each is looked at
    for itself. So this is only quicker.
    """
    content = texts.buffers()[2]
    if content is None or texts.offset:
        return False
    marks = np.frombuffer(content, np.uint8)
    lengths = np.diff(np.frombuffer(texts.buffers()[1], np.int32)[: len(texts) + 1])
    # In the order of their codes: minus, point, slash, digits.
    plain = (marks - ord("-") <= ord("9") - ord("-")) & (marks != ord("/"))
    return bool(plain.all()) and int(lengths.max(initial=0)) <= _LONGEST


def _plain_numbers(texts: pa.Array, decimal: str, thousands: str | None) -> pa.Array:
    """Write numbers as computers do; null for what is none."""
    texts = pc.replace_substring(texts, "\u2212", "-")  # a typographer's minus
    if thousands:
        marks = "[ \u00a0\u202f]" if thousands == " " else f"[{thousands}]"
        if thousands == "'":
            marks = "['\u2019]"
        # Groups as the world writes them: three digits, or two but for the last (lakh and crore).
        grouped = rf"^[+-]?\d{{1,3}}({marks}\d{{2,3}})*{marks}\d{{3}}([{decimal}]\d*)?$"
        without = pc.replace_substring_regex(texts, marks, "")
        texts = pc.if_else(pc.match_substring_regex(texts, grouped), without, texts)
    if decimal != ".":
        # A point is no decimal mark here, so that 1.500 is not read as one and a half.
        texts = pc.if_else(pc.match_substring(texts, "."), None, texts)
        texts = pc.replace_substring(texts, decimal, ".")
    readable = pc.if_else(pc.match_substring_regex(texts, _NUMBER), texts, None)
    return pc.replace_substring_regex(readable, r"^\+", "")


def seconds(
    array: pa.Array, form: str | None = None, zone: str | None = None
) -> NDArray[np.float64]:
    """Give seconds since 1970 on the clock of `zone`; whatever is not a moment becomes NaN.

    Texts are ISO dates of any precision, or what `form` says. Moments that come with an offset are
    converted to `zone`, or to UTC; those without are taken to be told on its clock.

    >>> seconds(pa.array(["1970-01-02", "1970-01-01T00:01", "1970-01-01 00:00:07.5Z", "soon"]))
    array([8.64e+04, 6.00e+01, 7.00e+00,      nan])
    >>> seconds(pa.array(["1970-01-01T01:00+01:00", "1970-02", "02/01/1970"])).tolist()
    [0.0, 2678400.0, nan]
    >>> seconds(pa.array(["02/01/1970", "31/02/1970"]), "%d/%m/%Y").tolist()
    [86400.0, nan]
    >>> seconds(pa.array(["1970-01-01T00:00Z", "1970-01-01"]), zone="+01:00").tolist()
    [3600.0, 0.0]
    """
    array = plain(array)
    kind = array.type
    if form is not None and " since " in form and not pa.types.is_temporal(kind):
        told = _since(array, form)
        return told if form.startswith("days") else _on_clock(told, zone)  # clocks count in UTC
    if pa.types.is_string(kind):
        told, offsets = _moments(pc.utf8_trim_whitespace(array), form)
        zoned = np.isfinite(offsets)
        return np.where(zoned, _on_clock(told - np.where(zoned, offsets, 0), zone), told)
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise SfumatoError(f"values of type {kind} cannot be read as moments")
    told = _doubles(array.cast(pa.timestamp("s", _tz(kind)), safe=False).cast(pa.int64()))
    return told if _tz(kind) is None else _on_clock(told, zone)


def has_offset(array: pa.Array, form: str | None = None) -> NDArray[np.bool_]:
    """Tell which moments come with an offset from UTC other than zero."""
    array = plain(array)
    if pa.types.is_string(array.type) and " since " not in (form or ""):
        _, offsets = _moments(pc.utf8_trim_whitespace(array), form)
        away: NDArray[np.bool_] = np.nan_to_num(offsets) != 0
        return away
    return np.full(len(array), _tz(array.type) not in (None, "UTC", "Z", "+00:00", "Etc/UTC"))


def _tz(kind: pa.DataType) -> str | None:
    return kind.tz if pa.types.is_timestamp(kind) else None


def _on_clock(instants: NDArray[np.float64], zone: str | None) -> NDArray[np.float64]:
    """Give what a clock in the zone shows at instants, which are seconds since 1970 in UTC."""
    if zone is None:
        return instants
    ahead = fixed_offset(zone)
    if ahead is not None:
        return instants + ahead
    missing = np.isnan(instants)
    whole = pa.array(np.where(missing, 0, instants).astype(np.int64), mask=missing)
    there = pc.local_timestamp(whole.cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("s", zone)))
    return _doubles(there.cast(pa.int64()))


def fixed_offset(zone: str) -> int | None:
    """Give how many seconds clocks of a fixed offset are ahead; None for a place's zone.

    >>> fixed_offset("-03:30"), fixed_offset("Europe/Berlin")
    (-12600, None)
    """
    if zone[:1] not in ("+", "-"):
        return None
    ahead = datetime.strptime(zone, "%z").utcoffset()
    return None if ahead is None else round(ahead.total_seconds())


def _moments(texts: pa.Array, form: str | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the seconds since 1970 that texts show, and their offsets; NaN where there is none."""
    return _iso(texts) if form is None else _formatted(texts, form)


def _iso(texts: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    parts = pc.extract_regex(texts, _ISO)
    told = {
        name: _doubles(pc.if_else(pc.equal(text, ""), None, text))
        for name in ("year", "month", "day", "hour", "minute", "second", "ahead", "past")
        for text in [pc.struct_field(parts, name)]
    }
    month, day = (np.where(np.isnan(told[name]), 1, told[name]) for name in ("month", "day"))
    clock = [np.nan_to_num(told[name]) for name in ("hour", "minute", "second")]
    months = (np.nan_to_num(told["year"], nan=1970) - 1970) * 12 + np.clip(month, 1, 12) - 1
    first, following = (
        months.astype(np.int64).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        for months in (months, months + 1)
    )
    good = (month >= 1) & (month <= 12) & (day >= 1) & (day <= following - first)
    for part, most in zip(clock, (23, 59, 60), strict=True):
        good &= part <= most
    shown = (first + day - 1) * 86400.0 + clock[0] * 3600 + clock[1] * 60 + clock[2]
    offsets = told["ahead"] * 3600 + np.copysign(np.nan_to_num(told["past"]) * 60, told["ahead"])
    utc = pc.fill_null(pc.equal(pc.struct_field(parts, "utc"), ""), True)
    offsets = np.where(utc.to_numpy(zero_copy_only=False), offsets, 0.0)
    return np.where(good & ~np.isnan(told["year"]), shown, np.nan), offsets


def _formatted(texts: pa.Array, form: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    encoded = texts.dictionary_encode()
    shown = np.full(len(encoded.dictionary) + 1, np.nan)
    offsets = shown.copy()
    for place, text in enumerate(encoded.dictionary.to_pylist()):
        try:
            moment = datetime.strptime(text, form)
        except ValueError:
            continue
        ahead = moment.utcoffset()
        if ahead is not None:
            offsets[place] = ahead.total_seconds()
        shown[place] = (moment.replace(tzinfo=None) - _EPOCH).total_seconds() // 1
    places = pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy()
    return shown[places], offsets[places]


def _since(array: pa.Array, form: str) -> NDArray[np.float64]:
    """Read numbers of days, seconds or milliseconds since a day."""
    unit, _, day = form.split()
    scale = {"days": 86400.0, "seconds": 1.0, "milliseconds": 0.001}[unit]
    start = (datetime.fromisoformat(day) - _EPOCH).total_seconds()
    whole: NDArray[np.float64] = np.floor(numbers(array) * scale)
    return start + whole


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
        array = plain(array.dictionary).take(array.indices)
    if pa.types.is_null(array.type):
        return array.cast(pa.string())
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    return array


def _doubles(array: pa.Array) -> NDArray[np.float64]:
    doubles = array.cast(pa.float64(), safe=False)
    filled: NDArray[np.float64] = pc.fill_null(doubles, np.nan).to_numpy(zero_copy_only=False)
    return filled
