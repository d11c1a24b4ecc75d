from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import contingency, hypergeom

from evaluation.models import TABLE, table
from sfumato.errors import SfumatoError
from sfumato.evaluation.association import association_matrix, correlation_ratios, cramers_v
from sfumato.evaluation.chance import beyond_chance, expected_gap
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.coverage import category_coverage, coverage, range_coverage
from sfumato.evaluation.discriminator import discriminator_auc
from sfumato.evaluation.marginals import Binned, marginal_error, marginal_errors
from sfumato.evaluation.neighbours import neighbours
from sfumato.evaluation.queries import counting_queries
from sfumato.schema import Boolean, Categorical, Datetime, Numeric, Schema

TWO = Schema(columns={"a": Boolean(), "b": Boolean()})


@pytest.fixture
def real() -> CodedTable:
    return CodedTable.of(table(800), TABLE)


def test_total_variation_agrees_with_a_case_worked_out_by_hand() -> None:
    first = CodedTable.of(
        pa.table({"a": [True, True, False, False], "b": [True, True, False, False]}), TWO
    )
    second = CodedTable.of(
        pa.table({"a": [True, True, True, False], "b": [True, False, True, False]}), TWO
    )
    binned = Binned.of(first, second)
    assert binned.error([0]) == pytest.approx(1 / 4)
    assert binned.error([1]) == 0.0
    assert binned.error([0, 1]) == pytest.approx(1 / 4)


def test_what_chance_does_agrees_with_all_ways_to_deal_the_rows_out() -> None:
    for n, m in ((1, 1), (3, 5), (6, 2), (1, 9)):
        for count in range(n + m + 1):
            ways = np.arange(n + m + 1)
            chances = hypergeom(n + m, count, n).pmf(ways)
            gaps = np.abs(ways / n - (count - ways) / m)
            assert expected_gap(np.array([count]), n, m)[0] == pytest.approx(gaps @ chances)


def test_what_chance_does_is_the_mean_over_random_splits(real: CodedTable) -> None:
    rng = np.random.default_rng(0)
    pool = Binned.of(real, real)
    found = []
    for _ in range(200):
        order = rng.permutation(len(real))
        split = Binned(pool.real[order[:600]], pool.real[order[600:]], pool.sizes)
        error, chance = split.compare([0, 2])
        found.append(error)
    assert np.mean(found) == pytest.approx(chance, rel=0.02)
    assert beyond_chance(chance, chance) == 0.0
    assert beyond_chance(1.0, chance) == 1.0
    assert beyond_chance(0.0, chance) == 0.0


def test_marginal_errors_agree_with_a_count_by_dictionary(real: CodedTable) -> None:
    synthetic = CodedTable.of(table(500, 1), TABLE)
    binned = Binned.of(real, synthetic)
    for columns in ([0], [0, 2], [1, 3, 4], [0, 1, 2, 4]):
        shares: dict[tuple[int, ...], float] = {}
        for codes, sign in ((binned.real, 1.0), (binned.synthetic, -1.0)):
            for row in map(tuple, codes[:, columns].tolist()):
                shares[row] = shares.get(row, 0.0) + sign / len(codes)
        assert binned.error(columns) == pytest.approx(sum(map(abs, shares.values())) / 2)


def test_large_tables_are_counted_without_laying_out_every_cell(
    real: CodedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    binned = Binned.of(real, CodedTable.of(table(500, 1), TABLE))
    plain = binned.error([0, 1, 2])
    monkeypatch.setattr("sfumato.evaluation.marginals._LARGEST_TABLE", 10)
    assert binned.error([0, 1, 2]) == pytest.approx(plain)


def test_identical_tables_have_no_error(real: CodedTable) -> None:
    for k, error in marginal_errors(real, real).items():
        assert (error.mean, error.largest) == (0.0, 0.0), k
    assert counting_queries(real, real).largest == 0.0
    assert set(coverage(real, real).values()) == {1.0}


def test_shuffled_columns_keep_single_marginals_and_lose_associations(real: CodedTable) -> None:
    shuffled = real.shuffled(0)
    errors = marginal_errors(real, shuffled)
    assert errors[1].mean == 0.0
    assert errors[2].mean > 0.05
    left = association_matrix(shuffled)[np.triu_indices(5, 1)]
    assert np.abs(left).max() < 0.15


def test_sets_of_columns_are_drawn_without_repetition(real: CodedTable) -> None:
    binned = Binned.of(real, real.shuffled(0))
    drawn = marginal_error(binned, 3, most=4)
    assert (drawn.counted, drawn.of) == (4, 10)
    assert drawn == marginal_error(binned, 3, most=4)
    assert marginal_error(binned, 2).counted == 10


def test_a_value_that_most_rows_share_gets_a_bin_of_its_own() -> None:
    schema = Schema(columns={"n": Numeric(low=0, high=10)})
    zeros = CodedTable.of(pa.table({"n": [0.0] * 90 + [5.0] * 10}), schema)
    ones = CodedTable.of(pa.table({"n": [0.1] * 90 + [5.0] * 10}), schema)
    assert Binned.of(zeros, ones).error([0]) == pytest.approx(0.9)


def test_cramers_v_agrees_with_scipy() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 500)
    second = (first + rng.integers(0, 2, 500)) % 3
    counts = contingency.crosstab(first, second).count
    assert cramers_v(first, second) == pytest.approx(contingency.association(counts))
    assert cramers_v(first, np.zeros(500, int)) == 0.0


def test_associations_are_those_of_the_rows_that_have_both_values() -> None:
    schema = Schema(
        columns={
            "a": Boolean(nullable=True),
            "b": Categorical(values=("x", "y"), nullable=True),
            "n": Numeric(low=0, high=1, nullable=True),
        }
    )
    # Values go together or not at all; what is missing goes together always.
    apart = {
        "a": [True, True, False, False] * 25 + [None] * 100,
        "b": ["x", "y", "x", "y"] * 25 + [None] * 100,
        "n": [0.0, 1.0, 0.0, 1.0] * 25 + [None] * 100,
    }
    assert association_matrix(CodedTable.of(pa.table(apart), schema)) == pytest.approx(
        np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]]), abs=1e-6
    )
    empty = {"a": [True, None], "b": [None, "x"], "n": [None, None]}
    frame = CodedTable.of(pa.table({**empty, "n": pa.array([None, None], pa.float64())}), schema)
    assert association_matrix(frame).tolist() == np.eye(3).tolist()


def test_the_correlation_ratio_agrees_with_a_case_worked_out_by_hand() -> None:
    # Total sum of squares 10 around the mean 3, of which 2 * 1.5² + 2 * 1.5² = 9 between groups.
    values = np.array([[1.0], [2.0], [4.0], [5.0]], np.float32)
    assert correlation_ratios(np.array([0, 0, 1, 1]), values) == pytest.approx([np.sqrt(0.9)])


def test_correlations_agree_with_numpy_over_complete_pairs(real: CodedTable) -> None:
    matrix = association_matrix(real)
    both = np.isfinite(real.numbers).all(axis=1)
    assert matrix[0, 1] == pytest.approx(np.corrcoef(real.numbers[both].T)[0, 1], abs=1e-6)
    assert np.allclose(matrix, matrix.T)
    assert np.allclose(np.diag(matrix), 1)


def test_a_constant_column_is_associated_with_nothing() -> None:
    schema = Schema(columns={"n": Numeric(low=0, high=1), "c": Categorical(values=("x", "y"))})
    frame = CodedTable.of(pa.table({"n": [0.3, 0.3, 0.3], "c": ["x", "y", "x"]}), schema)
    assert association_matrix(frame).tolist() == [[1, 0], [0, 1]]


def test_coverage_of_ranges_and_categories() -> None:
    assert range_coverage(np.array([0.2, 0.6]), np.array([0.0, 0.4])) == pytest.approx(0.5)
    assert range_coverage(np.array([0.2, 0.6]), np.array([0.7, 0.8])) == 0.0
    assert range_coverage(np.array([0.5]), np.array([0.4, 0.6])) == 1.0
    assert range_coverage(np.array([np.nan]), np.array([0.4])) == 1.0
    assert range_coverage(np.array([0.5]), np.array([np.nan])) == 0.0
    assert category_coverage(np.array([0, 1]), np.array([1, 2])) == 0.5


def test_a_counting_query_counts() -> None:
    schema = Schema(columns={"n": Numeric(low=0, high=1)})
    low = CodedTable.of(pa.table({"n": [0.0, 0.0]}), schema)
    high = CodedTable.of(pa.table({"n": [1.0, 1.0]}), schema)
    assert counting_queries(low, high, 10).mean == 1.0


def test_the_discriminator_tells_different_tables_apart_only(real: CodedTable) -> None:
    same = discriminator_auc(real, CodedTable.of(table(800, 1), TABLE))
    assert max(same.values()) < 0.6
    older = pa.table({**{n: table(800)[n] for n in TABLE.columns}, "age": [80] * 800})
    assert min(discriminator_auc(real, CodedTable.of(older, TABLE)).values()) > 0.95
    assert discriminator_auc(real, real.take(np.arange(2))) == {}


def test_copies_are_found_and_fresh_rows_are_none(real: CodedTable) -> None:
    held, train = real.split(0.5, 0)
    found = neighbours(train, train, held)
    assert found.synthetic.copies == 1.0
    assert found.synthetic.median == pytest.approx(0, abs=1e-3)
    assert found.held_out.copies < 0.05
    assert found.held_out.median > 0.05


def test_distances_agree_with_a_plain_search(real: CodedTable) -> None:
    from sfumato.evaluation.encoding import Encoding

    held, train = real.split(0.5, 0)
    encoding = Encoding(train)
    gaps = encoding(held)[:, None].astype(float) - encoding(train)[None]
    nearest = np.sqrt((gaps**2).sum(axis=2)).min(axis=1)
    assert neighbours(train, held, held).held_out.median == pytest.approx(
        np.median(nearest), abs=1e-3
    )


def test_a_frame_reads_dates_and_missing_values_and_refuses_what_is_absent() -> None:
    from datetime import date

    schema = Schema(
        columns={"d": Datetime.model_validate({"low": date(2020, 1, 1), "high": date(2020, 1, 11)})}
    )
    frame = CodedTable.of(pa.table({"d": [date(2020, 1, 1), date(2020, 1, 6)]}), schema)
    assert frame.number("d").tolist() == [0.0, 0.5]
    with pytest.raises(SfumatoError, match=r"real data.*no column 'd'"):
        CodedTable.of(pa.table({"x": [1]}), schema, "real data")
    with pytest.raises(SfumatoError, match="synthetic data have no rows"):
        CodedTable.of(pa.table({"d": pa.array([], pa.date32())}), schema, "synthetic data")
