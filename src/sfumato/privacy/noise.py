"""Exact discrete Gaussian noise.

Floating-point Gaussians are porous: which doubles can occur depends on the private value
(Mironov 2012). The discrete Gaussian is sampled from exact rational arithmetic and operating-system
entropy by OpenDP, and costs the same rho as the continuous one.

A seed never reaches this file. Tests that need fixed noise inject a `Sampler` of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Sampler: TypeAlias = Callable[[int, float], NDArray[np.int64]]
"""Draws `size` independent integers of the given scale."""

_CHUNK = 1 << 14  # coordinates per call: enough to hide the call's overhead


def discrete_gaussian(size: int, sigma: float) -> NDArray[np.int64]:
    """Draw `size` values from the discrete Gaussian with P(x) proportional to exp(-x²/2 sigma²)."""
    import opendp.prelude as dp  # slow to load, and not needed to plan

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    mechanism = dp.m.make_gaussian(*space, scale=float(sigma))

    def draw(count: int) -> NDArray[np.int64]:
        return np.array(mechanism([0] * count), dtype=np.int64)

    chunks = [min(_CHUNK, size - start) for start in range(0, size, _CHUNK)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # OpenDP releases the interpreter lock
        return np.concatenate([np.empty(0, np.int64), *pool.map(draw, chunks)])
