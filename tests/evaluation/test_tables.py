from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from evaluation.models import TABLE, table
from sfumato.errors import SfumatoError
from sfumato.evaluation import evaluate, evaluate_table
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.histograms import MOST_BARS, histogram
from sfumato.evaluation.measure import Headline
from sfumato.schema import Categorical, Numeric, Schema


def test_identical_tables_score_perfectly() -> None:
    rows = table(600)
    found = evaluate_table(rows, rows, TABLE)
    assert all(each.error.beyond_chance == 0 for each in found.marginals.values())
    assert found.associations.real == found.associations.synthetic
    assert found.findings["queries"].figure("Root mean square error beyond chance") == 0
    assert all(column.error == 0 and column.coverage == 1 for column in found.columns)
    areas = found.findings["discriminator"].rows.values()
    assert max(area for area, _ in areas) <= 0.6
    assert found.weaknesses == ()


def test_equal_samples_are_taken_of_identical_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.evaluation.tables.FAST_ROWS", 100)
    rows = table(300)
    found = evaluate_table(rows, rows, TABLE)
    assert found.rows == {"real": 100, "synthetic": 100, "test": 20}
    assert all(column.error == 0 for column in found.columns)


def test_shuffled_columns_score_at_the_independence_level() -> None:
    rows = table(3000)
    rng = np.random.default_rng(1)
    shuffled = pa.table({name: rows[name].take(rng.permutation(3000)) for name in TABLE.columns})
    found = evaluate_table(rows, shuffled, TABLE)
    pairs = found.marginals[2]
    assert pairs.error.beyond_chance == pytest.approx(pairs.independent, rel=0.25)
    assert found.associations.mean_difference == pytest.approx(
        found.associations.independent, rel=0.25
    )
    for line in found.headlines:
        if line.worst_is == "columns shuffled":
            assert line.grade is not None
            assert line.grade < 0.25, line.name
    assert any("associated" in sentence for sentence in found.weaknesses)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rows", [1000, 4000])
def test_held_out_real_rows_score_better_than_shuffled_columns(rows: int, seed: int) -> None:
    # In tables of so many cells sampling error alone is as large as what shuffling does.
    found = evaluate_table(table(rows, seed), table(rows, seed + 10), TABLE, seed=seed)
    graded = [line for line in found.headlines if line.worst_is == "columns shuffled"]
    assert len(graded) == 3
    for line in graded:
        assert line.held_out is not None
        assert line.held_out < line.worst, line.name
        assert line.grade is not None
    assert found.marginals[2].error.chance > found.marginals[2].independent * 0.9
    # Fresh rows are as good as synthetic rows can be.
    for line in graded[:2]:
        assert min(line.place(line.value), line.place(line.held_out or 0.0)) > 0.75, line.name


def test_more_synthetic_rows_make_no_difference_to_what_is_compared() -> None:
    few, many = (
        evaluate_table(table(2000), table(rows, 1), TABLE, test=table(400, 2))
        for rows in (400, 4000)
    )
    for name, first in few.marginals.items():
        second = many.marginals[name]
        assert (first.fresh, first.independent) == (second.fresh, second.independent)
        assert first.error.chance == pytest.approx(second.error.chance, rel=0.05)


def test_columns_that_have_nothing_to_do_with_one_another_have_a_scale_of_no_length() -> None:
    schema = Schema(columns={name: Categorical(values=tuple(range(3))) for name in "abc"})
    rng = np.random.default_rng(0)
    same = pa.table({name: rng.permutation(np.repeat([0, 1, 2], 500)) for name in "abc"})
    found = evaluate_table(same, same, schema, test=same)
    for line in found.headlines:
        if line.worst_is == "columns shuffled":
            assert line.worst < 0.01
            assert line.value < 0.01


def test_the_result_is_whole_in_strict_json_and_repeatable() -> None:
    made = table(200, 3)
    found = evaluate_table(table(300), made, TABLE, "smoker", test=table(100, 2))
    read = json.loads(found.to_json(), parse_constant=lambda text: pytest.fail(text))
    assert read["kind"] == "table"
    assert set(read["utility"]["synthetic"]) == set(read["utility"]["real"])
    assert read["utility_mean"]["real"]["accuracy"] == found.utility_mean["real"]["accuracy"]
    assert evaluate_table(table(50), made, TABLE) == evaluate_table(table(50), made, TABLE)


def test_full_trains_all_of_the_papers_classifiers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "sfumato.evaluation.tables.train_on_synthetic",
        lambda *given, **options: asked.append((given[5], options["jobs"])),
    )
    evaluate_table(table(60), table(60, 1), TABLE, "ill", full=True)
    assert asked == [("twelve", -1)]


@pytest.mark.parametrize("rows", [1, 4])
def test_a_handful_of_synthetic_rows_gets_figures(rows: int) -> None:
    found = evaluate_table(table(60), table(rows), TABLE, "smoker")
    assert found.rows["synthetic"] == rows
    assert json.loads(found.to_json())


def test_a_single_column_is_evaluated() -> None:
    schema = Schema(columns={"n": Numeric(low=0, high=1)})
    rows = pa.table({"n": np.linspace(0, 1, 50)})
    assert set(evaluate_table(rows, rows, schema).marginals) == {1}


def test_missing_values_and_categories_that_never_come_are_told() -> None:
    rows = table(500)
    made = pa.table({**{n: rows[n] for n in TABLE.columns}, "job": ["clerk"] * 500})
    found = evaluate_table(rows, made, TABLE)
    assert any(s.startswith("job never takes these values: nurse") for s in found.weaknesses)
    assert any(s.startswith("job alone is off") for s in found.weaknesses)


def test_weak_points_come_worst_first_and_values_that_chance_may_lose_are_none() -> None:
    schema = Schema(
        columns={"a": Categorical(values=("x", "y", "rare")), "b": Categorical(values=("x", "y"))}
    )
    real = pa.table({"a": ["x"] * 50 + ["y"] * 49 + ["rare"], "b": ["x"] * 50 + ["y"] * 50})
    made = pa.table({"a": ["x"] * 50 + ["y"] * 50, "b": ["x"] * 80 + ["y"] * 20})
    found = evaluate_table(real, made, schema)
    assert not any("rare" in sentence for sentence in found.weaknesses)
    assert found.weaknesses[0].startswith("a and b are associated")
    assert found.weaknesses[1].startswith("b alone is off")


def test_files_are_read_and_bad_requests_are_one_sentence(tmp_path: Path) -> None:
    pa.csv.write_csv(table(80), tmp_path / "real.csv")
    found = evaluate(tmp_path / "real.csv", table(80, 1), TABLE)
    assert found.rows["real"] == 80
    with pytest.raises(SfumatoError, match="no modelled column 'wealth'"):
        evaluate_table(table(20), table(20), TABLE, "wealth")
    with pytest.raises(SfumatoError, match="synthetic data have no rows"):
        evaluate_table(table(20), table(20).slice(0, 0), TABLE)
    with pytest.raises(SfumatoError, match="describes images"):
        evaluate_table(table(20), table(20), Schema.from_toml("[images]\nheight=2\nwidth=2\n"))


def test_a_headline_lies_between_worst_and_best() -> None:
    def grade(value: float, worst: float, best: float, real: float | None = None) -> float | None:
        line = Headline(
            name="", value=value, worst=worst, best=best, meaning="", worst_is="", best_is="",
            held_out=real,
        )  # fmt: skip
        return line.grade

    assert grade(0.7, 0.5, 0.9) == pytest.approx(0.5)
    assert grade(0.3, 0.4, 0.0) == pytest.approx(0.25)
    assert grade(0.95, 0.5, 0.9) == 1.0
    assert grade(0.3, 0.4, 0.0, real=0.1) == pytest.approx(0.25)
    assert grade(0.5, 0.5, 0.5) is None
    assert grade(0.3, 0.4, 0.0, real=0.4) is None


def test_bars_of_numbers_cover_the_middle_and_take_the_rest_in() -> None:
    schema = Schema(columns={"n": Numeric(low=0, high=1000, integer=True, nullable=True)})
    values = [*range(100), 900, None]
    bars = histogram(0, {"synthetic": CodedTable.of(pa.table({"n": values}), schema)})
    assert bars.ordered
    assert bars.labels[-1] == "(missing)"
    assert bars.labels[0].startswith("up to")
    assert bars.labels[-2].endswith("or more")
    assert sum(bars.shares["synthetic"]) == pytest.approx(1, abs=1e-4)
    few = histogram(0, {"synthetic": CodedTable.of(pa.table({"n": [3, 4, 4, 5]}), schema)})
    assert few.labels == ("3", "4", "5")
    assert few.shares["synthetic"] == (0.25, 0.5, 0.25)


def test_rare_categories_share_a_bar() -> None:
    schema = Schema(columns={"c": Categorical(values=tuple(range(40)))})
    rows = pa.table({"c": [i for i in range(40) for _ in range(40 - i)]})
    bars = histogram(
        0, {"real": CodedTable.of(rows, schema), "synthetic": CodedTable.of(rows, schema)}
    )
    assert len(bars.labels) == MOST_BARS
    assert bars.labels[-1] == "(29 more)"
    assert sum(bars.shares["real"]) == pytest.approx(1, abs=1e-4)
