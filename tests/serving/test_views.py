"""Views, relations and operators' state as readers see them.

names and planes (a relation) ──> results.1 (state: groups with _state_rows) ──> results (reports short-lived results)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from warehouse.errors import UnknownNameError, UsageError, ViewFailedError
from warehouse.serving import Reader, metadata, table_status
from warehouse.serving.history import epoch_row
from warehouse.serving.visible_tables import inputs_of_view, state_of, visible
from warehouse.time import DAY, MINUTE, to_datetime

from .house import ANCHOR, VIEW_SQL, add_epoch, add_views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .house import House

@pytest.fixture
def viewed(own: House) -> House:
    """The house with a view, its operator's state and a relation, in epoch 3 at slot 5."""
    add_views(own)
    return own


@pytest.fixture(params=["files", "memory"])
def opened(request: pytest.FixtureRequest, viewed: House) -> Iterator[Reader]:
    """A reader of the epoch with a view, from files and with tables in memory."""
    hot = ("names", "planes", "results") if request.param == "memory" else ()
    with Reader.open(viewed.root, hot=hot) as reader:
        yield reader


def test_state_is_listed_nowhere(opened: Reader) -> None:
    """Names, SHOW TABLES, `_files` and suggestions know streams, views and relations only."""
    assert "results.1" not in metadata.tables(opened.epoch)
    assert {"results", "planes"} < set(metadata.tables(opened.epoch))
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
    described = metadata.describe(opened, "results.1")
    assert (described.kind, [column.name for column in described.columns]) == ("state", ["name"])
    assert len(metadata.files(opened, "results.1").files) == 2
    assert sorted(opened.scan("results.1").all()) == [("a",), ("b",)]
    assert opened.scan("results.1", where="name = 'a'").all() == [("a",)]


def test_a_view_is_described_by_its_query(opened: Reader) -> None:
    """Query, inputs through its state (relations included), what becomes of short-lived results; no arrival."""
    described = metadata.describe(opened, "results")
    assert described.view == metadata.ViewDescription(VIEW_SQL, ("names", "planes"), "report", 3, ("results.1",))
    assert (described.kind, described.arrival, described.relation) == ("view", None, None)
    assert inputs_of_view(opened.epoch, "names") == ()


def test_a_relation_shows_its_current_versions(opened: Reader) -> None:
    """A version that has ended is in the files, and in no answer."""
    assert sorted(opened.scan("planes").all()) == [("x",), ("y",)]
    assert opened.probe("planes", ["x"]).all() == [("x",)]
    described = metadata.describe(opened, "planes")
    assert described.relation == metadata.RelationDescription("op", retroactive=True, current_versions=2)
    assert metadata.describe(opened, "names").relation is None


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
    with pytest.raises(UsageError, match=f"is a {kind}; name a view"):
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
    """Status has operators' state with its kind; a relation's live rows are its current versions."""
    statuses = {status.table: status for status in table_status.status(opened, retain=DAY)}
    kinds = {name: statuses[name].kind for name in ("names", "results", "results.1", "planes")}
    assert kinds == {"names": "stream", "results": "view", "results.1": "state", "planes": "relation"}
    assert (statuses["planes"].live_rows, statuses["planes"].rows) == (2, 3)


def test_a_view_that_failed_is_told_and_not_read(viewed: House) -> None:
    """The view's rows are older than the window time: reads are refused with the reason, which status and descriptions show."""
    last = viewed.epochs[-1]
    failed = [
        replace(state, view=replace(state.view, failed="division by zero")) if state.view and state.kind == "view" else state
        for state in last.tables
    ]
    add_epoch(viewed, 4, 6, tuple(failed))
    with Reader.open(viewed.root) as reader:
        with pytest.raises(ViewFailedError, match="division by zero"):
            reader.scan("results")
        with pytest.raises(ViewFailedError):
            reader.probe("results", ["a"])
        with pytest.raises(ViewFailedError):
            reader.sql("SELECT * FROM results")
        described = metadata.describe(reader, "results").view
        assert described is not None
        assert described.failed == "division by zero"
        status = {row.table: row.failed for row in table_status.status(reader, retain=DAY)}
        assert {name for name, why in status.items() if why} == {"results"}
        assert len(reader.restored("results").all()) == 3
        assert reader.sql("SELECT count(*) FROM planes").all() == [(2,)]
        assert reader.sql("SHOW TABLES").all()
