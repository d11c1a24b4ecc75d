"""Selection: which values of a column exist, of those that many rows have.

The values of a column may be anything, so the rows cannot be counted in cells that a schema lists.
Counted are the values that occur; noise is added to each count, and the values are told whose noisy
count reaches a threshold, with that count. That a value is counted at all depends on the rows, so
noise is not enough: a value that one unit alone has must hardly ever be told.

*Claim.* Let a unit have at most k rows, S be the L2 sensitivity of the counts, sigma the noise, and

    tau = k + 1 + sigma q,    where a standard normal exceeds q with probability m / k.

Then telling is within m, in total variation, of a Gaussian mechanism of mu = S / sigma, for each of
two neighbours; so with everything else that is released, it costs mu² and (1 + e^epsilon) m of
delta (`budget.composed_epsilon`).

*Proof.* Let D and D' be neighbours, and V the values that occur in both. A value outside V occurs
in one of them only, in rows of the unit in which they differ: so there are at most k of these, each
with a count of at most k. Let A be what is told, and A_V the same but without values outside V. For
either data set, A and A_V differ only where a value outside V is told. The noise is that of
round(sigma K G) on a grid of step 1/K, up to a distance that is accounted for as everywhere
(`gaussian`), so a count of at most k reaches tau with probability at most

    P(round(sigma K G) >= K (tau - k)) <= P(G >= (tau - k) / sigma - 1 / (2 sigma K)) <= m / k,

for (tau - k) / sigma = q + 1 / sigma. Over at most k values that is m. And A_V is worked out from
the noisy counts of V, a set that does not depend on which of the two is there: a Gaussian mechanism
of sensitivity S, and post-processing. In a longer interaction, A is exchanged for A_V in its place;
all that follows sees only what was told, so the distance of the whole is at most m, for each
selection. Hence P(D) <= P_V(D) + m <= e^epsilon P_V(D') + delta + m <= e^epsilon P(D') + delta +
(1 + e^epsilon) m. ∎

How many values were counted, and those that are not told, stay private: they are in no file. Values
are told in the order of their texts, which is not that of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from sfumato.privacy.budget import Budget, Relation, SelectionSpend
from sfumato.privacy.gaussian import GRID_BITS
from sfumato.privacy.zcdp import gaussian_scale


@dataclass(frozen=True)
class Selection:
    """The values of a column whose noisy count reaches a threshold.

    A row has one value: adding or removing it moves one count by 1, replacing it two of them.

    `chance` is m, the chance that a value of one unit alone is told.

    >>> selection = Selection("zip", 1e-9)
    >>> spend = selection.plan("values of zip", Budget(epsilon=1), 0.05)
    >>> 100 < selection.threshold(spend, 1) < 200
    True
    """

    column: str
    chance: float

    def plan(self, name: str, budget: Budget, share: float) -> SelectionSpend:
        """Work out the noise for a share of the budget's rho."""
        k = budget.max_rows_per_unit
        sensitivity = k * (1.0 if budget.relation is Relation.ADD_REMOVE else math.sqrt(2))
        sigma = gaussian_scale(sensitivity, share * budget.rho)
        return SelectionSpend(
            name=name,
            dim=1,
            sensitivity=sensitivity,
            sigma=sigma,
            # Counts are below 2^32, so they stay below 2^62; noise stays far from there, too.
            scale=1 << max(0, min(GRID_BITS, int(math.log2(2.0**55 / sigma)))),
            chance=self.chance,
        )

    def threshold(self, spend: SelectionSpend, max_rows_per_unit: int) -> float:
        """Give the count that a value needs to be told: see the claim above."""
        return max_rows_per_unit + 1 - spend.sigma * float(ndtri(self.chance / max_rows_per_unit))

    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify it."""
        return {"values of": self.column, "chance": self.chance}
