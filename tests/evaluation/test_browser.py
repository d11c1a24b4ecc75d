"""What a real browser makes of the pages."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evaluation.models import TABLE, fake_model, table
from sfumato.evaluation import evaluate_table
from sfumato.evaluation.report import certificate_html, internal_html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
)  # fmt: skip

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def browse(tmp_path: Path, page: str, *flags: str) -> str:
    """Open a page with a fresh profile and give what the browser prints."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags, file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def shot(tmp_path: Path, page: str, width: int) -> np.ndarray:
    picture = tmp_path / f"{width}.png"
    browse(tmp_path, page, f"--window-size={width},1500", f"--screenshot={picture}")
    return np.asarray(Image.open(picture).convert("RGB")).astype(int)


@cache
def pages() -> tuple[str, str]:
    evaluation = evaluate_table(table(60), table(60, 1), TABLE, "smoker")
    return certificate_html(fake_model(TABLE)), internal_html(evaluation)


def test_the_banners_are_green_and_red(tmp_path: Path) -> None:
    green, red = (shot(tmp_path, page, 1280)[4, 10:60].mean(axis=0) for page in pages())
    assert green[1] > green[0]
    assert red[0] > 2 * red[1]


def test_tables_are_as_wide_as_the_page(tmp_path: Path) -> None:
    measure = (
        "<script>document.title = [...document.querySelectorAll('.scroll')].every("
        "box => box.firstElementChild.offsetWidth"
        " >= document.querySelector('main').clientWidth - 50)</script></body>"
    )
    for page in pages():
        opened = page.replace("Content-Security-Policy", "x").replace("</body>", measure)
        dom = browse(tmp_path, opened, "--window-size=1280,900", "--dump-dom")
        assert "<title>true</title>" in dom


def test_a_phone_needs_no_sideways_scrolling_and_no_category_runs(tmp_path: Path) -> None:
    # The pages carry no script, so the test brings its own and lifts the policy that forbids it.
    measure = (
        "<script>document.title = "
        "document.documentElement.scrollWidth + ' of ' + innerWidth</script></body>"
    )
    for page in pages():
        opened = page.replace("Content-Security-Policy", "x").replace("</body>", measure)
        dom = browse(tmp_path, opened, "--window-size=390,900", "--dump-dom")
        title = dom.split("<title>")[1].split("</title>")[0]
        wide, window = map(int, title.split(" of "))
        assert wide <= window
        assert "&lt;script&gt;alert(1)" in dom
        assert dom.count("<script") == 1
