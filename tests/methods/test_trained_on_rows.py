"""Methods that train on private rows keep to what they pay for, and fail before they pay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.modelling.base import Method
from sfumato.privacy.audit import assert_replays
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.gate import Gate
from sfumato.privacy.ledger import Ledger
from sfumato.schema import Images, Schema
from support import SCHEMA, people

pytest.importorskip("torch")

from sfumato.classify.locally_linear import LocallyLinear
from sfumato.methods.dre import discriminator
from sfumato.methods.dre.method import Dre
from sfumato.papers.embedding import mepf, trained_extractor
from sfumato.papers.embedding.mepf import Mepf
from sfumato.papers.gan import learner as gan_learner
from sfumato.papers.gan.method import Gan
from sfumato.papers.mge.method import Mge
from sfumato.privacy.dpsgd import Schedule
from sfumato.privacy.run import Run
from sfumato.public.pair import Pair

PICTURES = Schema(images=Images(height=8, width=8, channels=1, classes=("cat", "dog")))
SHORT = Schedule(rate=0.5, epochs=2.0, clip=1.0, learning_rate=0.01)
GAN: dict[str, Any] = {"rate": 0.5, "epochs": 2.0}
METHODS: dict[str, tuple[Method, Schema]] = {
    "mge": (Mge(), PICTURES),
    "dre": (Dre(), PICTURES),
    "dre, discriminator": (Dre(ratio="discriminator"), PICTURES),
    "gan, table": (Gan(target="sick", **GAN), SCHEMA),
    "gan, pixels": (Gan(start="public", **GAN), PICTURES),
    "gan, features": (Gan(space="features", **GAN), PICTURES),
    "mepf, trained": (Mepf(network="trained", grid=2, steps=2, stopping=True), PICTURES),
    "mepf, public start": (Mepf(network="untrained", steps=2), PICTURES),
    "mepf, drawn start": (Mepf(network="untrained", steps=2), PICTURES),
}
WITHOUT_PAIR = ("mepf, trained", "mepf, drawn start")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pair") / "noise.pair"
    images = np.random.default_rng(1).integers(0, 256, (60, 8, 8, 1)).astype(np.uint8)
    Pair.train(
        images, name="noise", source="made by a test", licence="none", dim=4, network="untrained"
    ).save(path)
    return str(path)


def rows_of(schema: Schema, count: int) -> Batch:
    if schema.images is None:
        return TableCodec(schema).encode(people(count).combine_chunks().to_batches()[0])
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, 8, 8, 1)).astype(np.uint8)
    return ImageCodec(schema.images).encode((pixels, rng.choice(["cat", "dog"], count).tolist()))


def neighbour(rows: Batch, relation: Relation) -> Batch:
    """Leave the first row out, or let it be the opposite of what it was."""
    if relation is Relation.ADD_REMOVE:
        return rows.where(slice(1, None))
    codes, numbers = rows.codes.copy(), rows.numbers.copy()
    codes[0] = 1 - codes[0].clip(0, 1)
    numbers[0] = numbers.max() - numbers[0]
    return Batch(codes, numbers)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("name", METHODS)
def test_methods_ask_the_same_of_neighbours_and_keep_to_their_bounds(
    name: str, relation: Relation, pair: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discriminator, "SCHEDULE", SHORT)
    monkeypatch.setattr(trained_extractor, "SCHEDULE", SHORT)
    monkeypatch.setattr(gan_learner, "_PRACTICE", 2)
    method, schema = METHODS[name]
    monkeypatch.setattr(mepf, "_DRAWN", 20)
    if hasattr(method, "pair") and schema.images and name not in WITHOUT_PAIR:
        method = replace(method, pair=pair)
    rows = rows_of(schema, 20)
    budget = Budget(epsilon=4, relation=relation)
    assert_replays(method, [rows], [neighbour(rows, relation)], schema, budget)


@pytest.mark.parametrize("method", [Gan(**GAN), LocallyLinear(target="sick")])
def test_what_no_training_can_go_on_with_costs_nothing(method: Method) -> None:
    """The counts of a GAN, and those of a noisy gate, come before its training."""
    ledger = Ledger(":memory:")
    several = Budget(epsilon=1, max_rows_per_unit=2)
    with pytest.raises(SfumatoError, match="protects single rows"):
        method.fit(
            pa.table(people(50)), SCHEMA, several, Run(ledger=ledger, gate=Gate(0.5, share=0.1))
        )
    assert not ledger.entries()


def test_a_noisy_gate_and_a_training_together_spend_the_budget() -> None:
    ledger = Ledger(":memory:")
    ledger.limit("people", Budget(epsilon=2))
    method = LocallyLinear(target="sick", rate=0.5, epochs=2)
    gate = Gate(0.5, share=0.1)
    model = method.fit(
        people(500), SCHEMA, Budget(epsilon=2), Run(ledger=ledger, dataset="people", gate=gate)
    )
    assert 0.99 * 2 < model.guarantee.epsilon <= 2
