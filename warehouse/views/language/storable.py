"""Reports columns that no table can store, before Spark analyses them: maps, intervals, and texts with a collation.

The type of an expression is not always known without a session. These columns are recognised by the functions that make them;
other types that a table cannot have are found when Spark analyses the query.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.algebra import (
    AntiJoin,
    Distinct,
    Filter,
    Group,
    Join,
    OuterJoin,
    Project,
    Scan,
    Top,
    UnionAll,
    inputs_of,
)
from warehouse.views.language.columns import columns_of
from warehouse.views.language.dialect import as_written, column_of, expression_of
from warehouse.views.language.faults import Fault
from warehouse.views.language.types import type_of_node

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from warehouse.views.algebra import Node, Operator

__all__ = ["unstorable"]

_MAPS = frozenset(
    {
        "map", "map_concat", "map_filter", "map_from_arrays", "map_from_entries", "map_zip_with", "str_to_map", "transform_keys",
        "transform_values",
    },
)  # fmt: skip
_PASSED_ON = frozenset(
    {
        "coalesce", "nvl", "ifnull", "if", "nullif", "greatest", "least", "min", "max", "struct", "named_struct", "array",
        "array_append", "concat", "nvl2",
    },
)  # fmt: skip
_NOT_COLLATED = frozenset(
    {
        "instr", "locate", "position", "collation", "levenshtein", "find_in_set", "hash", "xxhash64", "crc32", "ascii",
        "bit_length", "octet_length", "md5", "sha", "sha1", "sha2", "unhex", "base64", "encode", "regexp_count",
        "regexp_instr", "to_number", "try_to_number", "unix_timestamp", "to_unix_timestamp", "size", "cardinality",
        "array_position", "array_contains", "get_json_object",
    },
)  # fmt: skip
"""Functions whose result has no collation, for any collation of their arguments."""
_CHOOSING = frozenset({"if", "nvl2"})
_SCALAR = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp", "binary"})
_MAP = ("a map", "its values as columns (m['key']), or map_entries(m), an array of structures")
_LENGTH = (
    "an interval, which no table keeps",
    "a number with a unit: duration(valid(a, b), 'seconds') for b - a, duration(x, 'seconds') for duration(x)",
)
_COLLATED = ("a text with a collation, which no table keeps", "lower(text), or CAST(text AS STRING)")


def unstorable(
    nodes: Sequence[Node], tables: Mapping[str, tuple[str, ...]], times: Collection[str] = ()
) -> Iterator[Fault]:
    """Yield the columns that a view's tables cannot store, and the columns by which its operators cannot compare rows.

    Parameters
    ----------
    nodes
        The tables that keep the view.
    tables
        The columns of all scanned tables, without the tables of these nodes.
    times
        The names that only columns of times have, in lower case.

    """
    columns = {**tables, **{node.table: node.columns for node in nodes}}
    reported = set()
    for node in nodes:
        checks = [(name, node.operator, _MAP, _is_map) for name in node.columns]
        checks += [(name, node.operator, _COLLATED, _is_collated) for name in node.columns]
        checks += [(name, node.operator, _LENGTH, partial(_is_length, times=times)) for name in node.columns]
        checks += [
            (name, input_operator, _COLLATED, _is_collated) for input_operator, names in _keys(node.operator) for name in names
        ]
        for name, operator, (word, allowed), test in checks:
            expressions = _made(operator, name, columns)
            sql = next((sql for sql in expressions if test(expression_of(sql))), None)
            if sql is not None and (sql, word) not in reported:
                reported.add((sql, word))
                yield Fault(f"{_duration_of(sql) or as_written(sql)}, {word}", allowed)


def _keys(operator: Operator) -> Iterator[tuple[Operator, list[str]]]:
    """Yield each input of an operator whose rows are found by columns, with these columns."""
    match operator:
        case Join(inputs=inputs, equal=equal):
            for equality in equal:
                yield inputs[equality.left], [equality.left_column]
                yield inputs[equality.right], [equality.right_column]
        case OuterJoin(on=on) | AntiJoin(on=on):
            yield operator.left, [left for left, _ in on]
            yield operator.right, [right for _, right in on]
        case Group(keys=keys):
            yield operator.input, list(keys)
        case Top(partition=partition, order=order):
            yield operator.input, [*partition, *(term.column for term in order)]
        case Filter() | Project() | Distinct():
            yield from _keys(operator.input)
        case _:
            return


def _made(operator: Operator, name: str, tables: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the expressions from which a column is computed, its own first."""
    match operator:
        case Scan():
            return []
        case Project(columns=columns):
            sql = next((column.sql for column in columns if column.name.lower() == name.lower()), None)
            if sql is None:
                return []
            column_name = column_of(sql)
            return _made(operator.input, column_name, tables) if column_name else [sql]
        case Group(aggregates=aggregates):
            sql = next((aggregate.sql for aggregate in aggregates if aggregate.name.lower() == name.lower()), None)
            if sql is None:
                return _made(operator.input, name, tables)
            call = expression_of(sql)
            passed_on = [column.name for column in call.find_all(exp.Column)] if call.name.lower() in _PASSED_ON else []
            return [sql, *(expression for column in passed_on for expression in _made(operator.input, column, tables))]
        case UnionAll(inputs=inputs):
            return [sql for input_operator in inputs for sql in _made(input_operator, name, tables)]
        case _:
            return next(
                (
                    _made(input_operator, name, tables)
                    for input_operator in inputs_of(operator)
                    if name.lower() in (column.lower() for column in columns_of(input_operator, tables))
                ),
                [],
            )


def _is_map(node: exp.Expr) -> bool:
    match node:
        case exp.Paren() | exp.Alias() | exp.Case():
            return any(map(_is_map, _given(node)))
        case exp.Cast():
            return "MAP<" in node.to.sql(dialect="spark").upper()
        case exp.Anonymous():
            name = str(node.this).lower()
            return name in _MAPS or (name in _PASSED_ON and any(map(_is_map, _given(node))))
        case _:
            return False


def _is_length(node: exp.Expr, times: Collection[str]) -> bool:
    """Whether an expression is an interval: a difference of times, or a constant interval."""
    match node:
        case exp.Paren() | exp.Alias() | exp.Case():
            return any(_is_length(operand, times) for operand in _given(node))
        case exp.Interval():
            return True
        case exp.Sub():
            return _is_time(node.this, times) and _is_time(node.expression, times)
        case exp.Anonymous():
            name = str(node.this).lower()
            return name in _PASSED_ON and any(_is_length(operand, times) for operand in _given(node))
        case _:
            return False


def _duration_of(sql: str) -> str | None:
    """Return the call of duration() from which an expression was made, as a user writes it; None for other expressions."""
    node = expression_of(sql)
    first = node.args["ifs"][0].args["true"].unnest() if isinstance(node, exp.Case) else None
    if not isinstance(first, exp.Sub):
        return None
    start, end = (as_written(side.sql(dialect="spark")) for side in (first.expression, first.this))
    return f"duration(valid({start}, {end})) without a unit"


def _is_time(node: exp.Expr, times: Collection[str]) -> bool:
    if isinstance(node, exp.Column):
        return node.name.rpartition(".")[2].lower() in times  # a join names its columns after their tables
    return type_of_node(node, {}) in ("timestamp", "date")


def _is_collated(node: exp.Expr) -> bool:
    """Whether an expression gives a text with a collation."""
    match node:
        case exp.Collate():
            return True
        case exp.Anonymous() if str(node.this).lower() == "collate":
            return True
        case exp.Anonymous() if str(node.this).lower() in _NOT_COLLATED:
            return False
        case exp.Cast() | exp.Literal() | exp.Column():
            return False
    return type_of_node(node, {}) not in _SCALAR and any(map(_is_collated, _given(node)))


def _given(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the operands that can become the result; a condition only chooses one of them."""
    match node:
        case exp.Case():
            yield from (branch.args["true"] for branch in node.args["ifs"])
            yield from [node.args["default"]] if node.args.get("default") else []
        case exp.Anonymous() if str(node.this).lower() in _CHOOSING:
            yield from node.expressions[1:]
        case _:
            yield from node.iter_expressions()
