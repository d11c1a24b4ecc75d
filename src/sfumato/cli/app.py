"""The commands, gathered, and the one way in which they fail."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated

import typer

from sfumato.cli import (
    auditing,
    classify,
    evaluation,
    ledger,
    planning,
    public,
    schema,
    synthesis,
)
from sfumato.errors import (
    FoundWarning,
    PrivateWarning,
    SavedAnswersWarning,
    SfumatoError,
    in_utf8,
)

app = typer.Typer(
    name="sfumato",
    help="Turn a sensitive table or image set into a differentially private synthetic one.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"sfumato {version('sfumato')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Turn a sensitive table or image set into a differentially private synthetic one."""


app.add_typer(schema.app, name="schema")
app.command()(planning.plan)
app.command()(synthesis.synth)
app.command()(synthesis.fit)
app.command()(synthesis.sample)
app.command()(synthesis.show)
app.command()(evaluation.evaluate)
app.command()(auditing.audit)
app.add_typer(classify.app, name="classify")
app.add_typer(public.app, name="public")
app.add_typer(ledger.app, name="ledger")


def run() -> None:
    """Run a command; whatever goes wrong ends in one line and exit code 2."""
    try:
        with warnings.catch_warnings(), _termination_interrupts():
            warnings.showwarning = _show
            for argument in sys.argv[1:]:
                in_utf8(argument)
            app()
    except SfumatoError as error:
        _fail(str(error))
    except SystemExit as stop:
        if stop.code != 130:  # which is how an interruption leaves the commands
            raise
        _fail("interrupted; what was paid for is kept: run the same command again to go on from it")
    except OSError as error:
        _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    except MemoryError:
        _fail("there is not enough memory for this")


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does: encoded rows are removed from disk."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    """Show the owner what concerns the rows and their answers; others are no use to them."""
    if issubclass(category, PrivateWarning | SavedAnswersWarning | FoundWarning):
        print(f"sfumato: {message}", file=sys.stderr)


def _fail(message: str) -> None:
    print("sfumato: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(2)
