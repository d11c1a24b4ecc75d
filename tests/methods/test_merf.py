"""DP-MERF: all its forms keep to their bounds, learn, condition, and come back from disk."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from sfumato.codec import Batch
from sfumato.errors import SfumatoError
from sfumato.images import ImageCodec
from sfumato.methods import METHODS
from sfumato.methods.base import load_model
from sfumato.methods.merf import MeanEmbedding, Merf, length_scales
from sfumato.privacy.audit import assert_replays
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Sampler
from sfumato.privacy.release import Curator
from sfumato.schema import Categorical, Images, Numeric, Schema
from sfumato.writing import ImageSet
from support import SCHEMA, people

torch = pytest.importorskip("torch")

PLANE = Schema(
    columns={
        "x": Numeric(low=-3, high=3),
        "y": Numeric(low=-3, high=3),
        "class": Categorical(values=("left", "right")),
    }
)
PICTURES = Schema(images=Images(height=4, width=6, classes=("cat", "dog")))
QUICK: dict[str, Any] = {"features": 20, "steps": 3}
FORMS: dict[str, tuple[Merf, Schema]] = {
    "unlabelled": (Merf(**QUICK), Schema(columns={k: PLANE.columns[k] for k in "xy"})),
    "balanced": (Merf(target="class", balanced=True, **QUICK), PLANE),
    "imbalanced": (Merf(target="class", **QUICK), PLANE),
    "features by the bound": (Merf(target="class", steps=3), PLANE),
    "heterogeneous": (Merf(**QUICK), SCHEMA),
    "heterogeneous, labelled": (Merf(target="sick", **QUICK), SCHEMA),
    "categories only": (Merf(**QUICK), Schema(columns={"town": SCHEMA.columns["town"]})),
    "images": (Merf(**QUICK), PICTURES),
    "images without classes": (Merf(**QUICK), Schema(images=Images(height=4, width=6))),
}


def _plane(rows: int, seed: int = 0) -> pa.Table:
    """Two clusters in each class, at distance 2 and of deviation 0.2; one class in four is left."""
    rng = np.random.default_rng(seed)
    right = rng.random(rows) < 0.75
    up = rng.choice([-1.0, 1.0], rows)
    x = np.where(right, 1.0, -1.0) + rng.normal(0, 0.2, rows)
    y = up * np.where(right, 1.0, 0.5) + rng.normal(0, 0.2, rows)
    return pa.table({"x": x, "y": y, "class": np.where(right, "right", "left")})


def _encoded(method: Merf, schema: Schema, rows: int, seed: int) -> Batch:
    codec = method.codec(schema)
    if isinstance(codec, ImageCodec):
        rng = np.random.default_rng(seed)
        pixels = rng.integers(0, 256, (rows, 4, 6, 1)).astype(np.uint8)
        return codec.encode((pixels, rng.choice(["cat", "dog"], rows).tolist()))
    table = _plane(rows, seed) if "x" in schema.columns else people(rows, seed)
    return codec.encode(table.select(codec.names).combine_chunks().to_batches()[0])


def _curator(rows: Batch, schema: Schema, budget: Budget, sampler: Sampler) -> Curator:
    return Curator(
        [rows], budget, ledger=Ledger(":memory:"), dataset="t", schema=schema, sampler=sampler
    )


def _no_noise(size: int, sigma: float) -> NDArray[np.int64]:
    return np.zeros(size, np.int64)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(METHODS, "merf", Merf)
    return


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_passes_record_and_replay(
    form: str, relation: Relation, sampler: Sampler
) -> None:
    method, schema = FORMS[form]
    rows, other = (_encoded(method, schema, 30, seed) for seed in (0, 1))
    rest = rows.where(slice(1, None))
    if relation is Relation.REPLACE_ONE:
        rest = Batch(
            np.concatenate([rest.codes, other.codes[:1]]),
            np.concatenate([rest.unit, other.unit[:1]]),
        )
    budget = Budget(epsilon=1, relation=relation)
    assert_replays(method, [rows], [rest], schema, budget, sampler)


@pytest.mark.parametrize("form", FORMS)
def test_a_plan_costs_the_whole_budget_and_covers_what_is_released(
    form: str, sampler: Sampler
) -> None:
    method, schema = FORMS[form]
    budget = Budget(epsilon=1)
    plan = method.plan(schema, budget)
    assert plan.guarantee.epsilon == pytest.approx(1, rel=1e-6)
    curator = _curator(_encoded(method, schema, 30, 0), schema, budget, sampler)
    model = method.learn(curator, schema)
    assert model.guarantee.epsilon <= 1
    for planned, spent in zip(plan.spends, model.guarantee.spends, strict=True):
        assert planned.name == spent.name
        assert planned.dim >= spent.dim
        assert planned.sigma == spent.sigma


@pytest.mark.parametrize("form", ["unlabelled", "heterogeneous, labelled", "images"])
def test_without_noise_the_release_is_the_plain_mean_embedding(form: str) -> None:
    method, schema = FORMS[form]
    rows = _encoded(method, schema, 50, 0)
    curator = _curator(rows, schema, Budget(epsilon=1), _no_noise)
    model = method.learn(curator, schema)
    layout = method.layout(schema)
    embedding = MeanEmbedding(layout, 20, 0)
    points = torch.as_tensor(layout.from_batch(rows))
    plain = embedding(points).double().numpy()
    labels = rows.codes[:, layout.class_column] if layout.classes > 1 else np.zeros(50, int)
    sums = [plain[labels == label].sum(axis=0) for label in range(layout.classes)]
    released = model.releases[1].values.reshape(layout.classes, -1) / 2**20
    # the grid of the release rounds by up to 2^-20 a row, the levels of the numbers by the rest
    assert np.abs(released - sums).max() / 50 < 2e-4


def test_a_mixture_is_learned_from_a_noisy_release(sampler: Sampler) -> None:
    """At epsilon 1, nine in ten samples lie within 4 deviations of a mode of their class."""
    method = Merf(target="class", features=400, steps=400)
    rows = _encoded(method, PLANE, 20_000, 0)
    curator = _curator(rows, PLANE, Budget(epsilon=1, delta=1e-5), sampler)
    model = method.learn(curator, PLANE)
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
def test_a_model_comes_back_from_disk_and_draws_the_same(
    form: str, sampler: Sampler, tmp_path: Path
) -> None:
    method, schema = FORMS[form]
    curator = _curator(_encoded(method, schema, 30, 0), schema, Budget(epsilon=1), sampler)
    model = method.learn(curator, schema)
    model.save(tmp_path / "model.sfumato")
    again = load_model(tmp_path / "model.sfumato")
    first, second = model.sample(20, seed=5), again.sample(20, seed=5)
    if isinstance(first, ImageSet):
        assert first.x.shape == (20, 4, 6, 1)
        assert np.array_equal(first.x, second.x)
    else:
        assert first.column_names == list(schema.columns)
        assert first.equals(second)
    assert again.guarantee == model.guarantee
    assert again.sample(0) is not None


def test_only_the_class_can_be_given(sampler: Sampler) -> None:
    def model(form: str) -> Any:
        method, schema = FORMS[form]
        rows = _encoded(method, schema, 30, 0)
        return method.learn(_curator(rows, schema, Budget(epsilon=1), sampler), schema)

    table, pictures, unlabelled = model("imbalanced"), model("images"), model("unlabelled")
    assert set(table.sample(9, given={"class": "left"})["class"].to_pylist()) == {"left"}
    assert set(pictures.sample(9, given={"class": "dog"}).y) == {"dog"}
    with pytest.raises(SfumatoError, match="only 'class' can be given"):
        table.sample(9, given={"x": 1.0})
    with pytest.raises(SfumatoError, match="has no value 'up'; it has: left, right"):
        table.sample(9, given={"class": "up"})
    with pytest.raises(SfumatoError, match="it has no classes"):
        unlabelled.sample(9, given={"x": 1.0})


def test_fit_reads_frames_and_takes_up_saved_releases(tmp_path: Path) -> None:
    method = Merf(target="sick", **QUICK)
    stages: list[str] = []
    models = [
        method.fit(
            people(50),
            SCHEMA,
            Budget(epsilon=1),
            folder=tmp_path,
            dataset="people",
            progress=lambda stage, fraction: stages.append(stage),
        )
        for _ in range(2)
    ]
    assert models[0].sample(5).equals(models[1].sample(5))
    assert sum("taking up" in stage for stage in stages) == 2


def test_length_scales_come_closer_together_as_coordinates_grow() -> None:
    few, many = (
        length_scales(
            Merf().layout(Schema(columns={str(i): Numeric(low=0, high=1) for i in range(count)}))
        )
        for count in (2, 600)
    )
    assert few[-1] / few[0] > 10 > 2 > many[-1] / many[0]
    assert many[1] / few[1] == pytest.approx(math.sqrt(300))
    assert length_scales(Merf().layout(Schema(images=Images(height=28, width=28)))) == (
        pytest.approx(math.sqrt(105), rel=0.02),
    )


@pytest.mark.parametrize("settings", [{"features": 3}, {"features": -2}, {"steps": 0}])
def test_settings_without_sense_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(SfumatoError, match=next(iter(settings))):
        Merf(**settings)


def test_the_target_of_images_is_in_their_schema() -> None:
    with pytest.raises(SfumatoError, match="leave out the target"):
        Merf(target="label").plan(PICTURES, Budget(epsilon=1))
