"""The accountant of noisy gradients: agrees with others, and its worst case is the worst case."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.errors import SfumatoError
from sfumato.privacy import zcdp
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.gaussian import epsilon_of
from sfumato.privacy.sampled_gaussian import joint_epsilon, noise_multiplier_for

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def sampled_epsilon(
    noise: float, rate: float, steps: int, delta: float, relation: Relation
) -> float:
    return joint_epsilon(((noise, rate, steps),), 0.0, 0.0, delta, relation)


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
    noise = noise_multiplier_for(Budget(epsilon=1.0, delta=1e-5, relation=relation), 0.2, 50)
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
    epsilon, delta, rate, steps = arguments
    with pytest.raises(SfumatoError):
        noise_multiplier_for(Budget(epsilon=epsilon, delta=delta), rate, steps)


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


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_releases_and_a_training_are_composed_jointly(relation: Relation) -> None:
    training, mu, delta = (1.5, 0.1, 60), 0.6, 1e-5
    found = joint_epsilon((training,), mu**2 / 2, 0.0, delta, relation)
    apart = sampled_epsilon(*training, delta / 2, relation) + epsilon_of(mu**2 / 2, 0.0, delta / 2)
    assert (
        max(sampled_epsilon(*training, delta, relation), epsilon_of(mu**2 / 2, 0.0, delta)) < found
    )
    assert found < 0.9 * apart


def test_the_joint_epsilon_agrees_with_a_simulation() -> None:
    """Brute force: draw outputs of all steps and of a release, and average (1 - e^(eps - loss))+.

    The mean of 2e6 such draws, each in [0, 1], is within five deviations of its expectation but for
    a chance below 1e-6.
    """
    noise, rate, steps, mu, epsilon = 1.2, 0.3, 8, 0.7, 1.0
    rng = np.random.default_rng(0)
    loss = np.zeros(2_000_000)
    for _ in range(steps):  # with the row against without it
        taken = rng.random(len(loss)) < rate
        out = rng.normal(0, noise, len(loss)) + taken
        loss += np.log1p(rate * np.expm1((2 * out - 1) / (2 * noise**2)))
    loss += mu * rng.normal(0, 1, len(loss)) + mu**2 / 2
    parts = np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0)))
    delta, spread = parts.mean(), parts.std() / math.sqrt(len(parts))
    for moved, wanted in ((-5, 1), (5, 1)):
        found = joint_epsilon(
            ((noise, rate, steps),), mu**2 / 2, 0.0, (delta + moved * spread) / 0.99, ADD
        )
        assert found == pytest.approx(wanted, abs=0.02)


def test_releases_with_coarse_noise_are_accounted_for_by_zcdp() -> None:
    alone = joint_epsilon(((1.5, 0.1, 6),), 0.0, 0.0, 5e-7, ADD)
    found = joint_epsilon(((1.5, 0.1, 6),), 0.1, 1e-10, 1e-6, ADD)
    assert found == pytest.approx(alone + zcdp.epsilon_of(0.1, 5e-7))


def test_a_small_training_beside_large_releases_is_accounted_for_at_once() -> None:
    # The grid of losses is as fine as the whole asks for, and not as its smallest part would.
    found = joint_epsilon(((20.0, 0.005, 100),), 1.0, 0.0, 1e-6, ADD)
    assert found == pytest.approx(epsilon_of(1.0, 0.0, 0.99e-6), rel=2e-3)
    assert found >= epsilon_of(1.0, 0.0, 0.99e-6)
