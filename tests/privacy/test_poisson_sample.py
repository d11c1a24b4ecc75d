"""Draws from entropy: the right distributions, one draw for each bit, no seed."""

from __future__ import annotations

import numpy as np
from scipy import stats

from sfumato.privacy.noise import discrete_gaussian, poisson_sample

FALSE_ALARM = 1e-6


def test_rows_are_chosen_each_by_itself_at_the_rate() -> None:
    # What the accountant assumes. A batch of a fixed size, or a shuffled one, would fail: its size
    # would not vary, and two rows would not be independent.
    rows, rate, draws = 200, 0.3, 4_000
    masks = np.zeros((draws, rows))
    for mask in masks:
        mask[poisson_sample(rows, rate)] = 1
    single = stats.binomtest(int(masks.sum()), masks.size, rate)
    assert single.pvalue > FALSE_ALARM
    by_row = stats.chisquare(masks.sum(0), np.full(rows, masks.sum() / rows))
    assert by_row.pvalue > FALSE_ALARM
    # The size of a batch is binomial: its variance times (draws - 1) is about chi-square.
    spread = masks.sum(1).var(ddof=1) * (draws - 1) / (rows * rate * (1 - rate))
    assert stats.chi2.cdf(spread, draws - 1) > FALSE_ALARM
    assert stats.chi2.sf(spread, draws - 1) > FALSE_ALARM
    together = stats.binomtest(int((masks[:, 0] * masks[:, 1]).sum()), draws, rate**2)
    assert together.pvalue > FALSE_ALARM


def test_the_ends_of_the_rate_are_nobody_and_everybody() -> None:
    assert poisson_sample(5, 1.0).tolist() == [0, 1, 2, 3, 4]
    assert poisson_sample(0, 0.5).tolist() == []
    assert poisson_sample(1000, 1e-18).tolist() == []


def test_two_draws_differ() -> None:
    assert not np.array_equal(discrete_gaussian(8, 1e9), discrete_gaussian(8, 1e9))
