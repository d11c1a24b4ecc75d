"""Statistics: what is summed over private rows, with the bound that each of them obeys.

A `Statistic` maps every row to an integer vector and adds the vectors up. Integers make the sum
exact: the same bits for every order, batch size and split, so the sensitivity on paper is the
sensitivity of the program. `sensitivity(relation)` bounds how far, in L2, the sum moves when one
row is added or removed, or replaced.

Let B bound the norm of one row's vector. Adding or removing a row moves the sum by at most B.
Replacing u by v moves it by ||u - v||, and

    ||u - v||² = ||u||² + ||v||² - 2<u, v>  <=  4B² in general,  2B² when <u, v> >= 0,

which holds whenever all entries are non-negative (counts, histograms, squares, ReLU features).

Overflow is impossible by construction: an entry of a row's vector, times the power of two by which
sums are multiplied before noise is added, is at most 2^ENTRY_BITS in size, and a source of more
than 2^ROW_BITS rows (`data/rows.py`) is refused, so sums stay below 2^62.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.data.batch import Batch
from sfumato.privacy.budget import Budget, Relation

ENTRY_BITS = 30
EXACT_BITS = 24
"""Entries of statistics whose lengths are checked in doubles: their squares are exact."""


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """How a sum tells the classes of a coded column apart: what a certificate says of its noise.

    A row adds at most `reach` to the numbers of its class, of which there are `cells`, with noise
    on each. Of `tables` such tables in one sum. The kinds: "counts" of rows; "vectors", sums whose
    lengths are not known; "blocks", where the whole sum is one block of values for each class, so
    that lengths can be read off.
    """

    kind: Literal["counts", "vectors", "blocks"]
    column: int
    classes: int
    cells: int
    reach: float
    tables: int = 1


class Statistic(ABC):
    """An additive, integer-valued summary of rows."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """The length of the sum."""

    @property
    @abstractmethod
    def largest_entry(self) -> int:
        """The largest size of one entry of one row's vector."""

    @abstractmethod
    def sensitivity(self, relation: Relation) -> float:
        """Bound how far, in L2, one row can move the sum."""

    @abstractmethod
    def sum(self, batch: Batch) -> NDArray[np.int64]:
        """Add up the vectors of a batch's rows."""

    @abstractmethod
    def resolutions(self) -> tuple[Resolution, ...]:
        """Say how the sum tells classes of columns apart; nothing where it does not."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Give the public facts that identify this statistic, as plain values."""


def unit_sensitivity(statistic: Statistic, budget: Budget) -> float:
    """Bound how far one unit of privacy, with up to k rows, can move the sum.

    By the triangle inequality k rows move it at most k times as far as one. A replaced unit may
    also come with fewer rows than before, or with none; the rows without a partner are then added
    or removed, hence the maximum.
    """
    bound = max(statistic.sensitivity(budget.relation), statistic.sensitivity(Relation.ADD_REMOVE))
    return budget.max_rows_per_unit * bound
