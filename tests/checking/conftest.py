"""Damaged copies of a warehouse with a past; checking needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.operations.projects import Project


@pytest.fixture
def damaged(history: Project, tmp_path: Path) -> Project:
    """Return a copy to damage; the copy has no Spark."""
    copy = history.copy(tmp_path / "project")
    copy.spark = None
    return copy
