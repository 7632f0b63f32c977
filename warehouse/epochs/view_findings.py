"""Records views that differ from their queries, next to the epochs, until each one is repaired.

A verification that finds a difference writes ``findings/VIEW.json``. It is removed once the view was rebuilt and is equal, or a
later verification finds it equal. It has no rows of the view: rows that are erased from the tables must not stay in a finding.
``findings/.verified.json`` says when all views were verified last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.epochs.journal import encode_record, read_record
from warehouse.errors import RecordDamagedError
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.epochs.records import Epoch

__all__ = ["ViewFinding", "finding_files", "forget_finding", "last_verified", "note_verified", "open_findings", "record_finding"]

_ENDING = ".json"
_VERIFIED = ".verified.json"


@dataclass(frozen=True)
class ViewFinding:
    """A view that differed from its query at an epoch; ``found_at`` is the clock's microseconds."""

    view: str
    epoch: int
    found_at: int
    summary: str

    @property
    def message(self) -> str:
        """The finding in words, with the command that repairs the view."""
        return (
            f'view "{self.view}" differed from its query at epoch {self.epoch}: {self.summary}; '
            f"`stream-wh rebuild {self.view}` rebuilds it and compares it"
        )


@dataclass(frozen=True)
class _Verified:
    at: int


def record_finding(root: Path, finding: ViewFinding) -> None:
    """Record a finding durably; it replaces an older finding of the same view."""
    (root / "findings").mkdir(parents=True, exist_ok=True)
    path = root / "findings" / f"{finding.view}{_ENDING}"
    store_of(root).write_replacing(path, encode_record(finding))


def forget_finding(root: Path, view: str) -> None:
    """Delete the finding of a view: it equals its query now."""
    (root / "findings" / f"{view}{_ENDING}").unlink(missing_ok=True)


def open_findings(root: Path, epoch: Epoch | None) -> tuple[ViewFinding, ...]:
    """Return the findings of the views of an epoch, by name. A damaged record counts as a finding."""
    if epoch is None or not (root / "findings").is_dir():
        return ()
    views = {state.name for state in epoch.tables if state.kind == "view"}
    findings = []
    for name in sorted(store_of(root / "findings").entry_names(root / "findings")):
        view = name.removesuffix(_ENDING)
        if name.startswith(".") or not name.endswith(_ENDING) or view not in views:
            continue
        try:
            findings.append(read_record(root / "findings" / name, ViewFinding))
        except FileNotFoundError:
            continue  # repaired just now
        except RecordDamagedError:
            findings.append(ViewFinding(view, epoch.number, 0, "what was found cannot be read any more"))
    return tuple(findings)


def finding_files(root: Path, epoch: Epoch) -> Iterator[Path]:
    """Yield the files of the findings of an epoch's views, and of the last verification: a backup copies them."""
    yield from (root / "findings" / f"{finding.view}{_ENDING}" for finding in open_findings(root, epoch))
    if last_verified(root) is not None:
        yield root / "findings" / _VERIFIED


def note_verified(root: Path, at: int) -> None:
    """Note that all views were verified at that instant in microseconds."""
    (root / "findings").mkdir(parents=True, exist_ok=True)
    store_of(root).write_replacing(root / "findings" / _VERIFIED, encode_record(_Verified(at)))


def last_verified(root: Path) -> int | None:
    """Return when all views were verified last; None: never, or the record is lost."""
    try:
        return read_record(root / "findings" / _VERIFIED, _Verified).at
    except (FileNotFoundError, RecordDamagedError):
        return None
