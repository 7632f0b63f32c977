"""A view that an earlier build recorded is rebuilt only where its plan is another one: eight hundred queries.

``recorded_61b4f80.json.xz`` has the nodes of each query of ``accepted_61b4f80.jsonl``, as build 61b4f80 recorded them.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import msgspec
import pytest

from warehouse.views.algebra import Filter, Named, Node, Operator, Project, Scan
from warehouse.views.language.recorded_nodes import same_plan

from .test_accepted_before import EXCEPTIONS, accepted, judged_alone

OTHER_PLANS = {
    "an index was read as an array": ("array(n, 2)[0]", "list[0]", "array[0]", "array(x, n)"),
    "a field had the name of an internal column": (
        "struct(a.n", "struct(a.b", "struct(x, y)", "(x, y) AS", "struct(N, I)", "arrays_zip(a.ar", "max(struct(",
    ),
    "ORDER BY was over the input's column where the name is an output's": (
        "ORDER BY date_trunc('hour', b) DESC", "ORDER BY upper(k)", "ORDER BY date_trunc('hour', b) LIMIT", "ORDER BY abs(f)",
        "ORDER BY n + i * 2", "ORDER BY -n",
    ),
    "a condition without columns was tested below the join": ("WHERE 1 = 1", "WHERE TRUE AND"),
}  # fmt: skip
"""Whose plans differ on purpose, by a part of the query: their answers were wrong, or could be."""


def _recorded() -> dict[str, list[Node]]:
    path = Path(__file__).with_name("recorded_61b4f80.json.xz")
    recorded = json.loads(lzma.decompress(path.read_bytes()))
    return {sql: msgspec.convert(nodes, list[Node]) for sql, nodes in recorded.items()}


def test_views_are_rebuilt_where_their_plan_is_another() -> None:
    """Views are rebuilt nowhere else, and each listed exception is needed."""
    recorded, rebuilt = _recorded(), []
    for sql, key, *_ in accepted():
        plan, _ = judged_alone(sql, key)
        if plan is None:
            assert sql in EXCEPTIONS
        elif len(plan.nodes) != len(recorded[sql]) or not all(map(same_plan, recorded[sql], plan.nodes)):
            rebuilt.append(sql)
    parts = [part for parts_of_reason in OTHER_PLANS.values() for part in parts_of_reason]
    assert [sql for sql in rebuilt if not any(part in sql for part in parts)] == []
    assert [part for part in parts if not any(part in sql for sql in rebuilt)] == []


def _node(sql: str, *, condition: str = "true") -> Node:
    operator: Operator = Project(Filter(Scan("a"), condition), (Named("v", sql),))
    return Node("v", operator, ("v",), ("v",), "WK", 3)


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ("`st`.`x`", "(`st`).`x`"),
        ("`a.st`.`x` + 1", "(`a.st`).`x` + 1"),
        ("transform(`ar`, x -> x + `n`)", "transform(`ar`, `#x#` -> `#x#` + `n`)"),
        ("struct(`n`, `st`.`x`)", "named_struct('n', `n`, 'x', (`st`).`x`)"),
    ],
)
def test_other_spellings_are_the_same_plan(recorded: str, now: str) -> None:
    """In projections and conditions; not what only looks alike."""
    assert same_plan(_node(recorded), _node(now))
    assert same_plan(_node("1", condition=f"{recorded} IS NULL"), _node("1", condition=f"{now} IS NULL"))
    assert not same_plan(_node(recorded), _node(now.replace("`n`", "`m`").replace("`x`", "`y`")))


def test_what_cannot_be_read_is_another_plan() -> None:
    """An expression of a build whose language this one does not have."""
    assert not same_plan(_node("`n` ~~> 1"), _node("`n`"))
