"""What many tests share: a seeded sampler, and no ledger but their own."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from seeded import Seeded, seeded_noise
from sfumato.privacy.noise import Sampler
from sfumato.privacy.release import Curator

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


@pytest.fixture
def sampler() -> Sampler:
    """The same noise in every test that asks for it."""
    return seeded_noise()


def _noise_of(request: pytest.FixtureRequest) -> Iterator[None]:
    """Seed the noise that no test injects, by the test's name: a test fails always or never.

    What other processes draw, as those of the command line, stays as it is for users.
    """
    seed = zlib.crc32(request.node.nodeid.encode())
    with pytest.MonkeyPatch.context() as patch:
        defaults = Curator.__init__.__kwdefaults__
        patch.setitem(defaults, "sampler", seeded_noise(seed))
        patch.setitem(defaults, "randomness", Seeded(seed))
        yield


noise_of_module = pytest.fixture(_noise_of, autouse=True, scope="module")  # for what tests share
noise_of_test = pytest.fixture(_noise_of, autouse=True)


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's ledger or needs the benchmark data."""
    path = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("SFUMATO_LEDGER", str(path))
    monkeypatch.delenv("SFUMATO_DATA", raising=False)
    return path
