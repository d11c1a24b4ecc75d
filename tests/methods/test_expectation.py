"""Expectations come from noise and public facts, and the noise of real releases bears them out."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from seeded import Seeded, drawing
from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import encoded_rows
from sfumato.methods.moments.method import Moments
from sfumato.methods.pairs.method import Pairs
from sfumato.modelling.base import Method
from sfumato.modelling.expectation import Expectation
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import discrete_gaussian
from sfumato.privacy.run import Run
from sfumato.registry import method_class
from sfumato.schema import Categorical, Images, Numeric, Schema
from sfumato.statistics.frequencies import LowFrequencies
from sfumato.statistics.moments import LabelledMoments, Sizes

EVEN = Schema(
    columns={
        "a": Numeric(low=0, high=1),
        "b": Numeric(low=0, high=63, integer=True),
        "c": Categorical(values=tuple("uvwxyz")),
        "d": Categorical(values=("yes", "no")),
    }
)
PICTURES = Schema(images=Images(height=10, width=12, classes=("cat", "dog")))
neural = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


def even_rows(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "a": rng.random(rows),
            "b": rng.integers(0, 64, rows),
            "c": rng.choice(list("uvwxyz"), rows),
            "d": rng.choice(["yes", "no"], rows),
        }
    )


def noise_of_a_fit(
    method: Method, data: pa.Table, schema: Schema, budget: Budget
) -> list[NDArray[np.float64]]:
    """Fit, and give the noise that each release got."""
    drawn = []

    class Recorded(Seeded):
        def noise(self, size: int, sigma: float) -> NDArray[np.int64]:
            drawn.append(super().noise(size, sigma))
            return drawn[-1]

    rows = encoded_rows(data, method.codec(schema))
    ledger = Ledger(":memory:")
    wall = Curator(rows, budget, schema, Run(ledger=ledger, dataset="t"))
    with drawing(Recorded()):
        method.learn(wall)
    return [each / r.spend.scale for each, r in zip(drawn, wall.releases, strict=True)]


def expected(
    method: Method, schema: Schema, budget: Budget, rows: int, start: str
) -> tuple[float, Expectation]:
    (found,) = (e for e in method.expect(schema, budget, rows) if e.what.startswith(start))
    assert found.part is not None
    return found.part, found


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_errors_of_pairs_are_those_of_a_fit_to_evenly_spread_rows(
    epsilon: float, relation: Relation
) -> None:
    """The noise is seeded; beside it, planning for a second look costs 4%, and groups differ."""
    rows, budget = 6000, Budget(epsilon=epsilon, relation=relation)
    method = Pairs(components=2, restarts=1)
    one_way, pairs = noise_of_a_fit(method, even_rows(rows), EVEN, budget)
    share, _ = expected(method, EVEN, budget, rows, "error of the share of one value")
    assert share == pytest.approx(one_way.std() / rows, rel=0.2)
    cell, _ = expected(method, EVEN, budget, rows, "error of the share of one cell")
    assert cell == pytest.approx(pairs.std() / rows, rel=0.2)
    variation, _ = expected(method, EVEN, budget, rows, "error of a pair's table")
    assert variation == pytest.approx(np.abs(pairs).sum() / 2 / rows / 6, rel=0.25)
    relation_error, _ = expected(method, EVEN, budget, rows, "error of a broad relation")
    signs = np.random.default_rng(1).choice([-1, 1], (2000, len(pairs)))
    over_halves = (signs @ pairs).std() / math.sqrt(6) / rows
    assert relation_error == pytest.approx(over_halves, rel=0.25)


def test_pairs_fall_back_to_single_columns_where_the_plan_says_so() -> None:
    method, budget = Pairs(components=2, restarts=1), Budget(epsilon=0.01)
    told = {e.what: e for e in method.expect(EVEN, budget, 400)}
    assert told["what is counted"].in_words() == "each column alone: too few rows for so many pairs"
    verdicts = {e.verdict for e in told.values() if e.good is not None}
    assert verdicts == {"noise only"}
    assert told["error of the share of one cell of a pair"].in_words().startswith("not released")
    *_, tables = noise_of_a_fit(method, even_rows(400), EVEN, budget)
    assert len(tables) <= 4 * 20  # of four columns at most, and of no pair


def test_classes_of_a_target_add_their_noise_to_a_pair() -> None:
    budget = Budget(epsilon=1)
    alone, _ = expected(Pairs(), EVEN, budget, 6000, "error of the share of one cell")
    by_class, _ = expected(Pairs(target="c"), EVEN, budget, 6000, "error of the share of one cell")
    assert by_class == pytest.approx(alone * math.sqrt(6) * math.sqrt(3 / 6))  # of 3 tables, not 6
    _, smallest = expected(Pairs(target="c"), EVEN, budget, 6000, "smallest class")
    assert "rows" in smallest.in_words()


def test_more_rows_and_more_epsilon_are_never_worse() -> None:
    def share(epsilon: float, rows: int) -> float:
        return expected(
            Pairs(), EVEN, Budget(epsilon=epsilon), rows, "error of the share of one v"
        )[0]

    assert share(1, 1000) > share(1, 8000) > share(3, 8000)


def test_one_column_has_no_pairs_and_needs_none() -> None:
    schema = Schema(columns={"d": EVEN.columns["d"]})
    told = {e.what: e.in_words() for e in Pairs().expect(schema, Budget(epsilon=1), 1000)}
    assert told["what is counted"] == "each column alone"


@pytest.mark.parametrize("relabel", [False, True])
def test_errors_of_moments_are_those_of_their_noise_in_pixels(
    relabel: bool,
) -> None:
    rows, budget = 8000, Budget(epsilon=1)
    method = Moments(relabel=relabel)
    codec = method.codec(PICTURES)
    assert isinstance(codec, ImageCodec)
    mean, told = expected(method, PICTURES, budget, rows, "error of a class's mean")
    count = int(told.words.split()[0])
    (basis,) = (s for s in method.plan(PICTURES, budget).spends if s.name == "basis")
    moments = LabelledMoments(Sizes(2, count), count=0.5, sum_=0.5, square=1.0, pooled=True)
    noise = [discrete_gaussian(moments.dim, basis.sigma) for _ in range(40)]
    found = [moments.read(each, basis.sigma) for each in noise]
    half = 0.7 * 0.5 * math.sqrt(120)  # the bound of images that are all black or white
    matrix = LowFrequencies(codec.shape, count).matrix
    pixels = np.concatenate([half * each.sums / (rows / 2) @ matrix for each in found])
    assert mean == pytest.approx(pixels.std(), rel=0.1)
    number, _ = expected(method, PICTURES, budget, rows, "error of the number of images")
    assert number == pytest.approx(np.std([each.counts for each in found]) / (rows / 2), rel=0.3)


@neural
@pytest.mark.parametrize("name", ["merf", "hp"])
def test_noise_of_embeddings_is_compared_with_rows_that_all_agree(name: str) -> None:
    rows, budget = 3000, Budget(epsilon=2)
    method = method_class(name)(target="c")  # type: ignore[call-arg]
    parts = [e for e in method.expect(EVEN, budget, rows) if e.what.startswith("noise of")]
    spends = method.plan(EVEN, budget).spends[1:]
    assert len(parts) == len(spends)
    for told, spend in zip(parts, spends, strict=True):
        assert told.part is not None
        # Under add-remove the sensitivity is the longest vector of a row.
        noise = [discrete_gaussian(spend.dim // 6, spend.sigma) for _ in range(200)]
        ratio = np.linalg.norm(noise, axis=1).mean() / (spend.sensitivity * rows / 6)
        if name == "hp":
            assert told.part == pytest.approx(ratio, rel=0.05)
        else:  # the plan is for as many features as there may be
            assert 0 < told.part < ratio


@neural
def test_noise_of_a_training_is_compared_with_the_largest_sum_of_a_step() -> None:
    rows, budget = 3000, Budget(epsilon=2)
    method = method_class("locally-linear")(target="d")  # type: ignore[call-arg]
    (spend,) = method.plan(EVEN, budget).trainings
    part, told = expected(method, EVEN, budget, rows, "noise of a step")
    rng = np.random.default_rng(0)
    lengths = np.linalg.norm(rng.normal(0, spend.sigma, (4000, spend.dim)), axis=1)
    assert part == pytest.approx(lengths.mean() / (0.1 * rows), rel=0.02)
    assert f"noise multiplier {spend.noise_multiplier:.3g}" in told.in_words()


@pytest.mark.parametrize(
    ("part", "verdict"), [(0.01, "good"), (0.011, "usable"), (0.051, "noise only")]
)
def test_verdicts_follow_the_limits_that_are_told(part: float, verdict: str) -> None:
    told = Expectation(what="x", part=part, good=0.01, usable=0.05)
    assert told.verdict == verdict
    assert told.limits() == "1%, 5%"


def test_where_no_target_is_named_a_plan_says_which_could_be() -> None:
    (_, advice) = Pairs().plan(EVEN, Budget(epsilon=1)).notes
    assert "one of the categories: c, d; or one of the numbers: a, b" in advice
    assert len(Pairs(target="c").plan(EVEN, Budget(epsilon=1)).notes) == 1
