"""Attacks find nothing where the noise is right, and find noise that is a fifth too small.

Intervals hold but for a chance of 1e-6; noise is seeded, so each result is the same every time.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import run
from seeded import NoNoise, Seeded, drawing
from sfumato.errors import SfumatoError
from sfumato.evaluation.report import certificate_html
from sfumato.loading import load
from sfumato.methods.moments.method import Moments
from sfumato.methods.pairs.method import Pairs
from sfumato.privacy.budget import Budget, Relation
from sfumato.privacy.measured import asked_by_method, measure_releases, mu_of
from sfumato.schema import Boolean, Images, Schema
from sfumato.statistics.counts import Counts
from support import SCHEMA, people

TABLE = Schema(columns={name: Boolean() for name in "abcd"})
IMAGES = Schema(images=Images(height=2, width=2, classes=("a", "b")))
PAIRS = Pairs(components=2, restarts=1)
BUDGET = Budget(epsilon=8, delta=1e-6)
WEAK = Budget(epsilon=25, delta=1e-6)  # the larger mu, the fewer runs tell a fifth
RUNS = 500


@pytest.mark.parametrize("relation", Relation)
def test_the_claimed_mu_is_measured(relation: Relation) -> None:
    budget = Budget(epsilon=8, delta=1e-6, relation=relation, max_rows_per_unit=2)
    found = measure_releases(PAIRS, TABLE, budget, RUNS)
    assert not found.violated
    # Counts reach their bounds, so the attack is as good as any can be.
    assert found.least <= found.claimed <= found.most
    assert found.most < 1.3 * found.claimed


def test_images_keep_their_promise_too() -> None:
    assert not measure_releases(Moments(), IMAGES, BUDGET, RUNS // 2).violated


def test_noise_that_is_a_fifth_too_small_is_found() -> None:
    with drawing(Seeded(scale=0.8)):
        found = measure_releases(PAIRS, TABLE, WEAK, RUNS)
    assert found.violated
    assert "VIOLATED" in found.in_words()


def test_a_sensitivity_that_is_a_fifth_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = Counts.sensitivity
    monkeypatch.setattr(Counts, "sensitivity", lambda *given: 0.8 * true(*given))
    assert measure_releases(PAIRS, TABLE, WEAK, RUNS).violated


def test_noise_that_is_missing_is_found() -> None:
    with drawing(NoNoise()):
        found = measure_releases(PAIRS, TABLE, BUDGET, 3)
    assert found.violated
    assert "VIOLATED" in found.in_words()


def test_trainings_are_measured_as_the_method_makes_them() -> None:
    pytest.importorskip("torch")
    from sfumato.classify.locally_linear import LocallyLinear
    from sfumato.privacy.measured import measure_training

    method, budget = LocallyLinear(target="a", epochs=3, clip=0.1), Budget(epsilon=3, delta=1e-5)
    planned = method.plan(TABLE, budget).trainings[0]
    for scale, wrong in ((1.0, False), (0.8, True)):
        with drawing(Seeded(0, scale)):
            mu, guessed = measure_training(method, TABLE, budget, 80)
        # The noise and the steps are the method's own, and canaries are clipped: they reach it.
        assert mu.claimed == pytest.approx(planned.steps**0.5 / planned.noise_multiplier)
        assert mu.violated is wrong
        assert mu.least < mu.claimed / scale <= mu.most * 1.001
        assert (guessed.violated, guessed.claimed) == (False, planned.epsilon)
    with drawing(NoNoise()):
        assert measure_training(method, TABLE, budget, 20)[0].least == math.inf


def test_guesses_find_canaries_where_hardly_any_noise_hides_them() -> None:
    pytest.importorskip("torch")
    from sfumato.classify.locally_linear import LocallyLinear
    from sfumato.privacy.measured import measure_training

    columns = {f"c{number}": Boolean() for number in range(60)}
    method = LocallyLinear(target="c0", maps=3, epochs=20, rate=0.5)
    with drawing(Seeded(0, scale=0.01)):
        _, guessed = measure_training(method, Schema(columns=columns), Budget(epsilon=0.5), 120)
    assert guessed.violated


def test_what_was_measured_of_something_else_stands_on_no_certificate() -> None:
    model = PAIRS.fit(people(300), SCHEMA, 2.0)
    own = Budget(epsilon=model.guarantee.epsilon)
    measure_releases(PAIRS, SCHEMA, own, 2).refuse_for(model)
    others = [
        (PAIRS, SCHEMA, Budget(epsilon=2.2)),
        (PAIRS, SCHEMA, replace(own, delta=1e-5)),
        (PAIRS, TABLE, own),
        (replace(PAIRS, components=3), SCHEMA, own),
    ]
    for method, schema, budget in others:
        measured = measure_releases(method, schema, budget, 2)
        with pytest.raises(SfumatoError, match="measured of something else"):
            certificate_html(model, measured=[measured])


def test_the_command_measures_and_puts_it_on_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    PAIRS.fit(people(300), SCHEMA, 2.0).save("m.sfumato")
    code, out, _ = run(capsys, "audit", "m.sfumato", "--runs", "3", "--report", "c.html", "-q")
    assert (code, "releases that pairs asks for: claimed" in out) == (0, True)
    page = (tmp_path / "c.html").read_text()
    assert "Measured by attack" in page
    assert "Finding nothing proves nothing" in page
    model = load("m.sfumato")
    measured = measure_releases(PAIRS, SCHEMA, Budget(epsilon=model.guarantee.epsilon), 2)
    assert measured.claimed == pytest.approx(model.guarantee.mu, rel=1e-6)
    code, out, _ = run(capsys, "audit", "-m", "moments", "--runs", "3", "-q")
    assert (code, "no violation found" in out) == (0, True)


def test_what_a_search_spent_is_not_claimed_to_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The noise that is measured is that of the method's own releases, and no more is said."""
    monkeypatch.chdir(tmp_path)
    declared = {
        "age": {"kind": "integer", "low": "private", "high": "private"},
        "sick": {"kind": "boolean"},
    }
    model = PAIRS.fit(people(900).select(["age", "sick"]), declared, 2.0)
    model.save("m.sfumato")
    code, out, _ = run(capsys, "audit", "m.sfumato", "--runs", "3", "--report", "c.html", "-q")
    assert (code, "not measured, because it came before the method: bounds" in out) == (0, True)
    own = mu_of(asked_by_method(model.guarantee))
    assert f"claimed {own:.4g}" in out
    whole = measure_releases(PAIRS, model.schema, Budget(epsilon=model.guarantee.epsilon), 2)
    with pytest.raises(SfumatoError, match="measured of something else"):
        whole.refuse_for(model)
