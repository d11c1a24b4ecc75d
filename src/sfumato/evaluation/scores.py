"""How well predictions meet the truth: the figures of the papers and those of the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
)

Labels = NDArray[np.integer[Any]]
Scores = NDArray[np.floating[Any]]


def classification_scores(
    truth: Labels, predicted: Labels, scores: Scores, positive: int | None
) -> dict[str, float]:
    """Score a classifier on a test set.

    Parameters
    ----------
    truth, predicted
        Class numbers.
    scores
        One column per class number, larger where the class is likelier; only the order counts.
    positive
        The positive class of a two-class target. None takes each class in turn against the rest
        and the plain mean over the classes that the test set has.

    The areas `roc_auc` and `pr_auc` (average precision) are computed from scores. Their `_hard`
    twins are computed from predicted labels, as the published figures of DP-MERF and DP-HP are:
    then the ROC area is (sensitivity + specificity) / 2.
    """
    figures = {"accuracy": float(accuracy_score(truth, predicted))}
    if positive is not None:
        figures["f1"] = float(f1_score(truth == positive, predicted == positive, zero_division=0))
    else:
        for average in ("macro", "weighted"):
            figures[f"f1_{average}"] = float(
                f1_score(
                    truth, predicted, average=average, labels=np.unique(truth), zero_division=0
                )
            )
    hard = (predicted[:, None] == np.arange(scores.shape[1])).astype(float)
    for name, area in (("roc_auc", roc_auc_score), ("pr_auc", average_precision_score)):
        figures[name] = _area(area, truth, scores, positive)
        figures[f"{name}_hard"] = _area(area, truth, hard, positive)
    return figures


def regression_scores(
    truth: NDArray[np.floating[Any]], predicted: NDArray[np.floating[Any]]
) -> dict[str, float]:
    """Score a regressor: R² (1 is perfect, 0 is as good as the mean) and mean absolute error."""
    return {
        "r2": float(r2_score(truth, predicted)) if len(truth) > 1 else float("nan"),
        "mae": float(mean_absolute_error(truth, predicted)),
    }


def _area(area: Callable[..., float], truth: Labels, scores: Scores, positive: int | None) -> float:
    """Give the area for the positive class, or its mean over classes; NaN where undefined."""
    wanted = range(scores.shape[1]) if positive is None else (positive,)
    areas = []
    for label in wanted:
        is_label = truth == label
        if is_label.any() and not is_label.all():
            areas.append(float(area(is_label, scores[:, label])))
    return float(np.mean(areas)) if areas else float("nan")
