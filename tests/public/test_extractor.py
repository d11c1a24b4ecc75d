"""Feature maps: taken after each wide convolution, exact and differentiable ones alike."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from sfumato.errors import SfumatoError  # noqa: E402
from sfumato.public.extractor import Extractor  # noqa: E402
from sfumato.public.provenance import Provenance, digest_of_module  # noqa: E402

ABOUT = Provenance(name="tiny", source="made by a test", digest="0" * 64, licence="none")
IMAGES = np.random.default_rng(0).integers(0, 256, (70, 12, 10, 3), dtype=np.uint8)
MOMENTS = ((0.5, 0.4, 0.3), (0.2, 0.2, 0.3))


def unit(before: int, after: int, size: int, groups: int = 1) -> list[nn.Module]:
    norm = nn.BatchNorm2d(after)
    norm.running_mean.normal_(0, 0.3)
    norm.running_var.uniform_(0.2, 2)
    return [nn.Conv2d(before, after, size, padding=size // 2, groups=groups, bias=False), norm]


class Residual(nn.Module):
    """A block as in ResNet, which adds in place to the output of its last normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*unit(3, 8, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.inner = nn.Sequential(*unit(8, 8, 3), nn.ReLU(inplace=True), *unit(8, 8, 3))
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(8, 5)

    def forward(self, images: Tensor) -> Tensor:
        images = self.stem(images)
        found = self.inner(images)
        found += images
        return self.head(self.relu(found).softmax(1).mean((2, 3)))  # no exact step: beyond the taps


class Inverted(nn.Module):
    """An inverted residual, as in MobileNet v2 and EfficientNet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), *unit(3, 8, 3), nn.ReLU6())
        self.inner = nn.Sequential(
            *unit(8, 24, 1), nn.ReLU6(), *unit(24, 24, 5, 24), nn.ReLU6(), *unit(24, 8, 1)
        )
        self.after = nn.Conv2d(8, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        images = self.stem(images)
        return torch.relu(self.after(images + self.inner(images)))


def plain() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Conv2d(8, 16, 1), nn.ReLU(), nn.Conv2d(16, 6, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d((7, 7)), nn.Flatten(), nn.Linear(6 * 49, 5),
    )  # fmt: skip


SIZES = {
    plain: [(8, 12, 10), (8, 12, 10), (6, 4, 3)],
    Residual: [(8, 12, 10), (8, 6, 5), (8, 6, 5)],
    Inverted: [(8, 13, 11), (24, 13, 11), (4, 11, 9)],
}


@pytest.fixture(params=SIZES)
def kind(request: pytest.FixtureRequest) -> type[nn.Module]:
    torch.manual_seed(0)
    return request.param  # type: ignore[no-any-return]


def tensor(images: np.ndarray) -> Tensor:
    return torch.from_numpy(images.copy()).permute(0, 3, 1, 2) / 255


def test_taps_stand_after_each_wide_convolution(kind: type[nn.Module]) -> None:
    extractor = Extractor(kind(), ABOUT, *MOMENTS)
    assert extractor.sizes(12, 10, 3) == SIZES[kind]
    assert [found.shape[1:] for found in extractor.maps(tensor(IMAGES))] == SIZES[kind]
    assert extractor.nonnegative == (kind is not Residual)
    assert extractor.about is ABOUT


def test_a_tap_that_nothing_follows_is_the_convolution_itself() -> None:
    layer = nn.Conv2d(3, 4, 3)
    (found,) = Extractor(nn.Sequential(layer, nn.Flatten()), ABOUT).maps(tensor(IMAGES))
    assert torch.allclose(found, layer(tensor(IMAGES)), atol=1e-6)


def test_a_tap_is_not_overwritten_by_what_follows() -> None:
    torch.manual_seed(0)
    network = Residual().eval()
    images = tensor(IMAGES)
    expected = network.inner(network.stem(images))
    assert torch.allclose(Extractor(network, ABOUT).maps(images)[2], expected, atol=1e-5)


def test_exact_maps_agree_with_the_network(kind: type[nn.Module]) -> None:
    extractor = Extractor(kind(), ABOUT, *MOMENTS)
    for exact, near in zip(extractor.exact(IMAGES), extractor.maps(tensor(IMAGES)), strict=True):
        assert exact.dtype == np.float64
        assert np.abs(exact - near.numpy()).max() < 1e-3 * float(near.std())


def test_exact_maps_are_the_same_bits_in_any_batch(kind: type[nn.Module]) -> None:
    extractor = Extractor(kind(), ABOUT, *MOMENTS)
    together = extractor.exact(IMAGES)
    alone = [extractor.exact(image[None]) for image in IMAGES[60:]]
    backwards = extractor.exact(IMAGES[::-1])
    for index, maps in enumerate(together):
        assert maps[60:].tobytes() == b"".join(found[index].tobytes() for found in alone)
        assert maps[::-1].tobytes() == backwards[index].tobytes()


def test_no_images_have_no_maps(kind: type[nn.Module]) -> None:
    found = Extractor(kind(), ABOUT).exact(IMAGES[:0])
    assert [maps.shape for maps in found] == [(0, *size) for size in SIZES[kind]]


def test_a_gradient_reaches_the_images_and_no_weight(kind: type[nn.Module]) -> None:
    network = kind()
    images = torch.rand(4, 3, 12, 10, requires_grad=True)
    sum(found.square().sum() for found in Extractor(network, ABOUT).maps(images)).backward()
    assert float(images.grad.abs().sum()) > 0
    assert all(weight.grad is None and weight.requires_grad for weight in network.parameters())


def test_grey_images_are_repeated() -> None:
    extractor = Extractor(plain(), ABOUT, *MOMENTS)
    grey, colour = IMAGES[..., :1], IMAGES[..., :1].repeat(3, axis=3)
    for first, second in zip(extractor.exact(grey), extractor.exact(colour), strict=True):
        assert np.array_equal(first, second)
    for first, second in zip(
        extractor.maps(tensor(grey)), extractor.maps(tensor(colour)), strict=True
    ):
        assert torch.allclose(first, second)
    assert extractor.sizes(12, 10, 1) == extractor.sizes(12, 10, 3)


def test_a_grey_network_takes_grey_images_only() -> None:
    extractor = Extractor(nn.Sequential(nn.Conv2d(1, 4, 3)), ABOUT)
    assert extractor.exact(IMAGES[..., :1])[0].shape == (70, 4, 10, 8)
    with pytest.raises(SfumatoError, match=r"^tiny takes images of 1 channel, not of 3$"):
        extractor.exact(IMAGES)


def test_what_does_not_fit_is_refused() -> None:
    extractor = Extractor(plain(), ABOUT)
    with pytest.raises(
        SfumatoError, match=r"^tiny takes images of 1 channel or of 3 channels, not"
    ):
        extractor.maps(torch.zeros(2, 4, 12, 10))
    with pytest.raises(SfumatoError, match=r"^images of 4x4 are too small for tiny: enlarge them"):
        extractor.exact(IMAGES[:, :4, :4])
    with pytest.raises(SfumatoError, match=r"^tiny has no convolution larger than 1x1"):
        Extractor(nn.Sequential(nn.Conv2d(3, 4, 1)), ABOUT)
    with pytest.raises(TypeError, match=r"^SiLU has no evaluation in whole numbers"):
        Extractor(nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), nn.Conv2d(4, 4, 3)), ABOUT)


def test_a_digest_tells_two_networks_apart() -> None:
    torch.manual_seed(0)
    first, second = plain(), plain()
    assert digest_of_module(first) != digest_of_module(second)
    second.load_state_dict(first.state_dict())
    assert digest_of_module(first) == digest_of_module(second)


class _Mixing(nn.Module):
    """Networks that would let images see each other, by `way`."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.first, self.second = nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
        self.pool, self.line = nn.AdaptiveAvgPool2d(1), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.way == "cat":
            return torch.relu(self.first(torch.cat([x, x])))
        x = torch.relu(self.first(x))
        if self.way == "flatten":
            return torch.relu(self.second(x + self.line(torch.flatten(self.pool(x)))))
        seen = self.pool(x)  # (n, 3, 1, 1), to which (n, 3) is added: (n, 3, n, 3)
        return torch.relu(self.second(x + self.pool(seen + self.line(torch.flatten(seen, 1)))))


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("cat", "would make several images of one"),
        ("add", "add of tensors of different ranks would mix images"),
        ("flatten", "flatten from axis 0 on would mix images|too small"),
    ],
)
def test_a_network_that_mixes_images_is_refused_before_it_sees_any(way: str, words: str) -> None:
    torch.manual_seed(0)
    found = Extractor(_Mixing(way), ABOUT)
    with pytest.raises(SfumatoError, match=words):
        found.sizes(8, 8, 1)


def test_hooks_and_weights_that_are_no_numbers_are_refused() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2))
    network[2].register_forward_hook(lambda layer, given, found: found - found.mean(0))
    with pytest.raises(TypeError, match="MaxPool2d has a hook"):
        Extractor(network, ABOUT)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
    with torch.no_grad():
        network[0].weight[0, 0, 0, 0] = torch.nan
    with pytest.raises(TypeError, match="not finite"):
        Extractor(network, ABOUT)


def test_a_layer_that_is_used_twice_is_the_same_in_both_evaluations() -> None:
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(1, 1, 3, padding=1), nn.BatchNorm2d(1)
    norm.running_mean.fill_(0.2)  # type: ignore[union-attr]
    norm.running_var.fill_(0.1)  # type: ignore[union-attr]
    found = Extractor(nn.Sequential(conv, norm, nn.ReLU(), conv, norm, nn.ReLU()), ABOUT)
    drawn = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 1)).astype(np.uint8)
    plain = found.maps(torch.from_numpy(drawn).permute(0, 3, 1, 2) / 255)
    for exact, each in zip(found.exact(drawn), plain, strict=True):
        assert np.abs(exact - each.numpy()).max() < 1e-3


def test_the_identity_tells_apart_what_the_weights_do_not() -> None:
    def made(dilation: int = 1, rectifier: nn.Module | None = None, mean: float = 0.0) -> str:
        torch.manual_seed(0)
        conv = nn.Conv2d(1, 2, 3, padding=2, dilation=dilation)
        return Extractor(nn.Sequential(conv, rectifier or nn.ReLU()), ABOUT, (mean,)).identity

    found = [made(), made(dilation=2), made(rectifier=nn.ReLU6()), made(mean=0.5)]
    assert len(set(found)) == 4
    assert found[0] == made()
