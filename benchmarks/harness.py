"""What the benchmark scripts share: their sections of the page, and where results go."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SHOWN = ROOT / "docs" / "images"
CACHE = Path.home() / ".cache" / "sfumato" / "benchmarks"

# What a method's figures rest on: a result is old once any of it has changed.
SOURCES = {
    "pairs": ["src/sfumato/methods/pairs"],
    "moments": ["src/sfumato/methods/moments"],
    "dre": ["src/sfumato/methods/dre", "src/sfumato/public"],
    "mge": ["src/sfumato/papers/mge", "src/sfumato/public"],
    "mepf": ["src/sfumato/papers/embedding", "src/sfumato/public"],
    "merf": ["src/sfumato/papers/embedding"],
    "hp": ["src/sfumato/papers/embedding"],
    "gan": ["src/sfumato/papers/gan"],
    "classify": ["src/sfumato/classify"],
    "rows": ["src/sfumato/data"],
    "noise": ["src/sfumato/privacy/noise.py", "src/sfumato/statistics/algebra.py"],
    "accounting": ["src/sfumato/privacy/gaussian.py", "src/sfumato/privacy/zcdp.py"],
    "evaluation": ["src/sfumato/evaluation"],
}
UNKNOWN, OLD = "†", "‡"
MARKS = f"""\
{UNKNOWN}: measured before results carried their commit, or at one that the history does not have.
{OLD}: the method's sources have changed since. A mark at the head of a table is of all its rows."""


@dataclass(frozen=True)
class Section:
    """What a script tells on the page; `body` turns its results into tables."""

    title: str
    run: str
    """The script and its arguments."""
    text: str
    """What was measured, how, and what to mind."""
    body: Callable[[], str]
    glance: Callable[[], list[list[str]]] = list
    """Its rows of the table that the page begins with: what, epsilon, ours, beside it, how."""


def stamp() -> dict[str, Any]:
    """Say when something was measured, and with what."""
    dirty = "-dirty" if _git("diff", "--quiet", "HEAD", "--", "src", "*.py")[0] else ""
    commit = _git("rev-parse", "--short", "HEAD")[1] + dirty
    now = f"{datetime.now(UTC):%Y-%m-%d}"
    return {"measured": {"commit": commit, "version": version("sfumato"), "date": now}}


def _git(*words: str) -> tuple[int, str]:
    try:
        told = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:  # no git, no commit
        return 128, ""
    return told.returncode, told.stdout.strip()


def write_result(name: str, result: dict[str, Any], collected: bool = False) -> None:
    """Keep a result beside the scripts, with where it comes from and what its timings need.

    What is collected over time has a stamp for each run instead.
    """
    RESULTS.mkdir(exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    path = RESULTS / f"{name}.json"
    about = {"machine": machine} | ({} if collected else stamp())
    path.write_text(json.dumps(result | about, indent=1) + "\n")
    print(f"wrote {path}")


def add_run(name: str, key: str, run: dict[str, Any]) -> None:
    """Add a run to a result that collects them, of which others may have been written meanwhile."""
    found = read(name) or {}
    write_result(name, found | {"runs": runs_of(name) | {key: run | stamp()}}, collected=True)


def result(name: str) -> dict[str, Any]:
    """Give a result that must be there."""
    found = read(name)
    if found is None:
        raise FileNotFoundError(f"{name} was not measured")
    return found


def runs_of(name: str) -> dict[str, dict[str, Any]]:
    """Give the runs that a result has collected."""
    return (read(name) or {}).get("runs", {})


def read(name: str) -> dict[str, Any] | None:
    """Give a result, if it is there."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def mark(method: str, *found: dict[str, Any]) -> str:
    """Mark what is measured before a method's last change, or nobody knows when."""
    commits = {_commit(each).removesuffix("-dirty") for each in found}
    if "" in commits:
        return f" {UNKNOWN}"
    changed = {_git("diff", "--quiet", each, "--", *SOURCES[method])[0] for each in commits}
    if changed <= {0, 1}:
        return f" {OLD}" if 1 in changed else ""
    return f" {UNKNOWN}"  # of another history


def _commit(found: dict[str, Any]) -> str:
    of_peer = found.get("settings") or {}  # an adapter says which commit it ran
    return found.get("measured", of_peer).get("commit") or ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Put rows under heads, without empty columns; a mark that all rows bear goes to the head."""
    rows = [list(row) for row in rows]
    filled = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    heads, *lines = [[row[place] for place in filled] for row in [heads, *rows]]
    for each in (UNKNOWN, OLD):
        if lines and all(line[0].endswith(each) for line in lines):
            heads[0] = f"{heads[0]} {each}".strip()
            for line in lines:
                line[0] = line[0].removesuffix(each).strip()
    return "".join(
        "| " + " | ".join(line) + " |\n" for line in [heads, ["---"] * len(heads), *lines]
    )


def digits(found: dict[str, Any], *keys: str, of: int = 4) -> list[str]:
    """Give figures as cells, empty where there are none."""
    return [f"{found[key]:.{of}f}" if key in found else "" for key in keys]


def percent(*scores: float) -> str:
    """Give the mean of scores in per cent."""
    return f"{100 * sum(scores) / len(scores):.1f}"


def mean_of(runs: Sequence[dict[str, Any]], *keys: str) -> float:
    """Give the mean over runs of a figure, which may lie deeper."""
    found = []
    for run in runs:
        value: Any = run
        for key in keys:
            value = value[key]
        found.append(float(value))
    return sum(found) / len(found)


def picture(name: str) -> Path:
    """Say where a picture goes: to the docs if they show it, else to the user's cache."""
    if (SHOWN / name).exists():
        return SHOWN / name
    CACHE.mkdir(parents=True, exist_ok=True)
    return CACHE / name


def shown(title: str, name: str) -> str:
    """Show a picture of the docs."""
    return f"![{title}](images/{name})"


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Measure wall time: ``with timed() as t: …; t["seconds"]``."""
    taken: dict[str, float] = {}
    start = time.perf_counter()
    yield taken
    taken["seconds"] = time.perf_counter() - start


def peak_memory() -> float:
    """Give the largest memory that this process has used so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
