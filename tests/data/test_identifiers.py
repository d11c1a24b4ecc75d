"""Synthetic identifiers are shared by as many rows as was released."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.identifiers import shared_identifiers

COUNTS = st.lists(st.floats(-1e3, 1e6), min_size=1, max_size=9)


def units_with_at_least(identifiers: np.ndarray, most: int) -> list[int]:
    sizes = np.bincount(identifiers)[1:]
    return [int((sizes >= j).sum()) for j in range(1, most + 1)]


@given(st.integers(0, 500), COUNTS, st.integers(0, 9))
def test_every_row_has_an_identifier(rows: int, at_least: list[float], seed: int) -> None:
    identifiers = shared_identifiers(rows, at_least, np.random.default_rng(seed)).to_numpy()
    assert len(identifiers) == rows
    first = list(dict.fromkeys(identifiers.tolist()))
    assert first == list(range(1, len(first) + 1))
    assert max(np.bincount(identifiers, minlength=1)) <= len(at_least)


@given(st.integers(1, 500), st.lists(st.floats(0.1, 1e6), min_size=1, max_size=9))
def test_units_have_rows_in_proportion_to_what_was_released(
    rows: int, at_least: list[float]
) -> None:
    falling = sorted(at_least, reverse=True)
    identifiers = shared_identifiers(rows, falling, np.random.default_rng(0)).to_numpy()
    expected = np.array(falling) * rows / sum(falling)
    found = units_with_at_least(identifiers, len(falling))
    assert np.abs(found - expected).max() < 1 + 1e-6


def test_counts_that_rise_are_evened_out() -> None:
    identifiers = shared_identifiers(900, [50, 20, 30, -10], np.random.default_rng(0)).to_numpy()
    assert units_with_at_least(identifiers, 4) == [450, 225, 225, 0]


def test_one_row_each_is_numbered_through() -> None:
    for at_least in ([7.0], [7.0, 0.0], [-2.0, -3.0]):
        made = shared_identifiers(5, at_least, np.random.default_rng(0))
        assert made.to_pylist() == [1, 2, 3, 4, 5]


def test_rows_of_a_unit_lie_anywhere_and_the_seed_says_where() -> None:
    one, again, other = (
        shared_identifiers(1000, [2, 1], np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert one.equals(again)
    assert not one.equals(other)
    # Neighbours are of one unit with a chance of about 1 in 1,500.
    assert (np.diff(one.to_numpy()) == 0).sum() < 20
