"""Fit a mixture of products to noisy tables.

With N_c rows in class c, all two-way tables of the class are blocks of ``N_c P' diag(w_c) P``,
where P is the K x (sum of group counts) matrix of the components' one-way tables. Minimised is

    chi2 / 2 + penalty * sum_k w_k sum_i KL(P_k,i || b_i)

where chi2 is the squared error of the released tables over the variance of their noise, b_i the
one-way estimate of column i, and w_k the share of component k over all classes. The second term
is a bound on the information that the component has about the columns. With u_k = sqrt(w_k b) *
log(P_k / b) it is, near b, half the squared norm of u, and the tables depart from independence by
``N sqrt(b) (u' u) sqrt(b)``: a nuclear norm on the interactions, which removes every direction
that is weaker than the penalty. Noise alone has the spectral norm of ``sqrt(b) E sqrt(b)``, E of
standard normals. The penalty starts there, and is lowered while chi2 per cell is above one, that
is, while there is more to explain than the known noise.

Everything here sees released values only: restarts cost no privacy. They are averaged, that is,
their components are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sfumato.methods.pairs.guesses import RARE_ROWS
from sfumato.methods.pairs.mixture import Mixture
from sfumato.methods.pairs.noisy_tables import NoisyTables

Floats = NDArray[np.floating[Any]]

COMPONENTS = 200
RESTARTS = 4  # at most; fewer where a step is more than a quarter of STEP_WORK
STEPS = 1000  # at most; fewer, down to FEWEST_STEPS, where one restart is more than all of it
FEWEST_STEPS = 500
STEP_WORK = 4e8  # classes * components * squared groups, over all restarts: a minute or two

_WARM = 0.3  # share of the steps at the first penalty
_COOL = 0.3  # share of the steps, at the end, with falling step width
_STEP = 0.1
_JITTER = 0.3  # of the first logits: enough to tell components apart
_OWN_CLASS = 3.0  # first log odds of a component for the class that it starts in
_FIRST_PENALTY = 1.2  # times the spectral norm of the noise
_LEAST_PENALTY = 0.01
_PENALTY_DECAY = 0.985
_CLASS_PRIOR = 1.0  # of a class's departure from the whole table, where there are no pairs
_FLOOR = 1e-3  # share of a column spread evenly, so that no group's logit is infinite


@dataclass(frozen=True, eq=False)
class Problem:
    """What is fitted: dense tables in units of the noise, and where they count."""

    starts: NDArray[np.int64]  # first position of each column
    sizes: NDArray[np.int64]
    base: Floats  # (G,) one-way estimates, side by side
    counts: Floats  # (C,) rows over sigma
    paired: NDArray[np.int64]  # (G',) positions of the columns that occur in pairs
    pair_targets: Floats  # (C, G', G')
    pair_mask: Floats  # (G', G'), one where a table gives a target
    single_targets: Floats  # (C, G)
    single_mask: Floats  # (G,)

    @property
    def penalty_weights(self) -> Floats:
        """What the penalty of each class is multiplied with.

        Without pairs there are no interactions to suppress: the penalty is the precision of a
        prior on how far a class departs from the whole table, the same for every class.
        """
        return self.counts if len(self.paired) else np.ones_like(self.counts)

    @property
    def cells(self) -> float:
        """The number of released cells."""
        return len(self.counts) * float(self.pair_mask.sum() / 2 + self.single_mask.sum())


def fit_mixture(
    tables: NoisyTables,
    one_way: Sequence[Floats],
    class_counts: Floats,
    *,
    components: int = COMPONENTS,
    restarts: int = RESTARTS,
    steps: int = STEPS,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> Mixture:
    """Fit up to `restarts` mixtures, fewer where they would take long, and put them together.

    `one_way[i]` is the estimated mass of each group of column i. Without pairs there is nothing
    but the classes to tell components apart, and one component a class is enough.
    """
    shares = np.asarray(class_counts / np.sum(class_counts), np.float64)
    if not tables.sizes:
        return Mixture(shares, np.ones((tables.classes, 1)), np.zeros((1, 0)), ())
    problem = make_problem(tables, one_way, class_counts)
    components = max(components, tables.classes)
    if tables.pairs:
        work = tables.classes * components * len(problem.paired) ** 2
        restarts = max(1, min(restarts, int(STEP_WORK / work)))
        steps = min(steps, max(FEWEST_STEPS, int(steps * STEP_WORK / work)))
    else:
        components, restarts = tables.classes, 1

    def fit(restart: int) -> tuple[Floats, Floats]:
        rng = np.random.default_rng([seed, restart])
        return _fit(problem, components, steps, rng, progress if restart == 0 else lambda s: None)

    # One thread for each restart: the matrices are too small to be worth sharing out.
    with threadpool_limits(1), ThreadPoolExecutor() as pool:
        fits = list(pool.map(fit, range(restarts)))
    weights = np.concatenate([weights for weights, _ in fits], axis=1) / restarts
    probabilities = np.concatenate([probabilities for _, probabilities in fits])
    probabilities = _with_rare_groups(probabilities, shares @ weights, one_way, problem)
    return Mixture(shares, weights, probabilities, tables.sizes)


def make_problem(
    tables: NoisyTables,
    one_way: Sequence[Floats],
    class_counts: Floats,
    dtype: type[np.floating[Any]] = np.float32,
) -> Problem:
    """Lay the tables out as dense arrays, in units of the noise."""
    sizes = np.array(tables.sizes, np.int64)
    starts = np.cumsum(sizes) - sizes
    in_pairs = sorted({column for pair in tables.pairs for column in pair})
    places = [np.arange(starts[i], starts[i] + sizes[i]) for i in in_pairs]
    paired = np.concatenate([np.zeros(0, np.int64), *places])
    ends = np.cumsum(sizes[in_pairs]) if in_pairs else sizes[:0]
    block = {i: slice(e - sizes[i], e) for i, e in zip(in_pairs, ends, strict=True)}
    targets = np.zeros((tables.classes, len(paired), len(paired)), dtype)
    mask = np.zeros((len(paired), len(paired)), dtype)
    for (i, j), table in tables.pairs.items():
        targets[:, block[i], block[j]] = table / tables.sigma
        targets[:, block[j], block[i]] = table.transpose(0, 2, 1) / tables.sigma
        for first, second in ((block[i], block[j]), (block[j], block[i])):
            mask[first, second] = 1
    single_targets = np.zeros((tables.classes, int(sizes.sum())), dtype)
    single_mask = np.zeros(int(sizes.sum()), dtype)
    for i, table in tables.singles.items():
        single_targets[:, starts[i] : starts[i] + sizes[i]] = table / tables.sigma
        single_mask[starts[i] : starts[i] + sizes[i]] = 1
    base = np.concatenate([_smoothed(mass) for mass in one_way]).astype(dtype)
    counts = np.asarray(class_counts / tables.sigma, dtype)
    return Problem(starts, sizes, base, counts, paired, targets, mask, single_targets, single_mask)


def noise_norm(problem: Problem, rng: np.random.Generator) -> float:
    """The spectral norm of ``sqrt(b) E sqrt(b)``, orthogonal to the constants, E simulated."""
    root = np.sqrt(problem.base.astype(np.float64))
    root = root[problem.paired]
    size = len(root)
    noise = np.triu(rng.normal(size=(size, size)), 1)
    noise = (noise + noise.T) * problem.pair_mask * root[:, None] * root
    column = np.repeat(np.arange(len(problem.sizes)), problem.sizes)[problem.paired]
    constants = (column[:, None] == np.unique(column)) * root[:, None]
    noise -= constants @ (constants.T @ noise)
    noise -= (noise @ constants) @ constants.T
    vector = rng.normal(size=size)
    for _ in range(50):
        vector = noise @ vector
        norm = float(np.linalg.norm(vector))
        vector /= max(norm, 1e-12)
    return norm


def objective(
    problem: Problem, logits: Floats, weight_logits: Floats, penalty: float
) -> tuple[float, float, Floats, Floats]:
    """Give chi2, the penalised objective, and its gradients by both kinds of logits."""
    p = _softmax(logits, problem)
    w = np.exp(weight_logits - weight_logits.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    by_p, by_w = np.zeros_like(p), np.zeros_like(w)
    chi2 = 0.0
    if len(problem.paired):
        whole = len(problem.paired) == p.shape[1]
        q = p if whole else p[:, problem.paired]
        by_q = np.zeros_like(q)
        for c, rows in enumerate(problem.counts):
            error = rows * ((q * w[c][:, None]).T @ q) - problem.pair_targets[c]
            error *= problem.pair_mask
            chi2 += float(np.vdot(error, error)) / 2
            back = q @ error
            by_q += rows * w[c][:, None] * back
            by_w[c] += rows * 0.5 * np.einsum("kg,kg->k", back, q)
        by_p[:, problem.paired] = by_q
    if problem.single_mask.any():
        rows = problem.counts[:, None]
        error = (rows * (w @ p) - problem.single_targets) * problem.single_mask
        chi2 += float(np.vdot(error, error))
        by_p += w.T @ (rows * error)
        by_w += (rows * error) @ p.T
    surprise = np.log(p + 1e-12) - np.log(problem.base)
    information = np.einsum("kg,kg->k", p, surprise)
    scaled = penalty * problem.penalty_weights
    share = scaled @ w
    by_p += share[:, None] * surprise
    by_w += scaled[:, None] * information
    by_logits = p * (by_p - _spread(_block_sums(by_p * p, problem), problem))
    by_weight_logits = w * (by_w - (by_w * w).sum(axis=1, keepdims=True))
    return chi2, chi2 / 2 + float(share @ information), by_logits, by_weight_logits


def _fit(
    problem: Problem,
    components: int,
    steps: int,
    rng: np.random.Generator,
    progress: Callable[[float], None],
) -> tuple[Floats, Floats]:
    """Fit one mixture by Adam, with a falling penalty."""
    dtype = problem.base.dtype
    logits = np.log(problem.base) + rng.normal(0, _JITTER, (components, len(problem.base)))
    parameters = [logits.astype(dtype), _class_logits(problem.counts, components, rng)]
    adam = [Adam(parameter) for parameter in parameters]
    first = _FIRST_PENALTY * noise_norm(problem, rng) if len(problem.paired) else _CLASS_PRIOR
    penalty = first
    for step in range(steps):
        chi2, _, *gradients = objective(problem, parameters[0], parameters[1], penalty)
        if step > _WARM * steps and chi2 > problem.cells and penalty > _LEAST_PENALTY * first:
            penalty *= _PENALTY_DECAY
        width = _STEP * min(1.0, (steps - step) / (_COOL * steps))
        for optimiser, gradient in zip(adam, gradients, strict=True):
            optimiser.update(gradient, width)
        if step % 10 == 0:
            progress(step / steps)
    weights = np.exp(parameters[1] - parameters[1].max(axis=1, keepdims=True))
    progress(1.0)
    return weights / weights.sum(axis=1, keepdims=True), _softmax(parameters[0], problem)


class Adam:
    """Adam (Kingma and Ba, 2015) on one array, in place."""

    def __init__(self, parameter: Floats) -> None:
        self.parameter = parameter
        self.mean = np.zeros_like(parameter)
        self.square = np.zeros_like(parameter)
        self.steps = 0

    def update(
        self, gradient: Floats, width: float, decay: float = 0.9, slow: float = 0.99
    ) -> None:
        """Take one step against the gradient."""
        self.steps += 1
        self.mean += (1 - decay) * (gradient - self.mean)
        self.square += (1 - slow) * (gradient * gradient - self.square)
        scale = np.sqrt(self.square / (1 - slow**self.steps)) + 1e-8
        self.parameter -= (width / (1 - decay**self.steps)) * self.mean / scale


def _class_logits(counts: Floats, components: int, rng: np.random.Generator) -> Floats:
    """Start each component in one class; larger classes get more of them."""
    share = np.sqrt(counts.astype(np.float64))
    own = rng.choice(len(counts), components, p=share / share.sum())
    own[: len(counts)] = np.arange(len(counts))
    logits = np.zeros((len(counts), components), counts.dtype)
    logits[own, np.arange(components)] = _OWN_CLASS
    return logits


def _smoothed(mass: Floats) -> NDArray[np.float64]:
    share = np.asarray(mass, np.float64) / max(float(np.sum(mass)), 1e-12)
    share = (1 - _FLOOR) * share + _FLOOR / len(share)
    return np.asarray(share / share.sum())


def _with_rare_groups(
    probabilities: Floats, weights: Floats, one_way: Sequence[Floats], problem: Problem
) -> Floats:
    """Let no group have less than its one-way estimate, up to `RARE_ROWS`: a fit may drop it."""
    mass = np.concatenate(one_way)
    rows = max(float(np.sum(one_way[0])), 1.0)
    lacking = np.maximum(np.minimum(mass, RARE_ROWS) / rows - weights @ probabilities, 0.0)[None]
    kept = 1 - _spread(_block_sums(lacking, problem), problem)
    return np.asarray(probabilities * kept + lacking, probabilities.dtype)


def _block_sums(values: Floats, problem: Problem) -> Floats:
    return np.asarray(np.add.reduceat(values, problem.starts, axis=1))


def _spread(values: Floats, problem: Problem) -> Floats:
    return np.repeat(values, problem.sizes, axis=1)


def _softmax(logits: Floats, problem: Problem) -> Floats:
    highest = np.maximum.reduceat(logits, problem.starts, axis=1)
    weights = np.exp(logits - _spread(highest, problem))
    return np.asarray(weights / _spread(_block_sums(weights, problem), problem))
