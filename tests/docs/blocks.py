"""The snippets of README.md and docs/: every fenced block, with the comments above it that say what becomes of it.

``<!-- not run: WHY -->`` stands above a block that cannot run in a test (it installs packages, needs root, a cluster, a site of
one's own); ``<!-- NAME -->`` above one that another test executes by its name. All others run as they stand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "blocks_of"]

ROOT = Path(__file__).parent.parent.parent
PAGES = {path.name: path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (.*?) -->\s*\Z")


@dataclass(frozen=True)
class Block:
    """One fenced block: its page, the line of its fence, its language, its text without indentation, the comment above."""

    page: str
    line: int
    language: str
    text: str
    comment: str = ""

    @property
    def not_run(self) -> str:
        """Why it is not run; empty if it is."""
        return self.comment.removeprefix("not run: ") if self.comment.startswith("not run: ") else ""

    @property
    def directive(self) -> bool:
        """Whether it is no snippet, but something that the site's generator is told."""
        return self.language.startswith("{")

    def __str__(self) -> str:
        """Its place, as an editor understands it."""
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str | None = None) -> list[Block]:
    """Return the blocks of a page in their order."""
    content = PAGES[page].read_text() if text is None else text
    blocks = []
    for match in _FENCE.finditer(content):
        above = _COMMENT.search(content[: match.start()])
        indent = match["indent"]
        lines = [line.removeprefix(indent) for line in match["text"].splitlines(keepends=True)]
        line = content.count("\n", 0, match.start()) + 1
        blocks.append(Block(page, line, match["language"], "".join(lines), above[1] if above else ""))
    return blocks
