"""`sfumato public`: what is learned from public images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from sfumato.cli.options import Force, Quiet, SchemaFile, load_schema
from sfumato.errors import SfumatoError

app = typer.Typer(help="Learn encoders and decoders from public images.", no_args_is_help=True)


@app.callback()
def options() -> None:
    """Learn encoders and decoders from public images."""


@app.command()
def train(
    images: Annotated[Path, typer.Argument(help="Public images: npz, idx or a folder.")],
    schema: SchemaFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The pair's file to write.")],
    source: Annotated[
        str, typer.Option("--source", help="Where the images come from, for certificates.")
    ],
    licence: Annotated[str, typer.Option("--licence", help="Under which licence they are.")],
    network: Annotated[
        str,
        typer.Option(
            "--network",
            help="The public network that encodes; float:timm:NAME or "
            "float:open_clip:MODEL/WEIGHTS for transformers, one image at a time.",
        ),
    ] = "efficientnet-lite0",
    decoder: Annotated[
        str,
        typer.Option(
            "--decoder",
            help="gallery: shows the nearest public image; flow: draws a new one; "
            "diffusers:FOLDER: a pipeline that varies an image of which it gets the embedding.",
        ),
    ] = "gallery",
    dim: Annotated[int, typer.Option("--dim", help="The length of a feature vector.")] = 128,
    steps: Annotated[int, typer.Option("--steps", help="Of the decoder's training.")] = 5000,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Learn an encoder and a decoder for images of the schema's size, of PUBLIC images only."""
    from sfumato.cli.console import progress_display
    from sfumato.data.image_sources import image_rows
    from sfumato.storage import locked, refuse_overwriting

    refuse_overwriting({"--output": output}, [images, schema], force)
    form = load_schema(schema, None, None).images
    if form is None:
        raise SfumatoError(f"{schema} is not the schema of an image set")
    try:
        from sfumato.public.pair import Pair
    except ImportError:
        raise SfumatoError("public pairs need torch: pip install 'sfumato[neural]'") from None
    rows = image_rows(images, form.model_copy(update={"classes": ()}))
    with progress_display(quiet) as progress, locked(output):
        progress("reading public images", None)
        pixels = [part for part, _ in rows.batches()]
        if not pixels:
            raise SfumatoError(f"{images} has no images")
        pair = Pair.train(
            np.concatenate(pixels),
            name=output.stem,
            source=source,
            licence=licence,
            network=network,
            decoder=decoder,
            dim=dim,
            steps=steps,
            progress=progress,
        )
        pair.save(output)
    print(output)
