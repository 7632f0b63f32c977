"""The effect of a changed key of ``warehouse.toml`` on the tables on disk: none, on later rows, or a migration.

The file's keys are recorded with each epoch (:func:`declared_keys`), so that changes can be reported key by key.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from warehouse.catalog.drift import DeclarationDifference, differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.catalog.drift import RecordedEpoch
    from warehouse.catalog.model import Catalog

__all__ = ["Verdict", "VerdictWord", "declared_keys", "verdicts"]

VerdictWord = Literal["free", "from now on", "migrate", "rebuild", "refused"]
"""A key changes freely; for rows loaded from then on; by a migration of either way; by writing or building tables again;
not at all."""

_TABLES = ("streams", "relations", "views", "aggregates", "coalesced")
_INNER = ("columns", "health", "layout", "options", "select", "sources")
_MOST_CHARACTERS = 160
_FROM_NOW_ON = (
    "arrival",
    "changed_at",
    "expires",
    "format",
    "max_ahead",
    "max_lifetime",
    "null_expiry",
    "op",
    "options",
    "over_lifetime",
    "partitions",
    "short_lived",
    "sources",
    "timezone",
    "unknown_columns",
)
_PUBLISHED = "the next update makes live/NAME; one that is not published any more stays as it is for `retain`, then it is deleted"
_KEPT = 'the next update removes what is older; of rows found while it was "forever" the age counts from then on'
_VIEW_KEYS = ("layout", "output_window", "search_key", "sql")
_SHEDDING_KEYS = ("budget", "shed")
_SETS_ASIDE = (
    "the next update builds it again over the live rows, since a view that has a budget and reports short-lived results sets "
    "rows aside, and others do not"
)
_COALESCED_KEYS = ("from", "group_by", "of", "rows", "same", "search_key", "values", "window")


@dataclass(frozen=True)
class Verdict:
    """The effect of a changed key: its values as written (None: left out), the verdict, and what to know or do.

    Updates are refused while one ``stops`` them.
    """

    key: str
    before: str | None
    now: str | None
    verdict: VerdictWord
    why: str
    stops: bool = False


def declared_keys(raw: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return every key of a file with its value as it is written; a long value as its beginning and a digest.

    The values of ``[spark]`` may be secrets, so there is one digest of all of them.

    >>> declared_keys({"warehouse": {"retain": "1d"}, "streams": {"a": {"layout": {"grid": [2, 2]}}}})
    (('streams.a.layout.grid', '[2, 2]'), ('warehouse.retain', '"1d"'))
    """
    return tuple(sorted(_flat(raw)))


def _flat(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section, content in raw.items():
        if section == "spark" or not isinstance(content, dict):
            yield section, _digest(json.dumps(content, sort_keys=True, default=str))
            continue
        for name, value in content.items():
            if section not in _TABLES or not isinstance(value, dict):
                yield f"{section}.{name}", _text(value)
                continue
            for key, inner in value.items():
                if key in _INNER and isinstance(inner, dict):
                    yield from ((f"{section}.{name}.{key}.{inner_key}", _text(entry)) for inner_key, entry in inner.items())
                else:
                    yield f"{section}.{name}.{key}", _text(inner)


def _text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}... ({_digest(text)})"


def _digest(text: str) -> str:
    return f"sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def verdicts(catalog: Catalog, epoch: RecordedEpoch, declared: Sequence[tuple[str, str]]) -> tuple[Verdict, ...]:
    """Return the effect of each key that changed since an epoch, in the order of the keys.

    ``declared`` are the keys that the epoch recorded; if it is empty, only changes that tables cannot follow are reported.
    """
    by_key = {difference.dotted_key: difference for difference in differences(catalog, epoch)}
    before, now = dict(declared), dict(catalog.keys)
    changed = [key for key in sorted({*before, *now}) if before and before.get(key) != now.get(key)]
    tables = {_table(key) for key in (*before, *now)}
    added_or_removed = {table for table in tables if table and (_has_no_key(table, before) or _has_no_key(table, now))}
    changes = [_verdict_of_table(table, declared=_has_no_key(table, before)) for table in sorted(added_or_removed) if before]
    rebuilt = {table for table in tables if table and _sets_aside(table, before) != _sets_aside(table, now)}
    for key in changed:
        if (table := _table(key)) not in added_or_removed:
            is_about_reports = table in rebuilt and key in (f"{table}.budget", f"{table}.short_lived")
            verdict = _verdict_of_key(key, before.get(key), now.get(key), by_key.get(key))
            changes.append(replace(verdict, verdict="rebuild", why=_SETS_ASIDE) if is_about_reports else verdict)
    reported = {verdict.key for verdict in changes}
    changes += [
        _verdict_of_key(key, difference.old, now.get(key), difference)
        for key, difference in by_key.items()
        if key not in reported
    ]
    return tuple(sorted(changes, key=lambda verdict: verdict.key))


def _table(key: str) -> str | None:
    parts = key.split(".")
    return ".".join(parts[:2]) if parts[0] in _TABLES else None


def _has_no_key(table: str, keys: Mapping[str, str]) -> bool:
    return not any(key.startswith(f"{table}.") for key in keys)


def _sets_aside(table: str, keys: Mapping[str, str]) -> bool:
    """Whether a view sets aside rows that end while they are owed: it has a budget, and reports short-lived results."""
    return f"{table}.budget" in keys and keys.get(f"{table}.short_lived") == '"report"'


def _verdict_of_table(table: str, *, declared: bool) -> Verdict:
    name = table.partition(".")[2]
    if declared:
        return Verdict(table, None, "declared", "free", "the next update creates it")
    return Verdict(table, "declared", None, "free", f"it is kept, frozen, until `stream-wh drop {name}` forgets it")


def _verdict_of_key(key: str, before: str | None, now: str | None, difference: DeclarationDifference | None) -> Verdict:
    if difference is not None:
        return Verdict(key, difference.old, now, _verdict_word(difference), _remedy(difference), stops=True)
    section, _, rest = key.partition(".")
    if key == "warehouse.target_file_size":
        return Verdict(key, before, now, "from now on", "it is for files written from now on; those that are there stay")
    if key in ("warehouse.publish", "warehouse.keep"):
        return Verdict(key, before, now, "free", _PUBLISHED if key.endswith("publish") else _KEPT)
    if section not in _TABLES:
        return Verdict(key, before, now, "free", "it is in force at once")
    name, _, table_key = rest.partition(".")
    outer, _, inner = table_key.partition(".")
    if table_key in ("publish", "keep"):
        return Verdict(key, before, now, "free", _PUBLISHED if table_key == "publish" else _KEPT)
    if section == "views" and outer in (*_VIEW_KEYS, "budget"):
        return Verdict(key, before, now, *_verdict_of_view_key(name, outer))
    if section == "coalesced" and outer in (*_COALESCED_KEYS, *_SHEDDING_KEYS):
        return Verdict(key, before, now, *_verdict_of_coalesced_key(name, outer))
    if outer == "columns":
        if before is None:
            return Verdict(key, before, now, "from now on", "the next update adds it; rows loaded before have null")
        if _is_read_differently(inner, before, now):
            return Verdict(key, before, now, "from now on", _applies_to_later_rows(name))
        return Verdict(key, before, now, "free", "it means the same")
    if outer == "layout":
        why = "the table keeps the value that it has" if now is None else "the table is as it says"
        return Verdict(key, before, now, "free", "it is in force with the next update" if inner == "seal" else why)
    if outer == "max_lifetime":
        why = f"it judges rows to come; p stays until a migration of {name} takes it over"
        return Verdict(key, before, now, "from now on", why)
    if outer in _FROM_NOW_ON:
        why = "it is for results that come" if section == "views" else _applies_to_later_rows(name)
        return Verdict(key, before, now, "from now on", why)
    return Verdict(key, before, now, "free", "it is in force at once" if outer != "search_key" else "it means the same")


def _applies_to_later_rows(name: str) -> str:
    return f"it is for rows loaded from now on; `stream-wh restate {name}` applies it to others"


def _verdict_of_view_key(name: str, outer: str) -> tuple[VerdictWord, str]:
    if outer == "budget":
        return "free", f"the next update of {name} goes by it; without a budget it builds {name} again if results are owed"
    return "rebuild", f"the next update builds {name} again over the live rows, unless it means the same"


def _verdict_of_coalesced_key(name: str, outer: str) -> tuple[VerdictWord, str]:
    if outer in _SHEDDING_KEYS:
        return "from now on", "the next update sheds by it; without a budget it brings all members back, which the ledger has"
    why = (
        f"the next update builds {name} again of landing files that are still there, else of the rows that its stream and "
        "archive hold, unless it means the same or its window is shorter now"
    )
    return "rebuild", why


def _is_read_differently(name: str, before: str, now: str | None) -> bool:
    """Whether a declared column has another source than before, or is read in another way."""

    def reading(text: str | None) -> object:
        try:
            written = json.loads(text or "null")
        except ValueError:
            return text  # the beginning of a long one, and its digest
        if not isinstance(written, dict):
            return {}
        listed = written.get("format")
        settings = {**written, "format": [listed]} if isinstance(listed, str) else written
        return {key: value for key, value in settings.items() if key != "type" and (key, value) != ("from", name)}

    return reading(before) != reading(now)


def _verdict_word(difference: DeclarationDifference) -> VerdictWord:
    if difference.command is None:
        return "refused"
    return "migrate" if difference.kind in ("layout", "how") else "rebuild"


def _remedy(difference: DeclarationDifference) -> str:
    if difference.command is None:
        return difference.remedy
    ways = ", --rebuild or --side-by-side" if difference.kind == "layout" else ""
    return f"`{difference.command}`{ways}"
