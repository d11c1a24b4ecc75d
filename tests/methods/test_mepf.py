"""DP-MEPF: what is released, from which network, and what is learned from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.data.image_codec import ImageCodec
from sfumato.errors import SfumatoError
from sfumato.papers.embedding.mepf import Mepf
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.ledger import Ledger
from sfumato.schema import Images, Numeric, Schema

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402
from torch import nn  # noqa: E402

from methods.forms import curator_of  # noqa: E402
from sfumato.loading import load  # noqa: E402
from sfumato.papers.embedding import picture_bank  # noqa: E402
from sfumato.papers.embedding.picture_bank import Moving, PictureBank, refine  # noqa: E402
from sfumato.papers.embedding.training import Target  # noqa: E402
from sfumato.privacy.run import Run  # noqa: E402
from sfumato.public.catalogue import load_network, register_network  # noqa: E402
from sfumato.public.extractor import Extractor  # noqa: E402
from sfumato.public.pair import Pair  # noqa: E402
from sfumato.public.perceptual import PerceptualMap  # noqa: E402
from sfumato.public.provenance import Provenance, digest_of_module  # noqa: E402

COLOUR = Schema(images=Images(height=8, width=8, channels=3, classes=("red", "blue")))


def coloured(rows: int) -> tuple[np.ndarray, list[str]]:
    """Red and blue pictures, bright above and dark below."""
    rng = np.random.default_rng(0)
    red = rng.random(rows) < 0.5
    pixels = rng.integers(0, 40, (rows, 8, 8, 3))
    pixels[:, :4] += 60
    pixels[red, :, :, 0] += 120
    pixels[~red, :, :, 2] += 120
    return pixels.astype(np.uint8), np.where(red, "red", "blue").tolist()


def own() -> Extractor:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip
    about = Provenance(
        name="ours", source="made by a test", digest=digest_of_module(network), licence="none"
    )
    return Extractor(network, about, (0.5,), (0.25,))


@pytest.mark.parametrize("settings", [{"steps": 150, "pixels": 0.0}, {"steps": 5}])
def test_colours_and_shading_of_each_class_are_learned(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    """By a generator that starts from nothing, and by draws from the pixels' moments."""
    if "ours" not in known():
        register_network("ours", own())
    method = Mepf(network="ours", **settings)
    rows = ImageCodec(COLOUR.images).encode(coloured(3000))  # type: ignore[arg-type]
    model = method.learn(curator_of(rows, COLOUR, Budget(epsilon=3)))
    assert 0.98 * 3 < model.guarantee.epsilon <= 3
    model.save(tmp_path / "model.sfumato")
    again = load(tmp_path / "model.sfumato")
    assert again.public == model.public == (own().about,)
    for name, strong, weak in (("red", 0, 2), ("blue", 2, 0)):
        made = again.sample(200, given={"class": name}).x.astype(float)  # type: ignore[attr-defined]
        assert made[..., strong].mean() - made[..., weak].mean() > 60
        assert made[:, :4].mean() - made[:, 4:].mean() > 25


def test_the_plan_names_the_moments_of_pixels() -> None:
    plan = Mepf(network="untrained").plan(COLOUR, Budget(epsilon=1))
    assert [spend.name for spend in plan.spends] == [
        "class counts", "centre", "perceptual embedding",
        "extent", "basis", "classes", "groups", "radius", "cells",
    ]  # fmt: skip
    assert 0.98 < plan.guarantee.epsilon <= 1


def known() -> str:
    with pytest.raises(SfumatoError) as found:
        load_network("nothing")
    return str(found.value)


def test_the_plan_names_the_network_and_both_releases() -> None:
    method = Mepf(network="untrained", stopping=True, squares=0.5)
    plan = method.plan(COLOUR, Budget(epsilon=1, relation=Relation.REPLACE_ONE))
    assert [spend.name for spend in plan.spends] == [
        "class counts", "centre", "perceptual embedding", "last layer",
    ]  # fmt: skip
    (about,) = plan.public
    assert about.name == "untrained"
    assert about.digest in str(load_network("untrained").about)
    _, _, embedding, last = plan.spends
    assert last.sigma / last.sensitivity == pytest.approx(
        10 * embedding.sigma / embedding.sensitivity
    )
    assert last.dim < embedding.dim / 20


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("centred", [False, True])
def test_the_release_is_the_sum_of_embeddings(centred: bool) -> None:
    method = Mepf(network="untrained", grid=2, steps=1, centred=centred, pixels=0)
    rows = ImageCodec(COLOUR.images).encode(coloured(20))  # type: ignore[arg-type]
    model = method.learn(curator_of(rows, COLOUR, Budget(epsilon=1e4)))
    space = method.point_space(COLOUR)
    mapped = method._map(space, method._extractor(space))
    if centred:
        centre = model.releases[1].values / 2**22 / 20
        assert np.abs(centre - mapped(rows).mean(axis=0)).max() < 2**-22
        mapped = mapped.around(centre)
    released = model.releases[-1].values.reshape(2, -1) / 2**22
    for label in (0, 1):
        expected = mapped(rows.where(rows.codes[:, 0] == label)).sum(axis=0)
        assert np.abs(released[label] - expected).max() < 20 * 2**-22


@pytest.mark.parametrize(
    "settings",
    [{"grid": 0}, {"layers": 0}, {"pixels": 1.0}, {"squares": 1.0}, {"steps": 0},
     {"stopping": True, "pair": "some.pair"}, {"stopping": True, "pixels": 0.5},
     {"pixels": 0.5, "pair": "some.pair"}],
)  # fmt: skip
def test_settings_without_sense_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(SfumatoError, match=next(iter(settings))):
        Mepf(**settings)  # type: ignore[arg-type]


def test_a_network_that_is_not_there_costs_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(SfumatoError, match="no weights of vgg19 here: put"):
        Mepf(network="vgg19").fit(
            coloured(20), COLOUR, Budget(epsilon=1), Run(ledger=ledger, dataset="colours")
        )
    assert ledger.entries() == []


def test_tables_and_unknown_networks_are_refused() -> None:
    with pytest.raises(SfumatoError, match="mepf is for image sets"):
        Mepf().plan(Schema(columns={"x": Numeric(low=0, high=1)}), Budget(epsilon=1))
    with pytest.raises(SfumatoError, match="no network is called 'oracle'"):
        Mepf(network="oracle").plan(COLOUR, Budget(epsilon=1))
    with pytest.raises(SfumatoError, match="cannot be registered as 'vgg19'"):
        register_network("vgg19", own())


def test_an_extractor_may_be_trained_for_a_part_of_the_budget() -> None:
    """What is planned is what is spent, training and releases together."""
    method = Mepf(network="trained", steps=2, stopping=True)
    budget = Budget(epsilon=3)
    rows = ImageCodec(COLOUR.images).encode(coloured(200))  # type: ignore[arg-type]
    model = method.learn(curator_of(rows, COLOUR, budget))
    planned = method.plan(COLOUR, budget).guarantee
    (training,), (of_plan,) = model.guarantee.trainings, planned.trainings
    assert (training.name, training.dim, training.steps) == ("extractor", of_plan.dim, 500)
    assert training.noise_multiplier == pytest.approx(of_plan.noise_multiplier)
    assert model.guarantee.spends == planned.spends
    assert 0.98 * 3 < model.guarantee.epsilon <= 3
    assert model.public == ()


def test_an_extractor_is_trained_to_tell_classes_apart() -> None:
    schema = Schema(images=Images(height=8, width=8, channels=3))
    with pytest.raises(SfumatoError, match="there are none"):
        Mepf(network="trained").plan(schema, Budget(epsilon=1))


def gallery(folder: Path) -> str:
    """A pair of public pictures of all colours, bright above or below."""
    if "ours" not in known():
        register_network("ours", own())
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 40, (300, 8, 8, 3)) + rng.integers(0, 160, (300, 1, 1, 3))
    pixels[::2, :4] += 50
    pixels[1::2, 4:] += 50
    pair = Pair.train(
        pixels.astype(np.uint8), name="colours", source="made by a test", licence="none",
        network="ours", dim=8,
    )  # fmt: skip
    path = folder / "colours.pair"
    pair.save(path)
    return str(path)


def test_public_pictures_are_chosen_for_each_class(tmp_path: Path) -> None:
    rows = ImageCodec(COLOUR.images).encode(coloured(3000))  # type: ignore[arg-type]
    method = Mepf(network="ours", pair=gallery(tmp_path), steps=1)
    model = method.learn(curator_of(rows, COLOUR, Budget(epsilon=3)))
    model.save(tmp_path / "model.sfumato")
    again = load(tmp_path / "model.sfumato")
    assert [about.name for about in again.public] == ["ours", "colours"]
    redness = []
    for name in ("red", "blue"):
        made = again.sample(200, given={"class": name}).x.astype(float)  # type: ignore[attr-defined]
        redness.append(made[..., 0].mean() - made[..., 2].mean())
    assert redness[0] - redness[1] > 30  # of all public pictures together, it would be 0


def moved(start: torch.Tensor, target: Target, checkpoint: Path | None = None) -> torch.Tensor:
    bank = PictureBank(2, 20, (8, 8, 3))
    bank.pictures.data = start.clone()
    embed = PerceptualMap(own(), (8, 8, 3), grid=2).class_means
    refine(bank, embed, target, Moving(100, rate=0.02), seed=0, checkpoint=checkpoint)
    return bank.pictures.data


def start_and_target() -> tuple[torch.Tensor, Target]:
    start = torch.from_numpy(np.random.default_rng(0).random((2, 20, 192), np.float32))
    wanted = torch.stack([start[0] * 0.5, 1 - start[0] * 0.5])
    means = PerceptualMap(own(), (8, 8, 3), grid=2).class_means(wanted).detach().numpy()
    return start, Target(means=means, noise=np.zeros(2))


def test_pictures_are_moved_until_their_means_meet_the_target() -> None:
    start, target = start_and_target()
    before, after = (
        PerceptualMap(own(), (8, 8, 3), grid=2).class_means(each).detach().numpy() - target.means
        for each in (start, moved(start, target))
    )
    assert np.square(after).sum() < 0.1 * np.square(before).sum()


def test_pictures_rest_where_the_noise_is_larger_than_their_distance() -> None:
    start, target = start_and_target()
    noisy = Target(means=target.means, noise=np.array([100.0, 0.0]))
    found = moved(start, noisy)
    assert torch.equal(found[0], start[0])
    assert not torch.equal(found[1], start[1])


def test_moving_goes_on_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_bank, "_PAUSE", 0.0)
    start, target = start_and_target()
    path = tmp_path / "state.safetensors"

    def interrupted(where: Path, data: bytes) -> None:
        where.write_bytes(data)
        if int(load_file(where)["done"]) == 37:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(picture_bank, "write_whole", interrupted)
        with pytest.raises(KeyboardInterrupt):
            moved(start, target, path)
    assert torch.equal(moved(start + 1, target, path), moved(start, target))


def test_a_pair_of_another_shape_costs_nothing(tmp_path: Path) -> None:
    wide = Schema(images=Images(height=8, width=9, channels=3, classes=("red", "blue")))
    with pytest.raises(SfumatoError, match="is for images of 8 x 8 x 3, not of 8 x 9 x 3"):
        Mepf(network="ours", pair=gallery(tmp_path)).plan(wide, Budget(epsilon=1))
