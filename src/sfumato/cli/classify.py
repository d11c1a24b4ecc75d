"""`sfumato classify`: train a private classifier, use it, and see why it decides as it does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.ledger import Delta, LedgerFile, Neighbours, Unit, open_ledger
from sfumato.cli.synthesis import (
    Dataset,
    Epsilon,
    Input,
    PayAgain,
    Quiet,
    Releases,
    SchemaFile,
    Seed,
    Target,
)
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, Relation

app = typer.Typer(
    help="Train a differentially private classifier that explains itself.", no_args_is_help=True
)

ModelFile = Annotated[Path, typer.Argument(help="A model file that classify train saved.")]
NewData = Annotated[
    Path, typer.Argument(help="New data in the schema's form; they need no target column.")
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Also write the certificate as a web page.")
]


@app.command()
def train(
    data: Input,
    schema: SchemaFile,
    epsilon: Epsilon,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    delta: Delta = 1e-6,
    target: Target = None,
    relation: Neighbours = Relation.ADD_REMOVE,
    rows_per_unit: Unit = 1,
    seed: Seed = 0,
    dataset: Dataset = None,
    ledger: LedgerFile = None,
    report: Report = None,
    releases: Releases = None,
    pay_again: PayAgain = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting: maps, beta, rate, epochs, clip, …, as key=value."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train on private data and save the model, which may be shared."""
    from sfumato.classify.locally_linear import LocallyLinear
    from sfumato.cli.console import progress_display, stderr
    from sfumato.cli.synthesis import pairs
    from sfumato.schema import Schema
    from sfumato.synthesis import made

    public = Schema.load(schema)
    chosen: dict[str, Any] = {"seed": seed, **pairs(settings, "--set")}
    if target is not None:
        chosen["target"] = target
    method = made(LocallyLinear, chosen)
    method.learner(method.layout(public))  # what is missing is said before a row is read
    budget = Budget(
        epsilon=epsilon, delta=delta, relation=relation, max_rows_per_unit=rows_per_unit
    )
    with progress_display(quiet) as progress:
        model = method.fit(
            data,
            public,
            budget,
            ledger=open_ledger(ledger),
            dataset=dataset,
            folder=releases or output.with_name(output.name + ".releases"),
            pay_again=pay_again,
            progress=progress,
        )
    model.save(output)
    _write_report(model, report, output.name)
    if not quiet:
        from sfumato.certificate import certificate_text

        stderr.print(certificate_text(model), highlight=False, markup=False)
    print(output)


@app.command()
def predict(
    model: ModelFile,
    data: NewData,
    output: Annotated[Path, typer.Option("--output", "-o", help="The csv file to write.")],
) -> None:
    """Predict the class of each row: a column prediction, and one probability per class."""
    import pyarrow as pa
    import pyarrow.csv

    from sfumato.classify.base import load_classifier
    from sfumato.schema import canonical_text
    from sfumato.storage import reserved

    if output.suffix != ".csv":
        raise SfumatoError(f"{output}: predictions are written to .csv")
    loaded = load_classifier(model)
    chances = loaded.predict_proba(data)
    columns = {"prediction": loaded.names(chances.argmax(axis=1))}
    for index, value in enumerate(loaded.classes):
        columns[f"probability_{canonical_text(value)}"] = chances[:, index]
    with reserved(output) as file:
        pa.csv.write_csv(pa.table(columns), file)
    print(output)


@app.command()
def explain(
    model: ModelFile,
    data: NewData,
    output: Annotated[Path, typer.Option("--output", "-o", help="png, svg, or json for data.")],
    row: Annotated[int, typer.Option("--row", help="Which row, from 0 on.")] = 0,
) -> None:
    """Show which linear maps decided about one row, and what they look for.

    The picture shows what that row says, so it is as private as the row.
    """
    from sfumato.classify.base import load_classifier
    from sfumato.classify.locally_linear import LocallyLinearModel
    from sfumato.classify.pictures import check_format, write_explanation

    check_format(output)
    loaded = load_classifier(model)
    if not isinstance(loaded, LocallyLinearModel):
        raise SfumatoError(f"{model} is a {loaded.method.name} model: it has no linear maps")
    write_explanation(output, loaded.explain(data, row))
    print(output)


@app.command()
def show(model: ModelFile, report: Report = None) -> None:
    """Print the certificate of a saved classifier."""
    from sfumato.certificate import certificate_text
    from sfumato.classify.base import load_classifier

    loaded = load_classifier(model)
    print(certificate_text(loaded))
    _write_report(loaded, report, model.name)


def _write_report(model: Any, report: Path | None, name: str) -> None:
    if report:
        from sfumato.evaluate.report import classifier_html
        from sfumato.storage import write_whole

        write_whole(report, classifier_html(model, title=f"Certificate of {name}").encode())
