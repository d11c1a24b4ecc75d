"""Feature vectors of a public encoder: what is released of them, and what is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.errors import SfumatoError
from sfumato.modelling.ratio import class_weights, effective_size
from sfumato.papers.mge.means import denoised_means
from sfumato.privacy.budget import Budget, Relation
from sfumato.registry import method_class
from sfumato.schema import Images, Numeric, Schema

pytest.importorskip("torch")

from command_line import run
from methods.forms import curator_of
from sfumato.loading import load
from sfumato.methods.dre.method import Dre
from sfumato.papers.mge.method import FirstTwoMoments, Mge
from sfumato.public.pair import Pair, load_pair

SHAPES = Schema(images=Images(height=12, width=12, channels=3, classes=("red", "blue")))


def pictures(rows: int, seed: int, colours: tuple[int, ...] = (0, 1, 2)) -> np.ndarray:
    """Pictures of one of several colours each, bright and dark, with a bar somewhere."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 60, (rows, 12, 12, 3))
    colour = rng.choice(colours, rows)
    for index, place in enumerate(rng.integers(0, 9, rows)):
        found[index, :, :, colour[index]] += 100
        found[index, place : place + 3] += 80
    return found.clip(0, 255).astype(np.uint8)


def private(rows: int) -> tuple[np.ndarray, list[str]]:
    half = rows // 2
    x = np.concatenate([pictures(half, 1, (0,)), pictures(rows - half, 2, (2,))])
    return x, ["red"] * half + ["blue"] * (rows - half)


@pytest.fixture(scope="module")
def pair_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pair") / "bars.pair"
    Pair.train(
        pictures(400, 0), name="bars", source="made by a test", licence="none", dim=6,
        network="untrained",
    ).save(path)  # fmt: skip
    return str(path)


def encoded(data: tuple[np.ndarray, list[str]]) -> Batch:
    return ImageCodec(SHAPES.images).encode(data)  # type: ignore[arg-type]


def test_a_pair_comes_back_from_its_file(pair_file: str) -> None:
    pair = load_pair(pair_file)
    public = pictures(400, 0)
    vectors = pair.encoder.of_images(public)
    assert np.array_equal(pair.features, vectors.astype(np.float32))
    assert np.array_equal(pair.decode(pair.features[:20], 0), public[:20])
    named = [each.name for each in pair.inputs]
    assert named == ["bars", "untrained"]
    assert len(pair.about.digest) == 64


def test_a_vector_depends_on_its_image_alone_and_is_no_longer_than_one(pair_file: str) -> None:
    encoder = load_pair(pair_file).encoder
    x = np.concatenate([pictures(70, 5), np.full((1, 12, 12, 3), 255, np.uint8)])
    together = encoder.of_images(x)
    order = np.random.default_rng(0).permutation(len(x))
    assert np.array_equal(encoder.of_images(x[order]), together[order])
    for index in (0, 33, 70):
        assert np.array_equal(encoder.of_images(x[index : index + 1])[0], together[index])
    assert np.linalg.norm(together, axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize("method", [Mge(), Mge(groups=3), Dre()])
@pytest.mark.parametrize("relation", list(Relation))
def test_one_image_moves_the_sum_no_further_than_is_paid_for(
    method: Mge | Dre, relation: Relation, pair_file: str
) -> None:
    """Whatever the image: also one that the network sees nothing of, or is all white."""
    made = replace(method, pair=pair_file)
    space = made.space(SHAPES)
    statistic = made.summed(space, made.public_pair(space))
    odd = np.stack([np.zeros((12, 12, 3)), np.full((12, 12, 3), 255)]).astype(np.uint8)
    x = np.concatenate([pictures(20, 3), odd])
    rows = encoded((x, ["red", "blue"] * 11))
    each = [statistic.sum(rows.where(slice(i, i + 1))) for i in range(len(rows))]
    bound = statistic.sensitivity(relation)
    if relation is Relation.ADD_REMOVE:
        assert max(np.linalg.norm(one) for one in each) <= bound
    else:
        assert max(np.linalg.norm(a - b) for a in each for b in each) <= bound


def test_squares_are_shortened_to_the_norm_that_is_paid_for() -> None:
    class Spikes:
        dim, norm, nonnegative = 64, 1.0, False

        def __call__(self, batch: Batch) -> np.ndarray:
            return np.eye(64)[: len(batch)]

        def describe(self) -> dict[str, str]:
            return {}

    moments = FirstTwoMoments(Spikes())
    batch = Batch(np.zeros((5, 1), np.int32), np.zeros((5, 1), np.uint8))
    assert np.linalg.norm(moments(batch), axis=1) == pytest.approx(1.0)


@pytest.mark.usefixtures("no_noise")
def test_a_gaussian_has_the_mean_and_the_variance_of_the_class(pair_file: str) -> None:
    rows = encoded(private(300))
    method = Mge(pair=pair_file)
    model = method.learn(curator_of(rows, SHAPES, Budget(epsilon=1e4)))
    vectors = load_pair(pair_file).encoder(rows)
    for label in (0, 1):
        own = vectors[rows.codes[:, 0] == label]
        assert np.abs(model.learned["means"][label] - own.mean(axis=0)).max() < 0.02
        assert model.learned["variances"][label] == pytest.approx(
            own.var(axis=0), rel=0.3, abs=0.02
        )


@pytest.mark.parametrize("settings", [{}, {"ratio": "discriminator"}])
def test_classes_are_drawn_from_the_public_images_that_show_them(
    settings: dict[str, str], pair_file: str, tmp_path: Path
) -> None:
    method = Dre(pair=pair_file, **settings)  # type: ignore[arg-type]
    rows, budget = encoded(private(1000)), Budget(epsilon=5, delta=1e-5)
    model = method.learn(curator_of(rows, SHAPES, budget))
    planned = method.plan(SHAPES, budget).guarantee
    assert model.guarantee.epsilon == pytest.approx(planned.epsilon, rel=1e-3)
    assert model.guarantee.epsilon <= 5
    model.save(tmp_path / "model.sfumato")
    again = load(tmp_path / "model.sfumato")
    for name, strong, weak in (("red", 0, 2), ("blue", 2, 0)):
        made = again.sample(200, given={"class": name}).x.astype(float)  # type: ignore[attr-defined]
        assert made[..., strong].mean() - made[..., weak].mean() > 40


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("groups", [1, 4])
def test_a_mixture_has_the_mean_and_the_shape_of_the_class(groups: int, pair_file: str) -> None:
    rows = encoded(private(300))
    method = Mge(pair=pair_file, groups=groups)
    model = method.learn(curator_of(rows, SHAPES, Budget(epsilon=1e4)))
    vectors = load_pair(pair_file).encoder(rows)
    pair = method.public_pair()
    labels = np.repeat([0, 1], 4000)
    drawn = method.drawn(pair, model.learned, labels, np.random.default_rng(0))
    for label in (0, 1):
        own = vectors[rows.codes[:, 0] == label]
        assert np.abs(drawn[labels == label].mean(axis=0) - own.mean(axis=0)).max() < 0.06
    apart = (
        vectors
        - np.stack([vectors[rows.codes[:, 0] == k].mean(0) for k in (0, 1)])[rows.codes[:, 0]]
    )
    around = drawn - np.stack([drawn[labels == k].mean(0) for k in (0, 1)])[labels]
    near = np.corrcoef(np.cov(apart.T).ravel(), np.cov(around.T).ravel())[0, 1]
    assert near > 0.8
    assert np.cov(around.T).trace() == pytest.approx(np.cov(apart.T).trace(), rel=0.35)
    planned = method.plan(SHAPES, Budget(epsilon=1, delta=1e-5)).guarantee.epsilon
    assert 0.9 < planned <= 1
    (noise, _) = method.expect(SHAPES, Budget(epsilon=1, delta=1e-5), 100_000)
    assert 0 < noise.part < 0.1


def kinds_of_pictures(rows: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Public vectors of 20 kinds, which differ in three of ten directions."""
    rng = np.random.default_rng(0)
    centres = np.zeros((20, 10))
    centres[:, :3] = rng.normal(size=(20, 3))
    kind = rng.integers(20, size=rows)
    return (centres[kind] + 0.3 * rng.normal(size=(rows, 10))) / 4, kind


def test_weights_gather_on_the_private_kind() -> None:
    public, kind = kinds_of_pictures()
    means = np.stack([public[kind == k].mean(axis=0) for k in range(20)])
    own = int(np.square(means).sum(axis=1).argmax())
    other = (own + 1) % 20
    logs, _ = class_weights(public, means[[own, other]], np.array([1e4, 1e4]), 3.0)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    assert shares[kind == own].sum() > 0.2  # one in twenty without weights


def test_weights_of_all_noise_are_alike() -> None:
    public, kind = kinds_of_pictures()
    sizes = []
    for sigma in (0.0, 100.0, 3000.0):
        mean = public[kind == 7].mean(axis=0)
        (logs,) = class_weights(public, mean[None], np.array([1e3]), sigma)
        sizes.append(effective_size(logs))
    assert sizes[0] < sizes[1] < sizes[2] == pytest.approx(3000)


def test_means_are_sought_where_public_kinds_differ() -> None:
    """Noise in the directions in which no kinds differ is not believed."""
    public, kind = kinds_of_pictures()
    truth = np.stack([public[kind == k].mean(axis=0) for k in range(8)])
    counts = np.full(8, 500.0)
    sigma = 60.0
    noisy = truth + sigma / 500 * np.random.default_rng(2).normal(size=truth.shape)
    found, _ = denoised_means(public, noisy, counts, sigma)
    assert np.abs(found - truth)[:, 3:].max() < 0.5 * np.abs(noisy - truth)[:, 3:].max()
    assert np.square(found - truth).sum() < 0.6 * np.square(noisy - truth).sum()


def test_weights_leave_enough_images() -> None:
    """Even where the private mean lies far from all public vectors."""
    public, _ = kinds_of_pictures()
    means = np.array([[0.9] + [0.0] * 9, [0.0, 0.3] + [0.0] * 8])
    logs = class_weights(public, means, np.array([500.0, 500.0]))
    assert min(effective_size(each) for each in logs) >= 59.9


def test_sharper_weights_rest_on_fewer_and_surer_images() -> None:
    public, kind = kinds_of_pictures()
    means = np.stack([public[kind == k].mean(axis=0) for k in range(20)])
    own = int(np.square(means).sum(axis=1).argmax())
    found = []
    for sharpness in (1.0, 2.0):
        (logs,) = class_weights(public, means[[own]], np.array([1e4]), 3.0, sharpness)
        assert effective_size(logs) > 29.9
        shares = np.exp(logs - logs.max())
        found.append((shares[kind == own].sum() / shares.sum(), effective_size(logs)))
    assert found[0][0] < found[1][0]
    assert found[0][1] > found[1][1]


def test_public_images_that_are_alike_in_a_direction_are_weighed_by_the_others() -> None:
    public = np.zeros((200, 3))
    public[:, 0] = np.linspace(-1, 1, 200)
    means = np.array([[0.5, 0.2, 0.0], [-0.5, -0.2, 0.0]])
    logs = class_weights(public, means, np.array([100.0, 100.0]))
    assert np.all(np.isfinite(logs))
    assert logs[0, -1] > logs[0, 0]
    assert logs[1, 0] > logs[1, -1]


def test_few_public_images_are_told_of(pair_file: str) -> None:
    from sfumato.methods.dre.method import _warn_of_few

    with pytest.warns(UserWarning, match="1 of 2 classes rest on few of the 400 public"):
        _warn_of_few(np.array([np.zeros(400), np.r_[50.0, np.zeros(399)]]))


@pytest.mark.parametrize("name", ["mge", "dre"])
def test_what_does_not_fit_is_refused_before_anything_is_spent(name: str, pair_file: str) -> None:
    method = method_class(name)
    budget = Budget(epsilon=1)
    with pytest.raises(SfumatoError, match="'sfumato public train', and name the file"):
        method().plan(SHAPES, budget)
    with pytest.raises(SfumatoError, match=r"there is no file gone\.pair: make it"):
        method(pair="gone.pair").plan(SHAPES, budget)  # type: ignore[call-arg]
    with pytest.raises(SfumatoError, match="is not a pair"):
        method(pair=__file__).plan(SHAPES, budget)  # type: ignore[call-arg]
    other = Schema(images=Images(height=8, width=8, channels=3))
    with pytest.raises(SfumatoError, match="is for images of 12 x 12 x 3, not of 8 x 8 x 3"):
        method(pair=pair_file).plan(other, budget)  # type: ignore[call-arg]
    with pytest.raises(SfumatoError, match="is for image sets"):
        method(pair=pair_file).plan(Schema(columns={"a": Numeric(low=0, high=1)}), budget)  # type: ignore[call-arg]


def test_from_public_images_to_synthetic_ones_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("public.npz", x=pictures(200, 0))
    x, y = private(100)
    np.savez("private.npz", x=x, y=np.array(y))
    Path("shapes.toml").write_text(SHAPES.to_toml())
    train = ("public", "train", "public.npz", "-s", "shapes.toml", "-o", "bars.pair", "--dim", "6",
             "--network", "untrained", "--source", "made by a test",
             "--licence", "none")  # fmt: skip
    assert run(capsys, *train) == (0, "bars.pair\n", told_of("reading", "encoding"))
    code, _, told = run(capsys, *train)
    assert (code, "bars.pair" in told and "--force" in told) == (2, True)
    synth = ("synth", "private.npz", "-s", "shapes.toml", "-e", "3", "-m", "dre",
             "--set", "pair=bars.pair", "-o", "made.npz", "-n", "20", "--report", "made.html",
             "--ledger", "ledger.sqlite", "-q")  # fmt: skip
    assert run(capsys, *synth)[0] == 0
    assert np.load("made.npz")["x"].shape == (20, 12, 12, 3)
    assert "made by a test" in Path("made.html").read_text()


def told_of(*stages: str) -> str:
    return "".join(f"{stage} public images\n" for stage in stages)
