"""Attacks find nothing where the noise is right, and find noise that is a fifth too small.

Intervals hold but for a chance of 1e-6; noise is seeded, so each result is the same every time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from command_line import run
from sfumato.methods.moments.method import Moments
from sfumato.methods.pairs.method import Pairs
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.measured import measure_releases
from sfumato.schema import Boolean, Images, Schema
from sfumato.statistics.counts import Counts
from support import SCHEMA, people

TABLE = Schema(columns={name: Boolean() for name in "abcd"})
IMAGES = Schema(images=Images(height=2, width=2, classes=("a", "b")))
PAIRS = Pairs(components=2, restarts=1)
BUDGET = Budget(epsilon=8, delta=1e-6)
WEAK = Budget(epsilon=25, delta=1e-6)  # the larger mu, the fewer runs tell a fifth
RUNS = 500


def noise(scale: float = 1.0, seed: int = 0) -> object:
    rng = np.random.default_rng(seed)

    def draw(size: int, sigma: float) -> NDArray[np.int64]:
        return np.rint(rng.normal(0, scale * sigma, size)).astype(np.int64)

    return draw


@pytest.mark.parametrize("relation", Relation)
def test_the_claimed_mu_is_measured(relation: Relation) -> None:
    budget = Budget(epsilon=8, delta=1e-6, relation=relation, max_rows_per_unit=2)
    found = measure_releases(PAIRS, TABLE, budget, RUNS, noise())
    assert not found.violated
    # Counts reach their bounds, so the attack is as good as any can be.
    assert found.least <= found.claimed <= found.most
    assert found.most < 1.3 * found.claimed


def test_images_keep_their_promise_too() -> None:
    assert not measure_releases(Moments(), IMAGES, BUDGET, RUNS // 2, noise()).violated


def test_noise_that_is_a_fifth_too_small_is_found() -> None:
    found = measure_releases(PAIRS, TABLE, WEAK, RUNS, noise(0.8))
    assert found.violated
    assert "VIOLATED" in found.in_words()


def test_a_sensitivity_that_is_a_fifth_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = Counts.sensitivity
    monkeypatch.setattr(Counts, "sensitivity", lambda *given: 0.8 * true(*given))
    assert measure_releases(PAIRS, TABLE, WEAK, RUNS, noise()).violated


def test_trainings_are_measured() -> None:
    pytest.importorskip("torch")
    from seeded import Seeded
    from sfumato.privacy.dpsgd import Schedule
    from sfumato.privacy.measured import measure_training

    schedule = Schedule(rate=0.5, epochs=2, clip=1.0, learning_rate=1.0)
    budget = Budget(epsilon=4, delta=1e-6)
    for scale, wrong in ((1.0, False), (0.8, True)):
        mu, one_run = measure_training(schedule, budget, 6000, Seeded(0, scale))
        assert mu.violated is wrong
        assert one_run.violated is False
        assert one_run.least > 0.5  # of 4: one run tells less
    strict = Budget(epsilon=1, delta=1e-6)
    _, one_run = measure_training(schedule, strict, 6000, Seeded(0, 0.2))
    assert one_run.violated


def test_the_command_measures_and_puts_it_on_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    PAIRS.fit(people(300), SCHEMA, 2.0).save("m.sfumato")
    code, out, _ = run(capsys, "audit", "m.sfumato", "--runs", "3", "--report", "c.html", "-q")
    assert (code, "mu of the releases of pairs: claimed" in out) == (0, True)
    page = (tmp_path / "c.html").read_text()
    assert "Measured by attack" in page
    assert "Finding nothing proves nothing" in page
    code, out, _ = run(capsys, "audit", "-m", "moments", "--runs", "3", "-q")
    assert (code, "no violation found" in out) == (0, True)
