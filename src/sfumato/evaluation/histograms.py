"""Columns as a few bars that a person can read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.data.codes import MISSING, ColumnCode
from sfumato.evaluation.coded_table import CodedTable, written

MOST_BARS = 12
NUMBER_BARS = 24
_TO = " – "


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Labelled bars: for each series (say real and synthetic) the share of rows per bar.

    The bars of an `ordered` histogram follow one another along an axis; a bar for missing values,
    where there is one, comes last.
    """

    column: str
    ordered: bool
    labels: tuple[str, ...]
    shares: dict[str, tuple[float, ...]]


def histogram(index: int, frames: dict[str, CodedTable]) -> Histogram:
    """Draw up one column of several tables on common bars, laid out by the first table."""
    first = next(iter(frames.values()))
    cells = first.codec.columns[index]
    if cells.is_category:
        return _categories(first.names[index], index, cells, frames)
    return _numbers(first.names[index], frames)


def _categories(
    name: str, index: int, cells: ColumnCode, frames: dict[str, CodedTable]
) -> Histogram:
    """Show the most frequent categories and join the others in one bar."""
    names = cells.names
    counts = {key: _shares(f.codes[:, index], cells.size) for key, f in frames.items()}
    first = next(iter(counts.values()))
    order = np.argsort(-first, kind="stable")
    shown = order if len(order) <= MOST_BARS else order[: MOST_BARS - 1]
    labels = [names[i] for i in shown]
    if len(shown) < len(order):
        labels.append(f"({len(order) - len(shown)} more)")
        counts = {
            key: np.append(shares[shown], max(0.0, 1 - shares[shown].sum()))
            for key, shares in counts.items()
        }
    else:
        counts = {key: shares[shown] for key, shares in counts.items()}
    return Histogram(column=name, ordered=False, labels=tuple(labels), shares=_rounded(counts))


def _numbers(name: str, frames: dict[str, CodedTable]) -> Histogram:
    """Lay even bars over the middle 98% of the first table; the end bars take what lies beyond."""
    first = next(iter(frames.values()))
    cells = first.codec.columns[first.codec.index(name)]
    if cells.is_category:
        raise TypeError(f"{name} is a category")
    low, high = cells.bounds
    values = {key: low + f.number(name).astype(float) * (high - low) for key, f in frames.items()}
    whole = cells.integer
    edges = _edges(next(iter(values.values())), whole)
    bars = len(edges) - 1
    coded = {
        key: np.where(
            np.isfinite(v), np.clip(np.searchsorted(edges, v, side="right") - 1, 0, bars - 1), bars
        )
        for key, v in values.items()
    }
    with_missing = any((codes == bars).any() for codes in coded.values())
    shares = {key: _shares(codes, bars + with_missing) for key, codes in coded.items()}
    # The bars of whole numbers reach from half below to half above.
    starts, ends = (edges[:-1] + 0.5, edges[1:] - 0.5) if whole else (edges[:-1], edges[1:])
    labels = [
        _interval(*(written(cells, (end - low) / ((high - low) or 1)) for end in (start, stop)))
        for start, stop in zip(starts, ends, strict=True)
    ]
    present = np.concatenate([v[np.isfinite(v)] for v in values.values()])
    if (present > edges[-1]).any():
        labels[-1] = f"{labels[-1].split(_TO)[0]} or more"
    if (present < edges[0]).any():
        labels[0] = f"up to {labels[0].split(_TO)[-1]}"
    return Histogram(
        column=name,
        ordered=True,
        labels=(*labels, *[MISSING] * with_missing),
        shares=_rounded(shares),
    )


def _edges(values: NDArray[np.float64], whole: bool) -> NDArray[np.float64]:
    values = values[np.isfinite(values)]
    if not len(values):
        values = np.zeros(1)
    low, high = np.quantile(values, [0.01, 0.99], method="nearest")
    if low == high:
        low, high = values.min(), values.max()
    if whole:
        count = round(high - low) + 1
        width = -(-count // NUMBER_BARS)
        return np.asarray(round(low) - 0.5 + width * np.arange(-(-count // width) + 1))
    return np.linspace(low, high if high > low else low + 1.0, NUMBER_BARS + 1)


def _interval(start: str, stop: str) -> str:
    return start if start == stop else f"{start}{_TO}{stop}"


def _shares(codes: NDArray[np.integer], size: int) -> NDArray[np.float64]:
    return np.bincount(codes, minlength=size) / max(len(codes), 1)


def _rounded(shares: dict[str, NDArray[np.float64]]) -> dict[str, tuple[float, ...]]:
    return {key: tuple(np.round(values, 6).tolist()) for key, values in shares.items()}
