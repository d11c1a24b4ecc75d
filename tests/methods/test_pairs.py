"""`pairs` keeps its bounds, survives extreme tables, and models what it is given."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.data.table_codec import TableCodec
from sfumato.datasets import patients, patients_schema
from sfumato.errors import SfumatoError
from sfumato.evaluation.report import certificate_html
from sfumato.methods.pairs.grouped_column import GroupedColumn
from sfumato.methods.pairs.method import PairsModel
from sfumato.privacy.audit import assert_replays
from sfumato.schema import Boolean, Categorical, Datetime, Numeric, Schema
from support import SCHEMA, people, seeded_fit

SMALL = {"components": 8, "restarts": 1}


def fit(table: pa.Table, schema: Schema, epsilon: float = 5, **settings: object) -> sf.Model:
    method = sf.Pairs(**{**SMALL, **settings})  # type: ignore[arg-type]
    return seeded_fit(method, table, schema, sf.Budget(epsilon=epsilon))


def wide(rows: int, columns: int) -> tuple[pa.Table, Schema]:
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(columns)]
    table = pa.table({name: rng.integers(0, 4, rows) for name in names})
    return table, Schema(columns={name: Categorical(values=(0, 1, 2, 3)) for name in names})


@pytest.mark.parametrize("target", [None, "sick", "age"])
@pytest.mark.parametrize("relation", sf.Relation)
@pytest.mark.parametrize("rows", [60, 3000])
def test_record_and_replay(
    target: str | None,
    relation: sf.Relation,
    rows: int,
) -> None:
    codec = sf.Pairs().codec(SCHEMA)
    batch = codec.encode(people(rows).to_batches()[0])
    codes = batch.codes.copy()
    if relation is sf.Relation.ADD_REMOVE:
        neighbour = batch.where(np.arange(rows) != 7)
    else:
        codes[7] = codec.encode(people(1, seed=9).to_batches()[0]).codes[0]
        neighbour = type(batch)(codes, batch.unit)
    assert_replays(
        sf.Pairs(target=target, **SMALL),  # type: ignore[arg-type]
        [batch],
        [neighbour],
        SCHEMA,
        sf.Budget(epsilon=1, relation=relation),
    )


def test_record_and_replay_of_a_table_too_wide_for_its_rows() -> None:
    table, schema = wide(200, 30)
    method = sf.Pairs(target="c0", **SMALL)  # type: ignore[arg-type]
    batch = method.codec(schema).encode(table.to_batches()[0])
    rest = batch.where(np.arange(200) != 3)
    assert_replays(method, [batch], [rest], schema, sf.Budget(epsilon=1))


def test_record_and_replay_of_one_row_and_none() -> None:
    method = sf.Pairs(**SMALL)  # type: ignore[arg-type]
    batch = method.codec(SCHEMA).encode(people(1).to_batches()[0])
    assert_replays(method, [batch], [], SCHEMA, sf.Budget(epsilon=1))


def test_the_whole_budget_is_spent_and_no_more() -> None:
    for target in (None, "sick"):
        guarantee = fit(people(500), SCHEMA, 1, target=target).guarantee
        assert 0.999 < guarantee.epsilon <= 1 + 1e-9


def test_the_plan_is_an_upper_bound_of_what_happens() -> None:
    method = sf.Pairs(target="readmitted", **SMALL)  # type: ignore[arg-type]
    budget = sf.Budget(epsilon=10)
    planned = method.plan(patients_schema(), budget)
    happened = method.fit(patients(3000), patients_schema(), budget).guarantee
    assert planned.guarantee.epsilon <= 10 * (1 + 1e-9)
    largest = {spend.name: spend.dim for spend in planned.spends}
    assert all(spend.dim <= largest[spend.name] for spend in happened.spends)


@pytest.mark.parametrize(
    ("table", "schema"),
    [
        (people(50).select(["age"]), Schema(columns={"age": SCHEMA.columns["age"]})),
        (people(1), SCHEMA),
        (wide(200, 100)),
        (
            pa.table({"code": [str(i % 5000) for i in range(9000)], "x": [1.0] * 9000}),
            Schema(
                columns={
                    "code": Categorical(values=tuple(str(i) for i in range(5000))),
                    "x": Numeric(low=0, high=2),
                }
            ),
        ),
        (
            pa.table({"a": pa.nulls(40), "b": pa.nulls(40)}),
            Schema(
                columns={
                    "a": Numeric(low=0, high=1, nullable=True),
                    "b": Categorical(values=("x",), nullable=True),
                }
            ),
        ),
    ],
    ids=["one column", "one row", "100 columns", "5,000 categories", "all null"],
)
@pytest.mark.parametrize("epsilon", [0.01, 5.0])
def test_extreme_tables(table: pa.Table, schema: Schema, epsilon: float) -> None:
    first = next(iter(schema.columns))
    for target in (None, first):
        drawn = fit(table, schema, epsilon, target=target).sample(50)
        assert drawn.num_rows == 50
        assert drawn.column_names == list(schema.columns)
        codes = TableCodec(schema).encode(drawn.combine_chunks().to_batches()[0]).codes
        assert (codes >= 0).all()


def test_dependence_skew_and_atoms_survive() -> None:
    """At a large budget the figures below are off by noise far smaller than the margins."""
    rng = np.random.default_rng(0)
    rows = 20_000
    kind = rng.integers(0, 2, rows)
    schema = Schema(
        columns={
            "kind": Categorical(values=("a", "b")),
            "balance": Numeric(low=-100_000, high=200_000),
            "gain": Numeric(low=0, high=99_999, integer=True),
            "day": Datetime(low=datetime(2020, 1, 1), high=datetime(2024, 12, 31)),
        }
    )
    table = pa.table(
        {
            "kind": np.array(["a", "b"])[kind],
            "balance": rng.normal(np.where(kind, 1500.0, -1500.0), 300),
            "gain": np.where(rng.random(rows) < 0.9, 0, rng.integers(1, 20_000, rows)),
            "day": np.datetime64("2022-01-01") + rng.integers(0, 30, rows),
        }
    )
    drawn = fit(table, schema, 10, target="kind", components=20).sample(rows)
    assert abs(np.mean(np.array(drawn["gain"]) == 0) - 0.9) < 0.02
    balance, label = np.array(drawn["balance"]), np.array(drawn["kind"])
    assert abs(np.median(balance[label == "b"]) - 1500) < 150
    assert abs(np.median(balance[label == "a"]) + 1500) < 150
    days = drawn["day"].to_pylist()
    inside = [date(2021, 12, 1) < day < date(2022, 3, 1) for day in days]
    assert np.mean(inside) > 0.95


def test_given_values_are_met_and_shift_the_rest_as_the_model_says() -> None:
    model = fit(people(5000), SCHEMA, 50, target="sick")
    old = model.sample(20_000, given={"age": 75, "sick": True}, seed=1)
    assert set(old["age"].to_pylist()) == {75}
    assert set(old["sick"].to_pylist()) == {True}
    # The exact conditional of the model, from a large plain sample: standard error below 0.01.
    plain = model.sample(400_000, seed=2)
    kept = np.array(plain["town"])[np.array(plain["sick"])]
    given = np.array(model.sample(100_000, given={"sick": "true"}, seed=3)["town"])
    for town in ("Ulm", "Jena", "(other)"):
        assert abs(np.mean(kept == town) - np.mean(given == town)) < 0.03


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"town": "Rome"}, "'Rome' is not a value of column 'town'"),
        ({"age": 500}, "'500' is not a value"),
        ({"age": "old"}, "'old' is not a value"),
        ({"pay": "much"}, "'much' is not a value of column 'pay'"),
        ({"age": (70, 60)}, "column 'age', from 0 to 99, has no value in the range 70..60"),
        ({"age": (100, None)}, "column 'age', .* has no value in the range 100.."),
        ({"town": ("Jena", "Ulm")}, "column 'town' is a category"),
        ({"height": 3}, "no modelled column 'height'"),
    ],
)
def test_impossible_conditions_are_clear_errors(given: dict[str, object], message: str) -> None:
    model = fit(people(100), SCHEMA)
    with pytest.raises(SfumatoError, match=message):
        model.sample(5, given=given)  # type: ignore[arg-type]


def test_what_the_model_gives_no_probability_is_refused_by_name() -> None:
    model = fit(people(500), SCHEMA, target="sick")
    assert isinstance(model, PairsModel)
    mixture = replace(model.mixture, class_shares=np.array([1.0, 0.0]))
    healthy = replace(model, mixture=mixture, outcome=None)
    assert set(healthy.sample(9, given={"sick": [True, False]})["sick"].to_pylist()) == {False}
    with pytest.raises(SfumatoError, match="no row with what is given for 'age' and 'sick'"):
        healthy.sample(9, given={"age": (20, 30), "sick": True})


@pytest.fixture(scope="module")
def stays() -> sf.Model:
    """A model of columns of every kind that depend on each other."""
    rng = np.random.default_rng(0)
    rows = 4000
    level = rng.random(rows)
    days = (30 * level + rng.integers(0, 30, rows)).astype(int)
    table = pa.table(
        {
            "age": (60 * level + rng.integers(0, 40, rows)).astype(int),
            "cost": np.where(level < 0.3, 0, 9000 * level + rng.integers(0, 999, rows)).astype(int),
            "dose": pa.array(5 * level * rng.random(rows), mask=rng.random(rows) < 0.2),
            "day": np.datetime64("2020-01-01") + days,
            "minute": np.datetime64("2020-01-01T00:00:00") + (500_000 * level).astype(int),
            "ward": np.array(["a", "b", "c, d", "?"])[(4 * level * rng.random(rows)).astype(int)],
            "smoker": pa.array(level > rng.random(rows), mask=rng.random(rows) < 0.1),
        }
    )
    january, february = datetime(2020, 1, 1), datetime(2020, 2, 29)
    schema = Schema(
        columns={
            "age": Numeric(low=0, high=99, integer=True),
            "cost": Numeric(low=0, high=10_000, integer=True, bins=60),
            "dose": Numeric(low=0, high=5, bins=40, nullable=True),
            "day": Datetime(low=january, high=february),
            "minute": Datetime(low=january, high=datetime(2020, 1, 7), unit="minute", bins=30),
            "ward": Categorical(values=("a", "b", "c, d"), other=True, nullable=True),
            "smoker": Boolean(nullable=True),
        }
    )
    return fit(table, schema, 50, target="smoker")


@pytest.fixture(scope="module")
def drawn_freely(stays: sf.Model) -> pa.Table:
    return stays.sample(1_000_000, seed=1)


@pytest.mark.parametrize(
    "given",
    [
        {"age": (35, 61)},
        {"age": [40, 41, 45, 50, 51, 52, 53]},
        {"cost": (None, 1234)},
        {"cost": (777, None), "dose": (0.3333, 4)},
        {"dose": [None]},
        {"day": (date(2020, 1, 12), "2020-01-30")},
        {"minute": (datetime(2020, 1, 2, 3, 4), datetime(2020, 1, 4, 5, 6))},
        {"ward": ["c, d", "b"], "smoker": [False, None]},
        {"smoker": {True}, "age": (None, 70), "day": ("2020-01-05", None)},
    ],
)
def test_rows_meet_conditions_and_are_those_that_free_draws_would_leave(
    stays: sf.Model, drawn_freely: pa.Table, given: dict[str, Any]
) -> None:
    """Draws are independent within strata, so shares keep to the bound of Hoeffding.

    There are 9 conditions, and fewer than 400 cells to compare: the bound is set so that any of
    all these comparisons fails with probability below 1e-6.
    """
    rows = 200_000
    made = stays.sample(rows, given=given, seed=2)
    assert made.filter(meets(made, given)).num_rows == rows
    left = drawn_freely.filter(meets(drawn_freely, given))
    assert left.num_rows > 50_000
    codec = TableCodec(stays.schema, 24)
    theirs, ours = (
        codec.encode(table.combine_chunks().to_batches()[0]).codes for table in (left, made)
    )
    deviations = math.sqrt(math.log(4 * 9 * 400 / 1e-6) / 2)
    bound = deviations * (left.num_rows**-0.5 + rows**-0.5)
    for index, cells in enumerate(codec.columns):
        shares = [np.bincount(c[:, index], minlength=cells.size) / len(c) for c in (theirs, ours)]
        assert np.abs(shares[0] - shares[1]).max() < bound


def meets(table: pa.Table, given: dict[str, Any]) -> pa.Array:
    """Tell which rows have the wanted values, by comparing values."""
    kept = pa.repeat(pa.scalar(True), table.num_rows)
    for name, wanted in given.items():
        column = table[name].combine_chunks()
        if isinstance(wanted, tuple):
            for end, beyond in zip(wanted, (pc.less, pc.greater), strict=True):
                if end is not None:
                    typed = pa.scalar(end).cast(column.type)
                    kept = pc.and_(kept, pc.fill_null(pc.invert(beyond(column, typed)), False))
        else:
            kept = pc.and_(kept, pc.is_in(column, pa.array(list(wanted), column.type)))
    return kept


def test_a_saved_model_gives_the_same_rows_in_another_process(tmp_path: Path) -> None:
    model = fit(people(300), SCHEMA, target="sick")
    model.save(tmp_path / "m.sfumato")
    script = (
        "import sys, sfumato as sf, pyarrow.parquet as pq\n"
        "model = sf.load(sys.argv[1])\n"
        "pq.write_table(model.sample(40, seed=3), sys.argv[2])\n"
    )
    paths = [str(tmp_path / "m.sfumato"), str(tmp_path / "out.parquet")]
    subprocess.run([sys.executable, "-c", script, *paths], check=True)
    other = pa.parquet.read_table(paths[1])
    assert other.equals(model.sample(40, seed=3))
    loaded = sf.load(paths[0])
    assert loaded.guarantee == model.guarantee
    assert loaded.method == model.method
    for ours, theirs in zip(model.releases, loaded.releases, strict=True):
        assert np.array_equal(ours.values, theirs.values)


def test_what_noise_hides_is_guessed_and_said(tmp_path: Path) -> None:
    values = tuple("abcdefgh")
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.choice(["a", "b"], 5000), "y": rng.choice(["a", "b"], 5000)})
    schema = Schema(columns={name: Categorical(values=values) for name in ("x", "y")})
    model = fit(table, schema, 1, target="y")
    drawn = model.sample(5000)  # each is missed with a probability of exp(-6) at the most
    assert all(set(drawn[name].to_pylist()) == set(values) for name in ("x", "y"))
    assert 0 < model.guessed["x"] <= 0.01
    model.save(tmp_path / "m.sfumato")
    assert sf.load(tmp_path / "m.sfumato").guessed == model.guessed
    assert "are guessed by a public rule" in certificate_html(model)


def test_seeds_fix_sampling() -> None:
    model = fit(people(200), SCHEMA)
    assert model.sample(30, seed=1).equals(model.sample(30, seed=1))
    assert not model.sample(30, seed=1).equals(model.sample(30, seed=2))


def test_cells_are_drawn_within_groups_by_their_mass() -> None:
    """200,000 draws; each share is within 5 standard errors with probability 1 - 1e-6."""
    column = GroupedColumn(np.array([1.0, 3.0, 0.0, 0.0, 4.0]), np.array([0, 0, 1, 1, 0], np.int32))
    cells = column.draw_cells(np.repeat([0, 1], 100_000), np.random.default_rng(0))
    shares = np.bincount(cells, minlength=5) / 100_000
    assert np.abs(shares - [0.125, 0.375, 0.5, 0.5, 0.5]).max() < 0.008


def test_an_image_schema_is_refused() -> None:
    schema = Schema(images=sf.Images(height=2, width=2))
    with pytest.raises(SfumatoError, match="use moments"):
        sf.Pairs().codec(schema)
