"""`moments` keeps its bounds, survives extreme image sets, and its images can be learned from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import sfumato as sf
from sfumato.data.image_codec import ImageCodec
from sfumato.errors import SfumatoError
from sfumato.privacy.audit import assert_replays
from sfumato.privacy.ledger import Ledger
from sfumato.schema import Images, Schema
from support import seeded_fit

SCHEMA = Schema(images=Images(height=8, width=8, classes=tuple(range(10))))


def digits() -> tuple[np.ndarray, np.ndarray]:
    bunch = load_digits()
    return (bunch.images * 255 / 16).astype(np.uint8), bunch.target


@pytest.mark.parametrize("relation", sf.Relation)
@pytest.mark.parametrize("epsilon", [1.0, 200.0])
def test_record_and_replay(relation: sf.Relation, epsilon: float) -> None:
    """At the large budget there are groups, too."""
    x, y = digits()
    batch = ImageCodec(SCHEMA.images).encode((x[..., None], y))  # type: ignore[arg-type]
    neighbour = batch.where(np.arange(len(batch)) != 5)
    if relation is sf.Relation.REPLACE_ONE:
        codes, unit = batch.codes.copy(), batch.unit.copy()
        codes[5], unit[5] = (codes[5] + 1) % 10, 1 - unit[5]
        neighbour = type(batch)(codes, unit)
    budget = sf.Budget(epsilon=epsilon, relation=relation)
    method = sf.Moments(detail=epsilon > 1)  # with the levels of pixels
    assert_replays(method, [batch], [neighbour], SCHEMA, budget)


def test_synthetic_digits_teach_a_classifier() -> None:
    x, y = digits()
    model = seeded_fit(
        sf.Moments(), (x[:1400], y[:1400]), SCHEMA, sf.Budget(epsilon=10, delta=1e-5)
    )
    drawn = model.sample(3000)
    learner = LogisticRegression(max_iter=300).fit(drawn.x.reshape(3000, -1) / 255, drawn.y)
    assert learner.score(x[1400:].reshape(-1, 64) / 255, y[1400:]) > 0.7
    assert 0.999 * 10 < model.guarantee.epsilon <= 10 * (1 + 1e-9)


def test_with_detail_as_many_pixels_are_black_as_in_the_private_images() -> None:
    x, y = digits()
    black = (x == 0).mean(axis=0)
    budget = sf.Budget(epsilon=50, delta=1e-5)
    errors = []
    for detail in (True, False):
        drawn = seeded_fit(sf.Moments(detail=detail), (x, y), SCHEMA, budget).sample(5000).x
        errors.append(np.abs((drawn[..., 0] == 0).mean(axis=0) - black).mean())
    assert errors[0] < 0.03 < 0.05 < errors[1]


def test_a_model_has_as_many_axes_as_asked_for_and_its_releases_are_as_planned() -> None:
    method, budget = sf.Moments(axes=3, detail=True), sf.Budget(epsilon=100)
    model = seeded_fit(method, digits(), SCHEMA, budget)
    assert model.images.basis.axes.shape[1] == 3  # type: ignore[attr-defined]
    planned = {spend.name: spend.dim for spend in method.plan(SCHEMA, budget).spends}
    assert set(planned) == {release.name for release in model.releases}
    assert all(release.values.size <= planned[release.name] for release in model.releases)
    with pytest.raises(SfumatoError, match="axes must lie between 1 and 200"):
        sf.Moments(axes=0)


def test_other_seeds_and_other_arithmetic_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (3000, 4, 4), dtype=np.uint8)
    data = (x, np.array(["cat", "dog"])[rng.integers(0, 2, 3000)])
    schema = Schema(images=Images(height=4, width=4, classes=("cat", "dog")))
    ledger, budget = Ledger(":memory:"), sf.Budget(epsilon=20)
    plain = np.linalg.eigh

    def otherwise(matrix: np.ndarray) -> object:
        """Arithmetic in another order, as with more threads."""
        return plain(matrix + 1e-12 * np.diag(np.arange(len(matrix))))

    values = []
    for seed, eigh in ((0, plain), (1, plain), (0, otherwise)):
        monkeypatch.setattr("numpy.linalg.eigh", eigh)
        model = sf.Moments(seed=seed).fit(
            data, schema, budget, sf.Run(ledger=ledger, dataset="d", folder=tmp_path)
        )
        values.append([release.values.tolist() for release in model.releases])
        assert model.guarantee.epsilon <= 20
    assert values[0] == values[1] == values[2]
    names = [entry.spend.name for entry in ledger.entries()]
    assert len(names) == len(set(names)) == 6 + 4  # steps of the classifier


@pytest.mark.parametrize(
    ("shape", "classes", "rows"),
    [
        ((8, 8, 1), (), 200),
        ((8, 8, 1), ("only",), 50),
        ((12, 10, 3), ("a", "b"), 100),
        ((4, 4, 1), (0, 1), 1),
        ((1, 1, 1), (0, 1), 30),
    ],
    ids=["unlabelled", "one class", "colour", "one image", "one pixel"],
)
@pytest.mark.parametrize("epsilon", [0.05, 20.0])
def test_extreme_image_sets(
    shape: tuple[int, int, int], classes: tuple[object, ...], rows: int, epsilon: float
) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (rows, *shape), dtype=np.uint8)
    y = np.array([classes[i % len(classes)] for i in range(rows)]) if classes else None
    height, width, channels = shape
    schema = Schema(images=Images(height=height, width=width, channels=channels, classes=classes))  # type: ignore[arg-type]
    drawn = seeded_fit(sf.Moments(), (x, y), schema, sf.Budget(epsilon=epsilon)).sample(20)
    assert drawn.x.shape == (20, *shape)
    assert drawn.x.dtype == np.uint8
    assert (drawn.y is None) == (not classes)


def test_all_black_images_stay_dark() -> None:
    x = np.zeros((2000, 8, 8), np.uint8)
    drawn = seeded_fit(
        sf.Moments(), (x, np.zeros(2000, int)), SCHEMA, sf.Budget(epsilon=10)
    ).sample(100)
    assert drawn.x.mean() < 40


def test_classes_can_be_given_and_models_saved(tmp_path: Path) -> None:
    x, y = digits()
    model = sf.Moments().fit((x, y), SCHEMA, sf.Budget(epsilon=5))
    model.save(tmp_path / "m.sfumato")
    loaded = sf.load(tmp_path / "m.sfumato")
    ours, theirs = model.sample(50, seed=1), loaded.sample(50, seed=1)
    assert np.array_equal(ours.x, theirs.x)
    assert np.array_equal(ours.y, theirs.y)
    assert set(model.sample(20, given={"class": 3}).y.tolist()) == {3}
    assert set(model.sample(20, given={"class": "3"}).y.tolist()) == {3}
    assert set(model.sample(200, given={"class": [3, "5"]}).y.tolist()) == {3, 5}
    with pytest.raises(SfumatoError, match="'11' is not a value of column 'class'"):
        model.sample(5, given={"class": 11})
    with pytest.raises(SfumatoError, match="only 'class' can be given"):
        model.sample(5, given={"colour": 3})
    with pytest.raises(SfumatoError, match="column 'class' is a category"):
        model.sample(5, given={"class": (3, 5)})


def test_several_classes_are_drawn_in_proportion_to_their_rows() -> None:
    """Among 2,000 draws a share errs by more than 0.06 with probability below 1e-6 (Hoeffding)."""
    x, y = digits()
    keep = (y != 5) | (np.arange(len(y)) % 3 == 0)
    model = seeded_fit(sf.Moments(), (x[keep], y[keep]), SCHEMA, sf.Budget(epsilon=50))
    expected = model.images.class_counts[3] / model.images.class_counts[[3, 5]].sum()  # type: ignore[attr-defined]
    assert expected > 0.7
    labels = model.sample(2000, given={"class": {3, 5}}).y
    assert abs(np.mean(labels == 3) - expected) < 0.06


def test_the_plan_is_an_upper_bound_of_what_happens() -> None:
    x, y = digits()
    budget = sf.Budget(epsilon=50)
    planned = {spend.name: spend for spend in sf.Moments().plan(SCHEMA, budget).spends}
    for spend in sf.Moments().fit((x, y), SCHEMA, budget).guarantee.spends:
        assert spend.dim <= planned[spend.name].dim
        assert spend.sensitivity == pytest.approx(planned[spend.name].sensitivity)


def test_a_table_is_refused() -> None:
    schema = Schema(columns={"a": sf.Boolean()})
    with pytest.raises(SfumatoError, match="use pairs"):
        sf.Moments().codec(schema)


def test_detail_asks_for_the_levels_of_pixels_besides_and_is_saved(tmp_path: Path) -> None:
    x, y = digits()
    budget = sf.Budget(epsilon=10, delta=1e-5)
    plain, detailed = (
        seeded_fit(sf.Moments(detail=detail), (x, y), SCHEMA, budget) for detail in (False, True)
    )
    names = [{release.name for release in model.releases} for model in (plain, detailed)]
    assert names[1] == names[0] | {"levels"}
    drawn = detailed.sample(500)
    assert drawn.x.std(axis=0).mean() > plain.sample(500).x.std(axis=0).mean()
    detailed.save(tmp_path / "model.sfumato")
    assert np.array_equal(sf.load(tmp_path / "model.sfumato").sample(500).x, drawn.x)


def test_a_refit_from_saved_releases_finds_the_same_levels(tmp_path: Path) -> None:
    ledger, budget = Ledger(":memory:"), sf.Budget(epsilon=10, delta=1e-5)
    first, again = (
        sf.Moments(detail=True).fit(
            digits(), SCHEMA, budget, sf.Run(ledger=ledger, dataset="d", folder=tmp_path)
        )
        for _ in range(2)
    )
    assert len(ledger.entries()) == len(first.releases)
    levels = [model.arrays()["level_knots"] for model in (first, again)]
    assert np.allclose(*levels, atol=1e-4)


def test_images_are_bytes_before_they_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """As floats, all images of a large set at once would take several times its memory."""
    model = seeded_fit(sf.Moments(), digits(), SCHEMA, sf.Budget(epsilon=10, delta=1e-5))
    sizes = []
    plain = ImageCodec.decode

    def decode(self: ImageCodec, unit: np.ndarray) -> np.ndarray:
        sizes.append(len(unit))
        return plain(self, unit)

    monkeypatch.setattr(ImageCodec, "decode", decode)
    assert model.sample(2000).x.dtype == np.uint8
    assert sum(sizes) >= 2000
    assert max(sizes) < 400


def test_images_have_the_class_that_the_classifier_sees_in_them(tmp_path: Path) -> None:
    x, y = digits()
    budget = sf.Budget(epsilon=10, delta=1e-5)
    model = seeded_fit(sf.Moments(), (x[:1400], y[:1400]), SCHEMA, budget)
    drawn = model.sample(2000)
    classifier, basis = model.images.classifier, model.images.basis  # type: ignore[attr-defined]

    def seen(images: np.ndarray) -> np.ndarray:
        return classifier(basis.coordinates(images.reshape(-1, 64).astype(np.float32) / 255))

    assert np.mean(seen(drawn.x) == drawn.y) > 0.99  # but for images at the edge, made bytes
    assert np.mean(seen(x[1400:]) == y[1400:]) > 0.85
    some = model.sample(300, given={"class": {3, 5}})
    assert set(some.y) == {3, 5}
    assert np.mean(seen(some.x) == some.y) > 0.97
    model.save(tmp_path / "model.sfumato")
    assert np.array_equal(sf.load(tmp_path / "model.sfumato").sample(2000).y, drawn.y)


def test_without_a_classifier_the_whole_budget_goes_to_the_rest() -> None:
    """Not asked for, or too few images for the noise."""
    x, y = digits()
    for method, epsilon in ((sf.Moments(relabel=False), 10.0), (sf.Moments(), 0.5)):
        model = seeded_fit(method, (x, y), SCHEMA, sf.Budget(epsilon=epsilon, delta=1e-5))
        assert not any(release.name.startswith("classifier") for release in model.releases)
        assert 0.999 * epsilon < model.guarantee.epsilon <= epsilon * (1 + 1e-9)
        assert len(model.sample(100).x) == 100
