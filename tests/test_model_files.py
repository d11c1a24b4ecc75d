"""Model files of each version are read, or refused with a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

import sfumato as sf
from sfumato.certificate import certificate_text
from sfumato.errors import SfumatoError
from sfumato.evaluation.report import certificate_html
from sfumato.public.provenance import Provenance
from support import SCHEMA, people

FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize("version", [0, 1])
def test_a_table_model_of_each_version_draws_rows(version: int) -> None:
    model = sf.load(FILES / f"pairs-version-{version}.sfumato")
    assert isinstance(model, sf.Model)
    assert model.sample(5).column_names == list(SCHEMA.columns)
    assert model.guarantee.epsilon == pytest.approx(2, rel=1e-6)


@pytest.mark.parametrize("version", [0, 1])
def test_a_classifier_of_each_version_predicts(version: int) -> None:
    pytest.importorskip("torch")
    model = sf.load(FILES / f"locally-linear-version-{version}.sfumato")
    assert model.predict_proba(people(4)).shape == (4, 2)  # type: ignore[attr-defined]
    assert 1.99 < model.guarantee.epsilon <= 2


def test_a_file_of_a_newer_version_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "m.sfumato"
    with safe_open(FILES / "pairs-version-1.sfumato", "numpy") as file:
        about = file.metadata() | {"sfumato": "99"}
    path.write_bytes(save({"x": np.zeros(1)}, about))
    with pytest.raises(SfumatoError, match=r"written by a newer sfumato .* update"):
        sf.load(path)


def test_other_files_are_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"nothing")
    with pytest.raises(SfumatoError, match="not a model file"):
        sf.load(tmp_path / "m")
    (tmp_path / "m").write_bytes(save({"x": np.zeros(1)}, {"sfumato": "1"}))
    with pytest.raises(SfumatoError, match="not a model file"):
        sf.load(tmp_path / "m")


def test_public_inputs_stay_with_a_model_and_on_its_certificate(tmp_path: Path) -> None:
    about = Provenance(name="tiny", source="made here", digest="ab" * 32, licence="CC0")
    model = replace(sf.load(FILES / "pairs-version-1.sfumato"), public=(about,))
    model.save(tmp_path / "m.sfumato")
    loaded = sf.load(tmp_path / "m.sfumato")
    assert loaded.public == (about,)
    assert "public input: tiny (made here; licence CC0" in certificate_text(loaded)
    assert "tiny (made here; licence CC0" in certificate_html(loaded)
