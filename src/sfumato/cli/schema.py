"""`sfumato schema`: write a first schema, and check data against one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Write a first schema, or check data against one.", no_args_is_help=True)

Input = Annotated[Path, typer.Argument(help="The private table: csv, csv.gz or parquet.")]


@app.command()
def init(data: Input) -> None:
    """Print names and kinds of the columns as TOML, with the bounds left open."""
    from sfumato.data.inspection import draft_schema

    print(draft_schema(data), end="")


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
