"""The page of benchmarks says what the results say, and shows what there is to see."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BENCHMARKS, DOCS = ROOT / "benchmarks", ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
DRAWN = {"locally_linear_curves"}  # shown as a picture
MAKE = """
import json, sys
import harness
seen, read = [], harness.read
harness.read = lambda name: seen.append(name) or read(name)
import page
print(json.dumps({"page": page.page(), "readme": page.readme(), "seen": seen,
                  "sources": sum(harness.SOURCES.values(), []), "torch": "torch" in sys.modules}))
"""


@pytest.fixture(scope="module")
def made():
    paths = os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])
    environment = {k: v for k, v in os.environ.items() if k != "SFUMATO_DATA"}
    told = subprocess.run(
        [sys.executable, "-c", MAKE],
        env=environment | {"PYTHONPATH": paths}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(told.stdout)


def unmarked(text):
    """Leave out which rows are old: git says so, where there is one, and it changes by itself."""
    return re.sub(r"[ †‡]+", " ", text)


def test_page_and_readme_are_what_make_page_writes(made):
    assert unmarked(made["page"]) == unmarked((DOCS / "benchmarks.md").read_text("utf-8"))
    assert unmarked(made["readme"]) == unmarked((ROOT / "README.md").read_text("utf-8"))


def test_page_needs_neither_torch_nor_data(made):
    assert not made["torch"]  # and the data were out of reach


def test_every_result_is_on_the_page(made):
    there = {path.stem for path in (BENCHMARKS / "results").glob("*.json")}
    assert there - DRAWN == there & set(made["seen"])


def test_what_methods_rest_on_is_there(made):
    assert [path for path in made["sources"] if not (ROOT / path).exists()] == []


def test_links_lead_somewhere_and_every_picture_is_shown():
    linked, broken = set(), []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
            path, _, anchor = link.partition("#")
            if "://" in path:
                continue
            target = (page.parent / path).resolve() if path else page
            linked.add(target)
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.name}: {link}")
    assert broken == []
    assert set((DOCS / "images").iterdir()) <= linked


def anchors(page):
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_pictures_stay_small():
    assert sum(path.stat().st_size for path in (DOCS / "images").iterdir()) < 2e6
