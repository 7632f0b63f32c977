"""The findings of a check, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["RESTORE_FILE", "CheckReport", "Finding", "fault", "note"]

Repair = Literal["update", "repair", ""]
RESTORE_FILE = (
    "restore the file from a copy of the warehouse, or go back to an epoch without it (`stream-wh history` lists them, then "
    "`stream-wh rollback --to-epoch EPOCH`)"
)
"""What to do about a damaged or missing data file."""


@dataclass(frozen=True)
class Finding:
    """A fault of the warehouse, or a left-over.

    A ``fault`` breaks an invariant: some answer is, or may become, wrong or impossible. A ``note`` is a leftover that does no
    harm. ``code`` is a stable name, ``subject`` the file, table or record, relative to the root. ``repair`` says who repairs it:
    the next ``update``, ``check --repair``, or only a person who follows ``remedy``.
    """

    severity: Literal["fault", "note"]
    code: str
    table: str | None
    subject: str
    message: str
    remedy: str
    repair: Repair = ""


@dataclass(frozen=True)
class CheckReport:
    """All findings, faults first, and how much was checked; ``rows`` is 0 when no rows were read."""

    findings: tuple[Finding, ...]
    epochs: int = 0
    tables: int = 0
    files: int = 0
    rows: int = 0

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that break an invariant."""
        return tuple(finding for finding in self.findings if finding.severity == "fault")


def fault(code: str, subject: str, message: str, remedy: str, *, table: str | None = None, repair: Repair = "") -> Finding:
    """Return a fault."""
    return Finding("fault", code, table, subject, message, remedy, repair)


def note(code: str, subject: str, message: str, remedy: str, *, table: str | None = None, repair: Repair = "") -> Finding:
    """Return a note."""
    return Finding("note", code, table, subject, message, remedy, repair)
