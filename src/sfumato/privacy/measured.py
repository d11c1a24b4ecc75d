"""The promise, measured from outside: how well an attacker tells two neighbours apart.

Releases: on a pair of neighbours that is as bad as one can find, the real curator answers the same
questions again and again. The attacker knows both exact sums, so the best that can be done is to
project what comes out onto their difference; over many runs that is a normal number with a mean of
its own for each neighbour, and the means lie mu deviations apart (the Gaussian audit).

A training: thousands of canaries, each with a gradient in a direction of its own, are in the data
or not, by a coin each. One run is then thousands of trials. With every row in every step it is a
Gaussian mechanism, and mu is measured as above. With sampled rows, the attacker guesses which of
the most and the least conspicuous canaries were there; if a training is (epsilon, delta)-DP, right
guesses are dominated by a binomial (Steinke, Nasr and Jagielski 2023), which gives the least
epsilon that explains them.

Finding nothing proves nothing: an attack that fails is no proof that others must.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from sfumato.data.batch import Batch
from sfumato.data.rows import GivenRows
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.gate import Gate
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Sampler, discrete_gaussian
from sfumato.privacy.randomness import Randomness, SystemRandomness
from sfumato.privacy.release import Curator
from sfumato.privacy.statistic import Statistic
from sfumato.schema import Schema

if TYPE_CHECKING:
    from sfumato.privacy.dpsgd import Schedule

Floats = NDArray[np.float64]

ERROR = 1e-6
"""The chance that a sound Gaussian mechanism is called unsound."""
ONE_RUN_ERROR = 0.01
"""The same for the guesses of one run, whose bound cannot be much surer than m delta / guesses."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What an attack found, beside what is claimed.

    `least` and `most` are the ends of an interval that holds the true value but for a chance of
    `error`; an attack that gives a lower bound only has no `most`.
    """

    what: str
    claimed: float
    found: float
    least: float
    most: float
    runs: int
    error: float = ERROR

    @property
    def violated(self) -> bool:
        """Whether the attack succeeded better than is claimed to be possible."""
        return self.least > self.claimed

    def in_words(self) -> str:
        """Tell the result in one line."""
        ends = (
            f"{self.least:.4g} to {self.most:.4g}"
            if math.isfinite(self.most)
            else (f"at least {self.least:.4g}")
        )
        verdict = "VIOLATED" if self.violated else "no violation found"
        return (
            f"{self.what}: claimed {self.claimed:.4g}, measured {ends} with {self.runs:,} trials, "
            f"wrong with a chance of at most {self.error:g} ({verdict})"
        )


@dataclass
class _Question:
    name: str
    statistic: Statistic
    share: float


class _Recorder(Curator):
    """A curator that remembers what it was asked."""

    def __init__(self, rows: GivenRows, budget: Budget, schema: Schema) -> None:
        super().__init__(
            rows, budget, ledger=Ledger(":memory:"), dataset="audit", schema=schema, gate=Gate(None)
        )
        self.asked: list[_Question] = []

    def release(self, name: str, statistic: Statistic, share: float) -> Any:
        self.asked.append(_Question(name, statistic, share))
        return super().release(name, statistic, share)


def measure_releases(
    method: Any,
    schema: Schema,
    budget: Budget,
    runs: int,
    sampler: Sampler = discrete_gaussian,
    seed: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> Measured:
    """Let a method ask its questions once, and answer them many times for two neighbours."""
    rng = np.random.default_rng(seed)
    codec = method.codec(schema)
    base, candidates = (_random_rows(codec, rng, count) for count in (40, 30))
    recorder = _Recorder(GivenRows([base], codec), budget, schema)
    method.learn(recorder)
    first, second = _worst_pair(recorder, base, candidates, budget)
    sums = [
        [question.statistic.sum(rows) for rows in (first, second)] for question in recorder.asked
    ]
    seen = np.zeros((2, runs))
    for run in range(runs):
        for side, rows in enumerate((first, second)):
            wall = Curator(
                GivenRows([rows], codec), budget, ledger=Ledger(":memory:"), dataset="audit",
                schema=schema, gate=Gate(None), sampler=sampler,
            )  # fmt: skip
            for question, (with_it, without) in zip(recorder.asked, sums, strict=True):
                release = wall.release(question.name, question.statistic, question.share)
                apart = (with_it - without).astype(np.float64)
                seen[side, run] += (release.values - without) @ apart / release.sigma**2
        progress((run + 1) / runs)
    claimed = math.sqrt(2 * sum(release.spend.rho for release in recorder.releases))
    return _two_samples(f"mu of the releases of {method.name}", seen[0], seen[1], claimed)


def _two_samples(what: str, present: Floats, absent: Floats, claimed: float) -> Measured:
    """Estimate how many deviations the means of two samples lie apart."""
    counts = len(present), len(absent)
    squares = present.var() * counts[0] + absent.var() * counts[1]
    spread = math.sqrt(squares / (sum(counts) - 2))
    found = float(present.mean() - absent.mean()) / spread
    # By the delta method: of the means, and of the common deviation.
    error = math.sqrt(1 / counts[0] + 1 / counts[1] + found**2 / (2 * sum(counts)))
    reach = float(norm.isf(ERROR / 2)) * error
    return Measured(
        what=what,
        claimed=claimed,
        found=found,
        least=found - reach,
        most=found + reach,
        runs=sum(counts),
    )


def _random_rows(codec: Any, rng: np.random.Generator, count: int) -> Batch:
    """Draw rows anywhere in the schema, half of them at its corners."""
    from sfumato.data.image_codec import ImageCodec

    if isinstance(codec, ImageCodec):
        pixels = rng.integers(0, 256, (count, math.prod(codec.shape)))
        pixels[: count // 2] = 255 * rng.integers(0, 2, (count // 2, 1))
        codes = rng.integers(0, codec.classes, (count, 1))
        return Batch(codes.astype(np.int32), pixels.astype(np.uint8))
    codes = np.stack([rng.integers(0, column.size, count) for column in codec.columns], axis=1)
    numbers = sum(not column.is_category for column in codec.columns)
    unit = rng.random((count, numbers))
    unit[: count // 2] = unit[: count // 2].round()
    return Batch(codes.astype(np.int32), unit.astype(np.float32))


def _worst_pair(
    recorder: _Recorder, base: Batch, candidates: Batch, budget: Budget
) -> tuple[Batch, Batch]:
    """Find the neighbours that the questions tell apart best, among the candidates."""
    single = [candidates.where(np.array([i])) for i in range(len(candidates))]
    weights = [1 / release.sigma for release in recorder.releases]
    points = np.array(
        [
            np.concatenate(
                [q.statistic.sum(row) * w for q, w in zip(recorder.asked, weights, strict=True)]
            )
            for row in single
        ]
    )
    times = budget.max_rows_per_unit
    if budget.relation is Relation.ADD_REMOVE:
        worst = int(np.argmax(np.linalg.norm(points, axis=1)))
        return _joined(base, [single[worst]] * times), base
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    return _joined(base, [single[one]] * times), _joined(base, [single[other]] * times)


def _joined(base: Batch, rows: Sequence[Batch]) -> Batch:
    parts = [base, *rows]
    return Batch(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )


def measure_training(
    schedule: Schedule,
    budget: Budget,
    canaries: int,
    randomness: Randomness | None = None,
    seed: int = 0,
) -> tuple[Measured, Measured]:
    """Train on canaries: with all of them in each step, for mu; and as they would be sampled."""
    rng = np.random.default_rng(seed)
    whole = replace(schedule, rate=1.0, epochs=float(schedule.steps))
    present = rng.random(canaries) < 0.5
    seen, spend = _trained(whole, budget, present, randomness)
    claimed = math.sqrt(spend.steps) / spend.noise_multiplier
    mu = _two_samples("mu of a training on all rows", seen[present], seen[~present], claimed)
    seen, spend = _trained(schedule, budget, present, randomness)
    order = np.argsort(seen)
    guesses = canaries // 20
    right = int(present[order[-guesses:]].sum() + (~present[order[:guesses]]).sum())
    least = least_epsilon(canaries, 2 * guesses, right, budget.delta)
    one_run = Measured(
        what="epsilon of a training on sampled rows, by one run",
        claimed=budget.epsilon,
        found=least,
        least=least,
        most=math.inf,
        runs=canaries,
        error=ONE_RUN_ERROR,
    )
    return mu, one_run


def least_epsilon(canaries: int, guesses: int, right: int, delta: float) -> float:
    """Give the least epsilon at which so many right guesses are no wonder, at this delta.

    For pure privacy, each guess is right with a chance of at most e^epsilon / (1 + e^epsilon),
    whatever the others are. A delta adds at most 2 m delta max over i of P(v > W >= v - i) / i.

    >>> least_epsilon(1000, 200, 100, 1e-6)
    0.0
    >>> 2 < least_epsilon(1000, 200, 190, 1e-6) < 2.94
    True
    """
    losses = np.arange(1, right + 1)

    def chance(epsilon: float) -> float:
        share = 1 / (1 + math.exp(-epsilon))
        missed = np.cumsum(binom.pmf(right - losses, guesses, share))
        extra = 2 * canaries * delta * float((missed / losses).max(initial=0.0))
        return float(binom.sf(right - 1, guesses, share)) + extra

    low, high = 0.0, 30.0
    if chance(low) > ONE_RUN_ERROR:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) <= ONE_RUN_ERROR else (low, middle)
    return low


def _trained(
    schedule: Schedule, budget: Budget, present: NDArray[np.bool_], randomness: Randomness | None
) -> tuple[Floats, Any]:
    """Train on the canaries that are present, and give what each canary's direction shows."""
    from sfumato.privacy.canaries import CanaryLearner

    numbers = np.flatnonzero(present).astype(np.int32)[:, None]
    wall = Curator(
        GivenRows([Batch(numbers, np.empty((len(numbers), 0), np.float32))]), budget,
        ledger=Ledger(":memory:"), dataset="audit", schema=_NOBODY, gate=Gate(None),
        randomness=randomness or SystemRandomness(),
    )  # fmt: skip
    state = wall.train("canaries", CanaryLearner(len(present)), schedule)
    return -state.arrays["weights/place"].astype(np.float64), wall.trainings[0]


_NOBODY = Schema.from_toml('[columns.canary]\nkind = "boolean"\n')
