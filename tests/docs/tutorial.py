"""The tutorial, executed once for all tests: its project is the bundled example, updated at 11:00, 12:00 and 18:00."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

from warehouse.epochs.journal import newest_epoch
from warehouse.publishing.database import replace_database_if_needed

from .blocks import blocks_of
from .execute import console, python

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["copied", "tutorial_project"]


def tutorial_project(own: Path, shared: Path) -> Path:
    """Return the tutorial's project, in a directory of this process's own; the processes of one run execute it once."""
    with FileLock(shared.with_name(shared.name + ".lock")):
        if not shared.exists():
            made = shared.with_name(shared.name + ".made")
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            _execute(made)
            made.rename(shared)
        return copied(shared / "flights", own)


def copied(project: Path, own: Path) -> Path:
    """Return a copy of a project, whose database for other tools knows where it is."""
    shutil.copytree(project, own)
    replace_database_if_needed(own / "data", newest_epoch(own / "data"))
    return own


def _execute(directory: Path) -> None:
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "100")
        now = directory
        for block in blocks_of("tutorial.md"):
            if block.language == "console":
                now = console(block, now)
            elif block.language == "python":
                python(block, directory, names)
