"""Bounds and values that the schema leaves open, and that a part of the budget finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from command_line import run
from seeded import Seeded, drawing
from sfumato.certificate import certificate_text
from sfumato.data.codes import code_of
from sfumato.data.open_codes import BoundsGrid
from sfumato.data.rows import EncodedTable
from sfumato.data.table_codec import TableCodec
from sfumato.errors import FoundWarning, PrivateWarning, SavedAnswersWarning
from sfumato.evaluation.report import certificate_html
from sfumato.evaluation.tables import evaluate_table
from sfumato.modelling.schema_search import search_budget
from sfumato.privacy.ledger import Ledger
from sfumato.schema import Categorical, Datetime, Numeric, Schema

SCHEMA = """
[columns.pay]
kind = "numeric"
low = "private"
high = "private"
nullable = true
[columns.visits]
kind = "integer"
low = 0
high = "private"
[columns.admitted]
kind = "datetime"
low = "private"
high = "private"
[columns.zip]
kind = "categorical"
values = "private"
[columns.sick]
kind = "boolean"
"""
QUICK = {"restarts": 1, "components": 5}


def schema() -> Schema:
    return Schema.from_toml(SCHEMA)


def rows(count: int = 3000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "pay": pa.array(rng.uniform(1000, 4000, count), mask=rng.random(count) < 0.1),
            "visits": rng.integers(0, 50, count),
            "admitted": np.datetime64("2015-03-01") + rng.integers(0, 1000, count),
            "zip": [f"{number:05d}" for number in rng.integers(0, 5, count)],
            "sick": rng.random(count) < 0.3,
        }
    )


def test_an_open_schema_is_written_as_it_is_read() -> None:
    assert Schema.from_toml(schema().to_toml()) == schema()
    assert set(schema().open) == {"pay", "visits", "admitted", "zip"}


@pytest.mark.parametrize(
    ("relation", "epsilon"), [(sf.Relation.ADD_REMOVE, 1.0), (sf.Relation.REPLACE_ONE, 6.0)]
)
def test_what_is_open_is_found_within_the_budget(relation: sf.Relation, epsilon: float) -> None:
    budget = sf.Budget(epsilon=epsilon, relation=relation)
    ledger = Ledger(":memory:")
    ledger.limit("d", budget)
    model = sf.Pairs(target="sick", **QUICK).fit(
        rows(), schema(), budget, sf.Run(ledger=ledger, dataset="d")
    )
    found = model.schema.columns
    assert isinstance(found["pay"], Numeric)
    assert 250 <= found["pay"].low <= 1000
    assert 4000 <= found["pay"].high <= 8192
    assert isinstance(found["visits"], Numeric)
    assert (found["visits"].low, found["visits"].high) == (0, 127)
    assert isinstance(found["admitted"], Datetime)
    assert (found["admitted"].low.year, found["admitted"].high.year) == (2015, 2017)
    assert isinstance(found["zip"], Categorical)
    assert found["zip"].values == ("00000", "00001", "00002", "00003", "00004")
    assert [spend.name for spend in model.guarantee.spends][:2] == ["bounds", "values-4-zip"]
    assert 0.99 * epsilon <= model.guarantee.epsilon <= epsilon
    planned = sf.Pairs(target="sick").plan(schema(), budget)
    assert planned.guarantee.epsilon <= epsilon
    assert [spend.sigma for spend in planned.spends[:2]] == pytest.approx(
        [spend.sigma for spend in model.guarantee.spends[:2]]
    )
    assert "become (other)" in " ".join(planned.notes)


def test_a_ladder_takes_each_row_by_itself_and_holds_it() -> None:
    rng = np.random.default_rng(3)
    texts = ["", "soon", "0", "-0.0", "1e300", "-1e-12", "2015-02-30", "1799-12-31", "2300-01-01"]
    numbers = np.concatenate(
        [rng.normal(0, 1, 50), 2.0 ** np.arange(-40, 60), -rng.integers(0, 9, 9)]
    )
    days = np.datetime64("1900-01-01") + rng.integers(0, 90_000, 60)
    values = [*texts, *numbers.astype(str), *days.astype(str)]
    for name in ("pay", "visits", "admitted", "zip"):
        code = code_of(schema().columns[name])
        whole = code.encode(pa.array(values))[0]
        alone = [code.encode(pa.array([value], pa.string()))[0][0] for value in values]
        assert whole.tolist() == alone
        assert 0 <= whole.min() <= whole.max() < code.size
    grid = code_of(schema().columns["pay"])
    assert isinstance(grid, BoundsGrid)
    kept = np.abs(numbers) < 2.0**51
    for number, cell in zip(numbers[kept], grid.encode(pa.array(numbers[kept]))[0], strict=True):
        low, high = grid.steps[cell]
        assert low <= number <= high


def test_noise_that_hides_everything_is_said_and_the_run_ends_in_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger(":memory:")
    with pytest.warns(FoundWarning) as told:
        model = sf.Pairs(target="zip", **QUICK).fit(
            rows(200), schema(), 0.1, sf.Run(ledger=ledger, dataset="d", folder=tmp_path)
        )
    sentences = [str(each.message) for each in told if each.category is FoundWarning]
    for name in ("pay", "visits", "admitted", "zip"):
        assert any(f"column '{name}': nothing of it stands out" in each for each in sentences)
    # The two that may not be missing are said to be lost wherever the model is shown.
    assert model.schema.settled == dict.fromkeys(("visits", "admitted", "zip"), "(other)")
    assert set(model.sample(20).column("zip").to_pylist()) == {"(other)"}
    assert "of column 'zip' nothing is told" in certificate_text(model)
    assert "zip: (other)" in certificate_html(model)
    paid = len(ledger.entries("d"))
    sf.Pairs(target="zip", **QUICK).fit(
        rows(200),
        schema(),
        0.1,
        sf.Run(ledger=ledger, dataset="d", folder=tmp_path, use_saved=True),
    )
    assert len(ledger.entries("d")) == paid


WORDS = [
    "(other)", "(missing)", "1", "1.0", "1.00", "", "NA", " x ", "x", "x\x1c", "\x1c", "#", '"',
    "a\x7fb", "é", "e\u0301", "(other)\x1c",
]  # fmt: skip


def test_whatever_values_are_called_a_run_ends_in_a_result(tmp_path: Path) -> None:
    """Words of our own outputs, a number in two spellings, characters that no file should hold."""
    table = pa.table({"word": WORDS * 300, "sick": [True, False, True] * (len(WORDS) * 100)})
    words = {"kind": "categorical", "values": "private"}
    declared = {"word": words, "sick": {"kind": "boolean"}}
    model = sf.Pairs(**QUICK).fit(table, declared, sf.Budget(epsilon=4), sf.Run(gate=sf.Gate(None)))
    values = model.schema.columns["word"].values
    assert set(values) == {"1", "x", "#", '"', "a\x7fb", "é", "e\u0301"}
    assert Schema.from_toml(model.schema.to_toml()) == model.schema
    assert {*values, "(other)"} >= set(model.sample(500).column("word").to_pylist())


def test_bounds_do_not_collapse_on_the_value_that_most_rows_have() -> None:
    """A column of 0 and 1 beside many others: few rows have 1, by the noise of 20 columns."""
    rng = np.random.default_rng(0)
    columns = {f"c{number}": (rng.random(2000) < 0.15).astype(int) for number in range(20)}
    declared = {name: {"kind": "integer", "low": "private", "high": "private"} for name in columns}
    model = sf.Pairs(target="c0", **QUICK).fit(pa.table(columns), declared, 1.0)
    assert model.schema.settled == {}
    for column in model.schema.columns.values():
        assert isinstance(column, Numeric)
        assert -1 <= column.low <= 0 < 1 <= column.high <= 1


def test_numbers_that_are_spread_over_many_powers_of_two_are_found() -> None:
    rng = np.random.default_rng(0)
    spread = pa.table({"x": np.where(rng.random(4000) < 0.5, 0, 2 ** rng.uniform(0, 14, 4000))})
    declared = {"x": {"kind": "numeric", "low": "private", "high": "private"}}
    found = sf.Pairs(**QUICK).fit(spread, declared, 0.3).schema.columns["x"]
    assert isinstance(found, Numeric)
    assert found.high >= 2**12


def test_evaluation_judges_by_the_real_values_and_not_by_what_was_found() -> None:
    real = pa.table({"sick": [0] * 700 + [1] * 300, "town": ["Ulm"] * 600 + ["Jena"] * 400})
    made = pa.table({"sick": [0] * 1000, "town": ["Ulm"] * 600 + ["(other)"] * 400})
    found = Schema.from_toml(
        '[columns.sick]\nkind = "integer"\nlow = 0\nhigh = 0\n'
        '[columns.town]\nkind = "categorical"\nvalues = ["Ulm"]\nother = true\n'
    )
    judged = evaluate_table(real, made, found, target="sick")
    errors = {column.name: column.error for column in judged.columns}
    assert errors["sick"] > 0.25
    assert errors["town"] > 0.35
    assert any("sick" in sentence for sentence in judged.misfits)


def test_columns_of_which_little_will_be_told_are_named_before_anything_is_paid(
    tmp_path: Path,
) -> None:
    ids = pa.table({"id": [f"p{number}" for number in range(900)], "sick": [True] * 900})
    declared = {"id": {"kind": "categorical", "values": "private"}, "sick": {"kind": "boolean"}}
    ledger, seen = Ledger(":memory:"), []

    def watched(stage: str, _: float | None) -> None:
        if stage.startswith("releasing"):
            seen.append((stage, len(ledger.entries("d"))))

    with pytest.warns(PrivateWarning, match="column 'id' has 900 values; those that about") as told:
        sf.Pairs(**QUICK).fit(
            ids, declared, 1.0, sf.Run(ledger=ledger, dataset="d", progress=watched)
        )
    assert told
    assert ("releasing values-1-id", 0) in seen


def test_a_run_goes_on_from_what_was_found(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")
    both = [
        sf.Pairs(target="sick", seed=seed, **QUICK).fit(
            rows(), schema(), 1, sf.Run(ledger=ledger, dataset="d", folder=tmp_path)
        )
        for seed in (0, 1)
    ]
    assert both[0].schema == both[1].schema
    assert len(ledger.entries("d")) == len(both[0].guarantee.spends)
    with pytest.warns(SavedAnswersWarning, match="about the rows as they were then"):
        other = sf.Pairs(target="sick", **QUICK).fit(
            rows(seed=1), schema(), 1, sf.Run(ledger=ledger, dataset="d", folder=tmp_path)
        )
    assert other.schema == both[0].schema
    assert len(ledger.entries("d")) == len(both[0].guarantee.spends)


def test_questions_follow_the_answers_and_not_the_rows() -> None:
    """On a neighbour, with the same noise, the same is found: nothing goes past the curator."""
    from sfumato.modelling.schema_search import complete
    from sfumato.privacy.curator import Curator

    table = rows(3000, seed=5)
    budget = sf.Budget(epsilon=1)
    found = []
    for data in (table, table.slice(1)):
        curator = Curator.of(
            data, TableCodec(schema()), schema(), budget, ahead=search_budget(schema(), budget)
        )
        with drawing(Seeded()):
            found.append(complete(curator))
        assert [release.spend for release in curator.releases]
    assert found[0] == found[1]


def test_other_methods_and_measures_ask_for_a_closed_schema() -> None:
    with pytest.raises(sf.SfumatoError, match="merf needs public bounds and values, but 'pay'"):
        sf.Merf().fit(rows(50), schema(), 1)
    with pytest.raises(sf.SfumatoError, match="leaves 'pay' to be found privately"):
        sf.evaluate(rows(50), rows(50), schema(), "sick")
    text = SCHEMA + '[[constraints]]\norder = ["visits", "pay"]\n'
    with pytest.raises(sf.SfumatoError, match="needs public bounds or values"):
        Schema.from_toml(text)
    with pytest.raises(sf.SfumatoError, match="nullabel is not a setting of this kind"):
        Schema.from_toml(SCHEMA.replace("nullable", "nullabel"))
    with pytest.raises(sf.SfumatoError, match="whole numbers"):
        Schema.from_toml(SCHEMA.replace("low = 0", "low = 0.5"))


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa.csv.write_csv(rows(), tmp_path / "rows.csv")
    (tmp_path / "open.toml").write_text(SCHEMA)
    data = (str(tmp_path / "rows.csv"), "-s", str(tmp_path / "open.toml"))
    assert run(capsys, "schema", "check", *data)[0] == 0
    code, out, _ = run(capsys, "plan", *data, "-e", "1", "-t", "sick")
    assert code == 0
    assert "bounds" in out
    model, found = str(tmp_path / "m.sfumato"), tmp_path / "found.toml"
    code, _, err = run(
        capsys, "synth", *data, "-e", "1", "-t", "sick", "-o", str(tmp_path / "made.csv"),
        "--model", model, "-q", "--set", "restarts=1", "--set", "components=5",
    )  # fmt: skip
    assert (code, err) == (0, "")
    code, out, _ = run(
        capsys, "show", model, "--schema", str(found), "--report", str(tmp_path / "page.html")
    )
    assert code == 0
    assert "one that a single unit has, with a chance of at most 2.69e-09" in out
    assert "with a chance of at most 2.69" in (tmp_path / "page.html").read_text()
    assert not Schema.load(found).open
    assert run(capsys, "schema", "check", str(tmp_path / "made.csv"), "-s", str(found))[0] == 0


LARGE = [2**53 - 1, 2**53, 10**16, 10**17, 2**62]


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("odd", [None, 0.5])
def test_one_row_never_changes_how_large_numbers_of_others_are_spelt(
    declared: bool, odd: float | None
) -> None:
    """One missing value or one fraction makes floating-point numbers of a whole pandas column."""
    pandas = pytest.importorskip("pandas")
    for large in LARGE:
        values = (str(large), "1e+16", "1e+17") if declared else "private"
        columns = {"x": {"kind": "categorical", "values": values}}
        if declared:
            columns["x"]["other"] = True
        codec = TableCodec(sf.read_schema(columns))
        seen = []
        for more in ([], [odd]):
            frame = pandas.DataFrame({"x": [large] * 50 + more})
            try:
                rows = EncodedTable(frame, codec)
                rows.review()
                codes = np.concatenate([batch.codes for batch in rows])[:50]
                counts = {} if declared else rows.counted_values("x")
                counts = {text: count for text, count in counts.items() if count >= 50}
                seen.append((codes.tolist(), counts))
            except sf.SfumatoError as error:
                assert "floating-point numbers" in str(error)  # noqa: PT017
        assert len(seen) == 1 or seen[0] == seen[1]
        assert len(seen) == 2 or large >= 2**53 or declared


def test_a_private_moment_may_have_years_of_two_digits_and_a_format_must_tell_a_date() -> None:
    days = pa.table({"d": ["03.04.15", "05.11.17"] * 800, "y": [True, False] * 800})
    moment = {"kind": "datetime", "low": "private", "high": "private"}
    declared = {"d": {**moment, "format": "%d.%m.%y"}, "y": {"kind": "boolean"}}
    found = sf.Pairs(**QUICK).fit(days, declared, 3.0).schema.columns["d"]
    assert (found.low.year, found.high.year) == (2015, 2017)
    with pytest.raises(sf.SfumatoError, match="does not tell a date"):
        sf.read_schema({"d": {**moment, "format": "%d.%m"}})
