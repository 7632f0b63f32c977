"""Faults in the types of an expression that can be found without Spark.

sqlglot infers the types of most expressions. Only what Spark surely refuses is a fault here: a sum of a time and a number, an
array in arithmetic, a result of another family of types than the expected one. Spark checks the rest, before an update reads
anything (:func:`warehouse.ingest.expression_checks.check_expressions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import Array, AtomicType, Decimal, SqlType, Struct, canonical, parse_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlglot import exp

__all__ = ["Family", "family_of", "type_faults", "type_of"]

Family = Literal["number", "string", "boolean", "date", "timestamp", "array", "struct", "binary"]
_FAMILIES: dict[str, Family] = {
    "tinyint": "number", "smallint": "number", "int": "number", "bigint": "number", "float": "number", "double": "number",
    "string": "string", "boolean": "boolean", "date": "date", "timestamp": "timestamp", "binary": "binary",
}  # fmt: skip
_EXPECTED = {"timestamp": "an expression that gives a timestamp", "string": "an expression that gives a string"}
_REMEDY = "timestampadd(SECOND, amount, time), or time + make_interval(...)"
_MOST_NODES = 2_000
"""Spark alone checks an expression with more nodes."""


def family_of(kind: SqlType) -> Family:
    """Return the family of a type: types of different families are never converted silently.

    >>> family_of(AtomicType("bigint"))
    'number'
    """
    match kind:
        case Array():
            return "array"
        case Struct():
            return "struct"
        case Decimal():
            return "number"
        case AtomicType(name):
            return _FAMILIES[name]


def type_of(text: str, scope: Mapping[str, SqlType | None]) -> SqlType | None:
    """Return the type of an expression in Spark's SQL; None where it is not known without Spark.

    Whole numbers are ``bigint``; other numbers need a CAST.

    >>> columns = {"day": AtomicType("date"), "n": AtomicType("int")}
    >>> [type_of(text, columns) for text in ("n", "year(day)", "n / 2", "CAST(n / 2 AS decimal(9, 2))")]
    [AtomicType(name='int'), AtomicType(name='bigint'), None, Decimal(precision=9, scale=2)]
    """
    import sqlglot  # noqa: PLC0415 - as below
    from sqlglot import exp  # noqa: PLC0415 - as below
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - as below
    from sqlglot.optimizer.annotate_types import annotate_types  # noqa: PLC0415 - as below

    lower = {name.lower(): kind for name, kind in scope.items()}
    try:
        expression = sqlglot.parse_one(text, read="spark").unnest()
    except SqlglotError:
        return None
    if isinstance(expression, exp.Column) and len(expression.parts) == 1:
        return lower.get(expression.name.lower())
    if isinstance(expression, exp.Cast | exp.TryCast):
        try:
            return parse_type(expression.to.sql("spark"))
        except FaultError:
            return None
    typed = annotate_types(_with_types(expression, lower), dialect="spark")
    if typed.type is not None and typed.type.this in exp.DataType.INTEGER_TYPES:
        return AtomicType("bigint")
    family = _family(typed)
    return AtomicType(family) if family in ("string", "boolean", "date", "timestamp") else None


def type_faults(expression: exp.Expr, scope: Mapping[str, SqlType | None], result_type: SqlType | None) -> Iterator[FaultError]:
    """Yield the certain type faults of an expression without other faults.

    Parameters
    ----------
    expression
        The parsed expression.
    scope
        The type of each column that the expression may name; unknown columns have no faults.
    result_type
        The type that the expression must have; None allows any.

    """
    from sqlglot.optimizer.annotate_types import annotate_types  # noqa: PLC0415 - as the parser: reading commands need it not

    if sum(1 for _ in expression.walk()) > _MOST_NODES:
        return
    texts = {id(node): node.sql("spark") for node in expression.walk() if _can_fail(node)}
    marked = expression.copy()
    for old, new in zip(expression.walk(), marked.walk(), strict=True):
        new.meta["text"] = texts.get(id(old), "")
    typed = annotate_types(_with_types(marked, {name.lower(): kind for name, kind in scope.items()}), dialect="spark")
    faults = [fault for node in typed.walk() for fault in _faults_of(node)]
    yield from faults
    family = None if faults or result_type is None else _result(typed)
    if result_type is not None and family is not None and family != family_of(result_type):
        expected = _EXPECTED.get(canonical(result_type), f"an expression that gives {canonical(result_type)}")
        example = f", e.g. {_conversion(expression.sql('spark'), family)}" if canonical(result_type) == "timestamp" else ""
        yield FaultError(f'"{expression.sql("spark")}", which gives {_with_article(family)}', f"{expected}{example}")


def _can_fail(node: exp.Expr) -> bool:
    from sqlglot import exp  # noqa: PLC0415 - as above

    return isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.TimestampAdd, exp.DateAdd))


def _with_types(expression: exp.Expr, scope: Mapping[str, SqlType | None]) -> exp.Expr:
    """Return an expression in which each column of a known type is a value of that type."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    def typed(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        kind = scope.get(node.parts[0].name.lower())
        for part in node.parts[1:]:
            fields = {field.name.lower(): field.type for field in kind.fields} if isinstance(kind, Struct) else {}
            kind = fields.get(part.name.lower())
        return node if kind is None else exp.cast(exp.null(), canonical(kind), dialect="spark")

    return expression.transform(typed)


def _faults_of(node: exp.Expr) -> Iterator[FaultError]:
    from sqlglot import exp  # noqa: PLC0415 - as above

    if not _can_fail(node):
        return
    text = node.meta.get("text") or node.sql("spark")
    left, right = _family(node.this), _family(node.expression)
    if isinstance(node, (exp.TimestampAdd, exp.DateAdd)):
        amount = next((family for family in (left, right) if family in ("array", "struct", "boolean")), None)
        if amount is not None:
            yield FaultError(f'"{text}", which adds {_with_article(amount)} to a time', "a number: " + _remedy(amount))
        return
    nested = next((family for family in (left, right) if family in ("array", "struct")), None)
    if nested is not None:
        yield FaultError(
            f'"{text}", which calculates with {_with_article(nested)}', "numbers, or a time and an interval: " + _remedy(nested)
        )
    elif isinstance(node, exp.Add) and "timestamp" in (left, right):
        other = right if left == "timestamp" else left
        if other in ("number", "boolean", "timestamp", "date"):
            yield FaultError(f'"{text}", which adds {_with_article(other)} to a timestamp', f"a time and an interval: {_REMEDY}")


def _remedy(family: str) -> str:
    return "of an array e.g. array_min(...)" if family == "array" else _REMEDY


def _family(node: exp.Expr | None) -> Family | None:
    """Return the family of a node's type; None if it is unknown."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    if node is None or node.type is None or isinstance(node, exp.Null) or _makes_interval(node):
        return None
    kinds = exp.DataType
    for types, family in (
        ((kinds.Type.ARRAY, kinds.Type.LIST), "array"),
        ((kinds.Type.STRUCT,), "struct"),
        (tuple(kinds.NUMERIC_TYPES), "number"),
        (tuple(kinds.TEXT_TYPES), "string"),
        ((kinds.Type.BOOLEAN,), "boolean"),
        ((kinds.Type.DATE,), "date"),
        ((kinds.Type.TIMESTAMP, kinds.Type.TIMESTAMPTZ, kinds.Type.TIMESTAMPLTZ), "timestamp"),
    ):
        if node.type.this in types:
            return family  # type: ignore[return-value]
    return None


def _makes_interval(node: exp.Expr) -> bool:
    """Whether a node calculates with intervals: sqlglot infers other types for products of intervals and differences of times."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    intervals = (exp.Interval, exp.MakeInterval)
    named = any("interval" in call.name.lower() for call in node.find_all(exp.Anonymous))
    between = any(_family(difference.this) in ("timestamp", "date") for difference in node.find_all(exp.Sub))
    return named or between or node.find(*intervals) is not None


def _result(typed: exp.Expr) -> Family | None:
    """Return the type family of an expression's result; None if Spark may convert one of several branches."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    node = typed.unnest()
    arithmetic = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Cast)
    plain = (exp.Upper, exp.Lower, exp.Literal, exp.Length, exp.RegexpSplit, exp.Boolean, exp.Predicate, exp.Connector, exp.Not)
    return _family(node) if isinstance(node, arithmetic + plain) else None


def _with_article(family: str) -> str:
    return f"an {family}" if family == "array" else f"a {family}"


def _conversion(text: str, family: Family) -> str:
    return {
        "number": f"timestamp_seconds({text})",
        "date": f"CAST({text} AS TIMESTAMP)",
        "string": f"to_timestamp({text})",
    }.get(family, _REMEDY)
