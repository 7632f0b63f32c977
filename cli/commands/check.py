"""``check``: is the warehouse what its records say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli import verification
from cli.options import command, project, rows_command

if TYPE_CHECKING:
    from pathlib import Path

    from cli.outcome import Rows

__all__ = ["check"]


@command("check", "Verify the warehouse, without Spark.", "stream-wh check", "stream-wh check --quick -o json")
@click.option("--quick", is_flag=True, help="Look at sizes and footers of files instead of reading every row.")
@click.option("--repair", is_flag=True, help="First mend what is safe to mend; this takes the writer lock.")
@rows_command
@project
def check(directory: Path, *, quick: bool, repair: bool) -> Rows:
    """Verify records, tables' logs, files and every row against the warehouse's invariants; nothing is written.

    One row for each finding: a fault breaks an invariant, a note is a harmless left-over. Exit code 4 if there is a
    fault. It needs no lock, so it can run beside an update.

    With --repair an update that was begun is finished (which may start Spark), a damaged record of the newest epoch is
    made again from its plan, lost zero-row files are written again, left-overs are removed; then what is left is shown.
    """
    return verification.checked(directory, rows=not quick, repair=repair)
