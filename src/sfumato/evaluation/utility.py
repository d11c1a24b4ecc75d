"""Train on synthetic, test on real: is a model of the synthetic rows any good on real ones?"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from joblib import delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from sfumato.data.workers import pool_of
from sfumato.errors import SfumatoError
from sfumato.evaluation.classifiers import (
    ClassifierSet,
    Learner,
    classifiers,
    has_xgboost,
    regressors,
)
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.encoding import Encoding
from sfumato.evaluation.scores import classification_scores, regression_scores
from sfumato.evaluation.threads import one_thread
from sfumato.progress import Progress, silent
from sfumato.schema import Schema, Value, canonical_text

Figures = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Utility:
    """Scores on real test rows, by learner, after training on synthetic and on real rows.

    `synthetic` and `real` map each learner to its figures; `real` is empty where no real training
    rows were given. `positive` is the class that F1 and the areas of a two-class target are about.
    """

    target: str
    task: Literal["classification", "regression"]
    positive: str | None
    synthetic: dict[str, Figures]
    real: dict[str, Figures]
    rows: dict[str, int]
    notes: tuple[str, ...] = ()

    @property
    def mean(self) -> dict[str, Figures]:
        """The mean over learners, for both training sets."""
        return {"synthetic": _mean(self.synthetic), "real": _mean(self.real)}


@dataclass(frozen=True)
class LabelledRows:
    """Vectors and what is to be predicted of each."""

    x: NDArray[np.float32]
    y: NDArray[Any]


def train_on_synthetic(
    synthetic: Any,
    test: Any,
    train_real: Any | None,
    schema: Schema,
    target: str,
    which: ClassifierSet = "fast",
    *,
    positive: Value | None = None,
    most_rows: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress = silent,
) -> Utility:
    """Compare learners trained on synthetic and on real rows, on real test rows.

    The tables may be frames, files or `Frame`s. Without `train_real` only the synthetic side is
    computed, which saves half the time when many synthetic sets meet the same real one.

    Parameters
    ----------
    which
        The set of classifiers; a numeric target gets the regressors instead.
    positive
        The positive class of a two-class target; by default the rarer one in the real rows.
    most_rows
        Train on at most so many rows, drawn at random.
    jobs
        How many learners to train at once; -1 takes every core.
    """
    frames = {
        "synthetic": _frame(synthetic, schema, "synthetic data", target).at_most(most_rows, seed),
        "test": _frame(test, schema, "test data", target),
    }
    if train_real is not None:
        real = _frame(train_real, schema, "real data", target)
        frames["real"] = real.at_most(most_rows, seed)
    rows = {name: len(frame) for name, frame in frames.items()}
    cells = frames["test"].codec.columns[frames["test"].codec.index(target)]
    notes: list[str] = []
    if cells.is_category:
        task: Literal["classification", "regression"] = "classification"
        names = list(cells.names)
        known = frames.get("real", frames["test"])
        positive_class = _positive(target, known, names, positive)
        learners = classifiers(which, _classes(known, target), seed)
        if which != "fast" and not has_xgboost():
            notes.append("XGBoost is not installed, so it is left out.")
        notes += _missing_classes(frames, target, names)
    else:
        task, names, positive_class, learners = "regression", [], None, regressors(seed)

    tasks: dict[str, tuple[LabelledRows, LabelledRows]] = {}
    for side in [name for name in ("synthetic", "real") if name in frames]:
        encoding = Encoding(frames[side], leave_out=target)
        tasks[side] = (
            LabelledRows(encoding(frames[side]), _target(frames[side], target)),
            LabelledRows(encoding(frames["test"]), _target(frames["test"], target)),
        )
    scored = train_and_score(learners, tasks, len(names), positive_class, jobs, progress)
    return Utility(
        target=target,
        task=task,
        positive=None if positive_class is None else names[positive_class],
        synthetic=scored["synthetic"],
        real=scored.get("real", {}),
        rows=rows,
        notes=tuple(notes),
    )


def train_and_score(
    learners: dict[str, Learner],
    tasks: Mapping[str, tuple[LabelledRows, LabelledRows]],
    classes: int,
    positive: int | None = None,
    jobs: int = 1,
    progress: Progress = silent,
) -> dict[str, dict[str, Figures]]:
    """Train every learner on the first examples of every task and score it on the second.

    No classes means regression.
    """
    work = [(task, name) for task in tasks for name in learners]
    done = pool_of(jobs)(
        delayed(_trained_score)(learners[name], *tasks[task], classes, positive)
        for task, name in work
    )
    scored: dict[str, dict[str, Figures]] = {task: {} for task in tasks}
    for number, ((task, name), figures) in enumerate(zip(work, done, strict=True)):
        scored[task][name] = figures
        progress("training learners", (number + 1) / len(work))
    return scored


def fit_and_predict(
    learner: Learner, x: NDArray[Any], y: NDArray[Any], test_x: NDArray[Any], classes: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Train a classifier and give labels and one score per class for the test rows.

    Classes that the training set lacks are never predicted. A training set of one class makes a
    classifier that always predicts it.
    """
    present, local = np.unique(y, return_inverse=True)
    learner = DummyClassifier() if len(present) == 1 else clone(learner)
    if hasattr(learner, "n_components"):  # LDA allows fewer components than classes
        learner.set_params(n_components=min(learner.n_components, len(present) - 1))
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # learners that stop before they converge are no news
        learner.fit(x, local)
        predicted = present[np.asarray(learner.predict(test_x)).astype(int)]
        if hasattr(learner, "predict_proba"):
            raw = learner.predict_proba(test_x)
        else:
            raw = learner.decision_function(test_x)
    if raw.ndim == 1:
        raw = np.stack([-raw, raw], axis=1)
    # A class that was never seen is less likely than every other.
    scores = np.full((len(test_x), classes), raw.min() - 1.0)
    scores[:, present] = np.nan_to_num(raw)
    return predicted.astype(np.int64), scores


def _trained_score(
    learner: Learner, train: LabelledRows, test: LabelledRows, classes: int, positive: int | None
) -> Figures:
    if classes:
        predicted, scores = fit_and_predict(learner, train.x, train.y, test.x, classes)
        return classification_scores(test.y, predicted, scores, positive)
    with one_thread():
        fitted = clone(learner).fit(train.x, train.y)
        return regression_scores(test.y, fitted.predict(test.x))


def _frame(data: Any, schema: Schema, what: str, target: str) -> CodedTable:
    """Read rows and drop those whose target is missing."""
    frame = data if isinstance(data, CodedTable) else CodedTable.of(data, schema, what)
    index = frame.codec.index(target)
    cells = frame.codec.columns[index]
    if cells.is_category:
        known = frame.codes[:, index] < cells.size - cells.nullable
    else:
        known = np.isfinite(frame.number(target))
    if not known.any():
        raise SfumatoError(f"the {what} have no row with a value of the target '{target}'")
    return frame if known.all() else frame.take(known)


def _target(frame: CodedTable, target: str) -> NDArray[Any]:
    """Give class numbers, or numbers in the units of the column."""
    index = frame.codec.index(target)
    cells = frame.codec.columns[index]
    if cells.is_category:
        return frame.codes[:, index]
    low, high = cells.bounds
    numbers: NDArray[Any] = low + frame.number(target).astype(float) * (high - low)
    return numbers


def _classes(frame: CodedTable, target: str) -> int:
    return max(2, len(np.unique(_target(frame, target))))


def _positive(target: str, frame: CodedTable, names: list[str], given: Value | None) -> int | None:
    """Choose the positive class; None for more than two classes."""
    if given is not None:
        if canonical_text(given) not in names:
            raise SfumatoError(f"'{target}' has no value {given!r} that could be the positive one")
        return names.index(canonical_text(given))
    counts = np.bincount(_target(frame, target), minlength=len(names))
    if np.count_nonzero(counts) > 2 or len(names) < 2:
        return None
    present = np.flatnonzero(counts)
    if len(present) < 2:
        return int(np.argmin(counts[:2]))
    return int(present[np.argmin(counts[present])])


def _missing_classes(frames: dict[str, CodedTable], target: str, names: list[str]) -> list[str]:
    """Say which classes the synthetic rows lack."""
    have, wanted = (
        set(np.unique(_target(frames[side], target)).tolist()) for side in ("synthetic", "test")
    )
    notes = []
    if len(have) == 1:
        notes.append(
            f"The synthetic data hold only one class of '{target}' ({names[have.pop()]}): "
            "what is trained on them always predicts it."
        )
    elif wanted - have:
        lacking = ", ".join(names[label] for label in sorted(wanted - have))
        notes.append(f"The synthetic data lack these classes of '{target}': {lacking}.")
    return notes


def _mean(figures: dict[str, Figures]) -> Figures:
    names: Iterable[str] = next(iter(figures.values()), {})
    return {name: float(np.mean([each[name] for each in figures.values()])) for name in names}
