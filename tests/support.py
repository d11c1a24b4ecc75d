"""Small things that tests build on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from safetensors import safe_open
from safetensors.numpy import save

from seeded import Seeded, drawing
from sfumato.data.batch import Batch
from sfumato.data.rows import encoded_rows
from sfumato.modelling.base import Method, Model
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.schema import Boolean, Categorical, Numeric, Schema
from sfumato.statistics.counts import Axis, Counts

SCHEMA = Schema(
    columns={
        "age": Numeric(low=0, high=99, integer=True),
        "pay": Numeric(low=0, high=1000, nullable=True),
        "town": Categorical(values=("Ulm", "Jena"), other=True),
        "sick": Boolean(),
    }
)


def people(rows: int, seed: int = 0) -> pa.Table:
    """Simulate a table of `SCHEMA`."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, rows)
    return pa.table(
        {
            "age": age,
            "pay": pa.array(rng.gamma(2, 100, rows).round(2), mask=rng.random(rows) < 0.1),
            "town": np.array(["Ulm", "Jena", "Kiel"])[rng.integers(0, 3, rows)],
            "sick": rng.random(rows) < age / 100,
        }
    )


def count_statistic(cells: int = 4) -> Counts:
    """Histogram of the first coded column."""
    return Counts([(Axis(0, np.arange(cells, dtype=np.int32)),)])


def coded(values: list[int]) -> Batch:
    """Rows of one coded column."""
    return Batch(np.array(values, np.int32).reshape(-1, 1), np.empty((len(values), 0), np.float32))


def seeded_fit(
    method: Method, data: Any, schema: Schema, budget: Budget, workers: int = 1,
    spool: Path | None = None,
) -> Model:  # fmt: skip
    """Fit with rounded Gaussian noise from a fixed seed: for tests only."""
    curator = Curator(
        encoded_rows(data, method.codec(schema), budget.max_rows_per_unit, workers, spool),
        budget,
        schema,
        Run(ledger=Ledger(":memory:"), dataset="test"),
    )
    with drawing(Seeded()):
        return method.learn(curator)


def rewritten(path: Path, **changes: object) -> None:
    """Change what a saved file says about its spend."""
    with safe_open(path, "numpy") as file:
        about = file.metadata()
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    about["spend"] = json.dumps(json.loads(about["spend"]) | changes)
    path.write_bytes(save(arrays, about))
