"""One call that measures a synthetic table against the real one in every way."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.data.inspection import reviewed
from sfumato.data.sources import table_rows
from sfumato.errors import SfumatoError
from sfumato.evaluation.association import association_matrix
from sfumato.evaluation.chance import beyond_chance
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.coverage import coverage
from sfumato.evaluation.evaluation import (
    Associations,
    ColumnComparison,
    MarginalComparison,
    TableEvaluation,
)
from sfumato.evaluation.histograms import histogram
from sfumato.evaluation.marginals import Binned, marginal_errors
from sfumato.evaluation.measure import Compared
from sfumato.evaluation.measures import TABLE_MEASURES
from sfumato.evaluation.summary import (
    association_headline,
    pair_headline,
    utility_headline,
    weaknesses,
)
from sfumato.evaluation.utility import Utility, train_on_synthetic
from sfumato.evaluation.widened import widened
from sfumato.progress import Progress, silent
from sfumato.schema import Schema

FAST_ROWS = 20_000
HELD_OUT = 0.2
DEALS = 3
"""How often real rows are dealt out anew to see what chance does to associations."""
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
    schema
        The names, kinds and spellings of the columns. Real values are taken as they are, also
        beyond its bounds and listed values.
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
    declared = schema
    if schema.columns and not schema.open:
        real = _in_memory(real, schema)
        schema = widened(schema, real)
    known = CodedTable.of(real, schema, "real data").at_most(most, seed)
    made = CodedTable.of(synthetic, schema, "synthetic data").at_most(most, seed)
    if test is None:
        held, train = known.split(HELD_OUT, seed)
    else:
        held, train = CodedTable.of(test, schema, "test data").at_most(most, seed), known
    if target is not None:
        known.codec.index(target)  # an unknown target is refused before any work is done

    progress("comparing columns", 0.05)
    compared = Compared(known, made, train, held, full, seed)
    columns = _columns(known, made)
    marginals = _marginals(compared)
    associations = _associations(compared)
    findings = {}
    for number, measure in enumerate(TABLE_MEASURES):
        progress(measure.stage, 0.15 + 0.25 * number / len(TABLE_MEASURES))
        findings[measure.name] = measure.find(compared)
    utility = None
    if target is not None:
        utility = train_on_synthetic(
            made.at_most(len(train), seed),  # more rows alone teach more
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
        *([association_headline(associations)] if 2 in marginals else []),
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
            *_notes(compared, marginals, utility),
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
        misfits=_misfits(real, declared),
    )


def _in_memory(real: Any, schema: Schema) -> Any:
    """Read the columns of a file or a database once, for all that looks at them."""
    if not isinstance(real, str | Path | bytes):
        return real
    unit = schema.unit_column
    names = [*schema.modelled, *([unit] if unit else [])]
    try:
        return pa.Table.from_batches(table_rows(real, names, schema.csv).batches(names))
    except SfumatoError as error:
        raise SfumatoError(f"the real data: {error}") from None
    except ValueError:  # there is no batch to take the columns from
        raise SfumatoError("the real data have no rows, so there is nothing to evaluate") from None


def _misfits(real: Any, schema: Schema) -> tuple[str, ...]:
    """Say what of the real rows the schema has no place for: a model fitted with it lacks it."""
    review, _ = reviewed(real, schema)
    return tuple(review.misfit_sentences())


def _columns(real: CodedTable, synthetic: CodedTable) -> tuple[ColumnComparison, ...]:
    binned = Binned.of(real, synthetic)
    covered = coverage(real, synthetic)
    return tuple(
        ColumnComparison(
            name=name,
            kind="category" if cells.is_category else "number",
            error=beyond_chance(*binned.compare([index])),
            coverage=covered[name],
            histogram=histogram(index, {"real": real, "synthetic": synthetic}),
        )
        for index, (name, cells) in enumerate(zip(real.names, real.codec.columns, strict=True))
    )


def _marginals(compared: Compared[CodedTable]) -> dict[int, MarginalComparison]:
    made, held = compared.same_size()
    found, fresh, independent = (
        marginal_errors(
            compared.train,
            rows,
            most_pairs=None if compared.full else _MOST_PAIRS,
            seed=compared.seed,
        )
        for rows in (made, held, held.shuffled(compared.seed))
    )
    return {
        k: MarginalComparison(
            error=error,
            fresh=fresh[k].beyond_chance,
            independent=independent[k].beyond_chance,
        )
        for k, error in found.items()
    }


def _associations(compared: Compared[CodedTable]) -> Associations:
    """Compare associations, less the mean difference of real rows that are dealt out anew."""
    wanted, found = (
        np.round(association_matrix(frame), 6) for frame in (compared.real, compared.synthetic)
    )
    made, held = compared.same_size()
    pool = compared.train.joined(held)
    deals = [pool.split(len(held) / len(pool), compared.seed + deal) for deal in range(DEALS)]
    chance = float(
        np.mean(
            [_gap(association_matrix(first), association_matrix(rest)) for first, rest in deals]
        )
    )
    train = association_matrix(compared.train)
    synthetic, fresh, independent = (
        max(0.0, _gap(train, association_matrix(frame)) - chance)
        for frame in (made, held, held.shuffled(compared.seed))
    )
    return Associations(
        names=compared.real.names,
        real=tuple(map(tuple, wanted.tolist())),
        synthetic=tuple(map(tuple, found.tolist())),
        difference=tuple(map(tuple, np.abs(found - wanted).round(6).tolist())),
        mean_difference=synthetic,
        fresh=fresh,
        independent=independent,
        chance=chance,
    )


def _gap(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Give the mean absolute difference off the diagonal."""
    pairs = np.abs(first - second)[np.triu_indices(len(first), 1)]
    return float(pairs.mean()) if len(pairs) else 0.0


def _notes(
    compared: Compared[CodedTable],
    marginals: dict[int, MarginalComparison],
    utility: Utility | None,
) -> tuple[str, ...]:
    notes = [
        f"Errors of samples depend on their size: {len(compared.same_size()[0]):,} rows each, "
        f"synthetic, held-out real and shuffled ones, were compared with {len(compared.train):,} "
        "other real rows."
    ]
    if not compared.full:
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
