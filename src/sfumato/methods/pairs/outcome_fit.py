"""Fit how the target follows from the other columns, to a mixture and to released tables.

Logistic regression of the class on the groups of the columns needs sums only: for every cell of a
term, how many rows of each class there are. For single columns these come from the mixture, whose
tables are surer than the released ones; for pairs of columns, from the released tables, and only
where these show more than single columns explain. What is expected of a cell is averaged over draws
from the mixture.

With n rows in a cell and a share p of a class, a weight w changes the count r by about h w, where
h = n p (1 - p); the count is seen with variance v + h, of noise and of chance. With a prior of
deviation d on w, the most probable weights are those of a regression with the penalty
(1 + v / h) / d² on w² / 2. Evidence for d, for all cells of a pair of columns together, is that of
r ~ N(0, v + h + h² d²).

Everything here sees released values only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from sfumato.methods.pairs.mixture import Floats, Mixture
from sfumato.methods.pairs.noisy_tables import NoisyTables
from sfumato.methods.pairs.outcome import Outcome, Term, cells_of, count_of, softmax

_DRAWS, _WORK = (10_000, 40_000), 8e6  # draws, so that draws * classes * columns is this at most
_STEPS = 80  # of the quasi-Newton method, for each of the two fits
_DEVIATION = 1.0  # of the weights of single columns
_DOUBT = 0.1  # variance of the mixture's tables of a column and the class, over the released ones'
_DEVIATIONS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])  # of the weights of a pair
_LEAST_EVIDENCE = 3.0
_MOST_PAIRS = 30
_LEAST_INFORMATION = 0.1  # rows: a cell without any tells nothing, and gets no weight


@dataclass(frozen=True, eq=False)
class _Sums:
    """A term, the rows of each class that its cells should have, and a penalty on its weights."""

    term: Term
    wanted: NDArray[np.float64]  # (cells, C)
    penalty: NDArray[np.float64]  # (cells, C)


def fit_outcome(
    mixture: Mixture, tables: NoisyTables, class_counts: Floats, seed: int = 0
) -> Outcome | None:
    """Fit terms for single columns, then for pairs of columns that tell more together.

    None where there is one class, or where no pairs were released: then the mixture is a naive
    Bayes classifier, which is log-linear already.
    """
    columns = [column for column, size in enumerate(mixture.sizes) if size > 1]
    if len(class_counts) < 2 or not tables.pairs or not columns:
        return None
    fit = _Fit(mixture, tables, np.asarray(class_counts, np.float64), seed, len(columns))
    singles = [fit.single(column) for column in columns]
    outcome = fit.solved(singles)
    pairs = fit.pairs(outcome)
    return fit.solved([*singles, *pairs], outcome) if pairs else outcome


class _Fit:
    """Draws of a mixture, in units of rows, and what is asked of their classes."""

    def __init__(
        self,
        mixture: Mixture,
        tables: NoisyTables,
        counts: NDArray[np.float64],
        seed: int,
        columns: int,
    ) -> None:
        draws = int(np.clip(_WORK / (len(counts) * columns), *_DRAWS))
        self._mixture, self._tables, self._counts = mixture, tables, counts
        self._columns = columns
        self._shares = counts / counts.sum()
        self._groups = mixture.sample(draws, np.random.default_rng(seed))[1]
        self._unit = counts.sum() / draws

    def single(self, column: int) -> _Sums:
        """What the mixture says of a column and the class."""
        mixture, size = self._mixture, self._mixture.sizes[column]
        table = mixture.weights @ mixture.probabilities[:, mixture.blocks[column]]
        table = self._counts * np.asarray(table, np.float64).T
        rows = self._unit * np.bincount(self._groups[:, column], minlength=size)[:, None]
        wanted = rows * table / np.maximum(table.sum(axis=1, keepdims=True), 1e-12)
        # As many released tables show the column, each with as many cells to a group.
        noise = self._tables.sigma**2 * float(np.mean(mixture.sizes)) / max(self._columns - 1, 1)
        information = rows * self._shares * (1 - self._shares)
        return _Sums((column,), wanted, _penalty(_DOUBT * noise, information, _DEVIATION))

    def pairs(self, outcome: Outcome) -> list[_Sums]:
        """Find the pairs of columns that tell more of the class than an outcome has."""
        expected = self._unit * outcome.shares(self._groups)
        found = [self._pair(term, expected) for term in self._tables.pairs]
        found.sort(key=lambda pair: -pair[0])
        return [sums for evidence, sums in found[:_MOST_PAIRS] if evidence > _LEAST_EVIDENCE]

    def _pair(self, term: tuple[int, int], expected: NDArray[np.float64]) -> tuple[float, _Sums]:
        """Compare the classes' shares in the cells of a released table with what is expected."""
        sizes, classes = self._mixture.sizes, len(self._counts)
        cells, size = cells_of(term, self._groups, sizes), count_of(term, sizes)
        held = np.stack(
            [np.bincount(cells, weights=each, minlength=size) for each in expected.T], axis=1
        )
        rows = held.sum(axis=1, keepdims=True)
        share = np.where(rows > 0, held / np.maximum(rows, 1e-12), self._shares)
        counts = np.asarray(self._tables.pairs[term], np.float64).reshape(classes, size).T
        departure = counts - counts.sum(axis=1, keepdims=True) * share
        noise = self._tables.sigma**2 * ((1 - share) ** 2 + (classes - 1) * share**2)
        information = rows * share * (1 - share)
        variance = noise + information
        logs = np.empty(len(_DEVIATIONS))
        for place, deviation in enumerate(_DEVIATIONS):
            signal = (information * deviation) ** 2 / variance
            gain = departure**2 / variance * signal / (1 + signal) - np.log1p(signal)
            # The departures of a cell's classes sum to zero: one of them is not its own.
            logs[place] = 0.5 * gain.sum() * (classes - 1) / classes
        weights = np.exp(logs - logs.max())
        evidence = float(logs.max() + np.log(weights.mean()))
        deviation = float(np.sqrt(weights @ _DEVIATIONS**2 / weights.sum()))
        return evidence, _Sums(term, held + departure, _penalty(noise, information, deviation))

    def solved(self, sums: list[_Sums], start: Outcome | None = None) -> Outcome:
        """Find the weights of all terms together, from those of an outcome with fewer terms."""
        sizes, base = self._mixture.sizes, np.log(np.maximum(self._shares, 1e-300))
        wanted = np.concatenate([each.wanted for each in sums])
        penalty = np.concatenate([each.penalty for each in sums])
        ends = np.cumsum([len(each.wanted) for each in sums])
        places = [
            end - len(each.wanted) + cells_of(each.term, self._groups, sizes)
            for each, end in zip(sums, ends, strict=True)
        ]
        draws = len(self._groups)
        design = csr_array(
            (
                np.ones(draws * len(sums)),
                np.stack(places, axis=1).ravel(),
                np.arange(0, draws * len(sums) + 1, len(sums)),
            ),
            shape=(draws, len(wanted)),
        )
        turned = design.T.tocsr()
        rows = self._unit * np.asarray(turned.sum(axis=1)).reshape(-1, 1)
        # Near what the curvature is, so that all weights move alike.
        scale = 1 / np.sqrt(penalty + 2 * rows * self._shares * (1 - self._shares))

        def loss(scaled: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            weights = scaled.reshape(wanted.shape) * scale
            logits = base + design @ weights
            highest = logits.max(axis=1)
            log_sums = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
            value = self._unit * log_sums.sum() - (weights * wanted).sum()
            slope = self._unit * (turned @ softmax(logits)) - wanted + penalty * weights
            return float(value + (penalty * weights**2).sum() / 2), (slope * scale).ravel()

        first = np.zeros(wanted.shape)
        if start is not None:
            first[: len(start.weights)] = start.weights
        found = minimize(
            loss, (first / scale).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
        )
        weights = found.x.reshape(wanted.shape) * scale
        return Outcome(base, sizes, tuple(each.term for each in sums), weights)


def _penalty(
    noise: NDArray[np.float64] | float, information: NDArray[np.float64], deviation: float
) -> NDArray[np.float64]:
    known = np.maximum(information, _LEAST_INFORMATION)
    return np.asarray((1 + noise / known) / deviation**2)
