"""The output of ``check``, a row for each finding and how much was checked, and the output of ``metrics``."""
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

__all__ = ["check", "check_views", "write_metrics"]

FAILED = 4


@dataclass(frozen=True)
class FindingRow:
    """One finding; ``subject`` is relative to the root, ``repaired_by`` is null if a person must act."""

    severity: str
    code: str
    table: str | None
    subject: str
    message: str
    remedy: str
    repaired_by: str | None


def check(directory: Path, *, rows: bool, repair: bool) -> Rows:
    """Verify a warehouse; with ``repair``, repair it first."""
    from warehouse.cli.writing import open_for_work
    from warehouse.project import Warehouse

    warehouse = Warehouse.open(directory, compared=False)
    done: tuple[str, ...] = ()
    if repair:
        done = open_for_work(directory, compared=False).repair() or ("nothing to repair",)
    return _report_rows(warehouse.check(rows=rows), done)


def check_views(directory: Path, epoch: int | None) -> Rows:
    """Compare every view with its query."""
    from warehouse.cli.writing import open_for_work

    verdicts = open_for_work(directory, compared=False).check_views(epoch=epoch)
    differing = [verdict for verdict in verdicts if verdict.outcome == "differs"]
    rows = [
        _view_row("fault", verdict, "; ".join((verdict.reason, *verdict.rows)), f"run `stream-wh rebuild {verdict.view}`")
        for verdict in differing
    ]
    rows += [
        _view_row("note", verdict, verdict.reason, _REMEDIES[verdict.outcome])
        for verdict in verdicts
        if verdict.outcome in _REMEDIES
    ]
    same = sum(verdict.outcome == "same" for verdict in verdicts)
    not_compared = len(rows) - len(differing)
    counted = f"{len(verdicts)} views at epoch {verdicts[0].epoch}" if verdicts else "no views"
    notes = (f"{same} equal to their queries, {len(differing)} different, {not_compared} not compared, of {counted}",)
    return Rows(Records.of(FindingRow, rows), notes=notes, exit_code=FAILED if differing else 0)


def _view_row(severity: str, verdict: ViewVerdict, message: str, remedy: str) -> FindingRow:
    code = f"view_{verdict.outcome.replace(' ', '_')}"
    return FindingRow(severity, code, verdict.view, verdict.view, message, remedy, None)


_REMEDIES = {
    "not verifiable": "nothing to do: its answer depends on more than the live rows",
    "not comparable": "order by enough columns, or correct the query",
    "stands still": "correct what failed; the next update rebuilds it",
}


def _report_rows(report: CheckReport, done: tuple[str, ...]) -> Rows:
    extent = f"{report.epochs} epochs, {report.tables} tables, {report.files} files"
    rows_read = f", {report.rows} rows read" if report.rows else ", no rows read"
    result = f"{len(report.faults)} faults, {len(report.findings) - len(report.faults)} notes"
    records = Records.of(FindingRow, [_row(finding) for finding in report.findings])
    return Rows(records, notes=(*done, f"{result} in {extent}{rows_read}"), exit_code=FAILED if report.faults else 0)


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


def write_metrics(directory: Path, output_file: Path | None) -> int:
    """Write the metrics; a file is renamed when it is complete, so that a collector reads the former text or the new one."""
    from warehouse.cli.output.sink import open_sink
    from warehouse.project import Warehouse

    text = Warehouse.open(directory).metrics()
    with open_sink(output_file) as sink:
        sink.write(text)
    return 0
