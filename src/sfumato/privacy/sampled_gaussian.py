"""What noisy sums over sampled rows cost: the Poisson-sampled Gaussian, composed over steps.

In each step every row is taken with probability q, independently; the vectors of the taken rows,
each no longer than C, are summed, and Gaussian noise of scale s·C is added. Given everything else
(the other rows that are taken, and all earlier steps), the output with a row of vector x is the
mixture (1-q) N(0, s²) + q N(x, s²) in units of C, up to a common shift.

Add-remove: the pair that dominates is (1-q) N(0) + q N(1) against N(0), in both directions
(Zhu, Dong and Wang 2022).

Replace-one: rows x and x' with |x|, |x'| <= 1 are dominated by the pair
(1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1). For a >= 1 the hockey-stick divergence is

    E_{N(0)} h(L, L'),   h(l, l') = (q (l - a l') - (1-q)(a-1))_+,

with L, L' the likelihood ratios of N(x), N(x') to N(0): lognormal martingales in the covariance
of their exponents. By Itô's rule its derivative in a covariance is E[l l' h_ll'] <= 0, and in the
variances E[l² h_ll]/2 >= 0 and E[l'² h_l'l']/2 >= 0. So it grows as the covariance <x, x'> falls to
-|x||x'|, and then as |x| and |x'| grow to 1, which only lowers the covariance further. For a < 1
the roles change: H_a(P, Q) = a H_{1/a}(Q, P) + 1 - a, and the pair is its own mirror image.

Dominating pairs compose, also where later steps depend on earlier outputs, and `dp_accounting`
composes them numerically, rounding towards more privacy loss.

The releases of the same run, or of others, are one Gaussian mechanism (`gaussian.py`): the pair
N(0) against N(mu), which is composed with the steps in the same way.

>>> from sfumato.privacy.budget import Relation
>>> training = (1.3, 500 / 60_000, 2_400)
>>> round(joint_epsilon((training,), 0.0, 0.0, 1e-5, Relation.ADD_REMOVE), 2)
1.47
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from sfumato.errors import SfumatoError, in_open_unit, positive
from sfumato.privacy import zcdp
from sfumato.privacy.budget import Budget, Relation

if TYPE_CHECKING:
    from sfumato.privacy.budget import Cost

# Less noise than this is asked for by no sensible budget, and takes minutes to account for.
LEAST_NOISE = 0.3

_MOST_NOISE = 2.0**18  # 2^54 steps of the grid of gradients
_PRECISION = 5e-4  # of the noise multiplier
# What the difference between releases' noise and a Gaussian may take of delta.
_CHARGE = 0.01

Training = tuple[float, float, int]
"""Noise multiplier, rate and number of steps."""


@lru_cache
def joint_epsilon(
    trainings: tuple[Training, ...], rho: float, squared: float, delta: float, relation: Relation
) -> float:
    """Give the epsilon, at this delta, of trainings and of releases that cost rho in all.

    The releases' noise lies t² = `squared` away from a rounded Gaussian; for that, a hundredth of
    delta is kept back. Where that is not enough, as with releases of older versions, zCDP accounts
    for the releases with half of delta, and epsilons add.
    """
    try:
        from dp_accounting import dp_event, pld, privacy_accountant
    except ImportError:
        raise SfumatoError(
            "accounting for noisy gradients needs dp-accounting: pip install 'sfumato[neural]'"
        ) from None

    neighbours = {
        Relation.ADD_REMOVE: privacy_accountant.NeighboringRelation.ADD_OR_REMOVE_ONE,
        Relation.REPLACE_ONE: privacy_accountant.NeighboringRelation.REPLACE_ONE,
    }
    # The grid of privacy losses, against about their spread: fine, and yet quick.
    spreads = [rate * math.sqrt(steps) / noise for noise, rate, steps in trainings]
    spreads += [math.sqrt(2 * rho)] if rho else []
    interval = 5e-4 * math.hypot(*spreads)
    accountant = pld.PLDAccountant(neighbours[relation], min(1e-3, max(interval, 1e-6)))
    for noise, rate, steps in trainings:
        step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
        accountant.compose(dp_event.SelfComposedDpEvent(step, steps))
    if rho == 0:
        return float(accountant.get_epsilon(delta))
    # Replaced rows stand for N(1) against N(-1) there, whereas mu is the whole way.
    apart = 1 if relation is Relation.ADD_REMOVE else 2
    accountant.compose(dp_event.GaussianDpEvent(apart / math.sqrt(2 * rho)))
    epsilon = float(accountant.get_epsilon((1 - _CHARGE) * delta))
    charge = (1 + math.exp(min(epsilon, 700))) * math.sqrt(squared)
    if charge <= _CHARGE * delta:
        return epsilon
    alone = joint_epsilon(trainings, 0.0, 0.0, delta / 2, relation)
    return alone + zcdp.epsilon_of(rho, delta / 2)


def noise_multiplier_for(
    budget: Budget, rate: float, steps: int, beside: Sequence[Cost] = ()
) -> float:
    """Give the least noise, in units of the clipping norm, that keeps to what a budget has left.

    >>> budget = Budget(epsilon=2, delta=1e-5)
    >>> round(noise_multiplier_for(budget, 500 / 60_000, 2_400), 2)
    1.08
    """
    if any(cost.missed for cost in beside):
        raise SfumatoError("a training cannot share a budget with values that are found privately")
    rho = math.fsum(cost.rho for cost in beside)
    squared = math.fsum(cost.squared_distance for cost in beside)
    return _least_noise(budget.epsilon, budget.delta, rate, steps, rho, squared, budget.relation)


@lru_cache
def _least_noise(
    epsilon: float,
    delta: float,
    rate: float,
    steps: int,
    rho: float,
    squared: float,
    relation: Relation,
) -> float:
    positive(epsilon=epsilon, rate=rate, steps=steps)
    in_open_unit(delta=delta)
    if rate > 1:
        raise SfumatoError(f"rate must be at most 1, got {rate}")

    def reached(noise: float) -> float:
        return joint_epsilon(((noise, rate, steps),), rho, squared, delta, relation)

    # About the noise that the central limit theorem asks for; then a bracket around it.
    high = max(LEAST_NOISE, rate * math.sqrt(2 * steps * math.log(1 / delta)) / epsilon)
    at_high = reached(high)
    while at_high > epsilon:
        if high > _MOST_NOISE:
            raise SfumatoError(
                f"no noise is enough for what is left of epsilon {epsilon:g} at delta {delta:g}: "
                "a training would cost more than what is left of the budget"
            )
        high *= 1.5
        at_high = reached(high)
    low, at_low = high, at_high
    while at_low <= epsilon:
        if low == LEAST_NOISE:
            return low
        high, at_high = low, at_low
        low = max(LEAST_NOISE, low / 1.5)
        at_low = reached(low)
    while high > (1 + _PRECISION) * low:
        # Epsilon falls about like a power of the noise; no step is too short to end.
        part = math.log(at_low / epsilon) / math.log(at_low / at_high)
        guess = low * (high / low) ** part
        guess = min(max(guess, low * (1 + _PRECISION / 2)), high / (1 + _PRECISION / 2))
        found = reached(guess)
        if found <= epsilon:
            high, at_high = guess, found
        else:
            low, at_low = guess, found
    return high
