"""Checks ``[coalesced.NAME]`` against the stream whose points it coalesces, and makes its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.expression import expression_faults
from warehouse.catalog.retention import as_duration
from warehouse.catalog.spelling import FaultError, as_written, nearest
from warehouse.catalog.types import AtomicType, Decimal, Field, SqlType, Struct, canonical
from warehouse.coalescing.budgets import CoalescedBudget
from warehouse.coalescing.definition import HOLDS, OWN_COLUMNS, PREVIOUS, CoalescedDefinition

if TYPE_CHECKING:
    from warehouse.catalog.checks import StreamDraft
    from warehouse.catalog.config import CoalescedSection

__all__ = ["CoalescedDraft", "coalesced_of"]

_Faults = Iterator[tuple[str, FaultError]]
_KEYS = "strings, integers, decimals, dates, times or booleans"
_CONDITION_KEYS = ("values", "same", "of")
_NEIGHBOURS = 'a condition over a member and its neighbour before, e.g. "abs(humidity - previous.humidity) <= 0.5"'
_NO_EXPRESSION = "an expression is declared as a column of the stream, with `expr`"


@dataclass(frozen=True)
class CoalescedDraft:
    """A coalesced table during the checks: its valid keys, its faulty keys, and the other declarations.

    ``kinds`` maps every declared name to its kind. ``interval`` is the update interval in microseconds, or None if it has a
    fault.
    """

    section: CoalescedSection
    faulty: frozenset[str]
    streams: Mapping[str, StreamDraft]
    kinds: Mapping[str, str]
    interval: int | None

    @property
    def types(self) -> dict[str, SqlType | None]:
        """The columns of the stream with their types; None for a type with a fault."""
        stream = self.streams.get(self.section.source or "")
        return {} if stream is None else stream.types()

    def column(self, name: str) -> tuple[str, SqlType | None] | FaultError:
        """Return the declared name and the type of a column of the stream; the case of ``name`` does not matter."""
        declared = next((column for column in self.types if column.lower() == name.lower()), None)
        if declared is None:
            allowed = f"a column of {self.section.source} ({', '.join(self.types)}); {_NO_EXPRESSION}"
            return FaultError(f'"{name}"', allowed, nearest(name, self.types))
        return declared, self.types[declared]


def coalesced_of(draft: CoalescedDraft) -> tuple[CoalescedDefinition | None, tuple[tuple[str, FaultError], ...]]:
    """Return the definition of a valid declaration, or all faults of an invalid one with their keys."""
    section = draft.section
    faults = [*_budget(draft), *_required(draft), *_source(draft), *_window(draft)]
    if section.source not in draft.streams or draft.faulty or draft.interval is None:
        return None, tuple(faults)
    groups, faults_found = _columns(draft, "group_by", section.group_by)
    faults += [*faults_found, *_groups(groups)]
    values, faults_found = _compared_columns(draft)
    faults += faults_found
    if faults:
        return None, tuple(faults)
    definition = CoalescedDefinition(
        source=section.source or "",
        group_by=tuple(groups),
        values=tuple(values),
        search_key=(),
        window=section.window,
        rows=section.rows,
        same=None if section.same is None else section.same.strip(),
        of=None if section.of is None else section.of.strip(),
        budget=None
        if (budget := section.budget) is None
        else CoalescedBudget(budget.rows, budget.bytes, budget.keep, budget.accuracy),
        shed=section.shed or "cals",
        ledger=section.budget is not None,
    )
    faults = [*_names(definition), *_search_key(draft, definition), *_erasure(draft)]
    if faults:
        return None, tuple(faults)
    declared = {name.lower(): name for name, _ in definition.columns}
    default = definition.groups or (OWN_COLUMNS[0],)
    key = tuple(declared[name.lower()] for name in section.search_key or default)
    return CoalescedDefinition(**{**definition.__dict__, "search_key": key}), ()


def _budget(draft: CoalescedDraft) -> _Faults:
    """Yield the faults of the budget."""
    section, budget = draft.section, draft.section.budget
    if any(key.startswith("budget.") for key in draft.faulty):
        return
    if budget is None:
        if section.shed is not None and "budget" not in draft.faulty:
            yield "shed", FaultError("`shed` without `budget`", "`budget`, a table such as { rows = 50_000 }, beside it")
        return
    if section.how == "lazy":
        yield "budget", FaultError('`budget` with how = "lazy"', 'how = "eager": a lazy table stores no members to shed')
    try:
        CoalescedBudget(budget.rows, budget.bytes, budget.keep, budget.accuracy)
    except ValueError as error:
        yield "budget", FaultError("such a table", str(error))


def _required(draft: CoalescedDraft) -> _Faults:
    section = draft.section
    if section.source is None and "from" not in draft.faulty:
        yield "from", FaultError("nothing", 'the name of a stream such as "readings" (required)')
    keys = [key for key in _CONDITION_KEYS if getattr(section, key)]
    if len(keys) != 1 and not draft.faulty.intersection(_CONDITION_KEYS):
        allowed = "one of `values` (neighbours with equal values are a row), `same` (a condition over neighbours) and `of` (the "
        found = "nothing" if not keys else " and ".join(f"`{key}`" for key in keys)
        yield keys[1] if keys else "values", FaultError(found, f"{allowed}truth of a condition) (required)")


def _source(draft: CoalescedDraft) -> _Faults:
    name = draft.section.source
    if name is None or name in draft.streams:
        return
    listed = f"a stream ({', '.join(draft.streams) or 'none is declared'})"
    match draft.kinds.get(name):
        case None:
            yield "from", FaultError(f'the unknown name "{name}"', listed, nearest(name, draft.streams))
        case "relation":
            yield "from", FaultError(f'"{name}", a relation: its versions are intervals already', listed)
        case kind:
            yield "from", FaultError(f'"{name}", which is no stream but {"an" if kind == "aggregate" else "a"} {kind}', listed)


def _window(draft: CoalescedDraft) -> _Faults:
    section, interval = draft.section, draft.interval
    if draft.faulty.intersection(("window", "rows")):
        return
    if (section.window is None) == (section.rows is None):
        found = "nothing" if section.window is None else "`window` and `rows`"
        yield "window", FaultError(found, 'one of `window`, a duration such as "1d", and `rows`, a number of points (required)')
    elif section.window is not None and interval is not None and section.window < interval:
        allowed = f"at least update_interval = {as_duration(interval)}: a point is to be seen by one update at least"
        yield "window", FaultError(as_duration(section.window), allowed)


def _columns(
    draft: CoalescedDraft, key: str, names: tuple[str, ...]
) -> tuple[list[tuple[str, str]], list[tuple[str, FaultError]]]:
    """Return the named columns of the stream with their types, and faults; a column must occur once and have no parts."""
    columns: list[tuple[str, str]] = []
    faults: list[tuple[str, FaultError]] = []
    for name in names:
        column = draft.column(name)
        if isinstance(column, FaultError):
            faults.append((key, column))
        elif column[0] in dict(columns):
            faults.append((key, FaultError(f'"{name}" twice', "each column once")))
        elif not isinstance(column[1], (AtomicType, Decimal)):
            kind = "" if column[1] is None else f" of type {canonical(column[1])}"
            faults.append((key, FaultError(f'the column "{name}"{kind}', "columns without parts")))
        else:
            columns.append((column[0], canonical(column[1])))
    return columns, faults


def _groups(groups: list[tuple[str, str]]) -> _Faults:
    for name, kind in groups:
        if kind in ("float", "double", "binary"):
            yield "group_by", FaultError(f'the column "{name}" of type {kind}', f"columns that can be a key: {_KEYS}")


def _compared_columns(draft: CoalescedDraft) -> tuple[list[tuple[str, str]], list[tuple[str, FaultError]]]:
    """Return the columns by which neighbours are compared."""
    section = draft.section
    if section.of is not None:
        faults_found = expression_faults(section.of, draft.types, allows_ts=False, result_type=AtomicType("boolean"))
        return [(HOLDS, "boolean")], [("of", fault) for fault in faults_found]
    if section.same is None:
        return _columns(draft, "values", section.values)
    if PREVIOUS in (name.lower() for name in draft.types):
        found = f'`same` over a stream with a column "{PREVIOUS}"'
        return [], [("same", FaultError(found, f"a column of another name: {PREVIOUS} is the neighbour before"))]
    fields = tuple(Field(name, kind) for name, kind in draft.types.items() if kind is not None)
    scope: dict[str, SqlType | None] = {**draft.types, PREVIOUS: Struct(fields)}
    faults = list(expression_faults(section.same, scope, allows_ts=False, result_type=AtomicType("boolean")))
    if faults:
        return [], [("same", fault) for fault in faults]
    before, now, names_whole_row = _named_columns(section.same)
    if names_whole_row or not before or not now:
        return [], [("same", FaultError(as_written(section.same), _NEIGHBOURS))]
    groups = {name.lower() for name in section.group_by or ()}
    if grouped := [name for name in dict.fromkeys((*now, *before)) if name in groups]:
        found = f'the column "{grouped[0]}" of `group_by` in `same`'
        return [], [("same", FaultError(found, "columns that are not in `group_by`: all points of a group have its value"))]
    return _columns(draft, "same", tuple(dict.fromkeys((*now, *before))))


def _named_columns(text: str) -> tuple[list[str], list[str], bool]:
    """Return the columns of the previous member and of the member itself that a valid condition names, in lower case.

    The third value says whether it names ``previous`` as a whole.
    """
    import sqlglot  # noqa: PLC0415 - it takes time to import, and most warehouses have no coalesced table
    from sqlglot import exp  # noqa: PLC0415 - same

    before, now, names_whole_row = [], [], False
    for column in sqlglot.parse_one(f"SELECT {text}", read="spark").find_all(exp.Column):
        names = [part.name.lower() for part in column.parts]
        if names[0] != PREVIOUS:
            now.append(names[0])
        elif len(names) > 1:
            before.append(names[1])
        else:
            names_whole_row = True
    return before, now, names_whole_row


def _names(definition: CoalescedDefinition) -> _Faults:
    """Yield the faults of the column names."""
    key = "of" if definition.of is not None else "same" if definition.same is not None else "values"
    used_names = dict.fromkeys(OWN_COLUMNS, "every coalesced table has it")
    for declared_key, columns in (("group_by", definition.group_by), (key, definition.shown)):
        for name, _ in columns:
            if name.lower() in used_names:
                found = f'the column "{name}", and {used_names[name.lower()]}'
                remedy = "a column of the stream with another name, e.g. with `expr`"
                yield declared_key, FaultError(found, f"{remedy}; every coalesced table has {', '.join(OWN_COLUMNS)}")
            used_names[name.lower()] = "a group or value has that name"


def _search_key(draft: CoalescedDraft, definition: CoalescedDefinition) -> _Faults:
    key_names = draft.section.search_key
    columns = dict(definition.columns)
    keys = {name: kind for name, kind in columns.items() if kind not in ("float", "double", "binary")}
    for name in key_names or ():
        column = next((candidate for candidate in columns if candidate.lower() == name.lower()), None)
        if column is None:
            allowed = f"columns of the table ({', '.join(keys)})"
            yield "search_key", FaultError(f'the column "{name}"', allowed, nearest(name, keys))
        elif column not in keys:
            yield "search_key", FaultError(f'the column "{name}" of type {columns[column]}', _KEYS)
    if key_names is not None and len({name.lower() for name in key_names}) < len(key_names):
        yield "search_key", FaultError("a column twice", "each column once")


def _erasure(draft: CoalescedDraft) -> _Faults:
    """Yield a fault if the table shows values of rows for longer than their stream lets rows exist."""
    section = draft.section
    stream = draft.streams[section.source or ""]
    bound = stream.section.erase_within
    if bound is not None and (section.window is None or section.window > bound):
        found = "`rows`" if section.window is None else f"a window of {as_duration(section.window)}"
        allowed = f"`window` of at most {as_duration(bound)}: the table shows values of rows"
        yield "window", FaultError(f"{found}, with erase_within = {as_duration(bound)} of {section.source}", allowed)
