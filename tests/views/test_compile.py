from __future__ import annotations

import msgspec
import pytest

from warehouse.catalog.model import DEFAULT_PERIODS, View
from warehouse.time import HOUR, MINUTE
from warehouse.views.algebra import (
    AggregateCall,
    AntiJoin,
    Changes,
    Distinct,
    Filter,
    Group,
    Join,
    Named,
    Node,
    OutputWindow,
    Project,
    Scan,
    TimeWindow,
    Top,
    inputs_of,
    stateful_of,
)

from .catalogs import compiled, plan, project, qualified

CALLS, EVENTS, FLIGHTS = Scan("calls"), Scan("events"), Scan("flights")
COUNT = AggregateCall("n", "count", None, "count(*)")
P30, PDAY = 3, 144
"""p of 30 minutes and of a day at an update interval of 10 minutes."""


def test_one_node() -> None:
    """A join and the operators above it are one table, with its label, its p, and the declared key."""
    view_plan = plan("SELECT c.k, e.v FROM calls c JOIN events e ON c.k = e.k WHERE c.v > 1", "v")
    assert view_plan.nodes == (Node("v", view_plan.tree, ("k", "v"), ("v",), "WK", P30),)


@pytest.mark.parametrize(
    ("sql", "label", "periods"),
    [
        ("SELECT k FROM events", "MON", DEFAULT_PERIODS),
        ("SELECT k FROM calls", "WKS", P30),
        ("SELECT k FROM time_window(events, INTERVAL 25 MINUTES)", "WKS", 3),
        ("SELECT tail FROM flights", "WK", PDAY),
        ("SELECT DISTINCT k FROM events", "MON", DEFAULT_PERIODS),
        ("SELECT DISTINCT k FROM calls", "WK", P30),
        ("SELECT k FROM calls UNION ALL SELECT tail FROM flights", "WK", PDAY),
        ("SELECT count(*) AS n FROM calls", "STR", P30),
        ("SELECT tail FROM planes", "STR", DEFAULT_PERIODS),
        ("SELECT k FROM time_window(events, INTERVAL 1 HOUR, internal => true)", "MON", DEFAULT_PERIODS),
        ("SELECT k FROM row_window(events, 5)", "STR", DEFAULT_PERIODS),
    ],
)
def test_labels_and_periods(sql: str, label: str, periods: int) -> None:
    """A view's table is laid out by the label of its rows and p = ceil(S / interval)."""
    (node,) = plan(sql).nodes
    assert (node.label, node.periods, node.hidden) == (label, periods, False)


GROUPED = "SELECT k AS key, count(*) AS n FROM calls GROUP BY k"


def test_a_group_is_stored_whole() -> None:
    """A group whose keys and aggregates are all kept is one node, renamed inside."""
    (node,) = plan(GROUPED).nodes
    assert node.operator == Group(project(CALLS, "key = `k`"), ("key",), (COUNT,))
    assert (node.columns, node.changed_key, node.changed_by) == (("key", "n"), ("key",), (("key",),))


def test_a_group_renamed_from_outside() -> None:
    """Renaming from outside reaches the group too, even where a new name is that of an argument."""
    (node,) = plan("SELECT g.k AS v, g.s AS total FROM (SELECT k, sum(v) AS s FROM calls GROUP BY k) g").nodes
    assert node.operator == Group(
        project(CALLS, "v = `k`", "#1 = `v`"), ("v",), (AggregateCall("total", "sum", "#1", "sum(`#1`)"),)
    )
    assert (node.columns, node.changed_key) == (("v", "total"), ("v",))


def test_columns_in_the_declared_order() -> None:
    """The stored columns are in the order of the SELECT."""
    (node,) = plan("SELECT count(*) AS n, k FROM calls GROUP BY k", "k").nodes
    assert node.columns == ("n", "k")


@pytest.mark.parametrize(
    ("sql", "above"),
    [
        (GROUPED + " HAVING count(*) > 1", Filter(Scan("v.1"), "`n` > 1")),
        ("SELECT k AS key, count(*) + 1 AS m FROM calls GROUP BY k", project("v.1", "key", "m = `k1` + 1")),
        ("SELECT count(*) AS n FROM calls GROUP BY k", project("v.1", "n")),
    ],
)
def test_what_a_group_cannot_hold(sql: str, above: object) -> None:
    """A filter, a computed column or a lost key above a group is a table of its own over a hidden group."""
    group, view = plan(sql).nodes
    assert (group.table, group.hidden, group.label) == ("v.1", True, "STR")
    assert isinstance(group.operator, Group)
    assert group.changed_key == group.operator.keys
    assert view.operator == above
    assert (view.label, view.changed_key, view.changed_by) == ("STR", (), ())


ANTI = "SELECT {} FROM flights f WHERE NOT EXISTS (SELECT 1 FROM weather w WHERE w.airport = f.origin)"


def test_a_negation_with_its_key() -> None:
    """A negation whose key is stored is one node, recomputed by key."""
    (node,) = plan(ANTI.format("tail, origin AS place")).nodes
    assert isinstance(stateful_of(node.operator), AntiJoin)
    assert (node.label, node.changed_key, node.changed_by) == ("STR", ("place",), (("f.origin",), ("w.airport",)))


def test_a_negation_without_its_key() -> None:
    """A negation whose key the view drops is hidden, with the names that Delta can store, sorted for its reader."""
    hidden, view = plan(ANTI.format("tail")).nodes
    assert (hidden.columns, hidden.search_key) == (("f_tail", "f_origin"), ("f_tail",))
    assert (hidden.changed_key, hidden.changed_by) == (("f_origin",), (("f.origin",), ("w.airport",)))
    assert view.operator == project("v.1", "tail = `f_tail`")
    assert view.changed_key == ()


def test_bag_difference() -> None:
    """A bag difference is recomputed by whole rows."""
    (node,) = plan("SELECT k, v FROM calls EXCEPT ALL SELECT k, v FROM events").nodes
    assert (node.changed_key, node.changed_by) == (("k", "v"), (("k", "v"), ("k", "v")))


@pytest.mark.parametrize(
    ("side", "columns", "key"),
    [("LEFT", "c.k, e.v", ("k",)), ("RIGHT", "e.k, c.v", ("k",)), ("FULL", "c.k, e.v", ())],
)
def test_outer_joins(side: str, columns: str, key: tuple[str, ...]) -> None:
    """A one-sided outer join is recomputed by the key of the side that is kept; a full one as a whole."""
    (node,) = plan(f"SELECT {columns} FROM calls c {side} JOIN events e ON c.k = e.k").nodes
    assert node.changed_key == key
    assert node.changed_by == ((("c.k",), ("e.k",)) if key else ())


def test_an_outer_join_without_its_key() -> None:
    """The other side's key may be null, so it does not do: the join is hidden."""
    hidden, _ = plan("SELECT e.k, c.v FROM calls c LEFT JOIN events e ON c.k = e.k").nodes
    assert hidden.changed_key == ("c_k",)


def test_first_rows() -> None:
    """First rows of each partition are recomputed by partition, those of all rows as a whole."""
    sql = "SELECT k, v FROM calls QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) <= 2"
    assert [(node.changed_key, node.changed_by) for node in plan(sql).nodes] == [(("k",), (("k",),))]
    (node,) = plan("SELECT k, v FROM calls ORDER BY v LIMIT 2").nodes
    assert (node.changed_key, node.changed_by) == ((), ())
    (window,) = plan("SELECT v, k FROM row_window(calls, 2, k)").nodes
    assert (window.changed_key, window.changed_by) == (("k",), (("k",),))


def test_a_join_with_rows_that_leave_early() -> None:
    """Such a join is recomputed by the columns on which all inputs agree, whichever of them is stored."""
    sql = "SELECT {} FROM flights f JOIN cities c ON c.code = f.origin JOIN weather w ON w.airport = c.code"
    (node,) = plan(sql.format("w.airport, f.tail")).nodes
    assert isinstance(stateful_of(node.operator), Join)
    assert (node.label, node.changed_key) == ("STR", ("airport",))
    assert node.changed_by == (("f.origin",), ("c.code",), ("w.airport",))
    hidden, _ = plan(sql.format("f.tail")).nodes
    assert hidden.changed_key == ("f_origin",)
    chain = "SELECT f.tail FROM flights f JOIN cities c ON c.code = f.origin JOIN weather w ON w.airport = f.dest"
    (whole,) = plan(chain).nodes
    assert (whole.changed_key, whole.changed_by) == ((), ())


def test_distinct_by_counting() -> None:
    """DISTINCT over rows that leave early is a group of all columns; the count is not stored."""
    group, view = plan("SELECT DISTINCT n AS times FROM (SELECT k, count(*) AS n FROM calls GROUP BY k)").nodes
    assert group.columns == ("k", "n")
    counted = Group(project("v.1", "times = `n`"), ("times",), (AggregateCall("rows", "count", None, "count(*)"),))
    assert view.operator == Project(counted, (Named("times", "`times`"),))
    assert (view.columns, view.changed_key, view.changed_by) == (("times",), ("times",), (("times",),))


def test_distinct_is_stored_whole() -> None:
    """Renaming reaches DISTINCT; what loses a column, computes or filters is above it in a table of its own."""
    (node,) = plan("SELECT d.k AS key, d.v FROM (SELECT DISTINCT k, v FROM calls) d").nodes
    assert node.operator == Distinct(project(CALLS, "key = `k`", "v"))
    for sql in ("SELECT k FROM (SELECT DISTINCT k, v FROM calls)", "SELECT k FROM (SELECT DISTINCT k FROM calls) WHERE k > ''"):
        hidden, view = plan(sql).nodes
        assert isinstance(hidden.operator, Distinct)
        assert stateful_of(view.operator) is None
        assert view.label == "WK"


def test_semi_joins() -> None:
    """EXISTS joins the distinct keys of the sub-query, a hidden table sorted by them."""
    keys, view = plan("SELECT v FROM calls WHERE k IN (SELECT k FROM events)").nodes
    assert keys.operator == Distinct(project(EVENTS, "events_k = `k`"))
    assert (keys.columns, keys.search_key, keys.label) == (("events_k",), ("events_k",), "MON")
    core = stateful_of(view.operator)
    assert isinstance(core, Join)
    assert core.inputs == (qualified("calls", CALLS, ["k", "v"]), project("v.1", "events.k = `events_k`"))


def test_hidden_tables_are_sorted_for_their_readers() -> None:
    """State below a join is sorted by the join's columns, below a group by its keys, else by all that can be a key."""
    grouped = "(SELECT origin, dest, count(*) AS n FROM flights GROUP BY ALL)"
    sql = f"SELECT g.n, w.wind FROM {grouped} g JOIN weather w ON w.airport = g.dest"
    assert plan(sql).nodes[0].search_key == ("dest",)
    joined = "(SELECT f.origin, w.wind, f.dest FROM flights f JOIN weather w ON w.airport = f.origin)"
    assert plan(f"SELECT dest, count(*) AS m FROM {joined} GROUP BY dest").nodes[0].search_key == ("dest",)
    assert plan(f"SELECT count(wind) AS m FROM {joined}").nodes[0].search_key == ("f_origin", "f_dest", "w_airport")
    join, distinct, view = plan(f"SELECT dest FROM (SELECT DISTINCT wind, dest FROM {joined})").nodes
    assert (join.search_key, distinct.search_key, view.search_key) == (("dest",), ("dest",), ("dest",))


def test_aggregates_without_columns() -> None:
    """A count of joined rows needs no column of them; the hidden join is stored with those it has."""
    join, view = plan("SELECT count(*) AS n FROM calls c JOIN events e ON c.k = e.k").nodes
    assert join.columns == ("c_k", "e_k")
    assert view.operator == Group(project("v.1"), (), (COUNT,))
    assert (view.changed_key, view.changed_by) == ((), ())


def test_internal_windows() -> None:
    """A flat join over internal windows is appended; state below keeps its windows as if they were external."""
    sql = "SELECT e.k FROM time_window(events, INTERVAL 1 HOUR, internal => true) e JOIN calls c ON c.k = e.k"
    (node,) = plan(sql).nodes
    assert (node.label, node.periods) == ("WK", P30)
    assert "internal=True" in str(node.operator)
    (node,) = plan(sql.replace("calls c", "time_window(calls, INTERVAL 5 MINUTES, internal => true) c")).nodes
    assert (node.label, node.periods) == ("MON", DEFAULT_PERIODS)
    group, view = plan(
        "SELECT k, count(*) AS n FROM time_window(events, INTERVAL 1 HOUR, internal => true) GROUP BY k HAVING count(*) > 1"
    ).nodes
    assert group.operator == Group(project(TimeWindow(EVENTS, HOUR), "k"), ("k",), (COUNT,))
    assert (group.label, group.periods) == ("STR", 6)
    assert view.operator == Changes(Filter(Scan("v.1"), "`n` > 1"))
    assert (view.label, view.periods) == ("MON", DEFAULT_PERIODS)


def test_output_windows() -> None:
    """An output window is a node over the hidden results; by time it is a wave, by rows a keyed table."""
    sql = "SELECT c.k FROM calls c JOIN events e ON c.k = e.k"
    results, view = plan(sql, output_length=25 * MINUTE).nodes
    assert results.label == "WK"
    assert view.operator == OutputWindow(Scan("v.1"), 25 * MINUTE, None)
    assert (view.label, view.periods) == ("WKS", 3)
    assert plan(sql, output_rows=5).nodes[-1].label == "STR"


def test_equal_state_is_kept_once() -> None:
    """The same sub-query twice is one hidden table when its readers look it up alike."""
    counts = "WITH c AS (SELECT k, count(*) AS n FROM calls GROUP BY k)"
    sql = f"{counts} SELECT k FROM c WHERE n > 1 UNION ALL SELECT k FROM c WHERE n < 1"
    assert [node.table for node in plan(sql).nodes] == ["v.1", "v"]


def test_views_over_views() -> None:
    """A view reads another view as a table, with its label, its S and its columns."""
    first = View("pairs", "SELECT c.k, e.v FROM calls c JOIN events e ON c.k = e.k", ("k",))
    twice = "SELECT p.k, f.delay FROM time_window(pairs, INTERVAL 20 MINUTES) p JOIN flights f ON f.tail = p.k"
    second = View("twice", twice, ("k",))
    third = View("counts", "SELECT k, count(*) AS n FROM twice GROUP BY k", ("k",))
    plans = compiled(third, second, first)
    assert [view_plan.name for view_plan in plans] == ["pairs", "twice", "counts"]
    assert [view_plan.reads for view_plan in plans] == [("calls", "events"), ("flights", "pairs"), ("twice",)]
    assert [view_plan.nodes[-1].periods for view_plan in plans] == [P30, 2, 2]
    assert [str(view_plan.label) for view_plan in plans] == ["WK", "WK", "STR"]


STORABLE = [
    "SELECT c.k, e.v FROM calls c JOIN events e ON upper(c.k) = e.k",
    "SELECT DISTINCT x.`a-b` AS a FROM (SELECT k AS `a-b`, count(*) AS n FROM calls GROUP BY k) x",
    "SELECT c.k FROM calls c JOIN (SELECT DISTINCT k AS x, v FROM events) e ON c.k = e.x WHERE c.v IN (SELECT v FROM calls)",
    "SELECT k FROM calls INTERSECT SELECT k FROM events",
    "SELECT k FROM (SELECT k FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.v = c.v)) a JOIN calls b USING (k)",
]


@pytest.mark.parametrize("sql", STORABLE)
def test_every_node_can_be_kept(sql: str) -> None:
    """A node has one operator with state over stateless inputs; its columns can be stored; it reads only earlier tables."""
    nodes = plan(sql).nodes
    readable = {"calls", "events"}
    for node in nodes:
        core = stateful_of(node.operator)
        for operator in inputs_of(core) if core is not None else (node.operator,):
            below = _every(operator)
            assert not [part for part in below if isinstance(part, (Join, Distinct, Group, AntiJoin, Top, Changes, OutputWindow))]
            assert {part.table for part in below if isinstance(part, Scan)} <= readable
        if node.hidden:
            assert all(name.replace("_", "a").isalnum() and name.isascii() and name[0].isalpha() for name in node.columns)
        assert set(node.changed_key) <= set(node.columns)
        assert set(node.search_key) <= set(node.columns)
        assert len({name.lower() for name in node.columns}) == len(node.columns)
        readable.add(node.table)
    assert msgspec.json.decode(msgspec.json.encode(nodes), type=tuple[Node, ...]) == nodes


def _every(operator: object) -> list[object]:
    return [operator, *(part for child in inputs_of(operator) for part in _every(child))]  # type: ignore[arg-type]
