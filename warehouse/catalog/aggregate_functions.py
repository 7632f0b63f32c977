"""The aggregate functions that ``select`` of an aggregate may call, parsed from SQL, and the sizes of their sketches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from warehouse.catalog.spelling import FaultError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from warehouse.aggregates.definition import Function

__all__ = ["NO_EXPRESSION", "parsed_function", "sketch_size"]

NO_EXPRESSION = "an expression is declared as a column of the stream, with `expr`"
"""The remedy for an expression in place of a column, for messages."""
_MEDIAN_SHARE = 0.5
_LEAST_REGISTERS = 12
"""The least binary logarithm of the number of registers in a sketch of distinct values: 4 KB, with a well-known error."""
_MOST_COMMAS = 1
"""Upper bound of the commas in a value: a percentile has one, between its column and its share."""
_FUNCTIONS = (
    "count(*), count(COLUMN), count(DISTINCT COLUMN), sum, avg, min, max, stddev, stddev_samp, stddev_pop, variance, var_samp, "
    "var_pop, median or percentile(COLUMN, SHARE)"
)
_FUNCTION_OF_NAME: Mapping[str, Function] = {
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "variance": "var_samp",
    "var_samp": "var_samp",
    "variance_pop": "var_pop",
    "var_pop": "var_pop",
    "sum": "sum",
    "avg": "avg",
    "min": "min",
    "max": "max",
}


def sketch_size(function: Function, error: float) -> int | None:
    """Return the size of a sketch whose error is at most ``error``; None for a function whose value is always exact.

    >>> sketch_size("distinct", 0.01), sketch_size("percentile", 0.01), sketch_size("sum", 0.01)
    (16, 547, None)
    """
    if function == "distinct":
        return max(_LEAST_REGISTERS, math.ceil(2 * math.log2(2 * 1.04 / error)))
    half = error / 2  # the other half is for a percentile's place between two values
    return math.ceil((2.296 / half) ** (1 / 0.9723)) if function == "percentile" else None


def parsed_function(text: str) -> tuple[Function, str | None, float | None]:
    """Return the function of a value in ``select``, its column (None: it counts rows), and the share of a percentile.

    Raises
    ------
    FaultError
        When the text is not one aggregate function of a column.

    """
    import sqlglot  # noqa: PLC0415 - it takes time to import, and most warehouses have no aggregate
    from sqlglot import exp  # noqa: PLC0415 - same
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - same

    try:
        tree = sqlglot.parse_one(f"SELECT {text}", read="spark")
    except SqlglotError:
        raise FaultError(f'"{text}", which does not parse', f"one of {_FUNCTIONS}") from None
    listed = tree.expressions if isinstance(tree, exp.Select) and set(_clauses(tree)) == {"expressions"} else []
    call = listed[0] if len(listed) == 1 else None
    unknown = FaultError(f'"{text}"', f"one of {_FUNCTIONS}")
    if sum(token.token_type.name == "COMMA" for token in sqlglot.tokenize(text, read="spark")) > _MOST_COMMAS:
        raise unknown  # the parser drops arguments that it does not know
    if isinstance(call, exp.Count):
        return _count(call, unknown)
    if isinstance(call, exp.Func):
        name = (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower()
        arguments = call.expressions if isinstance(call, exp.Anonymous) else list(call.iter_expressions())
        if name in ("percentile", "percentile_cont", "quantile", "median"):
            return _percentile(name, arguments, unknown)
        function = _FUNCTION_OF_NAME.get(name)
        if function is not None and len(arguments) == 1:
            return function, _column_name(arguments[0], unknown), None
    raise unknown


def _clauses(tree: exp.Expr) -> list[str]:
    return [key for key, value in tree.args.items() if value]


def _count(call: exp.Count, unknown: FaultError) -> tuple[Function, str | None, float | None]:
    from sqlglot import exp  # noqa: PLC0415 - as above

    if call.expressions or call.this is None:
        raise unknown
    if isinstance(call.this, exp.Star):
        return "rows", None, None
    if isinstance(call.this, exp.Distinct):
        if len(call.this.expressions) != 1:
            raise unknown
        return "distinct", _column_name(call.this.expressions[0], unknown), None
    return "count", _column_name(call.this, unknown), None


def _percentile(name: str, arguments: list[exp.Expr], unknown: FaultError) -> tuple[Function, str | None, float | None]:
    from sqlglot import exp  # noqa: PLC0415 - as above

    if name == "median" and len(arguments) == 1:
        return "percentile", _column_name(arguments[0], unknown), _MEDIAN_SHARE
    number = arguments[1] if len(arguments) == 2 else None  # noqa: PLR2004 - a column and a share
    if not isinstance(number, exp.Literal) or number.is_string:
        raise unknown
    share = float(number.this)
    if not 0 <= share <= 1:
        raise FaultError(f"the share {number.this}", "a share from 0 to 1, such as 0.95")
    return "percentile", _column_name(arguments[0], unknown), share


def _column_name(tree: exp.Expr, unknown: FaultError) -> str:
    from sqlglot import exp  # noqa: PLC0415 - as above

    if isinstance(tree, exp.Column) and len(tree.parts) == 1:
        return str(tree.name)
    raise FaultError(f'"{tree.sql("spark")}" in {unknown.found}', f"a column; {NO_EXPRESSION}")
