"""A query that differs, made smaller while it still does: without a clause, a sub-query alone, a part of an expression.

Each round tries many smaller queries as views of one warehouse, over the same rows, and goes on with the shortest that still
differs.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.language.dialect import parse_query, text
from warehouse.views.language.faults import RefusedError

from .house import House

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from .house import Difference

__all__ = ["as_test", "shrunk", "smaller"]

_CLAUSES = ("where", "having", "qualify", "distinct", "with_")


def smaller(sql: str) -> Iterator[str]:
    """Yield queries that lack one thing of the query, the shortest first."""
    tree = parse_query(sql)
    queries = {text(node) for node in _without_one(tree)} | {text(node) for node in _inside(tree)}
    for query in sorted(queries, key=len):
        if len(query) < len(text(tree)) and _reads(query):
            yield query


def _reads(sql: str) -> bool:
    try:
        parse_query(sql)
    except RefusedError:
        return False
    return True


def _inside(tree: exp.Query) -> Iterator[exp.Expr]:
    yield from (select for select in tree.find_all(exp.Select) if select is not tree)


def _without_one(tree: exp.Query) -> Iterator[exp.Expr]:
    nodes = list(tree.walk())
    for number, node in enumerate(nodes):
        if isinstance(node, exp.Select):
            for clause in _CLAUSES:
                if node.args.get(clause):
                    yield _changed(tree, number, lambda node, clause=clause: node.set(clause, None))
            for position in range(len(node.expressions) if len(node.expressions) > 1 else 0):
                yield _changed(tree, number, lambda node, position=position: node.expressions.pop(position))
            if node.args.get("joins"):
                yield _changed(tree, number, lambda node: node.args["joins"].pop())
        if isinstance(node, exp.SetOperation):
            for side in ("this", "expression"):
                yield _changed(tree, number, lambda node, side=side: node.replace(node.args[side].copy()))
        if isinstance(node, exp.Condition) and not isinstance(node, exp.Column | exp.Identifier | exp.Literal):
            for child in [expression for expression in node.iter_expressions() if isinstance(expression, exp.Condition)]:
                other = child.copy()
                yield _changed(tree, number, lambda node, other=other: node.replace(other.copy()))


def _changed(tree: exp.Query, number: int, change: object) -> exp.Expr:
    copy = tree.copy()
    node = list(copy.walk())[number]
    if number == 0 and isinstance(node, exp.SetOperation):  # nothing is above it to be replaced in
        wrapped = exp.Subquery(this=copy)
        change(node)  # type: ignore[operator]
        inner: exp.Expr = wrapped.this
        return inner
    change(node)  # type: ignore[operator]
    return copy


def shrunk(spark: SparkSession, found: Difference, house: House, engines: Sequence[str], rounds: int = 6) -> Difference:
    """Return the smallest difference that was found after an update by each engine; it may be the given one."""
    best = found
    for _ in range(rounds):
        queries = {f"s{number}": sql for number, sql in enumerate(_some(smaller(best.sql), 40))}
        if not queries:
            break
        with tempfile.TemporaryDirectory() as directory:
            keys = {name: _first_column(sql) for name, sql in queries.items()}
            trial = House(Path(directory) / "project", spark, queries, keys, seed=house.seed, rows=house.rows)
            outcome = trial.run(range(1, len(engines) + 1), engines)
        same = [difference for difference in outcome.found if difference.problem.split(":")[0] == best.problem.split(":")[0]]
        if not same:
            break
        best = min(same, key=lambda difference: len(difference.sql))
    return best


def _some(queries: Iterator[str], most: int) -> list[str]:
    return [sql for _, sql in zip(range(most), queries, strict=False)]


def _first_column(sql: str) -> str:
    tree = parse_query(sql)
    while isinstance(tree, exp.SetOperation):
        tree = tree.this
    return tree.selects[0].alias_or_name or "c1"


def as_test(found: Difference, house: House) -> str:
    """Return a difference as a test that can be pasted: the query, and the seed of its rows."""
    problem = found.problem.splitlines()[0][:100]
    return f'    # {problem}\n    Case(seed={house.seed}, hours={found.epoch}, sql="""{found.sql}"""),'
