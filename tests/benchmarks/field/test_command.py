"""The command itself: workers, lines, page and plots in one go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks.field.__main__ import main

if TYPE_CHECKING:
    from pathlib import Path

SIZE = ["--rows", "1000", "--keys", "100", "--periods", "6", "--only", "sqlite"]


def test_one_command_measures_and_renders(tmp_path: Path) -> None:
    """A run leaves its lines, a page and plots, and no file of a contender."""
    pytest.importorskip("matplotlib", reason="the extra bench draws the plots")
    options = [*SIZE, "--updates", "1", "--results", str(tmp_path)]
    result = CliRunner().invoke(main, options, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    done = [line["slot"] for line in map(json.loads, (tmp_path / "field.jsonl").open()) if line["event"] == "done"]
    assert done == [7]
    assert "| SQLite " in (tmp_path / "README.md").read_text()
    assert (tmp_path / "update.png").exists()
    assert not (tmp_path / "work").exists()


def test_results_of_another_job_are_a_usage_error(tmp_path: Path) -> None:
    """The message names what differs, and nothing is written."""
    pytest.importorskip("matplotlib", reason="the command asks for it first")
    (tmp_path / "field.jsonl").write_text(json.dumps({"event": "job", "job": {"rows": 5}, "facts": {}}) + "\n")
    result = CliRunner().invoke(main, [*SIZE, "--results", str(tmp_path)])
    assert result.exit_code == 2
    assert "rows was 5, is 1000" in result.output
    assert list(tmp_path.iterdir()) == [tmp_path / "field.jsonl"]
