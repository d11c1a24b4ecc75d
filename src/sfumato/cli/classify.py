"""`sfumato classify`: train a private classifier, use it, and see why it decides as it does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.ledger import Delta, LedgerFile, RelationOption, Unit, open_ledger
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
    budget_of,
    pairs,
    print_guarantee,
    show,
    write_certificate,
)
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Relation

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
    relation: RelationOption = Relation.ADD_REMOVE,
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
    from sfumato.cli.console import progress_display
    from sfumato.schema import Schema
    from sfumato.synthesis import releases_beside, with_settings

    public = Schema.load(schema)
    chosen: dict[str, Any] = {"seed": seed, **pairs(settings, "--set")}
    if target is not None:
        chosen["target"] = target
    method = with_settings(LocallyLinear, chosen)
    method.learner(method.space(public))  # what is missing is said before a row is read
    budget = budget_of(epsilon, delta, relation, rows_per_unit)
    with progress_display(quiet) as progress:
        model = method.fit(
            data,
            public,
            budget,
            ledger=open_ledger(ledger),
            dataset=dataset,
            folder=releases or releases_beside(output),
            pay_again=pay_again,
            progress=progress,
        )
    model.save(output)
    write_certificate(model, report, output.name)
    if not quiet:
        print_guarantee(model)
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

    from sfumato.schema import canonical_text
    from sfumato.storage import reserved

    if output.suffix != ".csv":
        raise SfumatoError(f"{output}: predictions are written to .csv")
    loaded = _classifier(model)
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
    from sfumato.classify.locally_linear import LocallyLinearModel
    from sfumato.classify.pictures import check_format, write_explanation

    check_format(output)
    loaded = _classifier(model)
    if not isinstance(loaded, LocallyLinearModel):
        raise SfumatoError(f"{model} is a {loaded.method.name} model: it has no linear maps")
    write_explanation(output, loaded.explain(data, row))
    print(output)


def _classifier(path: Path) -> Any:
    """Read a classifier; another model is refused."""
    from sfumato.classify.base import ClassifierModel
    from sfumato.loading import load

    loaded = load(path)
    if not isinstance(loaded, ClassifierModel):
        raise SfumatoError(f"{path} is a {loaded.method.name} model, not a classifier")
    return loaded


app.command()(show)
