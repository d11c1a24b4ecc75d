"""`sfumato schema`: write a first schema, fill it in, and check data against one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.errors import SfumatoError

app = typer.Typer(help="Write a schema, or check data against one.", no_args_is_help=True)

Input = Annotated[Path, typer.Argument(help="The private table: csv, csv.gz or parquet.")]
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
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUTPUT.")] = False,
) -> None:
    """Write names and kinds of the columns as TOML, with the bounds left open."""
    from sfumato.data.codebook import Codebook, read_codebook
    from sfumato.data.inspection import draft_schema
    from sfumato.storage import write_whole

    if output is not None:
        _check_ending(output)
        if output.exists() and not force:
            raise SfumatoError(f"{output} exists: name another file, or overwrite it with --force")
    draft = draft_schema(data, read_codebook(codebook) if codebook else Codebook())
    if output is None:
        print(draft.to_toml(), end="")
    else:
        write_whole(output, draft.to_toml().encode())
        print(output)


def _check_ending(output: Path) -> None:
    """Refuse to write over what is no schema, such as the data."""
    if output.suffix != ".toml":
        raise SfumatoError(f"{output}: a schema is written to .toml")


@app.command()
def check(
    data: Input,
    schema: Annotated[Path, typer.Option("--schema", "-s", help="The schema to check against.")],
) -> None:
    """Say which values lie outside the schema. The output is private: do not publish it."""
    from sfumato.data.inspection import misfits
    from sfumato.schema import Schema

    print("PRIVATE: what follows tells about private rows. Do not publish it.")
    print("\n".join(misfits(data, Schema.load(schema))) or "every value lies within the schema")
