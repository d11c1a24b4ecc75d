"""Locally linear maps: exact gradients, honest fits, and explanations that add up."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.datasets import load_digits

from seeded import Seeded, drawing
from sfumato.classify.attribution import integrated_gradients, smooth_gradients
from sfumato.classify.base import Classifier, ClassifierModel
from sfumato.classify.convolutional import Convolutional
from sfumato.classify.inputs import TableInputs
from sfumato.classify.locally_linear import LocallyLinear, LocallyLinearModel
from sfumato.classify.map_bank import MapLearner
from sfumato.classify.pictures import image_maps, map_bank, write_explanation, write_figure
from sfumato.data.batch import Batch
from sfumato.data.rows import encoded_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.loading import load
from sfumato.modelling.network_learner import total_loss
from sfumato.modelling.spaces import TableSpace
from sfumato.privacy.audit import assert_replays
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.curator import Curator
from sfumato.privacy.gradients import clipped_sum_of, per_example_gradients
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.schema import Categorical, Images, Numeric, Schema
from support import SCHEMA, people

DIGITS = Schema(images=Images(height=8, width=8, classes=tuple(range(10))))
BUDGET = Budget(epsilon=8, delta=1e-5)


def digits() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_digits(return_X_y=True)
    return (x.reshape(-1, 8, 8) * 15.9).astype(np.uint8), y


def seeded_fit(method: Classifier, data: Any, schema: Schema, budget: Budget = BUDGET) -> Any:
    """Fit with noise from a fixed seed: for tests only."""
    curator = Curator(
        encoded_rows(data, method.codec(schema)),
        budget,
        schema,
        Run(ledger=Ledger(":memory:"), dataset="test"),
    )
    with drawing(Seeded()):
        return method.learn(curator)


@pytest.fixture(scope="module")
def model() -> LocallyLinearModel:
    x, y = digits()
    found = seeded_fit(LocallyLinear(maps=5, frequencies=6), (x[:1400], y[:1400]), DIGITS)
    assert isinstance(found, LocallyLinearModel)
    return found


@pytest.fixture(scope="module")
def table_model() -> LocallyLinearModel:
    found = seeded_fit(LocallyLinear(target="sick"), people(2000), SCHEMA)
    assert isinstance(found, LocallyLinearModel)
    return found


def test_digits_are_learned_at_a_moderate_epsilon(model: LocallyLinearModel) -> None:
    x, y = digits()
    assert (model.predict(x[1400:]) == y[1400:]).mean() > 0.85
    assert 7.9 < model.guarantee.epsilon <= 8


def test_several_maps_learn_what_one_cannot() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((4000, 2))
    rows = pa.table({"a": x[:, 0], "b": x[:, 1], "y": np.abs(x[:, 0] - 0.5) > 0.25})
    unit = Numeric(low=0, high=1)
    schema = Schema(columns={"a": unit, "b": unit, "y": Categorical(values=(False, True))})
    right = {}
    for maps in (1, 3):
        method = LocallyLinear(target="y", maps=maps, learning_rate=0.2, seed=1)
        found = seeded_fit(method, rows.slice(0, 3000), schema)
        truth = rows.slice(3000).column("y").to_numpy()
        right[maps] = (found.predict(rows.slice(3000)) == truth).mean()
    assert right[1] < 0.7
    assert right[3] > 0.9


@pytest.mark.parametrize("projection", [None, 4])
def test_gradients_in_closed_form_are_those_of_autodiff(projection: int | None) -> None:
    learner = _learner(projection)
    examples = _examples(learner)
    inputs = torch.from_numpy(learner.inputs(_batch(*(part[:40] for part in digits()))))
    for clip in (0.01, 1.0, 100.0):
        quick = learner.clipped_sum(examples, clip)
        slow = clipped_sum_of(
            per_example_gradients(learner.module, total_loss, inputs, examples[1]), clip
        )
        for left, right in zip(quick, slow, strict=True):
            assert torch.allclose(left.float(), right, atol=3e-4, rtol=1e-3)


@pytest.mark.parametrize("projection", [None, 4])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e10, 1e25, math.nan])
def test_no_row_adds_more_than_the_clipping_norm(projection: int | None, scale: float) -> None:
    # Weights of any size, as noise may make them.
    learner = _learner(projection)
    with torch.no_grad():
        learner.module.weights *= scale
    for row in range(20):
        one = [array[row : row + 1] for array in _examples(learner)]
        added = learner.clipped_sum(one, 0.01)
        assert math.sqrt(sum(float(a.square().sum()) for a in added)) <= 1


@pytest.mark.parametrize("projection", [None, 4])
def test_no_row_adds_more_whatever_its_codes_and_numbers(projection: int | None) -> None:
    space = TableSpace(TableCodec(SCHEMA), "sick")
    learner = MapLearner(TableInputs(space), 2, 1.0, projection, 0, {})
    rng = np.random.default_rng(0)
    odd = np.array([-(2**31), -1, 0, 1, 2, 99, 2**31 - 1], np.int32)
    numbers = np.array([math.nan, math.inf, -math.inf, -7, 0, 0.5, 1, 3e38], np.float32)
    batch = Batch(
        rng.choice(odd, (60, len(space.codec.names))), rng.choice(numbers, (60, space.size))
    )
    whole = [torch.from_numpy(array) for array in learner.examples(batch)]
    assert float(whole[0].abs().max()) <= learner._reach
    total = learner.clipped_sum(whole, 0.01)
    for row in range(60):
        added = learner.clipped_sum([array[row : row + 1] for array in whole], 0.01)
        assert math.sqrt(sum(float(a.square().sum()) for a in added)) <= 1
        total = [left - right for left, right in zip(total, added, strict=True)]
    assert not any(map(torch.any, total))


def test_inputs_of_an_image_depend_on_that_image_alone() -> None:
    learner = _learner(None)
    x, y = digits()
    together = _batch(x[:5], y[:5])
    for row in range(5):
        alone = learner.inputs(together.where([row]))[0]
        assert np.array_equal(learner.inputs(together)[row], alone)
    blank = learner.inputs(_batch(np.zeros((1, 8, 8), np.uint8), y[:1]))
    assert np.array_equal(blank, np.zeros_like(blank))


@pytest.mark.parametrize("projection", [None, 4])
def test_what_a_row_adds_is_the_same_bits_whichever_rows_stand_beside_it(
    projection: int | None,
) -> None:
    learner = _learner(projection)
    examples = _examples(learner)
    count = len(examples[0])
    alone = [
        learner.clipped_sum([array[row : row + 1] for array in examples], 0.1)
        for row in range(count)
    ]
    expected = [torch.stack(parts).sum(0) for parts in zip(*alone, strict=True)]
    for part in expected:
        assert torch.equal(part * 2**36, (part * 2**36).round())
        assert float(part.abs().sum()) > 0
    for order in (torch.arange(count), torch.arange(count).flip(0)):
        for size in (count, 7, 3):
            found = [torch.zeros_like(part) for part in expected]
            for piece in order.split(size):
                added = learner.clipped_sum([array[piece] for array in examples], 0.1)
                for total, part in zip(found, added, strict=True):
                    total += part
            assert all(map(torch.equal, found, expected))


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("schema", [SCHEMA, DIGITS], ids=["table", "images"])
def test_a_training_passes_record_and_replay(schema: Schema, relation: Relation) -> None:
    data = digits() if schema is DIGITS else people(200)
    method = LocallyLinear(target=None if schema is DIGITS else "sick", epochs=0.5)
    (batch,) = _first(encoded_rows(data, method.codec(schema)), 200)
    rest = batch.where(np.arange(199))
    if relation is Relation.REPLACE_ONE:
        rest = Batch(*(np.concatenate([a, a[:1]]) for a in (rest.codes, rest.unit)))
    budget = Budget(epsilon=2, delta=1e-5, relation=relation)
    assert_replays(method, [batch], [rest], schema, budget)


def test_a_training_that_looks_at_other_rows_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = MapLearner.clipped_sum

    def by_the_number_of_rows(self: MapLearner, examples: Any, clip: float) -> list[torch.Tensor]:
        shift = 2.0 * len(examples[0]) % 3 - 1
        return [(part + shift).clamp(-3, 3) for part in plain(self, examples, clip)]

    monkeypatch.setattr(MapLearner, "clipped_sum", by_the_number_of_rows)
    method = LocallyLinear(target="sick", epochs=0.5)
    (batch,) = _first(encoded_rows(people(200), method.codec(SCHEMA)), 200)
    with pytest.raises(AssertionError, match="more than its sensitivity"):
        assert_replays(method, [batch], [batch.where(np.arange(199))], SCHEMA, BUDGET)


def _first(batches: Any, rows: int) -> list[Batch]:
    return [next(iter(batches)).where(slice(rows))]


def test_fitting_asks_for_one_training_and_no_more(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")
    method = LocallyLinear(target="sick")
    fitted = method.fit(
        people(100), SCHEMA, BUDGET, Run(ledger=ledger, dataset="p", folder=tmp_path)
    )
    (entry,) = ledger.entries("p")
    assert (entry.spend,) == fitted.guarantee.trainings
    assert (entry.spend,) == method.plan(SCHEMA, BUDGET).trainings
    again = method.fit(
        people(100), SCHEMA, BUDGET, Run(ledger=ledger, dataset="p", folder=tmp_path)
    )
    assert np.array_equal(again.weights["weights"], fitted.weights["weights"])
    assert len(ledger.entries()) == 1


def test_a_seed_fixes_the_first_weights_and_never_the_noise() -> None:
    method = LocallyLinear(target="sick")
    layout = method.space(SCHEMA)
    first = [method.learner(layout).module.state_dict()["weights"] for _ in range(2)]
    assert torch.equal(*first)
    fits = [method.fit(people(50), SCHEMA, BUDGET) for _ in range(2)]
    assert not np.array_equal(fits[0].weights["weights"], fits[1].weights["weights"])


def test_a_saved_model_predicts_the_same(model: LocallyLinearModel, tmp_path: Path) -> None:
    model.save(tmp_path / "m.sfumato")
    loaded = load(tmp_path / "m.sfumato")
    x, _ = digits()
    assert np.array_equal(loaded.predict_proba(x), model.predict_proba(x))
    assert loaded.guarantee == model.guarantee
    assert loaded.method == model.method
    raw = (tmp_path / "m.sfumato").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert json.loads(header["__metadata__"]["settings"]) == asdict(model.method)


def test_other_files_are_not_taken_for_classifiers(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"nothing")
    with pytest.raises(SfumatoError, match="not a model file"):
        load(tmp_path / "m")
    with pytest.raises(SfumatoError, match="no file"):
        load(tmp_path / "n")


def test_an_explanation_adds_up_to_the_score(model: LocallyLinearModel) -> None:
    x, _ = digits()
    found = model.explain(x, row=7, top=5)
    assert found.prediction == model.predict(x[7:8])[0]
    assert sum(each.share for each in found.maps) == pytest.approx(1)
    assert [each.share for each in found.maps] == sorted(
        (e.share for e in found.maps), reverse=True
    )
    index = model.classes.index(found.prediction)
    biases = model.weights["biases"][:, index]
    bank = model.maps()[index]
    for each in found.maps:
        assert np.array_equal(each.weights, bank[each.index])
        value = (each.weights * found.features).sum() + biases[each.index]
        assert value == pytest.approx(each.value, rel=1e-4)
    blended = sum(each.share * each.weights for each in found.maps)
    assert np.allclose(blended, found.blend, atol=1e-5)


def test_a_table_is_explained_by_named_features(table_model: LocallyLinearModel) -> None:
    rows = people(20)
    found = table_model.explain(rows, row=3)
    assert found.names == (
        "age", "pay", "town = Ulm", "town = Jena", "town = (other)", "pay is there",
        "pay is missing",
    )  # fmt: skip
    assert len(found.contributions) == len(found.names) == table_model.maps().shape[2]
    # Age is what makes people sick in these data: it speaks against health in the old.
    old = pa.table({"age": [79], "pay": [100.0], "town": ["Ulm"]})
    told = table_model.explain(old)
    assert told.prediction is True
    assert told.names[int(np.argmax(told.contributions))] == "age"


def test_rows_that_are_predicted_need_no_target(table_model: LocallyLinearModel) -> None:
    rows = people(50)
    bare = rows.drop_columns(["sick"])
    assert np.array_equal(table_model.predict(rows), table_model.predict(bare))
    assert table_model.predict_proba(bare).sum(1) == pytest.approx(1)
    assert table_model.predict(bare.slice(0, 0)).tolist() == []
    with pytest.raises(SfumatoError, match="no column 'age'"):
        table_model.predict(bare.drop_columns(["age"]))


def test_a_row_that_is_not_there_is_a_clear_error(table_model: LocallyLinearModel) -> None:
    for row in (-1, 5):
        with pytest.raises(SfumatoError, match=f"no row {row}: the data have 5 rows"):
            table_model.explain(people(5), row=row)


@pytest.mark.parametrize("ending", ["png", "svg", "json"])
def test_explanations_are_written_as_pictures_or_data(
    ending: str, model: LocallyLinearModel, table_model: LocallyLinearModel, tmp_path: Path
) -> None:
    start = {"png": b"\x89PNG", "svg": b"<?xml", "json": b"{"}[ending]
    for number, found in enumerate((model.explain(digits()[0]), table_model.explain(people(3)))):
        path = tmp_path / f"{number}.{ending}"
        write_explanation(path, found)
        assert path.read_bytes().startswith(start)
        if ending == "json":
            assert json.loads(path.read_text())["mark"].startswith("PRIVATE")
    with pytest.raises(SfumatoError, match="written to"):
        write_explanation(tmp_path / "e.txt", model.explain(digits()[0]))


def test_dollar_signs_in_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    rows = pa.table({"pay $": [1.0, 2.0, 3.0] * 20, "kind $^_": ["$a", "b$", "$"] * 20})
    schema = Schema(
        columns={
            "pay $": Numeric(low=0, high=4),
            "kind $^_": Categorical(values=("$a", "b$", "$")),
        }
    )
    found = seeded_fit(LocallyLinear(target="kind $^_", epochs=5), rows, schema)
    write_explanation(tmp_path / "e.svg", found.explain(rows))
    weights = np.ones((3, 2, 4, 4, 1))
    write_figure(tmp_path / "bank.png", map_bank(weights, found.classes, most=2))


def test_the_bank_has_a_picture_for_each_map_of_each_class(
    model: LocallyLinearModel, tmp_path: Path
) -> None:
    assert model.maps().shape == (10, 5, 8, 8, 1)
    bank = map_bank(model.maps(), model.classes, most=2)
    assert len(bank.axes) == 20
    assert len(image_maps(model.explain(digits()[0], top=2)).axes) == 3
    write_figure(tmp_path / "bank.svg", bank)
    assert (tmp_path / "bank.svg").read_bytes().startswith(b"<?xml")


def test_attributions_of_a_linear_model_are_its_weights() -> None:
    # One map per class on raw inputs: the score is linear, so both methods must find its weights.
    found = seeded_fit(LocallyLinear(target="sick", maps=1), people(300), SCHEMA)
    rows = people(4)
    told = found.explain(rows, row=2)
    assert np.allclose(smooth_gradients(found, rows, row=2), told.blend, atol=1e-5)
    low = told.features.min()
    expected = told.blend * (told.features - low)
    assert np.allclose(integrated_gradients(found, rows, row=2), expected, atol=1e-5)


def test_the_network_learns_and_its_attributions_sum_to_the_score() -> None:
    x, y = digits()
    method = Convolutional(epochs=40, rate=0.1, learning_rate=0.01)
    network = seeded_fit(method, (x[:500], y[:500]), DIGITS)
    assert isinstance(network, ClassifierModel)
    assert (network.predict(x[1400:]) == y[1400:]).mean() > 0.4
    found = integrated_gradients(network, x, row=0, steps=400)
    assert found.shape == smooth_gradients(network, x, row=0).shape == (8, 8, 1)
    learner = network.trained()
    point = torch.from_numpy(learner.inputs(network.row(x, 0)))
    with torch.no_grad():
        scores = learner.module(torch.cat([point, torch.full_like(point, -1.0)]))
    scores = scores[:, int(scores[0].argmax())]
    assert found.sum() == pytest.approx(float(scores[0] - scores[1]), abs=0.05)


@pytest.mark.parametrize(
    ("method", "schema", "message"),
    [
        (LocallyLinear(), SCHEMA, "name the target"),
        (LocallyLinear(target="age"), SCHEMA, "must be a category"),
        (LocallyLinear(target="sick"), DIGITS, "leave out the target"),
        (LocallyLinear(), Schema(images=Images(height=8, width=8)), "no classes"),
        (Convolutional(target="sick"), SCHEMA, "for images"),
    ],
)
def test_what_cannot_be_classified_is_refused(
    method: Classifier, schema: Schema, message: str
) -> None:
    with pytest.raises(SfumatoError, match=message):
        method.plan(schema, BUDGET)


@pytest.mark.parametrize("wrong", [{"maps": -1}, {"beta": 0.0}, {"projection": -2}])
def test_senseless_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SfumatoError, match=next(iter(wrong))):
        LocallyLinear(**wrong)


def _learner(projection: int | None) -> MapLearner:
    method = LocallyLinear(maps=3, frequencies=4, projection=projection, beta=2.0)
    learner = method.learner(method.space(DIGITS))
    assert isinstance(learner, MapLearner)
    with torch.no_grad():
        learner.module.weights *= 30  # so that maps differ in their shares
    return learner


def _batch(x: np.ndarray, y: np.ndarray) -> Batch:
    return LocallyLinear().codec(DIGITS).encode((x[..., None], y))


def _examples(learner: MapLearner) -> list[torch.Tensor]:
    x, y = digits()
    return [torch.from_numpy(array) for array in learner.examples(_batch(x[:40], y[:40]))]
