"""Would it pay to count only what pairs of columns add to their single columns?

    python benchmarks/interactions.py

A pair's table of n x m groups, without its one-way parts, moves by (1 - 1/n)(1 - 1/m) of what the
table does, in squared norm, so its noise could be smaller. But within each class the one-way parts
are not known from elsewhere: all pairs of a column together tell them, and to count them apart, as
precisely, takes back all but 1/(n m). Noise is scaled here by both factors, nothing is built:

    counts   as it is
    apart    interactions, and the one-way parts of each class as precisely as now
    free     the same, as if these were known for nothing: the ceiling

Rows are drawn from the training split, and learners are tested on others of it. No private data:
public benchmark tables (SFUMATO_DATA).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import sfumato as sf
from declarations import measured, split
from harness import write_result
from sfumato.evaluation import train_on_synthetic
from sfumato.methods.pairs import method
from sfumato.privacy.budget import Relation
from sfumato.statistics.counts import Counts

TABLES = {"adult": 15_000}
SEEDS = 3
LEARNERS_ROWS = 8_000


class Scaled(Counts):
    """Counts of pairs whose noise is scaled as if only a part of each table were counted."""

    arm = "counts"

    def sensitivity(self, relation: Relation) -> float:
        sizes = [tuple(axis.size for axis in table[-2:]) for table in self.tables]
        return super().sensitivity(relation) * noise_factor(sizes, self.arm)


def noise_factor(sizes: list[tuple[int, ...]], arm: str) -> float:
    """Give the noise of an arm over that of counts, for pairs of so many groups."""
    parts = {
        "counts": lambda n, m: 1.0,
        "apart": lambda n, m: 1 - 1 / (n * m),
        "free": lambda n, m: (1 - 1 / n) * (1 - 1 / m),
    }
    return math.sqrt(float(np.mean([parts[arm](*size) for size in sizes])))


def main() -> None:
    result: dict[str, Any] = {}
    method.Counts = Scaled
    for name, rows in TABLES.items():
        private, other, schema, target = split(name, rows)
        for epsilon in (1.0, 0.1):
            budget = sf.Budget(epsilon=epsilon, delta=1e-5)
            for Scaled.arm in ("counts", "apart", "free"):
                runs = []
                for seed in range(SEEDS):
                    model = sf.Pairs(target=target, seed=seed).fit(private, schema, budget)
                    synthetic = model.sample(seed=seed)
                    utility = train_on_synthetic(
                        synthetic, other, None, schema, target, "fast", most_rows=LEARNERS_ROWS
                    )
                    auc = utility.mean["synthetic"]["roc_auc"]
                    sigma = model.guarantee.spends[-1].sigma
                    runs.append({"auc": auc, "sigma": sigma} | measured(other, synthetic, schema))
                means = {
                    key: round(float(np.mean([run[key] for run in runs])), 5) for key in runs[0]
                }
                found = result.setdefault(f"{name}, epsilon {epsilon:g}", {"seeds": SEEDS})
                found[Scaled.arm] = means
                print(name, epsilon, Scaled.arm, means, flush=True)
    write_result("interactions", result)


if __name__ == "__main__":
    main()
