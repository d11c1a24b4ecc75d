"""A statistic of one's own, its bound, and a curator that answers with noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import sfumato as sf
from sfumato.data.batch import Batch
from sfumato.data.rows import encoded_rows
from sfumato.data.table_codec import TableCodec
from sfumato.datasets import patients, patients_schema
from sfumato.privacy.curator import Curator
from sfumato.privacy.statistic import Resolution, Statistic


class Evenness(Statistic):
    """How many rows have an even cell in each column.

    A row's vector holds zeros and ones, at most one for each of d columns: its norm is at most
    sqrt(d), and two such vectors have a non-negative product, so replacing one costs sqrt(2 d).
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns

    @property
    def dim(self) -> int:
        return self.columns

    @property
    def largest_entry(self) -> int:
        return 1

    def sensitivity(self, relation: sf.Relation) -> float:
        rows = 1 if relation is sf.Relation.ADD_REMOVE else 2
        return float(np.sqrt(rows * self.columns))

    def sum(self, batch: Batch) -> NDArray[np.int64]:
        return (batch.codes % 2 == 0).sum(axis=0).astype(np.int64)

    def resolutions(self) -> tuple[Resolution, ...]:
        return ()

    def describe(self) -> dict[str, Any]:
        return {"evenness": self.columns}


def main(rows: int = 2_000) -> tuple[NDArray[np.int64], float]:
    """Ask one question for the whole budget."""
    schema = patients_schema()
    codec = TableCodec(schema)
    budget = sf.Budget(epsilon=1)
    curator = Curator(
        encoded_rows(patients(rows), codec),
        budget,
        schema,
        sf.Run(ledger=sf.Ledger(":memory:"), dataset="patients"),
    )
    release = curator.release("evenness", Evenness(len(codec.names)), 1.0)
    print(
        dict(zip(codec.names, release.values.tolist(), strict=True)), "±", round(release.sigma, 1)
    )
    return release.values, curator.guarantee.epsilon


if __name__ == "__main__":
    main()
