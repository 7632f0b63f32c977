"""The pages of the reference that are made from the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.building.commands import commands_page
from docs.building.errors import errors_page
from docs.building.python import python_page

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PAGES", "written"]

PAGES = {"command-line.md": commands_page, "errors.md": errors_page, "python.md": python_page}


def written(folder: Path) -> None:
    """Write the pages into a folder; those that did not change stay untouched, so that they are not built again."""
    folder.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        path, text = folder / name, make()
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
