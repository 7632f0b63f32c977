"""Copies of the warehouse with a past, one of them with a clock that is not ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.operations.projects import Project


@pytest.fixture
def past(history: Project, tmp_path: Path) -> Project:
    """A copy to break."""
    return history.copy(tmp_path / "project")
