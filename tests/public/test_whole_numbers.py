"""Values of a public network depend on one image alone, bit by bit, and cost no accuracy."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from sfumato.public.whole_numbers import (  # noqa: E402
    BITS,
    REACH,
    WholeNumberNetwork,
    _whole_weights,
)

IMAGES = torch.from_numpy(np.random.default_rng(0).normal(0, 1, (21, 8, 12, 10)))


class Branches(nn.Module):
    """Some function of a few convolutions."""

    def __init__(self, function: Callable[..., Tensor], count: int = 2) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in range(count))
        self.function = function

    def forward(self, images: Tensor) -> Tensor:
        return self.function(images, *[part(images) for part in self.parts])


def normalisation() -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(8)
    for name, low, high in (
        ("weight", -1.0, 2.0), ("bias", -1.0, 1.0), ("running_mean", -1.0, 1.0),
        ("running_var", 0.1, 3.0),
    ):  # fmt: skip
        getattr(norm, name).data.uniform_(low, high)
    return norm


KINDS: dict[str, Callable[[], nn.Module]] = {
    "convolution": lambda: nn.Conv2d(8, 16, 3, padding=1),
    "strides and dilation": lambda: nn.Conv2d(8, 9, (3, 5), (2, 1), (2, 3), (2, 1), bias=False),
    "groups": lambda: nn.Conv2d(8, 12, 3, groups=4),
    "same padding": lambda: nn.Conv2d(8, 5, 4, padding="same"),
    "depthwise": lambda: nn.Conv2d(8, 8, 5, stride=2, padding=2, groups=8),
    "pointwise": lambda: nn.Conv2d(8, 16, 1),
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(960, 5)),
    "normalisation": normalisation,
    "folded normalisation": lambda: nn.Sequential(nn.Conv2d(8, 8, 3, groups=2), normalisation()),
    "depthwise and normalisation": lambda: nn.Sequential(
        nn.Conv2d(8, 8, 3, groups=8, bias=False), normalisation(), nn.ReLU6(inplace=True)
    ),
    "pools": lambda: nn.Sequential(
        nn.MaxPool2d(3, 1, 1, ceil_mode=True),
        nn.AvgPool2d(3, 2, 1),
        nn.ZeroPad2d((0, 1, 2, 0)),
        nn.AvgPool2d(3, 1, 1, count_include_pad=False),
        nn.AdaptiveAvgPool2d((1, 1)),
    ),
    "residual": lambda: Branches(lambda images, a, b: functional.relu(a + images, True) + b),
    "overwriting": lambda: Branches(lambda images, a, b: a.relu_().add_(b)),
    "concatenation": lambda: Branches(
        lambda images, a, b: torch.flatten(functional.max_pool2d(torch.cat([a, b], 1), 2), 1)
    ),
    "nothing": lambda: nn.Sequential(nn.Dropout(0.5), nn.Identity(), nn.ReLU(inplace=True)),
}


@pytest.fixture(params=KINDS)
def network(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    return KINDS[request.param]().eval().requires_grad_(False)


def same(first: Tensor, second: Tensor) -> bool:
    return np.array_equal(first.numpy(), second.numpy())


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e-3])
def test_the_bits_are_the_same_in_any_batch_and_with_any_number_of_threads(
    network: nn.Module, scale: float
) -> None:
    for parameter in network.parameters():
        parameter *= scale
    found = WholeNumberNetwork(network)
    together = found(IMAGES)
    assert float(together.abs().max()) > 0
    assert same(together, torch.cat([found(image[None]) for image in IMAGES]))
    assert same(together.flip(0), found(IMAGES.flip(0)))
    assert same(together[3:17], found(IMAGES[3:17]))
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            assert same(together, found(IMAGES))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.filterwarnings("ignore:Using padding=.same.")
def test_whole_numbers_cost_no_accuracy(network: nn.Module) -> None:
    exact = WholeNumberNetwork(network)(IMAGES)
    plain = network.double()(IMAGES.clone())
    assert exact.shape == plain.shape
    assert float((exact - plain).abs().max()) < 1e-3 * float(plain.std())


def test_pieces_leave_no_trace(monkeypatch: pytest.MonkeyPatch, network: nn.Module) -> None:
    whole = WholeNumberNetwork(network)(IMAGES)
    monkeypatch.setattr("sfumato.public.whole_numbers._ROWS", 1)
    monkeypatch.setattr("sfumato.public.whole_numbers._NEAR", 1)
    assert same(whole, WholeNumberNetwork(network)(IMAGES))


def test_values_stay_on_the_grid_and_within_reach(network: nn.Module) -> None:
    values = WholeNumberNetwork(network)(1000 * IMAGES)
    assert float(values.abs().max()) <= 1024
    assert same(values * 2**14, (values * 2**14).round())


@pytest.mark.parametrize("scale", [1e-6, 0.02, 1.0, 40.0])
@pytest.mark.parametrize("size", [1, 9, 4608])
def test_no_sum_of_products_is_rounded(size: int, scale: float) -> None:
    """Not even when every value is as large, and every product as long, as it can be."""
    weights = np.random.default_rng(size).normal(0, scale, (1, size))
    whole = _whole_weights(weights)[0]
    values = whole.sign() * (REACH - 2.0**-BITS)
    sum_of_products = sum(map(Fraction, (whole.abs() * 2.0**BITS).tolist())) * (2**24 - 1)
    assert Fraction(float(whole @ values)) * 2**28 == sum_of_products
    assert Fraction(float(whole.flip(0) @ values.flip(0))) * 2**28 == sum_of_products
    assert np.abs(whole.numpy() - weights[0]).max() <= 2.0**-26 * np.abs(weights).sum()


@pytest.mark.parametrize(
    ("network", "what"),
    [
        (nn.Sequential(nn.Sigmoid()), "Sigmoid"),
        (nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False)), "BatchNorm2d by the stat"),
        (nn.Sequential(nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect")), "Conv2d with padd"),
        (nn.Sequential(nn.AdaptiveAvgPool2d(7)), "AdaptiveAvgPool2d to 7"),
        (nn.Sequential(nn.AvgPool2d(2, ceil_mode=True)), "AvgPool2d with ceil_mode"),
        (nn.Sequential(nn.ConstantPad2d(1, 0.5)), "ConstantPad2d with 0.5"),
        (Branches(lambda images: images + 0.1, 0), "the sum of a tensor and a number"),
        (Branches(lambda images, a, b: torch.add(a, b, alpha=3)), "add"),
        (Branches(lambda images: functional.silu(images), 0), "silu"),
        (Branches(lambda images: images.exp(), 0), "exp"),
    ],
)
def test_a_step_without_an_exact_evaluation_is_refused(network: nn.Module, what: str) -> None:
    with pytest.raises(TypeError, match=f"^{what}.* has no evaluation in whole numbers; .*Conv2d"):
        WholeNumberNetwork(network)


def test_a_network_that_looks_at_its_images_is_refused() -> None:
    looking = Branches(lambda images: images if images.sum() > 0 else -images, 0)
    with pytest.raises(TypeError, match=r"torch\.fx cannot trace Branches"):
        WholeNumberNetwork(looking)


def test_a_network_is_exact_in_other_processes_too() -> None:
    from joblib.externals.loky.backend.reduction import dumps  # what workers need is sent so

    network = WholeNumberNetwork(nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU()).double())
    sent = pickle.loads(dumps(network))
    assert torch.equal(sent(IMAGES), network(IMAGES))
    sent._steps.clear()  # had steps lost their places on the way, no other step may take over
    with pytest.raises((KeyError, RuntimeError)):
        sent(IMAGES)
