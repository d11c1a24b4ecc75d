"""What does it bring that `pairs` draws its target last?

    python benchmarks/outcome.py adult census covtype credit

Each model is sampled twice: with classes as its mixture has them, and with classes that its outcome
draws. ROC-AUC on held-out rows of the training split, of three learners that are trained on either,
and of what mixture and outcome themselves say of the class. No private data: public tables
(SFUMATO_DATA).
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import sfumato as sf
from declarations import split
from harness import Section, add_run, digits, mark, runs_of, table
from sfumato.evaluation import train_on_synthetic
from sfumato.methods.pairs.method import PairsModel

ROWS = {"adult": 25_000, "census": 25_000, "covtype": 15_000, "credit": 9_000}
EPSILONS = {"adult": (1.0, 0.1)}
SEEDS = 2
MOST_JUDGED = 6_000
LEARNERS_ROWS = 10_000


def run(name: str, epsilon: float, seed: int) -> dict[str, float]:
    train, test, schema, target = split(name, ROWS[name])
    test = test.slice(0, MOST_JUDGED)
    budget = sf.Budget(epsilon=epsilon, delta=1e-5)
    model = sf.Pairs(target=target, seed=seed).fit(train, schema, budget)
    assert isinstance(model, PairsModel)
    assert model.outcome is not None
    groups, classes = grouped(model, test)
    found = {
        "mixture itself": area(classes, posterior(model, groups)),
        "outcome itself": area(classes, model.outcome.shares(groups)),
        "pairs of columns": sum(len(term) == 2 for term in model.outcome.terms),
    }
    for told, each in (("mixture", replace(model, outcome=None)), ("outcome", model)):
        utility = train_on_synthetic(
            each.sample(seed=seed), test, None, schema, target,
            most_rows=LEARNERS_ROWS, seed=seed, jobs=2,
        )  # fmt: skip
        found[f"learners, {told}"] = utility.mean["synthetic"]["roc_auc"]
    return found


def grouped(model: PairsModel, rows: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the groups of all columns but the target, and of the target."""
    codec = model.method.codec(model.schema)
    encoded = [codec.encode(part).codes for part in rows.combine_chunks().to_batches()]
    codes = np.concatenate(encoded)
    groups = np.stack([c.groups[codes[:, i]] for i, c in enumerate(model.columns)], axis=1)
    return np.delete(groups, model.target, axis=1), groups[:, model.target]


def posterior(model: PairsModel, groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give what the mixture says of the class, without its links."""
    mixture = model.mixture
    logs = np.zeros((len(groups), mixture.weights.shape[1]))
    for column, block in enumerate(mixture.blocks):
        logs += np.log(mixture.probabilities[:, block].T[groups[:, column]] + 1e-300)
    within = np.exp(logs - logs.max(axis=1, keepdims=True))
    joint = within @ (mixture.class_shares[:, None] * mixture.weights).T
    return joint / joint.sum(axis=1, keepdims=True)


def area(classes: NDArray[np.int64], shares: NDArray[np.float64]) -> float:
    """Give the mean area of each class against all others."""
    there = [c for c in range(shares.shape[1]) if 0 < (classes == c).sum() < len(classes)]
    return float(np.mean([roc_auc_score(classes == c, shares[:, c]) for c in there]))


def main() -> None:
    for name in sys.argv[1:] or list(ROWS):
        for epsilon in EPSILONS.get(name, (1.0,)):
            found = [run(name, epsilon, seed) for seed in range(SEEDS)]
            mean = {key: round(float(np.mean([r[key] for r in found])), 4) for key in found[0]}
            print(name, epsilon, mean, flush=True)
            about = {"rows": ROWS[name], "seeds": SEEDS}
            add_run("outcome", f"{name} {epsilon:g}", about | mean)


def body() -> str:
    keys = ("mixture itself", "outcome itself", "learners, mixture", "learners, outcome")
    rows = [
        [name + mark("pairs", run), f"{run['rows']:,}", *digits(run, *keys), str(run["seeds"])]
        for name, run in runs_of("outcome").items()
    ]
    return table(["table, epsilon", "rows", *keys, "seeds"], rows)


SECTION = Section(
    "The target drawn last",
    "outcome.py",
    """\
ROC-AUC on held-out rows of the training split: of what the mixture and what the outcome say of
the class given all other columns, and of three learners that were trained on 10,000 rows with
classes from either. On credit the mixture itself ranks better: frauds lie far out in all
columns at once.""",
    body,
)


if __name__ == "__main__":
    main()
