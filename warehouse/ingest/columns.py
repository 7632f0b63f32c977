"""The inputs that are read from each record, and their names in a landing file.

A source is the declaration's name for a value of a file: the exact name of a column or field, or else that name ignoring case
(JSON's fields are found by their exact names only), or else a path into nested fields, ``answer.ttl``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from warehouse.catalog.model import COLUMNAR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.catalog.model import Stream

__all__ = [
    "Fields",
    "Input",
    "Matched",
    "header_problem",
    "ignoring_case",
    "inputs_of",
    "inputs_of_records",
    "known_names",
    "matched",
    "path_of",
]

Fields: TypeAlias = "Mapping[str, Fields]"
"""The names in a file, each with the names of its nested fields; lists have no nested fields."""


_NESTED = ("json", *COLUMNAR)


@dataclass(frozen=True)
class Input:
    """A value that is read of each record.

    ``label`` is its name in the frame of records (the column's own name if the value is the column), ``source`` its name in
    files; ``formats`` and ``timezone`` are as declared. Expressions of columns know it by its ``source`` if ``seen``. A
    ``folder`` is in no record but on the file's path.
    """

    label: str
    source: str
    type: str
    formats: tuple[str, ...] = ()
    timezone: str | None = None
    seen: bool = False
    folder: bool = False


def inputs_of(stream: Stream) -> tuple[Input, ...]:
    """Return the inputs from each record and its file's path, first the values of columns, in their order."""
    calculated = any(column.expr is not None for column in stream.columns)
    named = {column.name for column in stream.sources}
    inputs = []
    for column in stream.columns:
        if column.expr is None:
            seen = calculated and column.source_name not in named
            named.add(column.source_name)
            folder = column.name in stream.partitions
            inputs.append(Input(column.name, column.source_name, column.type, column.formats, column.timezone, seen, folder))
    for index, source in enumerate(stream.sources if calculated else ()):
        inputs.append(Input(f"_source_{index}", source.name, source.type, source.formats, source.timezone, seen=True))
    return tuple(inputs)


def inputs_of_records(stream: Stream) -> tuple[Input, ...]:
    """Return the inputs from each record itself."""
    return tuple(given for given in inputs_of(stream) if not given.folder)


def path_of(source: str) -> tuple[str, ...] | None:
    """Return the steps into nested fields that a source may mean if it is no name; None if it can only be a name.

    >>> path_of("answer.ttl"), path_of("ttl"), path_of("a..b")
    (('answer', 'ttl'), None, None)
    """
    parts = tuple(source.split("."))
    return parts if len(parts) > 1 and all(parts) else None


def known_names(stream: Stream) -> frozenset[str]:
    """Return the names of a file's columns that are declared, as the declaration writes them; of paths where they begin."""
    names = {*(each.source_name for each in stream.columns if each.expr is None), *(each.name for each in stream.sources)}
    if stream.format in _NESTED:
        names |= {path[0] for path in map(path_of, tuple(names)) if path is not None}
    return frozenset(names)


@dataclass(frozen=True)
class Matched:
    """The file's names of the sources: ``paths`` maps each source to a name and the steps below it; absent sources have no path.

    ``ignoring_case`` has (source, name) pairs that differ in case. ``problem`` is (reason, message) if a name is ambiguous.
    """

    paths: Mapping[str, tuple[str, ...]]
    ignoring_case: tuple[tuple[str, str], ...] = ()
    problem: tuple[str, str] | None = None


def matched(stream: Stream, names: tuple[str, ...], fields: Fields) -> Matched:
    """Match the declaration's sources with a file's names; ``fields`` are the nested fields of each name."""
    doubled = sorted({name for name in names if name and names.count(name) > 1})
    meant = {each.lower() for each in known_names(stream)}
    if doubled and (stream.unknown_columns != "ignore" or any(name.lower() in meant for name in doubled)):
        return Matched({}, problem=("header", f"its columns {', '.join(doubled)} occur twice"))
    lower = [name.lower() for name in names]
    twins = sorted(name for name in names if lower.count(name.lower()) > 1)
    if twins and stream.format in COLUMNAR:  # Spark does not distinguish them
        return Matched({}, problem=("header", f"its columns {', '.join(twins)} differ in case only; rename them"))
    paths: dict[str, tuple[str, ...]] = {}
    loose = []
    declared = (*(each.source for each in inputs_of_records(stream)), *(each.name for each in stream.sources))
    for source in dict.fromkeys(declared):
        ways = [way for way in ((source,), path_of(source) if stream.format in _NESTED else None) if way is not None]
        found = [way for way in ways if _within(fields, way)]
        if len(found) > 1:
            both = f'its column "{source}" and the field {source} within "{source.split(".")[0]}"'
            return Matched({}, problem=("header", f"{both} are both meant by a `from`; rename one of them"))
        path = found[0] if found else _in_any_case(fields, ways)
        if isinstance(path, str):
            return Matched({}, problem=("header", path))
        if path is not None:
            paths[source] = path
            if not found:
                loose.append((source, ".".join(path)))
    return Matched(paths, tuple(loose))


def _within(fields: Fields, path: tuple[str, ...]) -> bool:
    for step in path:
        if step not in fields:
            return False
        fields = fields[step]
    return True


def _in_any_case(fields: Fields, ways: list[tuple[str, ...]]) -> tuple[str, ...] | str | None:
    """Return the path of a source ignoring case, or why it is ambiguous; None if there is no path."""
    for way in ways:
        level, steps = fields, []
        for step in way:
            alike = [name for name in level if name.lower() == step.lower()]
            if len(alike) > 1:
                listed = ", ".join(f'"{name}"' for name in sorted(alike))
                return f'its columns {listed} differ in case only, and "{step}" is none of them; say with `from` which is meant'
            if not alike:
                break
            steps.append(alike[0])
            level = level[alike[0]]
        else:
            return tuple(steps)
    return None


def ignoring_case(stream: Stream, header: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return (source, name) of the sources that a CSV header has in other letters' case only."""
    return matched(stream, header, {name: {} for name in header}).ignoring_case


def _other_separator(stream: Stream, names: tuple[str, ...]) -> str | None:
    """Return the separator of the declared columns in a CSV header of a single column, as spreadsheets save it; None if none."""
    if stream.format != "csv" or len(names) != 1:
        return None
    declared = {column.source_name.lower() for column in stream.columns}
    parts = {each: [part.strip(' "').lower() for part in names[0].split(each)] for each in (";", "\t", "|", ",")}
    return next((each for each, found in parts.items() if len(found) > 1 and declared & {*found}), None)


def header_problem(stream: Stream, names: tuple[str, ...], fields: Fields | None = None) -> tuple[str, str] | None:
    """Return (reason, message) if a file's column names cannot be matched with the declaration, else None.

    ``fields`` are the nested fields of each name; None if a format has no nested fields.
    """
    found = matched(stream, names, fields if fields is not None else {name: {} for name in names})
    if found.problem is not None:
        return found.problem
    used = {path[0] for path in found.paths.values()}
    strange = [name for name in names if name not in used and name not in stream.partitions]
    twin = next((name for name in strange for other in used if name.lower() == other.lower()), None)
    if twin is not None and stream.unknown_columns != "ignore":
        pair = next(other for other in used if twin.lower() == other.lower())
        why = f'its columns "{pair}" and "{twin}" differ in case only; rename one, or give each to a column with `from`'
        return "header", why
    other = _other_separator(stream, names) if strange else None
    if other is not None:
        option = f"options = {{ sep = {json.dumps(other)} }}"
        way = f"save it with the stream's separator, or load such files into a stream with {option}"
        return "header", f"its header is one column, {names[0]}, with {other!r} between the names; {way}"
    if strange and stream.unknown_columns == "reject" and stream.format != "syslog":  # whose names are its own, not the file's
        way = 'declare them, or set unknown_columns = "ignore" or "add"'
        if stream.format == "csv" and "\ufffd" in "".join(strange):
            way = f'if it is in another encoding, such as options = {{ encoding = "windows-1252" }}, declare that; else {way}'
        return "unknown_columns", f"it has undeclared columns {', '.join(strange)}; {way}"
    columns = {column.name: column for column in stream.columns}
    own = [name for name in stream.search_key if name not in stream.partitions]
    missing = [columns[name].source_name for name in own if columns[name].expr is None]
    missing = [source for source in missing if source not in found.paths]
    if missing:
        return "header", f"its header has no {', '.join(missing)}, of the search key"
    return None
