"""Constraints: rows that are made obey them, and what a private row becomes follows from itself."""

from __future__ import annotations

import pickle
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from command_line import run
from sfumato.data.codebook import Codebook, read_codebook
from sfumato.data.draft import Draft
from sfumato.data.inspection import reviewed
from sfumato.data.rows import EncodedTable
from sfumato.data.table_codec import TableCodec
from sfumato.data.writing import write_synthetic
from sfumato.evaluation.certificate import Certificate
from sfumato.modelling.spaces import TableSpace
from sfumato.schema import Schema

SCHEMA = """
[columns.admitted]
kind = "datetime"
low = 2020-01-01
high = 2021-12-31
nullable = true
[columns.treated]
kind = "datetime"
low = 2020-01-01
high = 2022-12-31
nullable = true
[columns.discharged]
kind = "datetime"
low = 2020-01-01
high = 2022-12-31
nullable = true
[columns.month]
kind = "integer"
low = 1
high = 12
nullable = true
[columns.rent]
kind = "numeric"
low = 0
high = 1000
decimals = 2
[columns.food]
kind = "numeric"
low = 0
high = 500
decimals = 1
[columns.total]
kind = "numeric"
low = 0
high = 1500
[columns.city]
kind = "categorical"
values = ["Ulm", "Bonn", "Jena"]
[columns.state]
kind = "categorical"
values = ["BW", "NW", "TH"]
nullable = true
[columns.age]
kind = "integer"
low = 0
high = 120
[columns.band]
kind = "categorical"
values = ["child", "adult", "old"]
[columns.sick]
kind = "boolean"

[[constraints]]
order = ["admitted", "treated", "discharged"]
[[constraints]]
column = "month"
of = "admitted"
function = "month"
[[constraints]]
column = "total"
of = ["rent", "food"]
function = "sum"
[[constraints]]
columns = ["city", "state"]
allowed = [["Ulm", "BW"], [["Bonn"], "NW"], ["Jena", "TH"]]
[[constraints]]
column = "band"
of = "age"
mapping = { "0.." = "child", "18.." = "adult", "65.." = "old" }
"""
STATES = {"Ulm": "BW", "Bonn": "NW", "Jena": "TH"}


def schema() -> Schema:
    return Schema.from_toml(SCHEMA)


def day(rng: random.Random) -> date | None:
    return None if rng.random() < 0.1 else date(2020, 1, 1) + timedelta(rng.randrange(730))


def later(rng: random.Random, first: date | None) -> date | None:
    if first is None or rng.random() < 0.1:
        return None
    return min(first + timedelta(rng.randrange(30)), date(2022, 12, 31))


def row(rng: random.Random) -> dict[str, Any]:
    """Draw a row that obeys."""
    admitted = day(rng)
    treated = later(rng, admitted)
    city, age = rng.choice(list(STATES)), rng.randrange(100)
    rent, food = round(rng.uniform(0, 900), 2), round(rng.uniform(0, 400), 1)
    return {
        "admitted": admitted,
        "treated": treated,
        "discharged": later(rng, treated or admitted),
        "month": admitted.month if admitted else None,
        "rent": rent,
        "food": food,
        "total": rent + food,
        "city": city,
        "state": STATES[city],
        "age": age,
        "band": "child" if age < 18 else "adult" if age < 65 else "old",
        "sick": rng.random() < 0.3,
    }


def wild_row(rng: random.Random) -> dict[str, Any]:
    """Draw a row of which each value may be anything."""
    return row(rng) | {
        "treated": day(rng),
        "discharged": day(rng),
        "month": rng.choice([None, 0, 3, 12, 99]),
        "total": rng.uniform(-10, 2000),
        "state": rng.choice(["BW", "NW", "TH", "XX", None]),
        "band": rng.choice(["child", "old", "unborn"]),
    }


def table(rows: list[dict[str, Any]]) -> pa.Table:
    dates = ("admitted", "treated", "discharged")
    types = dict.fromkeys(dates, pa.date32()) | {"month": pa.int64(), "state": pa.string()}
    return pa.table({key: pa.array([r[key] for r in rows], types.get(key)) for key in rows[0]})


def refuse_disobedience(rows: pa.Table) -> None:
    for each in rows.to_pylist():
        known = [d for d in (each["admitted"], each["treated"], each["discharged"]) if d]
        assert known == sorted(known)
        assert each["month"] == (each["admitted"].month if each["admitted"] else None)
        assert each["total"] == round(each["rent"] + each["food"], 2)
        assert each["state"] in (STATES[each["city"]], None)
        band = "child" if each["age"] < 18 else "adult" if each["age"] < 65 else "old"
        assert each["band"] == band


def test_a_schema_with_constraints_is_written_as_it_is_read() -> None:
    assert Schema.from_toml(schema().to_toml()) == schema()


def test_only_what_does_not_follow_is_coded() -> None:
    codec = TableCodec(schema())
    assert set(codec.names) == {
        "admitted", "treated", "discharged", "rent", "food", "city & state", "age", "sick",
    }  # fmt: skip
    assert codec.declared == tuple(schema().columns)
    assert codec.columns[codec.names.index("city & state")].size == 3 + 3  # three without a state


def test_rows_that_obey_come_back_as_they_were() -> None:
    rng = random.Random(1)
    rows = table([row(rng) for _ in range(300)])
    codec = TableCodec(schema())
    batch = codec.encode(rows.combine_chunks().to_batches()[0])
    back = codec.decode(batch.codes, np.random.default_rng(0))
    for name in ("admitted", "treated", "discharged", "month", "city", "state", "age", "band"):
        assert back[name].to_pylist() == rows[name].to_pylist(), name
    review, _ = reviewed(rows, schema())
    assert list(review.misfit_sentences()) == []


def test_whatever_is_drawn_obeys(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    codec = TableCodec(schema())
    codes = np.stack([rng.integers(0, column.size, 3000) for column in codec.columns], axis=1)
    rows = codec.decode(codes, rng)
    refuse_disobedience(rows)
    write_synthetic(tmp_path / "made.csv", rows, schema())
    nulls = pa.csv.ConvertOptions(strings_can_be_null=True)
    refuse_disobedience(pa.csv.read_csv(tmp_path / "made.csv", convert_options=nulls))


def test_a_row_is_encoded_as_if_it_were_alone() -> None:
    """Also one that breaks every constraint: no row changes what another becomes."""
    rng = random.Random(2)
    rows = table([wild_row(rng) for _ in range(200)]).combine_chunks()
    codec = TableCodec(schema())
    whole = codec.encode(rows.to_batches()[0])
    for index in range(rows.num_rows):
        alone = codec.encode(rows.slice(index, 1).to_batches()[0])
        assert np.array_equal(alone.codes[0], whole.codes[index])
        assert np.array_equal(alone.numbers[0], whole.numbers[index])


def test_rows_that_disobey_become_rows_that_obey() -> None:
    rng = random.Random(4)
    rows = table([wild_row(rng) for _ in range(300)]).combine_chunks()
    codec = TableCodec(schema())
    batch = codec.encode(rows.to_batches()[0])
    back = codec.decode(batch.codes, np.random.default_rng(0))
    refuse_disobedience(back)
    again = codec.encode(back.combine_chunks().to_batches()[0])
    exact = [i for i, name in enumerate(codec.names) if name not in ("rent", "food")]
    assert np.array_equal(again.codes[:, exact], batch.codes[:, exact])


def test_the_owner_is_told_which_rows_disobey() -> None:
    rng = random.Random(5)
    rows = [row(rng) for _ in range(100)]
    rows[0] |= {"admitted": date(2021, 5, 5), "month": 5, "treated": date(2021, 5, 4)}
    rows[0]["discharged"] = date(2021, 5, 5)
    rows[1] |= {"total": rows[1]["total"] + 10}
    rows[2] |= {"city": "Ulm", "state": "TH"}
    rows[3] |= {"age": 70, "band": "child"}
    review, _ = reviewed(table(rows), schema())
    told = "\n".join(review.misfit_sentences())
    assert told.count("1 of 100 values") == 4
    assert "column 'treated': 1 of 100 values (1.0%) are less than 'admitted'" in told
    assert "column 'total': 1 of 100 values (1.0%) are other than what follows from rent" in told
    assert "column 'state': 1 of 100 values (1.0%) are in a combination of city, state" in told
    flags = EncodedTable(table(rows), TableCodec(schema())).misfit_flags()
    counted = sum(batch.codes.sum(axis=0) for batch in flags)
    assert counted.tolist() == [0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0]


def test_a_model_of_rows_with_constraints() -> None:
    rng = random.Random(6)
    rows = table([row(rng) for _ in range(1500)])
    model = sf.Pairs(target="sick", restarts=1, components=10).fit(rows, schema(), 5.0)
    refuse_disobedience(model.sample(500))
    given = model.sample(50, given={"city": "Jena", "age": (65, None)})
    assert set(given["state"].to_pylist()) <= {"TH", None}
    assert set(given["band"].to_pylist()) == {"old"}
    march = model.sample(
        40, given={"month": 3, "band": ["old"], "total": (200, None), "city": "Ulm"}
    )
    refuse_disobedience(march)
    assert march.num_rows == 40
    assert set(march["month"].to_pylist()) == {3}
    assert set(march["band"].to_pylist()) == {"old"}
    assert min(march["total"].to_pylist()) >= 200
    late = model.sample(40, given={"discharged": ("2022-01-01", None)})
    assert min(late["discharged"].to_pylist()) >= date(2022, 1, 1)
    assert set(model.sample(9, given={"discharged": None})["discharged"].to_pylist()) == {None}
    with pytest.raises(sf.SfumatoError, match="hardly any row"):
        model.sample(5, given={"month": 3, "admitted": "2021-05-05"})
    with pytest.raises(sf.SfumatoError, match="'band' is not modelled itself"):
        sf.Pairs(target="band").plan(schema(), sf.Budget(epsilon=1))


def test_the_hard_way_to_ask_for_combinations() -> None:
    text = SCHEMA.replace('allowed = [["Ulm", "BW"], [["Bonn"], "NW"], ["Jena", "TH"]]',
                          'forbidden = [["Ulm", ["NW", "TH"]], ["Bonn", "BW"]]')  # fmt: skip
    codec = TableCodec(Schema.from_toml(text))
    joint = codec.conditions({"city": "Ulm"})[codec.names.index("city & state")]
    assert int((joint.kept > 0).sum()) == 2  # BW and missing
    with pytest.raises(sf.SfumatoError, match="no combination that may be"):
        codec.conditions({"city": "Ulm", "state": "NW"})


def test_functions_of_moments() -> None:
    columns = {
        "at": {
            "kind": "datetime",
            "low": date(1960, 1, 1),
            "high": date(2030, 1, 1),
            "unit": "hour",
        },
        "end": {
            "kind": "datetime",
            "low": date(1960, 1, 1),
            "high": date(2031, 1, 1),
            "unit": "hour",
        },
    }
    made = {
        "year": (1960, 2030), "quarter": (1, 4), "month": (1, 12), "weekday": (1, 7),
        "day": (1, 31), "hour": (0, 23), "difference": (-700_000, 700_000),
    }  # fmt: skip
    columns |= {n: {"kind": "integer", "low": a, "high": b} for n, (a, b) in made.items()}
    columns["date"] = {"kind": "datetime", "low": date(1960, 1, 1), "high": date(2030, 1, 1)}
    columns["season"] = {"kind": "categorical", "values": ["cold", "warm"]}
    rules = [
        {"column": n, "of": ["end", "at"] if n == "difference" else "at", "function": n}
        for n in (*made, "date")
    ]
    rules.append({"column": "season", "of": "at", "function": "month",
                  "mapping": {"1..": "cold", "4..": "warm", "10..": "cold"}})  # fmt: skip
    codec = TableCodec(Schema.from_tables({"columns": columns, "constraints": rules}))
    moments = np.array(["1969-12-31T23", "2024-02-29T05", "2023-10-01T00"], "datetime64[s]")
    rows = codec.assemble([pa.array(moments), pa.array(moments + np.timedelta64(7200, "s"))], 3)
    assert [list(each.values()) for each in rows.select(list(made)).to_pylist()] == [
        [1969, 4, 12, 3, 31, 23, 2],
        [2024, 1, 2, 4, 29, 5, 2],
        [2023, 4, 10, 7, 1, 0, 2],
    ]
    assert rows["date"].to_pylist() == [date(1969, 12, 31), date(2024, 2, 29), date(2023, 10, 1)]
    assert rows["season"].to_pylist() == ["cold", "cold", "cold"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('column = "month"', 'name = "month"', "name the columns of an order"),
        ('order = ["admitted"', 'order = ["arrived"', "'arrived', which is no modelled column"),
        ('column = "month"', 'column = "treated"', "'treated' would follow from two constraints"),
        ('of = "admitted"', 'of = "month"', "names 'month' twice"),
        ('of = ["rent", "food"]', 'of = ["rent"]', "of must name two columns or more"),
        ('["Ulm", "BW"]', '["Ulm"]', "needs 2 values"),
        ('["Ulm", "BW"]', '["Ulm", "BY"]', "column 'state' lists no value 'BY'"),
        ("high = 1500", "high = 1400", "'total' (total = sum of rent, food): low and high must"),
        ('"0.." = "child"', '"1.." = "child"', "the mapping has nothing for '0'"),
        ('"18.." = "adult"', '"18.." = "grown"', "'grown', which the mapping has for '18..'"),
        ("high = 12\nnullable = true", "high = 12", "it is missing where admitted is"),
        ("high = 12\n", "high = 11\n", "leave room for all that it can be: 1 to 12"),
        ('order = ["admitted", "treated"', 'order = ["admitted", "rent"', "cannot be compared"),
        ('order = ["admitted", "treated"', 'order = ["admitted", "sick"', "must be a number or a"),
        ('function = "month"', 'function = "sunrise"', "function"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(old: str, new: str, message: str) -> None:
    assert old in SCHEMA
    with pytest.raises(sf.SfumatoError) as told:
        TableCodec(Schema.from_toml(SCHEMA.replace(old, new, 1)))
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_a_number_that_is_rounded_more_cannot_come_after() -> None:
    columns = {
        "a": {"kind": "numeric", "low": 0, "high": 1, "decimals": 3},
        "b": {"kind": "numeric", "low": 0, "high": 1, "decimals": 1},
    }
    made = {"columns": columns, "constraints": [{"order": ["a", "b"]}]}
    with pytest.raises(sf.SfumatoError, match="declare decimals = 3 for 'b'"):
        TableCodec(Schema.from_tables(made))
    columns["b"]["decimals"] = 3
    codec = TableCodec(Schema.from_tables(made))
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, column.size, 2000) for column in codec.columns], axis=1)
    rows = codec.decode(codes, rng)
    assert (rows["a"].to_numpy() <= rows["b"].to_numpy()).all()


def test_constraints_survive_the_making_of_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text(SCHEMA)
    book = Codebook().corrected_by(read_codebook(path))
    draft = Draft(dict.fromkeys(schema().columns, "categorical"), book)
    assert Schema.from_toml(draft.to_toml()).constraints == schema().constraints


def test_check_and_plan_know_constraints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(7)
    rows = [row(rng) for _ in range(50)]
    for each in rows[:5]:
        each["total"] += 100
    pa.csv.write_csv(table(rows), tmp_path / "rows.csv")
    (tmp_path / "s.toml").write_text(SCHEMA)
    common = (str(tmp_path / "rows.csv"), "-s", str(tmp_path / "s.toml"))
    code, out, _ = run(capsys, "schema", "check", *common)
    assert code == 2
    assert "column 'total': 5 of 50 values (10.0%) are other than what follows" in out
    assert run(capsys, "plan", *common, "-e", "1", "-t", "sick")[0] == 0
    code, _, err = run(capsys, "plan", *common, "-e", "1", "-t", "total")
    assert code == 2
    assert "'total' is not modelled itself" in err


def test_workers_and_generators_see_the_same_columns(tmp_path: Path) -> None:
    rng = random.Random(8)
    batch = table([row(rng) for _ in range(200)]).combine_chunks().to_batches()[0]
    codec = TableCodec(schema())
    codec.encode(batch)  # whatever it has worked out by then goes along
    again = pickle.loads(pickle.dumps(codec))
    assert np.array_equal(again.encode(batch).codes, codec.encode(batch).codes)
    space = TableSpace(codec, "sick")
    coded = codec.encode(batch)
    classes = coded.codes[:, space.class_column]
    rows = space.decode(space.from_batch(coded), classes, np.random.default_rng(0))
    refuse_disobedience(rows)
    assert rows["discharged"].to_pylist() == batch.column("discharged").to_pylist()
    with pytest.raises(sf.SfumatoError, match="'city' is not modelled itself"):
        TableSpace(codec, "city")


def test_a_model_file_keeps_constraints(tmp_path: Path) -> None:
    rng = random.Random(9)
    rows = table([row(rng) for _ in range(300)])
    model = sf.Pairs(restarts=1, components=5).fit(rows, schema(), 5.0)
    model.save(tmp_path / "m.sfumato")
    loaded = sf.load(tmp_path / "m.sfumato")
    assert loaded.sample(50, seed=1).equals(model.sample(50, seed=1))
    assert any(line["kind"] == "constraint" for line in Certificate.of(loaded).declared)
