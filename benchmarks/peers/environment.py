"""An environment for each script, with just what the script says at its top."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

CACHE = Path(os.environ.get("SFUMATO_PEERS", Path.home() / ".cache" / "sfumato-peers"))
FOLDER = Path(__file__).parent
_BLOCK = re.compile(r"^# /// script\n((?:#.*\n)+?)# ///$", re.MULTILINE)


class InstallError(Exception):
    """The packages of a script cannot be installed here; says what pip said last."""


def needs(script: Path) -> dict:
    """Read the block of PEP 723. In `[tool.peers]`, `here = true` asks for this very environment,
    and `alone` names packages to install without what they depend on.
    """
    found = _BLOCK.search(script.read_text())
    if found is None:
        raise ValueError(f"{script.name} does not say what it needs")
    lines = [line.removeprefix("#").removeprefix(" ") for line in found[1].splitlines()]
    return tomllib.loads("\n".join(lines))


def packages(script: Path) -> list[str]:
    """Name what a script needs, the packages without dependencies first."""
    wanted = needs(script)
    return wanted.get("tool", {}).get("peers", {}).get("alone", []) + wanted["dependencies"]


def interpreter(script: Path) -> Path:
    """Give the Python that has what a script needs; the first time, install it."""
    wanted = needs(script)
    own = wanted.get("tool", {}).get("peers", {})
    if own.get("here"):
        return Path(sys.executable)
    groups = [[], wanted["dependencies"]], [["--no-deps"], own.get("alone", [])]
    name = hashlib.sha256(repr(groups).encode()).hexdigest()[:8]
    folder = CACHE / "environments" / f"{script.stem}-{name}"
    python, done = folder / "bin" / "python", folder / "installed"
    if done.exists():
        return python
    print(f"installing what {script.name} needs, in {folder}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    for options, packages in groups:
        if not packages:
            continue
        said = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *options, *packages],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if said.returncode:
            raise InstallError(last_line(said.stderr))
    done.touch()
    return python


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(ERROR|\w*(Error|Exception)\b)", line)]
    return ((errors or lines or ["nothing was said"])[-1])[:300]
