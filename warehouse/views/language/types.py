"""The Spark SQL type of an expression, if it is certain without Spark.

sqlglot's inference is not used: for Spark it gives ``timestampdiff`` and ``year`` the wrong width, and a sum of decimals the
digits of a summand. An uncertain type is None; Spark decides it when the table is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import Struct, canonical, parse_type
from warehouse.views.language.dialect import column_of, expression_of, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Types", "common_type", "type_of", "type_of_node"]

Types = dict[str, str | None]
"""Column name to Spark SQL type in canonical text, in order; ``None`` if only Spark knows it."""

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FLOATING = ("float", "double")
_LARGEST_INT = 2**31 - 1
_BOOLEAN = (
    exp.And, exp.Or, exp.Not, exp.Is, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE,
    exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike, exp.Boolean,
)  # fmt: skip
_FIXED = {
    "boolean": "any some every bool_and bool_or isnull isnotnull isnan startswith endswith contains",
    "int": "year quarter month day dayofmonth dayofweek dayofyear weekofyear hour minute second length char_length size",
    "bigint": "count count_if approx_count_distinct unix_micros unix_millis unix_seconds timestampdiff xxhash64",
    "double": "stddev stddev_pop stddev_samp variance var_pop var_samp corr sqrt exp ln log10",
    "string": "lower upper lcase ucase trim ltrim rtrim concat_ws date_format md5 sha sha1 sha2 hex regexp_extract",
    "date": "to_date date_sub last_day make_date",
    "timestamp": "to_timestamp date_trunc timestamp_seconds timestamp_millis timestamp_micros timestampadd",
}
_RESULTS = {name: kind for kind, names in _FIXED.items() for name in names.split()}
_SAME = frozenset({"min", "max", "coalesce", "nvl", "ifnull", "greatest", "least", "nullif"})


def type_of(sql: str, columns: Mapping[str, str | None]) -> str | None:
    """Return the canonical type of an expression over columns in backticks, or None.

    >>> columns = {"f.n": "int", "f.at": "timestamp"}
    >>> type_of("sum(`f.n`)", columns), type_of("max(`f.at`)", columns), type_of("`f.n` * 1.5", columns)
    ('bigint', 'timestamp', None)
    """
    by_lower = {name.lower(): kind for name, kind in columns.items()}
    name = column_of(sql)
    if name is not None:
        return by_lower.get(name.lower())
    return type_of_node(expression_of(sql), by_lower)


def type_of_node(node: exp.Expr, columns: Mapping[str, str | None]) -> str | None:
    """Return the canonical type of a parsed expression, or None; the names of the columns are in lower case."""
    match node:
        case exp.Paren() | exp.Neg() | exp.Alias():
            return type_of_node(node.this, columns)
        case exp.Column():
            return columns.get(node.name.lower()) if not node.table else None
        case exp.Dot():
            return _field(type_of_node(node.this, columns), node.expression.name)
        case exp.Cast():
            return _written(node.to)
        case exp.Literal():
            return _literal(node)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
            return _arithmetic(type_of_node(node.this, columns), type_of_node(node.expression, columns))
        case exp.Div():
            kinds = {type_of_node(node.this, columns), type_of_node(node.expression, columns)}
            return "double" if kinds <= {*_WHOLE, *_FLOATING} else None
        case exp.Case():
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            default = node.args.get("default")
            return _agreed(type_of_node(value, columns) for value in [*branches, *([default] if default else [])])
        case exp.Anonymous():
            return _called(node, columns)
    if isinstance(node, _BOOLEAN):
        return "boolean"
    return "string" if isinstance(node, exp.Trim) else None


def _field(kind: str | None, name: str) -> str | None:
    parsed = parse_type(kind) if kind is not None else None
    if not isinstance(parsed, Struct):
        return None
    return next((canonical(field.type) for field in parsed.fields if field.name.lower() == name.lower()), None)


def _structure(arguments: Sequence[exp.Expr], columns: Mapping[str, str | None]) -> str | None:
    """Return the type of `named_struct`, whose arguments are names and values in turn."""
    names = [argument.name for argument in arguments[::2] if isinstance(argument, exp.Literal) and argument.name.isidentifier()]
    kinds = [type_of_node(argument, columns) for argument in arguments[1::2]]
    if len(names) != len(kinds) or 2 * len(names) != len(arguments) or None in kinds:
        return None
    return f"struct<{','.join(f'{name}:{kind}' for name, kind in zip(names, kinds, strict=True))}>"


def _literal(node: exp.Literal) -> str | None:
    if node.is_string:
        return "string"
    if not node.name.isdigit():
        return None
    return "int" if int(node.name) <= _LARGEST_INT else "bigint"


def _written(kind: exp.DataType) -> str | None:
    try:
        return canonical(parse_type(text(kind)))
    except FaultError:
        return None


def common_type(one: str | None, other: str | None) -> str | None:
    """Return the type that two columns have in a set operation, if it is certain without Spark; None if not.

    >>> common_type("int", "bigint"), common_type("double", "int"), common_type("int", "string")
    ('bigint', 'double', None)
    """
    return one if one == other else _arithmetic(one, other)


def _arithmetic(left: str | None, right: str | None) -> str | None:
    if left in _WHOLE and right in _WHOLE:
        return max(left, right, key=_WHOLE.index)
    return "double" if {left, right} <= {*_WHOLE, "double"} and "double" in {left, right} else None


def _agreed(kinds: Iterable[str | None]) -> str | None:
    distinct = set(kinds)
    return distinct.pop() if len(distinct) == 1 else None


def _called(node: exp.Anonymous, columns: Mapping[str, str | None]) -> str | None:
    name = str(node.this).lower()
    arguments = [
        part
        for expression in node.expressions
        for part in (expression.expressions if isinstance(expression, exp.Distinct) else [expression])
    ]
    if name == "window":
        return "struct<start:timestamp,end:timestamp>"
    if name == "named_struct":
        return _structure(arguments, columns)
    if name in _RESULTS:
        return _RESULTS[name]
    if name == "if":
        return _agreed(type_of_node(argument, columns) for argument in arguments[1:])
    if name in _SAME:
        return _agreed(type_of_node(argument, columns) for argument in arguments)
    kind = type_of_node(arguments[0], columns) if arguments else None
    if name in {"sum", "try_sum"}:
        return "bigint" if kind in _WHOLE else "double" if kind in _FLOATING else None
    if name in {"avg", "mean", "try_avg"}:
        return "double" if kind in {*_WHOLE, *_FLOATING} else None
    return None
