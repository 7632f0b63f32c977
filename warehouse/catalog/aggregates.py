"""Checks ``[aggregates.NAME]`` against the stream that it reads, and makes its definition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from warehouse.aggregates.definition import ITEM_COLUMNS, OWN_COLUMNS, AggregateDefinition, FrequentItems, Value, Window
from warehouse.aggregates.synopses import sum_type
from warehouse.catalog.aggregate_functions import NO_EXPRESSION, parsed_function, sketch_size
from warehouse.catalog.aggregate_groups import GroupColumn, groups_of
from warehouse.catalog.aggregate_windows import longest_length, part_fault, parts_of, windows_of
from warehouse.catalog.expression import expression_faults
from warehouse.catalog.retention import as_duration
from warehouse.catalog.spelling import FaultError, nearest
from warehouse.catalog.types import AtomicType, Decimal, SqlType, canonical, is_key_type, unusable_name
from warehouse.layout.columns import is_reserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.catalog.checks import StreamDraft
    from warehouse.catalog.config import AggregateSection
    from warehouse.catalog.view_facts import ViewFacts

__all__ = ["AggregateDraft", "definition_of"]

_Faults = Iterator[tuple[str, FaultError]]
_FLOATS = ("float", "double")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_LENGTH_FOR_ABOVE = 4
"""A list for `above` has this many times its least length: bounds differ by at most a quarter of the share (frequent-items
sheet, G7)."""
_LENGTH_FOR_TOP = 10
"""A list for `top` has this many entries for each item of the answer."""
_ANOTHER = "another name: every answer has"


@dataclass(frozen=True)
class AggregateDraft:
    """An aggregate during the checks: its valid keys, its faulty keys, and the other declarations.

    ``kinds`` maps every declared name to its kind: stream, relation, view or aggregate. ``interval`` is the update interval in
    microseconds, or None if it has a fault. ``views`` are the views that it may read.
    """

    section: AggregateSection
    faulty: frozenset[str]
    streams: Mapping[str, StreamDraft]
    kinds: Mapping[str, str]
    interval: int | None
    views: Mapping[str, ViewFacts] = field(default_factory=dict)

    @property
    def stream(self) -> StreamDraft | None:
        """The stream that it reads, if there is one."""
        return self.streams.get(self.section.source or "")

    @property
    def view(self) -> ViewFacts | None:
        """The view that it reads, if there is one."""
        return self.views.get(self.section.source or "")

    @property
    def types(self) -> dict[str, SqlType | None]:
        """The columns of its source with their types; None for a type that has a fault or that only Spark knows."""
        if self.view is not None:
            return dict(self.view.types)
        return {} if self.stream is None else self.stream.types()


def definition_of(draft: AggregateDraft) -> tuple[AggregateDefinition | None, tuple[tuple[str, FaultError], ...]]:
    """Return the definition of a valid declaration, or all faults of an invalid one with their keys."""
    faults = [*_required(draft), *_source(draft)]
    if faults or draft.faulty or (draft.stream is None and draft.view is None) or draft.interval is None:
        return None, tuple(faults)
    groups = list(_groups(draft))
    values = list(_values(draft))
    windows, frequent_items = list(windows_of(draft.section, draft.interval)), list(_frequent(draft))
    for rule in (_parts, _where, _names, _keep, _search_key):
        faults += rule(draft)
    faults += _error(draft, [value for value in values if isinstance(value, Value)])
    faults += [item for item in (*groups, *values, *windows, *frequent_items) if isinstance(item, tuple)]
    if faults:
        return None, tuple(faults)
    section = draft.section
    grouped = tuple((group.name, canonical(group.type)) for group in groups if isinstance(group, GroupColumn))
    computed = tuple((group.name, group.expression) for group in groups if isinstance(group, GroupColumn) and group.expression)
    frequent = next((item for item in frequent_items if isinstance(item, FrequentItems)), None)
    key = section.search_key or (("item",) if frequent else tuple(name for name, _ in grouped)) or ("window_end",)
    definition = AggregateDefinition(
        source=section.source or "",
        where=None if section.where is None else section.where.strip(),
        group_by=grouped,
        values=tuple(value for value in values if isinstance(value, Value)),
        windows=tuple(window for window in windows if isinstance(window, Window)),
        keep=section.keep or 0,
        search_key=key,
        frequent=frequent,
        over=section.over,
        computed=computed,
        parts=parts_of(section, draft.view),
        compared=_compared_columns(draft),
    )
    erasure_faults = tuple(_erasure(draft, definition.shows_values))
    return (None if erasure_faults else definition), erasure_faults


def _compared_columns(draft: AggregateDraft) -> tuple[tuple[str, str], ...]:
    """Return the columns of a view that `where` may compare, with their types; without columns of an unknown type."""
    condition = (draft.section.where or "").lower()
    types = {} if draft.view is None else draft.view.types
    return tuple((name, canonical(kind)) for name, kind in types.items() if kind is not None and name.lower() in condition)


def _required(draft: AggregateDraft) -> _Faults:
    section = draft.section
    select = section.select or section.frequent
    required = {"from": section.source, "select": select, "windows": section.windows, "keep": section.keep}
    for key, value in required.items():
        if not value and key not in draft.faulty:
            field = next(candidate for name, candidate in type(section).model_fields.items() if key in (candidate.alias, name))
            yield key, FaultError("nothing", f"{field.description} (required)")


def _source(draft: AggregateDraft) -> _Faults:
    name = draft.section.source
    if name is None or name in draft.streams:
        return
    listed = f"a stream ({', '.join(draft.streams) or 'none is declared'}) or a view"
    if draft.view is not None:
        yield from _view_faults(draft, name, draft.view)
        return
    match draft.kinds.get(name):
        case None:
            yield "from", FaultError(f'the unknown name "{name}"', listed, nearest(name, draft.streams))
        case "relation":
            yield "from", FaultError(f'"{name}", a relation: its versions do not arrive once each', listed)
        case kind:
            article = "an" if kind == "aggregate" else "a"
            yield "from", FaultError(f'"{name}", {article} {kind}', listed)


def _view_faults(draft: AggregateDraft, name: str, view: ViewFacts) -> _Faults:
    """Yield a fault if a view cannot be read, or its arrivals cannot be counted."""
    if view.unreadable is not None:
        found, allowed = view.unreadable
        yield "from", FaultError(f'the view "{name}", {found}', allowed)
    elif view.unreported and draft.section.over != "live":
        found = f'the view "{name}" with short_lived = "drop": which of its results are seen depends on when updates run'
        yield "from", FaultError(found, f'short_lived = "report" in [views.{name}], or over = "live"')


def _column(draft: AggregateDraft, name: str) -> tuple[str, SqlType] | FaultError:
    """Return the declared name and the type of a column of the stream; the case of ``name`` does not matter."""
    types = draft.types
    column = next((candidate for candidate in types if candidate.lower() == name.lower()), None)
    kind = types.get(column or "")
    if column is None or kind is None:
        source = draft.section.source
        if column is not None and draft.view is not None:
            found = f'the column "{column}", whose type is not known before Spark has seen the view'
            return FaultError(found, f"CAST(... AS ...) AS {column} in the SQL of {source}, or another column")
        hint = NO_EXPRESSION if draft.view is None else "an expression is a column of the view"
        return FaultError(f'"{name}"', f"a column of {source} ({', '.join(types)}); {hint}", nearest(name, types))
    return column, kind


def _groups(draft: AggregateDraft) -> Iterator[GroupColumn | tuple[str, FaultError]]:
    for group in groups_of(draft.section.group_by, draft.types, draft.section.source or ""):
        yield ("group_by", group) if isinstance(group, FaultError) else group


def _valid_groups(draft: AggregateDraft) -> dict[str, SqlType]:
    """The valid groups, by name with their types."""
    return {group.name: group.type for group in _groups(draft) if isinstance(group, GroupColumn)}


def _where(draft: AggregateDraft) -> _Faults:
    if draft.section.where is not None:
        for fault in expression_faults(draft.section.where, draft.types, allows_ts=False, result_type=AtomicType("boolean")):
            yield "where", fault


def _names(draft: AggregateDraft) -> _Faults:
    """Yield the faults of the names of values and groups."""
    used_names = {name.lower(): "a group" for name in _valid_groups(draft)}
    own_columns = (*OWN_COLUMNS, *(ITEM_COLUMNS if draft.section.frequent else ()))
    for name in used_names:
        if name in own_columns:
            yield "group_by", FaultError(f'the column "{name}"', f"{_ANOTHER} {', '.join(own_columns)}")
    for name, _ in draft.section.select:
        key, lower = f"select.{name}", name.lower()
        if lower in OWN_COLUMNS:
            yield key, FaultError(f'the name "{name}"', f"{_ANOTHER} {', '.join(OWN_COLUMNS)}")
        elif is_reserved(name):
            yield key, FaultError(f'the reserved name "{name}"', "names other than sub_index, exp_block and _*")
        elif reason := unusable_name(name):
            yield key, FaultError(f'{reason} in the name "{name}"', "letters, digits and underscores")
        elif lower in used_names:
            yield key, FaultError(f'the name "{name}", which {used_names[lower]} has', "names that are unique ignoring case")
        used_names[lower] = "another value"


def _values(draft: AggregateDraft) -> Iterator[Value | tuple[str, FaultError]]:
    for name, text in draft.section.select:
        try:
            yield _value(draft, name, text)
        except FaultError as fault:
            yield f"select.{name}", fault


def _frequent(draft: AggregateDraft) -> Iterator[FrequentItems | tuple[str, FaultError]]:
    """Yield the definition of frequent items, or its faults."""
    section, asked = draft.section, draft.section.frequent
    if asked is None:
        return
    faults: list[tuple[str, FaultError]] = []
    if section.select:
        faults.append(("select", FaultError("values beside `frequent`", "an aggregate of its own for them")))
    column = _column(draft, asked.item) if asked.item else FaultError("nothing", "a column of the stream (required)")
    kind = "" if isinstance(column, FaultError) else canonical(column[1])
    if isinstance(column, FaultError):
        faults.append(("frequent.item", column))
    elif not is_key_type(column[1]):
        allowed = "a column that can be a key: strings, integers, decimals, dates, times or booleans"
        faults.append(("frequent.item", FaultError(f'the column "{asked.item}" of type {kind}', allowed)))
    if (asked.above is None) == (asked.top is None):
        conflict = "neither `above` nor `top`" if asked.above is None else "both `above` and `top`"
        allowed = "one of them: above = 0.01 for a share of the rows, top = 20 for so many items"
        faults.append(("frequent", FaultError(conflict, allowed)))
    min_k = 1 if asked.above is None else math.ceil(1 / Fraction(repr(asked.above)))
    if asked.k is not None and asked.k < (asked.top or min_k):
        reason = "an item that is asked for can be on no list" if asked.top is None else "a list has no place for all of them"
        faults.append(("frequent.k", FaultError(str(asked.k), f"at least {asked.top or min_k}, else {reason}")))
    if asked.k is not None and section.error is not None:
        faults.append(("frequent.k", FaultError(f"{asked.k} beside `error`", "one of them: both say how close bounds are")))
    if asked.exact and (not_stored := _not_stored(draft)):
        faults.append(("frequent.exact", FaultError(not_stored, "`exact` left out: `at_least` and `at_most` say what is known")))
    yield from faults
    if not faults and not isinstance(column, FaultError):
        usual = _LENGTH_FOR_TOP * asked.top if asked.top is not None else _LENGTH_FOR_ABOVE * min_k
        if section.error is not None:
            usual = max(asked.top or min_k, math.ceil(1 / Fraction(repr(section.error))))
        yield FrequentItems(column[0], kind, asked.above, asked.top, asked.k or usual, exact=asked.exact)


def _not_stored(draft: AggregateDraft) -> str | None:
    """Return why rows of a window cannot be counted in the stream's table, or None if all of them are there."""
    stream, section = draft.stream, draft.section
    if draft.view is not None:
        return None if section.over == "live" or draft.view.stays else _rows_are_gone(draft)
    if stream is None or section.over == "live" or stream.section.expires is None:
        return None
    if stream.section.on_expiry == "archive":
        return f"an archive of {section.source} has no rows that were dead on arrival"
    return _rows_are_gone(draft)


def _rows_are_gone(draft: AggregateDraft) -> str:
    return f"rows of {draft.section.source} expire, and its table has them no more"


def _value(draft: AggregateDraft, name: str, text: str) -> Value:
    """Return one value of ``select``.

    Raises
    ------
    FaultError
        When the function is unknown, or it does not accept the column.

    """
    function, argument, share = parsed_function(text)
    if argument is None:
        return Value(name, "rows", "bigint")
    typed_column = _column(draft, argument)
    if isinstance(typed_column, FaultError):
        raise typed_column
    column, kind = typed_column
    type_ = canonical(kind)
    numeric = isinstance(kind, Decimal) or type_ in (*_INTEGERS, *_FLOATS)
    if not isinstance(kind, (AtomicType, Decimal)) or (function in ("min", "max") and not (numeric or is_key_type(kind))):
        raise FaultError(f"{text}, of a column of type {type_}", "columns whose values have an order")
    if function not in ("count", "distinct", "min", "max") and not numeric:
        raise FaultError(f"{text}, of a column of type {type_}", "a column of numbers")
    value_types = {"min": type_, "max": type_, "sum": sum_type(type_)}
    result = value_types | {"count": "bigint", "distinct": "bigint"}
    size = None if draft.section.error is None else sketch_size(function, draft.section.error)
    return Value(name, function, result.get(function, "double"), column, type_, share, size)


def _error(draft: AggregateDraft, values: Sequence[Value]) -> _Faults:
    """Yield the faults of `error`, and of names that the bounds of estimates already have."""
    if draft.section.error is None:
        return
    if values and all(value.size is None for value in values):
        yield "error", FaultError("no value that a sketch estimates", "no such key: only count(DISTINCT ...) and percentiles are")
    groups = {name.lower() for name in _valid_groups(draft)}
    used_names = {*OWN_COLUMNS, *groups, *(value.name.lower() for value in values)}
    for value in values:
        for name, _ in value.columns[1:]:
            if name.lower() in used_names:
                yield f"select.{value.name}", FaultError(f'the name "{name}" of a bound of it twice', "another name")


def _parts(draft: AggregateDraft) -> _Faults:
    """Yield a fault if windows cannot have a length for each input of a join."""
    fault = part_fault(draft.section, draft.view)
    if fault is not None:
        yield "windows", fault


def _keep(draft: AggregateDraft) -> _Faults:
    keep, interval = draft.section.keep or 0, draft.interval or 1
    longest = max([interval, *(period for _, period in draft.section.every)])
    if keep < longest:
        allowed = f"at least {as_duration(longest)}, the longest period of `every`, else an answer is gone before the next one"
        yield "keep", FaultError(as_duration(keep), allowed)


def _search_key(draft: AggregateDraft) -> _Faults:
    section = draft.section
    groups = _valid_groups(draft)
    keys: dict[str, SqlType | None] = dict(groups)
    if section.frequent is not None:
        keys |= {"item": AtomicType("string")}
    keys |= {"window_length": AtomicType("string"), "window_end": AtomicType("timestamp")}
    for name in section.search_key or (() if section.frequent else groups):
        kind = keys.get(name)
        if section.search_key is not None and name not in keys:
            allowed = f"columns of the answers ({', '.join(keys)})"
            yield "search_key", FaultError(f'the column "{name}"', allowed, nearest(name, keys))
        elif kind is not None and not is_key_type(kind):
            allowed = 'another `search_key`, e.g. "window_end": keys are strings, integers, decimals, dates, times or booleans'
            yield "search_key", FaultError(f'the column "{name}" of type {canonical(kind)}', allowed)
    if section.search_key is not None and len(set(section.search_key)) < len(section.search_key):
        yield "search_key", FaultError("a column twice", "each column once")


def _erasure(draft: AggregateDraft, shows_values: bool) -> _Faults:
    """Yield a fault if answers or windows show values of rows for longer than their stream lets rows exist.

    Answers without such values may stay. Windows are bounded in any case: a synopsis may have extremes for other aggregates.
    """
    stream, section = draft.stream, draft.section
    bound = stream.section.erase_within if stream is not None else draft.view.erase_within if draft.view is not None else None
    if bound is None:
        return
    keep = section.keep or 0 if shows_values else 0
    longest = max(keep, longest_length(section))
    if longest > bound:
        found = f"{as_duration(longest)} of answers or windows, with erase_within = {as_duration(bound)} of {section.source}"
        allowed = f"`keep` and `windows` of at most {as_duration(bound)}: groups and extremes show values of rows"
        yield "keep" if keep > bound else "windows", FaultError(found, allowed)
