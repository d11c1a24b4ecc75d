"""Files of every kind give the same rows, in pieces, again and again."""

from __future__ import annotations

import gzip
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest
from PIL import Image

from sfumato.data.image_codec import ImageCodec
from sfumato.data.rows import encoded_rows
from sfumato.data.table_codec import TableCodec
from sfumato.errors import SfumatoError
from sfumato.schema import Categorical, Identifier, Images, Schema
from support import SCHEMA, people


def codes_of(data: object, schema: Schema = SCHEMA, most: int = 1) -> np.ndarray:
    return np.concatenate([b.codes for b in encoded_rows(data, TableCodec(schema), most)])


def test_csv_gzip_and_parquet_are_the_same_rows(tmp_path: Path) -> None:
    table = people(300)
    pa.csv.write_csv(table, tmp_path / "a.csv")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    expected = codes_of(table)
    for name in ("a.csv", "a.csv.gz", "a.parquet"):
        assert np.array_equal(codes_of(tmp_path / name), expected)


def test_a_source_can_be_read_twice(tmp_path: Path) -> None:
    pa.csv.write_csv(people(50), tmp_path / "a.csv")
    rows = encoded_rows(tmp_path / "a.csv", TableCodec(SCHEMA))
    assert [len(b) for b in rows] == [len(b) for b in rows] == [50]


def test_large_files_come_in_pieces(tmp_path: Path) -> None:
    pa.parquet.write_table(people(150_000), tmp_path / "a.parquet")
    sizes = [len(b) for b in encoded_rows(tmp_path / "a.parquet", TableCodec(SCHEMA))]
    assert len(sizes) > 2
    assert sum(sizes) == 150_000


def test_rows_of_a_unit_beyond_the_limit_are_left_out() -> None:
    schema = Schema(
        columns={"who": Identifier(unit=True), "what": Categorical(values=("a", "b", "c"))}
    )
    table = pa.table({"who": [1, 1, 2, 1, 2], "what": ["a", "b", "c", "c", "a"]})
    one, two = codes_of(table, schema, 1).ravel().tolist(), codes_of(table, schema, 2).tolist()
    assert len(one) == 2
    # Where there are several rows of a unit, they are numbered in a column of their own.
    assert len(two) == 4
    assert Counter(one) == Counter(code for code, ordinal in two if ordinal == 0)
    assert sorted(ordinal for _, ordinal in two) == [0, 0, 1, 1]


def test_a_unit_that_is_left_out_changes_no_row_of_another() -> None:
    schema = Schema(
        columns={"who": Identifier(unit=True), "what": Categorical(values=("a", "b", "c"))}
    )
    rng = np.random.default_rng(0)
    what = np.array(list("abc"))[rng.integers(0, 3, 60)]
    table = pa.table({"who": rng.integers(0, 9, 60), "what": what})
    rows = Counter(map(tuple, codes_of(table, schema, 3).tolist()))
    for unit in range(9):
        fewer = table.filter(pc.not_equal(table["who"], unit))
        left = Counter(map(tuple, codes_of(fewer, schema, 3).tolist()))
        assert not left - rows
        assert 1 <= (rows - left).total() <= 3


@pytest.mark.parametrize(
    "units", [[None, None, 7, 7], [float("nan"), float("nan"), 7.0, 7.0], ["", "NA", " 7", "7 "]]
)
def test_rows_that_name_no_unit_are_left_out_and_names_are_trimmed(units: list[object]) -> None:
    schema = Schema(columns={"who": Identifier(unit=True), "what": Categorical(values=("a", "b"))})
    table = pa.table({"who": units, "what": ["a", "a", "b", "b"]})
    assert codes_of(table, schema, 1).ravel().tolist() == [1]


def test_short_floats_cannot_name_units() -> None:
    schema = Schema(columns={"who": Identifier(unit=True), "what": Categorical(values=("a", "b"))})
    who = pa.array([2.0**24, 2.0**24 + 2], pa.float32())
    with pytest.raises(SfumatoError, match="too large to be told apart"):
        codes_of(pa.table({"who": who, "what": ["a", "b"]}), schema, 1)


def test_a_quote_that_swallows_rows_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        'age,pay,town,sick\n1,2,"Ulm,true\n1,2,Ulm,true\n1,2,"Ulm",true\n'
    )
    with pytest.raises(SfumatoError, match=r"line break|well-formed"):
        codes_of(tmp_path / "a.csv")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quote_in_a_column_that_nobody_asked_for_is_an_error_too(
    tmp_path: Path, end: str
) -> None:
    rows = ["1,2,Ulm,true,x"] * 1000
    rows[9] = '1,2,Ulm,true,"open'
    rows[-1] = '1,2,Ulm,true,"x"'
    content = end.join(["age,pay,town,sick,note", *rows]) + end
    (tmp_path / "a.csv").write_bytes(content.encode())
    with pytest.raises(SfumatoError, match="line break"):
        codes_of(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(content.replace('"open', "open").encode())
    assert len(codes_of(tmp_path / "a.csv")) == 1000


def test_a_damaged_file_is_a_clear_error(tmp_path: Path) -> None:
    pa.csv.write_csv(people(3000), tmp_path / "a.csv")
    zipped = gzip.compress((tmp_path / "a.csv").read_bytes())
    (tmp_path / "a.csv.gz").write_bytes(zipped[: len(zipped) // 2])
    with pytest.raises(SfumatoError, match=r"a\.csv\.gz"):
        codes_of(tmp_path / "a.csv.gz")


def test_labels_of_mixed_types_are_read_one_by_one() -> None:
    codec = ImageCodec(Images(height=4, width=5, classes=(0, 2, "unknown")))
    labels = [2.0] * 5 + ["unknown", np.int64(0)]
    batch = next(iter(encoded_rows((PIXELS, labels), codec)))
    assert batch.codes.ravel().tolist() == [1] * 5 + [2, 0]


PRICES = Schema(columns={"price": Categorical(values=(2.5, 1.25), other=True)})


def test_one_decimal_does_not_change_the_others() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"price": [Decimal("2.5")] * 5 + [Decimal("1.25"), None]})
    assert codes_of(frame, PRICES).ravel().tolist() == [0] * 5 + [1, 2]
    assert codes_of(pa.Table.from_pandas(frame), PRICES).ravel().tolist() == [0] * 5 + [1, 2]


def test_one_fine_value_does_not_change_how_others_are_written() -> None:
    """Arrow gives a column the scale, or the unit of time, of its finest value."""
    zero_one = Schema(columns={"price": Categorical(values=(0, 1), other=True)})
    fine = pa.table({"price": [Decimal(0), Decimal(1), Decimal("0.0000001")]})
    assert codes_of(fine, zero_one).ravel().tolist() == [0, 1, 2]
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)
    for unit in ("s", "ms", "ns"):
        for zone, text in ((None, "2020-01-01 12:00:00"), ("UTC", "2020-01-01 12:00:00Z")):
            schema = Schema(columns={"when": Categorical(values=("never", text))})
            moment = noon if zone else noon.replace(tzinfo=None)
            table = pa.table({"when": pa.array([moment], pa.timestamp(unit, zone))})
            assert codes_of(table, schema).ravel().tolist() == [1]
    with pytest.raises(SfumatoError, match="durations"):
        codes_of(pa.table({"price": pa.array([1], pa.duration("s"))}), zero_one)


def test_large_codes_listed_as_text_are_not_read_from_floats() -> None:
    schema = Schema(columns={"code": Categorical(values=("9007199254740993",), other=True)})
    assert codes_of(pa.table({"code": [2**53 + 1]}), schema).ravel().tolist() == [0]
    with pytest.raises(SfumatoError, match="floating-point numbers cannot tell"):
        codes_of(pa.table({"code": pa.array([2.0**53 + 2, None])}), schema)
    codec = ImageCodec(Images(height=4, width=5, classes=(2**53 + 1, 0)))
    with pytest.raises(SfumatoError, match="floating-point labels cannot tell"):
        list(encoded_rows((PIXELS, np.full(7, 2.0**53)), codec))


@pytest.mark.parametrize("odd", ["cheap", 3, datetime(2020, 1, 1), (1, 2)])
def test_columns_of_mixed_objects_are_refused_with_advice(odd: object) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"price": pandas.Series([2.5] * 5 + [odd], dtype=object)})
    with pytest.raises(SfumatoError, match=r"column 'price' .* astype\(str\)"):
        codes_of(frame, PRICES)


def test_a_null_does_not_merge_large_identifiers() -> None:
    pandas = pytest.importorskip("pandas")
    schema = Schema(columns={"who": Identifier(unit=True), "what": Categorical(values=("a", "b"))})
    ids = [2**53, 2**53 + 1]
    whole = pandas.DataFrame({"who": ids, "what": ["a", "b"]})
    assert codes_of(whole, schema).ravel().tolist() == [0, 1]
    with_null = pandas.DataFrame({"who": [*ids, None], "what": ["a", "b", "b"]})
    with pytest.raises(SfumatoError, match="too large to be told apart"):
        codes_of(with_null, schema)
    assert codes_of(with_null.astype({"who": object}).assign(who=[*map(str, ids), None]), schema)[
        :, 0
    ].tolist() == [0, 1]


def test_listed_numbers_beyond_floating_point_are_not_read_from_floats() -> None:
    schema = Schema(columns={"code": Categorical(values=(2**53, 2**53 + 1))})
    assert codes_of(pa.table({"code": [2**53 + 1, 2**53]}), schema).ravel().tolist() == [1, 0]
    with pytest.raises(SfumatoError, match="column 'code': floating-point numbers cannot tell"):
        codes_of(pa.table({"code": pa.array([2.0**53, None])}), schema)


@pytest.mark.parametrize(
    ("true", "false"),
    [("True", "False"), ("TRUE", "FALSE"), ("yes", "No"), ("T", "f"), ("1", "0"), ("1.0", "0.0")],
)
def test_booleans_are_read_in_their_usual_spellings(tmp_path: Path, true: str, false: str) -> None:
    (tmp_path / "a.csv").write_text(f"sick\n{true}\n{false}\n{true}\n")
    schema = Schema(columns={"sick": SCHEMA.columns["sick"]})
    assert codes_of(tmp_path / "a.csv", schema).ravel().tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "the file is empty"),
        ("a.csv", "age,pay,town\n1,2,x\n", "no column 'sick'"),
        ("a.csv", "age,age\n1,2\n", "two columns of the same name"),
        ("a.csv", "age,pay,town,sick\n1,2,secret\n", "line 2 has 3 fields where the header has 4"),
        ("a.parquet", "nonsense", "not a parquet file"),
        ("a.xlsx", "nonsense", "ends in .csv"),
    ],
)
def test_files_that_cannot_be_read_are_clear_errors(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SfumatoError, match=message) as caught:
        codes_of(tmp_path / name)
    assert "secret" not in str(caught.value)


def test_missing_files_and_strange_objects_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match="there is no file"):
        codes_of(tmp_path / "none.csv")
    with pytest.raises(SfumatoError, match="cannot read a table from a int"):
        codes_of(3)


def test_unsupported_types_name_the_column() -> None:
    table = people(3).set_column(0, "age", pa.array([[1], [2], [3]]))
    with pytest.raises(SfumatoError, match="column 'age': values of type list"):
        codes_of(table)


IMAGES = Images(height=4, width=5, classes=("cat", "dog"))
PIXELS = np.random.default_rng(0).integers(0, 256, (7, 4, 5), dtype=np.uint8)
LABELS = ["cat", "dog", "dog", "cat", "cat", "dog", "cat"]


def write_idx(path: Path, array: np.ndarray) -> None:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    path.write_bytes(head + array.tobytes())


def test_images_of_every_kind_are_the_same_rows(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=PIXELS, y=np.array(LABELS))
    order = sorted(range(7), key=lambda i: (LABELS[i], i))
    for index, (image, label) in enumerate(zip(PIXELS, LABELS, strict=True)):
        (tmp_path / "folder" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "folder" / label / f"{index}.png")
    codec = ImageCodec(IMAGES)
    arrays = next(iter(encoded_rows((PIXELS, LABELS), codec)))
    archive = next(iter(encoded_rows(tmp_path / "a.npz", codec)))
    folder = next(iter(encoded_rows(tmp_path / "folder", codec)))
    assert np.array_equal(arrays.unit, archive.unit)
    assert np.array_equal(arrays.codes, archive.codes)
    assert np.array_equal(arrays.unit[order], folder.unit)
    assert np.array_equal(arrays.codes[order], folder.codes)
    assert np.array_equal(codec.decode(arrays.unit)[..., 0], PIXELS)


@pytest.mark.parametrize("kind", [float, np.float32, bytes, object])
def test_labels_are_recognised_whatever_their_type(kind: type) -> None:
    codec = ImageCodec(Images(height=4, width=5, classes=(0, 1)))
    labels = np.array([1, 0, 1, 1, 0, 0, 1]).astype(kind if kind is not bytes else "S1")
    batch = next(iter(encoded_rows((PIXELS, labels), codec)))
    assert batch.codes.ravel().tolist() == [1, 0, 1, 1, 0, 0, 1]


def test_labels_of_a_wrong_shape_are_refused() -> None:
    codec = ImageCodec(Images(height=4, width=5, classes=(0, 1)))
    with pytest.raises(SfumatoError, match="one for each image"):
        list(encoded_rows((PIXELS, np.ones((7, 1))), codec))


def test_idx_files_find_their_labels(tmp_path: Path) -> None:
    write_idx(tmp_path / "t10k-images-idx3-ubyte", PIXELS)
    write_idx(tmp_path / "t10k-labels-idx1-ubyte", np.array([1, 0, 1, 1, 0, 0, 1], np.uint8))
    codec = ImageCodec(Images(height=4, width=5, classes=(0, 1)))
    batch = next(iter(encoded_rows(tmp_path / "t10k-images-idx3-ubyte", codec)))
    assert batch.codes.ravel().tolist() == [1, 0, 1, 1, 0, 0, 1]


def test_pictures_of_another_size_are_resized_and_unreadable_ones_named(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(tmp_path / "cat" / "a.png")
    codec = ImageCodec(IMAGES)
    assert next(iter(encoded_rows(tmp_path, codec))).unit.shape == (1, 20)
    (tmp_path / "cat" / "b.png").write_text("no picture")
    with pytest.raises(SfumatoError, match=r"cannot read the picture .*b\.png"):
        list(encoded_rows(tmp_path, codec))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": PIXELS.astype(float), "y": LABELS}, "holds float64"),
        ({"x": PIXELS[:, :3], "y": LABELS}, "the schema says"),
        ({"x": PIXELS}, "no label"),
        ({"z": PIXELS}, "no array x"),
    ],
)
def test_wrong_image_arrays_are_clear_errors(
    tmp_path: Path, arrays: dict[str, object], message: str
) -> None:
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(SfumatoError, match=message):
        encoded_rows(tmp_path / "a.npz", ImageCodec(IMAGES))
