"""The accountant of noisy gradients: agrees with others, and its worst case is the worst case."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Relation
from sfumato.privacy.sampled_gaussian import noise_multiplier_for, sampled_epsilon

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def test_epsilon_agrees_with_the_published_value_of_opacus() -> None:
    # Opacus' own tests: noise 1.5, rate 0.04, 90 epochs: 6.7774 by its tightest accountant (PRV),
    # 7.3291 by its RDP accountant.
    found = sampled_epsilon(1.5, 0.04, 2_249, 1e-5, ADD)
    assert found == pytest.approx(6.777395712150674, rel=2e-3)
    assert found < 7.32911117143


def test_epsilon_agrees_with_dp_accounting_on_a_finer_grid() -> None:
    from dp_accounting import dp_event, pld

    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    step = dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(5.0))
    accountant.compose(dp_event.SelfComposedDpEvent(step, 200))
    found = sampled_epsilon(5.0, 0.1, 200, 1e-5, ADD)
    assert found == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_the_noise_is_the_least_that_keeps_to_the_budget(relation: Relation) -> None:
    noise = noise_multiplier_for(1.0, 1e-5, 0.2, 50, relation)
    assert sampled_epsilon(noise, 0.2, 50, 1e-5, relation) <= 1
    assert sampled_epsilon(noise * 0.998, 0.2, 50, 1e-5, relation) > 1


def test_without_sampling_it_is_the_gaussian_mechanism() -> None:
    # Replacing moves a sum twice as far as removing.
    assert sampled_epsilon(8.0, 1.0, 4, 1e-5, REPLACE) == pytest.approx(
        sampled_epsilon(4.0, 1.0, 4, 1e-5, ADD), rel=1e-6
    )


@pytest.mark.parametrize(
    "arguments", [(0, 1e-5, 0.1, 5), (1, 2.0, 0.1, 5), (1, 1e-5, 1.5, 5), (1, 1e-5, 0.1, 0)]
)
def test_senseless_arguments_are_refused(arguments: tuple[float, float, float, int]) -> None:
    with pytest.raises(SfumatoError):
        noise_multiplier_for(*arguments, ADD)


def _hockey_stick(first: np.ndarray, second: np.ndarray, rate: float, order: float) -> float:
    """Integrate (P - order Q)+ for P, Q mixtures of N(0, I) with N(first), N(second) in the plane.

    Written over N(0, I): the density ratios are exp(<x, z> - |x|²/2).
    """
    axis = np.linspace(-9, 9, 361)
    weight = np.exp(-(axis**2) / 2) / math.sqrt(2 * math.pi) * (axis[1] - axis[0])
    u, v = np.meshgrid(axis, axis, indexing="ij")
    ratios = [np.exp(x[0] * u + x[1] * v - (x**2).sum() / 2) for x in (first, second)]
    p, q = (1 - rate + rate * ratio for ratio in ratios)
    return float(weight @ np.maximum(p - order * q, 0) @ weight)


@pytest.mark.parametrize("order", [0.5, 1.0, 1.3, 3.0])
@pytest.mark.parametrize("noise", [0.8, 2.0])
def test_opposite_rows_of_full_length_are_the_worst_to_replace(order: float, noise: float) -> None:
    # What the proof in the module's docstring says, checked by integration.
    rng = np.random.default_rng(0)
    worst = _hockey_stick(np.array([1 / noise, 0]), np.array([-1 / noise, 0]), 0.3, order)
    for _ in range(15):
        angles, lengths = rng.uniform(0, 2 * math.pi, 2), rng.uniform(0, 1, 2) ** 0.3 / noise
        rows = [
            r * np.array([math.cos(a), math.sin(a)]) for r, a in zip(lengths, angles, strict=True)
        ]
        assert _hockey_stick(*rows, 0.3, order) <= worst + 1e-9
