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

>>> from sfumato.privacy.budget import Relation
>>> round(sampled_epsilon(1.3, 500 / 60_000, 2_400, 1e-5, Relation.ADD_REMOVE), 2)
1.47
"""

from __future__ import annotations

import math
from functools import lru_cache

from sfumato.errors import SfumatoError, in_open_unit, positive
from sfumato.privacy.budget import Relation

# Less noise than this is asked for by no sensible budget, and takes minutes to account for.
LEAST_NOISE = 0.3

_MOST_NOISE = 1e6
_PRECISION = 5e-4  # of the noise multiplier


@lru_cache
def sampled_epsilon(
    noise_multiplier: float, rate: float, steps: int, delta: float, relation: Relation
) -> float:
    """Give the epsilon, at this delta, of so many steps with this noise."""
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
    interval = 5e-4 * steps**0.5 * rate / noise_multiplier
    accountant = pld.PLDAccountant(neighbours[relation], min(1e-3, max(interval, 1e-6)))
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise_multiplier))
    accountant.compose(dp_event.SelfComposedDpEvent(step, steps))
    return float(accountant.get_epsilon(delta))


@lru_cache
def noise_multiplier_for(
    epsilon: float, delta: float, rate: float, steps: int, relation: Relation
) -> float:
    """Give the least noise, in units of the clipping norm, that keeps to (epsilon, delta).

    >>> from sfumato.privacy.budget import Relation
    >>> round(noise_multiplier_for(2, 1e-5, 500 / 60_000, 2_400, Relation.ADD_REMOVE), 2)
    1.08
    """
    positive(epsilon=epsilon, rate=rate, steps=steps)
    in_open_unit(delta=delta)
    if rate > 1:
        raise SfumatoError(f"rate must be at most 1, got {rate}")

    def reached(noise: float) -> float:
        return sampled_epsilon(noise, rate, steps, delta, relation)

    # About the noise that the central limit theorem asks for; then a bracket around it.
    high = max(LEAST_NOISE, rate * math.sqrt(2 * steps * math.log(1 / delta)) / epsilon)
    at_high = reached(high)
    while at_high > epsilon:
        if high > _MOST_NOISE:
            raise SfumatoError(f"no noise is enough for epsilon {epsilon:g} at delta {delta:g}")
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
