"""The one exception that users meet: a sentence that says what is wrong and what to do."""

from __future__ import annotations


class SfumatoError(Exception):
    """Bad input or a refused request; the command line prints it as one line and exits with 2."""


class PrivateWarning(UserWarning):
    """Something about the private rows that their owner should know, and nobody else."""


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
