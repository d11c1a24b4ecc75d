"""The accountant agrees with known values, with itself, and with dp_accounting."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import SfumatoError
from sfumato.privacy.zcdp import delta_of, epsilon_of, gaussian_rho, gaussian_scale, rho_for


@pytest.mark.parametrize(("epsilon", "sigma"), [(1, 4.045), (0.1, 33.98), (10, 0.530)])
def test_noise_for_known_budgets(epsilon: float, sigma: float) -> None:
    assert gaussian_scale(1, rho_for(epsilon, 1e-5)) == pytest.approx(sigma, rel=1e-3)


@settings(max_examples=30)
@given(epsilon=st.floats(1e-3, 100), delta=st.floats(1e-12, 0.1))
def test_conversions_are_inverse_and_on_the_safe_side(epsilon: float, delta: float) -> None:
    rho = rho_for(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta
    assert epsilon_of(rho, delta) <= epsilon * (1 + 1e-9)
    assert epsilon_of(rho * 1.001, delta) > epsilon_of(rho, delta)


@given(sensitivity=st.floats(1e-3, 1e9), rho=st.floats(1e-9, 1e3))
def test_the_scale_never_costs_more_than_asked(sensitivity: float, rho: float) -> None:
    assert gaussian_rho(sensitivity, gaussian_scale(sensitivity, rho)) <= rho


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0, 30.0])
def test_agrees_with_dp_accounting(sigma: float) -> None:
    """dp_accounting's tight accountant may be below the zCDP bound, but never above it."""
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    event = accounting.GaussianDpEvent(sigma)
    ours = epsilon_of(gaussian_rho(1, sigma), 1e-5)
    exact = PLDAccountant().compose(event).get_epsilon(1e-5)
    orders = [1 + 1.05**k / 1000 for k in range(400)]
    renyi = RdpAccountant(orders).compose(event).get_epsilon(1e-5)
    assert exact <= ours * (1 + 1e-6)
    assert ours == pytest.approx(renyi, rel=2e-3)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 1e-5), (-1, 1e-5), (float("nan"), 1e-5), (1, 0), (1, 1)]
)
def test_impossible_budgets_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(SfumatoError):
        rho_for(epsilon, delta)
