"""Noisy gradients: paid for once and first, summed over a Poisson sample, resumed without reuse."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from learners import Adder, Plain, trained, unit_rows
from seeded import Seeded, drawing
from sfumato import storage
from sfumato.data.batch import Batch
from sfumato.data.rows import GivenRows
from sfumato.errors import SfumatoError
from sfumato.privacy.answers import digest_of, training_from_bytes
from sfumato.privacy.budget import GRADIENT_BITS, Budget, Relation, TrainingSpend
from sfumato.privacy.curator import Curator
from sfumato.privacy.dpsgd import Learner, Schedule, State
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.planning import plan_training
from sfumato.privacy.run import Run
from sfumato.privacy.sampled_gaussian import joint_epsilon
from sfumato.storage import next_of
from support import SCHEMA, coded, count_statistic, rewritten

BUDGET = Budget(epsilon=1, delta=1e-5)
SCHEDULE = Schedule(rate=0.5, epochs=3, clip=1.0, learning_rate=0.1)
SPEND = TrainingSpend(
    name="t", dim=1, clip=1.0, noise_multiplier=2.0, rate=0.5, steps=6, epsilon=1, delta=1e-5,
    grid_bits=GRADIENT_BITS,
)  # fmt: skip
ROWS = [unit_rows([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0]]), unit_rows([[float("nan"), 1.0]])]


class Fixed:
    """Randomness that tests lay out: the rows of each step, and noise of ones."""

    def __init__(self, chosen: list[list[int]]) -> None:
        self._chosen = iter(chosen)

    def noise(self, size: int, sigma: float) -> np.ndarray:
        return np.full(size, round(sigma))

    def chosen(self, rows: int, rate: float) -> np.ndarray:
        return np.array(next(self._chosen), np.int64)


def places(learner: Learner, randomness: object, spend: TrainingSpend = SPEND) -> list[np.ndarray]:
    """Train on ROWS by plain steps of length 1 and give the place after each."""
    seen: list[np.ndarray] = []
    examples = tuple(np.concatenate([learner.examples(batch)[0] for batch in ROWS])[None])
    trained(
        learner,
        examples,
        replace(SCHEDULE, rate=spend.rate, epochs=spend.rate * spend.steps),
        spend,
        randomness,
        save=lambda state: seen.append(state.arrays["weights/place"]),
    )
    return seen


def test_a_step_is_the_sum_of_the_chosen_rows_clipped_plus_the_noise() -> None:
    spend = replace(SPEND, clip=0.5, noise_multiplier=3.0, steps=4)
    found = places(Plain(2), Fixed([[0], [1], [], [0, 1, 2, 3]]), spend)
    noise = np.array([3.0, 3.0])
    clipped = np.array([0.6, 0.8])  # both rows are longer than or just as long as 0.5
    steps = [clipped, clipped, 0 * clipped, 2 * clipped]
    expected = -np.cumsum([step + noise for step in steps], axis=0)
    assert np.allclose(found, expected, rtol=1e-3)


def test_pieces_that_fit_the_memory_change_nothing() -> None:
    whole = places(Adder(2), Seeded())
    for piece in (1, 2, 3):
        assert np.array_equal(places(Adder(2, piece), Seeded()), whole)


def test_what_leaves_a_step_lies_on_the_grid() -> None:
    """Steps of length 1 from zero: every place is a whole number of grid steps, sum and noise."""
    learner = Plain(2)
    learner.module.double()
    for place in places(learner, Seeded()):
        steps = place.astype(np.float64) * 2**GRADIENT_BITS
        assert np.array_equal(steps, np.rint(steps))


def test_a_step_without_rows_is_noise_like_any_other() -> None:
    learner = Plain(3)
    state = trained(learner, (), SCHEDULE, SPEND, Fixed([[]] * 6))
    assert np.allclose(state.arrays["weights/place"], -12)


def test_a_training_goes_on_exactly_where_it_was_saved() -> None:
    states: list[State] = []
    examples = (np.concatenate([batch.unit for batch in ROWS]),)
    learner, random = Adder(2), Seeded()
    last = trained(learner, examples, SCHEDULE, SPEND, random, save=states.append)
    assert [state.step for state in states] == [1, 2, 3, 4, 5, 6]
    for state in states[:-1]:
        fresh, again = Adder(2), Seeded()
        for _ in range(state.step):  # the draws that were made before
            again.chosen(4, 0.5)
            again.noise(2, 1.0)
        resumed = trained(fresh, examples, SCHEDULE, SPEND, again, state)
        assert again.steps == 6
        for key, array in last.arrays.items():
            assert np.allclose(resumed.arrays[key], array, atol=1e-6), key


def curator(
    rows: object = ROWS,
    ledger: Ledger | None = None,
    folder: Path | None = None,
    budget: Budget = BUDGET,
    pay_again: bool = False,
    use_saved: bool = False,
) -> Curator:
    return Curator(
        GivenRows(rows),
        budget,
        SCHEMA,
        Run(
            ledger=ledger or Ledger(":memory:"),
            dataset="d",
            folder=folder,
            pay_again=pay_again,
            use_saved=use_saved,
        ),
    )


def drawn(random: object, **options: Any) -> State:
    """Train with what is drawn from here."""
    with drawing(random):
        return curator(**options).train("t", Adder(2), SCHEDULE)


def test_the_whole_training_is_recorded_before_the_first_step(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")

    class Watched(Seeded):
        def chosen(self, rows: int, rate: float) -> np.ndarray:
            (entry,) = ledger.entries("d")
            assert isinstance(entry.spend, TrainingSpend)
            assert entry.spend.epsilon <= 1
            return super().chosen(rows, rate)

    drawn(Watched(), ledger=ledger, folder=tmp_path)
    assert len(ledger.entries("d")) == 1


def test_rows_that_cannot_be_read_cost_no_training(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")

    class Bomb:
        def __iter__(self) -> Iterator[Batch]:
            yield ROWS[0]
            raise SfumatoError("unreadable")

    for rows, message in ((Bomb(), "unreadable"), ([], "no rows"), ([unit_rows([])], "no rows")):
        with pytest.raises(SfumatoError, match=message):
            curator(rows, ledger, tmp_path).train("t", Adder(2), SCHEDULE)
    assert ledger.entries("d") == []


@pytest.mark.parametrize("relation", list(Relation))
def test_the_guarantee_is_what_the_accountant_says(relation: Relation) -> None:
    wall = curator(budget=replace(BUDGET, relation=relation))
    wall.train("t", Adder(2), SCHEDULE)
    (spend,) = wall.guarantee.trainings
    assert spend.steps == SCHEDULE.steps == 6
    left = (1 - spend.log_ratio) * 1e-5
    reached = joint_epsilon(((spend.noise_multiplier, 0.5, 6),), 0.0, 0.0, left, relation)
    reached += spend.log_ratio
    assert wall.guarantee.epsilon == spend.epsilon == reached
    assert 0.99 < reached <= 1


def test_a_training_spends_what_releases_leave_and_nothing_comes_after() -> None:
    wall = curator([coded([0, 1])])
    wall.release("counts", count_statistic(), 0.1)
    plain = plan_training("t", 2, SCHEDULE, BUDGET)
    wall.train("t", Adder(0), SCHEDULE)
    assert wall.trainings[0].noise_multiplier > 1.04 * plain.noise_multiplier
    assert 0.98 < wall.guarantee.epsilon <= 1
    assert wall.left == 0
    for ask in (
        lambda: wall.release("more", count_statistic(), 1e-6),
        lambda: wall.train("again", Adder(2), SCHEDULE),
    ):
        with pytest.raises(SfumatoError, match="left of the budget"):
            ask()


def test_units_of_several_rows_are_refused() -> None:
    with pytest.raises(SfumatoError, match="single rows"):
        curator(budget=replace(BUDGET, max_rows_per_unit=2)).train("t", Adder(2), SCHEDULE)


def test_a_refused_training_reads_nothing() -> None:
    ledger = Ledger(":memory:")
    ledger.limit("d", replace(BUDGET, epsilon=0.5))

    class Unread:
        def __iter__(self) -> Iterator[Batch]:
            raise AssertionError("a row was read")

    with pytest.raises(SfumatoError, match="nothing was spent"):
        curator(Unread(), ledger).train("t", Adder(2), SCHEDULE)


def test_a_finished_training_is_taken_up_again_at_no_cost(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")
    first = curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE)
    wall = curator(ledger=ledger, folder=tmp_path)
    again = wall.train("t", Adder(2), SCHEDULE)
    assert again.step == 6
    assert np.array_equal(first.arrays["weights/place"], again.arrays["weights/place"])
    assert wall.guarantee.epsilon <= 1
    assert len(ledger.entries()) == 1
    other = replace(SCHEDULE, clip=2.0)
    with pytest.raises(SfumatoError, match="--pay-again"):
        curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), other)
    assert len(ledger.entries()) == 1
    curator(ledger=ledger, folder=tmp_path, pay_again=True).train("t", Adder(2), other)
    assert len(ledger.entries()) == 2


def test_an_interrupted_training_goes_on_with_fresh_draws_and_pays_once(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")

    class Interrupted(Seeded):
        def noise(self, size: int, sigma: float) -> np.ndarray:
            if self.steps == 3:
                raise KeyboardInterrupt
            return super().noise(size, sigma)

    with pytest.raises(KeyboardInterrupt):
        drawn(Interrupted(1), ledger=ledger, folder=tmp_path)
    random = Seeded(2)
    state = drawn(random, ledger=ledger, folder=tmp_path)
    assert (state.step, random.steps) == (6, 3)  # three were saved, three are drawn anew
    assert len(ledger.entries()) == 1


def test_two_runs_cannot_go_on_from_one_state(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")

    class Second:
        def __iter__(self) -> Iterator[Batch]:
            with pytest.raises(SfumatoError, match="another run"):
                curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE)
            return iter(ROWS)

    curator(Second(), ledger, tmp_path).train("t", Adder(2), SCHEDULE)
    assert len(ledger.entries()) == 1


def test_a_damaged_training_is_a_clear_error(tmp_path: Path) -> None:
    curator(folder=tmp_path).train("t", Adder(2), SCHEDULE)
    (file,) = tmp_path.glob("t-*.safetensors")
    file.write_bytes(b"half")
    with pytest.raises(SfumatoError, match="cannot read the training"):
        curator(folder=tmp_path).train("t", Adder(2), SCHEDULE)


class Interrupting(Seeded):
    """Ends a training after some steps."""

    def __init__(self, steps: int, seed: int = 0) -> None:
        super().__init__(seed)
        self.most = steps

    def noise(self, size: int, sigma: float) -> np.ndarray:
        if self.steps == self.most:
            raise KeyboardInterrupt
        return super().noise(size, sigma)


def half_trained(folder: Path, ledger: Ledger, steps: int = 2) -> Path:
    """Leave a training after some steps, and give its file."""
    with pytest.raises(KeyboardInterrupt):
        drawn(Interrupting(steps), ledger=ledger, folder=folder)
    (file,) = folder.glob("t-*.safetensors")
    return file


@pytest.mark.parametrize(
    "changes",
    [{"noise_multiplier": 0.0}, {"noise_multiplier": 1e-3}, {"epsilon": 1e-9}, {"steps": 1}],
)
def test_a_planted_training_is_not_believed(tmp_path: Path, changes: dict[str, float]) -> None:
    ledger = Ledger(":memory:")
    rewritten(half_trained(tmp_path, ledger), **changes)
    wall = curator(ledger=ledger, folder=tmp_path)
    with pytest.raises(SfumatoError, match=r"changed, exchanged|must be a positive number"):
        wall.train("t", Adder(2), SCHEDULE)
    assert wall.trainings == []


def test_a_training_in_the_ledger_must_hold_the_budget(tmp_path: Path) -> None:
    """Even if the ledger was made to agree, the noise must give the epsilon that is asked for."""
    ledger = Ledger(":memory:")
    file = half_trained(tmp_path, ledger)
    rewritten(file, noise_multiplier=0.5)
    spend, _ = training_from_bytes(file.read_bytes(), file)
    (question,) = ledger._database.execute("SELECT question FROM spends").fetchone()
    number = ledger.record("d", BUDGET, spend, question=question)
    ledger.answered(number, digest_of(file.read_bytes()))
    with pytest.raises(SfumatoError, match="not the training that is planned"):
        curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE)


def test_an_older_state_that_is_brought_back_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")
    file = half_trained(tmp_path, ledger)
    old = file.read_bytes()
    curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE)
    file.write_bytes(old)
    with pytest.raises(SfumatoError, match="not the newest"):
        curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE)


@pytest.fixture
def two_ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Ledger, Ledger]:
    """Open one ledger twice, as two processes do, on a system that cannot lock files."""
    monkeypatch.setattr(storage, "find_spec", lambda name: None)
    return Ledger(tmp_path / "l.sqlite"), Ledger(tmp_path / "l.sqlite")


def test_two_copies_of_a_training_cannot_both_be_finished(
    tmp_path: Path, two_ledgers: tuple[Ledger, Ledger]
) -> None:
    ledger, other = two_ledgers
    half_trained(tmp_path / "one", ledger)
    shutil.copytree(tmp_path / "one", tmp_path / "two")

    class FinishesTheOtherFirst(Seeded):
        def noise(self, size: int, sigma: float) -> np.ndarray:
            if self.steps == 1:
                curator(ledger=other, folder=tmp_path / "two").train("t", Adder(2), SCHEDULE)
            return super().noise(size, sigma)

    with pytest.raises(SfumatoError, match="not the newest"):
        drawn(FinishesTheOtherFirst(), ledger=ledger, folder=tmp_path / "one")
    # The one that has gone on may go on; the other may not.
    assert curator(ledger=ledger, folder=tmp_path / "one").train("t", Adder(2), SCHEDULE).step == 6
    with pytest.raises(SfumatoError, match="not the newest"):
        curator(ledger=ledger, folder=tmp_path / "two").train("t", Adder(2), SCHEDULE)


def test_a_copy_that_is_finished_while_rows_are_read_ends_the_first(
    tmp_path: Path, two_ledgers: tuple[Ledger, Ledger]
) -> None:
    ledger, other = two_ledgers
    half_trained(tmp_path / "one", ledger)
    shutil.copytree(tmp_path / "one", tmp_path / "two")

    class Slow:
        def __iter__(self) -> Iterator[Batch]:
            curator(ledger=other, folder=tmp_path / "two").train("t", Adder(2), SCHEDULE)
            return iter(ROWS)

    with pytest.raises(SfumatoError, match="used this payment meanwhile"):
        curator(Slow(), ledger, tmp_path / "one").train("t", Adder(2), SCHEDULE)
    assert list((tmp_path / "one").glob("*.next")) == []


def test_an_unfinished_training_is_no_saved_answer(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")
    half_trained(tmp_path, ledger)
    with pytest.raises(SfumatoError, match="is not finished"):
        curator(ledger=ledger, folder=tmp_path, use_saved=True).train("t", Adder(2), SCHEDULE)
    curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE)
    again = curator(ledger=ledger, folder=tmp_path, use_saved=True)
    assert again.train("t", Adder(2), SCHEDULE).step == SCHEDULE.steps


def test_a_state_that_the_ledger_does_not_know_is_left_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(":memory:")
    file = half_trained(tmp_path, ledger)
    known = file.read_bytes()

    def refuse(*_: object, **__: object) -> None:
        (waiting,) = tmp_path.glob("*.next")
        assert waiting.stat().st_mode & 0o077 == 0
        raise SfumatoError("the ledger is locked")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "answered", refuse)
        with pytest.raises(SfumatoError, match="locked"):
            curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE)
    assert file.read_bytes() == known
    assert list(tmp_path.glob("*.next")) == []
    # Nor does one survive that a crash has left before the ledger was told.
    next_of(file).write_bytes(b"never agreed on")
    assert curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE).step == 6
    assert list(tmp_path.glob("*.next")) == []


def test_a_learner_that_breaks_its_bound_is_stopped() -> None:
    class Loud(Plain):
        def clipped_sum(self, examples: object, clip: float) -> list[torch.Tensor]:
            return [torch.full((2,), torch.nan)]

    with pytest.raises(SfumatoError, match="more than the clipping norm"):
        places(Loud(2), Seeded())


def test_a_crash_between_the_ledger_and_the_file_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(":memory:")
    half_trained(tmp_path, ledger)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sfumato.storage.os.replace", die)
        with pytest.raises(KeyboardInterrupt):
            curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE)
    random = Seeded(5)
    state = drawn(random, ledger=ledger, folder=tmp_path)
    assert (state.step, random.steps) == (6, 3)  # the third state was known and is taken up
    assert len(ledger.entries()) == 1


def test_an_interruption_while_the_ledger_is_told_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is heard after the ledger has written what it was told."""
    ledger = Ledger(":memory:")
    half_trained(tmp_path, ledger)
    plain = ledger.answered

    def interrupted(*given: object, **named: object) -> None:
        plain(*given, **named)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "answered", interrupted)
        with pytest.raises(KeyboardInterrupt):
            curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE)
    assert curator(ledger=ledger, folder=tmp_path).train("t", Adder(2), SCHEDULE).step == 6
    assert len(ledger.entries()) == 1


KILL = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from learners import Adder, unit_rows
from seeded import Seeded, drawing
from support import SCHEMA
from sfumato.privacy.answers import digest_of, training_from_bytes
from sfumato.data.rows import GivenRows
from sfumato.privacy.budget import Budget
from sfumato.privacy.dpsgd import Schedule
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.curator import Curator
from sfumato.privacy.run import Run

def die(*_): os.kill(os.getpid(), signal.SIGKILL)

random = Seeded()
plain = random.noise
random.noise = lambda size, sigma: die() if random.steps == 3 else plain(size, sigma)
wall = Curator(GivenRows([unit_rows([[0.3, 0.4]])]), Budget(epsilon=1, delta=1e-5), SCHEMA,
               Run(ledger=Ledger({ledger!r}), dataset="d", folder=Path({folder!r})))
with drawing(random):
    wall.train("t", Adder(2), Schedule(rate=0.5, epochs=3, clip=1.0, learning_rate=0.1))
"""


def test_kill_9_in_the_fourth_step_loses_no_spend_and_pays_no_second(tmp_path: Path) -> None:
    folder, path = tmp_path / "releases", tmp_path / "l.sqlite"
    script = KILL.format(tests=str(Path(__file__).parents[1]), ledger=str(path), folder=str(folder))
    assert subprocess.run([sys.executable, "-c", script]).returncode == -9
    assert len(Ledger(path).entries("d")) == 1
    random = Seeded(3)
    wall = Curator(
        GivenRows([unit_rows([[0.3, 0.4]])]),
        BUDGET,
        SCHEMA,
        Run(ledger=Ledger(path), dataset="d", folder=folder),
    )
    with drawing(random):
        assert wall.train("t", Adder(2), SCHEDULE).step == 6
    assert random.steps == 3
    assert len(Ledger(path).entries("d")) == 1


@pytest.mark.parametrize(
    "wrong", [{"rate": 1.5}, {"clip": 0.0}, {"clip": 1e-316}, {"epochs": -1.0}]
)
def test_a_senseless_schedule_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SfumatoError, match=next(iter(wrong))):
        replace(SCHEDULE, **wrong)


def test_releases_may_follow_a_training_that_leaves_them_a_part() -> None:
    """Together they reach the budget: 0.7 of its rho for releases, before and after."""
    ledger = Ledger(":memory:")
    ledger.limit("d", BUDGET)
    wall = curator(ledger=ledger)
    wall.release("before", count_statistic(), 0.1)
    wall.train("t", Adder(2), SCHEDULE, share=0.3)
    assert wall.left == pytest.approx(0.6)
    wall.release("after", count_statistic(), 0.4)
    with pytest.raises(SfumatoError, match="more than what is left"):
        wall.release("too much", count_statistic(), 0.21)
    wall.release("last", count_statistic(), 0.2)
    assert 0.99 * BUDGET.epsilon < wall.guarantee.epsilon <= BUDGET.epsilon
    assert ledger.total_epsilon("d", (BUDGET.relation, 1, "row"), 1e-5) <= BUDGET.epsilon
    wall.close()
    assert not ledger.reservations("d")


def test_what_may_follow_a_training_is_set_aside_with_it() -> None:
    ledger = Ledger(":memory:")
    ledger.limit("d", BUDGET)
    wall = curator(ledger=ledger)
    wall.train("t", Adder(2), SCHEDULE, share=0.3)
    with pytest.raises(SfumatoError, match="has a limit of epsilon 1"):
        curator(ledger=ledger).release("of another run", count_statistic(), 0.1)
    wall.release("after", count_statistic(), 0.7)


def test_a_release_after_another_training_is_another_question(tmp_path: Path) -> None:
    """What is asked may depend on what was learned, so saved answers are told apart by it."""
    names = []
    for number, seed in enumerate((1, 2, 1)):
        folder = tmp_path / str(number)
        wall = curator(folder=folder)
        with drawing(Seeded(seed)):
            wall.train("t", Adder(2), SCHEDULE, share=0.3)
        wall.release("after", count_statistic(), 0.1)
        names += [path.name for path in folder.glob("after-*.safetensors")]
    assert names[0] == names[2] != names[1]


def test_a_training_that_is_refused_sets_nothing_aside(tmp_path: Path) -> None:
    """Another seed is another training: whoever does not want to pay again has paid for nothing."""
    ledger = Ledger(":memory:")
    wall = curator(ledger=ledger, folder=tmp_path)
    wall.train("t", Adder(2), SCHEDULE, share=0.3)
    wall.close()
    with pytest.raises(SfumatoError, match="--pay-again"):
        curator(ledger=ledger, folder=tmp_path).train("t", Adder(3), SCHEDULE, share=0.3)
    assert not ledger.reservations("d")


@pytest.mark.parametrize("epsilon", [10, 25])
def test_what_follows_a_training_is_affordable_at_any_budget(epsilon: float) -> None:
    """At a large epsilon the charge for discrete noise is more than is kept back of delta."""
    wall = curator(budget=Budget(epsilon=epsilon, delta=1e-6))
    wall.release("before", count_statistic(), 0.05)
    wall.train("t", Adder(2), SCHEDULE, share=0.3)
    wall.release("after", count_statistic(), 0.1)
    wall.release("last", count_statistic(), wall.left)
    assert wall.guarantee.epsilon <= epsilon
