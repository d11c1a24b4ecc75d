"""DP-HP: what is released, what is learned from it, and its public rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from methods.forms import FORMS, PLANE, curator_of, encoded
from sfumato.data.batch import Batch
from sfumato.errors import SfumatoError
from sfumato.papers.embedding.hermite_kernels import KernelMeans
from sfumato.papers.embedding.hp import Hp
from sfumato.privacy.budget import Budget
from sfumato.schema import Images, Numeric, Schema

torch = pytest.importorskip("torch")

PLENTY = Budget(epsilon=1e4)  # so much that noise leaves nothing out


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(
    "form", ["unlabelled", "heterogeneous, labelled", "redrawn products of three", "images"]
)
def test_without_noise_the_release_is_the_plain_mean_embedding(form: str) -> None:
    method, schema = FORMS[f"hp, {form}"]
    assert isinstance(method, Hp)
    rows = encoded(method, schema, 50, 0)
    layout = method.point_space(schema)
    curator = curator_of(rows, schema, PLENTY)
    targets = method.targets(curator, layout, np.full(layout.classes, 50.0))
    labels = rows.codes[:, layout.class_column] if layout.classes > 1 else np.zeros(50, int)
    sums, *draws = curator.releases
    for (embedding, _), products in zip(targets, draws, strict=True):
        assert isinstance(embedding, KernelMeans)
        kernels = embedding.kernels
        for label in range(layout.classes):
            points = torch.as_tensor(layout.from_batch(rows.where(labels == label)))
            found = embedding(points[None]).numpy()[0] * len(points)
            scales = (kernels.sum_scale, kernels.product_scale)
            for release, scale, weight in zip(
                (sums, products), scales, embedding.weights, strict=True
            ):
                released = release.values.reshape(layout.classes, -1)[label] / scale
                part, found = np.split(found, [len(released)])
                # products of three have 8 bits for each column
                assert np.abs(part / weight - released).max() / 50 < 0.01


@pytest.mark.usefixtures("no_noise")
def test_columns_that_do_not_vary_are_left_out_of_products() -> None:
    schema = Schema(columns={name: Numeric(low=0, high=1) for name in ("a", "b", "still")})
    method = Hp()
    rng = np.random.default_rng(0)
    layout = method.point_space(schema)
    numbers = rng.random((1000, 3), np.float32)
    numbers[:, 2] = 0.5
    rows = Batch(np.zeros((1000, 3), np.int32), numbers)
    curator = curator_of(rows, schema, PLENTY)
    ((embedding, _),) = method.targets(curator, layout, np.array([1000.0]))
    assert embedding.groups == [(0, 1)]


@pytest.mark.usefixtures("no_noise")
def test_the_more_rows_the_more_columns_are_multiplied() -> None:
    names = [f"column {i}" for i in range(12)]
    schema = Schema(columns={name: Numeric(low=0, high=1) for name in names})
    method = Hp()
    layout = method.point_space(schema)
    numbers = np.random.default_rng(0).random((100, 12), np.float32)
    rows = Batch(np.zeros((100, 12), np.int32), numbers)
    sizes, spent = [], []
    for count in (1e2, 6e2, 12e2, 1e6):
        curator = curator_of(rows, schema, Budget(epsilon=1))
        ((embedding, _),) = method.targets(curator, layout, np.array([count]))
        assert isinstance(embedding, KernelMeans)
        sizes.append(sum(len(group) for group in embedding.groups))
        spent.append(sum(spend.rho for spend in curator.guarantee.spends))
    assert sizes[0] == 0 < sizes[1] < sizes[2] < sizes[3] == 12
    assert spent == pytest.approx([spent[0]] * 4, rel=1e-6)


def test_every_draw_is_a_release_of_its_own_and_all_together_keep_the_budget() -> None:
    method = Hp(draws=3)
    plan = method.plan(PLANE, Budget(epsilon=1))
    assert [spend.name for spend in plan.spends[2:]] == [f"product kernel {i}" for i in (1, 2, 3)]
    assert plan.guarantee.epsilon == pytest.approx(1, rel=1e-6)


def test_more_columns_make_coarser_kernels() -> None:
    def kernels(columns: int) -> Any:
        schema = Schema(columns={str(i): Numeric(low=0, high=1) for i in range(columns)})
        return Hp().kernels(Hp().point_space(schema))

    assert kernels(2).alone.length == pytest.approx(0.1)
    assert kernels(2).together.order == 12
    assert kernels(600).together.length > 8 * kernels(2).together.length
    pixels = Hp().kernels(Hp().point_space(Schema(images=Images(height=28, width=28))))
    assert pixels.alone.order == 5
    assert pixels.together.order == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"degree": 1},
        {"draws": 0},
        {"product_share": 1.0},
        {"length": -1.0},
        {"length": 1e-6},
        {"network": "none"},
        {"steps": 0},
    ],
)
def test_settings_without_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SfumatoError, match=next(iter(settings))):
        Hp(**settings)
