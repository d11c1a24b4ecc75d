"""Would it pay to count real rows in regions of what `pairs` draws, as `moments` does with images?

    python benchmarks/regions.py adult covtype parity

Pairs cannot see relations of three columns within a class. Here a part of the budget goes to a
second release: draws of the fitted model are divided into regions by k-means, class by class, real
rows are counted in each, and draws are taken anew by how many there should be. Simulated, not
built: the noise is that of the released counts, but nothing is accounted for.

`parity` is a made table in which pairs tell nothing: its target is the parity of three coins.
Rows are drawn from the training split, and learners are tested on others of it. No private data:
public benchmark tables (SFUMATO_DATA).
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import sfumato as sf
from declarations import measured, split
from harness import RESULTS, write_result
from sfumato.data.table_codec import TableCodec
from sfumato.evaluation import train_on_synthetic
from sfumato.modelling.clusters import k_means
from sfumato.modelling.covariance import shrunk
from sfumato.privacy.planning import plan_spend
from sfumato.schema import Boolean, Schema
from sfumato.statistics.counts import Axis, Counts

ROWS = {"adult": 15_000, "covtype": 15_000, "census": 15_000, "epileptic": 4_600}
SHARES = (0.0, 0.1)
SEEDS = 3
LEARNERS_ROWS = 8_000
ROWS_PER_NOISE = 20  # that a region should have
MOST_REGIONS = 200  # of a class
POOL = 4  # draws for each row that is kept

Floats = NDArray[np.float64]


def table(name: str) -> tuple[pa.Table, pa.Table, Schema, str]:
    if name != "parity":
        return split(name, ROWS[name])
    coins = np.random.default_rng(0).integers(0, 2, (30_000, 6)).astype(bool)
    columns = {f"coin {index}": coins[:, index] for index in range(6)}
    whole = pa.table(columns | {"odd": coins[:, 0] ^ coins[:, 1] ^ coins[:, 2]})
    schema = Schema(columns={each: Boolean() for each in whole.column_names})
    return whole[:15_000], whole[15_000:], schema, "odd"


def points(tables: list[pa.Table], codec: TableCodec) -> Floats:
    """Give rows as points: numbers of deviation 1, categories as corners."""
    encoded = [codec.encode(part) for rows in tables for part in rows.combine_chunks().to_batches()]
    numbers = np.concatenate([part.numbers for part in encoded]).astype(float)
    codes = np.concatenate([part.codes for part in encoded])
    scaled = (numbers - numbers.mean(0)) / np.maximum(numbers.std(0), 1e-9)
    corners = [
        (codes[:, [index]] == np.arange(codes[:, index].max() + 1)) * 1.0
        for index in range(codes.shape[1])
    ]
    return np.concatenate([scaled, *corners], axis=1)


def mended(
    pool: pa.Table, real: pa.Table, schema: Schema, target: str, sigma: float, seed: int
) -> pa.Table:
    """Draw from the pool as many rows as there are, by noisy counts of real rows in regions."""
    rng = np.random.default_rng(seed)
    both = points([pool, real], TableCodec(schema))
    drawn, private = np.split(both, [len(pool)])
    labels = [np.array(each.column(target).to_pylist(), dtype=object) for each in (pool, real)]
    keys = np.empty(len(pool))
    for label in set(labels[0]):
        mine, theirs = (np.flatnonzero(each == label) for each in labels)
        count = int(np.clip(len(mine) / POOL / (ROWS_PER_NOISE * sigma), 1, MOST_REGIONS))
        centres = k_means(drawn[mine][:20_000], count, rng)
        region, found = (
            (2 * some @ centres.T - (centres**2).sum(1)).argmax(1)
            for some in (drawn[mine], private[theirs])
        )
        expected = np.maximum(np.bincount(region, minlength=count) / POOL, 1.0)
        counted = np.bincount(found, minlength=count) + rng.normal(0, sigma, count)
        excess = shrunk((counted / expected - 1)[:, None], (sigma / expected[:, None]) ** 2)[:, 0]
        weights = np.maximum(1 + excess, 0.02)
        keys[mine] = rng.exponential(size=len(mine)) / weights[region]
    return pool.take(np.sort(np.argsort(keys)[: len(real)]))


def run(name: str, epsilon: float, share: float, seed: int) -> dict[str, float]:
    private, other, schema, target = table(name)
    budget = sf.Budget(epsilon=epsilon, delta=1e-5)
    model = sf.Pairs(target=target, seed=seed).fit(private, schema, budget.part(1 - share))
    synthetic = model.sample(len(private) * (POOL if share else 1), seed=seed)
    if share:
        counts = Counts([(Axis(0, np.arange(2, dtype=np.int32)),)])
        sigma = plan_spend("regions", counts, budget, share).sigma
        synthetic = mended(synthetic, private, schema, target, sigma, seed)
    utility = train_on_synthetic(
        synthetic, other, None, schema, target, "fast", most_rows=LEARNERS_ROWS
    )
    measures = utility.mean["synthetic"]
    return {"auc": measures["roc_auc"]} | measured(other, synthetic, schema)


def main() -> None:
    path = RESULTS / "regions.json"
    result: dict[str, Any] = json.loads(path.read_text())["runs"] if path.exists() else {}
    for name in sys.argv[1:]:
        for share in SHARES:
            if f"{name} {share:g}" in result:
                continue
            runs = [run(name, 1.0, share, seed) for seed in range(SEEDS)]
            means = {k: round(float(np.mean([one[k] for one in runs])), 5) for k in runs[0]}
            result[f"{name} {share:g}"] = means
            print(name, share, means, flush=True)
            write_result("regions", {"seeds": SEEDS, "runs": result})


if __name__ == "__main__":
    main()
