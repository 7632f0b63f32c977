"""The page on sizing shows what its commands give."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.cli.main import run

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parent.parent.parent / "docs" / "sizing.md").read_text()
TABLE = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and line.count("|") == 5]


def test_its_commands_give_its_figures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds, probes, files and bytes of what is recommended for either table are in its column, on two cores."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    commands = re.findall(r"^stream-wh (advise .*)$", PAGE, flags=re.MULTILINE)
    assert len(commands) == 2
    for number, command in enumerate(commands):
        column = [line[2 + number] for line in TABLE if len(line) == 4]
        assert run([*shlex.split(command), "-o", "json"]) == 0
        recommended = json.loads(capsys.readouterr().out)["recommended"]
        seconds = [shown(recommended["update_seconds"][name], 3) for name in ("value", "low", "high")]
        assert f"{seconds[0]} ({seconds[1]} to {seconds[2]})" in column
        assert shown(recommended["files"], 2) in column
        assert f"{shown(recommended['probe_seconds']['value'] * 1000, 2)} ms" in column
        scale, unit = (1e12, "TB") if recommended["disk_bytes"] > 1e12 else (1e9, "GB")
        assert f"{shown(recommended['disk_bytes'] / scale, 3)} {unit}" in column


def shown(value: float, digits: int) -> str:
    """Return a number with ``digits`` significant digits.

    >>> shown(2337.8, 3), shown(5.04, 2), shown(22.66, 3)
    ('2,340', '5', '22.7')
    """
    return f"{float(f'{value:.{digits}g}'):,}".removesuffix(".0")
