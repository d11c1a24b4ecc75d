"""What the benchmark scripts share: where results go, and what machine they came from."""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def write_result(name: str, result: dict[str, Any]) -> None:
    """Keep a result beside the scripts, with what is needed to read its timings."""
    RESULTS.mkdir(exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result | {"machine": machine}, indent=1) + "\n")
    print(f"wrote {path}")


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
