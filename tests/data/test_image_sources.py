"""Image sets whose classes or pictures are not what the schema says are refused, and named."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from command_line import run
from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import encoded_rows
from sfumato.errors import SfumatoError
from sfumato.privacy.ledger import Ledger
from sfumato.schema import Images

CATS_AND_DOGS = Images(height=4, width=5, classes=("cat", "dog"))
PIXELS = np.random.default_rng(0).integers(0, 256, (7, 4, 5), dtype=np.uint8)


def picture(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(PIXELS[0]).save(folder / name)


def huge_png() -> bytes:
    """Give a few bytes that claim to be a picture of 400 megapixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(
            ">I", zlib.crc32(kind + content)
        )  # fmt: skip

    header = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(20_001))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def test_pictures_without_a_class_are_named_at_opening(tmp_path: Path) -> None:
    picture(tmp_path, "cat/a.png")
    for name in "wxyz":
        picture(tmp_path, f"{name}.png")
    with pytest.raises(SfumatoError, match=r"without a class \(w\.png, x\.png, y\.png, …\)"):
        encoded_rows(tmp_path, ImageCodec(CATS_AND_DOGS))


def test_folders_that_are_no_classes_are_named_at_opening(tmp_path: Path) -> None:
    for name in ("cat/a.png", "doge/a.png", "train/dog/b.png"):
        picture(tmp_path, name)
    with pytest.raises(SfumatoError, match=r"no classes of the schema \(doge, train\)"):
        encoded_rows(tmp_path, ImageCodec(CATS_AND_DOGS))


def test_a_flat_folder_is_read_where_the_schema_has_no_classes(tmp_path: Path) -> None:
    picture(tmp_path, "a.png")
    batch = next(iter(encoded_rows(tmp_path, ImageCodec(Images(height=4, width=5)))))
    assert np.array_equal(batch.numbers.reshape(4, 5), PIXELS[0])


def test_arrays_without_labels_are_refused_where_the_schema_has_classes() -> None:
    with pytest.raises(SfumatoError, match="no labels, but the schema has classes"):
        encoded_rows((PIXELS, None), ImageCodec(CATS_AND_DOGS))


def test_labels_that_are_not_listed_are_named_before_anything_is_paid(
    tmp_path: Path, own_ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = np.array(["cat", "dog", "fox", "cat", "dog", "cat", "dog"])
    np.savez(tmp_path / "a.npz", x=PIXELS, y=labels)
    schema, out = tmp_path / "a.toml", tmp_path / "out.npz"
    schema.write_text('images = {height = 4, width = 5, classes = ["cat", "dog"]}')
    code, _, error = run(
        capsys, "synth", f"{tmp_path}/a.npz", "-s", f"{schema}", "-e", "1", "-o", f"{out}", "-q"
    )
    assert code == 2
    assert "not listed ('fox')" in " ".join(error.split())
    assert Ledger(own_ledger).entries() == []


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[: len(content) // 2],
    "spoilt": lambda content: content[:40] + b"spoilt" + content[46:],
    "empty": lambda content: b"",
    "text": lambda content: b"no picture",
}


# Only a PNG tells by checksums that its pixels are others than before.
@pytest.mark.parametrize(
    ("damage", "form"),
    [*product(("cut short", "empty", "text"), ("jpeg", "png", "tiff", "webp")), ("spoilt", "png")],
)
def test_a_damaged_picture_is_named(damage: str, form: str, tmp_path: Path) -> None:
    whole = io.BytesIO()
    Image.fromarray(np.tile(PIXELS[0], (9, 9))).save(whole, form)
    (tmp_path / "cat").mkdir()
    path = tmp_path / "cat" / f"a.{form}"
    path.write_bytes(DAMAGE[damage](whole.getvalue()))
    with pytest.raises(SfumatoError, match=rf"cannot read the picture .*a\.{form}: remove or"):
        list(encoded_rows(tmp_path, ImageCodec(CATS_AND_DOGS)))


def test_a_picture_of_too_many_pixels_is_named_and_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "bomb.png").write_bytes(huge_png())
    with pytest.raises(SfumatoError, match=r"bomb\.png has too many pixels"):
        list(encoded_rows(tmp_path, ImageCodec(CATS_AND_DOGS)))


@pytest.mark.parametrize("zipped", [False, True])
def test_archives_that_end_early_are_named(zipped: bool, tmp_path: Path) -> None:
    head = bytes([0, 0, 8, 3]) + np.array(PIXELS.shape, ">i4").tobytes()
    content = head + PIXELS.tobytes()
    path = tmp_path / ("images-idx3-ubyte.gz" if zipped else "images-idx3-ubyte")
    path.write_bytes((gzip.compress(content) if zipped else content)[:-20])
    with pytest.raises(SfumatoError, match=r"images-idx3-ubyte.* damaged"):
        list(encoded_rows(path, ImageCodec(Images(height=4, width=5))))


def test_a_spoilt_npz_file_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=PIXELS)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    place = content.index(PIXELS.tobytes()[:20])
    content[place] ^= 255
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(SfumatoError, match=r"a\.npz is not a readable npz file"):
        list(encoded_rows(tmp_path / "a.npz", ImageCodec(Images(height=4, width=5))))
