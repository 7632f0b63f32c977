"""Checks one declaration: required keys, and keys that must fit together. Each rule is a function, and all of them run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from warehouse.catalog.allowed_settings import duplicate_options, headerless_fault, multiline_fault, option_fault, value_fault
from warehouse.catalog.archives import EXPIRED_AT
from warehouse.catalog.expression import expression_faults
from warehouse.catalog.line_patterns import PATTERN, pattern_missing
from warehouse.catalog.model import DEFAULT_PERIODS, LINE_FORMATS, LayoutSpec, label_of
from warehouse.catalog.patterns import split_landing
from warehouse.catalog.spelling import FaultError, nearest
from warehouse.catalog.syslog import FIELDS
from warehouse.catalog.types import Array, AtomicType, Decimal, SqlType, Struct, canonical, is_key_type, parse_type, unusable_name
from warehouse.layout import LayoutError, resolve, warnings
from warehouse.layout.columns import is_reserved
from warehouse.objects.path import is_uri
from warehouse.time import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from warehouse.catalog.config import LayoutSection, RelationSection, StreamSection, ViewBudgetSection, ViewSection

__all__ = ["RELATION_RULES", "STREAM_RULES", "RelationDraft", "StreamDraft", "layout_spec", "layout_warnings", "view_faults"]

_STRING_LITERAL = re.compile(r"'([^'\\]*)'")
_OPERATIONS = ("upsert", "delete")
_STREAM_KEY_OF = {"periods": "max_lifetime"}


@dataclass(frozen=True)
class FilesDraft:
    """A stream or relation during the checks: its valid keys, its faulty dotted keys, and all its columns.

    ``names`` are the declared columns, also those with a faulty type.
    """

    section: StreamSection | RelationSection
    faulty: frozenset[str]
    names: tuple[str, ...]

    @property
    def arrival_key(self) -> Literal["arrival", "changed_at"]:
        """The key that gives ``ts``."""
        return "changed_at" if "changed_at" in type(self.section).model_fields else "arrival"

    @property
    def arrival(self) -> str | None:
        """The expression that gives ``ts``; None if it is missing."""
        expression: str | None = getattr(self.section, self.arrival_key)
        return expression

    def are_valid(self, *keys: str) -> bool:
        """Whether none of these keys has a fault."""
        return not self.faulty.intersection(keys)

    def types(self) -> dict[str, SqlType | None]:
        """Return the type of each column; None if it has a fault."""
        columns = self.section.columns
        return {name: parse_type(columns[name].type) if name in columns else None for name in self.names}

    def source_types(self) -> dict[str, SqlType | None]:
        """Return the type of each source column that an ``expr`` may name: first of ``sources``, then the sources of columns."""
        sources, columns = self.section.sources, self.section.columns
        types: dict[str, SqlType | None] = {name: parse_type(source.type) for name, source in sources.items()}
        for name in self.names:
            if name not in columns:
                types.setdefault(name, None)
            elif columns[name].expr is None:
                types.setdefault(columns[name].source or name, parse_type(columns[name].type))
        return types


@dataclass(frozen=True)
class StreamDraft(FilesDraft):
    """A stream being checked; ``interval`` is the update interval in microseconds, or None if it has a fault."""

    section: StreamSection
    interval: int | None


@dataclass(frozen=True)
class RelationDraft(FilesDraft):
    """A relation being checked."""

    section: RelationSection


def layout_spec(section: LayoutSection) -> LayoutSpec:
    """Return the layout keys of a section."""
    return LayoutSpec(**section.model_dump())


def _required(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    for key in ("landing", "format", "search_key", draft.arrival_key):
        if getattr(draft.section, key) is None and draft.are_valid(key):
            allowed = type(draft.section).model_fields[key].description or ""
            yield key, FaultError("nothing", f"{allowed} (required)")
    if draft.section.format == "text" and pattern_missing(draft.section.options) and draft.are_valid("options"):
        yield "options.pattern", FaultError("nothing, with format text", PATTERN)
    if not draft.names and draft.are_valid("columns"):
        yield "columns", FaultError("nothing", 'at least one column: name = "Spark SQL type" (required)')


def _column_names(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    lower = [name.lower() for name in draft.names]
    for index, name in enumerate(draft.names):
        key = f"columns.{name}"
        if is_reserved(name):
            yield key, FaultError(f'the reserved name "{name}"', "names other than sub_index, exp_block and _*")
        elif reason := unusable_name(name):
            yield key, FaultError(f'{reason} in the name "{name}"', "letters, digits and underscores")
        elif lower.index(name.lower()) != index:
            other = draft.names[lower.index(name.lower())]
            yield key, FaultError(f'"{name}" beside "{other}"', "names that are unique ignoring case")
        if name.lower() == "ts" and draft.are_valid(draft.arrival_key) and draft.arrival != "ts":
            found = f'the column "{name}" while {draft.arrival_key} = "{draft.arrival}"'
            allowed = f'a column named ts only with {draft.arrival_key} = "ts"; ts is the arrival time'
            yield key, FaultError(found, allowed)


def _types_of_text_formats(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    form = draft.section.format
    if form not in ("csv", "zeek", *LINE_FORMATS):
        return
    for table, columns in (("columns", draft.section.columns), ("sources", draft.section.sources)):
        for name, column in columns.items():
            kind = parse_type(column.type)
            is_set = form == "zeek" and isinstance(kind, Array) and isinstance(kind.element, (AtomicType, Decimal))
            if isinstance(kind, (Array, Struct)) and column.expr is None and not is_set:
                remedy = "arrays and structs need json or parquet" if form != "zeek" else "arrays of such, e.g. array<double>"
                allowed = f'types without parts, e.g. "string"; {remedy}'
                yield f"{table}.{name}", FaultError(f"{canonical(kind)} with format {form}", allowed)


def _syslog_fields(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    """Yield a fault for each column that would always be null, since no line of syslog has a field of that name."""
    if draft.section.format != "syslog":
        return
    partitions = set(draft.section.partitions)
    names = [(f"columns.{name}", column.source or name) for name, column in draft.section.columns.items()
             if column.expr is None and name not in partitions]  # fmt: skip
    for key, name in (*names, *((f"sources.{source}", source) for source in draft.section.sources)):
        if name.lower() not in FIELDS:
            allowed = f"the fields of a line of syslog: {', '.join(FIELDS)}; `from` says which one a column of another name is"
            yield key, FaultError(f'the field "{name}" with format syslog', allowed, nearest(name, FIELDS))


def _sources(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    """Yield the faults of ``expr``, and of the source columns for it."""
    calculated = {name: column.expr for name, column in draft.section.columns.items() if column.expr is not None}
    types = draft.source_types()
    lower: dict[str, str] = {}
    for name in types if calculated else ():
        other = lower.setdefault(name.lower(), name)
        if other != name:
            found = f'"{name}" beside "{other}"'
            yield "sources", FaultError(found, "names that are unique ignoring case, since a column has an expr")
    if any(key.startswith("sources") for key in draft.faulty):
        return
    for name, text in calculated.items():
        gives = parse_type(draft.section.columns[name].type)
        for fault in expression_faults(text, types, allows_ts=False, result_type=gives, description="source columns"):
            yield f"columns.{name}", FaultError(f"expr: {fault.found}", fault.allowed, fault.suggestion)


def _partitions(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    types, columns = draft.types(), draft.section.columns
    for index, name in enumerate(draft.section.partitions):
        if name not in types:
            if draft.are_valid("columns"):
                allowed = f"declared columns ({', '.join(draft.names) or 'none'}), such as {name} = \"date\""
                yield "partitions", FaultError(f'the unknown column "{name}"', allowed, nearest(name, types))
        elif name in draft.section.partitions[:index]:
            yield "partitions", FaultError(f'"{name}" twice', "each column once")
        elif name in columns and (columns[name].source or columns[name].expr):
            key = "expr" if columns[name].expr else "from"
            yield f"columns.{name}", FaultError(f"{key}, though it is one of partitions", "one of both: folders give its values")
        elif isinstance(types[name], (Array, Struct)):
            yield f"columns.{name}", FaultError(f"{columns[name].type}, though it is one of partitions", "a type without parts")


def _search_key(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    key = draft.section.search_key or ()
    types = draft.types()
    for index, name in enumerate(key):
        if name not in types:
            if draft.are_valid("columns"):
                allowed = f"declared columns ({', '.join(draft.names) or 'none'})"
                yield "search_key", FaultError(f'the unknown column "{name}"', allowed, nearest(name, types))
            continue
        kind = types[name]
        if kind is not None and not is_key_type(kind):
            allowed = "key columns that are strings, integers, decimals, dates, timestamps or booleans"
            yield "search_key", FaultError(f'the column "{name}" of type {canonical(kind)}', allowed)
        if name in key[:index]:
            yield "search_key", FaultError(f'"{name}" twice', "each column once")


def _expressions(draft: StreamDraft) -> Iterator[tuple[str, FaultError]]:
    if not draft.are_valid("columns"):
        return
    types = draft.types()
    for key, text in (("arrival", draft.section.arrival), ("expires", draft.section.expires)):
        if text is not None:
            for fault in expression_faults(text, types, allows_ts=key == "expires"):
                yield key, fault


def _changes(draft: RelationDraft) -> Iterator[tuple[str, FaultError]]:
    if not draft.are_valid("columns"):
        return
    if draft.section.changed_at is not None:
        for fault in expression_faults(draft.section.changed_at, draft.types(), allows_ts=False):
            yield "changed_at", fault
    literal = _STRING_LITERAL.fullmatch(draft.section.op.strip())
    if literal and literal[1] not in _OPERATIONS:
        found = f"the constant {draft.section.op.strip()}"
        yield "op", FaultError(found, "'upsert' or 'delete'", nearest(literal[1], _OPERATIONS))
        return
    for fault in expression_faults(draft.section.op, draft.types(), allows_ts=False, result_type=AtomicType("string")):
        yield "op", fault


def _budget_faults(section: ViewBudgetSection) -> Iterator[tuple[str, FaultError]]:
    keys = [key for key in ("pairs", "rows", "seconds") if getattr(section, key) is not None]
    if not keys:
        allowed = "a number of results such as 200_000, which an epoch makes at most; or rows, or seconds (required)"
        yield "budget.pairs", FaultError("nothing", allowed)
    for key in keys[1:]:
        yield f"budget.{key}", FaultError(f"{key} beside {keys[0]}", "one of pairs, rows and seconds")


def view_faults(section: ViewSection, faulty: frozenset[str]) -> Iterator[tuple[str, FaultError]]:
    """Yield missing and duplicate names in ``[views.NAME]``; :mod:`warehouse.views` checks its SQL."""
    for key in ("sql", "search_key"):
        if getattr(section, key) is None and key not in faulty:
            yield key, FaultError("nothing", f"{type(section).model_fields[key].description} (required)")
    if section.budget is not None and not any(key.startswith("budget") for key in faulty):
        yield from _budget_faults(section.budget)
    key_columns = [name.lower() for name in section.search_key or ()]
    for index, name in enumerate(section.search_key or ()):
        if name.lower() in key_columns[:index]:
            yield "search_key", FaultError(f'"{name}" twice', "each column once")


def _after_load(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    if draft.section.move_to is not None and draft.section.after_load != "move" and draft.are_valid("after_load"):
        found = f'"{draft.section.move_to}" with after_load = "{draft.section.after_load}"'
        yield "move_to", FaultError(found, 'after_load = "move"')


def _store(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    section = draft.section
    stored = is_uri(section.landing or "")
    if split_landing(section.landing or "")[1] and section.files != "*":
        yield "files", FaultError(f'"{section.files}" with a pattern in `landing`', "one of both: leave it out")
    if section.listing != "all" and not stored and draft.are_valid("landing"):
        yield "listing", FaultError(f'"{section.listing}" for a local directory', '"all", or a landing in an object store')
    if stored and section.after_load != "keep":
        allowed = '"keep": let a rule of the bucket delete objects once they are old'
        yield "after_load", FaultError(f'"{section.after_load}" with a landing in an object store', allowed)
    if stored and section.landing_settle:
        found = "a duration with a landing in an object store"
        yield "landing_settle", FaultError(found, '"0s": an object is whole when it is there')


def _lifetimes(draft: StreamDraft) -> Iterator[tuple[str, FaultError]]:
    lifetime = draft.section.max_lifetime
    if lifetime is None:
        if draft.section.expires is not None and draft.are_valid("max_lifetime"):
            allowed = (
                'a duration such as "1d" within which nearly all rows die: it decides how finely expiry is cut (p)'
            )
            yield "max_lifetime", FaultError("nothing, although there is `expires`", allowed)
    elif draft.interval is not None and lifetime < draft.interval:
        shortest = f'"{format_duration(draft.interval)}"'
        found = f'"{format_duration(lifetime)}" with update_interval = {shortest}'
        yield "max_lifetime", FaultError(found, f"{shortest} or longer, else rows die between two updates")


def _options(draft: FilesDraft) -> Iterator[tuple[str, FaultError]]:
    for name, value in draft.section.options:
        if fault := option_fault(name, draft.section.format) or value_fault(name, value):
            yield f"options.{name}", fault
    for fault in duplicate_options(name for name, _ in draft.section.options):
        yield "options", fault
    if fault := headerless_fault(draft.section.options):
        yield "options.names", fault
    if fault := multiline_fault(draft.section.options):
        yield "options.multiline", fault


def _archive(draft: StreamDraft) -> Iterator[tuple[str, FaultError]]:
    """Yield the faults because of which a stream cannot have its declared archive."""
    section = draft.section
    if section.on_expiry != "archive":
        return
    found = 'on_expiry = "archive"'
    if section.expires is None and draft.are_valid("expires"):
        yield "on_expiry", FaultError(f"{found} without `expires`", '"drop": rows that never expire are never archived')
    if section.erase_within is not None:
        allowed = 'one of both: an archive keeps the rows that `erase_within` wants gone; "drop", or no `erase_within`'
        yield "on_expiry", FaultError(f"{found} with `erase_within`", allowed)
    if EXPIRED_AT in {name.lower() for name in draft.names}:
        allowed = f'another name, or "drop": the archive has a column {EXPIRED_AT} of its own, the end of the row'
        yield "on_expiry", FaultError(f"{found} with a column {EXPIRED_AT}", allowed)


def _layout(draft: StreamDraft) -> Iterator[tuple[str, FaultError]]:
    arguments = _layout_arguments(draft)
    if arguments is None:
        return
    try:
        resolve(**arguments)
    except LayoutError as error:
        for problem in error.problems:
            key = _STREAM_KEY_OF.get(problem.key, f"layout.{problem.key}")
            yield key, FaultError(problem.found, f"{problem.allowed}: {problem.message.rstrip('.')}")


def _layout_arguments(draft: StreamDraft) -> dict[str, Any] | None:
    """Return the arguments of :func:`resolve`; None if a key on which they depend has a fault."""
    lifetime, interval = draft.section.max_lifetime, draft.interval
    faulty = {"layout", "max_lifetime", "expires"}.intersection(key.split(".")[0] for key in draft.faulty)
    if interval is None or faulty or (lifetime is not None and lifetime < interval):
        return None
    periods = DEFAULT_PERIODS if lifetime is None else -(-lifetime // interval)
    return {"periods": periods, "label": label_of(draft.section.expires), **draft.section.layout.model_dump()}


def layout_warnings(draft: StreamDraft) -> Iterator[str]:
    """Yield warnings about the costs of a valid layout that its owner may not expect."""
    arguments = _layout_arguments(draft)
    if arguments is not None:
        yield from warnings(resolve(**arguments), grid_declared=arguments["grid"] is not None)


_FILE_RULES = (_required, _column_names, _types_of_text_formats, _syslog_fields, _sources, _partitions, _search_key)
_LOADING_RULES = (_options, _after_load, _store)

STREAM_RULES: tuple[Callable[[StreamDraft], Iterator[tuple[str, FaultError]]], ...] = (
    *_FILE_RULES,
    _expressions,
    _lifetimes,
    *_LOADING_RULES,
    _archive,
    _layout,
)
"""Each yields (key within the stream, fault)."""

RELATION_RULES: tuple[Callable[[RelationDraft], Iterator[tuple[str, FaultError]]], ...] = (
    *_FILE_RULES,
    _changes,
    *_LOADING_RULES,
)
"""Each yields (key within the relation, fault)."""
