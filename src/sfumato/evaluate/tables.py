"""One call that measures a synthetic table against the real one in every way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.evaluate.association import association_matrix
from sfumato.evaluate.coded_table import CodedTable
from sfumato.evaluate.coverage import coverage
from sfumato.evaluate.evaluation import (
    Associations,
    ColumnComparison,
    MarginalComparison,
    TableEvaluation,
)
from sfumato.evaluate.histograms import histogram
from sfumato.evaluate.marginals import Binned, marginal_errors
from sfumato.evaluate.measure import Compared
from sfumato.evaluate.measures import TABLE_MEASURES
from sfumato.evaluate.summary import (
    association_headline,
    pair_headline,
    utility_headline,
    weaknesses,
)
from sfumato.evaluate.utility import Utility, train_on_synthetic
from sfumato.progress import Progress, silent
from sfumato.schema import Schema

FAST_ROWS = 20_000
HELD_OUT = 0.2
_MOST_PAIRS = 1_000


def evaluate_table(
    real: Any,
    synthetic: Any,
    schema: Schema,
    target: str | None = None,
    *,
    test: Any | None = None,
    full: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> TableEvaluation:
    """Measure how good a synthetic table is.

    Everything here reads real rows, so the result is as private as they are.

    Parameters
    ----------
    real, synthetic, test
        Frames or files. Without `test`, a fifth of the real rows is held out for testing.
    target
        The column that learners are to predict; without one that part is left out.
    full
        All rows, all pairs of columns and the papers' twelve classifiers on every core, instead
        of at most 20,000 rows and three classifiers.
    """
    progress("reading", None)
    most = None if full else FAST_ROWS
    known = CodedTable.of(real, schema, "real data").at_most(most, seed)
    made = CodedTable.of(synthetic, schema, "synthetic data").at_most(most, seed)
    if test is None:
        held, train = known.split(HELD_OUT, seed)
    else:
        held, train = CodedTable.of(test, schema, "test data").at_most(most, seed), known
    if target is not None:
        known.codec.index(target)  # an unknown target is refused before any work is done

    progress("comparing columns", 0.05)
    columns = _columns(known, made)
    marginals = _marginals(known, made, held, train, None if full else _MOST_PAIRS, seed)
    associations = _associations(known, made, seed)
    compared = Compared(known, made, train, held, full, seed)
    findings = {}
    for number, measure in enumerate(TABLE_MEASURES):
        progress(measure.stage, 0.15 + 0.25 * number / len(TABLE_MEASURES))
        findings[measure.name] = measure.find(compared)
    utility = None
    if target is not None:
        utility = train_on_synthetic(
            made,
            held,
            train,
            schema,
            target,
            "twelve" if full else "fast",
            seed=seed,
            jobs=-1 if full else 1,
            progress=lambda stage, part: progress(stage, 0.4 + 0.6 * (part or 0.0)),
        )
    headlines = [
        *([utility_headline(utility)] if utility else []),
        *([pair_headline(marginals[2])] if 2 in marginals else []),
        association_headline(associations),
        *(line for found in findings.values() for line in found.headlines),
    ]
    return TableEvaluation(
        rows={"real": len(known), "synthetic": len(made), "test": len(held)},
        headlines=tuple(line for line in headlines if math.isfinite(line.value)),
        weaknesses=(
            *weaknesses(columns, associations, known, made, target),
            *(sentence for found in findings.values() for sentence in found.weaknesses),
        ),
        notes=(
            *_notes(full, marginals, utility),
            *(note for found in findings.values() for note in found.notes),
        ),
        findings=findings,
        full=full,
        seed=seed,
        columns=columns,
        marginals=marginals,
        associations=associations,
        utility=utility,
        utility_mean=utility.mean if utility else {},
    )


def _columns(real: CodedTable, synthetic: CodedTable) -> tuple[ColumnComparison, ...]:
    binned = Binned.of(real, synthetic)
    covered = coverage(real, synthetic)
    return tuple(
        ColumnComparison(
            name=name,
            kind="category" if cells.is_category else "number",
            error=binned.error([index]),
            coverage=covered[name],
            histogram=histogram(index, {"real": real, "synthetic": synthetic}),
        )
        for index, (name, cells) in enumerate(zip(real.names, real.codec.columns, strict=True))
    )


def _marginals(
    real: CodedTable,
    synthetic: CodedTable,
    held: CodedTable,
    train: CodedTable,
    most_pairs: int | None,
    seed: int,
) -> dict[int, MarginalComparison]:
    found, fresh, independent = (
        marginal_errors(first, second, most_pairs=most_pairs, seed=seed)
        for first, second in ((real, synthetic), (train, held), (real, real.shuffled(seed)))
    )
    return {
        k: MarginalComparison(error=error, fresh=fresh[k].mean, independent=independent[k].mean)
        for k, error in found.items()
    }


def _associations(real: CodedTable, synthetic: CodedTable, seed: int) -> Associations:
    wanted, found, shuffled = (
        np.round(association_matrix(frame), 6) for frame in (real, synthetic, real.shuffled(seed))
    )
    return Associations(
        names=real.names,
        real=tuple(map(tuple, wanted.tolist())),
        synthetic=tuple(map(tuple, found.tolist())),
        difference=tuple(map(tuple, np.abs(found - wanted).round(6).tolist())),
        mean_difference=_off_diagonal(np.abs(found - wanted)),
        independent=_off_diagonal(np.abs(shuffled - wanted)),
    )


def _off_diagonal(matrix: NDArray[np.float64]) -> float:
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    return float(pairs.mean()) if len(pairs) else 0.0


def _notes(
    full: bool,
    marginals: dict[int, MarginalComparison],
    utility: Utility | None,
) -> tuple[str, ...]:
    notes = []
    if not full:
        notes.append(
            f"A fast evaluation: at most {FAST_ROWS:,} rows of each table and three learners."
        )
    for k, marginal in marginals.items():
        if marginal.error.counted < marginal.error.of:
            notes.append(
                f"Of the {marginal.error.of:,} sets of {k} columns, {marginal.error.counted:,} "
                "drawn at random were compared."
            )
    return (*notes, *(utility.notes if utility else ()))
