"""Views, relations and operators' state as readers see them.

names and planes (a relation) ──> results.1 (state: groups with _state_rows) ──> results (reports short-lived results)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.errors import UnknownNameError, UsageError
from warehouse.serving import Reader, catalogue
from warehouse.serving.history import epoch_row
from warehouse.serving.visible import inputs_of_view, state_of, visible
from warehouse.time import DAY, MINUTE, NEVER, to_datetime
from warehouse.updates.records import Counts, SideTable, TableState, ViewRecord
from warehouse.views.algebra import AsOf, Group, Named, Node, Operator, Project, Scan

from .house import ANCHOR, Row, Table, _state, add_epoch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .house import House

SQL = "SELECT name FROM names GROUP BY name"
STATE_COLUMNS = (("name", "string", pa.string()), ("_state_rows", "bigint", pa.int64()))


def _rows(*values: tuple[object, ...], exp: int = NEVER) -> tuple[Row, ...]:
    return tuple(Row(each, ANCHOR + 290 * MINUTE, exp, 5) for each in values)


def _node(table: str, operator: Operator, *, hidden: bool = False) -> Node:
    return Node(table, operator, ("name",), ("name",), "STR", 6, hidden=hidden)


def _restored(root: Path, rows: int) -> SideTable:
    """Write short-lived results of epoch 3, each a minute later than the one before."""
    times = [to_datetime(ANCHOR + 200 * MINUTE + minute * MINUTE) for minute in range(rows + 1)]
    instants = pa.timestamp("us", "UTC")
    table = {
        "name": [f"n{number}" for number in range(rows)],
        "_ts": pa.array(times[:-1], instants),
        "_exp": pa.array(times[1:], instants),
        "_epoch": pa.array([3] * rows, pa.int64()),
    }
    write_deltalake(str(root / "restored" / "results"), pa.table(table))
    delta = DeltaTable(str(root / "restored" / "results"))
    return SideTable("restored/results", str(delta.metadata().id), delta.version(), rows)


@pytest.fixture
def viewed(own: House) -> House:
    """The house with a view, its operator's state and a relation, in epoch 3 at slot 5."""
    text = (("name", "string", pa.string()),)
    states: list[TableState] = []
    for table, kind in (
        (Table("results.1", STATE_COLUMNS, ("name",), _rows(("a", 2), ("b", 1))), "state"),
        (Table("results", text, ("name",), _rows(("a",), ("b",))), "view"),
        (Table("planes", text, ("name",), (*_rows(("x",), ("y",)), *_rows(("x",), exp=ANCHOR + 295 * MINUTE))), "relation"),
    ):
        own.tables[table.name] = table
        made = _state(own, table, 5, 3)
        declared = tuple(column for column in made.declaration.columns if not column.name.startswith("_"))
        states.append(replace(made, kind=kind, declaration=replace(made.declaration, columns=declared)))
    below = AsOf(Scan("names"), "planes", (("name", "name"),), (Named("kind", "`name`"),))
    nodes = {
        "results.1": _node("results.1", Group(below, ("name",), ()), hidden=True),
        "results": _node("results", Project(Scan("results.1"), (Named("name", "`name`"),))),
    }
    states = [
        replace(state, view=ViewRecord("results", SQL, nodes[state.name], "report")) if state.name in nodes else state
        for state in states
    ]
    states[1] = replace(states[1], restored=_restored(own.root, 3))
    declaration = replace(states[2].declaration, op="op", retroactive=True)
    states[2] = replace(states[2], declaration=declaration)
    epoch = add_epoch(own, 3, 5, (*own.epochs[-1].tables, *states))
    own.epochs[-1] = replace(
        epoch,
        counts=(
            Counts("names", rows=10, inserted=10, expired=1, bytes_written=100),
            Counts("results.1", rows=7, inserted=7, bytes_written=30),
            Counts("results", rows=5, inserted=5, dead=3, expired=2, bytes_written=20),
        ),
    )
    return own


@pytest.fixture
def opened(viewed: House) -> Iterator[Reader]:
    """A reader of the epoch with a view."""
    with Reader.open(viewed.root) as reader:
        yield reader


def test_state_is_listed_nowhere(opened: Reader) -> None:
    """Names, SHOW TABLES, `_files` and suggestions know streams, views and relations only."""
    assert "results.1" not in catalogue.tables(opened.epoch)
    assert {"results", "planes"} < set(catalogue.tables(opened.epoch))
    assert [state.name for state in state_of(opened.epoch, "results")] == ["results.1"]
    assert not [row for row in opened.sql("SHOW TABLES").all() if row[0].startswith("results.")]
    files = {name for (name,) in opened.sql("SELECT DISTINCT table_name FROM _files").all()}
    assert {"results", "planes"} < files
    assert "results.1" not in files
    with pytest.raises(UnknownNameError) as caught:
        opened.scan("results.2")
    assert "results.1" not in str(caught.value)
    with pytest.raises(UnknownNameError):
        opened.sql('SELECT * FROM "results.1"')


def test_state_is_found_by_its_exact_name(opened: Reader) -> None:
    """`describe`, `files` and a scan of an operator's state work; its columns of state are not the user's."""
    described = catalogue.describe(opened, "results.1")
    assert (described.kind, [column.name for column in described.columns]) == ("state", ["name"])
    assert len(catalogue.files(opened, "results.1").files) == 2
    assert sorted(opened.scan("results.1").all()) == [("a",), ("b",)]
    assert opened.scan("results.1", where="name = 'a'").all() == [("a",)]


def test_a_view_is_described_by_its_query(opened: Reader) -> None:
    """Query, inputs through its state (relations included), what becomes of short-lived results; no arrival."""
    described = catalogue.describe(opened, "results")
    assert described.view == catalogue.ViewDescription(SQL, ("names", "planes"), "report", 3, ("results.1",))
    assert (described.kind, described.arrival, described.relation) == ("view", None, None)
    assert inputs_of_view(opened.epoch, "names") == ()


def test_a_relation_shows_its_current_versions(opened: Reader) -> None:
    """A version that has ended is in the files, and in no answer."""
    assert sorted(opened.scan("planes").all()) == [("x",), ("y",)]
    assert opened.probe("planes", ["x"]).all() == [("x",)]
    described = catalogue.describe(opened, "planes")
    assert described.relation == catalogue.RelationDescription("op", retroactive=True, current_versions=2)
    assert catalogue.describe(opened, "names").relation is None


def test_short_lived_results(opened: Reader) -> None:
    """The view's columns, the result's life, the epoch that told of it; the earliest first where a limit is given."""
    answer = opened.restored("results")
    assert [name for name, _ in answer.columns] == ["name", "_ts", "_exp", "_epoch"]
    assert sorted(row[0] for row in answer.all()) == ["n0", "n1", "n2"]
    first = to_datetime(ANCHOR + 200 * MINUTE)
    assert opened.restored("results", limit=1).all() == [("n0", first, to_datetime(ANCHOR + 201 * MINUTE), 3)]
    assert opened.restored("results", limit=0).all() == []
    assert opened.scan("results", where="name = 'n0'").all() == []


@pytest.mark.parametrize(("table", "kind"), [("names", "stream"), ("planes", "relation"), ("results.1", "state")])
def test_only_views_have_short_lived_results(opened: Reader, table: str, kind: str) -> None:
    """Another table is refused with what it is."""
    with pytest.raises(UsageError, match=f"is a {kind}; only views"):
        opened.restored(table)


def test_a_view_without_short_lived_results_has_none(viewed: House) -> None:
    """No table beside it: no rows, and the same columns and types."""
    last = viewed.epochs[-1]
    dropped = [replace(state, restored=None) if state.name == "results" else state for state in last.tables]
    with Reader.open(viewed.root) as reader:
        reported = reader.restored("results").columns
    add_epoch(viewed, 4, 6, tuple(dropped))
    with Reader.open(viewed.root) as reader:
        answer = reader.restored("results")
        assert (answer.all(), answer.columns) == ([], reported)
        assert answer.arrow().num_rows == 0


def test_state_does_not_inflate_an_epochs_counts(viewed: House) -> None:
    """Rows are those that arrived, results those of views; bytes are of all that was written."""
    epoch = viewed.epochs[-1]
    row = epoch_row(epoch)
    assert (row.rows, row.inserted, row.dead, row.expired, row.results) == (10, 10, 0, 1, 5)
    assert (row.bytes_written, row.tables) == (150, len(visible(epoch)))


def test_status_tells_what_each_table_is(opened: Reader) -> None:
    """State is there with its kind, for those who ask for all; a relation's live rows are its current versions."""
    found = {each.table: each for each in catalogue.status(opened, retain=DAY)}
    kinds = {name: found[name].kind for name in ("names", "results", "results.1", "planes")}
    assert kinds == {"names": "stream", "results": "view", "results.1": "state", "planes": "relation"}
    assert (found["planes"].live_rows, found["planes"].rows) == (2, 3)
