"""How strongly each pair of columns hangs together, on one scale for every kind of pair."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluation.coded_table import CodedTable

_MISSING = -1


def association_matrix(frame: CodedTable) -> NDArray[np.float64]:
    """Give the matrix of pairwise associations, ones on its diagonal.

    Two numbers: Pearson's correlation, in [-1, 1]. Two categories: Cramér's V (1946). A category
    and a number: the correlation ratio eta = sqrt(between-group / total sum of squares) (Fisher
    1925). The latter two lie in [0, 1]. Each is computed on the rows that have both values: how
    many are missing is a matter of one column. A constant column is associated with nothing.
    """
    matrix = np.eye(len(frame.names))
    numeric, categorical = list(frame.numeric), list(frame.categorical)
    matrix[np.ix_(numeric, numeric)] = _pearson(frame.numbers)
    codes = {i: np.where(frame.missing(i), _MISSING, frame.codes[:, i]) for i in categorical}
    for position, i in enumerate(categorical):
        ratios = correlation_ratios(codes[i], frame.numbers)
        matrix[i, numeric] = matrix[numeric, i] = ratios
        for j in categorical[position + 1 :]:
            matrix[i, j] = matrix[j, i] = cramers_v(codes[i], codes[j])
    return matrix


def cramers_v(first: NDArray[np.integer], second: NDArray[np.integer]) -> float:
    """Give Cramér's V = sqrt(chi² / n / (min(rows, columns) - 1)) over the cells in use.

    Negative codes stand for missing values; rows that have one do not count.

    >>> cramers_v(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    both = (first >= 0) & (second >= 0)
    if not both.any():
        return 0.0
    r, c = first[both].astype(np.int64), second[both].astype(np.int64)
    shape = (int(r.max()) + 1, int(c.max()) + 1)
    joint = np.bincount(r * shape[1] + c, minlength=shape[0] * shape[1]).reshape(shape) / len(r)
    joint = joint[joint.any(axis=1)][:, joint.any(axis=0)]
    smaller = min(joint.shape) - 1
    if smaller < 1:
        return 0.0
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    phi_squared = ((joint - expected) ** 2 / expected).sum()
    return float(min(np.sqrt(phi_squared / smaller), 1.0))


def correlation_ratios(
    groups: NDArray[np.integer], numbers: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Give the correlation ratio of a category with each column of numbers.

    Rows of a negative group, which stands for a missing one, do not count.
    """
    known = groups >= 0
    values, present = _centred(numbers[known])
    used, group = np.unique(groups[known], return_inverse=True)
    sums, counts = (
        np.stack([np.bincount(group, column, len(used)) for column in table.T], axis=1)
        if table.shape[1]
        else np.zeros((len(used), 0))
        for table in (values, present)
    )
    between = (sums**2 / np.maximum(counts, 1)).sum(axis=0)
    total = (values**2).sum(axis=0)
    return np.sqrt(np.clip(_ratio(between, total), 0.0, 1.0))


def _pearson(numbers: NDArray[np.float32]) -> NDArray[np.float64]:
    """Give correlations over the rows that have both numbers, in five matrix products."""
    values, present = _centred(numbers)
    count = np.maximum(present.T @ present, 1)
    sums = values.T @ present
    squares = (values**2).T @ present - sums**2 / count
    products = values.T @ values - sums * sums.T / count
    correlation = _ratio(products, np.sqrt(np.maximum(squares * squares.T, 0.0)))
    np.fill_diagonal(correlation, 1.0)
    return np.clip(correlation, -1.0, 1.0)


def _centred(numbers: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give deviations from the column means, zero where missing, and which are present."""
    present = np.isfinite(numbers).astype(np.float64)
    plain = np.where(present > 0, numbers, 0.0).astype(np.float64)
    mean = plain.sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return (plain - mean) * present, present


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    # Sums of squares below this are rounding: the column is constant.
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 1e-12)
