"""Updates under the locale that cron and bare containers have."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.operations.projects import Project, csv, row, text

if TYPE_CHECKING:
    from pathlib import Path


def test_paths_and_keys_beyond_ascii_in_the_locale_c(tmp_path: Path) -> None:
    """The JVM finds a project, and landing files, whose names are not ASCII; keys stay as they are."""
    project = Project(tmp_path / "pé", None)
    project.land("é.csv", csv(row("ключ", 0.5, 3)))
    project.land("e\u0301.csv", csv(row("nfd", 0.5, 3)))
    subprocess.run(
        [sys.executable, "-m", "warehouse.cli", "-C", str(project.directory), "update", "--at", text(1)],
        env={**os.environ, "LC_ALL": "C", "LANG": "C", "STREAM_WH_CLASS_ARCHIVE": "read"},
        check=True,
    )
    assert project.keys() == "nfd ключ"
