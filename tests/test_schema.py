"""The schema reads and writes TOML, and its errors name the place and the fix."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pytest

from sfumato.data.codebook import read_codebook
from sfumato.datasets import patients_schema
from sfumato.errors import SfumatoError
from sfumato.schema import (
    Boolean,
    Categorical,
    Datetime,
    Identifier,
    Images,
    Numeric,
    Schema,
    read_schema,
)

EVERYTHING = Schema(
    columns={
        "id": Identifier(unit=True),
        "age": Numeric(low=0, high=120, integer=True, bins=12),
        "blood sugar [mg/dl]": Numeric(low=-0.5, high=1e3, nullable=True),
        'a "quoted" näme': Categorical(values=("é", "tab\there", "<script>"), other=True),
        "grade": Categorical(values=(1, 2, 3)),
        "seen": Datetime(
            low=datetime(2020, 1, 1, 8, 30), high=datetime(2024, 12, 31), unit="minute"
        ),
        "sick": Boolean(nullable=True),
    }
)


@pytest.mark.parametrize(
    "schema",
    [
        EVERYTHING,
        patients_schema(),
        Schema(images=Images(height=28, width=28, classes=tuple(range(10)))),
        Schema(images=Images(height=8, width=9, channels=3)),
    ],
)
def test_toml_round_trip(schema: Schema) -> None:
    assert Schema.from_toml(schema.to_toml()) == schema


def test_the_documented_form_is_read() -> None:
    schema = Schema.from_toml(
        """
        [columns.age]
        kind = "integer"
        low = 17
        high = 90
        [columns.workclass]
        kind = "categorical"
        values = ["Private", "State-gov"]
        other = true
        [columns.admitted]
        kind = "datetime"
        low = 2020-01-01
        high = 2024-12-31
        unit = "day"
        """
    )
    assert schema.columns["age"] == Numeric(low=17, high=90, integer=True)
    assert schema.columns["admitted"].low == datetime(2020, 1, 1)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[columns.a]\nkind = 'integer'\nhigh = 3", "column 'a': low is missing: fill it in"),
        ("[columns.a]\nkind = 'number'", "column 'a': kind must be one of"),
        ("[columns.a]\nkind = 'numeric'\nlow = 3\nhigh = 1", "column 'a': low .3. must be below"),
        ("[columns.a]\nkind = 'numeric'\nlow = 0\nhigh = inf", "column 'a': low and high must"),
        ("[columns.a]\nkind = 'numeric'\nlow = 0\nhigh = nan", "column 'a': low and high must"),
        ("[columns.a]\nkind = 'integer'\nlow = 0.5\nhigh = 2", "whole numbers"),
        ("[columns.a]\nkind = 'categorical'\nvalues = []", "column 'a': values"),
        ("[columns.a]\nkind = 'categorical'\nvalues = ['x', ' x']", "'x' is listed twice"),
        ("[columns.a]\nkind = 'boolean'\nlow = 1", "column 'a': low is not a setting"),
        ("[columns.a]\nkind = 'numeric'\nlow = '1'\nhigh = 2", "column 'a': low"),
        ("[columns.a]\nkind = 'identifier'", "at least one other column"),
        ("[column.a]\nkind = 'boolean'", "unknown section"),
        ("columns = 3", "expected a table"),
        ("", "either columns"),
        ("[columns.a", "not valid TOML"),
        ("[images]\nheight = 0\nwidth = 3", "height"),
    ],
)
def test_errors_name_the_file_the_column_and_the_fix(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(SfumatoError, match=message) as caught:
        Schema.load(path)
    assert str(path) in str(caught.value)


def test_a_missing_schema_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match="cannot read the schema"):
        Schema.load(tmp_path / "none.toml")


@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_dates_may_be_written_as_texts(tmp_path: Path, kind: str) -> None:
    texts = {"kind": kind, "low": "2020-01-01", "high": "2020-12-31"}
    dates = {"kind": kind, "low": date(2020, 1, 1), "high": datetime(2020, 12, 31)}
    expected = Datetime(low=datetime(2020, 1, 1), high=datetime(2020, 12, 31))
    for columns in ({"d": texts}, {"d": dates}):
        assert read_schema({"columns": columns}).columns["d"] == expected
        assert read_schema(columns).columns["d"] == expected
    (tmp_path / "s.toml").write_text(f'[columns.d]\nkind = "{kind}"\nlow = "2020-01-01"\n')
    with pytest.raises(SfumatoError, match="column 'd': high is missing"):
        Schema.load(tmp_path / "s.toml")
    assert read_codebook(tmp_path / "s.toml").columns["d"]["kind"] == "datetime"
    with pytest.raises(SfumatoError, match=r"low is no date such as 2020-12-31: 'soon'"):
        read_schema({"columns": {"d": texts | {"low": "soon"}}})
    some = read_schema({"d": texts | {"high": "private"}}).columns["d"]
    assert (some.low, some.high) == (datetime(2020, 1, 1), "private")  # type: ignore[union-attr]
