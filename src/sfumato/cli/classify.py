"""`sfumato classify`: train a private classifier, use it, and see why it decides as it does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.asked import Asked, Paid, grouped
from sfumato.cli.options import (
    STANDARD,
    Delimiter,
    Encoding,
    Force,
    Input,
    ModelFile,
    ModelOutput,
    Quiet,
    Report,
    with_csv,
)
from sfumato.cli.synthesis import ModelFiles, fit_and_save, show
from sfumato.errors import SfumatoError

app = typer.Typer(
    help="Train a differentially private classifier that explains itself.", no_args_is_help=True
)

NewData = Annotated[
    Path, typer.Argument(help="New data in the schema's form; they need no target column.")
]


@app.command()
@grouped
def train(
    data: Input,
    asked: Asked,
    output: ModelOutput,
    paid: Paid,
    report: Report = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Train on private data and save the model, which may be shared."""
    from sfumato.classify.base import Classifier

    outputs = ModelFiles(output, report, force)
    outputs.refuse([data, asked.schema, *paid.files(output)])
    public = asked.public()
    method = asked.method_for("locally-linear", asked.seed)
    if not isinstance(method, Classifier):
        raise SfumatoError(f"{method.name} is no classifier: use sfumato fit")
    method.learner(method.space(public))  # what is missing is said before a row is read
    fit_and_save(method, data, public, asked, paid, outputs, quiet)


@app.command()
def predict(
    model: ModelFile,
    data: NewData,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The csv file to write; - for stdout.")
    ],
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Predict the class of each row: a column prediction, and one probability per class."""
    import sys

    import pyarrow as pa
    import pyarrow.csv

    from sfumato.cli.console import progress_display
    from sfumato.schema import canonical_text
    from sfumato.storage import refuse_overwriting, reserved

    file = None if output == STANDARD else output
    refuse_overwriting({"--output": file}, [model, data], force)
    if file and file.suffix != ".csv":
        raise SfumatoError(f"{file}: predictions are written to .csv")
    loaded = _classifier(model, delimiter, encoding)
    with progress_display(quiet) as progress:
        progress("predicting", None)
        chances = loaded.predict_proba(data)
    columns = {"prediction": loaded.names(chances.argmax(axis=1))}
    for index, value in enumerate(loaded.classes):
        columns[f"probability_{canonical_text(value)}"] = chances[:, index]
    if file is None:
        pa.csv.write_csv(pa.table(columns), sys.stdout.buffer)
        return
    with reserved(file) as opened:
        pa.csv.write_csv(pa.table(columns), opened)
    print(file)


@app.command()
def explain(
    model: ModelFile,
    data: NewData,
    output: Annotated[Path, typer.Option("--output", "-o", help="png, svg, or json for data.")],
    row: Annotated[int, typer.Option("--row", help="Which row, from 0 on.")] = 0,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    force: Force = False,
) -> None:
    """Show which linear maps decided about one row, and what they look for.

    The picture shows what that row says, so it is as private as the row.
    """
    from sfumato.classify.locally_linear import LocallyLinearModel
    from sfumato.classify.pictures import check_format, write_explanation
    from sfumato.storage import refuse_overwriting

    refuse_overwriting({"--output": output}, [model, data], force)
    check_format(output)
    loaded = _classifier(model, delimiter, encoding)
    if not isinstance(loaded, LocallyLinearModel):
        raise SfumatoError(f"{model} is a {loaded.method.name} model: it has no linear maps")
    write_explanation(output, loaded.explain(data, row))
    print(output)


def _classifier(path: Path, delimiter: str | None, encoding: str | None) -> Any:
    """Read a classifier, and how it is to read csv files; another model is refused."""
    from sfumato.classify.base import ClassifierModel
    from sfumato.loading import load

    loaded = load(path)
    if not isinstance(loaded, ClassifierModel):
        raise SfumatoError(f"{path} is a {loaded.method.name} model, not a classifier")
    return replace(loaded, schema=with_csv(loaded.schema, delimiter, encoding))


app.command()(show)
