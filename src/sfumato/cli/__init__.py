"""The command line. Thin: parse, call, print."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a command; an interruption ends in one line, also while modules are being loaded."""
    try:
        from sfumato.cli.app import run

        run()
    except KeyboardInterrupt:
        print("sfumato: interrupted; what was paid for is kept", file=sys.stderr)
        sys.exit(2)
