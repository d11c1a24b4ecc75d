"""Can a classifier tell synthetic rows from real ones?"""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from sfumato.evaluate.classifiers import classifiers
from sfumato.evaluate.coded_table import CodedTable
from sfumato.evaluate.encoding import Encoding
from sfumato.evaluate.utility import fit_and_predict


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
