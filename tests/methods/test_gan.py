"""GANs with noisy critics: from scratch, from public images, and in features."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.data.image_codec import ImageCodec
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget, TrainingSpend
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.planning import plan_training
from sfumato.schema import Categorical, Images, Numeric, Schema

torch = pytest.importorskip("torch")

import pyarrow as pa  # noqa: E402

from learners import trained  # noqa: E402
from methods.forms import curator_of  # noqa: E402
from seeded import Seeded  # noqa: E402
from sfumato.loading import load  # noqa: E402
from sfumato.papers.gan.method import Gan  # noqa: E402
from sfumato.privacy.dpsgd import State  # noqa: E402
from sfumato.privacy.run import Run  # noqa: E402
from sfumato.public.pair import Pair  # noqa: E402

TABLE = Schema(
    columns={
        "x": Numeric(low=0, high=1),
        "kind": Categorical(values=("a", "b")),
        "side": Categorical(values=("left", "right")),
    }
)
SHAPES = Schema(images=Images(height=8, width=8, channels=1, classes=("dark", "bright")))


def rows(n: int) -> pa.RecordBatch:
    """Left: small numbers and mostly a; right: large ones and mostly b."""
    rng = np.random.default_rng(0)
    right = rng.random(n) < 0.5
    kinds = np.where(rng.random(n) < 0.9, right, ~right)
    return pa.record_batch(
        {
            "x": np.clip(np.where(right, 0.8, 0.2) + 0.05 * rng.standard_normal(n), 0, 1),
            "kind": np.where(kinds, "b", "a"),
            "side": np.where(right, "right", "left"),
        }
    )


def shades(n: int) -> tuple[np.ndarray, list[str]]:
    rng = np.random.default_rng(0)
    bright = rng.random(n) < 0.5
    pixels = rng.integers(0, 60, (n, 8, 8)) + 150 * bright[:, None, None]
    return pixels.astype(np.uint8), np.where(bright, "bright", "dark").tolist()


@pytest.mark.usefixtures("no_noise")
def test_columns_are_learned_by_class(tmp_path: Path) -> None:
    method = Gan(target="side", rate=0.2, epochs=30, learning_rate=0.01)
    encoded = TableCodec(TABLE).encode(rows(2000))
    budget = Budget(epsilon=30)
    model = method.learn(curator_of(encoded, TABLE, budget))
    planned = method.plan(TABLE, budget).guarantee
    assert model.guarantee.epsilon == pytest.approx(planned.epsilon, rel=1e-3)
    assert model.guarantee.epsilon <= 30
    model.save(tmp_path / "model.sfumato")
    made = load(tmp_path / "model.sfumato").sample(1000)  # type: ignore[attr-defined]
    right = np.asarray(made["side"]) == "right"
    x = np.asarray(made["x"])
    assert x[right].mean() - x[~right].mean() > 0.2
    kinds = np.asarray(made["kind"]) == "b"
    assert kinds[right].mean() - kinds[~right].mean() > 0.2


@pytest.mark.parametrize(
    "settings", [{}, {"start": "public"}, {"start": "public", "space": "features"}]
)
def test_images_are_learned_in_pixels_and_in_features(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One payment, also when the finished run is asked for again."""
    monkeypatch.setattr("sfumato.papers.gan.learner._PRACTICE", 30)
    if settings:
        x, _ = shades(200)
        settings["pair"] = str(tmp_path / "shades.pair")
        Pair.train(
            x[..., None], name="shades", source="a test", licence="none", dim=4, network="untrained"
        ).save(settings["pair"])
    method = Gan(rate=0.1, epochs=2, **settings)
    ledger = Ledger(":memory:")
    models = [
        method.fit(
            shades(300), SHAPES, Budget(epsilon=20),
            Run(ledger=ledger, dataset="shades", folder=tmp_path / "releases"),
        )
        for _ in range(2)
    ]  # fmt: skip
    assert len(models[0].public) == (2 if settings else 0)
    paid = [entry.spend for entry in ledger.entries()]
    assert [isinstance(spend, TrainingSpend) for spend in paid] == [False, True]
    first, again = (model.sample(20, seed=1) for model in models)
    assert first.x.shape[:3] == (20, 8, 8)
    assert np.array_equal(first.x, again.x)


@pytest.mark.usefixtures("no_noise")
def test_classes_in_features_lie_as_widely_as_private_ones(tmp_path: Path) -> None:
    """They do not come down to a few public images each, which is how such GANs go wrong."""
    rng = np.random.default_rng(1)

    def spots(n: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw a spot anywhere: a bright one on the dark, or a dark one on the bright."""
        bright = rng.random(n) < 0.5
        places = rng.uniform(1, 7, (2, n, 1, 1))
        apart = (np.arange(8)[:, None] - places[0]) ** 2 + (np.arange(8) - places[1]) ** 2
        pixels = 200 * np.exp(-apart / 3)
        return np.where(bright[:, None, None], 255 - pixels, pixels).astype(np.uint8), bright

    public, _ = spots(400)
    file = str(tmp_path / "spots.pair")
    pair = Pair.train(
        public[..., None], name="spots", source="a test", licence="none", dim=8, network="untrained"
    )
    pair.save(file)
    x, bright = spots(1000)
    encoded = ImageCodec(SHAPES.images).encode((x, np.where(bright, "bright", "dark").tolist()))
    method = Gan(space="features", pair=file, epochs=60)
    budget = Budget(epsilon=1000)
    made = method.learn(curator_of(encoded, SHAPES, budget)).sample(400)
    right, classes = np.asarray(made.y) == "bright", np.asarray(made.y)
    shown = made.x.reshape(400, -1)
    used = {label: len(np.unique(shown[classes == label], axis=0)) for label in ("dark", "bright")}
    assert min(used.values()) > 30, used
    assert ((shown.mean(axis=1) > 128) == right).mean() > 0.9


def test_a_steep_critic_is_penalised_where_points_are_generated() -> None:
    """The score of class c is s_c x: its squared slope, halved, is added for each point."""
    scores = torch.nn.Linear(4, 2, bias=False)
    slopes = torch.tensor([[1.0, 0, 0, 0], [0, 2, 2, 0]])
    with torch.no_grad():
        scores.weight.copy_(slopes)
    losses = []
    for penalty in (0.0, 3.0):
        method = Gan(target="side", penalty=penalty)
        learner = method.learner(method.point_space(TABLE), np.ones(2))
        learner.module = scores
        losses.append(learner.loss_of_others(torch.ones(3, 4), torch.tensor([0, 1, 1])))
    assert float((losses[1] - losses[0]).detach()) == pytest.approx(3 / 2 * (1 + 8 + 8))
    losses[1].backward()
    assert scores.weight.grad is not None


def test_a_row_adds_no_more_than_is_paid_for_whoever_stands_beside_it() -> None:
    """Also a row that the critic scores wildly; parts differ by less than the slack of clipping."""
    method = Gan(target="side", clip=0.01)
    learner = method.learner(method.point_space(TABLE), np.array([1.0, 3.0]))
    points, labels = learner.examples(TableCodec(TABLE).encode(rows(40)))
    points = torch.from_numpy(points)
    points[0] = 1e6
    each = (points, torch.from_numpy(labels))

    def summed(chosen: slice) -> torch.Tensor:
        parts = learner.clipped_sum([array[chosen] for array in each], method.clip)
        return torch.cat([part.flatten() for part in parts])

    parts = [summed(slice(i, i + 1)) for i in range(40)]
    assert max(float(part.norm()) for part in parts) <= 1
    assert min(float(part.norm()) for part in parts) > 0.9  # they are clipped, not small
    assert float((summed(slice(None)) - torch.stack(parts).sum(0)).norm()) < 1e-9


def test_an_interrupted_training_goes_on_as_if_it_had_not_been() -> None:
    """Critic, generator, its average and both optimisers' memories are taken up."""
    method = Gan(target="side", rate=0.2, epochs=8, critic_steps=3)
    space = method.point_space(TABLE)
    spend = plan_training(
        "t", method.learner(space, np.ones(2)).dim, method.schedule, Budget(epsilon=30), ()
    )
    examples = method.learner(space, np.ones(2)).examples(TableCodec(TABLE).encode(rows(200)))
    randomness = Seeded()
    saved: list[tuple[State, Seeded]] = []

    def steps(start: State | None, drawn: Seeded) -> State:
        learner = method.learner(space, np.array([120.0, 80.0]))
        return trained(
            learner, examples, method.schedule, spend, drawn, start,
            save=lambda state: saved.append((state, deepcopy(drawn))),
        )  # fmt: skip

    whole = steps(None, randomness)
    again = steps(*saved[len(saved) // 2])
    assert again.step == whole.step == method.schedule.steps
    assert whole.arrays.keys() == again.arrays.keys()
    for name, array in whole.arrays.items():
        assert np.array_equal(array, again.arrays[name]), name


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"start": "middle"}, "start is one of scratch, public"),
        ({"space": "out"}, "space is one of rows, features"),
        ({"critic_steps": 0}, "critic_steps"),
        ({"penalty": -1}, "penalty"),
    ],
)
def test_settings_without_sense_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(SfumatoError, match=told):
        Gan(**settings)


def test_public_images_are_for_image_sets() -> None:
    with pytest.raises(SfumatoError, match="for tables start from scratch"):
        Gan(space="features", pair="p").plan(TABLE, Budget(epsilon=1))
    with pytest.raises(SfumatoError, match="gan needs a public encoder and decoder"):
        Gan(start="public").plan(SHAPES, Budget(epsilon=1))
