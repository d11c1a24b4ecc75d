"""The one exception that users meet: a sentence that says what is wrong and what to do."""

from __future__ import annotations


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
