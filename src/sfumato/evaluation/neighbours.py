"""Nearest real rows and exact copies: a look for blunders, not a proof of privacy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin_min

from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.encoding import Encoding
from sfumato.evaluation.measure import Compared, Finding, Measure
from sfumato.evaluation.threads import one_thread


@dataclass(frozen=True, kw_only=True)
class Closeness:
    """How close rows come to the real training rows: distances and the share of exact copies."""

    rows: int
    median: float
    fifth_percentile: float
    copies: float


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Closeness of synthetic rows beside that of real rows that were held out.

    Synthetic rows that come much closer than fresh real rows do would be a sign of copying. The
    converse proves nothing: privacy rests on the guarantee alone (Ganev and De Cristofaro 2023).
    """

    synthetic: Closeness
    held_out: Closeness


def neighbours(
    train: CodedTable,
    synthetic: CodedTable,
    held_out: CodedTable,
    most_rows: int = 2_000,
    seed: int = 0,
) -> Neighbours:
    """Measure distances on standardised numbers and indicators of categories."""
    encoding = Encoding(train)
    known, rows = encoding(train), set(_keys(train))
    return Neighbours(
        synthetic=_closeness(synthetic.at_most(most_rows, seed), encoding, known, rows),
        held_out=_closeness(held_out.at_most(most_rows, seed), encoding, known, rows),
    )


def _closeness(
    frame: CodedTable, encoding: Encoding, known: NDArray[np.float32], rows: set[bytes]
) -> Closeness:
    with one_thread():
        _, distances = pairwise_distances_argmin_min(encoding(frame), known)
    return Closeness(
        rows=len(frame),
        median=float(np.median(distances)),
        fifth_percentile=float(np.quantile(distances, 0.05)),
        copies=float(np.mean([key in rows for key in _keys(frame)])),
    )


def _keys(frame: CodedTable) -> list[bytes]:
    """Give each row as bytes that are equal only for equal rows."""
    categories = np.ascontiguousarray(frame.codes[:, list(frame.categorical)])
    # Numbers lie in [0, 1], so -1 can stand for a missing one.
    numbers = np.ascontiguousarray(np.nan_to_num(frame.numbers, nan=-1.0))
    return [c.tobytes() + n.tobytes() for c, n in zip(categories, numbers, strict=True)]


def _find(compared: Compared[CodedTable]) -> Finding:
    found = neighbours(compared.train, compared.synthetic, compared.held, seed=compared.seed)
    rows = {"synthetic rows": found.synthetic, "held-out real rows": found.held_out}
    return Finding(
        title="Nearest real rows",
        warning="This is no proof of privacy. It finds blunders such as copied rows; only the "
        "guarantee of the release protects anybody.",
        caption="Distance to the nearest real row that the synthetic data were made from",
        columns=("Rows", "Median", "5th percentile", "Share of exact copies"),
        rows={
            name: (each.rows, each.median, each.fifth_percentile, each.copies)
            for name, each in rows.items()
        },
    )


NEAREST_ROWS = Measure("neighbours", "looking for nearest neighbours", _find)
