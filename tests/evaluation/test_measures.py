"""A new measure is one file: whatever it finds reaches figures, headlines, weak points and page."""

from __future__ import annotations

import json

import pytest

from evaluation.models import TABLE, table
from sfumato.evaluation import evaluate_table
from sfumato.evaluation.coded_table import CodedTable
from sfumato.evaluation.measure import Compared, Finding, Headline, Measure
from sfumato.evaluation.report import internal_html


def count(compared: Compared[CodedTable]) -> Finding:
    more = len(compared.synthetic) / len(compared.real)
    return Finding(
        title="Counting rows",
        caption="How many rows there are",
        columns=("Ratio", "Real rows"),
        rows={"synthetic to real": (more, len(compared.real))},
        headlines=(
            Headline(
                name="Row ratio", value=more, worst=0.0, best=1.0, meaning="rows",
                worst_is="none", best_is="as many",
            ),
        ),
        weaknesses=("There are fewer rows.",),
        notes=("Rows were counted.",),
    )  # fmt: skip


def test_a_measure_that_is_named_in_the_list_is_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = Measure("rows", "counting rows", count)
    monkeypatch.setattr("sfumato.evaluation.tables.TABLE_MEASURES", (measure,))
    found = evaluate_table(table(80), table(40, 1), TABLE)
    told = json.loads(found.to_json())
    assert told["findings"]["rows"]["rows"] == {"synthetic to real": [0.5, 80]}
    assert "Row ratio" in [line["name"] for line in told["headlines"]]
    assert "There are fewer rows." in told["weaknesses"]
    assert "Rows were counted." in told["notes"]
    page = internal_html(found)
    for text in (
        "Counting rows",
        "Row ratio",
        "There are fewer rows.",
        "0.500",
        "Rows were counted.",
    ):
        assert text in page
