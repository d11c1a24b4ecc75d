"""Matching: an unbiased loss, an end at the noise, and runs that can be repeated and resumed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sfumato.modelling.networks import Generator, TableGenerator  # noqa: E402
from sfumato.papers.embedding.training import Judge, Target, Training, match  # noqa: E402


def _embed(points: torch.Tensor) -> torch.Tensor:
    return torch.cat([points, 5 * (points - 0.5).square()], dim=2).mean(1)


def _generator(classes: int = 1) -> TableGenerator:
    torch.manual_seed(0)
    return TableGenerator(8, classes, 1, (), hidden=16)


def _target(*means: tuple[float, float], noise: float = 0.0) -> Target:
    return Target(means=np.array(means, np.float32), noise=np.full(len(means), noise))


def _drawn(generator: TableGenerator, label: int, classes: int) -> np.ndarray:
    torch.manual_seed(1)
    onehot = torch.eye(classes)[[label]].repeat(4000, 1)
    with torch.no_grad():
        return generator(torch.randn(4000, 8), onehot).numpy()[:, 0]


def test_generators_learn_mean_and_variance_of_each_class() -> None:
    """Without bias: means 0.3 and 0.6, standard deviations 0.1 and 0.2."""
    generator = _generator(2)
    target = _target((0.3, 5 * (0.2**2 + 0.1**2)), (0.6, 5 * (0.1**2 + 0.2**2)))
    match(generator, _embed, target, Training(steps=400, batch=400))
    for label, mean, deviation in ((0, 0.3, 0.1), (1, 0.6, 0.2)):
        drawn = _drawn(generator, label, 2)
        assert drawn.mean() == pytest.approx(mean, abs=0.02)
        assert drawn.std() == pytest.approx(deviation, abs=0.02)


def test_training_ends_at_the_noise() -> None:
    target = _target((0.3, 0.25), noise=0.01)
    losses = match(_generator(), _embed, target, Training(steps=500))
    assert len(losses) < 500
    assert losses[0] > 0.01
    assert losses[-1] == pytest.approx(0.01, abs=0.01)


def test_a_seed_repeats_a_run_and_leaves_other_randomness_alone() -> None:
    before = torch.get_rng_state()
    runs = []
    for seed in (3, 3, 4):
        generator = TableGenerator(8, 1, 1, (), hidden=16)
        generator.load_state_dict(_generator().state_dict())
        torch.set_rng_state(before)
        runs.append(match(generator, _embed, _target((0.3, 0.25)), Training(steps=20), seed=seed))
        assert torch.equal(torch.get_rng_state(), before)
    assert runs[0] == runs[1] != runs[2]


def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    target, training = _target((0.3, 0.25)), Training(steps=100)
    whole = _generator()
    losses = match(whole, _embed, target, training)

    class InterruptedRunError(Exception):
        pass

    def interrupt(stage: str, fraction: float | None) -> None:
        if fraction is not None and fraction > 0.5:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        match(_generator(), _embed, target, training, checkpoint=path, progress=interrupt)
    resumed = _generator()
    assert match(resumed, _embed, target, training, checkpoint=path) == losses
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name])


def test_a_large_class_keeps_its_mean_and_a_drowned_one_is_drawn_to_the_mean_of_all() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([[0.5] * 100, [-0.5] * 100]) / 5
    counts, sigma = np.array([10_000.0, 20.0]), 10.0
    sums = truth * counts[:, None] + rng.normal(0, sigma, truth.shape)
    target = Target.of(sums, counts, sigma, [(100, 100)])
    raw = sums / counts[:, None]
    assert target.means[0] == pytest.approx(raw[0], abs=0.01)
    errors = np.square(target.means[1] - truth[1]).sum(), np.square(raw[1] - truth[1]).sum()
    assert errors[0] < errors[1] / 5
    assert target.noise[0] < 0.01 < target.noise[1]
    assert target.weights[0] > target.weights[1]


def test_one_class_is_its_own_mean_with_the_noise_of_the_release() -> None:
    target = Target.of(np.array([[30.0, 60.0]]), np.array([100.0]), 2.0, [(1, 1), (1, 1)])
    assert target.means.tolist() == [pytest.approx([0.3, 0.6])]
    assert target.noise == pytest.approx([2 * (2.0 / 100) ** 2])


def _off(aim: float) -> Judge:
    """Judge a generator by how far its mean is from an aim."""

    def judge(generator: Generator) -> float:
        return abs(float(generator(torch.randn(500, 8), torch.ones(500, 1)).mean()) - aim)

    return judge


def _judged(aim: float) -> Target:
    return replace(_target((0.3, 0.25)), judge=_off(aim))


def test_a_judge_keeps_the_generator_that_it_liked_best() -> None:
    """The mean goes from 0.5 to 0.3 in training; one from the way is kept that is nearer 0.45."""
    generator = _generator()
    match(generator, _embed, _judged(0.45), Training(steps=200))
    assert _drawn(generator, 0, 1).mean() > 0.34
    match(generator, _embed, _judged(0.3), Training(steps=200))
    assert _drawn(generator, 0, 1).mean() == pytest.approx(0.3, abs=0.02)


def test_a_judged_run_goes_on_from_its_checkpoint_and_draws_the_same(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    target, training = _judged(0.45), Training(steps=100)
    whole, unjudged = _generator(), _generator()
    losses = match(whole, _embed, target, training)
    alone = replace(target, judge=None)
    assert match(unjudged, _embed, alone, training) == losses  # judging disturbs nothing

    def interrupt(stage: str, fraction: float | None) -> None:
        if fraction is not None and fraction > 0.7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        match(
            _generator(), _embed, target, training, checkpoint=path, progress=interrupt,
        )  # fmt: skip
    resumed = _generator()
    assert match(resumed, _embed, target, training, checkpoint=path) == losses
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name])
