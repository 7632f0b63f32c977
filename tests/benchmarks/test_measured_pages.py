"""The measured pages: each says which code was measured, so that its figures can be made again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted(Path(__file__).parents[2].glob("benchmarks/measured/*/*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_a_page_names_the_commit(page: Path) -> None:
    """A run notes it; of older runs it is the newest one at their start."""
    assert re.search(r"\bcommits? [0-9a-f]{7,}\b", page.read_text(encoding="utf-8")), page


def test_there_are_pages() -> None:
    """They are found."""
    assert len(PAGES) > 10
