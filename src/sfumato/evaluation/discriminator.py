"""Can a classifier tell synthetic rows from real ones?"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from sfumato.evaluation.classifiers import classifiers
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.encoding import Encoding
from sfumato.evaluation.measure import Compared, Finding, Headline, Measure
from sfumato.evaluation.utility import fit_and_predict

FAST_ROWS = 10_000


def discriminator_auc(
    real: CodedTable, synthetic: CodedTable, most_rows: int | None = 10_000, seed: int = 0
) -> dict[str, float]:
    """Give each discriminator's ROC-AUC on rows that it was not trained on.

    0.5 says that it cannot tell the tables apart (Lopez-Paz and Oquab 2017), 1 that it always can.
    Gradient boosting finds almost any flaw, so that values near 1 are common and say little about
    the use of the data.
    """
    if min(len(real), len(synthetic)) < 4:
        return {}
    halves = [frame.at_most(most_rows, seed).split(0.5, seed) for frame in (real, synthetic)]
    encoding = Encoding(halves[0][0])
    (train_x, train_y), (test_x, test_y) = (
        (
            np.concatenate([encoding(real_part), encoding(synthetic_part)]),
            np.repeat([0, 1], [len(real_part), len(synthetic_part)]),
        )
        for real_part, synthetic_part in zip(*halves, strict=True)
    )
    learners = classifiers("fast", 2, seed)
    areas = {}
    for name in ("logistic regression", "gradient boosting"):
        _, scores = fit_and_predict(learners[name], train_x, train_y, test_x, 2)
        areas[name] = float(roc_auc_score(test_y, scores[:, 1]))
    return areas


def _find(compared: Compared[CodedTable]) -> Finding:
    most = None if compared.full else FAST_ROWS
    areas, fresh = (
        discriminator_auc(compared.train, rows, most, compared.seed)
        for rows in compared.same_size()
    )
    headlines = (
        Headline(
            name="Telling rows apart",
            value=max(areas.values()),
            worst=1.0,
            best=0.5,
            meaning="how well the better of two classifiers tells synthetic rows from real ones: "
            "ROC-AUC; any small flaw can push it to 1",
            worst_is="always told apart",
            best_is="never told apart",
            held_out=max(fresh.values()),
        ),
    ) if areas else ()  # fmt: skip
    few = "There are too few rows to train a classifier that tells them apart."
    return Finding(
        title="A closer look",
        caption="Classifiers that try to tell rows from the real ones: ROC-AUC (0.5 is perfect)",
        columns=("Synthetic rows", "Held-out real rows"),
        rows={f"Telling apart by {name}": (area, fresh[name]) for name, area in areas.items()},
        headlines=headlines,
        notes=() if areas else (few,),
    )


TELLING_APART = Measure("discriminator", "telling real from synthetic rows", _find)
