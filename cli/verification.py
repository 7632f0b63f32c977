"""The output of ``check``: a row for each finding, and how much was checked."""
# ruff: noqa: PLC0415 - a command imports what it uses, so that a probe starts fast

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.cli.outcome import Rows
from warehouse.cli.output import Records

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.checking.findings import CheckReport, Finding
    from warehouse.operations.verification import ViewVerdict

__all__ = ["checked"]

FAILED = 4


@dataclass(frozen=True)
class FindingRow:
    """One finding; ``subject`` is relative to the root, ``repaired_by`` empty where a person must act."""

    severity: str
    code: str
    table: str | None
    subject: str
    message: str
    remedy: str
    repaired_by: str | None


def checked(directory: Path, *, rows: bool, repair: bool) -> Rows:
    """Verify a warehouse; with ``repair``, repair it first."""
    from warehouse.cli.library import opened_to_work
    from warehouse.project import Warehouse

    warehouse = Warehouse.open(directory, compared=False)
    done: tuple[str, ...] = ()
    if repair:
        done = opened_to_work(directory, compared=False).repair() or ("nothing to repair",)
    return _shown(warehouse.check(rows=rows), done)


def checked_views(directory: Path, epoch: int | None) -> Rows:
    """Compare every view with its query."""
    from warehouse.cli.library import opened_to_work

    verdicts = opened_to_work(directory, compared=False).check_views(epoch=epoch)
    differing = [each for each in verdicts if each.outcome == "differs"]
    rows = [
        _view_row("fault", each, "; ".join((each.reason, *each.rows)), f"run `stream-wh rebuild {each.view}`")
        for each in differing
    ]
    rows += [_view_row("note", each, each.reason, _REMEDIES[each.outcome]) for each in verdicts if each.outcome in _REMEDIES]
    same = sum(each.outcome == "same" for each in verdicts)
    others = len(rows) - len(differing)
    counted = f"{len(verdicts)} views at epoch {verdicts[0].epoch}" if verdicts else "no views"
    notes = (f"{same} equal to their queries, {len(differing)} different, {others} not compared, of {counted}",)
    return Rows(Records.of(FindingRow, rows), notes=notes, exit_code=FAILED if differing else 0)


def _view_row(severity: str, verdict: ViewVerdict, message: str, remedy: str) -> FindingRow:
    code = f"view_{verdict.outcome.replace(' ', '_')}"
    return FindingRow(severity, code, verdict.view, verdict.view, message, remedy, None)


_REMEDIES = {
    "not verifiable": "nothing to do: its answer depends on more than the live rows",
    "not comparable": "order by enough columns, or correct the query",
    "stands still": "correct what failed; the next update rebuilds it",
}


def _shown(report: CheckReport, done: tuple[str, ...]) -> Rows:
    looked = f"{report.epochs} epochs, {report.tables} tables, {report.files} files"
    read = f", {report.rows} rows read" if report.rows else ", no rows read"
    result = f"{len(report.faults)} faults, {len(report.findings) - len(report.faults)} notes"
    records = Records.of(FindingRow, [_row(finding) for finding in report.findings])
    return Rows(records, notes=(*done, f"{result} in {looked}{read}"), exit_code=FAILED if report.faults else 0)


def _row(finding: Finding) -> FindingRow:
    return FindingRow(
        finding.severity,
        finding.code,
        finding.table,
        finding.subject,
        finding.message,
        finding.remedy,
        {"update": "update", "repair": "check --repair"}.get(finding.repair),
    )


def measured(directory: Path, output_file: Path | None) -> int:
    """Write the metrics; into a file by a rename, so that a collector sees the former text or the new one."""
    from warehouse.cli.output.sink import opened
    from warehouse.project import Warehouse

    text = Warehouse.open(directory).metrics()
    with opened(output_file) as sink:
        sink.write(text)
    return 0
