"""Coalesced tables: at every epoch the rows equal the model's over all points that had arrived.

Updates at 1, 2, 3, 5 and 6 (a window of four hours, or the six newest points); files by the update that loads them::

    hour   0.....1.....2.....3.....4.....5.....6
    1        p q  p                                                p dies at once
    2        L    p q   D                                          L is late, D waits for slot 3
    3                   p  p
    5        X      L        R  q                                  X is too late for the window, R repeats a point
    6                                                              nothing: the edge alone moves
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from deltalake import DeltaTable

from tests.checking.test_check import rewrite
from tests.coalescing.model import Model, Reading, Run
from warehouse.checking.check import check
from warehouse.epochs.journal import read_epoch
from warehouse.epochs.points import Point
from warehouse.errors import UsageError
from warehouse.limits import limited, limits
from warehouse.operations.migrate import MigrationRequest
from warehouse.operations.update import UpdateOptions
from warehouse.serving import Reader
from warehouse.steps.coalesced_as_arrays import ArrayReplacement
from warehouse.steps.stream_source import StreamSource
from warehouse.time import to_micros
from warehouse.views.maintenance.inputs import NodeTable

from .projects import ANCHOR, Project, StoppedError, at, csv, stop_at, stream, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from warehouse.serving import Answer

HOUR = 3_600_000_000
Row = tuple[str, int | None, float, float]
"""Group, value, arrival, end."""
ROWS: dict[int, list[Row]] = {
    1: [("p", 1, 0.2, 0.3), ("q", 1, 0.3, 9), ("p", 1, 0.9, 0.9)],
    2: [("p", 2, 0.5, 9), ("p", 1, 1.5, 3), ("q", None, 1.6, 3), ("", 7, 2.5, 4)],
    3: [("p", 1, 2.2, 9), ("p", 1, 2.9, 9)],
    5: [("p", 5, 0.7, 9), ("q", 1, 1.8, 9), ("p", 9, 2.9, 9), ("q", 3, 4.5, 9)],
    6: [],
}
SAME: dict[str, Callable[[Any, Any], bool]] = {
    "by_value": lambda before, now: before == now,
    "rising": lambda before, now: None not in (before, now) and now >= before,
    "truth": lambda before, now: before == now,
    "newest": lambda before, now: before == now,
}


VIEWS = {
    "lasting": "SELECT k, v, valid_from, valid_to, members FROM by_value WHERE members > 1",
    "together": """
        SELECT x.k, y.k AS other, x.v, y.members FROM by_value x JOIN by_value y ON x.v = y.v
        WHERE x.k < y.k AND x.valid_from < y.valid_to AND y.valid_from < x.valid_to""",
}


def declared(directory: Path, spark: SparkSession) -> Project:
    """Return a stream of groups and values, and coalesced tables of it."""
    columns = {"k": "string", "v": "int", "b": "timestamp", "e": "timestamp"}
    streams = {"a": stream(columns=columns, max_lifetime="12h")}
    base = {"from": "a", "group_by": "k"}
    tables = {
        "by_value": {**base, "values": "v", "window": "4h"},
        "rising": {**base, "same": "v >= previous.v", "window": "4h", "search_key": ["k", "valid_to"]},
        "truth": {**base, "of": "v > 1", "window": "4h"},
        "newest": {**base, "values": "v", "rows": 6},
    }
    views = {name: {"sql": sql, "search_key": "k"} for name, sql in VIEWS.items()}
    return Project(directory, spark, streams, coalesced=tables, views=views)


def land(project: Project, hour: int) -> None:
    """Put the rows of an hour into a file."""
    lines = (f"{k},{'' if v is None else v},{text(begins)},{text(ends)}" for k, v, begins, ends in ROWS[hour])
    project.land(f"{hour}.csv", csv(*lines, header="k,v,b,e"))


def stamp(hours: float) -> int:
    """Return the microseconds of an instant of these rows."""
    return ANCHOR + round(hours * HOUR)


def instant(hours: float) -> datetime:
    """Return the same instant as a Python value."""
    return datetime.fromtimestamp(stamp(hours) / 10**6, tz=UTC)


def models() -> dict[str, Model]:
    """Return a model of each table."""
    return {
        name: Model(window=None if name == "newest" else 4 * HOUR, rows=6 if name == "newest" else None, alike=alike)
        for name, alike in SAME.items()
    }


def move(every: dict[str, Model], hours: int, before: int) -> None:
    """Move the models as an update does: deferred points are added in their slot."""
    loaded = [row for hour, rows in ROWS.items() if hour <= hours for row in rows]
    earlier = [row for hour, rows in ROWS.items() if hour <= before for row in rows if row[2] <= before]
    batch = [row for row in loaded if row[2] <= hours]
    for row in earlier:
        batch.remove(row)
    for name, model in every.items():
        points: list[Reading] = [(k or None, stamp(begins), v) for k, v, begins, _ in batch]
        if name == "truth":
            points = [(k, at, None if v is None else v > 1) for k, at, v in points]
        model.arrive(points, stamp(hours))


def runs(rows: list[dict[str, Any]]) -> list[Run]:
    """Return rows as the model has them; the value is the first member's."""
    shown = [next(name for name in ("v", "first_v", "holds") if name in row) for row in rows]
    stored_runs = [
        (row["k"], row[name], to_micros(row["valid_from"]), to_micros(row["valid_to"]), row["members"])
        for row, name in zip(rows, shown, strict=True)
    ]
    return sorted(stored_runs, key=lambda run: (run[0] is not None, run[0] or "", run[2]))


def expected(model: Model) -> list[Any]:
    """Return the rows of the model, with the number of members."""
    return [(*run[:4], len(run[4])) for run in model.table()]


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """All updates made: of tables by value some in the driver, two as arrays, one by Spark; these put closed rows into cells."""
    project = declared(tmp_path_factory.mktemp("coalesced"), spark)
    for hour in ROWS:
        land(project, hour)
        arrays = 0 if hour == 5 else limits().array_values
        rows = 1 if hour in (2, 5, 6) else limits().driver_rows
        written = 0 if hour == 2 else limits().written_rows  # Spark writes the points, and hands over none of their columns
        bounds = limited(driver_rows=rows, written_rows=written, array_values=arrays, apart_rows=0)
        with bounds, made_as_arrays(few=hour != 2) as made:
            project.update(hour)
        assert ("3 stored points" in made) == (hour == 2), (hour, made)
        assert ("k,v" in made, "by_value for views" in made) == (hour in (2, 6),) * 2, (hour, made)
        assert in_cells(project, "by_value") or hour not in (2, 5), hour
        assert not in_cells(project, "newest")
    return project


def in_cells(project: Project, name: str) -> bool:
    """Return whether a table has closed rows in their own cells."""
    state = project.epoch.table(name)
    assert state is not None
    return any(part.exp_block for part in state.partitions)


@contextmanager
def made_as_arrays(*, few: bool) -> Iterator[list[str]]:
    """Record, of each table made as arrays, its first columns, its changes for views, and the source of its points.

    Points are read as their stream has stored them, unless they are few, or some were dead on arrival.
    """
    made, moved = [], ArrayReplacement.losses.fget
    inserted, loaded = NodeTable.inserted_in_driver, NodeTable.stored_arrivals_in_driver

    def noted(self: ArrayReplacement) -> dict[str, int]:
        made.append(",".join(self.own.column_names[:2]))
        return moved(self)

    def told(self: NodeTable) -> pa.Table | None:
        made.append(f"{self.name} for views")
        return inserted(self)

    def stored(self: NodeTable, columns: pa.Schema, most: int) -> pa.Table | None:
        rows = loaded(self, columns, most)
        made.append(f"{0 if rows is None else rows.num_rows} stored points")
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodeTable, "stored_arrivals_in_driver", stored)
        if not few:
            patch.setattr(StreamSource, "is_few", False)
        patch.setattr(ArrayReplacement, "losses", property(noted))
        patch.setattr(NodeTable, "inserted_in_driver", told)
        yield made


def test_the_rows_of_every_epoch_are_those_of_the_model(moved: Project) -> None:
    """With dead, late, deferred and repeated points; the window's edge cuts rows of groups without new points."""
    all_models = models()
    for epoch, (hour, before) in enumerate(zip(ROWS, (0, *ROWS), strict=False)):
        move(all_models, hour, before)
        with Reader(moved.root, read_epoch(moved.root, epoch)) as reader:
            for name, model in all_models.items():
                assert runs(reader.scan(name).arrow().to_pylist()) == expected(model), (epoch, name)


def table(project: Project, name: str = "by_value") -> list[Run]:
    """Return the rows of a table at the newest epoch."""
    with Reader.open(project.root) as reader:
        return runs(reader.scan(name).arrow().to_pylist())


def test_views_on_top_are_their_queries_at_every_epoch(moved: Project) -> None:
    """After arrivals, expirations and cuts: a selection, and pairs of groups with one value at one time."""
    seen = dict.fromkeys(VIEWS, 0)
    for epoch in moved.numbers:
        with Reader(moved.root, read_epoch(moved.root, epoch)) as reader:
            for name, sql in VIEWS.items():
                scanned = reader.scan(name).arrow().to_pylist()
                queried = reader.sql(sql).arrow().to_pylist()
                assert sorted(map(repr, scanned)) == sorted(map(repr, queried)), (epoch, name)
                seen[name] += len(scanned)
    assert all(seen.values())


def test_a_cut_row_is_a_change(moved: Project) -> None:
    """The edge cuts a row of a group without arrivals: the change has the row before and after; a row that left has expired."""
    with Reader.open(moved.root) as reader:
        changes = reader.changes("by_value", since=3).arrow().to_pylist()
    cut = [(row["k"], row["_change_type"], to_micros(row["valid_from"]), row["members"]) for row in changes]
    assert ("p", "update_preimage", stamp(1.5), 3) in cut
    assert ("p", "update_postimage", stamp(2.2), 2) in cut
    assert ("q", "expire", stamp(1.6), 1) in cut


def test_it_is_a_table_like_every_other(moved: Project) -> None:
    """Check finds nothing; a probe gives a group's rows; other tools read its rows; points not taken are counted."""
    assert list(check(moved.root).findings) == []
    with Reader.open(moved.root) as reader:
        assert runs(reader.probe("by_value", ["p"]).arrow().to_pylist()) == [run for run in table(moved) if run[0] == "p"]
    with duckdb.connect(str(moved.root / "warehouse.duckdb"), read_only=True) as connection:
        for name in SAME:
            assert runs(connection.sql(f"SELECT * FROM {name}").to_arrow_table().to_pylist()) == table(moved, name)
    state = moved.epoch.table("by_value")
    assert state is not None
    assert state.coalesced is not None
    assert (state.coalesced.late, state.coalesced.repeated, state.coalesced.full_from) == (1, 1, None)
    assert state.declaration.label == "STR"
    for name in SAME:
        with Reader.open(moved.root) as reader:
            rows = reader.scan(name, columns=["valid_from", "valid_to", "open", "_ts", "_exp"]).arrow().to_pylist()
        assert all(row["_ts"] == row["valid_from"] for row in rows)
        ended = {row["_exp"] and to_micros(row["_exp"]) - to_micros(row["valid_to"]) for row in rows if row["open"]}
        assert ended == {None if name == "newest" else 4 * HOUR + 1}


def test_open_rows_end_now_where_that_is_asked_for(moved: Project) -> None:
    """At the window time, or at a later instant; closed rows keep their ends, and ``open`` marks open rows."""

    def ends(answer: Answer) -> dict[bool, set[int]]:
        rows = answer.arrow().to_pylist()
        return {mark: {to_micros(row["valid_to"]) for row in rows if row["open"] is mark} for mark in (True, False)}

    for hot in ((), ("by_value",)):
        with Reader(moved.root, read_epoch(moved.root, 2), hot=hot) as reader:
            plain, now = ends(reader.scan("by_value")), stamp(3)
            assert plain[True] != {now}
            expected_ends = {True: {now}, False: plain[False]}
            assert ends(reader.scan("by_value", open_until="now")) == expected_ends
            assert ends(reader.scan("by_value", where="valid_to > valid_from", open_until="now")) == expected_ends
            assert ends(reader.sql("SELECT * FROM by_value", open_until="now")) == expected_ends
            assert ends(reader.sql("SELECT * FROM by_value")) == plain
            assert ends(reader.probe("by_value", ["p"], open_until="now"))[True] == {now}
            assert ends(reader.scan("by_value", open_until="now", now=stamp(3.5)))[True] == {stamp(3.5)}
            lasting = "SELECT max(duration(by_value, 'minutes')) FROM by_value"
            assert reader.sql(lasting, open_until="now").all() > reader.sql(lasting).all()
            for refused in (lambda: reader.scan("a", open_until="now"), lambda: reader.probe("lasting", ["p"], open_until="now")):
                with pytest.raises(UsageError, match="is no coalesced table, so it has no open rows"):
                    refused()
            assert ends(reader.probe("rising", ["p"], open_until="now"))[True] == {now}
            for key_range in ({"keys": [("p", instant(3))]}, {"from_": ("p", instant(2))}, {"to": ("q", instant(2))}):
                with pytest.raises(UsageError, match='the search key of "rising" has valid_to, which open_until changes'):
                    reader.probe("rising", **key_range, open_until="now")
            with pytest.raises(UsageError, match=r"open_until is 'then'; allowed: \"now\""):
                reader.sql("SELECT 1", open_until="then")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return the project after the updates up to 3, the last as arrays with closed rows in cells, and the file of 5; no views."""
    project = declared(tmp_path_factory.mktemp("begun"), spark)
    project.views.clear()
    project.coalesced = {name: project.coalesced[name] for name in ("by_value", "newest")}
    project.declare()
    for hour in (1, 2, 3):
        land(project, hour)
        with limited(driver_rows=0 if hour == 3 else limits().driver_rows, apart_rows=0):
            project.update(hour)
    assert in_cells(project, "by_value")
    land(project, 5)
    return project


def at_five(moved: Project, name: str) -> list[Run]:
    """Return the rows after the update at 5."""
    with Reader(moved.root, read_epoch(moved.root, 3)) as reader:
        return runs(reader.scan(name).arrow().to_pylist())


@pytest.mark.parametrize("point", [Point.STAGED, Point.STEP_COMMITTED])
def test_a_killed_update_is_finished_once(point: Point, begun: Project, moved: Project, tmp_path: Path) -> None:
    """Before and after the commit of its rows."""
    project = begun.copy(tmp_path / "copy")
    plan, _ = project.updater().plan(UpdateOptions(at=at(5)))
    assert plan is not None
    number = next(index for index, step in enumerate(plan.steps) if step.stream == "newest")
    with pytest.raises(StoppedError):
        project.update(5, observer=stop_at(point, number))
    project.update(5)
    for name in ("by_value", "newest"):
        assert table(project, name) == at_five(moved, name)


def test_going_back_takes_it_along(begun: Project, moved: Project, tmp_path: Path) -> None:
    """A rollback, then the same files again; a restatement of some files and of all files."""
    project = begun.copy(tmp_path / "copy")
    before = table(project)
    project.updater().rollback(1)
    assert table(project) != before
    project.update(5)
    assert [table(project, name) for name in ("by_value", "newest")] == [at_five(moved, name) for name in ("by_value", "newest")]
    project.updater().restate("a", since=at(2))
    project.updater().restate("a", since="first")
    assert table(project) == at_five(moved, "by_value")
    assert list(check(project.root).findings) == []


def test_one_that_is_new_or_changed_begins_with_history(begun: Project, moved: Project, tmp_path: Path) -> None:
    """Landing files give points that were dead on arrival; it is built at once, and again after a rollback to before it."""
    project = begun.copy(tmp_path / "copy")
    project.coalesced["later"] = dict(project.coalesced["by_value"])
    project.coalesced["newest"]["rows"] = 7
    project.declare()
    report = project.update(3)
    assert table(project, "later") == table(begun)
    assert any('coalesced table "newest" is rebuilt, since its declaration changed' in line for line in report.epochs[0].warnings)
    state = project.epoch.table("later")
    assert state is not None
    assert state.coalesced is not None
    assert state.coalesced.full_from == at(3)
    project.updater().rollback(2)
    project.update(5)
    assert table(project, "later") == at_five(moved, "by_value")
    assert len(table(project, "newest")) >= len(at_five(moved, "newest"))
    assert list(check(project.root).findings) == []


def test_groups_of_an_erased_key_go_with_its_rows(begun: Project, tmp_path: Path) -> None:
    """With their stamps; nothing can be erased from the table itself."""
    project = begun.copy(tmp_path / "copy")
    with pytest.raises(UsageError, match='holds points of "a"; erase the rows of "a"'):
        project.updater().erase("by_value", ["p"])
    project.updater().erase("a", ["p"])
    assert {run[0] for run in table(project)} == {None, "q"}
    assert {row["k"] for row in project.stored("by_value")} == {None, "q"}


def test_rows_in_a_cell_of_others_are_a_fault(begun: Project, tmp_path: Path) -> None:
    """An open row among closed rows, and rows that begin in another eighth of the window."""
    project = begun.copy(tmp_path / "copy")
    cells = sorted((project.root / "tables" / "by_value").glob("sub_index=*/exp_block=[!0]*/*.parquet"))

    def moved(values: dict[str, list[object]]) -> None:
        values["open"][0] = True
        values["valid_from"] = [instant(3) for _ in values["valid_from"]]

    rewrite(cells[0], moved)
    messages = [finding.message for finding in check(project.root).faults if finding.code == "misplaced"]
    assert len(messages) == 2
    assert messages[0].startswith("1 open rows lie in a cell of closed ones")


def test_points_wait_while_it_stands_still(begun: Project, moved: Project, tmp_path: Path) -> None:
    """Its stream stands still too, since no other file keeps the missed points; both continue after the reversal."""
    project = begun.copy(tmp_path / "copy")
    DeltaTable(str(project.root / "tables" / "by_value")).delete()
    report = project.update(5)
    assert dict(report.stopped).keys() == {"a", "by_value"}
    assert project.epoch.window_time == at(5)
    project.updater().undo_foreign("by_value")
    project.update(5)
    for name in ("by_value", "newest"):
        assert table(project, name) == at_five(moved, name)
    assert list(check(project.root).findings) == []


def test_it_follows_another_update_interval(begun: Project, moved: Project, tmp_path: Path) -> None:
    """Its rows and stamps stay, and are moved by the new grid of times; a shorter window ends all rows earlier."""
    project = begun.copy(tmp_path / "copy")
    before = table(project)
    project.warehouse["update_interval"] = "30m"
    project.declare()
    project.updater().migrate(None, MigrationRequest())
    assert table(project) == before
    assert in_cells(project, "by_value")
    project.coalesced["by_value"]["window"] = "3h"
    project.declare()
    with limited(driver_rows=0, array_values=0, apart_rows=0):  # by Spark
        project.update(5)
    all_models = models()
    for hour, earlier in ((1, 0), (2, 1), (3, 2)):
        move(all_models, hour, earlier)
    all_models["by_value"].window = 3 * HOUR
    move(all_models, 5, 3)
    assert table(project) == expected(all_models["by_value"])
    assert table(project, "newest") == at_five(moved, "newest")
    ends = [(to_micros(row["_exp"]), max(row["_stamps"])) for row in project.stored("by_value")]
    assert {exp - last for exp, last in ends if exp > stamp(5)} == {3 * HOUR + 1}
    assert list(check(project.root).findings) == []
