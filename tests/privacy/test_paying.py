"""One run, one payment: reserved as a whole, bound to its rows, and never paid for twice."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from seeded import Counting, drawing
from sfumato.data.rows import EncodedTable, GivenRows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.methods.pairs.method import Pairs
from sfumato.privacy import wall
from sfumato.privacy.budget import Budget, Spend
from sfumato.privacy.curator import Curator
from sfumato.privacy.gate import Gate
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.purse import Purse
from sfumato.privacy.run import Run
from sfumato.privacy.search_budget import SearchBudget
from sfumato.schema import Boolean, Categorical, Identifier, Numeric, Schema
from support import SCHEMA, coded, count_statistic, people

BUDGET = Budget(epsilon=1, delta=1e-6)
QUICK = Pairs(components=2, restarts=1)


def asked(values: list[int], folder: Path | None, ledger: Ledger, **options: bool) -> Curator:
    return Curator(
        GivenRows([coded(values)]),
        BUDGET,
        SCHEMA,
        Run(ledger=ledger, dataset="d", folder=folder, **options),
    )


def test_a_run_that_would_pass_the_limit_spends_nothing_at_all() -> None:
    ledger = Ledger(":memory:")
    ledger.limit("d", Budget(epsilon=1.2, delta=1e-6))
    first = asked([0, 1], None, ledger)
    first.release("all", count_statistic(), 1.0)
    first.close()
    second = asked([0, 1], None, ledger)
    with pytest.raises(SfumatoError, match="with 'the whole run' it would reach"):
        second.release("a small part", count_statistic(), 0.05)
    assert [entry.spend.name for entry in ledger.entries()] == ["all"]


def test_what_a_run_has_reserved_is_not_there_for_others_until_it_ends() -> None:
    ledger = Ledger(":memory:")
    ledger.limit("d", Budget(epsilon=1.2, delta=1e-6))
    first, second = (asked([0, 1], None, ledger) for _ in range(2))
    first.release("part", count_statistic(), 0.1)
    with pytest.raises(SfumatoError, match="the whole run"):
        second.release("part", count_statistic(), 0.1)
    first.close()
    assert ledger.reservations() == []
    second.release("part", count_statistic(), 0.1)


def test_a_payment_for_something_else_is_not_used_for_a_question() -> None:
    """Nor one whose answer was seen: a crash came before an answer only where there is none."""
    ledger = Ledger(":memory:")
    purse = Purse(BUDGET, SearchBudget(), Run(ledger=ledger, dataset="d"), "row")
    paid, other = (Spend(name="counts", dim=4, sensitivity=1, sigma=sigma) for sigma in (50.0, 5.0))
    number = purse.pay(paid, "question", "run")
    assert purse.unanswered("question", paid) == number
    assert purse.unanswered("question", other) is None
    assert purse.unanswered("another", paid) is None
    ledger.answered(number, "digest")
    assert purse.unanswered("question", paid) is None


def test_one_reservation_takes_the_place_of_another_or_leaves_it() -> None:
    ledger = Ledger(":memory:")
    ledger.limit("d", BUDGET)
    first = ledger.reserve("d", BUDGET, BUDGET.rho)
    second = ledger.reserve("d", BUDGET, BUDGET.rho / 2, instead_of=first)
    assert [(each.number, each.rest.amount) for each in ledger.reservations()] == [
        (second, BUDGET.rho / 2)
    ]
    with pytest.raises(SfumatoError, match="limit"):
        ledger.reserve("d", BUDGET, 2 * BUDGET.rho, instead_of=second)
    assert [each.number for each in ledger.reservations()] == [second]


def test_an_interrupted_run_takes_up_its_own_reservation(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")
    ledger.limit("d", BUDGET)
    asked([0, 1], tmp_path, ledger).release("first", count_statistic(), 0.5)
    again = asked([0, 1], tmp_path, ledger)
    again.release("first", count_statistic(), 0.5)
    again.release("second", count_statistic(), 0.5)
    again.close()
    assert [entry.spend.name for entry in ledger.entries()] == ["first", "second"]
    assert ledger.reservations() == []


@pytest.mark.parametrize("folder", [True, False])
def test_a_finished_fit_leaves_nothing_reserved(tmp_path: Path, folder: bool) -> None:
    ledger = Ledger(":memory:")
    QUICK.fit(
        people(200),
        SCHEMA,
        2.0,
        Run(ledger=ledger, dataset="d", folder=tmp_path if folder else None),
    )
    assert ledger.entries("d")
    assert ledger.reservations() == []


def answers(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("rows", [[0, 1], [0, 2], [3] * 50])
def test_saved_answers_are_taken_up_whatever_the_rows_are(tmp_path: Path, rows: list[int]) -> None:
    ledger = Ledger(":memory:")
    first = asked([0, 1], tmp_path, ledger).release("counts", count_statistic(), 1.0)
    files = answers(tmp_path)
    for use_saved in (False, True):
        wall = asked(rows, tmp_path, ledger, use_saved=use_saved)
        again = wall.release("counts", count_statistic(), 1.0)
        assert np.array_equal(again.values, first.values)
        assert len(wall.taken_up) == 1
    assert len(ledger.entries()) == 1
    assert answers(tmp_path) == files


@pytest.mark.parametrize("rows", [[0, 1], [0, 2]])
def test_who_pays_again_always_pays_and_always_gets_a_new_answer(
    tmp_path: Path, rows: list[int]
) -> None:
    ledger = Ledger(":memory:")
    seen = []
    for again in range(4):
        wall = asked(rows if again else [0, 1], tmp_path, ledger, pay_again=again > 0)
        for name in ("first", "second"):
            seen.append(wall.release(name, count_statistic(), 0.5).noisy.tobytes())
        wall.close()
        assert len(ledger.entries()) == 2 * (again + 1)
        assert len(answers(tmp_path)) == 2 * (again + 1)
    assert len(set(seen)) == 8
    newest = asked([0, 1], tmp_path, ledger)
    assert newest.release("first", count_statistic(), 0.5).noisy.tobytes() == seen[-2]
    assert newest.release("second", count_statistic(), 0.5).noisy.tobytes() == seen[-1]


def test_who_pays_again_and_is_interrupted_goes_on_from_there(
    tmp_path: Path,
) -> None:
    ledger = Ledger(":memory:")
    run = asked([0, 1], tmp_path, ledger)
    for name in ("first", "second"):
        run.release(name, count_statistic(), 0.5)
    run.close()
    stopped = asked([0, 1], tmp_path, ledger, pay_again=True)
    first = stopped.release("first", count_statistic(), 0.5)
    for pay_again in (True, False):
        wall = asked([0, 2], tmp_path, ledger, pay_again=pay_again)
        assert np.array_equal(wall.release("first", count_statistic(), 0.5).noisy, first.noisy)
        wall.release("second", count_statistic(), 0.5)
    assert [entry.spend.name for entry in ledger.entries()] == 2 * ["first", "second"]
    wall.close()
    asked([0, 1], tmp_path, ledger, pay_again=True).release("first", count_statistic(), 0.5)
    assert len(ledger.entries()) == 5


def test_to_pay_again_and_to_pay_nothing_exclude_each_other() -> None:
    with pytest.raises(SfumatoError, match="choose one"):
        asked([0], None, Ledger(":memory:"), pay_again=True, use_saved=True)


def public_things(folder: Path, book: Path) -> list[object]:
    """Give all that others may see, but for times and for what noise makes of it."""
    ledger = Ledger(book)
    names = {}
    tables = []
    for table in ("spends", "answers", "reservations", "closings", "open_reservations", "totals"):
        found = ledger._database.execute(f"SELECT * FROM {table} ORDER BY 1")
        columns = [column[0] for column in found.description]
        for row in found.fetchall():
            kept = dict(zip(columns, row, strict=True))
            kept.pop("time", None)
            for key in ("digest", "question", "run"):  # of noisy values: told apart, not compared
                if kept.get(key):
                    kept[key] = names.setdefault(kept[key], len(names))
            tables.append((table, kept))
    files = [
        re.sub("[0-9a-f]{16}", "…", str(file.relative_to(folder)))
        for file in sorted(folder.rglob("*"))
        if ".sqlite" not in file.name
    ]
    return [tables, sorted(files)]


CHANGES = {
    "nothing": lambda values: values,
    "a row's value": lambda values: ["Jena", *values[1:]],
    "a row more": lambda values: [*values, "Ulm"],
    "all renamed": lambda values: ["x" + value for value in values],
}


@pytest.mark.parametrize("options", [{}, {"use_saved": True}, {"pay_again": True}])
@pytest.mark.parametrize("found", [False, True])
def test_nothing_public_tells_whether_rows_have_changed(
    tmp_path: Path, options: dict[str, bool], found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    towns = ["Ulm"] * 400 + ["Jena"] * 300
    values = "private" if found else ("Ulm", "Jena", "xUlm", "xJena", "Kiel")
    town = {"kind": "categorical", "values": values}
    schema = {"columns": {"town": town, "new": {"kind": "boolean"}}}
    seen = []
    for number, change in enumerate(CHANGES.values()):
        place = tmp_path / str(number)
        place.mkdir()
        # A noise that is next to none, and never twice the same: what differs follows from rows.
        steps = count(1)
        monkeypatch.setattr(
            wall, "discrete_gaussian", lambda size, sigma, steps=steps: np.full(size, next(steps))
        )
        codes = []
        for rows, more in ((towns, {}), (change(towns), options)):
            table = pa.table({"town": rows, "new": [False] * len(rows)})
            try:
                QUICK.fit(
                    table,
                    schema,
                    Budget(epsilon=200),
                    Run(
                        ledger=Ledger(place / "l.sqlite"),
                        dataset="d",
                        folder=place / "releases",
                        **more,
                    ),
                )
                codes.append(0)
            except SfumatoError as error:
                codes.append(str(error))
        seen.append([codes, public_things(place, place / "l.sqlite")])
    for each in seen[1:]:
        assert each == seen[0]
    assert seen[0][0] == [0, 0]


def test_no_public_name_or_record_follows_from_rows(tmp_path: Path) -> None:
    """With the same noise, another row changes the content of answers, and nothing else."""
    names = []
    for number, values in enumerate(([0, 1, 1], [0, 2, 1])):
        folder = tmp_path / str(number)
        ledger = Ledger(":memory:")
        with drawing(Counting()):
            asked(values, folder, ledger).release("counts", count_statistic(), 1.0)
        (row,) = ledger._database.execute("SELECT question FROM spends").fetchall()
        names.append((row, answers(folder)))
    assert names[0] == names[1]


def test_two_folders_are_two_runs(tmp_path: Path) -> None:
    ledger = Ledger(":memory:")
    first = asked([0, 1], tmp_path / "one", ledger)
    first.release("part", count_statistic(), 0.1)
    second = asked([0, 1], tmp_path / "two", ledger, pay_again=True)
    second.release("part", count_statistic(), 0.1)
    second.close()
    assert len(ledger.reservations()) == 1


def test_misfits_are_counted_once_and_first() -> None:
    wall = Curator(
        EncodedTable(people(50), TableCodec(SCHEMA)),
        BUDGET,
        SCHEMA,
        Run(ledger=Ledger(":memory:"), dataset="d", gate=Gate(0.5, share=0.5)),
    )
    wall.release_misfits("misfits", count_statistic(2))
    with pytest.raises(SfumatoError, match="before all other questions, and once"):
        wall.release_misfits("misfits", count_statistic(2))


def test_saved_releases_alone_are_used_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    with pytest.raises(SfumatoError, match="leave --use-saved out"):
        asked([0], tmp_path, Ledger(":memory:"), use_saved=True).release(
            "counts", count_statistic(), 1.0
        )


def test_a_noisy_gate_is_paid_for_and_part_of_the_promise(tmp_path: Path) -> None:
    schema = Schema(columns={"x": Numeric(low=0, high=1), "y": Boolean()})
    rng = np.random.default_rng(0)
    good = pa.table({"x": rng.random(4000), "y": rng.random(4000) < 0.5})
    ledger = Ledger(":memory:")
    model = QUICK.fit(
        good, schema, Budget(epsilon=2), Run(ledger=ledger, dataset="d", gate=Gate(0.2, share=0.05))
    )
    assert model.guarantee.spends[0].name == "misfits"
    assert 1.9 < model.guarantee.epsilon <= 2
    assert len(ledger.entries()) == len(model.guarantee.spends)
    bad = pa.table({"x": rng.random(4000) + 0.5, "y": rng.random(4000) < 0.5})
    with pytest.raises(SfumatoError, match=r"noisy counts, more than 20.0% .* in 'x'"):
        QUICK.fit(
            bad,
            schema,
            Budget(epsilon=2),
            Run(ledger=ledger, dataset="d", folder=tmp_path, gate=Gate(0.2, share=0.05)),
        )
    assert ledger.reservations() == []  # it was decided not to go on
    with pytest.raises(SfumatoError, match="do not fit the schema, and nothing was paid"):
        QUICK.fit(bad, schema, Budget(epsilon=2))
    QUICK.fit(bad, schema, Budget(epsilon=2), Run(gate=Gate(None)))


def test_ids_of_people_with_several_rows_belong_together() -> None:
    schema = Schema(
        columns={
            "person": Identifier(unit=True),
            "age": Numeric(low=0, high=99, integer=True),
            "town": Categorical(values=("Ulm", "Jena")),
        }
    )
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(2000), rng.integers(1, 4, 2000))
    table = pa.table(
        {
            "person": person,
            "age": rng.integers(20, 80, len(person)),
            "town": np.array(["Ulm", "Jena"])[rng.integers(0, 2, len(person))],
        }
    )
    budget = Budget(epsilon=5, max_rows_per_unit=3)
    model = QUICK.fit(table, schema, budget)
    drawn = np.bincount(model.sample(6000)["person"].to_numpy())[1:]
    shares = np.bincount(drawn, minlength=4)[1:] / len(drawn)
    # A third of the people each have one, two and three rows; noise is a few rows of 2,000.
    assert np.abs(shares - 1 / 3).max() < 0.1
    assert QUICK.plan(schema, budget).spends[0] == model.guarantee.spends[0]
    once = QUICK.fit(table, schema, Budget(epsilon=5))
    assert once.sample(50)["person"].to_pylist() == list(range(1, 51))


KILL = """
import os, sys
sys.path.insert(0, {tests!r})
import sqlite3
from pathlib import Path
import numpy as np
from sfumato import storage
from sfumato.data.rows import GivenRows
from sfumato.privacy import asking, ledger, vault
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.run import Run
from support import SCHEMA, coded, count_statistic

from sfumato.privacy.noise import discrete_gaussian
discrete_gaussian(1, 1.0)  # loads what each child would load anew

folder, book = Path({folder!r}), {ledger!r}
calls, at = 0, 0

def counted(function):
    def call(*arguments, **options):
        # Before it and after it: nothing is done by halves that both would not show.
        for moment in (0, 1):
            global calls
            calls += 1
            if calls == at:
                os.kill(os.getpid(), 9)
            if moment == 0:
                result = function(*arguments, **options)
        return result
    return call

for module, names in (
    (storage.os, ("open", "fsync", "replace", "chmod", "posix_fallocate")),
    (storage, ("take_place", "next_of", "slot")),
    (vault, ("take_place", "digest_of")),
    (asking, ("slot", "digest_of")),
    (ledger.Ledger, ("reserve", "record", "answered", "close", "_insert", "_keep_totals")),
    (GivenRows, ("sum", "review")),
):
    for name in names:
        setattr(module, name, counted(getattr(module, name)))

def run():
    wall = Curator(
        GivenRows([coded([0, 1, 1])]), Budget(epsilon=1), SCHEMA,
        Run(ledger=ledger.Ledger(book), dataset="d", folder=folder),
    )
    for name in ("first", "second"):
        wall.release(name, count_statistic(), 0.5)
    wall.close()

def in_a_child(die_at):
    child = os.fork()
    if child == 0:
        global at
        at = die_at
        run()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

points = 0
while True:
    points += 1
    for file in [*folder.iterdir(), *Path(book).parent.glob("*l.sqlite*")]:
        file.unlink()
    ended = in_a_child(points)
    assert in_a_child(0) == 0
    kept = ledger.Ledger(book)
    assert [entry.spend.name for entry in kept.entries()] == ["first", "second"], points
    assert kept.reservations() == [], points
    assert not [file for file in folder.iterdir() if file.suffix == ".next"], points
    if ended == 0:
        break
    assert ended == -9
print(points)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs fork and kill -9")
def test_kill_9_at_any_point_and_the_same_command_pays_once(tmp_path: Path) -> None:
    (tmp_path / "releases").mkdir()
    script = KILL.format(
        tests=str(Path(__file__).parents[1]),
        folder=str(tmp_path / "releases"),
        ledger=str(tmp_path / "l.sqlite"),
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50


ASK = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from sfumato.data.rows import GivenRows
from sfumato.errors import SfumatoError
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.run import Run
from support import SCHEMA, coded, count_statistic

class Slow(GivenRows):
    def sum(self, statistic):
        import time
        time.sleep(0.3)  # so that all of them ask while one has paid
        return super().sum(statistic)

wall = Curator(
    Slow([coded([0, 1, 1])]), Budget(epsilon=1), SCHEMA,
    Run(ledger=Ledger({book!r}), dataset="d", folder=Path({folder!r}), pay_again={again}),
)
sys.stdin.readline()
try:
    for name in ("first", "second"):
        print(wall.release(name, count_statistic(), 0.5).noisy.tolist())
    wall.close()
except SfumatoError as error:
    print("refused:", error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")
@pytest.mark.slow
@pytest.mark.parametrize(("shared", "again"), [(True, False), (True, True), (False, False)])
def test_six_equal_runs_at_once_pay_once(tmp_path: Path, shared: bool, again: bool) -> None:
    book = tmp_path / "l.sqlite"
    runs = [
        subprocess.Popen(
            [
                sys.executable, "-c",
                ASK.format(
                    tests=str(Path(__file__).parents[1]), book=str(book), again=again,
                    folder=str(tmp_path / ("r" if shared else f"r{number}")),
                ),
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in range(6)
    ]  # fmt: skip
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
    said = [run.communicate()[0] for run in runs]
    assert [entry.spend.name for entry in Ledger(book).entries()] == ["first", "second"]
    if shared:
        assert len(set(said)) == 1
    else:
        refused = [each for each in said if each.startswith("refused: 'first' was paid for")]
        assert len(refused) == 5
        assert len(list(tmp_path.glob("r*"))) == 1
    assert list(tmp_path.rglob(".*.lock")) == []
