"""The learners that judge synthetic data, in three sets of classifiers and one of regressors."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sfumato.errors import SfumatoError

Learner: TypeAlias = Any
"""A scikit-learn estimator; the library ships no types."""

ClassifierSet = Literal["fast", "six", "twelve"]


def classifiers(which: ClassifierSet, classes: int, seed: int = 0) -> dict[str, Learner]:
    """Give a named set of unfitted classifiers for this number of classes.

    "fast" is for a first look, "six" for benchmarks, and "twelve" is the set of Harder et al.
    (2021) and Vinaroz et al. (2022). XGBoost is left out where it is not installed.

    >>> list(classifiers("fast", 2))
    ['logistic regression', 'random forest', 'gradient boosting']
    """
    sets: dict[str, Callable[[int, int], dict[str, Learner]]] = {
        "fast": _fast,
        "six": _six,
        "twelve": _twelve,
    }
    if which not in sets:
        raise SfumatoError(f"classifiers must be one of {', '.join(sets)}, got {which!r}")
    return sets[which](classes, seed)


def has_xgboost() -> bool:
    """Say whether XGBoost is installed."""
    return find_spec("xgboost") is not None


def regressors(seed: int = 0) -> dict[str, Learner]:
    """Give the regressors: a linear one, a forest and boosting."""
    return {
        "linear regression": Ridge(alpha=1e-3),  # a little ridge: indicators are collinear
        "random forest": RandomForestRegressor(min_samples_leaf=2, random_state=seed),
        "gradient boosting": HistGradientBoostingRegressor(early_stopping=False, random_state=seed),
    }


def _fast(classes: int, seed: int) -> dict[str, Learner]:
    return {
        "logistic regression": LogisticRegression(max_iter=300),
        "random forest": RandomForestClassifier(n_estimators=100, random_state=seed),
        # Early stopping sets a stratified part aside, which fails on a class of one row.
        "gradient boosting": HistGradientBoostingClassifier(
            early_stopping=False, random_state=seed
        ),
    }


def _six(classes: int, seed: int) -> dict[str, Learner]:
    learners = _fast(classes, seed) | {
        "multi-layer perceptron": MLPClassifier(max_iter=50, random_state=seed),
        "linear SVM": LinearSVC(max_iter=2000, random_state=seed),
    }
    if has_xgboost():
        learners["XGBoost"] = _xgboost(seed)
    return learners


def _twelve(classes: int, seed: int) -> dict[str, Learner]:
    """Give the papers' set with the settings of Vinaroz et al. (2022), Table 10.

    Made for scikit-learn 0.24 and XGBoost 0.90. Where today's differ: `multi_class: auto` is the
    only behaviour left; AdaBoost's SAMME.R is gone, SAMME is the nearest; XGBoost's defaults of
    then (depth 3, rate 0.1) are spelt out, and its softprob objective is chosen for more than two
    classes only, since it can no longer be forced on two; LDA's 9 components, meant for ten
    classes, become classes - 1 where there are fewer.
    """
    learners = {
        "logistic regression": LogisticRegression(solver="lbfgs", max_iter=5000),
        "Gaussian naive Bayes": GaussianNB(),
        "Bernoulli naive Bayes": BernoulliNB(binarize=0.5),
        "linear SVM": LinearSVC(max_iter=10_000, tol=1e-8, loss="hinge", random_state=seed),
        "decision tree": DecisionTreeClassifier(class_weight="balanced", random_state=seed),
        "LDA": LinearDiscriminantAnalysis(
            solver="eigen", n_components=min(9, classes - 1), tol=1e-8, shrinkage=0.5
        ),
        "AdaBoost": AdaBoostClassifier(n_estimators=1000, learning_rate=0.7, random_state=seed),
        "bagging": BaggingClassifier(max_samples=0.1, n_estimators=20, random_state=seed),
        "random forest": RandomForestClassifier(
            n_estimators=100, class_weight="balanced", random_state=seed
        ),
        "gradient boosting": GradientBoostingClassifier(
            subsample=0.1, n_estimators=50, random_state=seed
        ),
        "multi-layer perceptron": MLPClassifier(random_state=seed),
    }
    if has_xgboost():
        learners["XGBoost"] = _xgboost(
            seed, n_estimators=50, colsample_bytree=0.1, max_depth=3, learning_rate=0.1
        )
    return learners


def _xgboost(seed: int, **settings: float) -> Learner:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, n_jobs=1, **settings)
