"""The promise, measured from outside: how well an attacker tells two neighbours apart.

What is measured is a method with its settings, a schema and a budget. Rows are drawn anywhere in
the schema, written to a file and read back as a user's are; the real curator answers what the
method asks, at its own noise.

Releases (`measure_releases`): on a pair of neighbours that is as bad as one can find, the same
questions are answered again and again. The attacker knows both exact sums, so the best that can be
done is to project what comes out onto their difference; over many runs that is a normal number with
a mean of its own for each neighbour, and the means lie mu deviations apart (the Gaussian audit).

A training (`measure_training`): the method is fitted to rows that are all canaries, each of which
is in the data or not, by a coin each. The attacker sees every noisy sum, and knows how each canary
would move it.

- With all rows in each step it is a Gaussian mechanism. Its mu follows from the farthest that a
  canary moves a sum, and from the noise, which is seen where the exact sum is known.
- With sampled rows, the attacker says of the most and the least likely canaries whether they were
  there. If a training is (epsilon, delta)-DP, right guesses are dominated by a binomial (Steinke,
  Nasr and Jagielski 2023), which gives the least epsilon that explains them.

Finding nothing proves nothing: an attack that fails is no proof that others must.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, chi2, norm

from sfumato.data.batch import Batch
from sfumato.data.image_codec import ImageCodec
from sfumato.data.image_set import ImageSet
from sfumato.data.rows import GivenRows, PrivateRows, encoded_rows
from sfumato.data.table_codec import TableCodec
from sfumato.data.writing import write_synthetic
from sfumato.errors import SfumatoError, within
from sfumato.privacy import wall
from sfumato.privacy.audit import forgotten_run
from sfumato.privacy.budget import (
    Budget,
    Guarantee,
    Relation,
    SelectionSpend,
    Spend,
    TrainingSpend,
)
from sfumato.privacy.curator import Curator
from sfumato.privacy.statistic import Statistic
from sfumato.schema import Schema

if TYPE_CHECKING:
    from torch import Tensor

    from sfumato.privacy.dpsgd import Learner

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NOTE = "Finding nothing proves nothing: the proof is in docs/privacy.md; an attack only tests it."

ERROR = 1e-6
"""The chance that a sound Gaussian mechanism is called unsound."""
GUESS_ERROR = 0.01
"""The same for guesses, whose bound cannot be much surer than m delta / guesses."""

_GUESSED = 0.25  # of the canaries: those of which the attacker is surest
_FEWEST = 20  # canaries in a run
_MOST_LOOKS = 30_000  # at what one canary does to one sum
_WIDEST = 1 << 27  # canaries times values of a sum, at once
_NOISE_SEEN = 20_000  # numbers, by which a scale is known to 2.5%
_AS_GOOD_AS = 0.01  # how far what was claimed when measured may lie from what a model claims


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What an attack found, beside what is claimed.

    `least` and `most` are the ends of an interval that holds the true value but for a chance of
    `error`; an attack that gives a lower bound only has no `most`. `subject` is the digest of what
    was measured: see `subject_of`.
    """

    what: str
    kind: Literal["releases", "training", "whole"]
    subject: str
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

    def refuse_for(self, fitted: Any) -> None:
        """Refuse to stand on a certificate of anything but what was measured, at its own noise."""
        promised: Guarantee = fitted.guarantee
        claims = {
            "releases": mu_of(asked_by_method(promised)),
            "training": sum(_mu_of_all_rows(each) for each in promised.trainings),
            "whole": promised.epsilon,
        }
        same = self.subject == subject_of(fitted.method, fitted.schema, promised)
        if not (same and math.isclose(self.claimed, claims[self.kind], rel_tol=_AS_GOOD_AS)):
            raise SfumatoError(
                f"'{self.what}' was measured of something else than this model: it cannot stand on "
                "its certificate"
            )


def subject_of(method: Any, schema: Schema, promised: Budget | Guarantee) -> str:
    """Give the digest of what is measured: a method with its settings, a schema, and a promise."""
    about = {
        "method": method.name,
        "settings": asdict(method),
        "schema": schema.to_toml(),
        "relation": promised.relation,
        "delta": promised.delta,
        "rows of a unit": promised.max_rows_per_unit,
    }
    return sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def asked_by_method(promised: Guarantee) -> list[Spend]:
    """Give a model's releases, but for those that came before its method: these are not measured.

    What the gate counted, and what a search for bounds and values told.
    """
    return [
        spend
        for spend in promised.spends
        if spend.name not in ("misfits", "bounds") and not isinstance(spend, SelectionSpend)
    ]


def mu_of(spends: Sequence[Spend]) -> float:
    """Give the parameter of the Gaussian mechanism that releases are together.

    >>> round(mu_of([Spend(name="a", dim=1, sensitivity=n, sigma=1) for n in (3, 4)]), 6)
    5.0
    """
    return math.sqrt(2 * math.fsum(spend.rho for spend in spends))


@dataclass
class _Question:
    name: str
    statistic: Statistic
    share: float


class _Recorder(Curator):
    """A curator that remembers what it was asked."""

    def __init__(self, rows: PrivateRows, budget: Budget, schema: Schema) -> None:
        super().__init__(rows, budget, schema, forgotten_run())
        self.asked: list[_Question] = []

    def release(self, name: str, statistic: Statistic, share: float) -> Any:
        self.asked.append(_Question(name, statistic, share))
        return super().release(name, statistic, share)


def measure_releases(
    method: Any,
    schema: Schema,
    budget: Budget,
    runs: int,
    seed: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> Measured:
    """Let a method ask its questions once, and answer them many times for two neighbours."""
    rng = np.random.default_rng(seed)
    codec = method.codec(schema)
    base, candidates = (_read_rows(codec, schema, rng, count) for count in (40, 30))
    recorder = _Recorder(GivenRows([base], codec), budget, schema)
    method.learn(recorder)
    first, second = _worst_pair(recorder, base, candidates, budget)
    sums = [
        [question.statistic.sum(rows) for rows in (first, second)] for question in recorder.asked
    ]
    seen = np.zeros((2, runs))
    for run in range(runs):
        for side, rows in enumerate((first, second)):
            curator = Curator(GivenRows([rows], codec), budget, schema, forgotten_run())
            for question, (with_it, without) in zip(recorder.asked, sums, strict=True):
                release = curator.release(question.name, question.statistic, question.share)
                apart = (with_it - without).astype(np.float64)
                seen[side, run] += (release.values - without) @ apart / release.sigma**2
        progress((run + 1) / runs)
    found, reach = _deviations_apart(seen[0], seen[1])
    return Measured(
        what=f"mu of the {len(recorder.asked)} releases that {method.name} asks for",
        kind="releases",
        subject=subject_of(method, schema, budget),
        claimed=mu_of([release.spend for release in recorder.releases]),
        found=found,
        least=found - reach,
        most=found + reach,
        runs=2 * runs,
    )


def _deviations_apart(present: Floats, absent: Floats) -> tuple[float, float]:
    """Estimate how many deviations the means of two samples lie apart, and how far off that is.

    Where nothing varies, there is no noise: any difference is infinitely many deviations.

    >>> _deviations_apart(np.array([3.0, 3, 3]), np.array([0.0, 0, 0]))
    (inf, 0.0)
    """
    counts = len(present), len(absent)
    squares = present.var() * counts[0] + absent.var() * counts[1]
    spread = math.sqrt(squares / (sum(counts) - 2))
    apart = float(present.mean() - absent.mean())
    if spread <= 1e-9 * abs(apart):
        return (math.inf if apart else 0.0), 0.0
    found = apart / spread
    # By the delta method: of the means, and of the common deviation.
    error = math.sqrt(1 / counts[0] + 1 / counts[1] + found**2 / (2 * sum(counts)))
    return found, float(norm.isf(ERROR / 2)) * error


def _read_rows(
    codec: TableCodec | ImageCodec, schema: Schema, rng: np.random.Generator, count: int
) -> Batch:
    """Draw rows anywhere in the schema, half of the pictures at its corners; read their file."""
    made: Any
    if isinstance(codec, ImageCodec):
        pixels = rng.integers(0, 256, (count, *codec.shape))
        pixels[: count // 2] = 255 * rng.integers(0, 2, (count // 2, 1, 1, 1))
        classes = np.array(codec.images.classes)
        labels = classes[rng.integers(0, len(classes), count)] if len(classes) else None
        made = ImageSet(pixels.astype(np.uint8), labels)
    else:
        drawn = [rng.integers(0, column.size, count) for column in codec.columns]
        made = codec.decode(np.stack(drawn, axis=1).astype(np.int32), rng)
    with TemporaryDirectory(prefix="sfumato-audit-") as folder:
        path = Path(folder) / ("rows.npz" if schema.images else "rows.parquet")
        write_synthetic(path, made, schema)
        rows = encoded_rows(str(path), codec)
        try:
            return _joined(list(rows))
        finally:
            rows.close()


def _worst_pair(
    recorder: _Recorder, base: Batch, candidates: Batch, budget: Budget
) -> tuple[Batch, Batch]:
    """Find the neighbours that the questions tell apart best, among the candidates."""
    single = _one_by_one(candidates)
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
        return _joined([base, *[single[worst]] * times]), base
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    return _joined([base, *[single[one]] * times]), _joined([base, *[single[other]] * times])


def _one_by_one(rows: Batch) -> list[Batch]:
    return [rows.where(np.array([place])) for place in range(len(rows))]


def _joined(parts: Sequence[Batch]) -> Batch:
    return Batch(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )


class _Attacker(_Recorder):
    """Sees every noisy sum of one run, and how each canary would move it.

    With coins c, what is seen of a sum is q V'c and noise, in units of the noise, where q is the
    chance that a row is taken and the rows of V are what the canaries add. Were coins and noise
    Gaussian, the coins' mean given all sums would be 1/2 + (K + 4)^-1 (z - K/2), with K the sum of
    q² V V' and z that of q V y.
    """

    def __init__(
        self,
        canaries: Batch,
        present: NDArray[np.bool_],
        codec: Any,
        budget: Budget,
        schema: Schema,
        looks: int,
    ) -> None:
        super().__init__(
            GivenRows([canaries.where(np.flatnonzero(present))], codec), budget, schema
        )
        self._canaries = canaries
        self._each = _one_by_one(canaries)
        self._kernel = np.zeros((len(canaries), len(canaries)))
        self._seen = np.zeros(len(canaries))
        self._looks = looks  # steps that are looked at
        self.farthest = 0.0  # that a canary moves the sum of a step, in steps of its grid
        self.noise: list[Integers] = []

    @property
    def likelihoods(self) -> Floats:
        """How likely each canary is to be there, in order."""
        size = len(self._seen)
        told = self._seen - self._kernel.sum(1) / 2
        likely: Floats = np.linalg.solve(self._kernel + 4 * np.eye(size), told)
        return likely

    def _noisy_sum(self, rows: PrivateRows, statistic: Statistic, spend: Spend) -> Integers:
        noisy = super()._noisy_sum(rows, statistic, spend)
        if statistic.dim * len(self._each) <= _WIDEST:
            moves = np.stack([statistic.sum(row) for row in self._each]) / spend.sigma
            self._look(moves, noisy / (spend.scale * spend.sigma), 1.0)
        return noisy

    def _noisy_gradient(
        self, learner: Learner, rows: Sequence[Tensor], spend: TrainingSpend
    ) -> Integers:
        from sfumato.privacy.dpsgd import as_tensors, grid_sum

        canaries = as_tensors(learner.examples(self._canaries))
        every = np.arange(len(self._each))
        if sum(map(len, self.noise)) < _NOISE_SEEN:
            exact = grid_sum(learner, canaries, every, spend)
            with_all = wall.noisy_gradient(learner, canaries, replace(spend, rate=1.0))
            self.noise.append(with_all - exact)
        noisy = super()._noisy_gradient(learner, rows, spend)
        if self._looks and learner.dim * len(every) <= _WIDEST:
            moves = np.stack([grid_sum(learner, canaries, every[i : i + 1], spend) for i in every])
            self.farthest = max(self.farthest, float(np.linalg.norm(moves, axis=1).max()))
            sigma = spend.sigma_in_steps
            self._look(moves / sigma, noisy / sigma, spend.rate)
            self._looks -= 1
        return noisy

    def _look(self, moves: Floats, seen: Floats, rate: float) -> None:
        self._kernel += rate**2 * (moves @ moves.T)
        self._seen += rate * (moves @ seen)


def measure_training(
    method: Any,
    schema: Schema,
    budget: Budget,
    canaries: int,
    seed: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[Measured, Measured]:
    """Fit a method that trains to canaries: for mu with all rows in each step, and for epsilon.

    As many canaries at a time as the learner's weights can tell apart; each run has coins of its
    own, so that right guesses in all of them together are dominated by one binomial.
    """
    within(canaries=(canaries, _FEWEST, 100_000))
    rng = np.random.default_rng(seed)
    codec = method.codec(schema)
    (planned,) = method.plan(schema, budget).trainings
    together = min(canaries, max(_FEWEST, planned.dim // 4))
    looks = max(1, _MOST_LOOKS // canaries)
    likely, present, attackers = [], [], []
    for done in range(0, canaries, together):
        rows = _read_rows(codec, schema, rng, together)
        coins = np.append(rng.random(together - 1) < 0.5, True)
        attacker = _Attacker(rows, coins, codec, budget, schema, looks)
        method.learn(attacker)
        attackers.append(attacker)
        likely.append(attacker.likelihoods[:-1])
        present.append(coins[:-1])
        progress(min(1.0, (done + together) / canaries))
    (spend,) = attackers[0].trainings
    tried, there = np.concatenate(likely), np.concatenate(present)
    order = np.argsort(tried)
    guesses = max(1, int(len(tried) * _GUESSED / 2))
    right = int(there[order[-guesses:]].sum() + (~there[order[:guesses]]).sum())
    least = least_epsilon(len(tried), 2 * guesses, right, budget.delta)
    subject = subject_of(method, schema, budget)
    runs = "one run" if len(attackers) == 1 else f"{len(attackers)} runs"
    guessed = Measured(
        what=f"epsilon of all of {method.name}, by guesses in {runs}",
        kind="whole",
        subject=subject,
        claimed=attackers[0].guarantee.epsilon,
        found=least,
        least=least,
        most=math.inf,
        runs=len(tried),
        error=GUESS_ERROR,
    )
    return _mu_by_noise(attackers, spend, f"mu of the training of {method.name}", subject), guessed


def _mu_by_noise(
    attackers: Sequence[_Attacker], spend: TrainingSpend, what: str, subject: str
) -> Measured:
    """Give mu with all rows in each step: the farthest a canary moves a sum, over the noise."""
    noise = np.concatenate([part for each in attackers for part in each.noise]).astype(np.float64)
    squares = float(noise @ noise)
    farthest = math.sqrt(spend.steps) * max(each.farthest for each in attackers)

    def mu(mean_square: float) -> float:
        return farthest / math.sqrt(mean_square) if mean_square else math.inf

    return Measured(
        what=f"{what}, with all rows in each step",
        kind="training",
        subject=subject,
        claimed=_mu_of_all_rows(spend),
        found=mu(squares / len(noise)),
        least=mu(squares / float(chi2.ppf(ERROR / 2, len(noise)))),
        most=mu(squares / float(chi2.isf(ERROR / 2, len(noise)))),
        runs=len(noise),
    )


def _mu_of_all_rows(spend: TrainingSpend) -> float:
    return math.sqrt(spend.steps) / spend.noise_multiplier


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
    if chance(low) > GUESS_ERROR:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) <= GUESS_ERROR else (low, middle)
    return low
