"""Numbers that are multiples of a step, or often one of a few values; and codes with prefixes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.codes import CategoryCode, NumericCode, code_of
from sfumato.data.condition import Condition
from sfumato.data.inspection import reviewed
from sfumato.data.table_codec import TableCodec
from sfumato.data.writing import rounded
from sfumato.schema import Boolean, Categorical, Numeric, Schema

CENTS = Numeric(low=0, high=20, step=0.05)


@pytest.mark.parametrize("cells", [4096, 64, 7])
def test_every_multiple_of_a_step_comes_back_or_another_of_its_cell(cells: int) -> None:
    code = NumericCode.of(CENTS, cells)
    values = np.round(np.arange(401) * 0.05, 2)
    codes, _ = code.encode(pa.array(values))
    back = code.decode(codes, np.random.default_rng(0)).to_numpy()
    assert np.isin(back, values).all()
    again, _ = code.encode(pa.array(back))
    ordered = codes < code.cells  # a bound may be drawn from the cell beside it
    assert np.array_equal(again[ordered][again[ordered] < code.cells],
                          codes[ordered][again[ordered] < code.cells])  # fmt: skip
    if cells == 4096:
        assert np.array_equal(back, values)
        assert code.atoms == ()


def test_values_off_the_step_go_to_the_nearest_and_are_told() -> None:
    code = code_of(CENTS)
    assert isinstance(code, NumericCode)
    found = code.settled(pa.array([0.06, 19.99, 25.0]))
    assert found.tolist() == [0.05, 20.0, 20.0]
    review, _ = reviewed(pa.table({"x": [0.05, 0.06, 0.1]}), Schema(columns={"x": CENTS}))
    assert "1 of 3 values (33.3%) are no multiple of the step" in "".join(review.sentences())


def test_whole_numbers_have_steps_too() -> None:
    code = code_of(Numeric(low=0, high=100_000, step=500, integer=True))
    drawn = code.decode(np.arange(code.size), np.random.default_rng(0))
    assert drawn.type == pa.int64()
    assert drawn.to_pylist() == list(range(0, 100_001, 500))


def test_ranges_of_steps_hold_their_ends() -> None:
    code = NumericCode.of(CENTS, 16)
    condition = Condition.on("x", code, ("0.13", "0.35"))
    cells = np.flatnonzero(condition.kept)
    drawn = condition.decode(np.repeat(cells, 500), np.random.default_rng(0)).to_numpy()
    assert sorted(set(drawn)) == [0.15, 0.2, 0.25, 0.3, 0.35]
    assert code.exact(pa.array(["0.15"])).as_py() == 0.15
    assert code.exact(pa.array(["0.17"])) is None


def test_what_is_often_found_is_kept() -> None:
    rng = np.random.default_rng(1)
    prices = np.where(
        rng.random(4000) < 0.8, rng.choice([9.95, 19.95], 4000), rng.uniform(0, 1e5, 4000)
    )
    schema = Schema(columns={"x": Numeric(low=0, high=1e5, often=(9.95, 19.95))})
    model = sf.Pairs(restarts=1, components=5).fit(pa.table({"x": prices}), schema, 5.0)
    drawn = rounded(model.sample(2000), schema)["x"].to_numpy()
    assert 0.7 < np.isin(drawn, [9.95, 19.95]).mean() < 0.9


def test_as_many_numbers_are_round_as_were() -> None:
    rng = np.random.default_rng(3)
    sick = rng.random(4000) < 0.5
    pay = rng.uniform(0, 1e5, 4000)
    pay = np.where(rng.random(4000) < np.where(sick, 0.9, 0.3), np.round(pay / 512.5) * 512.5, pay)
    columns = {
        "pay": Numeric(low=0, high=1e5, often_multiple_of=512.5, nullable=True),
        "sick": Boolean(),
    }
    schema = Schema(columns=columns)
    assert Schema.from_toml(schema.to_toml()) == schema
    rows = pa.table({"pay": pa.array(pay, mask=rng.random(4000) < 0.1), "sick": sick})
    model = sf.Pairs(target="sick", restarts=1, components=10).fit(rows, schema, 3.0)
    drawn = rounded(model.sample(4000), schema).drop_null()
    is_round = drawn["pay"].to_numpy() % 512.5 == 0
    ill = drawn["sick"].to_numpy(zero_copy_only=False)
    assert is_round[ill].mean() == pytest.approx(0.9, abs=0.06)
    assert is_round[~ill].mean() == pytest.approx(0.3, abs=0.06)
    high = model.sample(200, given={"pay": (90_100, None)})["pay"].to_numpy()
    assert high.min() >= 90_100
    assert 20 < (high % 512.5 == 0).sum() < 180
    assert reviewed(rows, schema)[0].above(0) == {}
    assert sf.Pairs(target="pay").plan(schema, sf.Budget(epsilon=1)).spends


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"low": 0, "high": 1, "step": 0.3}, "1 is not a multiple of the step 0.3"),
        ({"low": 0, "high": 9, "step": 0.5, "kind": "integer"}, "must be a whole number"),
        ({"low": 0, "high": 9, "often": [10]}, "10, which is often found, is not one"),
        ({"low": 0, "high": 9, "step": 1, "often": [2.5]}, "2.5 is not a multiple"),
    ],
)
def test_wrong_steps_are_said(settings: dict[str, object], message: str) -> None:
    with pytest.raises(sf.SfumatoError, match=message):
        Schema.from_tables({"columns": {"x": {"kind": "numeric"} | settings}})


def test_orders_of_steps_keep_them() -> None:
    columns = {"a": CENTS, "b": Numeric(low=0, high=40, step=0.05)}
    made = Schema(columns=columns, constraints=({"order": ("a", "b")},))
    codec = TableCodec(made)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, column.size, 1000) for column in codec.columns], axis=1)
    rows = codec.decode(codes, rng)
    a, b = rows["a"].to_numpy(), rows["b"].to_numpy()
    assert (a <= b).all()
    assert np.isin(b, np.round(np.arange(801) * 0.05, 2)).all()
    columns["b"] = Numeric(low=0, high=40)
    with pytest.raises(sf.SfumatoError, match="must have the same step"):
        TableCodec(Schema(columns=columns, constraints=({"order": ("a", "b")},)))


def test_codes_with_prefixes_are_neighbours() -> None:
    code = code_of(Categorical(values=("I21", "A01", "I20", "A02", "J00"), prefix=1, nullable=True))
    assert isinstance(code, CategoryCode)
    assert code.names == ("A01", "A02", "I20", "I21", "J00", "(missing)")
    assert code.slots is not None
    assert code.slots.tolist() == [0, 0, 1, 1, 2]
    values = pa.array(["I21", None, "A01"])
    assert code.decode(code.encode(values)[0], np.random.default_rng(0)).equals(values)


def test_thousands_of_codes_keep_how_their_prefixes_relate() -> None:
    """Each of 5,000 codes has one row or so: noise hides them all, but not how they begin."""
    rng = np.random.default_rng(2)
    names = [f"{number:04d}" for number in range(5000)]
    zips = rng.integers(0, 5000, 6000)
    rows = pa.table({"zip": np.array(names)[zips], "pay": zips / 5 + rng.normal(0, 50, 6000)})
    related = []
    for prefix in (None, 1):
        columns = {
            "zip": Categorical(values=tuple(names), prefix=prefix),
            "pay": Numeric(low=-500, high=1500),
        }
        model = sf.Pairs(restarts=1, components=20).fit(rows, Schema(columns=columns), 2.0)
        drawn = model.sample(6000)
        numbers = np.array([int(text) for text in drawn["zip"].to_pylist()])
        related.append(np.corrcoef(numbers, drawn["pay"].to_numpy())[0, 1])
        assert np.bincount(numbers, minlength=5000).max() < 60
    assert related[1] > 0.9 > related[0]
