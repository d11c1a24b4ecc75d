"""Do the tests notice a bound that is wrong? `mutants.toml` lists places to break, one at a time.

A mutant is killed if the tests that are named for it fail; one that lives is a hole in the tests.
Run by `make mutants`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
PASSED, FAILED = 0, 1  # what pytest ends with
LONGEST = 60  # seconds
LATER = 10**9  # seconds: so that no compiled file can be taken for that of a mutant


@dataclass(frozen=True)
class Mutant:
    """A place in the sources, what is put in place of what, and the tests that must notice."""

    place: str
    what: str
    old: str
    new: str
    tests: Sequence[str]


class Sources:
    """A copy of the sources, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "src", folder, ignore=shutil.ignore_patterns("__pycache__"))

    def tested(
        self, tests: Sequence[str], seconds: int = LONGEST
    ) -> subprocess.CompletedProcess[str]:
        """Run tests on this copy, until one fails."""
        command = [
            sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "-p",
            "no:cacheprovider", "--hypothesis-profile=mutants", "-m", "not slow", *tests,
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds
        )

    def survives(self, mutant: Mutant) -> str:
        """Say what is wrong if the tests do not fail for this mutant; nothing if they do."""
        path = self.folder / "sfumato" / mutant.place
        text, times = path.read_text(), path.stat()
        if text.count(mutant.old) != 1:
            return f"its text stands {text.count(mutant.old)} times in {mutant.place}"
        try:
            path.write_text(text.replace(mutant.old, mutant.new))
            os.utime(path, (times.st_atime, times.st_mtime + LATER))
            run = self.tested(mutant.tests)
        except subprocess.TimeoutExpired:
            return ""  # tests that never end are noticed, too
        finally:
            path.write_text(text)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if run.returncode == FAILED:
            return ""
        if run.returncode == PASSED:
            return "it lives: no test fails"
        return f"the tests did not run (pytest ended with {run.returncode}):\n{run.stdout[-2000:]}"


def read(wanted: Sequence[str]) -> list[Mutant]:
    """Give the mutants, or those whose place or description holds one of the wanted words."""
    listed = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text())["mutant"]
    found = [Mutant(**each) for each in listed]
    return [m for m in found if not wanted or any(w in m.place + m.what for w in wanted)]


def main(wanted: Sequence[str]) -> int:
    """Break each place in turn; give the number of mutants that live."""
    mutants, alive = read(wanted), 0
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        copies = [Sources(Path(folder) / f"src-{number}") for number in range(workers)]
        healthy = copies[0].tested(
            sorted({test for mutant in mutants for test in mutant.tests}), 900
        )
        if healthy.returncode != PASSED:
            print(healthy.stdout[-4000:], "\nthe tests fail without any mutant")
            return 1
        free: SimpleQueue[Sources] = SimpleQueue()
        for copy in copies:
            free.put(copy)

        def judged(mutant: Mutant) -> str:
            copy = free.get()
            try:
                return copy.survives(mutant)
            finally:
                free.put(copy)

        with ThreadPoolExecutor(workers) as pool:
            for mutant, fault in zip(mutants, pool.map(judged, mutants), strict=True):
                alive += bool(fault)
                told = f"ALIVE: {fault}" if fault else "killed"
                print(f"{mutant.place}: {mutant.what}: {told}", flush=True)
    print(f"{len(mutants) - alive} passed, {alive} failed")
    return alive


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:])))
