"""What a peer is given and gives back: a folder with `job.json`, `train.csv` and `synthetic.csv`.

Runs in every peer's own environment, so it needs nothing but pandas. In the csv files a missing
value is an empty cell; `job.json` has the public schema, the budget and the seed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Job:
    """One run of one peer. `columns` tells of each column what an owner would know of it.

    A category: `{"values": [...], "nullable": bool}`. A number: `{"low": ..., "high": ...,
    "integer": bool, "nullable": bool}`.
    """

    folder: Path
    columns: dict[str, dict[str, Any]]
    target: str
    epsilon: float
    delta: float
    seed: int
    options: dict[str, Any]

    @classmethod
    def given(cls) -> Job:
        """Read the job in the folder that is named on the command line."""
        folder = Path(sys.argv[1])
        return cls(folder, **json.loads((folder / "job.json").read_text()))

    @property
    def categories(self) -> list[str]:
        return [name for name, known in self.columns.items() if "values" in known]

    @property
    def numbers(self) -> list[str]:
        return [name for name in self.columns if name not in self.categories]

    def train(self) -> pd.DataFrame:
        return read_rows(self.folder / "train.csv", self.columns)

    def finish(self, synthetic: pd.DataFrame, package: str, settings: dict[str, Any]) -> None:
        """Hand over the synthetic rows, and say what was run."""
        synthetic[list(self.columns)].to_csv(self.folder / "synthetic.csv", index=False)
        told = {"package": package, "version": version(package), "settings": settings}
        (self.folder / "told.json").write_text(json.dumps(told))


def read_rows(path: Path, columns: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Read categories as text and numbers as numbers; missing values are None or NaN."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = {}
    for name, known in columns.items():
        if "values" in known:
            rows[name] = frame[name].astype(object).where(frame[name] != "", None)
            continue
        numbers = pd.to_numeric(frame[name].where(frame[name] != "")).astype(float)
        whole = known["integer"] and not numbers.isna().any()
        rows[name] = numbers.round().astype(np.int64) if whole else numbers
    return pd.DataFrame(rows)
