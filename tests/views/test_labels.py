from __future__ import annotations

import pytest

from warehouse.catalog.model import View
from warehouse.time import HOUR, MINUTE, SECOND
from warehouse.views.algebra import (
    AntiJoin,
    AsOf,
    BagDifference,
    Changes,
    Distinct,
    Equality,
    Filter,
    Group,
    Join,
    Operator,
    OuterJoin,
    OutputWindow,
    Project,
    Scan,
    TimeWindow,
    Top,
    UnionAll,
)
from warehouse.views.labels import MON, STR, WK, Label, label
from warehouse.views.language.intervals import interval_of
from warehouse.views.language.scope import stream_label
from warehouse.views.lifetimes import lifetime

from .catalogs import plan, problems, stream

T10, T5 = Label("WKS", 10), Label("WKS", 5)

# The leaves of TV-14: S a stream without window, W an external time window, N a count window, R a relation.
S = Scan("s")
W = W1 = W2 = W3 = TimeWindow(Scan("s"), 10)
HALF = TimeWindow(Scan("s"), 5)
N = Top(Scan("s"), (), (), 2)
R = Scan("r")
TABLES = {"s": MON, "r": STR, "wk": WK}


def join(*inputs: Operator) -> Join:
    """Return a join of inputs on one column."""
    return Join(inputs, tuple(Equality(0, "a", number, "a") for number in range(1, len(inputs))))


def lookup(below: Operator) -> AsOf:
    """Return the join with a non-retroactive relation."""
    return AsOf(below, "nrr", (("a", "a"),), ())


def anti(left: Operator, right: Operator) -> AntiJoin:
    """Return a negation."""
    return AntiJoin(left, right, (("a", "b"),))


def internal(length: int) -> TimeWindow:
    """Return an internal window."""
    return TimeWindow(Scan("s"), length, internal=True)


TV_14: list[tuple[str, Operator, Label]] = [
    ("select(W)", Filter(W, "`a` = 1"), T10),
    ("project(W)", Project(W, ()), T10),
    ("select(N)", Filter(N, "`a` = 1"), STR),
    ("W1 union W2", UnionAll((W1, W2)), T10),
    ("W(10) union W(5)", UnionAll((W, HALF)), WK),
    ("W1 union (W2 join W3)", UnionAll((W1, join(W2, W3))), WK),
    ("W union N", UnionAll((W, N)), STR),
    ("W union S", UnionAll((W, S)), WK),
    ("W1 join W2", join(W1, W2), WK),
    ("W join NRR", lookup(W), T10),
    ("(W1 join W2) join NRR", lookup(join(W1, W2)), WK),
    ("(W1 - W3) join W2", join(anti(W1, W3), W2), STR),
    ("(W1 join W2) - W3", anti(join(W1, W2), W3), STR),
    ("W join R", join(W, R), STR),
    ("distinct(W)", Distinct(W), WK),
    ("distinct(W1 join W2)", Distinct(join(W1, W2)), WK),
    ("distinct(W1 - W2)", Distinct(anti(W1, W2)), STR),
    ("distinct(N)", Distinct(N), STR),
    ("group(W)", Group(W, ("a",), ()), STR),
    ("group(S)", Group(S, ("a",), ()), STR),
    ("distinct(S)", Distinct(S), MON),
    ("select(S)", Filter(S, "`a` = 1"), MON),
    ("S1 join S2", join(S, S), MON),
    ("S join NRR", lookup(S), MON),
    ("S1 - S2", anti(S, S), STR),
    ("S1 - S2, as bags", BagDifference(S, S), STR),
    ("S join R", join(S, R), STR),
    ("S outer join S", OuterJoin(S, S, "left", (("a", "a"),)), STR),
    ("window of a window", TimeWindow(W, 5), T5),
    ("longer window of a window", TimeWindow(HALF, 10), T5),
    ("window of varying lifetimes", TimeWindow(Scan("wk"), 5), WK),
    ("output window, time", OutputWindow(join(S, S), 10), T10),
    ("output window, rows", OutputWindow(join(S, S), None, 10), STR),
]


@pytest.mark.parametrize(("name", "tree", "expected"), TV_14, ids=[name for name, _, _ in TV_14])
def test_tv_14(name: str, tree: Operator, expected: Label) -> None:
    """Labels propagate as the decision function of section 3 says; without internal windows both labels agree."""
    assert label(tree, TABLES) == expected, name
    assert label(tree, TABLES, output=True) == expected


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        (
            (
                "SELECT a.tail FROM (SELECT tail FROM flights f WHERE NOT EXISTS (SELECT 1 FROM calls c WHERE c.k = f.tail)) a"
                " JOIN planes p ON p.tail = a.tail"
            ),
            "the relation planes joined with a, whose rows can leave before their own end",
        ),
        (
            (
                "SELECT a.name FROM (SELECT c.name FROM flights f JOIN cities c ON c.code = f.origin) a"
                " JOIN mayors m ON m.name = a.name"
            ),
            "the relation mayors joined with a, whose rows can leave before their own end",
        ),
    ],
)
def test_tv_14_rejected(sql: str, found: str) -> None:
    """(W1 - W3) join NRR and (W join R1) join R2 are rejected: a relation's input must not be STR (section 6.1)."""
    (problem,) = problems(View("v", sql, ("tail",)))
    assert problem.found.startswith(found)


def test_tv_14_inner_edge() -> None:
    """Below the negation of (W1 join W2) - W3 the edge is WK: only the root sees rows that leave early."""
    tree = anti(join(W1, W2), W3)
    assert (label(tree.left, TABLES), label(tree, TABLES)) == (WK, STR)


INTERNAL: list[tuple[str, Operator, Label, Label]] = [
    ("one internal window", Filter(internal(10), "`a` = 1"), T10, MON),
    ("W internal join W internal", join(internal(10), internal(5)), WK, MON),
    ("W internal join W external", join(internal(10), HALF), WK, WK),
    ("S join W internal", join(S, internal(5)), WK, MON),
    ("over rows that expire", TimeWindow(Scan("wk"), 5, internal=True), WK, MON),
    ("group(W internal)", Changes(Group(internal(10), ("a",), ())), MON, MON),
]


@pytest.mark.parametrize(("name", "tree", "state", "output"), INTERNAL, ids=[name for name, *_ in INTERNAL])
def test_internal_windows(name: str, tree: Operator, state: Label, output: Label) -> None:
    """The state label takes internal windows as external, the output label as ending nothing (section 4.1)."""
    assert (label(tree, TABLES), label(tree, TABLES, output=True)) == (state, output), name


def test_labels_in_words() -> None:
    """A label prints in the notation of the sheets."""
    assert [str(pattern) for pattern in (MON, Label("WKS", 90 * MINUTE), WK, STR)] == ["MON", "WKS(1h30m)", "WK", "STR"]


@pytest.mark.parametrize(
    ("expires", "expected"),
    [
        (None, MON),
        ("ts + INTERVAL 1 HOUR", Label("WKS", HOUR)),
        ("ts + interval '90' minutes", Label("WKS", 90 * MINUTE)),
        ("ts + INTERVAL '1 hour 30 minutes'", Label("WKS", 90 * MINUTE)),
        ("ts + INTERVAL 1 MONTH", WK),
        ("ts + INTERVAL '2 years 1 day'", WK),
        ("ts + INTERVAL 1 HOUR + INTERVAL 1 MINUTE", WK),
        ("timestampadd(SECOND, v, ts)", WK),
    ],
)
def test_leaves(expires: str | None, expected: Label) -> None:
    """A stream's label comes of `expires`; a constant lifetime is known exactly (DESIGN 9)."""
    leaf = stream("calls", expires=expires, lifetime=HOUR, key="k")
    assert stream_label(leaf) == expected
    assert leaf.label == expected.kind  # that its own table is cut by


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INTERVAL 1 HOUR", HOUR),
        ("INTERVAL '1' HOUR", HOUR),
        ("INTERVAL 2 HOURS 3 MINUTES", 2 * HOUR + 3 * MINUTE),
        ("INTERVAL '2 hours 3 minutes'", 2 * HOUR + 3 * MINUTE),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", 26 * HOUR + 3 * MINUTE + 4 * SECOND + 500_000),
        ("INTERVAL '02:03' HOUR TO MINUTE", 2 * HOUR + 3 * MINUTE),
        ("INTERVAL 1.5 SECONDS", SECOND + 500_000),
        ("INTERVAL 1 WEEK", 7 * 24 * HOUR),
        ("INTERVAL -1 HOUR", -HOUR),
        ("INTERVAL '-1 02:00' DAY TO MINUTE", -26 * HOUR),
        ("INTERVAL 1 MONTH", None),
        ("INTERVAL '1-2' YEAR TO MONTH", None),
        ("INTERVAL v HOURS", None),
        ("INTERVAL '1'", None),
        ("INTERVAL '1 hour 2 moons'", None),
        ("'1 hour'", None),
        ("1, 2", None),
        ("(", None),
    ],
)
def test_intervals(sql: str, expected: int | None) -> None:
    """Constant day-time intervals are exact; others are none."""
    assert interval_of(sql) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (Scan("day"), 24),
        (Scan("ever"), None),
        (TimeWindow(Scan("day"), 5), 5),
        (TimeWindow(Scan("hour"), 5), 1),
        (TimeWindow(Scan("ever"), 5), 5),
        (join(Scan("day"), Scan("hour")), 1),
        (join(Scan("day"), Scan("ever")), 24),
        (UnionAll((Scan("day"), Scan("hour"))), 24),
        (UnionAll((Scan("day"), Scan("ever"))), None),
        (AsOf(Scan("day"), "r", (), ()), 24),
        (Distinct(Scan("day")), 24),
        (anti(Scan("hour"), Scan("day")), 24),
        (Changes(Group(Scan("day"), (), ())), None),
        (OutputWindow(Scan("day"), 5), 5),
    ],
)
def test_lifetimes(tree: Operator, expected: int | None) -> None:
    """S of a view: of a join the least, of a union the largest, else the inputs' largest (DESIGN 9)."""
    assert lifetime(tree, {"day": 24, "hour": 1, "ever": None}) == expected


def test_lifetimes_under_internal_windows() -> None:
    """An internal window bounds the state and not the answer."""
    tree = join(TimeWindow(Scan("day"), 5, internal=True), TimeWindow(Scan("day"), 3))
    assert lifetime(tree, {"day": 24}) == 3
    assert lifetime(TimeWindow(Scan("day"), 5, internal=True), {"day": 24}, output=True) is None
    assert lifetime(tree, {"day": 24}, output=True) == 3


def test_tv_10() -> None:
    """A selection is not moved through a count window: the window counts rows before it, unless it is written inside."""
    after = plan("SELECT k FROM row_window(events, 2) WHERE k = 'a'")
    before = plan("SELECT k FROM row_window((SELECT k FROM events WHERE k = 'a'), 2)")
    assert after.tree == Project(Filter(Top(Scan("events"), (), (), 2), "`k` = 'a'"), after.tree.columns)  # type: ignore[union-attr]
    assert isinstance(before.tree, Top)
    assert isinstance(before.tree.input, Project)
    assert isinstance(before.tree.input.input, Filter)
    assert after.label == before.label == STR
    joined = plan("SELECT r.v FROM row_window(events, 2) r JOIN calls c ON c.k = r.k WHERE r.k = 'a'")
    assert joined.nodes[0].table == "v.1"
    assert "Filter" not in str(joined.nodes[0].operator).split("Top")[1]
