"""DP-MERF: what is released, what is learned from it, and its public rules."""

from __future__ import annotations

import math

import numpy as np
import pytest

from methods.forms import FORMS, curator_of, encoded
from sfumato.errors import SfumatoError
from sfumato.papers.embedding.merf import MeanEmbedding, Merf, length_scales
from sfumato.privacy.budget import Budget
from sfumato.schema import Images, Numeric, Schema

torch = pytest.importorskip("torch")


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("form", ["unlabelled", "heterogeneous, labelled", "images"])
def test_without_noise_the_release_is_the_plain_mean_embedding(form: str) -> None:
    method, schema = FORMS[f"merf, {form}"]
    rows = encoded(method, schema, 50, 0)
    curator = curator_of(rows, schema, Budget(epsilon=1))
    model = method.learn(curator)
    layout = method.point_space(schema)
    embedding = MeanEmbedding(layout, 20, 0)
    points = torch.as_tensor(layout.from_batch(rows))
    plain = embedding.of_tensor(points).double().numpy()
    labels = rows.codes[:, layout.class_column] if layout.classes > 1 else np.zeros(50, int)
    sums = [plain[labels == label].sum(axis=0) for label in range(layout.classes)]
    released = model.releases[1].values.reshape(layout.classes, -1) / 2**20
    # the grid of the release rounds by up to 2^-20 a row, the levels of the numbers by the rest
    assert np.abs(released - sums).max() / 50 < 2e-4


def test_length_scales_come_closer_together_as_coordinates_grow() -> None:
    few, many = (
        length_scales(
            Merf().point_space(
                Schema(columns={str(i): Numeric(low=0, high=1) for i in range(count)})
            )
        )
        for count in (2, 600)
    )
    assert few[-1] / few[0] > 10 > 2 > many[-1] / many[0]
    assert many[1] / few[1] == pytest.approx(math.sqrt(300))
    pictures = Merf().point_space(Schema(images=Images(height=28, width=28)))
    assert length_scales(pictures) == (pytest.approx(5.6),)


@pytest.mark.parametrize("settings", [{"features": 3}, {"features": -2}, {"steps": 0}])
def test_settings_without_sense_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(SfumatoError, match=next(iter(settings))):
        Merf(**settings)
