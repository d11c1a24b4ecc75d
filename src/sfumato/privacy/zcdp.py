"""Zero-concentrated differential privacy: composition and its exchange with (epsilon, delta).

A mechanism is rho-zCDP when its Rényi divergence of every order a > 1 between neighbours is at
most a·rho. The (discrete) Gaussian of scale sigma on a sum of L2 sensitivity s is
s²/(2 sigma²)-zCDP (Canonne, Kamath, Steinke 2020, Thm 14), and rhos add under adaptive
composition (Bun, Steinke 2016).

rho-zCDP implies (epsilon, delta)-DP with

    delta = inf_{a > 1}  exp((a - 1)(a rho - epsilon)) / (a - 1) · (1 - 1/a)^a

(Canonne, Kamath, Steinke 2020, Cor. 13), the tightest known exchange. Any a > 1 gives a valid
delta, so an inexact minimum errs on the safe side.

>>> round(gaussian_scale(1.0, rho_for(1.0, 1e-5)), 3)
4.045
"""

from __future__ import annotations

import math

from sfumato.errors import in_open_unit, positive

# Relative slack that keeps every rounded result on the safe side.
_SLACK = 1e-12


def gaussian_rho(sensitivity: float, sigma: float) -> float:
    """Give the rho of Gaussian noise of scale `sigma` on a sum of this L2 sensitivity."""
    positive(sigma=sigma)
    return sensitivity**2 / (2 * sigma**2) * (1 + _SLACK)


def gaussian_scale(sensitivity: float, rho: float) -> float:
    """Give the smallest scale whose `gaussian_rho` does not exceed `rho`."""
    positive(sensitivity=sensitivity, rho=rho)
    return sensitivity / math.sqrt(2 * rho) * (1 + 2 * _SLACK)


def delta_of(rho: float, epsilon: float) -> float:
    """Give the delta at which rho-zCDP implies (epsilon, delta)-DP."""
    if rho <= 0:
        return 0.0

    def log_delta(log_order: float) -> float:
        excess = math.exp(log_order)  # a - 1
        order = 1 + excess
        return excess * (order * rho - epsilon) - math.log(excess) - order * math.log1p(1 / excess)

    low, high = -20.0, 40.0
    for _ in range(80):  # the function falls, then rises: close in on its least value
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if log_delta(left) < log_delta(right):
            high = right
        else:
            low = left
    return min(1.0, math.exp(min(log_delta(low), log_delta(high), 0.0)) * (1 + _SLACK))


def epsilon_of(rho: float, delta: float) -> float:
    """Give the epsilon at which rho-zCDP implies (epsilon, delta)-DP; rounded up."""
    in_open_unit(delta=delta)
    if rho <= 0:
        return 0.0
    low, high = 0.0, rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke's bound
    for _ in range(100):
        middle = (low + high) / 2
        if delta_of(rho, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def rho_for(epsilon: float, delta: float) -> float:
    """Give the largest rho that still implies (epsilon, delta)-DP; rounded down."""
    positive(epsilon=epsilon)
    in_open_unit(delta=delta)
    low, high = 0.0, max(epsilon, 1.0)
    while delta_of(high, epsilon) <= delta:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if delta_of(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low
