"""Rows as plain numbers for learners and distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.coded_table import CodedTable

MOST_CATEGORIES = 50
"""A category with more cells keeps its most frequent ones; the rest share one indicator."""


class Encoding:
    """A map from rows to vectors, with the statistics of the frame that it is made of.

    Numbers are standardised; a missing one becomes the median beside an indicator. Categories
    become one indicator per cell of the schema (a two-valued one needs only one).
    """

    def __init__(self, frame: CodedTable, leave_out: str | None = None) -> None:
        self._left_out = None if leave_out is None else frame.codec.index(leave_out)
        with np.errstate(all="ignore"):
            present = np.isfinite(frame.numbers)
            empty = ~present.any(axis=0)
            filled = np.where(empty, np.float32(0.5), frame.numbers)
            self._middle = np.nanmedian(filled, axis=0) if filled.size else np.zeros(0)
            values = np.where(np.isfinite(filled), filled, self._middle).astype(np.float64)
        self._mean = values.mean(axis=0)
        spread = values.std(axis=0)
        self._spread = np.where(spread > 1e-9, spread, 1.0)
        self._kept = {
            index: _most_frequent(frame.codes[:, index], frame.codec.columns[index].size)
            for index in frame.categorical
        }

    def __call__(self, frame: CodedTable) -> NDArray[np.float32]:
        """Give one vector per row."""
        blocks = []
        missing = ~np.isfinite(frame.numbers)
        values = np.where(missing, self._middle, frame.numbers)
        scaled = ((values - self._mean) / self._spread).astype(np.float32)
        for place, index in enumerate(frame.numeric):
            if index == self._left_out:
                continue
            blocks.append(scaled[:, [place]])
            cells = frame.codec.columns[index]
            if not cells.is_category and cells.nullable:
                blocks.append(missing[:, [place]].astype(np.float32))
        for index, kept in self._kept.items():
            if index != self._left_out:
                blocks.append(_indicators(kept[frame.codes[:, index]], kept.max() + 1))
        if not blocks:
            return np.zeros((len(frame), 1), np.float32)
        return np.concatenate(blocks, axis=1)


def _most_frequent(codes: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    """Number the cells that get an indicator of their own; the others share the last number."""
    if size <= MOST_CATEGORIES:
        return np.arange(size)
    order = np.argsort(-np.bincount(codes, minlength=size), kind="stable")
    numbered = np.full(size, MOST_CATEGORIES - 1)
    numbered[order[: MOST_CATEGORIES - 1]] = np.arange(MOST_CATEGORIES - 1)
    return numbered


def _indicators(codes: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    table = np.eye(size, dtype=np.float32)
    return (table[:, 1:] if size == 2 else table)[codes]
