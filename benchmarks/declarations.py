"""What does it bring to say more in the schema, or less?

    python benchmarks/declarations.py targets      # with a target and without one
    python benchmarks/declarations.py constraints  # a derived column, and an order
    python benchmarks/declarations.py stays        # days of admission and discharge
    python benchmarks/declarations.py prefixes     # thousands of codes
    python benchmarks/declarations.py bounds       # bounds that are found instead of public ones

epsilon = 1, delta = 1e-5, add-remove. Rows are drawn from the training split, and compared with
others of it. Needs the benchmark data (SFUMATO_DATA). Without an argument, all of it.
"""

from __future__ import annotations

import sys
from datetime import datetime
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from harness import Section, digits, mark, result, table, timed, write_result
from sfumato.constraints import Derived, Order
from sfumato.datasets import patients, patients_schema
from sfumato.evaluation.association import association_matrix
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.marginals import Binned, marginal_error
from sfumato.schema import PRIVATE, Categorical, Numeric, OpenNumber, Schema
from tables import prepare

BUDGET = sf.Budget(epsilon=1, delta=1e-5)
ROWS = {"adult": 8000, "census": 8000, "covtype": 8000, "intrusion": 8000, "epileptic": 4600}
SEEDS = 3
MOST_SETS = 300


def split(name: str, rows: int) -> tuple[pa.Table, pa.Table, Schema, str]:
    """Give private rows, as many others, the schema and the target."""
    table = prepare(name)
    order = np.random.default_rng(5).permutation(table.train.num_rows)
    parts = [table.train.take(order[start : start + rows]) for start in (0, rows)]
    return parts[0], parts[1], table.schema, table.target


def measured(real: pa.Table, synthetic: pa.Table, schema: Schema) -> dict[str, float]:
    """Compare with rows that were not fitted: errors of columns, pairs and associations.

    `quality` is the mean over columns and over pairs as SDMetrics defines them: one minus the
    distance of distributions (Kolmogorov and Smirnov's for numbers), one minus half the difference
    of correlations, and one minus the distance of tables in ten bins of equal width.
    """
    frames = [CodedTable.of(rows, schema.unconstrained) for rows in (real, synthetic)]
    binned = Binned.of(*frames)
    wanted, found = (association_matrix(frame) for frame in frames)
    above = np.triu_indices(len(wanted), 1)
    names = frames[0].names
    cells = [_cells(frames, index) for index in range(len(names))]
    shapes = [_shape(frames, index, cells[index]) for index in range(len(names))]
    pairs = [
        _correlated(frames, i, j)
        if {i, j} <= set(frames[0].numeric)
        else _tables(cells[i], cells[j])
        for i, j in combinations(range(len(names)), 2)
    ]
    return {
        "quality": (float(np.mean(shapes)) + float(np.mean(pairs))) / 2,
        "tvd_1": marginal_error(binned, 1).mean,
        "tvd_2": marginal_error(binned, 2, MOST_SETS).mean,
        "tvd_3": marginal_error(binned, 3, MOST_SETS).mean,
        "association_error": float(np.abs(wanted - found)[above].mean()),
    }


def _cells(frames: list[CodedTable], index: int) -> list[np.ndarray]:
    if index not in frames[0].numeric:
        return [frame.codes[:, index].astype(np.int64) for frame in frames]
    numbers = [frame.number(frame.names[index]) for frame in frames]
    known = numbers[0][np.isfinite(numbers[0])]
    edges = np.linspace(known.min(), known.max(), 11)[1:-1]
    return [np.where(np.isfinite(n), np.searchsorted(edges, n), 10) for n in numbers]


def _shape(frames: list[CodedTable], index: int, cells: list[np.ndarray]) -> float:
    if index not in frames[0].numeric:
        return _tables(cells, [np.zeros_like(codes) for codes in cells])
    one, other = (frame.number(frame.names[index]) for frame in frames)
    one, other = np.sort(one[np.isfinite(one)]), np.sort(other[np.isfinite(other)])
    places = np.concatenate([one, other])
    ranks = [np.searchsorted(n, places, side="right") / max(len(n), 1) for n in (one, other)]
    return 1 - float(np.abs(ranks[0] - ranks[1]).max())


def _tables(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    width = int(max(codes.max() for codes in second)) + 1
    joint = [a * width + b for a, b in zip(first, second, strict=True)]
    size = int(max(codes.max() for codes in joint)) + 1
    shares = [np.bincount(codes, minlength=size) / len(codes) for codes in joint]
    return 1 - float(np.abs(shares[0] - shares[1]).sum()) / 2


def _correlated(frames: list[CodedTable], i: int, j: int) -> float:
    found = []
    for frame in frames:
        x, y = frame.number(frame.names[i]), frame.number(frame.names[j])
        both = np.isfinite(x) & np.isfinite(y)
        varies = both.sum() > 1 and x[both].std() > 0 and y[both].std() > 0
        found.append(float(np.corrcoef(x[both], y[both])[0, 1]) if varies else 0.0)
    return 1 - abs(found[0] - found[1]) / 2


def run(rows: pa.Table, other: pa.Table, schema: Schema, target: str | None, seed: int) -> Any:
    with timed() as taken:
        model = sf.Pairs(target=target, seed=seed).fit(rows, schema, BUDGET)
        synthetic = model.sample(seed=seed)
    figures = measured(other, synthetic, model.schema)
    return synthetic, figures | {"seconds": taken["seconds"]}


def mean(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}


def targets() -> None:
    result: dict[str, Any] = {}
    for name, count in ROWS.items():
        rows, other, schema, target = split(name, count)
        seeds = 1 if name == "epileptic" else SEEDS
        for label, named in (("with", target), ("without", None)):
            runs = [run(rows, other, schema, named, seed)[1] for seed in range(seeds)]
            result.setdefault(name, {"rows": count, "seeds": seeds})[label] = mean(runs)
            print(name, label, result[name][label], flush=True)
    write_result("declarations_targets", result)


def constraints() -> None:
    """Adult's education follows from its number; a patient's blood pressures have an order."""
    result: dict[str, Any] = {}
    rows, other, schema, target = split("adult", 8000)
    number, level = "education-num", "education"
    known = {
        str(k): v for k, v in zip(*(rows[n].to_pylist() for n in (number, level)), strict=True)
    }
    follows = Derived(column=level, of=(number,), mapping=dict(sorted(known.items())))

    def contradicts(made: pa.Table) -> float:
        told = zip(*_columns(made, number, level), strict=True)
        return float(np.mean([known.get(str(grade)) != name for grade, name in told]))

    result["adult"] = _both(rows, other, schema, target, follows, contradicts)
    hospital = patients_schema()
    wider = hospital.columns["systolic"].model_copy(update={"low": 30.0})
    hospital = hospital.model_copy(update={"columns": hospital.columns | {"systolic": wider}})
    result["patients"] = _both(
        patients(8000, seed=1), patients(8000, seed=2), hospital, "readmitted",
        Order(order=("diastolic", "systolic")),
        lambda made: np.mean(np.subtract(*_columns(made, "systolic", "diastolic")) < 0),
    )  # fmt: skip
    write_result("declarations_constraints", result)


def stays() -> None:
    """Patients with the day of their discharge, in place of the days in between."""
    schema = patients_schema()
    kept = {n: c for n, c in schema.columns.items() if n != "days_in_hospital"}
    until = kept["admitted"].model_copy(update={"high": datetime(2025, 12, 31)})
    whole = Schema(columns=kept | {"discharged": until})
    rows, other = (_discharged(patients(4000, seed=seed)) for seed in (1, 2))
    found = _both(
        rows, other, whole, "readmitted", Order(order=("admitted", "discharged")),
        lambda made: np.mean(_days(made) < 0), lambda made: _apart(_days(other), _days(made)),
    )  # fmt: skip
    write_result("declarations_stays", found)


def _discharged(table: pa.Table) -> pa.Table:
    days = table["days_in_hospital"].to_numpy()
    last = table["admitted"].to_numpy() + days.astype("timedelta64[D]")
    return table.append_column("discharged", pa.array(last)).drop_columns(["days_in_hospital"])


def _days(table: pa.Table) -> np.ndarray:
    gap = table["discharged"].to_numpy() - table["admitted"].to_numpy()
    return gap.astype("timedelta64[D]").astype(np.int64)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    """Give the distance of two distributions of whole numbers (total variation)."""
    low, high = min(one.min(), other.min()), max(one.max(), other.max())
    shares = [np.bincount(n - low, minlength=high - low + 1) / len(n) for n in (one, other)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _columns(table: pa.Table, *names: str) -> list[list[Any]]:
    return [table[name].to_pylist() for name in names]


def _both(
    rows: pa.Table,
    other: pa.Table,
    schema: Schema,
    target: str,
    constraint: Any,
    broken: Any,
    error: Any = lambda made: 0.0,
) -> dict[str, Any]:
    found = {}
    said = Schema(columns=schema.columns, constraints=(constraint,))
    for label, declared in (("without", schema), ("with", said)):
        runs = []
        for seed in range(SEEDS):
            made, figures = run(rows, other, declared, target, seed)
            runs.append(figures | {"broken": float(broken(made)), "error": float(error(made))})
        found[label] = mean(runs)
        print(constraint.in_words(), label, found[label], flush=True)
    return {"constraint": constraint.in_words(), "rows": rows.num_rows, **found}


def prefixes() -> None:
    """Zip codes by the thousand, of which each region has incomes of its own; simulated."""
    chosen = np.sort(np.random.default_rng(0).choice(100_000, 8795, replace=False))
    rng = np.random.default_rng(1)
    weights = (rng.pareto(1.2, 8795) + 0.05) * rng.gamma(1, 1, 1000)[chosen // 100]
    names = [f"{code:05d}" for code in chosen]
    real, other = (_zips(names, weights / weights.sum(), seed) for seed in (1, 2))
    result: dict[str, Any] = {"rows": real.num_rows, "codes": len(names)}
    for prefix in (None, 2, 3):
        columns = {
            "zip": Categorical(values=tuple(names), prefix=prefix),
            "income": Numeric(low=0, high=10_000),
        }
        runs = []
        for seed in range(SEEDS):
            model = sf.Pairs(seed=seed).fit(real, Schema(columns=columns), BUDGET)
            runs.append(_compared(other, model.sample(seed=seed)))
        result[f"prefix {prefix}"] = mean(runs)
        print(prefix, result[f"prefix {prefix}"], flush=True)
    result["fresh rows"] = _compared(other, real)
    write_result("declarations_prefixes", result)


def _zips(names: list[str], weights: np.ndarray, seed: int, rows: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(names), rows, p=weights)
    region = np.array([int(name[0]) for name in names])[drawn]
    return pa.table({"zip": np.array(names)[drawn], "income": rng.normal(3000 + 300 * region, 500)})


def _compared(real: pa.Table, made: pa.Table) -> dict[str, float]:
    found = {}
    codes = [table["zip"].to_pylist() for table in (real, made)]
    for letters in (1, 3, 5):
        cut = np.array([code[:letters] for each in codes for code in each])
        place = np.unique(cut, return_inverse=True)[1]
        sides = np.split(place, [len(codes[0])])
        shares = [np.bincount(side, minlength=place.max() + 1) / len(side) for side in sides]
        found[f"error of {letters} letters"] = float(np.abs(shares[0] - shares[1]).sum() / 2)
    regions = [int(code[0]) for code in codes[1]]
    found["correlation"] = float(np.corrcoef(regions, made["income"].to_numpy())[0, 1])
    return found


def bounds() -> None:
    """Let the bounds of Adult's numbers be found, or give them, or give them ten times as wide."""
    rows, other, schema, target = split("adult", 8000)
    numbers = {n: c for n, c in schema.columns.items() if isinstance(c, Numeric)}
    asked = {
        n: OpenNumber(low=PRIVATE, high=PRIVATE, integer=c.integer) for n, c in numbers.items()
    }
    wide = {n: c.model_copy(update={"high": 10 * c.high}) for n, c in numbers.items()}
    result: dict[str, Any] = {"rows": rows.num_rows}
    for label, columns in (("public", {}), ("ten times as wide", wide), ("found", asked)):
        declared = Schema(columns=schema.columns | columns)
        runs = []
        for seed in range(SEEDS):
            model = sf.Pairs(target=target, seed=seed).fit(rows, declared, BUDGET)
            # All are measured through the public bounds.
            runs.append(measured(other, model.sample(seed=seed), schema))
        result[label] = mean(runs)
        print(label, result[label], flush=True)
    write_result("declarations_bounds", result)


PARTS = {
    "targets": targets,
    "constraints": constraints,
    "stays": stays,
    "prefixes": prefixes,
    "bounds": bounds,
}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


def _rows(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [(k, v) for k, v in result(name).items() if k not in ("machine", "measured")]


def targets_body() -> str:
    found = result("declarations_targets")
    rows = [
        [name + mark("pairs", found), f"{run['rows']:,}", label,
         *digits(run[label], "quality", "tvd_2", "association_error"),
         f"{run[label]['seconds']:.1f} s", str(run["seeds"])]
        for name, run in _rows("declarations_targets")
        for label in ("with", "without")
    ]  # fmt: skip
    heads = ["table", "rows", "a target", "quality", "2-way", "associations", "time", "seeds"]
    return "#### With a target and without one\n\n" + table(heads, rows)


def constraints_body() -> str:
    found = result("declarations_constraints")
    rows = [
        [f"{name}: {run['constraint']}{mark('pairs', found)}", label, f"{run[label]['broken']:.1%}",
         *digits(run[label], "quality", "tvd_2", "tvd_3", "association_error")]
        for name, run in _rows("declarations_constraints")
        for label in ("without", "with")
    ]  # fmt: skip
    heads = ["constraint", "said", "rows that break it", "quality", "2-way", "3-way",
             "associations"]  # fmt: skip
    return "#### Constraints\n\n8,000 rows, three seeds.\n\n" + table(heads, rows)


def stays_body() -> str:
    found = result("declarations_stays")
    rows = [
        [label + mark("pairs", found), *(f"{found[label][k]:.1%}" for k in ("broken", "error")),
         *digits(found[label], "quality", "tvd_2", "tvd_3")]
        for label in ("without", "with")
    ]  # fmt: skip
    heads = ["said", "rows that end before they begin", "error of durations", "quality", "2-way",
             "3-way"]  # fmt: skip
    return (
        f"#### {found['constraint']}\n\n{found['rows']:,} patients with the days of admission and "
        f"of "
        "discharge in place of the days in hospital, three seeds. The error of durations is the "
        "total "
        "variation of whole days.\n\n" + table(heads, rows)
    )


def prefixes_body() -> str:
    found = result("declarations_prefixes")
    keys = [*(f"error of {count} letters" for count in (1, 3, 5)), "correlation"]
    rows = [
        [label + mark("pairs", found), *digits(found[label], *keys)]
        for label in ("prefix None", "prefix 2", "prefix 3", "fresh rows")
    ]
    return (
        f"#### Thousands of codes\n\n{found['codes']:,} simulated zip codes, {found['rows']:,} "
        f"rows, three "
        "seeds. The correlation is that of the first digit with an income that depends on it. A "
        "prefix "
        "keeps it, and makes whole codes less exact.\n\n" + table(["", *keys], rows)
    )


def bounds_body() -> str:
    found = result("declarations_bounds")
    rows = [
        [label + mark("pairs", found),
         *digits(found[label], "quality", "tvd_1", "tvd_2", "association_error")]
        for label in ("public", "ten times as wide", "found")
    ]  # fmt: skip
    heads = ["bounds of numbers", "quality", "1-way", "2-way", "associations"]
    return f"#### Bounds\n\nAdult, {found['rows']:,} rows, three seeds.\n\n" + table(heads, rows)


def body() -> str:
    parts = (targets_body, constraints_body, stays_body, prefixes_body, bounds_body)
    return "\n".join(part() for part in parts)


SECTION = Section(
    "More and less in the schema",
    "declarations.py",
    """\
`pairs` at epsilon = 1. Synthetic rows are compared with rows of the training split that were
not fitted, which differ from fitted ones by chance, too. *Quality*: the mean over columns and
over pairs as SDMetrics defines them. *1-way* to *3-way*: total variation error, numbers in 20
quantile bins.""",
    body,
)


if __name__ == "__main__":
    main()
