"""The recipes of docs/schedulers.md, by their markers."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "schedulers.md"


def recipe(marker: str) -> str:
    """Return the block of code below a marker."""
    block = re.search(rf"<!-- {re.escape(marker)} -->\n```\w+\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block, marker
    return block[1]
