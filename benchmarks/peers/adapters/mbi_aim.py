"""AIM (McKenna et al. 2022) on mbi's estimator, at the model size that its authors ask for.

The package `mbi` has the estimator, but no mechanism (those lie in its repository only), so AIM's
rounds are written here, after the paper and in the order of steps there: the workload is all pairs
of columns with at most 10,000 cells, 16 rounds a column, a tenth of the budget for selection, sigma
halved where a round brought less than its noise. Its charge is in zCDP: rho such that rho-zCDP
implies (epsilon, delta).
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["mbi==2.0.0", "pandas==2.3.3"]
# ///

from __future__ import annotations

import itertools
import math
import sys

import jax
import numpy as np
import pandas as pd
from exchange import Job
from grid import CELLS, Grid
from mbi import Dataset, Domain, LinearMeasurement, estimation, junction_tree
from scipy.optimize import bisect, minimize_scalar

MOST_CELLS, ROUNDS_PER_COLUMN, ITERATIONS, SELECTING = 10_000, 16, 1000, 0.1


def rho_for(epsilon: float, delta: float) -> float:
    """Give the largest rho whose delta at epsilon is allowed (Canonne, Kamath and Steinke 2020)."""

    def log_delta(rho: float) -> float:
        def bound(log_shift: float) -> float:
            a = 1 + math.exp(log_shift)  # a Rényi order above 1
            return (a - 1) * (a * rho - epsilon) + a * math.log1p(-1 / a) - math.log(a - 1)

        return float(minimize_scalar(bound, bounds=(-5, 12), method="bounded").fun)

    return float(bisect(lambda rho: log_delta(rho) - math.log(delta), 1e-9, epsilon + 1))


def aim(data: Dataset, rho: float, megabytes: float, rng: np.random.Generator):
    domain = data.domain
    pairs = [c for c in itertools.combinations(domain, 2) if domain.size(c) <= MOST_CELLS]
    alone = [(name,) for name in domain]
    weight = {c: float(sum(len(set(c) & set(pair)) for pair in pairs)) for c in alone + pairs}
    answers = {c: np.asarray(data.project(c).datavector()) for c in weight}
    rounds = ROUNDS_PER_COLUMN * len(alone)
    sigma = math.sqrt(rounds / (2 * (1 - SELECTING) * rho))
    epsilon = math.sqrt(8 * SELECTING * rho / rounds)
    measured: list[LinearMeasurement] = []

    def measure(clique: tuple[str, ...]) -> None:
        noisy = answers[clique] + rng.normal(0, sigma, answers[clique].shape)
        measured.append(LinearMeasurement(noisy, clique, stddev=sigma))

    def fitted(before=None):
        return estimation.MirrorDescent().estimate(
            domain, measured, iters=ITERATIONS, warm_start=before
        )

    for clique in alone:
        measure(clique)
    used = len(alone) * 0.5 / sigma**2
    model, last = fitted(), False
    while not last:
        if rho - used < 2 * (0.5 / sigma**2 + epsilon**2 / 8):
            sigma = math.sqrt(1 / (2 * (1 - SELECTING) * (rho - used)))
            epsilon = math.sqrt(8 * SELECTING * (rho - used))
            last = True
        used += 0.5 / sigma**2 + epsilon**2 / 8
        known = [m.clique for m in measured]
        allowed = [
            c for c in weight
            if any(set(c) <= set(old) for old in known)
            or junction_tree.hypothetical_model_size(domain, [*known, c]) <= megabytes * used / rho
        ]  # fmt: skip
        errors = np.array([
            weight[c] * (
                np.abs(answers[c] - np.asarray(model.project(c).datavector())).sum()
                - math.sqrt(2 / math.pi) * sigma * domain.size(c)
            )
            for c in allowed
        ])  # fmt: skip
        gain = 0.5 * epsilon / max(weight.values()) * errors
        odds = np.exp(gain - gain.max())
        chosen = allowed[rng.choice(len(allowed), p=odds / odds.sum())]
        before = np.asarray(model.project(chosen).datavector())
        measure(chosen)
        model = fitted(model)
        change = np.abs(np.asarray(model.project(chosen).datavector()) - before).sum()
        print(f"{used / rho:.3f} of the budget, {chosen}", file=sys.stderr, flush=True)
        if change <= sigma * math.sqrt(2 / math.pi) * domain.size(chosen):
            sigma, epsilon = sigma / 2, 2 * epsilon
    return fitted(model)


jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)
job = Job.given()
train, grid = job.train(), Grid(job.columns)
codes, sizes = grid.encode(train), grid.sizes()
domain = Domain(list(sizes), list(sizes.values()))
data = Dataset({name: codes[name].to_numpy() for name in sizes}, domain)
rho = rho_for(job.epsilon, job.delta)
np.random.seed(job.seed)
model = aim(data, rho, job.options["megabytes"], np.random.default_rng(job.seed))
drawn = pd.DataFrame(model.synthetic_data(rows=len(train)).to_dict())
job.finish(
    grid.decode(drawn, job.seed),
    "mbi",
    {"rho": rho, "max_model_size": job.options["megabytes"], "cells": CELLS},
)
