"""The check of a warehouse: records, logs, files, rows, and files for other tools, each by the invariants in its module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.checking.files import files_findings, leftover_findings, named_files, schema_findings
from warehouse.checking.findings import CheckReport, Finding
from warehouse.checking.logs import logs_findings, named_tables
from warehouse.checking.published import database_findings, live_findings
from warehouse.checking.records import read_records, records_findings
from warehouse.checking.shed import shed_findings
from warehouse.checking.summaries import summary_findings
from warehouse.epochs.journal import nothing_loaded, numbers
from warehouse.errors import EpochVacuumedError
from warehouse.serving.engine import Resources

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["check"]

_ATTEMPTS = 3


def check(
    root: Path, *, rows: bool = True, resources: Resources | None = None, published: Collection[str] = ()
) -> CheckReport:
    """Verify all readable epochs of a warehouse, without Java, without the lock and without writing.

    Parameters
    ----------
    root
        The warehouse's directory.
    rows
        Whether to read every row; else only sizes and footers of files are checked.
    resources
        The limits of the engine that reads rows.
    published
        The names of the tables that have a live table, a Delta table of exactly their live rows.

    Raises
    ------
    NoEpochError
        When nothing was committed yet.
    EpochVacuumedError
        When updates retire epochs faster than the check reads them.

    """
    for _ in range(_ATTEMPTS):
        numbers_before = set(numbers(root, "epoch"))
        if not numbers_before and not numbers(root, "plan"):
            raise nothing_loaded(root)
        try:
            report = _check_once(root, rows=rows, resources=resources or Resources(), published=published)
        except FileNotFoundError:
            continue  # a directory was removed while it was listed
        if not report.faults or numbers_before <= set(numbers(root, "epoch")):
            return report
        # epochs were retired during the check, and their files with them
    raise EpochVacuumedError("epochs are retired faster than they can be checked; raise `retain`, or check between updates")


def _check_once(root: Path, *, rows: bool, resources: Resources, published: Collection[str]) -> CheckReport:
    from warehouse.checking.rows import RowsCheck  # noqa: PLC0415 - it imports the engine

    records = read_records(root)
    findings: list[Finding] = [*records_findings(root, records), *schema_findings(root, records.epochs)]
    tables = named_tables(records.epochs)
    all_files = []
    rows_check = RowsCheck(root, resources)
    try:
        for table in tables:
            findings += logs_findings(root, records, table)
            files = named_files(table)
            all_files += files
            problems, readable = files_findings(root, files, order=not rows, contents=rows)
            findings += problems
            if rows:
                findings += rows_check.findings(readable)
                findings += summary_findings(root, readable)
    finally:
        rows_check.close()
    if not records.incomplete:
        findings += database_findings(root) if records.open_plan is None else []  # completing the plan replaces it
        if records.open_plan is None:
            findings += live_findings(root, published, rows=rows, resources=resources)
        if rows and records.open_plan is None and not any(finding.severity == "fault" for finding in findings):
            findings += shed_findings(root, resources)  # otherwise rows that cannot be read are already reported
        findings += leftover_findings(root, all_files, tables)
    findings.sort(key=lambda finding: finding.severity != "fault")
    return CheckReport(tuple(findings), len(records.epochs), len(tables), len(all_files), rows_check.rows)
