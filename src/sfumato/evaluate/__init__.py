"""How good a synthetic data set is: measures, the evaluation that gathers them, and reports."""

from __future__ import annotations

from typing import Any

from sfumato.evaluate.evaluation import Evaluation, ImageEvaluation, TableEvaluation
from sfumato.evaluate.image_sets import read_images
from sfumato.evaluate.images import evaluate_images
from sfumato.evaluate.marginals import marginal_errors
from sfumato.evaluate.tables import evaluate_table
from sfumato.evaluate.utility import Utility, train_on_synthetic
from sfumato.progress import Progress, silent
from sfumato.schema import Schema

__all__ = [
    "Evaluation",
    "ImageEvaluation",
    "TableEvaluation",
    "Utility",
    "evaluate",
    "evaluate_images",
    "evaluate_table",
    "marginal_errors",
    "train_on_synthetic",
]


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema,
    target: str | None = None,
    *,
    test: Any | None = None,
    full: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> Evaluation:
    """Measure a synthetic table or image set, whichever the schema describes."""
    if schema.images is None:
        return evaluate_table(
            real, synthetic, schema, target, test=test, full=full, seed=seed, progress=progress
        )
    images = schema.images
    test_x, test_y = (None, None) if test is None else read_images(test, images)
    return evaluate_images(
        *read_images(real, images),
        *read_images(synthetic, images),
        test_x,
        test_y,
        full=full,
        seed=seed,
        progress=progress,
    )
