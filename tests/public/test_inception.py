"""The Inception of FID: its weights are found or asked for, its pictures prepared as published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import SfumatoError

inception = pytest.importorskip("sfumato.public.inception", exc_type=ImportError)


def test_missing_weights_are_asked_for_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_DATA", str(tmp_path))
    with pytest.raises(SfumatoError, match="SFUMATO_DATA names") as caught:
        inception.FidInception()
    assert str(tmp_path / "weights" / "inception_fid_f16.npz") in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(SfumatoError, match=r"at elsewhere\.npz"):
        inception.FidInception("elsewhere.npz")


def test_pictures_are_prepared_as_by_pytorch_fid() -> None:
    pictures = np.zeros((2, 4, 4, 3), np.uint8)
    pictures[1, :, 2:, 0] = 255  # the right half red
    prepared = inception._prepared(pictures).numpy()
    assert prepared.shape == (2, 3, 299, 299)
    assert prepared[0] == pytest.approx(-1, abs=1e-5)
    red = prepared[1, 0]
    assert red[:, :100] == pytest.approx(-1, abs=1e-5)
    assert red[:, -100:] == pytest.approx(1, abs=1e-5)
    assert red == pytest.approx(-red[:, ::-1], abs=1e-4)  # half-pixel centres favour no side
    assert prepared[1, 1:] == pytest.approx(-1, abs=1e-5)


def test_grey_pictures_have_three_equal_channels() -> None:
    grey = np.random.default_rng(0).integers(0, 256, (2, 5, 6), np.uint8)
    with_channel, without = inception._prepared(grey[..., None]), inception._prepared(grey)
    coloured = inception._prepared(np.repeat(grey[..., None], 3, axis=3))
    assert np.array_equal(with_channel, without)
    assert np.array_equal(with_channel, coloured)
