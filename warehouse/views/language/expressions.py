"""Checks expressions of a view: a function's result must depend on its arguments only.

A view is evaluated again and again over changing inputs, and a row that is computed twice must be the same. So functions of the
clock, random functions and functions of the session are refused, and aggregates that depend on the order of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from warehouse.catalog.functions import AGGREGATES, GENERATORS, IMPURE, ROW_WISE, WINDOWS
from warehouse.catalog.spelling import nearest
from warehouse.views.language.dialect import text
from warehouse.views.language.temporal import FUNCTIONS as TEMPORAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from warehouse.views.language.faults import Faults

__all__ = ["DETERMINISTIC_AGGREGATES", "aggregates_in", "check_expression", "function_name"]

Over = Literal["rows", "groups", "one group"]

_CLOCK_LITERALS = frozenset({"now", "today", "tomorrow", "yesterday"})
_TABLE_FUNCTIONS = frozenset({"time_window", "row_window"})
_DETERMINISTIC = """
    any approx_count_distinct avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or
    corr count count_if covar_pop covar_samp every kurtosis max mean median min percentile regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp sum try_avg
    try_sum var_pop var_samp variance
"""
DETERMINISTIC_AGGREGATES = frozenset(_DETERMINISTIC.split())
"""The aggregates of Spark SQL whose result does not depend on the order of rows."""

_INSTEAD = {
    "first": "min(column) or max(column)",
    "first_value": "min(column) or max(column)",
    "last": "min(column) or max(column)",
    "last_value": "min(column) or max(column)",
    "any_value": "min(column) or max(column)",
    "approx_percentile": "percentile(column, 0.5)",
    "percentile_approx": "percentile(column, 0.5)",
    "max_by": "max(struct(by, column)).column",
    "min_by": "min(struct(by, column)).column",
    "mode": "GROUP BY the column and count(*), with ORDER BY ... LIMIT 1 over it",
}
_ALLOWED_AGGREGATES = "an aggregate that does not depend on the order of rows, such as count, sum, avg, min, max"
_DETERMINISTIC_ONLY = "a deterministic expression of the columns of the inputs"


def function_name(node: exp.Expr) -> str | None:
    """Return the lower-case name of a called function, or None."""
    return str(node.name).lower() if isinstance(node, exp.Anonymous) else None


def aggregates_in(node: exp.Expr) -> Iterator[exp.Anonymous]:
    """Yield the outermost aggregates of an expression."""
    if isinstance(node, exp.Anonymous) and function_name(node) in AGGREGATES:
        yield node
        return
    for child in node.iter_expressions():
        yield from aggregates_in(child)


def check_expression(node: exp.Expr, faults: Faults, over: Over) -> bool:
    """Add every fault of an expression except faults of its columns; return whether it has no fault.

    Parameters
    ----------
    node
        The expression, as parsed.
    faults
        The list to which faults are added.
    over
        Whether it is evaluated over rows, or over groups; then it may have aggregates.

    """
    before = len(faults.found)
    _check(node, faults, over)
    return len(faults.found) == before


def _check(node: exp.Expr, faults: Faults, over: Over) -> None:
    if isinstance(node, exp.Anonymous):
        over = _check_call(node, faults, over)
    else:
        for kinds, report in _STRUCTURES:
            if isinstance(node, kinds):
                report(node, faults)
                return
        if isinstance(node, (exp.Any, exp.All)) and isinstance(node.this, exp.Query):
            _query(node.this, faults)
            return
    if isinstance(node, exp.Cast) and _reads_clock(node):
        faults.add(node, f"the literal {text(node.this)}, which reads the clock", _DETERMINISTIC_ONLY)
    for child in node.iter_expressions():
        _check(child, faults, over)


def _reads_clock(cast: exp.Cast) -> bool:
    literal = cast.this
    return isinstance(literal, exp.Literal) and literal.is_string and literal.name.strip().lower() in _CLOCK_LITERALS


def _check_call(node: exp.Anonymous, faults: Faults, over: Over) -> Over:
    """Check the function itself; return whether its arguments are evaluated over rows or groups."""
    name = function_name(node) or ""
    if name == "unix_timestamp" and not node.expressions:
        faults.add(node, "unix_timestamp(), which reads the clock", f"{_DETERMINISTIC_ONLY}: unix_timestamp(column)")
    elif name in ROW_WISE or name == "window":
        return over
    elif name in AGGREGATES:
        _check_aggregate(node, name, faults, over)
        return "one group"
    elif name in IMPURE:
        faults.add(node, f"{name}(), whose result depends on the clock, chance or the session", _DETERMINISTIC_ONLY)
    elif name in GENERATORS:
        faults.add(node, f"{name}(), which makes several rows of one", "one row for each row; load the parts as rows of a stream")
    elif name in WINDOWS:
        faults.add(node, f"{name}(), which looks at other rows", _TOP)
    elif name in _TABLE_FUNCTIONS:
        faults.add(node, f"{name}(...) as a value", f"{name}(...) in FROM, in place of a table")
    else:
        known_functions = ROW_WISE | DETERMINISTIC_AGGREGATES | TEMPORAL
        faults.add(node, f"the unknown function {name}()", "a function of Spark SQL", nearest(name, known_functions))
    return over


def _check_aggregate(node: exp.Anonymous, name: str, faults: Faults, over: Over) -> None:
    if over == "one group":
        faults.add(node, f"the aggregate {name}() inside another", "a sub-query in FROM that groups first")
    elif over == "rows":
        faults.add(node, f"the aggregate {name}() where rows are looked at one by one", "HAVING for a condition on groups")
    elif name not in DETERMINISTIC_AGGREGATES:
        found = f"{name}(), whose result depends on the order of rows or is a sketch of them"
        faults.add(node, found, _ALLOWED_AGGREGATES, _INSTEAD.get(name))


_TOP = "row_number() as the newest or first rows of each group: QUALIFY row_number() OVER (PARTITION BY ... ORDER BY ...) <= k"


def _window(node: exp.Expr, faults: Faults) -> None:
    function = node.this
    word = f"{function_name(function) or 'a window function'}() OVER (...)"
    if function_name(function) in AGGREGATES:
        key = ", ".join(text(term) for term in node.args.get("partition_by") or ()) or "..."
        faults.add(node, f"{word}, an aggregate over the rows around", "a join with a sub-query that groups", f"GROUP BY {key}")
        return
    ranked = node.copy()
    ranked.set("this", exp.Anonymous(this="row_number"))
    ranked.set("spec", None)
    faults.add(node, word, _TOP, f"QUALIFY {text(ranked)} <= 1" if node.args.get("order") else None)


def _filtered(node: exp.Expr, faults: Faults) -> None:
    call, condition = node.this, node.expression.this
    argument = "1" if not call.expressions or isinstance(call.expressions[0], exp.Star) else text(call.expressions[0])
    instead = f"{function_name(call)}(CASE WHEN {text(condition)} THEN {argument} END)"
    faults.add(node, f"{text(call)} with a FILTER clause", "the condition inside the aggregate", instead)


def _query(node: exp.Expr, faults: Faults) -> None:
    if isinstance(node, exp.Exists) or isinstance(node.parent, exp.In):
        allowed = "parts of WHERE joined by AND; for OR, UNION ALL of two queries that exclude each other"
        faults.add(node, "EXISTS or IN inside another condition", allowed)
        return
    allowed = "a join with the sub-query in FROM, or EXISTS, IN and their negations in WHERE"
    faults.add(node, "a sub-query as a value", allowed)


def _within_group(node: exp.Expr, faults: Faults) -> None:
    faults.add(node, "WITHIN GROUP", "percentile(column, fraction), median(column)")


def _nulls(node: exp.Expr, faults: Faults) -> None:
    faults.add(node, "IGNORE NULLS or RESPECT NULLS", _ALLOWED_AGGREGATES)


def _star(node: exp.Expr, faults: Faults) -> None:
    if function_name(node.parent) != "count" if node.parent else True:
        faults.add(node, "* inside an expression", "columns by name; * alone, as a whole SELECT item, or in count(*)")


def _parameter(node: exp.Expr, faults: Faults) -> None:
    faults.add(node, f"the parameter {text(node)}", "a constant")


_STRUCTURES: tuple[tuple[tuple[type[exp.Expr], ...], Callable[[exp.Expr, Faults], None]], ...] = (
    ((exp.Query, exp.Exists), _query),
    ((exp.Window,), _window),
    ((exp.Filter,), _filtered),
    ((exp.WithinGroup,), _within_group),
    ((exp.IgnoreNulls, exp.RespectNulls), _nulls),
    ((exp.Star,), _star),
    ((exp.Placeholder, exp.Parameter, exp.SessionParameter), _parameter),
)
