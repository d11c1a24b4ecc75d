"""Hermite features: recursion, kernel, norm, and the theory of Vinaroz et al. (2022)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.hermite import hermval

from sfumato.errors import SfumatoError
from sfumato.statistics.hermite import Hermite

RHOS = st.floats(0.01, 0.99)
ORDERS = st.integers(0, 200)


def _definition(x: float, c: int, rho: float) -> float:
    """Give sqrt(lambda_c) f_c(x) as the paper's Section 3.1 defines them."""
    eigenvalue = (1 - rho) * rho**c
    size = 2.0**c * math.factorial(c) * math.sqrt((1 - rho) / (1 + rho))
    polynomial = float(hermval(x, [0] * c + [1]))
    return math.sqrt(eigenvalue / size) * polynomial * math.exp(-rho / (1 + rho) * x * x)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9])
def test_the_recursion_meets_the_definition(rho: float) -> None:
    places = np.linspace(0, 1, 7)
    found = Hermite(12, rho, 2.0)(places)
    for place, features in zip(places, found, strict=True):
        expected = [_definition(2.0 * (2 * place - 1), c, rho) for c in range(13)]
        np.testing.assert_allclose(features, expected, atol=1e-12)


@pytest.mark.parametrize("length", [0.05, 0.2, 1.0])
def test_inner_products_are_the_gaussian_kernel(length: float) -> None:
    hermite = Hermite.of_length(length, 200)
    assert hermite.length == pytest.approx(length)
    places = np.linspace(0, 1, 11)
    features = hermite(places)
    kernel = np.exp(-np.square(places[:, None] - places) / (2 * length**2))
    np.testing.assert_allclose(features @ features.T, kernel, atol=1e-6)


@given(number=st.floats(-1e300, 1e300), rho=RHOS, order=ORDERS, reach=st.floats(0.1, 100))
def test_the_norm_is_at_most_one_wherever_a_number_lies(
    number: float, rho: float, order: int, reach: float
) -> None:
    features = Hermite(order, rho, reach)(np.array([number]))
    assert np.isfinite(features).all()
    assert np.square(features).sum() <= 1 + 1e-12


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_have_no_features(value: float) -> None:
    assert not Hermite(5, 0.5, 1.0)(np.array([value])).any()


@given(number=st.floats(-3, 4, width=32), rho=RHOS, order=ORDERS)
def test_single_precision_keeps_the_bound(number: float, rho: float, order: int) -> None:
    features = Hermite(order, rho, 2.0)(np.array([number], np.float32))
    assert features.dtype == np.float32
    assert np.square(features.astype(float)).sum() <= 1 + 1e-4


@given(x=st.floats(0, 1), y=st.floats(0, 1), rho=RHOS, order=st.integers(0, 60))
def test_no_order_brings_points_farther_apart_than_the_kernel(
    x: float, y: float, rho: float, order: int
) -> None:
    hermite = Hermite(order, rho, 3.0)
    first, second = hermite(np.array([x, y]))
    kernel = math.exp(-((x - y) ** 2) / (2 * hermite.length**2))
    assert np.square(first - second).sum() <= 2 - 2 * kernel + 1e-9


def _kernel_errors(x: np.ndarray, y: np.ndarray, orders: range) -> list[float]:
    """Give the mean error of the kernel with rho = 1/3, for each order."""
    rho = 1 / 3
    features = Hermite(max(orders), rho, 1.0)
    first, second = features((x + 1) / 2), features((y + 1) / 2)  # reach 1: back to x and y
    kernel = np.exp(-rho / (1 - rho**2) * np.square(x[:, None] - y))
    return [
        float(np.abs(kernel - first[:, : order + 1] @ second[:, : order + 1].T).mean())
        for order in orders
    ]


def test_the_error_falls_by_a_third_with_every_order() -> None:
    """Prop. B.1: at most (1/3)^C / (3 sqrt 2) for standard normal numbers and rho = 1/3."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 2000))
    for order, error in enumerate(_kernel_errors(x, y, range(12))):
        assert error <= 1.05 * (1 / 3) ** order / (3 * math.sqrt(2))


def _figure_one(seed: int) -> tuple[list[float], float]:
    """Give the errors of orders 0 to 5 and of 500 random features, at the median distance."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(100), 1 + rng.standard_normal(100)
    both = np.concatenate([x, y])
    length = float(np.median(np.abs(both[:, None] - both)[np.triu_indices(200, 1)]))
    hermite = Hermite(5, math.sqrt(length**4 + 1) - length**2, 1.0)
    assert hermite.length == pytest.approx(length / 2)  # the unit interval is 2 wide
    kernel = np.exp(-np.square(x[:, None] - y) / (2 * length**2))
    first, second = hermite((x + 0.5) / 2), hermite((y + 0.5) / 2)  # 1/2 is in the middle
    errors = [
        float(np.abs(kernel - first[:, : order + 1] @ second[:, : order + 1].T).mean())
        for order in range(6)
    ]
    waves = rng.standard_normal((5, 250)) / length
    draws = [np.cos(wave * (x[:, None, None] - y[:, None])).mean(axis=-1) for wave in waves]
    return errors, float(np.mean([np.abs(kernel - draw).mean() for draw in draws]))


def test_order_two_is_about_as_good_as_500_random_features() -> None:
    """Fig. 1: 100 numbers of N(0, 1) against 100 of N(1, 1)."""
    studies = [_figure_one(seed) for seed in range(10)]
    errors = np.mean([errors for errors, _ in studies], axis=0)
    random = np.mean([error for _, error in studies])
    assert all(later < 0.5 * earlier for earlier, later in pairwise(errors))
    assert errors[2] <= 1.15 * random
    assert errors[3] <= 0.5 * random


def test_marginals_that_differ_show_in_the_sum_kernel() -> None:
    """Lemma D.1: a distance of zero means equal marginals; unequal ones have one above zero."""
    hermite = Hermite.of_length(0.1, 13)
    rng = np.random.default_rng(2)
    left, right = rng.beta(2, 5, (20_000, 1)), rng.beta(2, 4, (20_000, 1))
    again = rng.beta(2, 5, (20_000, 1))

    def apart(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.square(hermite(a).mean(axis=0) - hermite(b).mean(axis=0)).sum())

    assert apart(left, right) > 20 * apart(left, again)


def test_tensors_get_the_same_features_and_the_right_gradient() -> None:
    torch = pytest.importorskip("torch")
    hermite = Hermite.of_length(0.2, 9)
    numbers = torch.linspace(-0.1, 1.1, 13, dtype=torch.float64).reshape(1, 13)
    found = hermite.of_tensor(numbers)
    np.testing.assert_allclose(found.numpy(), hermite(numbers.numpy()), atol=1e-12)
    assert torch.autograd.gradcheck(hermite.of_tensor, numbers.requires_grad_())


@pytest.mark.parametrize(("order", "rho", "reach"), [(-1, 0.5, 1.0), (2, 1.0, 1.0), (2, 0.5, 0.0)])
def test_impossible_features_are_refused(order: int, rho: float, reach: float) -> None:
    with pytest.raises(SfumatoError):
        Hermite(order, rho, reach)
