"""What many tests share: a seeded sampler, and no ledger but their own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from sfumato.privacy.noise import Sampler

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
        "public/test_whole_numbers.py",
    ]

settings.register_profile("sfumato", derandomize=True, deadline=None, max_examples=200)
settings.load_profile("sfumato")


@pytest.fixture
def sampler() -> Sampler:
    """Rounded Gaussian noise from a fixed seed: for tests only."""
    rng = np.random.default_rng(0)
    return lambda size, sigma: np.rint(rng.normal(0, sigma, size)).astype(np.int64)


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's ledger or needs the benchmark data."""
    path = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("SFUMATO_LEDGER", str(path))
    monkeypatch.delenv("SFUMATO_DATA", raising=False)
    return path
