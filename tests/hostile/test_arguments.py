"""Arguments that are no text: the command says so, in words and as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent.parent
BYTES = b"\xff\x1b[31m"


def run(directory: Path, arguments: Sequence[bytes | str]) -> subprocess.CompletedProcess[bytes]:
    """Run the command."""
    command = [os.fsencode(part) for part in (sys.executable, "-m", "warehouse.cli", "-C", str(directory), *arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("sql", BYTES),
        ("scan", BYTES),
        ("scan", "a", "--where", b"k = '" + BYTES + b"'"),
        ("probe", "a", BYTES),
        ("probe", BYTES, "x"),
        ("probe", "a", "--key", b"k=" + BYTES),
        ("sql", "SELECT '\x1b]0;x\x07' FROM nope"),
    ],
    ids=range(7),
)
def test_bytes_that_are_no_text(tmp_path: Path, arguments: tuple[bytes | str, ...]) -> None:
    """The exit code is 2, and the message is one line without control characters, or one JSON object."""
    project = Project(tmp_path / "project", None)
    project.update(1)
    ended = run(project.directory, arguments)
    assert ended.returncode == 2, ended.stderr
    assert b"\x1b" not in ended.stderr
    assert b"Traceback" not in ended.stderr
    failure = json.loads(run(project.directory, (*arguments, "-o", "json")).stderr.decode(errors="replace"))
    assert failure["exit_code"] == 2
