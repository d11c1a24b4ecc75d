"""The Gaussian mechanism's own privacy, exactly, for noise that is drawn from the integers.

Noise of scale sigma on a sum of L2 sensitivity s is a Gaussian mechanism of mu = s / sigma. Its
(epsilon, delta) curve is known in closed form (Balle and Wang 2018),

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu),

and mu² adds over releases, also where what is asked next depends on earlier answers, as long as
the total is fixed ahead (Dong, Roth and Su 2022; Smith and Thakurta 2022). Costs are counted in
rho = mu²/2, which is also what they cost in zCDP.

Our noise is the *discrete* Gaussian. Rounding is post-processing: for a whole sum,
s + round(N) = round(s + N), so noise that is rounded obeys the curve exactly. The discrete Gaussian
of scale sigma >= 1 differs from the rounded one by a Kullback-Leibler divergence of at most
1 / (319 sigma⁴) a coordinate (the proof is in docs/privacy.md). Divergences add over coordinates
and over releases, so by Pinsker's inequality everything that was released lies within

    t = sqrt(sum of dim / (638 sigma⁴))

in total variation of what the rounded noise would have given, and it is
(epsilon, delta(epsilon) + (1 + e^epsilon) t)-DP. Sums are multiplied by a power of two before noise
is added (`Spend.scale`), which makes t next to nothing: sigma is meant in steps of that grid.

>>> round(1 / math.sqrt(2 * rho_for(1.0, 1e-5)), 3)
3.731
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import erfcx, log_ndtr

from sfumato.errors import in_open_unit, positive
from sfumato.privacy import zcdp

GRID_BITS = 29
"""Noise is at least 2^29 / mu steps of its grid: see `planning.plan_spend`."""

# More values than this are never released together: their sums would not fit into memory.
_MOST_VALUES = 1e8
_DIVERGENCE = 1 / 319  # of one coordinate, times sigma⁴
_LOG_RATIO = 724.0  # of one coordinate, times sigma²
# Relative slack that keeps every rounded result on the safe side.
_SLACK = 1e-12


def squared_distance(dim: int, sigma: float) -> float:
    """Bound t² of one release: the divergence of its noise from rounded noise, halved.

    >>> squared_distance(10**6, 2.0**22) < 1e-22
    True
    """
    return _DIVERGENCE / 2 * dim / sigma**4 if sigma >= 1 else math.inf


def log_ratio(dim: int, sigma: float) -> float:
    """Bound how far `dim` numbers of noise are from rounded Gaussian noise: a log of chances.

    With noise from `noise.discrete_gaussian`, which ends between 37 and 76 sigma, no outcome is
    e^a times as likely as with rounded noise, and none within these ends is e^a times less likely,
    for a = 724 dim / sigma². So what is (epsilon, delta)-DP with rounded noise is
    (epsilon + a, delta / (1 - a))-DP with this. The proof is in docs/privacy.md.

    >>> log_ratio(10**8, 0.3 * 2**36) < 2e-10
    True
    """
    return _LOG_RATIO * dim / sigma**2


def delta_of(mu: float, epsilon: float) -> float:
    """Give the delta at which the Gaussian mechanism is (epsilon, delta)-DP; rounded up.

    With b = a - mu, e^epsilon phi(b) = phi(a), so delta = phi(a) (M(-a) - M(-b)) by Mills' ratio
    M(x) = Phi(-x) / phi(x), which loses no digits where both parts are small.
    """
    if mu <= 0:
        return 0.0
    upper = mu / 2 - epsilon / mu
    lower = upper - mu
    if upper > 5:
        found = math.exp(log_ndtr(upper)) - math.exp(epsilon + log_ndtr(lower))
        return min(1.0, found + _SLACK)
    density = math.exp(-(upper**2) / 2) / 2  # times sqrt(2 / pi), which Mills' ratio has inverted
    first = density * float(erfcx(-upper / math.sqrt(2)))
    second = density * float(erfcx(-lower / math.sqrt(2)))
    return min(1.0, (first - second) * (1 + _SLACK) + 1e-15 * first)


def epsilon_of(rho: float, squared: float, delta: float) -> float:
    """Give the epsilon, at this delta, of releases that cost rho and lie t² = `squared` away.

    Rounded up. It is the better of this accounting and of zCDP's, which both hold.
    """
    in_open_unit(delta=delta)
    if rho <= 0:
        return 0.0
    known = zcdp.epsilon_of(rho, delta)
    mu, distance = math.sqrt(2 * rho), math.sqrt(squared)

    def reached(epsilon: float) -> float:
        return delta_of(mu, epsilon) + (1 + math.exp(min(epsilon, 700))) * distance

    # The curve is convex in e^epsilon, and the charge linear: the sum falls, then rises.
    low, high = 0.0, known
    for _ in range(80):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if reached(left) < reached(right) else (left, high)
    if reached(high) > delta:
        return known
    return min(known, _last(lambda epsilon: reached(epsilon) <= delta, high, 0.0) * (1 + 1e-10))


def rho_for(epsilon: float, delta: float) -> float:
    """Give the largest rho that a budget allows, however many values are released; rounded down."""
    positive(epsilon=epsilon)
    in_open_unit(delta=delta)
    known = zcdp.rho_for(epsilon, delta)
    mu = _curve_mu(epsilon, delta)
    farthest = math.sqrt(squared_distance(int(_MOST_VALUES), 2.0**GRID_BITS / mu))
    left = delta - (1 + math.exp(min(epsilon, 700))) * farthest
    return max(known, _curve_mu(epsilon, left) ** 2 / 2 * (1 - 1e-9)) if left > 0 else known


def _curve_epsilon(mu: float, delta: float) -> float:
    low, high = 0.0, mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return _last(lambda epsilon: delta_of(mu, epsilon) <= delta, high, low)


def _curve_mu(epsilon: float, delta: float) -> float:
    high = 1.0
    while delta_of(high, epsilon) <= delta:
        high *= 2
    return _last(lambda mu: delta_of(mu, epsilon) <= delta, 0.0, high)


def _last(holds: Callable[[float], bool], good: float, bad: float) -> float:
    """Close in on where something ceases to hold, from where it does."""
    for _ in range(100):
        middle = (good + bad) / 2
        if middle in (good, bad):
            break
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good
