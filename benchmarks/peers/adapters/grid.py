"""A public grid for peers that know only whole numbers from 0 to n - 1.

A number is cut in cells of equal width between the schema's bounds. The lower bound has a cell of
its own, since so many columns are mostly zero; a column of few whole numbers keeps them all. A
missing value is a cell, too. Nothing is read from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

CELLS = 32
KEPT = 100  # whole numbers that a column keeps each by itself


@dataclass(frozen=True)
class Grid:
    columns: dict[str, dict[str, Any]]

    def sizes(self) -> dict[str, int]:
        return {name: _cells(known) + known["nullable"] for name, known in self.columns.items()}

    def encode(self, frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            {name: _encoded(known, frame[name]) for name, known in self.columns.items()}
        )

    def decode(self, codes: pd.DataFrame, seed: int) -> pd.DataFrame:
        """Draw numbers evenly from their cells."""
        rng = np.random.default_rng(seed)
        return pd.DataFrame(
            {
                name: _decoded(known, codes[name].to_numpy(), rng)
                for name, known in self.columns.items()
            }
        )


def _cells(known: dict[str, Any]) -> int:
    """Count the cells of values that are not missing."""
    if "values" in known:
        return len(known["values"])
    return int(known["high"] - known["low"]) + 1 if _few(known) else CELLS + 1


def _few(known: dict[str, Any]) -> bool:
    return known["integer"] and known["high"] - known["low"] <= KEPT


def _encoded(known: dict[str, Any], column: pd.Series) -> np.ndarray:
    if "values" in known:
        places = {value: code for code, value in enumerate(known["values"])}
        codes = column.map(places)
    else:
        above = column.clip(known["low"], known["high"]) - known["low"]
        width = 1 if _few(known) else (known["high"] - known["low"]) / CELLS
        codes = np.ceil(above / width - 1e-9).clip(upper=_cells(known) - 1)
    return codes.fillna(_cells(known)).astype(int).to_numpy()


def _decoded(known: dict[str, Any], codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if "values" in known:
        return np.array([*known["values"], None], dtype=object)[codes]
    low, high = known["low"], known["high"]
    if _few(known):
        numbers = low + codes.astype(float)
    else:
        bottom, top = (low + (codes - step) * (high - low) / CELLS for step in (1, 0))
        if known["integer"]:  # whole numbers above the bottom, up to the top
            bottom, top = np.floor(bottom + 1e-9), np.floor(top + 1e-9)
        numbers = top - rng.random(len(codes)) * (top - bottom)
        numbers = np.where(codes == 0, low, np.ceil(numbers) if known["integer"] else numbers)
    return np.where(codes == _cells(known), np.nan, np.clip(numbers, low, high))
