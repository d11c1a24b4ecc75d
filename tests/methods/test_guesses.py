"""What is guessed is little, sums to nothing new, and reaches what noise hides."""

import numpy as np
import pytest

from sfumato.methods.pairs.guesses import guessed_share, with_rare, with_tails


def test_tails_fade_out_towards_both_bounds() -> None:
    mass = np.zeros(203)
    mass[60:100] = 500.0
    mass[200] = 3000.0  # a cell that is not on the line
    found = with_tails(mass, 200, 50.0)
    assert found.sum() == pytest.approx(mass.sum())
    assert (np.diff(found[100:200]) < 0).all()
    assert (np.diff(found[:60]) > 0).all()
    assert found[100:200].sum() == pytest.approx(23, rel=0.01)  # a thousandth of the rows
    assert found[201:].sum() == 0
    assert guessed_share(mass, found) == pytest.approx(0.002, rel=0.01)


@pytest.mark.parametrize("mass", [np.zeros(8), np.eye(8)[3] * 50, np.ones(8), np.eye(9)[8] * 50])
def test_where_nothing_falls_off_there_is_no_tail(mass: np.ndarray) -> None:
    assert with_tails(mass, 8, 5.0) == pytest.approx(mass)


def test_every_listed_category_gets_some_rows_and_the_others_none() -> None:
    found = with_rare(np.array([6000.0, 0.0, 4000.0, 0.0, 0.0]), 3)
    assert found == pytest.approx([5995.2, 8, 3996.8, 0, 0])


def test_many_rare_categories_share_a_hundredth_of_the_rows() -> None:
    mass = np.zeros(5000)
    mass[0] = 1000.0
    found = with_rare(mass, 5000)
    assert found.sum() == pytest.approx(1000)
    assert found[1:].sum() == pytest.approx(10, rel=0.01)
    assert found.min() > 0
