"""The command line. Thin: parse, call, print."""

from __future__ import annotations

import sys
from importlib.util import find_spec

_LEAST_MEMORY = 1 << 30
"""With less address space, libraries for linear algebra end the process without a word of ours."""


def main() -> None:
    """Run a command; an interruption ends in one line, also while modules are being loaded."""
    if _address_space() < _LEAST_MEMORY:
        print(
            "sfumato: this process may use too little memory (ulimit -v): allow it at least "
            f"{_LEAST_MEMORY >> 10} kB, better four times as much",
            file=sys.stderr,
        )
        sys.exit(2)
    try:
        from sfumato.cli.app import run

        run()
    except KeyboardInterrupt:
        print("sfumato: interrupted; what was paid for is kept", file=sys.stderr)
        sys.exit(2)


def _address_space() -> float:
    """Give how many bytes the system lets this process have, where it says so."""
    if find_spec("resource") is None:
        return float("inf")
    from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

    most, _ = getrlimit(RLIMIT_AS)
    return float("inf") if most == RLIM_INFINITY else most
