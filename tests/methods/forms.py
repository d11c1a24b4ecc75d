"""The forms of the methods that meet mean embeddings, and small data for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import GivenRows
from sfumato.data.table_codec import TableCodec
from sfumato.papers.embedding.base import EmbeddingMethod
from sfumato.papers.embedding.hp import Hp
from sfumato.papers.embedding.mepf import Mepf
from sfumato.papers.embedding.merf import Merf
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.schema import Categorical, Images, Numeric, Schema
from support import SCHEMA, people

PLANE = Schema(
    columns={
        "x": Numeric(low=-3, high=3),
        "y": Numeric(low=-3, high=3),
        "class": Categorical(values=("left", "right")),
    }
)
PICTURES = Schema(images=Images(height=4, width=6, classes=("cat", "dog")))
MERF: dict[str, Any] = {"features": 20, "steps": 3}
HP: dict[str, Any] = {"steps": 3}
MEPF: dict[str, Any] = {"network": "untrained", "grid": 2, "steps": 3}
TOWN = Schema(columns={"town": SCHEMA.columns["town"]})
FORMS: dict[str, tuple[EmbeddingMethod, Schema]] = {
    "merf, unlabelled": (Merf(**MERF), Schema(columns={k: PLANE.columns[k] for k in "xy"})),
    "merf, balanced": (Merf(target="class", balanced=True, **MERF), PLANE),
    "merf, imbalanced": (Merf(target="class", **MERF), PLANE),
    "merf, features by the bound": (Merf(target="class", steps=3), PLANE),
    "merf, heterogeneous": (Merf(**MERF), SCHEMA),
    "merf, heterogeneous, labelled": (Merf(target="sick", **MERF), SCHEMA),
    "merf, categories only": (Merf(**MERF), TOWN),
    "merf, images": (Merf(**MERF), PICTURES),
    "merf, images without classes": (Merf(**MERF), Schema(images=Images(height=4, width=6))),
    "hp, unlabelled": (Hp(**HP), Schema(columns={k: PLANE.columns[k] for k in "xy"})),
    "hp, balanced": (Hp(target="class", balanced=True, **HP), PLANE),
    "hp, heterogeneous": (Hp(**HP), SCHEMA),
    "hp, heterogeneous, labelled": (Hp(target="sick", **HP), SCHEMA),
    "hp, one column": (Hp(**HP), TOWN),
    "hp, redrawn products of three": (Hp(target="sick", degree=3, draws=2, **HP), SCHEMA),
    "hp, images": (Hp(**HP), PICTURES),
    "hp, images without classes": (Hp(**HP), Schema(images=Images(height=4, width=6))),
    "mepf, images": (Mepf(**MEPF), PICTURES),
    "mepf, balanced, with squares": (Mepf(balanced=True, squares=0.5, **MEPF), PICTURES),
    "mepf, as in the paper": (Mepf(centred=False, squares=0.5, **MEPF), PICTURES),
    "mepf, stopping": (Mepf(stopping=True, **MEPF), PICTURES),
    "mepf, images without classes": (Mepf(**MEPF), Schema(images=Images(height=4, width=6))),
}


def plane(rows: int, seed: int = 0) -> pa.Table:
    """Two clusters in each class, at distance 2 and of deviation 0.2; one class in four is left."""
    rng = np.random.default_rng(seed)
    right = rng.random(rows) < 0.75
    up = rng.choice([-1.0, 1.0], rows)
    x = np.where(right, 1.0, -1.0) + rng.normal(0, 0.2, rows)
    y = up * np.where(right, 1.0, 0.5) + rng.normal(0, 0.2, rows)
    return pa.table({"x": x, "y": y, "class": np.where(right, "right", "left")})


def encoded(method: EmbeddingMethod, schema: Schema, rows: int, seed: int) -> Batch:
    codec = method.codec(schema)
    if isinstance(codec, ImageCodec):
        rng = np.random.default_rng(seed)
        pixels = rng.integers(0, 256, (rows, 4, 6, 1)).astype(np.uint8)
        return codec.encode((pixels, rng.choice(["cat", "dog"], rows).tolist()))
    table = plane(rows, seed) if "x" in schema.columns else people(rows, seed)
    return codec.encode(table.select(codec.names).combine_chunks().to_batches()[0])


def curator_of(
    rows: Batch,
    schema: Schema,
    budget: Budget,
) -> Curator:
    codec = ImageCodec(schema.images) if schema.images else TableCodec(schema)
    return Curator(
        GivenRows([rows], codec), budget, schema, Run(ledger=Ledger(":memory:"), dataset="t")
    )
