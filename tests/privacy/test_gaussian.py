"""The Gaussian curve and the distance of discrete noise from it: against others, and exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import norm

from sfumato.privacy import zcdp
from sfumato.privacy.budget import Budget, Guarantee, Relation, Spend
from sfumato.privacy.gaussian import (
    delta_of,
    epsilon_of,
    log_ratio,
    rho_for,
    squared_distance,
)
from sfumato.privacy.noise import _Proposal
from sfumato.privacy.planning import plan_spend
from sfumato.privacy.zcdp import gaussian_rho
from support import count_statistic


@pytest.mark.parametrize(("epsilon", "sigma"), [(1, 3.731), (0.1, 30.75), (10, 0.500)])
def test_noise_for_known_budgets_after_the_charge(epsilon: float, sigma: float) -> None:
    spend = plan_spend("counts", count_statistic(), Budget(epsilon=epsilon, delta=1e-5), 1.0)
    assert spend.sensitivity == 1
    assert spend.sigma == pytest.approx(sigma, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_the_charge_is_below_a_hundredth_of_delta(epsilon: float) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-6)
    spend = plan_spend("counts", count_statistic(1000), budget, 1.0)
    many = Spend(**{**spend.__dict__, "dim": 10**7})
    distance = math.sqrt(many.squared_distance)
    assert (1 + math.exp(epsilon)) * distance < 0.01 * budget.delta
    assert Guarantee.of(budget, (many,)).epsilon <= epsilon


@settings(max_examples=30)
@given(epsilon=st.floats(1e-3, 60), delta=st.floats(1e-12, 0.1))
def test_conversions_are_inverse_and_on_the_safe_side(epsilon: float, delta: float) -> None:
    rho = rho_for(epsilon, delta)
    assert rho >= zcdp.rho_for(epsilon, delta)
    assert epsilon_of(rho, squared_distance(10**8, 2.0**29 / math.sqrt(2 * rho)), delta) <= (
        epsilon * (1 + 1e-9)
    )
    assert epsilon_of(rho * 1.001, 0.0, delta) > epsilon_of(rho, 0.0, delta)


@given(mu=st.floats(1e-4, 8), epsilon=st.floats(0, 30))
def test_the_curve_is_that_of_the_formula(mu: float, epsilon: float) -> None:
    plain = math.exp(log_ndtr(mu / 2 - epsilon / mu)) - math.exp(
        epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    )
    assert delta_of(mu, epsilon) >= plain - 1e-15
    assert delta_of(mu, epsilon) == pytest.approx(plain, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 2.5])
def test_the_curve_agrees_with_integration_in_one_and_two_dimensions(mu: float) -> None:
    """The hockey-stick divergence of N(v, I) from N(0, I), |v| = mu, by sums over fine grids."""
    epsilon = 0.8 * mu
    z = np.linspace(-12, 12, 400_001)
    one = np.maximum(norm.pdf(z - mu) - math.exp(epsilon) * norm.pdf(z), 0).sum() * (z[1] - z[0])
    assert delta_of(mu, epsilon) == pytest.approx(one, rel=1e-6)
    x, y = np.meshgrid(*[np.linspace(-10, 10, 2001)] * 2, indexing="ij")
    step = (x[1, 0] - x[0, 0]) ** 2
    direction = mu * np.array([0.6, 0.8])
    moved = norm.pdf(x - direction[0]) * norm.pdf(y - direction[1])
    two = np.maximum(moved - math.exp(epsilon) * norm.pdf(x) * norm.pdf(y), 0).sum() * step
    assert delta_of(mu, epsilon) == pytest.approx(two, rel=1e-4)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0, 30.0])
def test_the_curve_agrees_with_dp_accounting(sigma: float) -> None:
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    found = PLDAccountant().compose(accounting.GaussianDpEvent(sigma)).get_epsilon(1e-5)
    assert epsilon_of(gaussian_rho(1, sigma), 0.0, 1e-5) == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("sigma", [1, 1.1, 1.5, 2, 3, 4, 8, 16, 32, 100, 256, 1024])
def test_discrete_noise_is_as_close_to_rounded_noise_as_is_proved(sigma: float) -> None:
    """Exact sums over all integers that matter, in 60 digits: it cancels down to 1e-15."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    # The divergence is a mean of log(p/q), which is smooth in k: far tails add nothing.
    reach = math.ceil(14 * sigma)
    scale = mpmath.mpf(sigma)
    step = max(1, reach // 2000)  # a coarser sum is as good as an integral for smooth functions
    weights, losses = [], []
    for k in range(-reach, reach + 1, step):
        weights.append(mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * scale**2)))
        cell = mpmath.ncdf((k + mpmath.mpf(1) / 2) / scale) - mpmath.ncdf(
            (k - mpmath.mpf(1) / 2) / scale
        )
        losses.append(cell)
    all_weights = (
        sum(weights)
        if step == 1
        else scale * mpmath.sqrt(2 * mpmath.pi) * (1 + 2 * mpmath.exp(-2 * mpmath.pi**2 * scale**2))
    )
    divergence = sum(
        w * (mpmath.log(w / all_weights) - mpmath.log(cell))
        for w, cell in zip(weights, losses, strict=True)
    ) / sum(weights)
    bound = 2 * squared_distance(1, sigma)
    assert 0 < divergence <= bound
    # The proof gives away about half: the limit is 1 / (576 sigma^4).
    assert divergence > 0.49 * bound


def test_coarse_noise_is_not_taken_for_a_gaussian() -> None:
    assert squared_distance(1, 0.9) == math.inf
    spend = Spend(name="old", dim=1000, sensitivity=1, sigma=4.0)
    by_zcdp = zcdp.epsilon_of(spend.rho, 1e-6)
    assert Guarantee.of(Budget(epsilon=1), (spend,)).epsilon == pytest.approx(by_zcdp)


def test_content_is_two_steps() -> None:
    spend = plan_spend("c", count_statistic(), Budget(epsilon=1), 1.0)
    promised = Guarantee.of(Budget(epsilon=1), (spend,))
    assert promised.content_epsilon == pytest.approx(
        epsilon_of(4 * spend.rho, spend.squared_distance, 1e-6), rel=1e-9
    )
    assert promised.relation is Relation.ADD_REMOVE


@pytest.mark.parametrize("sigma", [4, 5.3, 17, 100, 1000])
def test_no_chance_differs_from_that_of_rounded_noise_by_more_than_is_proved(sigma: float) -> None:
    """Up to where noise ends, in 400 digits: chances fall to e^-2850 there."""
    mpmath = pytest.importorskip("mpmath")
    proposal = _Proposal.of(sigma)
    end = 64 << proposal.shift
    assert 37 * sigma < end < 76 * sigma
    with mpmath.workdps(400):
        scale, root = mpmath.mpf(sigma), mpmath.sqrt(2)
        height = scale * mpmath.sqrt(2 * mpmath.pi)
        height *= 1 + 2 * mpmath.exp(-2 * mpmath.pi**2 * scale**2)
        for k in {0, 1, *range(0, end, max(1, end // 40)), end - 1}:
            # The upper tail by erfc, which loses no digits far out.
            tails = [mpmath.erfc((k + half) / scale / root) / 2 for half in (-0.5, 0.5)]
            rounded = tails[0] - tails[1]
            discrete = mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * scale**2)) / height
            assert abs(mpmath.log(rounded / discrete)) <= log_ratio(1, sigma)
