from __future__ import annotations

import pytest

from warehouse.views.algebra import AntiJoin, Distinct, Equality, Join, Operator, Scan, inputs_of
from warehouse.views.compile import KnownTables
from warehouse.views.labels import STR, WK
from warehouse.views.language.columns import columns_of
from warehouse.views.rewrite import alternatives

from .catalogs import TABLES, plan, project, qualified, tree

COLUMNS = {name: tuple(column for column, _ in columns) for name, columns in TABLES.items()}
CALLS = Scan("calls")
OTHER = project(Scan("events"), "e.k = `k`")


def rewritten(sql: str) -> dict[str, Operator]:
    """Return the alternative plans of a query by name."""
    return {alternative.name: alternative.tree for alternative in alternatives(tree(sql), COLUMNS)}


NEGATED = "(SELECT c.k, c.v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k))"


def test_negation_goes_above_a_join() -> None:
    """``(S1 - S3) x S2`` becomes ``(S1 x S2) - S3`` (TV-12: plan R to plan L); then only the root sees rows leave early."""
    plans = rewritten(f"SELECT s.k, f.delay FROM {NEGATED} s JOIN flights f ON f.delay = s.v")
    joined = Join(
        (qualified("s", CALLS, ["k", "v"]), qualified("f", "flights", ["delay"])),
        (Equality(1, "f.delay", 0, "s.v"),),
    )
    assert plans == {
        "negation pull-up": project(AntiJoin(joined, OTHER, (("s.k", "e.k"),)), "k = `s.k`", "delay = `f.delay`")
    }


def test_the_negated_column_is_carried() -> None:
    """A negated column that the join's input drops is carried through the join, and dropped above."""
    sql = "SELECT s.v, f.tail FROM (SELECT v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)) s"
    plans = rewritten(f"{sql} JOIN flights f ON f.delay = s.v")
    joined = Join(
        (
            project(CALLS, "s.v = `v`", "c.k = `k`"),
            qualified("f", "flights", ["tail", "delay"]),
        ),
        (Equality(1, "f.delay", 0, "s.v"),),
    )
    expected = project(AntiJoin(joined, OTHER, (("c.k", "e.k"),)), "v = `s.v`", "tail = `f.tail`")
    assert plans == {"negation pull-up": expected}


def test_several_negations_go_above() -> None:
    """Each negation below a join goes above it."""
    pulled = rewritten(f"SELECT a.v FROM {NEGATED} a JOIN {NEGATED} b ON a.v = b.v")["negation pull-up"]
    seen = []
    while not isinstance(pulled, Join):
        seen.append(type(pulled))
        pulled = inputs_of(pulled)[0]
    assert seen.count(AntiJoin) == 2
    columns = [name for join_input in pulled.inputs for name in columns_of(join_input, COLUMNS)]
    assert len(columns) == len(set(columns))


def test_distinct_goes_below_a_negation() -> None:
    """DISTINCT above an anti-join goes below it if the negated column is distinct, too: then it need not count."""
    plans = rewritten("SELECT DISTINCT k AS key FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)")
    assert plans == {"DISTINCT push-down": AntiJoin(Distinct(project(CALLS, "key = `k`")), OTHER, (("key", "e.k"),))}


def test_both_together() -> None:
    """Only one rewriting applies: the negation is pulled through DISTINCT and join at once."""
    plans = rewritten(f"SELECT DISTINCT s.k FROM {NEGATED} s JOIN flights f ON f.delay = s.v")
    assert list(plans) == ["negation pull-up"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)",
        "SELECT DISTINCT k, v FROM (SELECT k, v FROM calls EXCEPT ALL SELECT k, v FROM events)",
        "SELECT s.k FROM (SELECT k, v FROM calls EXCEPT ALL SELECT k, v FROM events) s JOIN flights f ON f.delay = s.v",
        "SELECT s.k FROM (SELECT k, count(*) AS n FROM calls GROUP BY k) s JOIN flights f ON f.delay = s.n",
        "SELECT c.k FROM calls c JOIN events e ON c.k = e.k",
        f"SELECT s.k FROM calls c LEFT JOIN {NEGATED} s ON s.k = c.k",
    ],
)
def test_what_is_left_alone(sql: str) -> None:
    """Not through bag difference, outer joins or aggregates, and not where the negated column is not distinct."""
    assert rewritten(sql) == {}


def test_labels_get_simpler() -> None:
    """Both rewritings leave fewer edges whose rows leave early."""
    view_plan = plan(f"SELECT s.k, f.delay FROM {NEGATED} s JOIN flights f ON f.delay = s.v")
    tables = KnownTables({name: table.label for name, table in view_plan.tables.items()}, {}, {})
    join = view_plan.tree.input  # type: ignore[union-attr]
    (other,) = alternatives(view_plan.tree, COLUMNS)
    negation = other.tree.input  # type: ignore[union-attr]
    assert (tables.label(join), tables.label(negation), tables.label(negation.left)) == (STR, STR, WK)
