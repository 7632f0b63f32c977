"""The output of ``plan --sample``: counts of waiting rows by fate and reason, and some rows with their times."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from warehouse.cli.outcome import Report
from warehouse.time import NEVER, format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.planning.first_run import Sample

__all__ = ["samples_report"]

_FATES = {"live": "live", "deferred": "waiting", "dead": "dead"}
_UNTYPED = frozenset({"malformed", "mistyped", "expr_failed", "unknown_columns"})
_SHOWN = 3
"""Rows of each fate that are shown."""


def samples_report(samples: Sequence[Sample]) -> Report:
    """Return the report on what an update would do with the sampled rows."""
    records = [_record(sample) for sample in samples]
    lines = [line for record in records for line in _lines(record)]
    return Report({"samples": records}, (*lines, "nothing was written"), data=True)


def _record(sample: Sample) -> dict[str, Any]:
    fates = Counter(_FATES.get(row.fate, "rejected") for row in sample.rows)
    reasons = Counter(row.fate for row in sample.rows if row.fate not in _FATES)
    return {
        "stream": sample.stream,
        "rows": len(sample.rows),
        "typed": sum(row.fate not in _UNTYPED for row in sample.rows),
        **{fate: fates[fate] for fate in (*_FATES.values(), "rejected")},
        "reasons": dict(reasons.most_common()),
        "left_out": [{"file": entry.file.path, "reason": entry.reason, "message": entry.message} for entry in sample.left_out],
        "examples": list(_examples(sample)),
    }


def _examples(sample: Sample) -> Iterator[dict[str, Any]]:
    """Yield the first rows of each fate."""
    shown: Counter[str] = Counter()
    for row in sample.rows:
        shown[row.fate] += 1
        if shown[row.fate] <= _SHOWN:
            yield {
                "key": list(row.key),
                "ts": _instant(row.ts),
                "exp": _instant(row.exp),
                "fate": _FATES.get(row.fate, row.fate),
                "message": row.message,
            }


def _instant(moment: int | None) -> str | None:
    if moment is None:
        return None
    try:
        return "never" if moment == NEVER else format_instant(moment)
    except (ValueError, OverflowError):  # a rejected row may have any time
        return None


def _lines(record: dict[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{record[name]} {name}" for name in ("typed", *_FATES.values(), "rejected"))
    yield f"{record['stream']}: {record['rows']} rows read: {counts}"
    for reason, count in record["reasons"].items():
        yield f"  rejected {count}: {reason}"
    for entry in record["examples"]:
        key = ", ".join("null" if part is None else part for part in entry["key"])
        why = f": {entry['message']}" if entry["message"] else ""
        yield f"  {entry['fate']}: {key}  ts {entry['ts'] or 'none'}  exp {entry['exp'] or 'none'}{why}"
    for entry in record["left_out"]:
        yield f"  left out {entry['file']}: {entry['message']}"
