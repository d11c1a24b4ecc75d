"""The scikit-learn estimator: its checks pass where privacy allows, and nothing leaks unasked."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import check_estimator

from sfumato.certificate import certificate_text
from sfumato.classify.estimator import LocallyLinearClassifier, PrivacyLeakWarning
from sfumato.errors import SfumatoError
from sfumato.evaluation.report import certificate_html
from sfumato.loading import load
from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import Ledger

NOISE_IS_NEVER_SEEDED = {
    "check_fit_idempotent": "two fits have different noise",
    "check_classifier_data_not_an_array": "two fits have different noise",
    "check_supervised_y_2d": "two fits have different noise",
}


def data(rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).random((rows, 2))
    return x, np.where(x[:, 0] > x[:, 1], "over", "under")


@pytest.mark.usefixtures("seeded")
def test_the_checks_of_scikit_learn_pass_but_for_noise_that_is_never_seeded() -> None:
    estimator = LocallyLinearClassifier(
        epsilon=100.0, delta=1e-3, classes="from data", bounds="from data", rate=1.0, epochs=12,
        learning_rate=0.3,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            estimator, expected_failed_checks=NOISE_IS_NEVER_SEEDED, on_skip=None
        )
    status: dict[str, list[str]] = {}
    for result in results:
        status.setdefault(result["status"], []).append(result["check_name"])
    assert set(status["xfail"]) <= set(NOISE_IS_NEVER_SEEDED)
    assert len(status["passed"]) > 45


@pytest.mark.usefixtures("seeded")
def test_it_learns_and_says_what_it_promises() -> None:
    x, y = data()
    model = LocallyLinearClassifier(epsilon=4.0, classes=("under", "over")).fit(x, y)
    assert model.score(x, y) > 0.85
    assert model.classes_.tolist() == ["over", "under"]
    assert model.predict_proba(x).sum(axis=1) == pytest.approx(1)
    assert model.guarantee_ is not None
    assert model.guarantee_.epsilon <= 4
    assert model.model_.maps().shape == (2, 2, 2)


@pytest.mark.usefixtures("seeded")
def test_images_are_seen_as_images() -> None:
    x, y = load_digits(return_X_y=True)
    model = LocallyLinearClassifier(
        epsilon=4.0, classes=range(10), bounds=(0, 16), image_shape=(8, 8, 1), maps=3, frequencies=6
    ).fit(x[:1200], y[:1200])
    assert model.score(x[1200:], y[1200:]) > 0.8
    assert model.model_.maps().shape == (10, 3, 8, 8, 1)


def test_classes_must_be_given() -> None:
    with pytest.raises(ValueError, match="would leak"):
        LocallyLinearClassifier().fit(*data())


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("leak", ["classes", "bounds"])
def test_what_is_read_from_the_data_is_warned_of_and_ends_the_guarantee(
    leak: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"classes": ("over", "under"), leak: "from data"}
    with pytest.warns(PrivacyLeakWarning, match=leak):
        model = LocallyLinearClassifier(epsilon=4.0, **given).fit(*data(50))
    assert model.guarantee_ is None
    # The mark stays with the model, its file, its certificate and its page.
    model.model_.save(tmp_path / "m.sfumato")
    for each in (model.model_, load(tmp_path / "m.sfumato")):
        assert each.guarantee.caveats == (f"the {leak} were read from the private data",)
        assert f"NOT CERTIFIED, nothing is promised: the {leak} were" in certificate_text(each)
        page = certificate_html(each)
        assert "NOT CERTIFIED" in page
        assert "may be published" not in page
        assert "written down by the owner" not in page


@pytest.mark.usefixtures("seeded")
def test_labels_given_as_a_list_are_read_one_by_one() -> None:
    x, _ = data(60)
    numbers = [float(2 + (row[0] > 0.5)) for row in x]
    model = LocallyLinearClassifier(epsilon=50.0, classes=(2, 3), epochs=20)
    assert (model.fit(x, [*numbers[:-1], "unknown"]).predict(x) == numbers).mean() > 0.9


@pytest.mark.usefixtures("seeded")
def test_values_and_labels_outside_what_was_declared_are_mapped() -> None:
    x, y = data(50)
    x[0], y[0] = 1e9, "elsewhere"
    model = LocallyLinearClassifier(epsilon=4.0, classes=("over", "under")).fit(x, y)
    assert model.classes_.tolist() == ["over", "under"]
    assert np.isfinite(model.predict_proba(x)).all()


def test_the_spend_is_recorded_in_the_ledger_that_is_named(tmp_path: Path) -> None:
    model = LocallyLinearClassifier(
        epsilon=4.0, classes=("over", "under"), ledger=tmp_path / "l.sqlite", dataset="d"
    )
    clone(model).fit(*data(50))
    Ledger(tmp_path / "l.sqlite").limit("d", Budget(epsilon=5, delta=2e-6))
    with pytest.raises(SfumatoError, match="nothing was spent"):
        model.fit(*data(50))
    assert len(Ledger(tmp_path / "l.sqlite").entries("d")) == 1


@pytest.mark.parametrize("bounds", [(1, 0), (0.5, 0.5)])
def test_bounds_in_the_wrong_order_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="lower one first"):
        LocallyLinearClassifier(classes=("over", "under"), bounds=bounds).fit(*data(20))
