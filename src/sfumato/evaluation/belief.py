"""What epsilon means for one person: the bound on what an attacker may come to believe."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.certificate import odds_factor

PRIORS = (0.01, 0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Belief:
    """What an attacker holds for likely before, and at most and at least after the release."""

    before: float
    at_most: float
    at_least: float
    odds_factor: float


def belief_bounds(epsilon: float, priors: tuple[float, ...] = PRIORS) -> tuple[Belief, ...]:
    """Bound the attacker's belief by Bayes' rule: the odds change by at most e^epsilon either way.

    For even odds the upper bound is 1 / (1 + e^-epsilon) (Harder 2024, sec. 1.1.5, after Triastcyn
    and Faltings 2019). It is the bound of pure DP: with a delta there are outcomes, of a chance of
    some times delta, at which the odds change by more.

    >>> [round(b.at_most, 3) for b in belief_bounds(1.0, (0.5,))]
    [0.731]
    """
    return tuple(
        Belief(prior, shifted(prior, epsilon), shifted(prior, -epsilon), odds_factor(epsilon))
        for prior in priors
    )


def shifted(prior: float, epsilon: float) -> float:
    """Multiply the odds of a probability by e^epsilon."""
    return 1 / (1 + (1 - prior) / prior * odds_factor(-epsilon))


def strength(epsilon: float) -> str:
    """Name the strength of a guarantee as Ponomareva et al. (2023) do."""
    if epsilon <= 1:
        return "strong"
    return "reasonable" if epsilon <= 10 else "weak"
