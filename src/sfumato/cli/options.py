"""The options that commands share, so that they are the same in all of them."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.data.address import Address, is_address
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Relation
from sfumato.schema import CsvFormat, Schema

STANDARD = Path("-")
"""The standard input or output, where a file is asked for."""


class Engine(StrEnum):
    """What reads the private rows."""

    OWN = "own"
    SPARK = "spark"


Input = Annotated[
    str,
    typer.Argument(
        help="The private data: csv, csv.gz, tsv, parquet or a folder of it; "
        "duckdb://file?table=…, sqlite://…, postgresql://…; npz, idx, image folder; - for stdin."
    ),
]
SchemaFile = Annotated[Path, typer.Option("--schema", "-s", help="The public schema (TOML).")]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="The privacy budget of this run.")]
Delta = Annotated[float, typer.Option("--delta", help="What is added to each probability.")]
RelationOption = Annotated[
    Relation, typer.Option("--relation", help="Which data sets count as neighbours.")
]
Unit = Annotated[
    int, typer.Option("--rows-per-unit", help="The most rows that one person or unit has.")
]
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
LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="The ledger file; by default SFUMATO_LEDGER or the user's own."),
]


def _destination(text: str) -> Path | str:
    """Give the address of a table in a database as it is, and anything else as a path."""
    return text if is_address(text) else Path(text)


Output = Annotated[
    Any,
    typer.Option(
        "--output",
        "-o",
        parser=_destination,
        metavar="PATH",
        help="csv, csv.gz, parquet, - for stdout; a new table of a database, as "
        "duckdb://file?table=…; npz or a folder for images.",
    ),
]
FoundSchema = Annotated[
    Path | None,
    typer.Option("--schema", "-s", help="Write the model's schema, with all that was found."),
]
Report = Annotated[
    Path | None, typer.Option("--report", help="Also write the certificate as a web page.")
]
Releases = Annotated[
    Path | None,
    typer.Option("--releases", help="Where paid-for releases are kept; by default beside OUTPUT."),
]
PayAgain = Annotated[
    bool,
    typer.Option(
        "--pay-again",
        help="Ask everything anew, and pay for it, whatever was answered before.",
    ),
]
UseSaved = Annotated[
    bool,
    typer.Option("--use-saved", help="Use saved releases only: pay nothing."),
]
Misfit = Annotated[
    str,
    typer.Option("--misfit", help="The share of a column that may lie outside the schema, or off."),
]
MisfitBudget = Annotated[
    float,
    typer.Option(
        "--misfit-budget",
        help="Let noisy counts decide about misfit, for this share of the budget.",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="What separates the columns of a csv file.")
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="The encoding of a csv file, such as latin-1.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite outputs that exist.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", help="How many processes read, sum and sample; by default one for each core."
    ),
]
EngineOption = Annotated[
    Engine,
    typer.Option(
        "--engine", help="Let Spark read: parquet wherever it lies, or a table of its catalogue."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", help="A method of another package that the model file may import."),
]
ModelFile = Annotated[Path, typer.Argument(help="A model file that was saved.")]
ModelOutput = Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")]


def load_schema(path: Path, delimiter: str | None = None, encoding: str | None = None) -> Schema:
    """Read a schema; options of the command line go before what it says of csv files."""
    schema = Schema.load(path)
    return with_csv(schema, delimiter, encoding)


def with_csv(schema: Schema, delimiter: str | None, encoding: str | None) -> Schema:
    """Let options of the command line go before what a schema says of csv files."""
    said = schema.csv.model_dump() | csv_settings(delimiter, encoding)
    return schema.model_copy(update={"csv": CsvFormat(**said)})


def csv_settings(delimiter: str | None, encoding: str | None) -> dict[str, str]:
    """Give what the command line says of csv files, as settings of a schema."""
    named = {"delimiter": delimiter, "encoding": encoding}
    given = {key: value for key, value in named.items() if value is not None}
    if given.get("delimiter") in ("\\t", "tab"):
        given["delimiter"] = "\t"
    try:
        CsvFormat(**given)
    except ValueError:
        raise SfumatoError(
            "--delimiter takes one character, --encoding the name of an encoding such as latin-1"
        ) from None
    return given


def private_data(text: str, dataset: str | None, engine: Engine = Engine.OWN) -> Any:
    """Give a path as it is, or what Spark reads; the standard input must be given a name."""
    if engine is Engine.SPARK:
        from sfumato.data.spark import spark_frame

        return spark_frame(text)
    if text != "-":
        warn_of_password(text)
        return text
    if dataset is None:
        raise SfumatoError("data from the standard input have no name: give one with --dataset")
    return sys.stdin.buffer.read()


def warn_of_password(text: str) -> None:
    """Say that others can see a password that stands on the command line."""
    if is_address(text) and Address.of(text).secrets:
        print(
            "sfumato: others on this machine can see a password on the command line: use "
            "PGPASSWORD or ~/.pgpass",
            file=sys.stderr,
        )


def spark_name(text: str, engine: Engine) -> str | None:
    """Name a data set that Spark reads by its path or its table; others have names of their own."""
    from sfumato.data.sources import dataset_name

    return dataset_name(text) if engine is Engine.SPARK else None


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Read key=value options."""
    found = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise SfumatoError(f"{option} takes key=value, got '{text}'")
        found[key.strip()] = value.strip()
    return found
