"""The noise is the discrete Gaussian, exactly.

Where entropy has a seed, a test fails always or never, and the false-alarm rate is that of one
seed, of which none was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri

from sfumato.errors import SfumatoError
from sfumato.privacy import noise
from sfumato.privacy.noise import _Proposal, discrete_gaussian

FALSE_ALARM = 1e-7
BINS = 500


@pytest.fixture
def entropy(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Give the operating system's entropy a seed."""

    def seed(number: int) -> None:
        rng = np.random.default_rng(number)
        monkeypatch.setattr("sfumato.privacy.noise.urandom", lambda size: rng.bytes(size))

    seed(0)
    return seed


def p_value(draws: np.ndarray, sigma: float) -> float:
    """Compare draws with the exact probabilities of about 500 ranges."""
    if sigma < 1e4:
        support = np.arange(-int(40 * sigma) - 40, int(40 * sigma) + 41)
        mass = np.exp(-(support.astype(float) ** 2) / (2 * sigma**2))
        below = np.cumsum(mass) / mass.sum()
        cuts = np.unique(np.searchsorted(below, np.arange(1, BINS) / BINS))
        chances = np.diff(below[cuts], prepend=0, append=1)
        ends = support[cuts]
    else:  # a range of so many numbers has the Gaussian's probability, to 1e-9 of it
        ends = np.unique(np.rint(sigma * ndtri(np.arange(1, BINS) / BINS)))
        chances = np.diff(ndtr((ends + 0.5) / sigma), prepend=0, append=1)
    counted = np.bincount(np.searchsorted(ends, draws), minlength=len(chances))
    likely = chances * len(draws) >= 5
    counted = np.append(counted[likely], counted[~likely].sum())
    expected = np.append(chances[likely], chances[~likely].sum()) * len(draws)
    return float(stats.chisquare(counted[expected > 0], expected[expected > 0]).pvalue)


@pytest.mark.usefixtures("entropy")
@pytest.mark.parametrize("size", [10**6, pytest.param(10**7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sigma", [0.7, 1.0, 3.7, 1000.3, 2.0**30, 1.17 * 2.0**40, 2.0**55])
def test_numbers_have_the_exact_probabilities(sigma: float, size: int) -> None:
    draws = discrete_gaussian(size, sigma)
    assert p_value(draws, sigma) > FALSE_ALARM
    if sigma >= 1000:  # the last bits are even, and tell nothing of one another
        assert stats.chisquare(np.bincount(draws & 255)).pvalue > FALSE_ALARM
    assert stats.chisquare(np.bincount(draws[draws != 0] > 0)).pvalue > FALSE_ALARM
    for one, other in ((draws[:-1], draws[1:]), (abs(draws[:-1]), abs(draws[1:]))):
        correlation = np.corrcoef(one.astype(float), other.astype(float))[0, 1]
        assert 2 * stats.norm.sf(abs(correlation) * len(one) ** 0.5) > FALSE_ALARM


@pytest.mark.parametrize("sigma", [0.7, 3.0, 40.0])
def test_opendp_draws_the_same(sigma: float) -> None:
    """Both from true entropy; false-alarm rate 1e-7 for each scale."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    theirs = np.array(dp.m.make_gaussian(*space, scale=sigma)([0] * 50_000))
    ours = discrete_gaussian(200_000, sigma)
    values, where = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    table = np.stack(
        [np.bincount(part, minlength=len(values)) for part in np.split(where, [len(ours)])]
    )
    rare = table.sum(0) < 100
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(1)])
    assert stats.chi2_contingency(table[:, table.sum(0) > 0]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("sigma", [0.3, 1.0, 1.7, 55.5, 1e9, 1.3 * 2.0**50])
def test_doubles_decide_as_exact_arithmetic_does(
    sigma: float, entropy: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    entropy(1)
    quick = discrete_gaussian(4000, sigma)
    # Now nothing is decided by doubles.
    monkeypatch.setattr(noise, "_TOLERANCE", 1e200)
    asked = []
    exactly = _Proposal._is_below
    monkeypatch.setattr(
        _Proposal, "_is_below", lambda self, *given: asked.append(1) or exactly(self, *given)
    )
    entropy(1)
    assert np.array_equal(discrete_gaussian(4000, sigma), quick)
    assert len(asked) >= 4000


@pytest.mark.usefixtures("entropy")
@pytest.mark.parametrize("sigma", [0.8, 6.0, 1e6])
def test_an_undecided_number_gets_more_bits_and_keeps_those_it_has(
    sigma: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one bit known at first, most comparisons need more: a fresh number would be biased."""
    monkeypatch.setattr(noise, "_BITS", 1)
    assert p_value(discrete_gaussian(20_000, sigma), sigma) > FALSE_ALARM


@pytest.mark.usefixtures("entropy")
def test_blocks_beyond_one_throw_of_coins_have_their_probability(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(noise, "_COINS", 1)
    heads = noise._heads_of(noise._words(200_000) >> np.uint64(63))
    counted = np.bincount(np.minimum(heads, 10), minlength=11)
    expected = len(heads) * np.append(2.0 ** -np.arange(1, 11), 2.0**-10)
    assert stats.chisquare(counted, expected).pvalue > FALSE_ALARM
    assert p_value(discrete_gaussian(200_000, 6.0), 6.0) > FALSE_ALARM


@given(
    scale=st.floats(-3.3, 55).map(lambda power: 2.0**power),
    block=st.integers(0, 63),
    part=st.floats(0, 1, exclude_max=True),
)
def test_bounds_in_doubles_are_as_near_as_is_claimed_and_are_probabilities(
    scale: float, block: int, part: float
) -> None:
    proposal = _Proposal.of(scale)
    magnitude = (block << proposal.shift) + int(part * (1 << proposal.shift))
    (found,) = proposal.heights(np.array([magnitude]), np.array([block])).tolist()
    with localcontext(prec=60):
        exponent = Decimal(magnitude) ** 2 / (2 * Decimal(scale) ** 2)
        exact = Decimal(proposal.gain) * 2**block * (-exponent).exp()
        assert exact <= 1
        if exponent <= 512:
            assert abs(Decimal(found) / exact - 1) < Decimal(2) ** -31
        else:
            assert exact < found < 2.0**-600


def test_more_than_half_of_what_is_drawn_is_kept() -> None:
    """Otherwise it would still be right, but slow."""
    for scale in 2.0 ** np.arange(0, 55, 0.37):
        assert len(_Proposal.of(scale).draw(20_000)) > 9_900


@pytest.mark.parametrize("size", [0, 1, 2 * noise._PIECE + 5])
def test_pieces_are_joined_to_the_asked_size_and_differ(size: int) -> None:
    """Two numbers of wide noise coincide with probability below 1e-14."""
    draws = discrete_gaussian(size, 1e18 / 40)
    assert draws.shape == (size,)
    assert draws.dtype == np.int64
    assert len(np.unique(draws)) == size


def test_a_numpy_seed_does_not_fix_the_noise() -> None:
    """Equal draws have probability below 1e-300."""
    np.random.seed(0)
    first = discrete_gaussian(100, 1e6)
    np.random.seed(0)
    assert not np.array_equal(first, discrete_gaussian(100, 1e6))


@pytest.mark.parametrize("sigma", [0.0, -1.0, 0.05, 2.0**56, float("nan"), float("inf")])
def test_a_scale_that_cannot_be_drawn_is_refused(sigma: float) -> None:
    with pytest.raises(SfumatoError, match="sigma"):
        discrete_gaussian(3, sigma)
