"""`sfumato synth`, `fit`, `sample` and `show`: the main job and its parts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.asked import Asked, Paid, grouped
from sfumato.cli.ledger import ledger_files
from sfumato.cli.options import (
    STANDARD,
    Allow,
    Force,
    FoundSchema,
    Input,
    ModelFile,
    ModelOutput,
    Output,
    Quiet,
    Report,
    Rows,
    Seed,
    Workers,
    pairs,
    warn_of_password,
)
from sfumato.errors import SfumatoError, not_negative, within

if TYPE_CHECKING:
    from sfumato.data.new_table import NewTable
    from sfumato.progress import Progress
    from sfumato.schema import Schema


@grouped
def synth(
    data: Input,
    asked: Asked,
    output: Output,
    paid: Paid,
    rows: Rows = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="Also save the model for more samples.")
    ] = None,
    report: Report = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Turn private data into a synthetic copy with a differential-privacy guarantee."""
    from sfumato.cli.console import progress_display
    from sfumato.storage import refuse_overwriting
    from sfumato.synthesis import default_method, synthesize

    place = _place(output, force)
    file = place if isinstance(place, Path) else None
    refuse_overwriting(
        {"--output": file, "--model": model, "--report": report},
        [data, asked.schema, *paid.files(file)], force, folder=file,
    )  # fmt: skip
    if paid.folder(file) is None:
        raise SfumatoError("what is paid for must be kept: name a folder with --releases")
    public = asked.public()
    if place is None and public.images:
        raise SfumatoError("images cannot be written to the standard output: name a file")
    chosen, budget = asked.method_for(default_method(public), asked.seed), asked.budget()
    run = paid.run(data, file)
    with progress_display(quiet) as progress, alone(file, progress):
        made = synthesize(
            paid.data(data), public, budget, method=chosen, output=place, rows=rows,
            seed=asked.seed, run=replace(run, progress=progress),
        )  # fmt: skip
        if place is None:
            print_rows(made.data, public)
        if model:
            made.model.save(model)
        name = place.name if place else STANDARD.name
        write_certificate(made.model, report, name, data=file, model=model)
    if not quiet:
        print_guarantee(made.model)
    if place:
        print(_told(place))


@grouped
def fit(
    data: Input,
    asked: Asked,
    output: ModelOutput,
    paid: Paid,
    report: Report = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to private data and save it; sample from it at no further cost."""
    from sfumato.synthesis import default_method

    outputs = ModelFiles(output, report, force)
    outputs.refuse([data, asked.schema, *paid.files(output)])
    public = asked.public()
    method = asked.method_for(default_method(public), asked.seed)
    fit_and_save(method, data, public, asked, paid, outputs, quiet)


@dataclass(frozen=True)
class ModelFiles:
    """Where a model and its certificate are written."""

    model: Path
    report: Path | None
    force: bool

    def refuse(self, inputs: Sequence[Any]) -> None:
        """Refuse files that cannot be written, before anything else is done."""
        from sfumato.storage import refuse_overwriting

        outputs = {"--output": self.model, "--report": self.report}
        refuse_overwriting(outputs, inputs, self.force)


def fit_and_save(
    method: Any,
    data: str,
    public: Schema,
    asked: Asked,
    paid: Paid,
    outputs: ModelFiles,
    quiet: bool,
) -> None:
    """Fit a method of any kind, save the model, and show what it promises."""
    from sfumato.cli.console import progress_display

    output, budget = outputs.model, asked.budget()
    run = paid.run(data, output)
    with progress_display(quiet) as progress, alone(output, progress):
        fitted = method.fit(paid.data(data), public, budget, replace(run, progress=progress))
        fitted.save(output)
    write_certificate(fitted, outputs.report, output.name, model=output)
    if not quiet:
        print_guarantee(fitted)
    print(output)


def sample(
    model: ModelFile,
    output: Output,
    rows: Rows = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--given", help="What all rows have: column=value, =a,b or =low..high."),
    ] = None,
    seed: Seed = 0,
    workers: Workers = None,
    allow: Allow = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Draw rows from a saved model; large tables in parts, as they are written."""
    from sfumato.cli.console import progress_display
    from sfumato.data.condition import read_given
    from sfumato.data.writing import check_output
    from sfumato.loading import load
    from sfumato.modelling.base import Model
    from sfumato.sampling import Draw
    from sfumato.storage import refuse_overwriting

    place = _place(output, force)
    file = place if isinstance(place, Path) else None
    refuse_overwriting({"--output": file}, [model, *ledger_files(None)], force, folder=file)
    loaded = load(model, allow or ())
    if not isinstance(loaded, Model):
        raise SfumatoError(f"{model} is a {loaded.method.name} model: it draws no rows")
    if place:
        check_output(place, loaded.schema)
    elif loaded.schema.images:
        raise SfumatoError("images cannot be written to the standard output: name a file")
    not_negative(seed=seed, rows=rows or 0)
    within(workers=(workers, 1, 1024))
    texts = [pair for text in given or [] for pair in pairs([text], "--given").items()]
    wanted = read_given(texts, loaded.schema)
    with progress_display(quiet) as progress:
        progress("sampling", None)
        draw = Draw(loaded, rows, wanted, seed)
        if place is None:
            for piece in draw.csv(workers):
                sys.stdout.buffer.write(piece)
            return
        draw.write(place, workers)
    print(_told(place))


def _place(output: Path | str, force: bool) -> Path | NewTable | None:
    """Give where to write: a path, a table of a database, or nothing for the standard output."""
    from sfumato.data.new_table import new_table

    if isinstance(output, Path):
        return None if output == STANDARD else output
    warn_of_password(output)
    return new_table(output, force)


def _told(place: Path | NewTable) -> str:
    return str(place) if isinstance(place, Path) else place.told


def alone(file: Path | None, progress: Progress) -> AbstractContextManager[None]:
    """Let only one run at a time write a file; others wait for it, and say so."""
    from sfumato.storage import locked

    if file is None:
        return nullcontext()
    return locked(file, lambda: progress(f"waiting for another run that writes {file}", None))


def print_rows(drawn: Any, schema: Any) -> None:
    """Write a synthetic table to the standard output."""
    from sfumato.data.writing import CsvWriting

    sys.stdout.buffer.write(CsvWriting(schema).piece(drawn))


def show(
    model: ModelFile,
    report: Report = None,
    schema: FoundSchema = None,
    allow: Allow = None,
    force: Force = False,
) -> None:
    """Print the certificate of a saved model or classifier."""
    from sfumato.certificate import certificate_text
    from sfumato.loading import load
    from sfumato.storage import refuse_overwriting, write_whole

    refuse_overwriting({"--report": report, "--schema": schema}, [model], force)
    loaded = load(model, allow or ())
    print(certificate_text(loaded))
    write_certificate(loaded, report, model.name, model=model)
    if schema is not None:
        write_whole(schema, loaded.schema.to_toml().encode())


def write_certificate(
    fitted: Any,
    report: Path | None,
    name: str,
    data: Path | None = None,
    model: Path | None = None,
    measured: Sequence[Any] = (),
) -> None:
    """Write the certificate as a web page, if one is asked for; it names the files by digest."""
    if not report:
        return
    from sfumato.evaluation.report import certificate_html
    from sfumato.storage import write_whole

    labelled = {"synthetic data": data, "model": model}
    files = {
        f"{label} ({path.name})": _digest(path)
        for label, path in labelled.items()
        if path is not None and path.is_file()
    }
    page = certificate_html(
        fitted, title=f"Certificate of {name}", date=_today(), files=files, measured=measured
    )
    write_whole(report, page.encode())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def print_guarantee(fitted: Any) -> None:
    """Print the certificate beside the results."""
    from sfumato.certificate import certificate_text
    from sfumato.cli.console import stderr

    stderr.print(certificate_text(fitted), highlight=False, markup=False)
