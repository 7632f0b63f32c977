"""Checks key summaries by counting the keys of each file again.

Invariant: a summary has the number of rows of its file, and each listed key has the given number of rows. If all keys are listed,
no row has another key. The filter holds each key of the file.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from warehouse.checking.findings import Finding, fault
from warehouse.promise.presence import bits_of, hash_of, holds
from warehouse.storage.key_summaries import count_keys, is_readable, read_filter, read_summary, summary_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from warehouse.checking.files import NamedFile

__all__ = ["summary_findings"]

_REMEDY = "`stream-wh check --repair` removes it; no answer needs it"


def summary_findings(root: Path, files: Sequence[NamedFile]) -> Iterator[Finding]:
    """Yield the wrong summaries of readable files."""
    for file in files:
        path = root / file.subject
        with suppress(FileNotFoundError):
            if file.table.role == "rows" and summary_path(path).is_file() and (wrong := _summary_fault(path, file)):
                subject = summary_path(path).relative_to(root).as_posix()
                yield fault("summary", subject, wrong, _REMEDY, table=file.table.name, repair="repair")


def _summary_fault(path: Path, file: NamedFile) -> str | None:
    """Return the fault of a file's summary, or None."""
    summary, key_filter = read_summary(str(path), file.rows), read_filter(str(path), file.rows)
    if not is_readable(path, filtered=key_filter is not None, counted=summary is not None):
        return "it cannot be read, or is of another number of rows"
    counted = count_keys(path, file.state.declaration.search_key)
    if counted is None:
        return "its file has no keys of which there are summaries"
    hashes = [hash_of(key) for key in counted.counts] if key_filter is not None else []
    missing = sum(not holds(key_filter or b"", hashed, bits_of(hashed)) for hashed in hashes)
    if missing:
        return f"its filter lacks {missing} of the file's {len(hashes)} keys"
    if summary is None:
        return None
    wrong_counts = sum(counted.counts.get(key) != count for key, count in summary.counts.items())
    if wrong_counts:
        return f"{wrong_counts} of its {len(summary.counts)} keys have other numbers of rows in the file"
    return None
