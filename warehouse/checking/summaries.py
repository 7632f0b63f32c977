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
            if file.table.role == "rows" and summary_path(path).is_file() and (wrong := _wrong(path, file)):
                subject = summary_path(path).relative_to(root).as_posix()
                yield fault("summary", subject, wrong, _REMEDY, table=file.table.name, repair="repair")


def _wrong(path: Path, file: NamedFile) -> str | None:
    """Return the fault of a file's summary, or None."""
    found, kept = read_summary(str(path), file.rows), read_filter(str(path), file.rows)
    if not is_readable(path, filtered=kept is not None, counted=found is not None):
        return "it cannot be read, or is of another number of rows"
    counted = count_keys(path, file.state.declaration.search_key)
    if counted is None:
        return "its file has no keys of which there are summaries"
    hashes = [hash_of(key) for key in counted.counts] if kept is not None else []
    absent = sum(not holds(kept or b"", hashed, bits_of(hashed)) for hashed in hashes)
    if absent:
        return f"its filter lacks {absent} of the file's {len(hashes)} keys"
    if found is None:
        return None
    different = sum(counted.counts.get(key) != count for key, count in found.counts.items())
    if different:
        return f"{different} of its {len(found.counts)} keys have other numbers of rows in the file"
    return None
