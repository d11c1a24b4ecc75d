"""`sfumato schema`: write a first schema, and check data against one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Delimiter, Encoding, Misfit, SchemaFile, load_schema
from sfumato.errors import SfumatoError

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
    sentences = [*found.sentences(), *(f"column '{n}': not in the schema" for n in left_out)]
    print("\n".join(sentences) or "every value lies within the schema")
    refusal = None if gate.most is None else found.refusal(gate.most)
    if refusal:
        raise SfumatoError("the data do not fit the schema")
