"""`sfumato synth`, `fit`, `sample` and `show`: the main job and its parts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.ledger import Delta, LedgerFile, RelationOption, Unit, open_ledger
from sfumato.errors import SfumatoError, not_negative
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.doubts import doubts

Input = Annotated[
    str, typer.Argument(help="The private data: csv, csv.gz, parquet; npz, idx, image folder.")
]
SchemaFile = Annotated[Path, typer.Option("--schema", "-s", help="The public schema (TOML).")]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="The privacy budget of this run.")]
Target = Annotated[
    str | None, typer.Option("--target", "-t", help="The column that others are to predict.")
]
MethodName = Annotated[
    str | None, typer.Option("--method", "-m", help="pairs for tables, moments for images, …")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of the method, as key=value.")
]
Rows = Annotated[
    int | None, typer.Option("--rows", "-n", help="How many rows; by default the noisy count.")
]
Seed = Annotated[int, typer.Option("--seed", help="Fixes public randomness, never the noise.")]
Dataset = Annotated[
    str | None, typer.Option("--dataset", help="The name in the ledger; by default the file's.")
]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="csv or parquet; npz or a folder for images.")
]
Releases = Annotated[
    Path | None,
    typer.Option("--releases", help="Where paid-for releases are kept; by default beside OUTPUT."),
]
PayAgain = Annotated[
    bool,
    typer.Option(
        "--pay-again", help="Pay although the releases folder answers another such question."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
ModelFile = Annotated[Path, typer.Argument(help="A model file that fit or synth saved.")]


def synth(
    data: Input,
    schema: SchemaFile,
    epsilon: Epsilon,
    output: Output,
    delta: Delta = 1e-6,
    target: Target = None,
    method: MethodName = None,
    relation: RelationOption = Relation.ADD_REMOVE,
    rows_per_unit: Unit = 1,
    rows: Rows = None,
    seed: Seed = 0,
    dataset: Dataset = None,
    ledger: LedgerFile = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="Also save the model for more samples.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write the certificate as a web page.")
    ] = None,
    releases: Releases = None,
    pay_again: PayAgain = False,
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Turn private data into a synthetic copy with a differential-privacy guarantee."""
    from sfumato.cli.console import progress_display
    from sfumato.schema import Schema
    from sfumato.synthesis import synthesize

    public = Schema.load(schema)
    with progress_display(quiet) as progress:
        made = synthesize(
            data, public, budget_of(epsilon, delta, relation, rows_per_unit),
            method=method_of(public, method, target, settings, seed), output=output, rows=rows,
            seed=seed, ledger=open_ledger(ledger), dataset=dataset, folder=releases,
            pay_again=pay_again, progress=progress,
        )  # fmt: skip
    if model:
        made.model.save(model)
    write_certificate(made.model, report, output.name)
    if not quiet:
        print_guarantee(made.model)
    print(output)


def fit(
    data: Input,
    schema: SchemaFile,
    epsilon: Epsilon,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    delta: Delta = 1e-6,
    target: Target = None,
    method: MethodName = None,
    relation: RelationOption = Relation.ADD_REMOVE,
    rows_per_unit: Unit = 1,
    seed: Seed = 0,
    dataset: Dataset = None,
    ledger: LedgerFile = None,
    releases: Releases = None,
    pay_again: PayAgain = False,
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Fit a model to private data and save it; sample from it at no further cost."""
    from sfumato.cli.console import progress_display
    from sfumato.schema import Schema
    from sfumato.synthesis import releases_beside

    public = Schema.load(schema)
    chosen = method_of(public, method, target, settings, seed)
    with progress_display(quiet) as progress:
        fitted = chosen.fit(
            data, public, budget_of(epsilon, delta, relation, rows_per_unit),
            ledger=open_ledger(ledger), dataset=dataset,
            folder=releases or releases_beside(output), pay_again=pay_again, progress=progress,
        )  # fmt: skip
    fitted.save(output)
    if not quiet:
        print_guarantee(fitted)
    print(output)


def sample(
    model: ModelFile,
    output: Output,
    rows: Rows = None,
    given: Annotated[
        list[str] | None, typer.Option("--given", help="A value that all rows have, column=value.")
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Draw rows from a saved model."""
    from sfumato.cli.console import progress_display
    from sfumato.data.writing import check_output, write_synthetic
    from sfumato.loading import load
    from sfumato.methods.base import Model

    loaded = load(model)
    if not isinstance(loaded, Model):
        raise SfumatoError(f"{model} is a {loaded.method.name} model: it draws no rows")
    check_output(output, loaded.schema)
    not_negative(rows=rows or 0, seed=seed)
    with progress_display(quiet) as progress:
        progress("sampling", None)
        drawn = loaded.sample(rows, given=pairs(given, "--given") or None, seed=seed)
        progress(f"writing {output}", None)
        write_synthetic(output, drawn)
    print(output)


def show(
    model: ModelFile,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the certificate as a web page.")
    ] = None,
) -> None:
    """Print the certificate of a saved model or classifier."""
    from sfumato.certificate import certificate_text
    from sfumato.loading import load

    loaded = load(model)
    print(certificate_text(loaded))
    write_certificate(loaded, report, model.name)


def budget_of(epsilon: float, delta: float, relation: Relation, rows_per_unit: int) -> Budget:
    """Make a run's budget, and say what is doubtful about it."""
    budget = Budget(
        epsilon=epsilon, delta=delta, relation=relation, max_rows_per_unit=rows_per_unit
    )
    for doubt in doubts(budget):
        print(f"sfumato: {doubt}", file=sys.stderr)
    return budget


def method_of(
    schema: Any, name: str | None, target: str | None, settings: list[str] | None, seed: int = 0
) -> Any:
    """Make the method that is named, or the default for such data."""
    from sfumato.synthesis import default_method, make_method

    chosen: dict[str, Any] = {"seed": seed, **pairs(settings, "--set")}
    if target is not None:
        chosen["target"] = target
    return make_method(name or default_method(schema), chosen)


def write_certificate(fitted: Any, report: Path | None, name: str) -> None:
    """Write the certificate as a web page, if one is asked for."""
    if report:
        from sfumato.evaluate.report import certificate_html
        from sfumato.storage import write_whole

        write_whole(report, certificate_html(fitted, title=f"Certificate of {name}").encode())


def print_guarantee(fitted: Any) -> None:
    """Print the certificate beside the results."""
    from sfumato.certificate import certificate_text
    from sfumato.cli.console import stderr

    stderr.print(certificate_text(fitted), highlight=False, markup=False)


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Read key=value options."""
    found = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise SfumatoError(f"{option} takes key=value, got '{text}'")
        found[key.strip()] = value.strip()
    return found
