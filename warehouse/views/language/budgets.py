"""Checks which views may have a budget, and which views may read a view under a budget; and the preference of a budget.

While pairs are owed, a join of two inputs whose rows end by themselves misses results, but has no wrong one. A selection, join or
union of such rows also only misses results. Operators that count them, take the first of them, or look for missing partners would
give wrong results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from warehouse.catalog.expression import expression_faults
from warehouse.catalog.identifiers import quoted
from warehouse.catalog.spelling import nearest
from warehouse.catalog.types import AtomicType, SqlType, parse_type
from warehouse.promise.units import COUNTED, PREFERENCES
from warehouse.views.algebra import (
    AntiJoin,
    AsOf,
    BagDifference,
    Changes,
    Distinct,
    Filter,
    Group,
    InternalRows,
    Join,
    OuterJoin,
    OutputWindow,
    Project,
    Scan,
    TimeWindow,
    Top,
    UnionAll,
    inputs_of,
    key_names,
    scanned,
    stateful_of,
    tables_read,
)
from warehouse.views.labels import STR
from warehouse.views.language.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlglot import exp

    from warehouse.catalog.model import View
    from warehouse.views.algebra import Node, Operator
    from warehouse.views.language.scope import Table

__all__ = ["budget_faults", "partial_below", "without_failures"]

_SHAPE = "a join of two streams or views on equal columns, with filters and projections"
_WORDS: dict[type, str] = {
    Group: "GROUP BY or aggregates",
    Distinct: "DISTINCT",
    BagDifference: "EXCEPT ALL",
    AntiJoin: "NOT EXISTS, NOT IN or EXCEPT",
    OuterJoin: "an outer join",
    Top: "first rows (LIMIT, row_window, QUALIFY)",
    Changes: "an internal window",
    OutputWindow: "an output window",
    AsOf: "a version of a relation as of each row",
    InternalRows: "an internal window",
}


def budget_faults(view: View, nodes: Sequence[Node], tables: Mapping[str, Table]) -> Iterator[tuple[str, Fault]]:
    """Yield (key, fault): a budget for a view that cannot have one, and declarations that cannot read a view with a budget.

    ``tables`` are the tables that the view can name.
    """
    below = partial_below(nodes, tables)
    if view.budget is not None:
        unfit = list(_unfit(nodes, tables))
        yield from (("budget", Fault(found, allowed)) for found, allowed in unfit)
        if view.budget.expression is not None and not unfit:
            yield from (("budget.prefer", fault) for fault in _preference_faults(view.budget.expression, nodes, tables))
        if below is not None:
            yield "budget", Fault(f'a budget over "{below}", which has one', f"one budget: of {below}, or of this view")
    elif below is not None:
        for node in nodes:
            core = stateful_of(node.operator)
            if core is not None and not isinstance(core, Join):
                found = f'{_WORDS[type(core)]} over "{below}", of which a part is owed: that would be wrong, not incomplete'
                allowed = f"selections, inner joins and UNION ALL over it; or no `budget` of {below}"
                yield "sql", Fault(found, allowed)
    if view.short_lived == "report" and below is not None:
        found = f'"report" over {below}, which has a budget'
        yield "short_lived", Fault(found, f'"drop"; or "report" in [views.{below}], which sets aside what ends while it is owed')
    elif view.short_lived == "report" and view.budget is not None and view.budget.complete == "never":
        yield "short_lived", Fault('"report" with what is never completed', '"drop", or budget.complete = "later"')


def partial_below(nodes: Sequence[Node], tables: Mapping[str, Table]) -> str | None:
    """Return the view under a budget that a view reads, directly or not; None if it reads no such view."""
    read = (tables[name] for node in nodes for name in scanned(node.operator) if name in tables)
    return next((table.partial for table in read if table.partial is not None), None)


def _unfit(nodes: Sequence[Node], tables: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """Yield each part of a view that excludes a budget, and what is allowed."""
    core = stateful_of(nodes[-1].operator)
    relation = _relation(nodes, tables)
    if relation is not None:
        why = "whose changes take results back" if relation.retroactive else "of which each row has one version at most"
        found = f'a budget for a join with the relation "{relation.name}", {why}'
        yield found, f"{_SHAPE}; join the relation in a view over this one"
        return
    if not isinstance(core, Join):
        yield f"a budget for {_WORDS.get(type(core), 'a query without a join')}", _SHAPE
        return
    if len(core.inputs) != 2:  # noqa: PLR2004 - two inputs
        yield f"a budget for a join of {len(core.inputs)} inputs", f"{_SHAPE}; join two in a view of their own"
        return
    if len(nodes) > 1 or core.null_safe:
        yield "a budget for a join over queries that keep state", f"{_SHAPE}; give the inner query a view of its own"
        return
    for operator in (operator for side in core.inputs for operator in _every(side)):
        if isinstance(operator, AsOf | InternalRows) or (isinstance(operator, TimeWindow) and operator.internal):
            yield f"a budget for a join over {_WORDS.get(type(operator), 'an internal window')}", _SHAPE
        elif isinstance(operator, Scan) and (table := tables.get(operator.table)) is not None:
            if table.label == STR or table.kind not in ("stream", "view"):
                why = "rows of it can leave before their own end" if table.label == STR else "it gives answers"
                yield f'a budget for a join with the {table.kind} "{table.name}": {why}', _SHAPE
        elif not isinstance(operator, Scan | Filter | Project | TimeWindow | UnionAll):
            yield f"a budget for a join over {_WORDS.get(type(operator), 'such a query')}", _SHAPE


def _relation(nodes: Sequence[Node], tables: Mapping[str, Table]) -> Table | None:
    """Return a relation that a view reads; None if it reads no relation.

    Results with a retroactive relation leave before their own end (label STR). Any other relation gives each row at most one
    version, so there is no product of which a part could be made later.
    """
    read = (tables[name] for node in nodes for name in tables_read(node.operator) if name in tables)
    return next((table for table in read if table.kind == "relation"), None)


def _preference_faults(text: str, nodes: Sequence[Node], tables: Mapping[str, Table]) -> Iterator[Fault]:
    """Yield the faults of an expression over the key columns and the counts of a join."""
    join = cast("Join", stateful_of(nodes[-1].operator))
    columns: dict[str, SqlType | None] = {name: AtomicType("bigint") for name in COUNTED}
    for equality, names in zip(join.equal, key_names(join), strict=True):
        kind = _type_of(join.inputs[equality.left], equality.left_column, tables)
        columns |= {name: kind for name in names if name.lower() not in COUNTED}
    allowed = f'"desc", "asc", "weighted", or an expression over {", ".join(columns)}'
    for fault in expression_faults(
        text, columns, allows_ts=False, result_type=AtomicType("double"), description="the join's key columns and counts"
    ):
        yield Fault(fault.found, allowed, nearest(text, PREFERENCES) if text.isalpha() else None)


def _type_of(operator: Operator, column: str, tables: Mapping[str, Table]) -> SqlType | None:
    """Return the type of an input's column; None if it is computed."""
    if isinstance(operator, Scan):
        kind = tables[operator.table].columns.get(column) if operator.table in tables else None
        return None if kind is None else parse_type(kind)
    if isinstance(operator, Project):
        column_sql = next((computed.sql for computed in operator.columns if computed.name == column), None)
        is_column = column_sql is not None and column_sql == quoted(column_sql.strip("`"))
        return _type_of(operator.input, cast("str", column_sql).strip("`"), tables) if is_column else None
    inputs = list(inputs_of(operator))
    return _type_of(inputs[0], column, tables) if inputs else None


def _every(operator: Operator) -> Iterator[Operator]:
    yield operator
    for input_operator in inputs_of(operator):
        yield from _every(input_operator)


def without_failures(text: str) -> str:
    """Return a preference that gives null where the expression ``text`` divides by zero or leaves the range of integers.

    A preference only orders results, so a failing value must not stop the view; results without a value come last.

    >>> without_failures("left_count / (age - 1) + 2")
    'TRY_ADD(left_count / NULLIF((TRY_SUBTRACT(age, 1)), 0), 2)'
    >>> without_failures("CASE k WHEN 'r' THEN 100 ELSE pow(0.8, age) END")
    "CASE k WHEN 'r' THEN 100 ELSE POWER(0.8, age) END"
    """
    import sqlglot  # noqa: PLC0415 - it takes time to import, and few budgets have an expression

    return _lenient(sqlglot.parse_one(text, read="spark")).sql(dialect="spark")


def _lenient(node: exp.Expr) -> exp.Expr:
    from sqlglot import exp  # noqa: PLC0415 - as above

    for key, value in [*node.args.items()]:
        if isinstance(value, exp.Expr):
            node.set(key, _lenient(value))
        elif isinstance(value, list):
            node.set(key, [_lenient(item) if isinstance(item, exp.Expr) else item for item in value])
    match node:
        case exp.Div() | exp.IntDiv() | exp.Mod():
            node.set("expression", exp.Anonymous(this="nullif", expressions=[node.expression, exp.Literal.number(0)]))
            return node
        case exp.Mul():
            return exp.Anonymous(this="try_multiply", expressions=[node.this, node.expression])
        case exp.Add():
            return exp.Anonymous(this="try_add", expressions=[node.this, node.expression])
        case exp.Sub():
            return exp.Anonymous(this="try_subtract", expressions=[node.this, node.expression])
        case _:
            return node
