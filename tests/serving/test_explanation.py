"""What is told of views: from the declarations alone, and from the epochs and live rows."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from warehouse.catalog.load import load_catalog
from warehouse.epochs.records import Counts
from warehouse.errors import UnknownNameError, UsageError
from warehouse.serving import Reader
from warehouse.serving.explanation import explained
from warehouse.serving.view_figures import ShortLived, retained
from warehouse.time import HOUR, MINUTE, NEVER, format_instant
from warehouse.views.costs.join_order import JoinInput, batch_cost
from warehouse.views.costs.losses import lost_share
from warehouse.views.costs.negation_cost import negation_placement

from .house import ANCHOR, House, Row, Table, add_epoch, table_state

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.catalog.model import Catalog

STREAM = """
[streams.{name}]
landing = "landing/{name}"
format = "csv"
search_key = "k"
arrival = "at"
columns = {{ k = "string", at = "timestamp", {name}_n = "int" }}
"""
VIEWS = {
    "windows": "SELECT x.k FROM time_window(a, INTERVAL 6 HOURS) x JOIN time_window(b, INTERVAL 3 HOURS) y ON x.k = y.k",
    "varying": "SELECT x.k FROM flights x JOIN b y ON x.k = y.k",
    "forever": "SELECT x.k FROM time_window(a, INTERVAL 6 HOURS, internal => true) x JOIN b y ON x.k = y.k",
    "three": "SELECT x.k FROM a x JOIN b y ON x.k = y.k JOIN c z ON y.k = z.k AND x.a_n = z.c_n",
    "negated": (
        "SELECT x.k, x.a_n, y.b_n FROM (SELECT k, a_n FROM time_window(a, INTERVAL 6 HOURS) w WHERE NOT EXISTS "
        "(SELECT * FROM c WHERE c.c_n = w.a_n)) x JOIN time_window(b, INTERVAL 3 HOURS) y ON x.k = y.k"
    ),
    "groups": "SELECT k, count(*) AS n FROM a GROUP BY k",
}
ROWS = {"a": (12, 3, 6), "b": (8, 4, 8), "c": (5, 5, 2)}
"""For each stream: rows, different values of k, different values of its number."""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Three streams without an end, one with lifetimes that vary, and views over them."""
    streams = "".join(STREAM.format(name=name) for name in (*ROWS, "flights"))
    views = "".join(f'[views.{name}]\nsearch_key = "k"\nsql = "{sql}"\n' for name, sql in VIEWS.items())
    head = f'[warehouse]\nroot = "data"\nanchor = "{format_instant(ANCHOR)}"\nupdate_interval = "1h"\n'
    varying = 'expires = "at + make_interval(0, 0, 0, 0, flights_n)"\nmax_lifetime = "12h"\n'
    (tmp_path / "warehouse.toml").write_text(head + streams + varying + views)
    return load_catalog(tmp_path)


@pytest.fixture
def reader(catalog: Catalog) -> Iterator[Reader]:
    """Two epochs: a first build, and one slot in which 4 rows of a, 2 of b and none of c arrived."""
    house = House(catalog.root, {})
    states = []
    for name, (count, keys, numbers) in ROWS.items():
        columns = (("k", "string", pa.string()), ("at", "timestamp", pa.timestamp("us", "UTC")), (f"{name}_n", "int", pa.int32()))
        rows = (Row((f"k{n % keys}", None, n % numbers), ANCHOR + MINUTE, NEVER, 1) for n in range(count))
        house.tables[name] = Table(name, columns, ("k",), tuple(rows))
        states.append(table_state(house, house.tables[name], 1, 0))
    add_epoch(house, 0, 1, tuple(states), (Counts("a", inserted=8), Counts("b", inserted=6), Counts("c", inserted=5)))
    arrived = (Counts("a", inserted=4), Counts("b", inserted=2))
    results = (Counts("windows", inserted=30, dead=10), Counts("groups", inserted=3))
    add_epoch(house, 1, 2, tuple(states), (*arrived, *results))
    with Reader.open(catalog.root) as opened:
        yield opened


def measured(name: str, **distinct: int) -> JoinInput:
    """Return an input of a join as the model should get it."""
    arriving = {"a": 4, "b": 2, "c": 0}[name]
    return JoinInput(name, arriving, float("inf"), distinct, rows=ROWS[name][0])


def test_a_view_is_explained_before_any_update(catalog: Catalog) -> None:
    """The explanation has the plan and the loss that constant lifetimes lead to expect, but no measured figures."""
    explanation = explained(catalog, "windows", None)
    assert (
        explanation.name, explanation.epoch, explanation.joins, explanation.measured, explanation.placement,
    ) == ("windows", None, (), None, None)  # fmt: skip
    assert next(line.operator for line in explanation.description.lines) == "join"
    assert explanation.predicted == lost_share((6, 3), 1)


@pytest.mark.parametrize(("view", "share"), [("forever", 0), ("varying", None), ("groups", None)])
def test_loss_is_predicted_where_lifetimes_are_constant(catalog: Catalog, view: str, share: int | None) -> None:
    """Nothing that lives for ever is lost; varying lifetimes, and what is no join, predict nothing."""
    assert explained(catalog, view, None).predicted == share


def test_loss_is_measured_by_the_epochs(catalog: Catalog, reader: Reader) -> None:
    """Short-lived results of all; not counted for a view that does not see them; none before its first update."""
    assert explained(catalog, "windows", reader).measured == ShortLived(1, 30, 10)
    assert ShortLived(1, 30, 10).share == Fraction(1, 4)
    assert ShortLived(1, 0, 0).share == 0
    grouped = explained(catalog, "groups", reader).measured
    assert grouped == ShortLived(1, 3, None)
    assert grouped.share is None
    assert explained(catalog, "three", reader).measured is None


def test_an_order_is_costed_by_what_arrives_and_lives(catalog: Catalog, reader: Reader) -> None:
    """Arrivals leave the first epoch out; windows and values are counted in the live rows; the cheapest order is shown."""
    (order,) = explained(catalog, "three", reader).joins
    figures = order.figures
    assert [(side.name, side.arriving, side.rows) for side in figures.inputs] == [("a x", 4, 12), ("b y", 2, 8), ("c z", 0, 5)]
    assert [dict(side.distinct) for side in figures.inputs] == [{"x.a_n": 6, "x.k": 3}, {"y.k": 4}, {"z.c_n": 2, "z.k": 5}]
    a, b, c = measured("a", k=3, n=6), measured("b", k=4), measured("c", k=5, n=2)
    costs = [batch_cost(1)(candidate) for candidate in ((a, b, c), (a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a))]
    assert (figures.cost, figures.dearest, figures.orders) == (min(costs), max(costs), 6)
    cheapest = {"a x": a, "b y": b, "c z": c}
    assert batch_cost(1)(tuple(cheapest[name] for name in figures.order)) == figures.cost


def test_a_join_of_what_is_not_there_yet_has_no_figures(catalog: Catalog, reader: Reader) -> None:
    """A view or stream without a table at the epoch cannot be counted."""
    assert explained(catalog, "varying", reader).joins == ()


def test_a_negation_is_costed_where_it_stands_and_above(catalog: Catalog, reader: Reader) -> None:
    """The model gets the rows of the three tables; its costs are those of the declared plan and of pull-up."""
    explanation = explained(catalog, "negated", reader)
    assert [other.name for other in explanation.description.alternatives] == ["negation pull-up"]
    expected = negation_placement(measured("a", k=3, n=6), measured("b", k=4), measured("c", n=2))
    assert explanation.placement == expected
    assert explained(catalog, "windows", reader).placement is None


def test_epochs_are_those_up_to_the_pinned_one(catalog: Catalog, reader: Reader) -> None:
    """An earlier epoch's reader counts no later one."""
    assert [epoch.number for epoch in retained(reader)] == [0, 1]
    with Reader.open(catalog.root, as_of=ANCHOR + HOUR) as earlier:
        assert [epoch.number for epoch in retained(earlier)] == [0]
        assert explained(catalog, "windows", earlier).measured is None


def test_an_unknown_view_is_told_with_the_nearest(catalog: Catalog) -> None:
    """A stream is no view either."""
    with pytest.raises(UnknownNameError, match='Did you mean "windows"'):
        explained(catalog, "window", None)
    with pytest.raises(UsageError, match="`stream-wh describe a`"):
        explained(catalog, "a", None)
