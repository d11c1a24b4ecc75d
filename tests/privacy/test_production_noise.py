"""Noise as users get it: in processes of their own, where nothing is injected or seeded.

All draws are from the entropy of the operating system, so tests have a false-alarm rate: 1e-6 each.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

FALSE_ALARM = 1e-6

RELEASED = """
import json
import numpy as np
import pyarrow as pa
import sfumato as sf
from sfumato.privacy.curator import Curator
from sfumato.data.table_codec import TableCodec
from sfumato.statistics.counts import Axis, Counts

schema = sf.read_schema({"columns": {"x": {"kind": "integer", "low": 0, "high": 4095}}})
rows = pa.table({"x": [7] * 100})
counts = Counts([(Axis(0, np.arange(4096, dtype=np.int32)),)])
released = []
for epsilon in (0.5, 4):
    curator = Curator.of(
        rows, TableCodec(schema, 4096), schema, sf.Budget(epsilon=epsilon),
        sf.Run(ledger=sf.Ledger(":memory:"), dataset="d"),
    )
    release = curator.release("counts", counts, 1.0)
    released.append([release.sigma, release.values.tolist()])
print(json.dumps(released))
"""

TOLD = """
import json
import pyarrow as pa
import sfumato as sf
from sfumato.data.table_codec import TableCodec
from sfumato.privacy.search_budget import SearchBudget
from sfumato.privacy.curator import Curator
from sfumato.privacy.selection import Selection

schema = sf.read_schema({"columns": {"x": {"kind": "categorical", "values": "private"}}})
rows = pa.table({"x": [str(value) for value in range(500) for _ in range(1000)]})
curator = Curator.of(
    rows, TableCodec(schema), schema, sf.Budget(epsilon=1),
    sf.Run(ledger=sf.Ledger(":memory:"), dataset="d"), ahead=SearchBudget(0.5, 1e-9),
)
release = curator.release_search("values", Selection("x", 1e-9), 0.5)
print(json.dumps([[release.sigma, (release.values - 1000).tolist()]]))
"""

TRAINED = """
import json, sys
sys.path.insert(0, {tests!r})
from learners import Plain, unit_rows
import sfumato as sf
from sfumato.data.rows import GivenRows
from sfumato.privacy.dpsgd import Schedule
from sfumato.privacy.curator import Curator
from support import SCHEMA
steps, size = 4, 2000
curator = Curator(
    GivenRows([unit_rows([[0.0] * size])]), sf.Budget(epsilon=1), SCHEMA,
    sf.Run(ledger=sf.Ledger(":memory:"), dataset="d"),
)
learner = Plain(size)
learner.module.double()
state = curator.train("t", learner, Schedule(rate=0.5, epochs=2, clip=1.0, learning_rate=1.0))
sigma = steps**0.5 * curator.trainings[0].noise_multiplier  # of the sum of all steps
print(json.dumps([[sigma, state.arrays["weights/place"].tolist()]]))
"""


def in_a_fresh_process(script: str) -> list[tuple[float, np.ndarray]]:
    """Give scales and what was released at each."""
    script = script.replace("{tests!r}", repr(str(Path(__file__).parents[1])))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [(sigma, np.array(values)) for sigma, values in json.loads(done.stdout)]


def assert_gaussian(draws: np.ndarray, sigma: float) -> None:
    """Compare with a Gaussian of this scale: its spread, its shape, and that nothing repeats."""
    spread = float(draws @ draws) / sigma**2
    assert stats.chi2.cdf(spread, len(draws)) > FALSE_ALARM / 4
    assert stats.chi2.sf(spread, len(draws)) > FALSE_ALARM / 4
    assert stats.kstest(draws / sigma, "norm").pvalue > FALSE_ALARM / 4
    assert len(np.unique(draws)) == len(draws)


def test_releases_have_the_noise_that_is_paid_for() -> None:
    first, second = in_a_fresh_process(RELEASED), in_a_fresh_process(RELEASED)
    for sigma, values in (*first, *second):
        assert_gaussian(np.delete(values, 7), sigma)
        assert abs(values[7] - 100) < 6 * sigma
    # Nor is it the same in another process, or in another release.
    for (sigma, one), (_, other) in zip(first, second, strict=True):
        assert_gaussian(one - other, 2**0.5 * sigma)


def test_values_are_told_with_the_noise_that_is_paid_for() -> None:
    (first,), (second,) = in_a_fresh_process(TOLD), in_a_fresh_process(TOLD)
    for sigma, errors in (first, second):
        assert len(errors) == 500
        assert_gaussian(errors, sigma)
    assert_gaussian(first[1] - second[1], 2**0.5 * first[0])


def test_trainings_have_the_noise_that_is_paid_for() -> None:
    pytest.importorskip("torch")
    (first,), (second,) = in_a_fresh_process(TRAINED), in_a_fresh_process(TRAINED)
    for sigma, places in (first, second):
        assert_gaussian(places, sigma)
    assert_gaussian(first[1] - second[1], 2**0.5 * first[0])
