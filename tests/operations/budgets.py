"""A view under a budget, its exact twin, and views above it: their declarations, files, and requirements."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from warehouse.epochs.journal import read_epoch

from .projects import csv, stream, text

if TYPE_CHECKING:
    from warehouse.promise.units import Ledger

    from .projects import Project

__all__ = ["SQL", "bag", "declared", "land", "ledger", "require_sound"]

SQL = "SELECT a.k, a.x, c.y FROM a JOIN c ON a.k = c.k"


ABOVE: dict[str, dict[str, object]] = {
    "chosen": {"sql": "SELECT k, x FROM some WHERE y > 2", "search_key": "k"},
    "met": {"sql": "SELECT s.k, s.x, s.y, c.y AS z FROM some s JOIN c ON s.k = c.k", "search_key": "k"},
    "both": {"sql": "SELECT k, x FROM some UNION ALL SELECT k, x FROM a", "search_key": "k"},
}
"""A selection, a join and a union over the view under a budget."""


def declared(project: Project, pairs: int | None = 5, sql: str = SQL, *, above: bool = True, **budget: object) -> Project:
    """Declare a join of two streams, exact and under a budget, and views above the view under a budget."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp"}
    project.streams = {
        "a": stream(columns={**columns, "x": "int"}),
        "c": stream(columns={**columns, "y": "int"}, landing="landing/c"),
    }
    project.views = {
        "exact": {"sql": sql, "search_key": "k"},
        "some": {"sql": sql, "search_key": "k", "budget": {"pairs": pairs, **budget} if pairs else budget},
        **({name: dict(keys) for name, keys in ABOVE.items()} if above else {}),
    }
    if "FROM d" in sql:
        project.views["d"] = {"sql": "SELECT upper(k) AS k, x FROM a", "search_key": "k"}
    project.declare()
    return project


def land(project: Project, name: str, left: str, right: str, begins: float, ends: float) -> None:
    """Land a file for each stream, with a row for each letter."""
    for number, (stream_name, keys, column) in enumerate((("a", left, "x"), ("c", right, "y"))):
        lines = [f"{key},{text(begins)},{text(ends)},{position + number}" for position, key in enumerate(keys)]
        project.land(f"{name}.csv", csv(*lines, header=f"k,b,e,{column}"), landing=f"landing/{stream_name}")


def bag(project: Project, table: str, number: int | None = None) -> Counter[tuple[object, ...]]:
    """Return the live rows of a table, as a bag of the user's columns and the end."""
    rows = project.live(table, number)
    return Counter(tuple(value for name, value in sorted(row.items()) if name in "kxyz" or name == "_exp") for row in rows)


def ledger(project: Project, table: str = "some", number: int | None = None) -> Ledger:
    """Return the ledger of the view."""
    epoch = project.epoch if number is None else read_epoch(project.root, number)
    state = epoch.table(table)
    assert state is not None
    assert state.view is not None
    assert state.view.ledger is not None
    return state.view.ledger


def require_sound(project: Project) -> None:
    """Require that the view is a part of the exact view, and that views above it are their queries over that part."""
    produced, exact = bag(project, "some"), bag(project, "exact")
    assert produced <= exact, "no result twice, none that is not one"
    owed = ledger(project)
    missing = (exact - produced).total()
    if owed.exact is not None:  # something came, or was owed
        assert owed.exact == exact.total()
        assert owed.least <= missing <= owed.most
    if owed.complete:
        assert not missing
    if "met" in project.views:
        _require_above(project)


def _require_above(project: Project) -> None:
    rows = project.live("some")
    assert bag(project, "chosen") == Counter((row["_exp"], row["k"], row["x"]) for row in rows if row["y"] > 2)
    both = Counter((row["_exp"], row["k"], row["x"]) for row in (*rows, *project.live("a")))
    assert bag(project, "both") == both
    met = Counter(
        (min(left["_exp"], right["_exp"]), left["k"], left["x"], left["y"], right["y"])
        for left in rows
        for right in project.live("c")
        if left["k"] == right["k"]
    )
    assert bag(project, "met") == met
