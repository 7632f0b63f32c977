"""``validate``: the configuration, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.cli import reading
from warehouse.cli.options import command, project, report_command

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Report

__all__ = ["validate"]


@command("validate", "Check warehouse.toml, without Spark.", "stream-wh validate")
@report_command
@project
def validate(directory: Path) -> Report:
    """Check warehouse.toml without starting Spark; every fault at once, exit code 2 if there is one."""
    return reading.validate(directory)
