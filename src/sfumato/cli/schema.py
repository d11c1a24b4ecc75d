"""`sfumato schema`: write a first schema, fill it in, and check data against one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import (
    Delimiter,
    Encoding,
    Force,
    Misfit,
    SchemaFile,
    csv_settings,
    load_schema,
)
from sfumato.errors import SfumatoError, quoted

app = typer.Typer(help="Write a schema, or check data against one.", no_args_is_help=True)

Input = Annotated[
    str, typer.Argument(help="The private table: csv, csv.gz, parquet, or in a database.")
]
CodebookFile = Annotated[
    Path | None,
    typer.Option(
        "--codebook",
        help="What is publicly known of the columns: csv, JSON Schema, frictionless, or a schema.",
    ),
]


@app.command()
def init(
    data: Input,
    codebook: CodebookFile = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; by default stdout.")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    force: Force = False,
) -> None:
    """Write names and kinds of the columns as TOML, with the bounds left open."""
    from sfumato.data.codebook import Codebook, read_codebook
    from sfumato.data.inspection import draft_schema
    from sfumato.storage import refuse_overwriting, write_whole

    if output is not None:
        _check_ending(output)
        refuse_overwriting({"--output": output}, [data, codebook], force)
    book = read_codebook(codebook) if codebook else Codebook()
    draft = draft_schema(data, book, csv_settings(delimiter, encoding))
    if output is None:
        print(draft.to_toml(), end="")
    else:
        write_whole(output, draft.to_toml().encode())
        print(output)


@app.command()
def edit(
    data: Input,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", "--schema", "-s", help="The schema to write or go on with."),
    ],
    codebook: CodebookFile = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> None:
    """Ask, column by column, for what a schema needs. Each answer is kept: go on at any time."""
    from sfumato.cli.dialogue import fill_in
    from sfumato.data.codebook import Codebook, read_codebook
    from sfumato.data.inspection import draft_schema
    from sfumato.schema import Schema
    from sfumato.storage import refuse_overwriting, write_whole

    _check_ending(output)
    refuse_overwriting({"--output": output}, [data, codebook], force=True)
    book = read_codebook(codebook) if codebook else Codebook()
    earlier = read_codebook(output) if output.exists() else Codebook()
    draft = draft_schema(data, book.corrected_by(earlier), csv_settings(delimiter, encoding))
    for name in earlier.columns:
        if name not in draft.guesses:
            raise SfumatoError(f"the data have no column '{name}'; remove it from {output}")
    try:
        fill_in(draft, lambda: write_whole(output, draft.so_far().encode()))
    except typer.Abort:
        typer.echo(err=True)
        raise SfumatoError(
            f"stopped; what was answered is in {output}: run the same command again to go on"
            if output.exists()
            else "stopped before anything was answered"
        ) from None
    Schema.load(output)
    print(output)


def _check_ending(output: Path) -> None:
    """Refuse to write over what is no schema, such as the data."""
    from sfumato.storage import local

    if local(output).suffix != ".toml":
        raise SfumatoError(f"{output}: a schema is written to .toml")


@app.command()
def check(
    data: Input,
    schema: SchemaFile,
    misfit: Misfit = "0.01",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> None:
    """Say what does not fit the schema. The output is private: do not publish it."""
    from sfumato.data.inspection import reviewed
    from sfumato.privacy.gate import Gate

    gate = Gate.of(misfit)
    found, left_out = reviewed(data, load_schema(schema, delimiter, encoding))
    print("PRIVATE: what follows tells about private rows. Do not publish it.")
    sentences = [*found.sentences(), *(f"column {quoted(n)}: not in the schema" for n in left_out)]
    print("\n".join(sentences) or "every value lies within the schema")
    refusal = None if gate.most is None else found.refusal(gate.most)
    if refusal:
        raise SfumatoError("the data do not fit the schema")
