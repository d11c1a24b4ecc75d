"""How good a synthetic data set is: measures, the evaluation that gathers them, and reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.evaluation.evaluation import Evaluation, ImageEvaluation, TableEvaluation
from sfumato.evaluation.image_sets import read_images
from sfumato.evaluation.images import evaluate_images
from sfumato.evaluation.marginals import marginal_errors
from sfumato.evaluation.tables import evaluate_table
from sfumato.evaluation.utility import Utility, train_on_synthetic
from sfumato.notebook import usual_progress
from sfumato.progress import Progress
from sfumato.schema import Schema, read_schema

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
    schema: Schema | str | Path | Mapping[str, Any],
    target: str | None = None,
    *,
    test: Any | None = None,
    full: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a synthetic table or image set, whichever the schema describes."""
    schema = read_schema(schema)
    progress = progress or usual_progress()
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
