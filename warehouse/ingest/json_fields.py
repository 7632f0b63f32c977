"""Chooses the parsed fields of a JSON object and their types: one call of ``from_json`` for fields that do not overlap.

A source with dots is a field of that whole name, or a field in nested objects. So it is parsed both ways, and a record with both
is rejected. Struct fields are numbered, since Spark takes ``Id`` and ``ID`` of a struct for the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.durations import DURATION
from warehouse.catalog.identifiers import quoted
from warehouse.ingest.columns import path_of
from warehouse.ingest.whole_json import BEYOND_VARIANT, LONG_DECIMAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column as SparkColumn

    from warehouse.ingest.columns import Input

__all__ = ["ParsedFields", "exact_text", "is_parsed_as_text", "json_path", "parsed_fields"]

_NOT_IN_PATHS = frozenset("'?")
_DOUBLE_AS_TEXT = r"^-?[0-9]+\.[0-9]+(E-?[0-9]+)?$"


@dataclass(frozen=True)
class ParsedFields:
    """Sources that one call parses, each with its path.

    ``name`` is the column of the struct, ``misfit`` its field with the text of a record that did not fit.
    """

    name: str
    misfit: str
    inputs: tuple[tuple[Input, tuple[str, ...]], ...]

    def column(self, line: SparkColumn, options: Mapping[str, str]) -> SparkColumn:
        """Return the parsed fields of a line: a struct with a field for each path, and the text if the record did not fit."""
        kinds = {path: "string" if is_parsed_as_text(input_) else input_.type for input_, path in self.inputs}
        tree = _tree(kinds)
        fields = [f"{quoted(name)} {_ddl(below)}" for name, below in tree.items()]
        numbered = [f"_{number} {_numbered(below)}" for number, below in enumerate(tree.values())]
        schema = ", ".join([*fields, f"{self.misfit} string"])
        struct = F.from_json(line, schema, dict(options))
        return struct.cast(f"struct<{', '.join([*numbered, f'{self.misfit} string'])}>").alias(self.name)

    def holds(self, input_: Input) -> bool:
        """Whether this call parses a source."""
        return any(parsed == input_ for parsed, _ in self.inputs)

    def paths(self, input_: Input) -> tuple[tuple[str, ...], ...]:
        """Return the paths by which this call parses a source; empty if it does not parse it."""
        return tuple(path for parsed, path in self.inputs if parsed == input_)

    def value(self, input_: Input) -> SparkColumn:
        """Return the parsed value of a source."""
        level = _tree({path: "" for _, path in self.inputs})
        value = F.col(self.name)
        for step in next(path for parsed, path in self.inputs if parsed == input_):
            value = value.getField(f"_{list(level).index(step)}")
            below = level[step]
            level = below if isinstance(below, dict) else {}
        return value

    def shape(self) -> SparkColumn:
        """Return the text of a record with a value that did not fit, else null."""
        return F.col(self.name).getField(self.misfit)


_Tree = dict[str, "str | _Tree"]


def parsed_fields(inputs: Sequence[Input], misfit: str) -> tuple[ParsedFields, ...]:
    """Return the calls that parse the sources: first all by their whole names, then sources with dots by their paths.

    Sources with the same path and different types are parsed separately, and so are sources inside each other.
    """
    groups: list[list[tuple[Input, tuple[str, ...]]]] = [[]]
    for input_ in inputs:
        _add_to_group(groups, input_, (input_.source,))
    flat = len(groups)
    groups.append([])
    for input_ in inputs:
        path = path_of(input_.source)
        if path is not None:
            _add_to_group(groups, input_, path, start=flat)
    filled_groups = [group for group in groups if group]
    return tuple(ParsedFields(f"_parsed_{number}", misfit, tuple(group)) for number, group in enumerate(filled_groups))


def _add_to_group(
    groups: list[list[tuple[Input, tuple[str, ...]]]], input_: Input, path: tuple[str, ...], *, start: int = 0
) -> None:
    for group in groups[start:]:
        if all(_fit_one_call(input_, path, other, other_path) for other, other_path in group):
            group.append((input_, path))
            return
    groups.append([(input_, path)])


def _fit_one_call(input_: Input, path: tuple[str, ...], other: Input, other_path: tuple[str, ...]) -> bool:
    if path == other_path:
        return (input_.type, is_parsed_as_text(input_)) == (other.type, is_parsed_as_text(other))
    shared = min(len(path), len(other_path))
    return path[:shared] != other_path[:shared]


def exact_text(value: SparkColumn, input_: Input, path: tuple[str, ...]) -> SparkColumn:
    """Return a parsed value; if it is text, it has all the digits of its numbers. The line is the column ``value``.

    Spark converts a JSON number with decimals to text through double precision. If a line has a number with more digits, it is
    also read as a value of type `variant`, which has 38 digits. A number with even more digits, or with an exponent, stays as
    Spark converted it.
    """
    kind = "string" if is_parsed_as_text(input_) else input_.type
    variant_path = json_path(path)
    if "string" not in kind or variant_path is None:
        return value
    line = F.col("value")
    rounded = line.rlike(LONG_DECIMAL) & ~line.rlike(BEYOND_VARIANT)
    if kind == "string":  # the rest of a line may hold such numbers for other columns
        rounded &= value.rlike(_DOUBLE_AS_TEXT)
    exact = F.try_variant_get(F.try_parse_json(line), variant_path, kind)
    return F.when(rounded, F.coalesce(exact, value)).otherwise(value)


def is_parsed_as_text(input_: Input) -> bool:
    """Whether a source is parsed as text and converted like CSV: times of a declared format, and durations.

    This includes nested times, and times whose names a JSON path of Spark cannot express: the guard against a time without a date
    needs text.
    """
    if input_.formats == (DURATION,):
        return True
    if input_.type not in ("timestamp", "date"):
        return False
    nameless = input_.type == "timestamp" and (path_of(input_.source) is not None or json_path((input_.source,)) is None)
    return bool(input_.formats) or input_.timezone is not None or nameless


def json_path(path: tuple[str, ...]) -> str | None:
    """Return Spark's JSON path to a field; None if a name is not allowed in a path.

    >>> json_path(("answer", "ttl")), json_path(("it's",))
    ("$['answer']['ttl']", None)
    """
    if any(_NOT_IN_PATHS.intersection(step) for step in path):
        return None
    return "$" + "".join(f"['{step}']" for step in path)


def _tree(kinds: Mapping[tuple[str, ...], str]) -> _Tree:
    tree: _Tree = {}
    for path, kind in kinds.items():
        level = tree
        for step in path[:-1]:
            below = level.setdefault(step, {})
            level = below if isinstance(below, dict) else {}
        level[path[-1]] = kind
    return tree


def _ddl(below: str | _Tree) -> str:
    if isinstance(below, str):
        return below
    return f"struct<{', '.join(f'{quoted(name)}: {_ddl(child)}' for name, child in below.items())}>"


def _numbered(below: str | _Tree) -> str:
    if isinstance(below, str):
        return below
    return f"struct<{', '.join(f'_{number}: {_numbered(child)}' for number, child in enumerate(below.values()))}>"
