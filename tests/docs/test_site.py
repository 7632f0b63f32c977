"""The site is built where its extra is installed: a broken link or a page that is in no list is an error."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .blocks import PAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

for needed in ("sphinx", "myst_parser", "furo"):
    pytest.importorskip(needed, reason=f"the extra `docs` is not installed ({needed})")


def test_the_site_is_built_and_needs_no_network(tmp_path: Path) -> None:
    """Without a warning; every page is there, and none loads anything from elsewhere."""
    process = subprocess.run(
        [sys.executable, "-m", "docs", str(tmp_path / "site")], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    built = {path.stem for path in (tmp_path / "site").glob("*.html")}
    assert {name.removesuffix(".md") for name in PAGES if name != "README.md"} <= built
    for path in (tmp_path / "site").rglob("*.html"):
        assert not re.findall(r'(?:src="|<link[^>]* href="|@import |url\()\s*"?https?://[^"\s)]+', path.read_text()), path.name
    search = (tmp_path / "site" / "search.html").read_text()
    assert '<script src="searchindex.js"' in search, "a script of the page, which also a page opened as a file may load"
    assert (tmp_path / "site" / "searchindex.js").stat().st_size > 10_000
