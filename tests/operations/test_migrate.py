"""Migrating by writing again: the same rows in another layout, at one epoch of the same window time; crashes, views, rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from warehouse import Warehouse
from warehouse.catalog.model import LayoutSpec
from warehouse.checking.check import check
from warehouse.epochs.points import Moment, Point
from warehouse.errors import ChangedDeclarationError, MigrationError, RestateError, RollbackError, UnknownNameError, UsageError
from warehouse.operations.migrate import MigrationReport, MigrationRequest
from warehouse.time import HOUR, to_datetime

from .histories import counts
from .projects import ANCHOR, Project, StoppedError, at, csv, row, stop_at

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.points import Observer
    from warehouse.epochs.records import TableState

TABLES = ("a", "b", "r", "counts", "once", "named")
FOURTH = csv(row("y", 3.5, 7.5), row("late", 1.5, 6), row("w3", 5.5, 6.5))


@pytest.fixture
def copy(history: Project, tmp_path: Path) -> Project:
    """Return a copy of the project: epochs of slots 1, 2 and 3; w2 waits for slot 5."""
    return history.copy(tmp_path / "project")


def migrate(project: Project, table: str | None = "a", observer: Observer | None = None, **options: Any) -> MigrationReport:  # noqa: ANN401 - those of a request
    """Migrate; layout keys can be passed as options."""
    keys = {key: options.pop(key) for key in LayoutSpec.__dataclass_fields__ if key in options}
    request = MigrationRequest(LayoutSpec(**keys), **options)
    updater = project.updater() if observer is None else project.updater(observer)
    return updater.migrate(table, request)


def rows_of(project: Project, number: int | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """Return the answers of every table at an epoch: all live rows, with times that do not depend on a view."""
    hidden = {"_load_slot", "_exp_slot", "sub_index", "exp_block"}
    answers = {}
    for table in TABLES:
        own = hidden if table in ("a", "b", "r") else {*hidden, "_ts", "_exp"}
        rows = [
            tuple(value for name, value in sorted(record.items()) if name not in own) for record in project.live(table, number)
        ]
        answers[table] = sorted(rows, key=repr)
    return answers


def state(project: Project, table: str = "a") -> TableState:
    """Return the state of a table at the newest epoch."""
    table_state = project.epoch.table(table)
    assert table_state is not None
    return table_state


def moved_on(project: Project, slots: int = 2) -> list[dict[str, list[tuple[Any, ...]]]]:
    """Update slot by slot, with a late and a waiting row, and return the answers after each."""
    project.land("4.csv", FOURTH)
    answers = []
    for _ in range(slots):
        end = project.epoch.window_time + HOUR
        project.update((end - ANCHOR) / HOUR)
        answers.append(rows_of(project))
        assert check(project.root).findings == ()
    return answers


@pytest.mark.parametrize(
    "options",
    [{"grid": (2, 2)}, {"technique": "rebuild"}, {"insertion": "permuted", "seed": 3}],
    ids=["grid", "technique", "assignment"],
)
def test_a_layout_is_written_anew_at_the_same_window_time(copy: Project, tmp_path: Path, options: dict[str, Any]) -> None:
    """No live, view or waiting row changes, earlier epochs stay, and updates continue as if nothing had happened."""
    twin = copy.copy(tmp_path / "twin")
    before, untouched = rows_of(copy), {name: state(copy, name).version for name in TABLES[1:]}
    report = migrate(copy, **options)
    epoch = copy.epoch
    assert (epoch.number, epoch.cause, epoch.slot, epoch.window_time) == (3, "migrate", 3, at(3))
    assert (rows_of(copy), rows_of(copy, 2)) == (before, before)
    assert {name: state(copy, name).version for name in untouched} == untouched
    layout, former = state(copy).layout, state(twin).layout
    assert (report.tables[0].after, layout.version, layout.base) == (layout, 1, former.last_cell)
    assert {part.sub_index for part in state(copy).partitions} <= set(range(layout.first_cell, layout.last_cell + 1))
    assert [record["k"] for record in copy.deferred()] == ["w2"]
    assert check(copy.root).findings == ()
    assert copy.update(3).epochs == ()
    if "technique" in options:
        assert moved_on(copy) == moved_on(twin)


def test_a_changed_file_names_the_command_and_the_command_follows_the_file(copy: Project) -> None:
    """The error prints it; afterwards updates continue; omitted keys stay as they are, and max_lifetime becomes p."""
    copy.change(layout={"grid": [2, 3]}, max_lifetime="6h")
    with pytest.raises(ChangedDeclarationError, match=r"streams.a.layout.grid: found \[2, 3\].*`stream-wh migrate a`"):
        copy.update(4)
    with pytest.raises(UsageError, match=r"warehouse.toml says grid = \[2, 3\] for a; change it there, or leave --grid out"):
        migrate(copy, grid=(2, 2))
    migrate(copy, None)
    layout = state(copy).layout
    assert (layout.rows, layout.columns, layout.periods, layout.expiry_block) == (2, 3, 6, 2)
    assert migrate(copy, None).epoch is None
    copy.update(4)
    assert state(copy).layout == layout
    assert check(copy.root).findings == ()


def test_a_migration_stopped_anywhere_is_completed(copy: Project, tmp_path: Path) -> None:
    """Stopped one point later each time: readers have the epoch before, and an update or a migration completes it."""
    twin = copy.copy(tmp_path / "twin")
    migrate(twin, technique="rebuild")
    before, seen = copy.picture(), list[tuple[Point, int]]()

    def once(moment: Moment) -> None:
        if (moment.point, moment.step) not in seen:
            seen.append((moment.point, moment.step))
            raise StoppedError

    for turn in range(20):
        try:
            if turn % 2 and (Point.PLAN_WRITTEN, -1) in seen:
                copy.update(3, observer=once)
                break
            report = migrate(copy, observer=once, technique="rebuild")
        except StoppedError:
            written = (Point.EPOCH_WRITTEN, -1) in seen
            assert copy.epoch.number == (3 if written else 2), seen
            if not written:
                assert copy.picture() == before
            continue
        assert report.epoch is None, "the epoch that was begun is the migration"
        break
    assert {point for point, _ in seen} >= {Point.PLANNED, Point.STEP_READY, Point.STEP_COMMITTED, Point.DURABLE}
    picture, picture_of_twin = copy.picture(), twin.picture()
    assert picture == picture_of_twin
    assert check(copy.root).findings == ()


def test_readers_of_a_changed_file_go_on_while_it_is_being_followed(copy: Project) -> None:
    """Before and afterwards the file is compared; meanwhile the epoch before is read, at every moment."""
    copy.change(layout={"grid": [2, 2]})
    with pytest.raises(ChangedDeclarationError):
        Warehouse.open(copy.directory)
    read = []

    def look(moment: Moment) -> None:
        if moment.step >= 0 or moment.point in (Point.PLAN_WRITTEN, Point.STEPS_DONE, Point.DURABLE, Point.EPOCH_WRITTEN):
            with Warehouse.open(copy.directory) as warehouse:
                answer = warehouse.scan("a", columns=["k"])
                read.append((answer.epoch, sorted(key for (key,) in answer.all())))

    migrate(copy, observer=look)
    assert {tuple(keys) for _, keys in read} == {("bad", "w", "x", "x")}
    assert [epoch for epoch, _ in read] == [2] * (len(read) - 1) + [3]


def test_another_search_key(copy: Project) -> None:
    """Files are sorted and bounded by the new key, and probes find rows by it; views stay."""
    copy.change(search_key="e")
    with pytest.raises(ChangedDeclarationError, match="`stream-wh migrate a --rebuild`"):
        copy.update(4)
    versions = {name: state(copy, name).version for name in TABLES[1:]}
    migrate(copy)
    assert {name: state(copy, name).version for name in versions} == versions
    with Warehouse.open(copy.directory) as warehouse:
        assert sorted(warehouse.probe("a", [to_datetime(at(5))], columns=["k"]).all()) == [("bad",), ("x",)]
    assert check(copy.root).findings == ()
    copy.update(4)
    assert check(copy.root).findings == ()


def test_another_grid_of_times(copy: Project, tmp_path: Path) -> None:
    """All slots are counted again, also in waiting rows and views; answers stay equal, and continue every half hour."""
    twin = copy.copy(tmp_path / "twin")
    before = rows_of(copy)
    copy.warehouse |= {"update_interval": "30m"}
    copy.declare()
    with pytest.raises(ChangedDeclarationError, match=r"warehouse.update_interval.*`stream-wh migrate --rebuild`"):
        copy.update(4)
    with pytest.raises(UsageError, match="the slots of all tables"):
        migrate(copy, "a")
    migrate(copy, None)
    epoch = copy.epoch
    assert (epoch.slot, epoch.window_time, epoch.update_interval) == (6, at(3), HOUR // 2)
    assert rows_of(copy) == before
    assert state(copy).deferred is not None
    assert [entry.slot for entry in state(copy).deferred.waiting] == [9]  # type: ignore[union-attr]
    assert state(copy).layout.periods == 8
    assert check(copy.root).findings == ()
    copy.update(3.5)
    assert copy.keys() == "bad w x x"
    assert check(copy.root).findings == ()
    for project in (copy, twin):
        project.land("4.csv", FOURTH)
        project.update(4)
    assert rows_of(copy) == rows_of(twin)
    copy.update(4.5)
    assert (copy.keys(), counts(copy)["w2"]) == ("bad late w w2 x y", 1)
    assert check(copy.root).findings == ()
    with pytest.raises(RollbackError, match=r"warehouse\.update_interval is .*slots are numbered otherwise since then"):
        copy.updater().rollback(1)
    with pytest.raises(RestateError, match="or of another layout"):
        copy.updater().restate("a", since=at(1))


def test_a_grid_of_times_that_does_not_meet_the_window_time(copy: Project) -> None:
    """The error names the next time that ends a slot in both grids."""
    copy.spark = None
    copy.warehouse |= {"update_interval": "2h"}
    copy.streams["b"]["layout"] = {"technique": "rebuild", "grid": [1, 1]}
    copy.declare()
    with pytest.raises(MigrationError, match="the next time that ends one of both is 2024-01-01T04:00:00Z"):
        migrate(copy, None)
    assert copy.numbers == [0, 1, 2]


def test_wider_types_and_other_names(copy: Project) -> None:
    """Values stay, waiting rows follow, views above are rebuilt; a change that would lose values is refused."""
    copy.land("1.csv", csv(row("z", 3.2, 6) + ",7", row("q", 5.2, 6) + ",8", header="key,b,e,n"), landing="landing/n")
    columns = {"key": "string", "b": "timestamp", "e": "timestamp", "n": "int"}
    keys = {"landing": "landing/n", "format": "csv", "search_key": "key", "arrival": "b", "expires": "e", "max_lifetime": "4h"}
    copy.streams["n"] = {**keys, "columns": columns}
    copy.views["total"] = {"sql": "SELECT key, sum(n) AS n FROM n GROUP BY key", "search_key": "key"}
    copy.declare()
    copy.update(4)
    copy.change("n", columns={**columns, "n": "smallint"})
    with pytest.raises(ChangedDeclarationError, match=r"columns.n: .*restate n --since first"):
        migrate(copy, "n")
    wider = {"name": "string", "b": "timestamp", "e": "timestamp", "n": "bigint"}
    copy.change("n", columns=wider, search_key="name")
    copy.views["total"] = {"sql": "SELECT name, sum(n) AS n FROM n GROUP BY name", "search_key": "name"}
    copy.declare()
    with pytest.raises(ChangedDeclarationError, match=r"columns.key: found nothing.*migrate n --rename key=NEW"):
        migrate(copy, "n")
    with pytest.raises(UsageError, match="--rename key=b"):
        migrate(copy, "n", renamed=(("key", "b"),))
    report = migrate(copy, "n", renamed=(("key", "name"),))
    assert report.views == ("total",)
    assert [(record["name"], record["n"]) for record in copy.live("n")] == [("z", 7)]
    assert [(record["name"], record["n"]) for record in copy.live("total")] == [("z", 7)]
    assert [(record["name"], record["n"]) for record in copy.deferred("n")] == [("q", 8)]
    assert [record["key"] for record in copy.live("n", 3)] == ["z"]
    assert check(copy.root).findings == ()
    copy.land("2.csv", csv(row("z", 4.2, 7) + f",{2**40}", header="name,b,e,n"), landing="landing/n")
    copy.update(5)
    assert sorted((record["name"], record["n"]) for record in copy.live("total")) == [("z", 2**40 + 7)]
    copy.update(6)
    assert sorted((record["name"], record["n"]) for record in copy.live("total")) == [("z", 2**40)]
    assert check(copy.root).findings == ()


def test_what_cannot_be_migrated(copy: Project) -> None:
    """Views and relations change in other ways; an undeclared option, or an option given twice, is an error."""
    copy.spark = None
    with pytest.raises(MigrationError, match="it is a view: change"):
        migrate(copy, "counts", grid=(2, 2))
    with pytest.raises(MigrationError, match="it is a relation"):
        migrate(copy, "r")
    with pytest.raises(UnknownNameError):
        migrate(copy, "nothing")
    with pytest.raises(UsageError, match="name the TABLE"):
        migrate(copy, None, grid=(2, 2))
    assert copy.updater().migrate("a", MigrationRequest(LayoutSpec(grid=(2, 4))), dry_run=True).tables == ()
    assert copy.numbers == [0, 1, 2]


def test_going_back_to_a_layout_that_the_file_no_longer_declares(copy: Project) -> None:
    """The error prints the layout; with it in the file the rollback works, though the newest tables have another layout."""
    before = state(copy).layout
    copy.change(layout={"grid": [2, 2]})
    copy.updater().migrate("a", MigrationRequest())
    with pytest.raises(RollbackError, match=r"streams\.a\.layout\.grid is \[2, 2\] in \S+, and was \[2, 4\]; write in the file"):
        copy.updater().rollback(1)
    copy.change(layout={"grid": [2, 4]})
    copy.updater().rollback(1)
    assert state(copy).layout == before
    assert check(copy.root).findings == ()
    copy.update(4)
    assert check(copy.root).findings == ()


def test_going_back_to_before_a_migration_takes_the_layout_along(copy: Project) -> None:
    """If the file omits the layout; a restatement does not reach back beyond the migration."""
    migrate(copy, grid=(2, 2))
    copy.updater().rollback(1)
    assert (state(copy).layout.version, copy.keys()) == (0, "bad w x x")
    assert check(copy.root).findings == ()
    migrate(copy, grid=(2, 2))
    with pytest.raises(RestateError, match="or of another layout; give --since 2024-01-01T03:00:00Z"):
        copy.updater().restate("a", since=at(1))
    with pytest.raises(StoppedError):
        migrate(copy, observer=stop_at(Point.STEP_COMMITTED), grid=(1, 1))
    copy.update(4)
    assert state(copy).layout.cells == 1
    assert check(copy.root).findings == ()
