"""The inputs that are read from each record, and how they are matched with the names in a landing file.

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
    "ColumnMatch",
    "Fields",
    "Input",
    "header_problem",
    "ignoring_case",
    "inputs_of",
    "inputs_of_records",
    "known_names",
    "match_columns",
    "path_of",
]

Fields: TypeAlias = "Mapping[str, Fields]"
"""The names in a file, each with the names of its nested fields; lists have no nested fields."""


_NESTED = ("json", *COLUMNAR)


@dataclass(frozen=True)
class Input:
    """A value that is read from each record.

    ``label`` is its name in the frame of records (the column's own name if the value is the column), ``source`` its name in
    files; ``formats`` and ``timezone`` are as declared. ``in_expressions``: expressions of columns may name it, by its
    ``source``. ``is_folder``: it is not in the record but on the file's path.
    """

    label: str
    source: str
    type: str
    formats: tuple[str, ...] = ()
    timezone: str | None = None
    in_expressions: bool = False
    is_folder: bool = False


def inputs_of(stream: Stream) -> tuple[Input, ...]:
    """Return the inputs from each record and its file's path, first the values of columns, in their order."""
    calculated = any(column.expr is not None for column in stream.columns)
    named_sources = {column.name for column in stream.sources}
    inputs = []
    for column in stream.columns:
        if column.expr is None:
            in_expressions = calculated and column.source_name not in named_sources
            named_sources.add(column.source_name)
            is_folder = column.name in stream.partitions
            inputs.append(
                Input(column.name, column.source_name, column.type, column.formats, column.timezone, in_expressions, is_folder)
            )
    for index, source in enumerate(stream.sources if calculated else ()):
        inputs.append(Input(f"_source_{index}", source.name, source.type, source.formats, source.timezone, in_expressions=True))
    return tuple(inputs)


def inputs_of_records(stream: Stream) -> tuple[Input, ...]:
    """Return the inputs from each record itself."""
    return tuple(input_ for input_ in inputs_of(stream) if not input_.is_folder)


def path_of(source: str) -> tuple[str, ...] | None:
    """Return the steps into nested fields that a source may mean; None if it can only be a name.

    >>> path_of("answer.ttl"), path_of("ttl"), path_of("a..b")
    (('answer', 'ttl'), None, None)
    """
    parts = tuple(source.split("."))
    return parts if len(parts) > 1 and all(parts) else None


def known_names(stream: Stream) -> frozenset[str]:
    """Return the declared names of a file's columns, as the declaration writes them; for a path, the name is its first step."""
    names = {
        *(column.source_name for column in stream.columns if column.expr is None), *(source.name for source in stream.sources)
    }  # fmt: skip
    if stream.format in _NESTED:
        names |= {path[0] for path in map(path_of, tuple(names)) if path is not None}
    return frozenset(names)


@dataclass(frozen=True)
class ColumnMatch:
    """The file's names of the sources: ``paths`` maps each source to a name and the steps below it; absent sources have no path.

    ``ignoring_case`` has (source, name) pairs that differ in case. ``problem`` is (reason, message) if a name is ambiguous.
    """

    paths: Mapping[str, tuple[str, ...]]
    ignoring_case: tuple[tuple[str, str], ...] = ()
    problem: tuple[str, str] | None = None


def match_columns(stream: Stream, names: tuple[str, ...], fields: Fields) -> ColumnMatch:
    """Match the declaration's sources with a file's names; ``fields`` are the nested fields of each name."""
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    declared_names = {name.lower() for name in known_names(stream)}
    if repeated and (stream.unknown_columns != "ignore" or any(name.lower() in declared_names for name in repeated)):
        return ColumnMatch({}, problem=("header", f"its columns {', '.join(repeated)} occur twice"))
    lower = [name.lower() for name in names]
    case_twins = sorted(name for name in names if lower.count(name.lower()) > 1)
    if case_twins and stream.format in COLUMNAR:  # Spark does not distinguish them
        return ColumnMatch({}, problem=("header", f"its columns {', '.join(case_twins)} differ in case only; rename them"))
    paths: dict[str, tuple[str, ...]] = {}
    matched_ignoring_case = []
    declared = (*(input_.source for input_ in inputs_of_records(stream)), *(source.name for source in stream.sources))
    for source in dict.fromkeys(declared):
        candidates = [
            candidate for candidate in ((source,), path_of(source) if stream.format in _NESTED else None) if candidate is not None
        ]
        matches = [candidate for candidate in candidates if _within(fields, candidate)]
        if len(matches) > 1:
            conflict = f'its column "{source}" and the field {source} within "{source.split(".")[0]}"'
            return ColumnMatch({}, problem=("header", f"{conflict} are both meant by a `from`; rename one of them"))
        path = matches[0] if matches else _path_ignoring_case(fields, candidates)
        if isinstance(path, str):
            return ColumnMatch({}, problem=("header", path))
        if path is not None:
            paths[source] = path
            if not matches:
                matched_ignoring_case.append((source, ".".join(path)))
    return ColumnMatch(paths, tuple(matched_ignoring_case))


def _within(fields: Fields, path: tuple[str, ...]) -> bool:
    for step in path:
        if step not in fields:
            return False
        fields = fields[step]
    return True


def _path_ignoring_case(fields: Fields, candidates: list[tuple[str, ...]]) -> tuple[str, ...] | str | None:
    """Return the path of a source ignoring case, or a message if the path is ambiguous; None if there is no path."""
    for candidate in candidates:
        level, steps = fields, []
        for step in candidate:
            matches = [name for name in level if name.lower() == step.lower()]
            if len(matches) > 1:
                listed = ", ".join(f'"{name}"' for name in sorted(matches))
                return f'its columns {listed} differ in case only, and "{step}" is none of them; say with `from` which is meant'
            if not matches:
                break
            steps.append(matches[0])
            level = level[matches[0]]
        else:
            return tuple(steps)
    return None


def ignoring_case(stream: Stream, header: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the (source, name) pairs of sources that a CSV header has with other upper and lower case."""
    return match_columns(stream, header, {name: {} for name in header}).ignoring_case


def _separator_in_header(stream: Stream, names: tuple[str, ...]) -> str | None:
    """Return the separator by which a CSV header of one column gives declared columns, as spreadsheets save it; else None."""
    if stream.format != "csv" or len(names) != 1:
        return None
    declared = {column.source_name.lower() for column in stream.columns}
    parts = {sign: [part.strip(' "').lower() for part in names[0].split(sign)] for sign in (";", "\t", "|", ",")}
    return next((sign for sign, split_names in parts.items() if len(split_names) > 1 and declared & {*split_names}), None)


def header_problem(stream: Stream, names: tuple[str, ...], fields: Fields | None = None) -> tuple[str, str] | None:
    """Return (reason, message) if a file's column names cannot be matched with the declaration, else None.

    ``fields`` are the nested fields of each name; None if a format has no nested fields.
    """
    match = match_columns(stream, names, fields if fields is not None else {name: {} for name in names})
    if match.problem is not None:
        return match.problem
    used = {path[0] for path in match.paths.values()}
    undeclared = [name for name in names if name not in used and name not in stream.partitions]
    case_twin = next((name for name in undeclared for other in used if name.lower() == other.lower()), None)
    if case_twin is not None and stream.unknown_columns != "ignore":
        pair = next(other for other in used if case_twin.lower() == other.lower())
        message = f'its columns "{pair}" and "{case_twin}" differ in case only; rename one, or give each to a column with `from`'
        return "header", message
    other = _separator_in_header(stream, names) if undeclared else None
    if other is not None:
        option = f"options = {{ sep = {json.dumps(other)} }}"
        remedy = f"save it with the stream's separator, or load such files into a stream with {option}"
        return "header", f"its header is one column, {names[0]}, with {other!r} between the names; {remedy}"
    if undeclared and stream.unknown_columns == "reject" and stream.format != "syslog":  # its names are not the file's
        remedy = 'declare them, or set unknown_columns = "ignore" or "add"'
        if stream.format == "csv" and "\ufffd" in "".join(undeclared):
            remedy = (
                f'if it is in another encoding, such as options = {{ encoding = "windows-1252" }}, declare that; else {remedy}'
            )
        return "unknown_columns", f"it has undeclared columns {', '.join(undeclared)}; {remedy}"
    columns = {column.name: column for column in stream.columns}
    key_names = [name for name in stream.search_key if name not in stream.partitions]
    missing = [columns[name].source_name for name in key_names if columns[name].expr is None]
    missing = [source for source in missing if source not in match.paths]
    if missing:
        return "header", f"its header has no {', '.join(missing)}, of the search key"
    return None
