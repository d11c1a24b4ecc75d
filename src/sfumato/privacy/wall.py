"""The wall: the only place where an exact sum of private rows meets noise.

Each function here works out one exact sum, adds discrete Gaussian noise of the scale that a spend
names, and gives what may be seen by anyone. Nothing else leaves. The noise is exact (`noise.py`),
and its bits, like those that choose the rows of a step, are the operating system's: no function
takes a sampler, a seed or any other source of randomness.

Who calls has paid before: that, and what becomes of an answer, is up to the curator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.data.rows import PrivateRows
from sfumato.privacy.budget import SelectionSpend, Spend, TrainingSpend
from sfumato.privacy.noise import discrete_gaussian, poisson_sample
from sfumato.privacy.selection import Selection
from sfumato.privacy.statistic import Statistic

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.privacy.dpsgd import Learner

Integers = NDArray[np.int64]


def noisy_sum(rows: PrivateRows, statistic: Statistic, spend: Spend) -> Integers:
    """Sum a statistic over all rows, and add noise, both in steps of the spend's grid."""
    # Drawn before the rows are summed: how long it takes cannot depend on the sum.
    noise = discrete_gaussian(statistic.dim, spend.scale * spend.sigma)
    return spend.scale * rows.sum(statistic) + noise


def told_values(
    rows: PrivateRows, selection: Selection, spend: SelectionSpend, max_rows_per_unit: int
) -> tuple[list[str], Integers]:
    """Count the values of a column, and give those whose noisy count reaches the threshold.

    They come in the order of their texts, with their noisy counts: the proof is in `selection.py`.
    """
    counts = rows.counted_values(selection.column)
    values = sorted(counts)
    exact = np.array([counts[value] for value in values], np.int64)
    noisy = spend.scale * exact + discrete_gaussian(len(values), spend.scale * spend.sigma)
    told = noisy >= spend.scale * selection.threshold(spend, max_rows_per_unit)
    return [value for value, is_told in zip(values, told, strict=True) if is_told], noisy[told]


def noisy_gradient(learner: Learner, rows: Sequence[Tensor], spend: TrainingSpend) -> Integers:
    """Take each row with the spend's rate, sum their clipped gradients, and add noise.

    Sum and noise are in whole steps of the spend's grid.
    """
    from sfumato.privacy.dpsgd import grid_sum

    chosen = poisson_sample(len(rows[0]) if rows else 0, spend.rate)
    noise = discrete_gaussian(learner.dim, spend.sigma_in_steps)
    return grid_sum(learner, rows, chosen, spend) + noise
