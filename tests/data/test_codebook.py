"""Code books say what they say, the rest stays open, and an unreadable one is one sentence."""

from __future__ import annotations

import json
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato.data.codebook import Codebook, read_codebook
from sfumato.data.inspection import draft_schema
from sfumato.errors import SfumatoError
from sfumato.schema import Categorical, Numeric, Schema


def book(folder: Path, name: str, content: str | dict[str, Any]) -> Codebook:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return read_codebook(path)


@pytest.mark.parametrize(
    "content",
    [
        "column,kind,low,high,values,nullable\nage,integer,0,120,,no\ntown,categorical,,,Ulm|Jena,yes",
        "Variable;Type;Min;Max;Levels;Nullable;Description\n"
        'age;int;0;120;;0;"in\nyears"\ntown;factor;;;"Ulm;Jena";1;where',
        "\ufeffname,type,minimum,maximum,categories,nullable,unit\n"
        "age,INTEGER,0,120,,FALSE,years\ntown,varchar(20),,,Ulm ; Jena,TRUE,",
    ],
    ids=["as schemas call it", "as statisticians call it", "as databases call it"],
)
def test_a_csv_is_read_whatever_its_columns_are_called(tmp_path: Path, content: str) -> None:
    assert book(tmp_path, "book.csv", content).columns == {
        "age": {"kind": "integer", "low": 0, "high": 120, "nullable": False},
        "town": {"kind": "categorical", "values": ("Ulm", "Jena"), "nullable": True},
    }


def test_values_that_are_all_whole_numbers_are_numbers_and_postcodes_are_not(
    tmp_path: Path,
) -> None:
    columns = book(tmp_path, "b.csv", "name,values\ngrade,1|2|3\nzip,01234|4109\n").columns
    assert columns["grade"]["values"] == (1, 2, 3)
    assert columns["zip"]["values"] == ("01234", "4109")


def test_a_json_schema_is_read(tmp_path: Path) -> None:
    properties = {
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "pay": {"type": ["number", "null"], "exclusiveMinimum": 0},
        "town": {"type": "string", "enum": ["Ulm", None]},
        "born": {"type": "string", "format": "date", "minimum": "1900-01-01"},
        "seen": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "sick": {"type": "boolean"},
        "tags": {"type": "array"},
    }
    found = book(tmp_path, "b.json", {"properties": properties, "required": ["age"]})
    assert found.columns == {
        "age": {"kind": "integer", "low": 0, "high": 120, "nullable": False},
        "pay": {"kind": "numeric", "low": 0, "nullable": True},
        "town": {"kind": "categorical", "values": ("Ulm",), "nullable": True},
        "born": {"kind": "datetime", "low": datetime(1900, 1, 1), "unit": "day"},
        "seen": {"kind": "datetime", "nullable": True},
        "sick": {"kind": "boolean"},
        "tags": {},
    }
    assert "column 'tags': 'array' is no kind" in found.remarks[0]


def test_a_frictionless_package_is_read_with_the_way_its_file_is_written(tmp_path: Path) -> None:
    fields = [
        {"name": "age", "type": "integer", "constraints": {"required": True, "minimum": "0"}},
        {
            "name": "pay",
            "type": "number",
            "decimalChar": ",",
            "groupChar": ".",
            "bareNumber": False,
        },
        {
            "name": "born",
            "type": "date",
            "format": "%d/%m/%Y",
            "constraints": {"minimum": "01/02/1900", "maximum": "2030-12-31"},
        },
        {"name": "town", "type": "string", "constraints": {"enum": ["Ulm", "Jena"]}},
    ]
    schema = {"fields": fields, "missingValues": ["", "-99"]}
    resource = {"schema": schema, "dialect": {"delimiter": ";"}, "encoding": "latin-1"}
    found = book(tmp_path, "datapackage.json", {"resources": [resource]})
    assert found.columns == {
        "age": {"kind": "integer", "low": 0, "nullable": False},
        "pay": {"kind": "numeric", "decimal": ",", "thousands": ".", "nullable": True},
        "born": {
            "kind": "datetime",
            "low": datetime(1900, 2, 1),
            "high": datetime(2030, 12, 31),
            "format": "%d/%m/%Y",
            "unit": "day",
            "nullable": True,
        },
        "town": {"kind": "categorical", "values": ("Ulm", "Jena"), "nullable": True},
    }
    assert found.csv == {"delimiter": ";", "encoding": "latin-1"}
    assert ["pay" in found.remarks[0], "'-99'" in found.remarks[1]] == [True, True]
    assert book(tmp_path, "schema.json", schema).columns == found.columns


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.txt", "", "ends in .csv, .json or .toml"),
        ("b.csv", "", "is empty"),
        ("b.csv", "title,kind\nage,integer", "names no columns"),
        ("b.csv", "name,kind\nage,integer,0", "more cells than its header"),
        ("b.csv", 'name,kind\n"age,integer', "not well-formed"),
        ("b.csv", "name,kind\nage,integer\nage,integer", "'age' twice"),
        ("b.csv", "name,low\nage,few", "column 'age': low: 'few' is neither a number nor a date"),
        ("b.csv", "name,nullable\nage,perhaps", "column 'age': nullable: 'perhaps' is neither yes"),
        ("b.json", "{", "not valid JSON"),
        ("b.json", "[]", "expected an object"),
        ("b.json", "{}", "neither 'properties'"),
        ("b.json", '{"properties": {"age": 3}}', "column 'age': expected an object"),
        ("b.json", '{"resources": []}', "resources: expected an object"),
        ("b.json", '{"resources": [{"schema": "other.json"}]}', "schema: expected an object"),
        ("b.json", '{"fields": [{"type": "integer"}]}', "a field has no name"),
        ("b.json", '{"fields": [{"name": "a", "constraints": {"enum": 3}}]}', "expected a list"),
        ("b.toml", "low = ", "not valid TOML"),
        ("b.toml", "[images]", "[images] is no section"),
    ],
)
def test_an_unreadable_code_book_is_one_sentence(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(SfumatoError) as caught:
        book(tmp_path, name, content)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_code_book_is_named(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match="cannot read the code book"):
        read_codebook(tmp_path / "none.csv")


TABLE = pa.table({"age": [33, 47], "town": ["Secretville", "Hiddenham"], "pay": ["1,5", "2,5"]})


def test_what_the_book_says_is_declared_and_the_rest_stays_open() -> None:
    columns = {"age": {"low": 0}, "town": {"kind": "categorical", "values": ("Ulm", "Jena")}}
    text = draft_schema(TABLE, Codebook("book", columns | {"tall": {}})).to_toml()
    assert tomllib.loads(text)["columns"]["age"] == {"kind": "integer", "low": 0}
    assert "# high = \n" in text
    assert "# book: the data have no column tall\n" in text
    assert not any(value in text for value in ("33", "47", "Secretville", "Hiddenham", "1,5"))


def test_bounds_make_a_number_of_what_looked_like_text() -> None:
    columns = {"pay": {"low": 0, "high": 9, "decimal": ","}}
    draft = draft_schema(TABLE, Codebook(columns=columns))
    assert draft.known("pay") == {"kind": "numeric", "low": 0, "high": 9, "decimal": ","}


def test_a_book_that_contradicts_itself_is_refused() -> None:
    said = {"kind": "integer", "low": 5, "high": 3}
    with pytest.raises(SfumatoError, match=r"book, column 'age': low \(5\) must be below"):
        draft_schema(TABLE, Codebook("book", {"age": said}))
    with pytest.raises(SfumatoError, match="book, column 'age': low"):  # wrong, though unfinished
        draft_schema(TABLE, Codebook("book", {"age": {"kind": "integer", "low": "five"}}))


def test_the_header_tells_how_a_csv_is_written(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes('größe;"Ort, Land"\n1,5;Ulm\n2;Jena, DE\n'.encode("latin-1"))
    tables = tomllib.loads(draft_schema(tmp_path / "t.csv").to_toml())
    assert tables["csv"] == {"delimiter": ";", "encoding": "latin-1"}
    assert list(tables["columns"]) == ["größe", "Ort, Land"]


def test_a_ragged_csv_is_refused_without_quoting_it(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\nsecret,1,2\n")
    with pytest.raises(SfumatoError) as caught:
        draft_schema(tmp_path / "t.csv")
    assert "line 2 has 3 fields" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_finished_draft_is_the_schema() -> None:
    draft = draft_schema(TABLE.select(["age", "town"]))
    draft.declare("age", {"kind": "integer", "low": 0, "high": 120, "nullable": False})
    draft.declare("town", {"kind": "categorical", "values": ("a", 'b"'), "nullable": True})
    for text in (draft.to_toml(), draft.so_far()):
        assert Schema.from_toml(text).columns == {
            "age": Numeric(low=0, high=120, integer=True),
            "town": Categorical(values=("a", 'b"'), nullable=True),
        }
