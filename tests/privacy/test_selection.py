"""Selection: a value that one unit alone has is hardly ever told, and the rest is a Gaussian's."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.data.rows import EncodedTable
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.privacy import wall
from sfumato.privacy.answers import layout_of_values, told_values
from sfumato.privacy.budget import (
    Budget,
    Cost,
    Guarantee,
    Relation,
    SelectionSpend,
    Spend,
    composed_epsilon,
)
from sfumato.privacy.curator import Curator
from sfumato.privacy.gaussian import delta_of
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from sfumato.privacy.search_budget import SearchBudget
from sfumato.privacy.selection import Selection
from sfumato.schema import Schema

SCHEMA = Schema.from_toml(
    '[columns.who]\nkind = "identifier"\nunit = true\n'
    '[columns.zip]\nkind = "categorical"\nvalues = "private"\n'
)


class Counted:
    """Rows of which only these counts are known."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def counted_values(self, column: str) -> dict[str, int]:
        return self.counts


def told_of(counts: dict[str, int], selection: Selection, spend: Spend) -> Any:
    return wall.told_values(Counted(counts), selection, spend, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("rows", [1, 3, 50])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_threshold_is_out_of_reach_of_one_unit(
    relation: Relation, rows: int, epsilon: float
) -> None:
    """By the exact tails of the noise on its grid, however a unit spreads its rows over values."""
    budget = Budget(epsilon=epsilon, relation=relation, max_rows_per_unit=rows)
    selection = Selection("zip", 1e-8)
    spend = selection.plan("values", budget, 0.05)
    tau = selection.threshold(spend, rows)
    for parts in (1, 2, rows):
        each = math.ceil(rows / min(parts, rows))
        least = math.ceil(spend.scale * (tau - each)) - 0.5  # rounded noise reaches it from here
        tail = 0.5 * math.erfc(least / (spend.scale * spend.sigma) / math.sqrt(2))
        assert min(parts, rows) * tail <= selection.chance


def test_a_value_of_one_unit_is_told_as_rarely_as_promised() -> None:
    """With a chance of 2%, among 40,000 tries: 1,000 or more would come once in 1e13."""
    selection = Selection("zip", 0.02)
    spend = selection.plan("values", Budget(epsilon=1), 0.05)
    counts = {str(number): 1 for number in range(40_000)}  # as if each were the only new one
    told, _ = told_of(counts, selection, spend)
    assert 300 < len(told) < 1000


def test_what_common_values_are_told_is_a_gaussian_of_their_counts() -> None:
    selection = Selection("zip", 1e-9)
    spend = selection.plan("values", Budget(epsilon=1), 0.05)
    counts = {str(number): 5000 for number in range(2000)}
    told, noisy = told_of(counts, selection, spend)
    assert told == sorted(counts)
    errors = noisy / spend.scale - 5000
    assert abs(errors.mean()) < 5 * spend.sigma / math.sqrt(2000)
    assert errors.std() == pytest.approx(spend.sigma, rel=0.1)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_one_unit_moves_the_counts_by_no_more_than_is_paid_for(most: int) -> None:
    """Over random neighbours: with a unit, and without it."""
    rng = np.random.default_rng(most)
    codec = TableCodec(SCHEMA)
    budget = Budget(epsilon=1, max_rows_per_unit=most)
    reach = Selection("zip", 1e-9).plan("values", budget, 0.05).sensitivity
    for _ in range(30):
        who = rng.integers(0, 8, 40)
        zips = rng.integers(0, 6, 40).astype(str)
        counted = []
        for kept in (who >= 0, who != 3):
            table = pa.table({"who": who[kept], "zip": zips[kept]})
            counted.append(EncodedTable(table, codec, most).counted_values("zip"))
        values = counted[0].keys() | counted[1].keys()
        gap = [counted[0][value] - counted[1][value] for value in values]
        assert math.hypot(*gap) <= reach
        alone = counted[0].keys() - counted[1].keys()
        assert len(alone) <= most
        assert all(counted[0][value] <= most for value in alone)


def test_a_replaced_unit_moves_the_counts_by_no_more_than_is_paid_for() -> None:
    """One that had one value has another: two counts move."""
    budget = Budget(epsilon=1, relation=Relation.REPLACE_ONE)
    reach = Selection("zip", 1e-9).plan("values", budget, 0.05).sensitivity
    counted = [
        EncodedTable(
            pa.table({"who": [1, 2], "zip": [value, "01"]}), TableCodec(SCHEMA)
        ).counted_values("zip")
        for value in ("02", "03")
    ]
    gap = [counted[0][value] - counted[1][value] for value in ("01", "02", "03")]
    assert 1 < math.hypot(*gap) <= reach


def test_values_are_counted_as_they_are_spelt_in_their_row_alone() -> None:
    table = pa.table({"who": list(range(6)), "zip": [" 01", "01", None, "NA", "1.0", "1"]})
    found = EncodedTable(table, TableCodec(SCHEMA)).counted_values("zip")
    assert found == Counter({"01": 2, "1": 2})


def test_the_chance_is_paid_for_out_of_delta() -> None:
    plain = Spend(name="counts", dim=9, sensitivity=1, sigma=5, scale=1 << 25)
    chosen = SelectionSpend(
        name="values", dim=1, sensitivity=1, sigma=20, scale=1 << 24, chance=1e-8
    )
    costs: list[Cost] = [plain, chosen]
    epsilon = composed_epsilon(costs, 1e-6, Relation.ADD_REMOVE)
    mu = math.sqrt(2 * (plain.rho + chosen.rho))
    assert delta_of(mu, epsilon) + (1 + math.exp(epsilon)) * 1e-8 <= 1e-6
    without = SelectionSpend(**{**vars(chosen), "chance": 1e-30})
    assert composed_epsilon([plain, without], 1e-6, Relation.ADD_REMOVE) < epsilon
    # Where the chance alone takes all of delta, nothing is promised: also not by zCDP.
    sure = SelectionSpend(**{**vars(chosen), "chance": 1e-6})
    assert composed_epsilon([plain, sure], 1e-6, Relation.ADD_REMOVE) == math.inf
    promised = Guarantee.of(Budget(epsilon=1), (plain, chosen))
    assert Guarantee.from_dict(promised.to_dict()) == promised
    assert promised.zcdp_epsilon > promised.epsilon
    assert promised.content_epsilon > promised.epsilon


def curator(counts: dict[str, int], folder: Path | None, ledger: Ledger) -> Curator:
    zips = [value for value, count in counts.items() for _ in range(count)]
    table = pa.table({"who": list(range(len(zips))), "zip": zips})
    return Curator.of(
        table,
        TableCodec(SCHEMA),
        SCHEMA,
        Budget(epsilon=1),
        Run(ledger=ledger, dataset="d", folder=folder),
        ahead=SearchBudget(0.05, 1e-9),
    )


def test_what_is_told_is_saved_and_taken_up(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")
    counts = {"Ulm": 3000, "Jena, an der Saale": 2000, "Bonn": 1}
    first = curator(counts, tmp_path, ledger).release_search("values", Selection("zip", 1e-9), 0.05)
    assert told_values(first) == ["Jena, an der Saale", "Ulm"]
    again = curator(counts, tmp_path, ledger).release_search("values", Selection("zip", 1e-9), 0.05)
    assert told_values(again) == told_values(first)
    assert np.array_equal(again.noisy, first.noisy)
    (entry,) = ledger.entries("d")
    assert entry.spend == first.spend
    for path in tmp_path.iterdir():
        assert b"Bonn" not in path.read_bytes()


def test_more_than_is_kept_back_is_refused() -> None:
    asked = curator({"Ulm": 1000}, None, Ledger(":memory:"))
    with pytest.raises(SfumatoError, match="more than what is kept back"):
        asked.release_search("values", Selection("zip", 2e-9), 0.05)
    with pytest.raises(SfumatoError, match="more than what is kept back"):
        asked.release_search("values", Selection("zip", 1e-9), 0.06)
    asked.release_search("values", Selection("zip", 1e-9), 0.05)
    with pytest.raises(SfumatoError, match="more than what is kept back"):
        asked.release_search("more", Selection("zip", 1e-9), 0.001)


def test_values_are_written_and_read() -> None:
    from sfumato.privacy.answers import Release

    for values in ([], ["", "ü", "a\nb"]):
        spend = Spend(name="v", dim=1, sensitivity=1, sigma=1)
        release = Release(
            noisy=np.zeros(len(values), np.int64),
            statistic={},
            spend=spend,
            layout=layout_of_values(values),
        )
        assert told_values(Release.from_bytes(release.to_bytes(), Path("v"))) == values
