"""Methods that meet mean embeddings: all their forms keep to their bounds and come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from methods.forms import FORMS, PICTURES, PLANE, curator_of, encoded
from sfumato.data.batch import Batch
from sfumato.data.image_set import ImageSet
from sfumato.errors import SfumatoError
from sfumato.loading import load
from sfumato.papers.embedding.base import EmbeddingMethod
from sfumato.papers.embedding.hp import Hp
from sfumato.papers.embedding.merf import Merf
from sfumato.privacy.audit import assert_replays
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.progress import Progress, silent
from support import SCHEMA, people

torch = pytest.importorskip("torch")


PLENTY = 1e4  # so large an epsilon that noise leaves nothing out


@pytest.mark.parametrize("epsilon", [1, PLENTY])
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_passes_record_and_replay(
    form: str,
    relation: Relation,
    epsilon: float,
) -> None:
    method, schema = FORMS[form]
    rows, other = (encoded(method, schema, 30, seed) for seed in (0, 1))
    rest = rows.where(slice(1, None))
    if relation is Relation.REPLACE_ONE:
        rest = Batch(
            np.concatenate([rest.codes, other.codes[:1]]),
            np.concatenate([rest.unit, other.unit[:1]]),
        )
    budget = Budget(epsilon=epsilon, relation=relation)
    assert_replays(method, [rows], [rest], schema, budget)


@pytest.mark.parametrize("form", FORMS)
def test_a_plan_costs_the_whole_budget_and_covers_what_is_released(
    form: str,
) -> None:
    method, schema = FORMS[form]
    budget = Budget(epsilon=PLENTY)
    plan = method.plan(schema, budget)
    assert plan.guarantee.epsilon == pytest.approx(PLENTY, rel=1e-6)
    curator = curator_of(encoded(method, schema, 30, 0), schema, budget)
    model = method.learn(curator)
    assert model.guarantee.epsilon <= PLENTY
    for planned, spent in zip(plan.spends, model.guarantee.spends, strict=True):
        assert planned.name == spent.name
        assert planned.dim >= spent.dim
        assert planned.sigma >= spent.sigma


@pytest.mark.parametrize(
    "method",
    [Merf(target="class", features=400, steps=400), Hp(target="class", steps=400)],
    ids=["merf", "hp"],
)
def test_a_mixture_is_learned_from_a_noisy_release(
    method: EmbeddingMethod,
) -> None:
    """At epsilon 1, nine in ten samples lie within 4 deviations of a mode of their class."""
    rows = encoded(method, PLANE, 20_000, 0)
    curator = curator_of(rows, PLANE, Budget(epsilon=1, delta=1e-5))
    model = method.learn(curator)
    made = model.sample(4000, seed=1)
    right = made["class"].to_numpy() == "right"
    assert right.mean() == pytest.approx(0.75, abs=0.03)
    height = np.where(right, 1.0, 0.5)
    across = made["x"].to_numpy() - np.where(right, 1.0, -1.0)
    distance = [np.hypot(across, made["y"].to_numpy() - sign * height) for sign in (1, -1)]
    assert (np.minimum(*distance) < 0.8).mean() > 0.9
    for near in distance:
        assert (near < 0.8).mean() > 0.35


@pytest.mark.parametrize("form", FORMS)
def test_a_model_comes_back_from_disk_and_draws_the_same(form: str, tmp_path: Path) -> None:
    method, schema = FORMS[form]
    curator = curator_of(encoded(method, schema, 30, 0), schema, Budget(epsilon=1))
    model = method.learn(curator)
    model.save(tmp_path / "model.sfumato")
    again = load(tmp_path / "model.sfumato")
    first, second = model.sample(20, seed=5), again.sample(20, seed=5)
    if isinstance(first, ImageSet):
        assert first.x.shape == (20, 4, 6, 1)
        assert np.array_equal(first.x, second.x)
    else:
        assert first.column_names == list(schema.columns)
        assert first.equals(second)
    assert again.guarantee == model.guarantee
    assert again.sample(0) is not None


def test_only_the_class_can_be_given() -> None:
    def model(form: str) -> Any:
        method, schema = FORMS[form]
        rows = encoded(method, schema, 30, 0)
        return method.learn(curator_of(rows, schema, Budget(epsilon=1)))

    table, pictures, unlabelled = (
        model(f"merf, {form}") for form in ("imbalanced", "images", "unlabelled")
    )
    assert set(table.sample(9, given={"class": "left"})["class"].to_pylist()) == {"left"}
    assert set(pictures.sample(9, given={"class": "dog"}).y) == {"dog"}
    # Neither class has less than a tenth of the rows: 300 draws miss one with chance 1e-13.
    assert set(pictures.sample(300, given={"class": ["dog", "cat"]}).y) == {"cat", "dog"}
    with pytest.raises(SfumatoError, match="only 'class' can be given"):
        table.sample(9, given={"x": 1.0})
    with pytest.raises(SfumatoError, match=r"'up' is not a .* it has: left, right"):
        table.sample(9, given={"class": "up"})
    with pytest.raises(SfumatoError, match="it has no classes"):
        unlabelled.sample(9, given={"x": 1.0})


@pytest.mark.parametrize("form", ["merf, heterogeneous, labelled", "hp, heterogeneous, labelled"])
def test_fit_reads_frames_and_takes_up_saved_releases(form: str, tmp_path: Path) -> None:
    method = FORMS[form][0]
    stages: list[str] = []
    models = [
        method.fit(
            people(50),
            SCHEMA,
            Budget(epsilon=1),
            Run(
                folder=tmp_path,
                dataset="people",
                progress=lambda stage, fraction: stages.append(stage),
            ),
        )
        for _ in range(2)
    ]
    assert models[0].sample(5).equals(models[1].sample(5))
    assert sum("taking up" in stage for stage in stages) == len(models[0].releases)


def test_an_interrupted_training_goes_on_where_it_stopped(tmp_path: Path) -> None:
    method = Merf(target="sick", features=20, steps=60)

    def fit(folder: Path, progress: Progress = silent) -> Any:
        return method.fit(
            people(50),
            SCHEMA,
            Budget(epsilon=1000),
            Run(folder=folder, dataset="people", progress=progress),
        )

    def interrupt(stage: str, part: float | None) -> None:
        if part and part > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, interrupt)
    begun = list(tmp_path.glob("generator-*"))
    parts: list[float] = []
    model = fit(tmp_path, lambda stage, part: parts.append(part or 0.0))
    assert len(begun) == len(list(tmp_path.glob("generator-*"))) == 1
    assert min(part for part in parts if part) > 0.4
    assert model.sample(5).equals(fit(tmp_path).sample(5))


def test_the_target_of_images_is_in_their_schema() -> None:
    with pytest.raises(SfumatoError, match="leave out the target"):
        Merf(target="label").plan(PICTURES, Budget(epsilon=1))


@pytest.mark.parametrize("kind", [Merf, Hp])
def test_other_seeds_and_longer_trainings_cost_nothing(
    kind: type[EmbeddingMethod], tmp_path: Path
) -> None:
    ledger, budget = Ledger(":memory:"), Budget(epsilon=PLENTY)
    fits = [
        kind(target="sick", **changes).fit(
            people(60), SCHEMA, budget, Run(ledger=ledger, dataset="d", folder=tmp_path)
        )
        for changes in ({"steps": 2}, {"steps": 2, "seed": 1}, {"steps": 3})
    ]
    names = [entry.spend.name for entry in ledger.entries()]
    assert len(names) == len(set(names)) >= 2
    for fit in fits[1:]:
        for first, other in zip(fits[0].releases, fit.releases, strict=True):
            assert np.array_equal(first.values, other.values)
    assert not np.array_equal(*(next(iter(fit.weights.values())) for fit in fits[:2]))  # type: ignore[attr-defined]
