"""``doctor``: checks that the machine has what the warehouse needs, and says what to do if not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.cli.checks import CHECKS, Check
from warehouse.cli.options import command, project, rows_command
from warehouse.cli.outcome import Rows
from warehouse.cli.output import Records

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["doctor"]

FAILED = 4


@command("doctor", "Check what the warehouse needs.", "stream-wh doctor")
@rows_command
@project
def doctor(directory: Path) -> Rows:
    """Check Python, Java, Spark, DuckDB, the root and the clock; exit code 4 if one is not ok."""
    results = [(name, *_run(check, directory)) for name, check in CHECKS]
    columns = (("check", "VARCHAR"), ("ok", "BOOLEAN"), ("found", "VARCHAR"), ("to_do", "VARCHAR"))
    failed = any(not ok for _, ok, _, _ in results)
    return Rows(Records(columns, tuple(results)), exit_code=FAILED if failed else 0)


def _run(check: Check, directory: Path) -> tuple[bool, str, str | None]:
    try:
        finding = check(directory)
    except Exception as error:  # noqa: BLE001 - a check that breaks has failed
        return False, f"{type(error).__name__}: {error}", "report this fault"
    return finding.to_do is None, finding.found, finding.to_do
