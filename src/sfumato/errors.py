"""The one exception that users meet: a sentence that says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_MOST_SHOWN = 60  # letters of one value
_MOST_LISTED = 200  # letters of a list


class SfumatoError(Exception):
    """Bad input or a refused request; the command line prints it as one line and exits with 2."""


class PrivateWarning(UserWarning):
    """Something about the private rows that their owner should know, and nobody else."""


class SavedAnswersWarning(UserWarning):
    """What was paid for earlier was taken up, and the rows as they are now were not asked."""


class FoundWarning(UserWarning):
    """What noise left of something that a schema leaves to be found; it tells nothing of rows."""


def positive(**arguments: float) -> None:
    """Refuse a named argument that is not a positive finite number.

    >>> positive(epsilon=1.0)
    >>> positive(epsilon=-1.0)
    Traceback (most recent call last):
    ...
    sfumato.errors.SfumatoError: epsilon must be a positive number, got -1.0
    """
    for name, value in arguments.items():
        if not 0 < value < float("inf"):
            raise SfumatoError(f"{name} must be a positive number, got {value}")


def in_open_unit(**arguments: float) -> None:
    """Refuse a named argument outside the open interval (0, 1)."""
    for name, value in arguments.items():
        if not 0 < value < 1:
            raise SfumatoError(f"{name} must lie between 0 and 1, got {value}")


def not_negative(**arguments: int) -> None:
    """Refuse a named argument below zero."""
    for name, value in arguments.items():
        if value < 0:
            raise SfumatoError(f"{name} must not be negative, got {value}")


def within(**arguments: tuple[float | None, float, float]) -> None:
    """Refuse a named argument outside its range, given as its value, the least and the most.

    None stands where a rule decides.

    >>> within(steps=(20, 1, 1000), features=(None, 2, 100))
    >>> within(steps=(0, 1, 1000))
    Traceback (most recent call last):
    ...
    sfumato.errors.SfumatoError: steps must lie between 1 and 1,000, got 0
    """
    for name, (value, least, most) in arguments.items():
        if value is not None and not least <= value <= most:
            raise SfumatoError(f"{name} must lie between {least:,} and {most:,}, got {value}")


def shortened(text: str, most: int = _MOST_LISTED) -> str:
    """Give the start of a text that is too long to be shown whole.

    >>> shortened("abcdefgh", most=5)
    'abcd…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def quoted(value: object) -> str:
    """Quote a value from elsewhere, of which only the start is shown if it is long.

    >>> quoted("Ulm"), len(quoted("Ulm" * 1000))
    ("'Ulm'", 62)
    """
    return repr(shortened(value, _MOST_SHOWN)) if isinstance(value, str) else shortened(repr(value))


def listing(names: Iterable[object]) -> str:
    """List names from elsewhere, of which only the first are shown if there are many.

    >>> listing(["age", "town"])
    'age, town'
    """
    return shortened(", ".join(shortened(str(name), _MOST_SHOWN) for name in names))


def in_utf8(text: str) -> None:
    """Refuse a text that came from the system as bytes of which some are none of UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SfumatoError(
            f"{quoted(text)} is not in UTF-8: write it in UTF-8, or rename the file"
        ) from None


def not_read(place: object, error: BaseException, damaged: str) -> SfumatoError:
    """Say why a file was not read: in the system's words if it refused, else that it is `damaged`.

    >>> str(not_read("m.npz", PermissionError(13, "Permission denied"), "m.npz is damaged"))
    'no permission to read m.npz'
    """
    if isinstance(error, PermissionError):
        return SfumatoError(f"no permission to read {place}")
    if isinstance(error, IsADirectoryError) or Path(str(place)).is_dir():
        return SfumatoError(f"{place} is a folder: name a file")
    if isinstance(error, MemoryError):
        return SfumatoError(f"there is not enough memory to read {place}")
    if isinstance(error, OSError) and error.errno and error.strerror:
        return SfumatoError(f"cannot read {place}: {error.strerror}")
    return SfumatoError(damaged)
