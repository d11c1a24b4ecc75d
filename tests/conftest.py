"""What many tests share: seeded entropy, and no ledger but their own."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from seeded import NoNoise, drawing, seeded_entropy

if find_spec("torch") is None:  # the core is tested without it, too
    collect_ignore = [
        "classify",
        "methods/test_training.py",
        "methods/test_networks.py",
        "learners.py",
        "questions.py",
        "methods/test_hp.py",
        "methods/test_embedding.py",
        "methods/test_merf.py",
        "privacy/test_adversarial_learner.py",
        "privacy/test_canary.py",
        "privacy/test_dpsgd.py",
        "privacy/test_gradients.py",
        "privacy/test_low_bits.py",
        "privacy/test_sampled_gaussian.py",
        "privacy/test_training_spend.py",
        "public/test_whole_numbers.py",
    ]

settings.register_profile("sfumato", derandomize=True, deadline=None, max_examples=200)
# For mutants: the first example that fails is enough.
settings.register_profile(
    "mutants", settings.get_profile("sfumato"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("sfumato")


def _noise_of(request: pytest.FixtureRequest) -> Iterator[None]:
    """Seed the entropy of noise by the test's name: a test fails always or never.

    What other processes draw, as those of the command line, stays as it is for users.
    """
    with seeded_entropy(zlib.crc32(request.node.nodeid.encode())):
        yield


noise_of_module = pytest.fixture(_noise_of, autouse=True, scope="module")  # for what tests share
noise_of_test = pytest.fixture(_noise_of, autouse=True)


@pytest.fixture
def no_noise() -> Iterator[None]:
    """Nothing is added to what is released."""
    with drawing(NoNoise()):
        yield


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's ledger or needs the benchmark data."""
    path = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("SFUMATO_LEDGER", str(path))
    monkeypatch.delenv("SFUMATO_DATA", raising=False)
    return path
