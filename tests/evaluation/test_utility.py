from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from evaluation.models import TABLE, table
from sfumato.errors import SfumatoError
from sfumato.evaluation.classifiers import classifiers, has_xgboost
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.encoding import MOST_CATEGORIES, Encoding
from sfumato.evaluation.scores import classification_scores, regression_scores
from sfumato.evaluation.utility import fit_and_predict, train_on_synthetic
from sfumato.schema import Categorical, Numeric, Schema


def test_scores_agree_with_a_case_worked_out_by_hand() -> None:
    truth = np.array([0, 0, 0, 1, 1])
    predicted = np.array([0, 0, 1, 1, 0])
    scores = np.stack([1 - np.array([0.1, 0.2, 0.8, 0.9, 0.3]), [0.1, 0.2, 0.8, 0.9, 0.3]], axis=1)
    found = classification_scores(truth, predicted, scores, positive=1)
    assert found["accuracy"] == pytest.approx(3 / 5)
    assert found["f1"] == pytest.approx(1 / 2)  # precision and recall are both one half
    assert found["roc_auc"] == pytest.approx(5 / 6)  # of six pairs only (0.8, 0.3) is wrong
    assert found["pr_auc"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["roc_auc_hard"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert found["pr_auc_hard"] == pytest.approx(1 / 2 * 1 / 2 + 1 / 2 * 2 / 5)


def test_multi_class_areas_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth, scores = rng.integers(0, 3, 200), rng.dirichlet(np.ones(3), 200)
    found = classification_scores(truth, scores.argmax(axis=1), scores, positive=None)
    assert found["roc_auc"] == pytest.approx(roc_auc_score(truth, scores, multi_class="ovr"))
    one_hot = np.eye(3)[truth]
    assert found["pr_auc"] == pytest.approx(average_precision_score(one_hot, scores))
    assert found["f1_macro"] == pytest.approx(
        f1_score(truth, scores.argmax(axis=1), average="macro")
    )


def test_a_test_set_of_one_class_has_no_areas() -> None:
    found = classification_scores(np.zeros(3, int), np.zeros(3, int), np.zeros((3, 2)), 1)
    assert found["accuracy"] == 1.0
    assert np.isnan(found["roc_auc"])


def test_regression_scores_of_the_mean_are_zero() -> None:
    found = regression_scores(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    assert found == {"r2": 0.0, "mae": 1.0}


def test_training_on_the_real_rows_themselves_scores_the_same_on_both_sides() -> None:
    rows = table(200)
    found = train_on_synthetic(rows, table(200, 1), rows, TABLE, "smoker")
    assert found.synthetic == found.real
    assert found.mean["synthetic"] == found.mean["real"]
    assert set(found.synthetic) == {"logistic regression", "random forest", "gradient boosting"}


def test_shuffled_columns_predict_no_better_than_chance() -> None:
    known, fresh = (
        rows.filter(pa.compute.not_equal(rows["ill"], "rarely"))
        for rows in (table(800), table(600, 1))
    )
    train = CodedTable.of(known, TABLE)
    found = train_on_synthetic(train.shuffled(0), fresh, train, TABLE, "ill")
    assert found.mean["real"]["roc_auc"] > 0.75
    assert abs(found.mean["synthetic"]["roc_auc"] - 0.5) < 0.15


def test_the_rarer_real_class_is_positive_unless_another_is_given() -> None:
    rows = table(300)
    smokers = np.mean(rows["smoker"].to_numpy(zero_copy_only=False))
    rarer = "true" if smokers < 0.5 else "false"
    assert train_on_synthetic(rows, rows, None, TABLE, "smoker").positive == rarer
    given = train_on_synthetic(rows, rows, None, TABLE, "smoker", positive=True)
    assert given.positive == "true"
    assert given.real == {}
    with pytest.raises(SfumatoError, match="no value 'maybe'"):
        train_on_synthetic(rows, rows, rows, TABLE, "smoker", positive="maybe")


def test_one_synthetic_class_gives_figures_and_a_note() -> None:
    rows = table(300)
    one = rows.set_column(3, "smoker", pa.array([True] * 300))
    found = train_on_synthetic(one, rows, rows, TABLE, "smoker", "six")
    assert found.mean["synthetic"]["roc_auc"] == pytest.approx(0.5)
    assert "only one class" in found.notes[0]


def test_missing_synthetic_classes_are_named() -> None:
    rows = table(400)
    kept = rows.filter(pa.compute.not_equal(rows["ill"], "rarely"))
    found = train_on_synthetic(kept, rows, rows, TABLE, "ill")
    assert any("rarely" in note for note in found.notes)
    assert found.positive is None


def test_a_numeric_target_gets_regressors_in_its_own_units() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 300)
    rows = pa.table({"x": x, "y": 100 + 5 * x + rng.normal(0, 0.1, 300)})
    schema = Schema(columns={"x": Numeric(low=0, high=10), "y": Numeric(low=0, high=200)})
    found = train_on_synthetic(rows, rows, rows, schema, "y")
    assert found.task == "regression"
    assert found.real["linear regression"]["r2"] > 0.999
    assert found.real["linear regression"]["mae"] == pytest.approx(0.08, abs=0.02)


def test_rows_without_a_target_are_left_out() -> None:
    schema = Schema(
        columns={"x": Numeric(low=0, high=1), "y": Categorical(values=("a", "b"), nullable=True)}
    )
    rows = pa.table({"x": [0.0, 1.0, 0.5, 0.1], "y": ["a", "b", None, "a"]})
    found = train_on_synthetic(rows, rows, rows, schema, "y")
    assert found.rows == {"synthetic": 3, "real": 3, "test": 3}
    empty = pa.table({"x": [0.5], "y": pa.array([None], pa.string())})
    with pytest.raises(SfumatoError, match="no row with a value of the target"):
        train_on_synthetic(empty, rows, rows, schema, "y")


def test_the_sets_hold_the_classifiers_of_the_papers() -> None:
    twelve = classifiers("twelve", 10)
    assert len(twelve) == 11 + has_xgboost()
    assert twelve["LDA"].n_components == 9
    assert classifiers("twelve", 2)["LDA"].n_components == 1
    assert twelve["AdaBoost"].n_estimators == 1000
    assert len(classifiers("six", 2)) == 5 + has_xgboost()
    with pytest.raises(SfumatoError, match="fast, six, twelve"):
        classifiers("all", 2)  # type: ignore[arg-type]


def test_every_classifier_of_the_papers_copes_with_gaps_in_the_classes() -> None:
    rng = np.random.default_rng(0)
    y = np.array([0, 2, 5] * 15)
    x = rng.normal(size=(45, 4)).astype(np.float32) + y[:, None]
    learners = classifiers("twelve", 6)
    learners["AdaBoost"].set_params(n_estimators=5)
    for name, learner in learners.items():
        predicted, scores = fit_and_predict(learner, x, y, x, 6)
        assert scores.shape == (45, 6), name
        assert set(predicted) <= {0, 2, 5}, name
        assert scores[:, [1, 3, 4]].max() < scores[:, [0, 2, 5]].min(), name


def test_predictions_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    predicted, scores = fit_and_predict(LogisticRegression(), x, y, x, 2)
    direct = LogisticRegression().fit(x, y)
    assert np.array_equal(predicted, direct.predict(x))
    assert np.allclose(scores, direct.predict_proba(x))


def test_encoding_standardises_marks_missing_numbers_and_caps_categories() -> None:
    many = tuple(f"v{i}" for i in range(80))
    schema = Schema(
        columns={"n": Numeric(low=0, high=4, nullable=True), "c": Categorical(values=many)}
    )
    frame = CodedTable.of(
        pa.table({"n": [0.0, 4.0, None, 2.0], "c": ["v0", "v1", "v1", "v2"]}), schema
    )
    vectors = Encoding(frame)(frame)
    assert vectors.shape == (4, 2 + MOST_CATEGORIES)
    assert vectors[:, 0].mean() == pytest.approx(0, abs=1e-6)
    assert vectors[:, 0].std() == pytest.approx(1, abs=1e-6)
    assert vectors[2, 0] == vectors[3, 0]  # the median
    assert vectors[:, 1].tolist() == [0, 0, 1, 0]
    assert (vectors[:, 2:].sum(axis=1) == 1).all()
