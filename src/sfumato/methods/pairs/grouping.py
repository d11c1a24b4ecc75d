"""One-way tables: which partitions of a column's cells to count, and what the noisy counts say.

A column has `size` cells, the first `ordered` of which are neighbours on a line; the others stand
for themselves (categories, atoms such as an exact zero, null). A partition is an array that gives
the slot of each cell. Each column is counted on a coarse partition; columns that turn out to hold
much within one coarse slot are counted a second time, with these slots taken apart. That finds
the resolution of a column whose bounds are far too wide, at no cost to the other columns.

Everything here sees released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.pairs.smoothing import smoothed
from sfumato.modelling.simplex import project_to_simplex

Floats = NDArray[np.floating[Any]]
Partition = NDArray[np.int32]

FANOUT = 64  # ordered slots of the coarse partition; as many cells again are left apart
HEAVY_SHARE = 1 / 32  # a slot with more of the rows than this is taken apart,
HEAVY_SIGMAS = 8.0  # if it also stands out of the noise
MAX_CLASSES = 24
MAX_GROUPS = 20  # of neighbouring cells
LEAST_GROUPS = 3
NEIGHBOUR_SIGMAS = 4.0
SINGLE_SIGMAS = 3.0
OTHER_SIGMAS = 0.5


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Released counts of a partition's slots."""

    partition: Partition
    counts: Floats
    sigma: float


def coarse_partition(size: int, ordered: int, slots: Partition | None = None) -> Partition:
    """Put neighbouring cells together, about `FANOUT` slots; leave the other cells alone.

    Where it is known which neighbours belong together, these are the `slots`.

    >>> coarse_partition(5, 0).tolist()
    [0, 1, 2, 3, 4]
    >>> int(coarse_partition(4098, 4096).max()) + 1
    66
    """
    if slots is None:
        width = 1 if ordered <= 2 * FANOUT else -(-ordered // FANOUT)
        slots = np.arange(ordered, dtype=np.int32) // width
    first = int(slots[-1]) + 1 if ordered else 0
    return np.concatenate([slots, first + np.arange(size - ordered)]).astype(np.int32)


def refined_partition(coarse: NoisyHistogram, ordered: int, rows: float) -> Partition | None:
    """Take the heavy slots apart into their cells; None if there are none."""
    heavy = coarse.counts > max(HEAVY_SHARE * rows, HEAVY_SIGMAS * coarse.sigma)
    apart = heavy[coarse.partition] & (np.bincount(coarse.partition)[coarse.partition] > 1)
    apart[ordered:] = False
    if not apart.any():
        return None
    slot_begins = np.diff(coarse.partition, prepend=-1) != 0
    return (np.cumsum(apart | slot_begins) - 1).astype(np.int32)


def row_count(histograms: Sequence[NoisyHistogram]) -> float:
    """The inverse-variance mean of the histograms' totals, at least one row.

    >>> cells = np.arange(2, dtype=np.int32)
    >>> row_count([NoisyHistogram(cells, np.array([3.0, -9.0]), 1.0)])
    1.0
    """
    weights = [1 / (len(h.counts) * h.sigma**2) for h in histograms]
    return max(1.0, float(np.average([h.counts.sum() for h in histograms], weights=weights)))


def estimate_cells(
    coarse: NoisyHistogram,
    refined: NoisyHistogram | None,
    ordered: int,
    rows: float,
    nullable: bool = False,
    listed: bool = False,
) -> NDArray[np.float64]:
    """Estimate the mass of every cell: non-negative, consistent, summing to `rows`.

    Least squares on the two nested partitions; what lies along a line is smoothed, without ends
    that hold nothing; then Euclidean projection onto the simplex, first of the coarse slots and
    then, smoothed once more, of each refined slot's cells. A coarse slot that was not taken apart
    is spread evenly. Single values beside the line, but for null, which is the last cell where
    there is one, must stand out: a few rows at a far bound would be noise that outweighs all else.
    Where all of a line is `listed`, there is something all along it.
    """
    counts = np.array(coarse.counts, np.float64)
    if refined is not None:
        parent = np.zeros(len(refined.counts), np.int64)
        parent[refined.partition] = coarse.partition
        children = np.bincount(parent)
        sums = np.bincount(parent, weights=refined.counts)
        trust = coarse.sigma**2 / (coarse.sigma**2 + children * refined.sigma**2)
        counts = counts + trust * (sums - counts)
    slots = int(coarse.partition[ordered - 1]) + 1 if ordered else 0
    along = counts[:slots]
    if refined is not None and not listed:
        # Bounds are wide here. Noise on many empty slots would add up to rows that nobody has.
        along = trimmed(along, coarse.sigma)
    kept = ~np.isnan(along)
    along[kept] = smoothed(along[kept], coarse.sigma)
    beside = counts[slots:]
    single = np.arange(len(beside)) < (len(beside) - nullable if ordered else 0)
    beside[single & (beside < SINGLE_SIGMAS * coarse.sigma)] = np.nan
    mass = _project_seen(np.concatenate([along, beside]), rows)
    if refined is None:
        return np.asarray((mass / np.bincount(coarse.partition))[coarse.partition])
    fine = mass[parent]
    shape = refined.counts + ((mass - sums) / children)[parent]
    for run in _runs((children > 1) & (mass > 0)):
        inside = (parent >= run.start) & (parent < run.stop)
        shape[inside] = smoothed(shape[inside], refined.sigma)
        for slot in range(run.start, run.stop):
            fine[parent == slot] = project_to_simplex(shape[parent == slot], mass[slot])
    return np.asarray((fine / np.bincount(refined.partition))[refined.partition])


def _runs(flags: NDArray[np.bool_]) -> list[slice]:
    """Give the stretches over which flags are set."""
    turns = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).tolist()
    return [slice(a, b) for a, b in zip(turns[::2], turns[1::2], strict=True)]


def trimmed(counts: Floats, sigma: float) -> NDArray[np.float64]:
    """Blank (NaN) the slots at both ends that are better taken as empty.

    Keeping a slot of c rows costs the squared error sigma² of its noise, dropping it costs c². On
    average c² + sigma² is seen, so a slot is worth keeping if the seen square exceeds 2 sigma²:
    kept is the stretch over which this excess adds up to most.

    >>> trimmed(np.array([-5.0, 900.0, 8.0, 950.0, 12.0, -10.0]), 10.0)
    array([ nan, 900.,   8., 950.,  nan,  nan])
    """
    found = np.array(counts, np.float64)
    worth = np.cumsum(np.maximum(found, 0.0) ** 2 - 2 * sigma**2)
    before = np.concatenate([[0.0], worth[:-1]])
    gain = worth - np.minimum.accumulate(before)
    if gain.max(initial=0.0) <= 0:
        return found  # nothing stands out: all of it may be noise
    last = int(np.argmax(gain))
    first = int(np.argmin(before[: last + 1]))
    found[:first] = np.nan
    found[last + 1 :] = np.nan
    return found


def _project_seen(values: Floats, total: float) -> NDArray[np.float64]:
    """Project what stands out onto the simplex; leave the rest empty."""
    mass = np.zeros(len(values))
    seen = ~np.isnan(values)
    mass[seen] = project_to_simplex(values[seen], total)
    return mass


def group_cells(mass: Floats, ordered: int, sigma: float, most: int = MAX_GROUPS) -> Partition:
    """Merge cells into groups that are worth a row of a table with noise `sigma`.

    Neighbours are merged until they stand out of the noise (`NEIGHBOUR_SIGMAS`), or into `most`
    groups of even mass where there is more; a cell that is heavy by itself keeps apart, and a few
    groups are kept whatever the noise. The other cells have no neighbours to hide in: each that
    carries `OTHER_SIGMAS` is a group, and the small ones together are one. A line of no more than
    `most` cells is treated like them: a grade may stand for one category of another column.

    >>> group_cells(np.array([1.0, 1.0, 8.0, 1.0, 9.0, 0.1]), 4, 0.5, most=3).tolist()
    [0, 0, 1, 1, 2, 0]
    """
    groups = np.full(len(mass), -1, np.int32)
    along = np.asarray(mass[:ordered], np.float64)
    least = min(NEIGHBOUR_SIGMAS * sigma, float(along.sum()) / LEAST_GROUPS)
    enough = float(along.sum()) / most
    if ordered <= most:
        least = enough = min(OTHER_SIGMAS * sigma, least)
    groups[:ordered] = _merge_neighbours(along, least, enough)
    used = int(groups.max(initial=-1)) + 1
    least = OTHER_SIGMAS * sigma
    others = ordered + np.argsort(-mass[ordered:], kind="stable")
    large = others[: min(int((mass[others] >= least).sum()), 4 * most)]
    groups[large] = used + np.arange(len(large))
    used += len(large)
    rest = groups < 0
    if used == 0 or mass[rest].sum() >= least:
        groups[rest] = used
    elif rest.any():
        groups[rest] = np.argmin(np.bincount(groups[~rest], weights=mass[~rest]))
    return groups


def group_classes(mass: Floats, listed: int, least: float) -> Partition:
    """Groups of a target of categories: every listed value is one, however rare it is.

    Classes are disjoint, so counting a rare one apart costs nothing. The cells after the listed
    values (other, null) and the values beyond `MAX_CLASSES` are one more group if they carry the
    mass `least`; else they are counted with the largest.
    """
    mass = np.asarray(mass, np.float64)
    kept = np.sort(np.argsort(-mass[:listed], kind="stable")[:MAX_CLASSES])
    groups = np.full(len(mass), -1, np.int32)
    groups[kept] = np.arange(len(kept))
    rest = groups < 0
    groups[rest] = len(kept) if mass[rest].sum() >= least else groups[np.argmax(mass[:listed])]
    return groups


def draw_cells(
    groups: NDArray[np.integer[Any]],
    partition: Partition,
    weights: Floats,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw a cell within each row's group, in proportion to the cells' weights.

    >>> draw_cells(np.array([1, 0]), np.array([0, 1, 1]), np.array([5.0, 0.0, 2.0]),
    ...            np.random.default_rng(0)).tolist()
    [2, 0]
    """
    order = np.argsort(partition, kind="stable")
    ends = np.cumsum(weights[order])
    first = np.searchsorted(partition[order], np.arange(int(partition.max()) + 2))
    begins = np.concatenate([[0.0], ends])[first]
    points = begins[groups] + rng.random(len(groups)) * (begins[groups + 1] - begins[groups])
    place = np.searchsorted(ends, points, side="right")
    return np.asarray(order[np.clip(place, first[groups], first[groups + 1] - 1)], np.int64)


def _merge_neighbours(mass: NDArray[np.float64], least: float, enough: float) -> Partition:
    """Close a group when it has enough, and before a cell that has enough by itself."""
    groups = np.zeros(len(mass), np.int32)
    if not mass.sum() > 0:
        return groups
    enough = max(least, enough)
    used = start = 0
    gathered = 0.0
    for cell, own in enumerate(mass.tolist()):
        if own >= enough and gathered >= least:
            groups[start:cell] = used
            used, start, gathered = used + 1, cell, 0.0
        gathered += own
        if gathered >= enough:
            groups[start : cell + 1] = used
            used, start, gathered = used + 1, cell + 1, 0.0
    # what is left over at the end joins the last group, unless it is enough for one more
    groups[start:] = used if gathered >= least or used == 0 else used - 1
    return groups
