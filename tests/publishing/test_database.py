"""What stands in ``warehouse.duckdb`` is what the warehouse's own reader answers, wherever and by whomever it is opened."""

from __future__ import annotations

import hashlib
import re
import resource
import shutil
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.serving.house import House, add_epoch, add_views, build, same_tables_later
from warehouse.epochs.journal import record_path
from warehouse.epochs.points import Moment, Point
from warehouse.errors import StorageFailedError
from warehouse.publishing import database
from warehouse.publishing.contents import FORM
from warehouse.publishing.database import DATABASE, replace_database_if_needed
from warehouse.publishing.difference import database_difference
from warehouse.serving import Reader
from warehouse.serving.pin import Pin
from warehouse.storage.duckdb_sql import quoted

from .reading import attached, comparable, with_duckdb_alone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warehouse.epochs.records import Epoch, TableState


def publish(house: House, number: int = -1, *, rebuild: bool = False) -> None:
    """Replace the file by that of an epoch."""
    database.replace_database(house.root, house.epochs[number], rebuild=rebuild)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A warehouse with streams, a view and a relation, in a directory with an odd name, that tests only read."""
    directory = tmp_path_factory.mktemp("house")
    built = build(directory / "root")
    add_views(built)
    built.root = built.root.rename(directory / "a root, with 'odd' [characters]*")
    publish(built)
    return built


@pytest.fixture
def own(tmp_path: Path) -> House:
    """A warehouse of the test's own, with its file."""
    built = build(tmp_path / "root")
    publish(built)
    return built


def names(house: House) -> list[str]:
    """Return the tables that are no operators' state."""
    return [state.name for state in house.epochs[-1].tables if state.kind != "state"]


def test_each_view_gives_the_rows_of_a_scan(house: House) -> None:
    """Views of streams, relations and views, with the user's columns and with the system's, of all types and nulls."""
    with Reader.open(house.root) as reader, attached(house.root) as connection:
        views = connection.execute("SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        assert sorted(views) == sorted((schema, name) for name in names(house) for schema in ("main", "system"))
        for name in names(house):
            for schema, system in (("main", False), ("system", True)):
                answer = reader.scan(name, system_columns=system)
                relation = connection.sql(f"SELECT * FROM w.{schema}.{quoted(name)}")
                assert relation.columns == [column for column, _ in answer.columns]
                assert [str(kind) for kind in relation.types] == [kind for _, kind in answer.columns]
                assert comparable(relation.fetchall()) == comparable(answer.all())
    assert len(names(house)) == 8


def test_every_epoch_shows_its_own_rows(own: House) -> None:
    """The file of an epoch has what the epoch has, also between the slots of an expiry block."""
    for number, epoch in enumerate(own.epochs):
        publish(own, number)
        with attached(own.root) as connection:
            for name, table in own.tables.items():
                rows = connection.execute(f"SELECT * FROM w.{name}").fetchall()
                assert comparable(rows) == comparable([row.values for row in table.live(epoch.slot)])


def test_duckdb_alone_reads_it_from_anywhere(house: House, tmp_path: Path) -> None:
    """Without any other package, extension or setting, from another directory, under another name."""
    odd = tmp_path / "link"
    odd.symlink_to(house.root)  # a path that this process can hand on without quoting
    for alone in with_duckdb_alone(odd, tmp_path):
        answers = alone.answers(*(f"SELECT count(*) FROM w.{quoted(name)}" for name in names(house)))
    with Reader.open(house.root) as reader:
        assert answers == [[[len(reader.scan(name).all())]] for name in names(house)]


def test_what_the_warehouse_knows_of_itself(house: House) -> None:
    """``_epochs`` and ``_files`` as ``stream-wh sql`` has them, ``_tables`` what a reader of Delta needs."""
    with Reader.open(house.root) as reader, attached(house.root) as connection:
        for table in ("_epochs", "_files"):
            own = comparable(reader.sql(f"SELECT * FROM {table}").all())
            assert comparable(connection.execute(f"SELECT * FROM w.{table}").fetchall()) == own
        rows = connection.execute("SELECT name, kind, path, version, filter, failed FROM w._tables").fetchall()
        assert rows == [
            (state.name, state.kind, state.path, state.version, "_exp > TIMESTAMP '2013-01-01T05:00:00Z'", None)
            for state in house.epochs[-1].tables
            if state.kind != "state"
        ]
        files = connection.execute("SELECT w.main._root() || '/' || path FROM w._files").fetchall()
        assert all(Path(path).stat().st_size for (path,) in files)


def test_columns_say_what_they_are(house: House) -> None:
    """The declared type, the part of the search key, and the window time of the rows."""
    query = "SELECT column_name, comment FROM duckdb_columns() WHERE schema_name = '{}' AND table_name = 'pairs'"
    with attached(house.root) as connection:
        own = dict(connection.execute(query.format("main")).fetchall())
        assert own == {"a": "bigint; search key, part 1 of 3", "b": "string; search key, part 2 of 3", "c": own["c"], "n": "int"}
        system = dict(connection.execute(query.format("system")).fetchall())
        assert system["_exp"] == "when the row ends; null: never"
        (comment,) = connection.execute("SELECT DISTINCT comment FROM duckdb_views() WHERE view_name = 'planes'").fetchall()
        assert comment == ("relation: rows live at window time 2013-01-01T05:00:00Z (epoch 3)",)


def test_views_of_windows_are_the_same_in_every_epoch(own: House) -> None:
    """Whether none, some or all of their files may have dead rows: so no update has to make them again."""
    kinds: dict[str, set[tuple[bool, bool]]] = {}
    views: dict[str, set[str]] = {}
    for number, epoch in enumerate(own.epochs):
        publish(own, number)
        pin = Pin(own.root, epoch)
        with attached(own.root) as connection:
            query = "SELECT view_name, sql FROM duckdb_views() WHERE database_name = 'w' AND schema_name = 'main'"
            text_of = dict(connection.execute(query).fetchall())
        for state in epoch.tables:
            source = None if state.keyed or state.name not in text_of else pin.live_source(state, epoch.window_time)
            if source is not None and source.files:
                kinds.setdefault(state.name, set()).add((bool(source.live), bool(source.mixed)))
                views.setdefault(state.name, set()).add(text_of[state.name])
    assert len({kind for of_table in kinds.values() for kind in of_table}) > 1
    assert max(map(len, kinds.values())) > 1
    assert {name: len(texts) for name, texts in views.items()} == dict.fromkeys(views, 1)


def test_other_definitions_are_of_another_form(house: House, tmp_path: Path) -> None:
    """If this fails, count ``FORM`` up: `check` would call the files of former builds changed."""
    _, definitions = database.make_database(tmp_path / "file", house.root, house.epochs[-1], rebuild=True)
    texts = [
        (name, table.columns, table.texts, [re.sub(r"\[.*\]", "[]", statement) for statement in table.lists])
        for name, table in sorted(definitions.items())
    ]
    assert (FORM, hashlib.sha256(repr(texts).encode()).hexdigest()[:16]) == (2, "c434807e047d910c")


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The epochs whose files were written whole."""
    numbers: list[int] = []
    make = database.make_database

    def made(file: Path, root: Path, epoch: Epoch, *, rebuild: bool) -> object:
        numbers.append(epoch.number)
        return make(file, root, epoch, rebuild=rebuild)

    monkeypatch.setattr(database, "make_database", made)
    return numbers


def test_a_process_changes_the_file_that_it_wrote(own: House, whole: list[int]) -> None:
    """Into what it would write: tables come, go, fail, are damaged and heal; epochs come and go."""
    log = own.root / "tables" / "pairs" / "_delta_log"

    def same(number: int = -1) -> None:
        publish(own, number)
        assert database_difference(own.root, own.epochs[number]) is None

    def later(states: Iterable[TableState]) -> None:
        last = own.epochs[-1]
        add_epoch(own, last.number + 1, last.slot + 1, tuple(states))
        same()

    add_views(own)
    same()
    tables = own.epochs[-1].tables
    later(_failed(state) if state.view else state for state in tables)
    later(tables)
    later(state for state in tables if state.name not in ("days", "names"))
    later([*tables, replace(tables[0], name="Other"), replace(tables[0], name="_paths_days_1")])
    later([*tables, replace(tables[0], name="other")])
    later(tables)
    log.rename(log.with_name("lost"))
    same()
    log.with_name("lost").rename(log)
    same()
    record_path(own.root, 0, "epoch").rename(record_path(own.root, 0, "past"))
    same()
    for _ in range(6):
        same_tables_later(own, own.epochs[-1].slot + 1)
        same()
    assert not whole


def test_a_file_that_is_not_as_it_was_left_is_written_whole(own: House, whole: list[int]) -> None:
    """A file that was changed, removed, or grew to four times its size, or has another log beside it, is written as a whole."""
    file = own.root / DATABASE
    publish(own)
    assert not whole
    file.chmod(0o644)
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
    publish(own)
    file.with_name(f"{DATABASE}.wal").write_bytes(b"somebody's changes")
    publish(own)
    file.unlink()
    publish(own)
    assert len(whole) == 3
    written = database._written[file.resolve()]
    database._written[file.resolve()] = replace(written, whole_bytes=written.whole_bytes // 8)
    publish(own)
    publish(own)
    assert len(whole) == 4
    file.chmod(0o644)
    content = file.read_bytes()
    file.write_bytes(content[:12_288] + bytes(len(content) - 12_288))  # a fault of the disk behind DuckDB's headers
    database._written[file.resolve()] = replace(written, identity=database.file_identity(file))
    publish(own)
    assert len(whole) == 5
    assert database_difference(own.root, own.epochs[-1]) is None


def test_one_file_is_remembered(own: House, whole: list[int], tmp_path: Path) -> None:
    """A process that writes to several warehouses in turn writes each file whole, and does not grow."""
    other = tmp_path / "other"
    shutil.copytree(own.root, other)
    for root in (other, own.root, other):
        database.replace_database(root, own.epochs[-1])
    assert len(whole) == 3
    assert list(database._written) == [other.resolve() / DATABASE]
    assert database_difference(other, own.epochs[-1]) is None


def test_an_open_connection_keeps_its_epoch_and_a_new_one_sees_the_next(own: House) -> None:
    """A connection keeps its epoch when the file is replaced, also within one process."""
    counts = {}
    connections = []
    for number in range(len(own.epochs)):
        publish(own, number)
        connections.append(attached(own.root))
        counts[number] = [(len(own["names"].live(own.epochs[number].slot)),)]
    for number, connection in enumerate(connections):
        assert connection.execute("SELECT count(*) FROM w.names").fetchall() == counts[number]
        assert connection.execute("SELECT max(number) FROM w._epochs").fetchall() == [(number,)]
        connection.close()
    assert len(set(map(str, counts.values()))) == len(own.epochs)


def test_epochs_that_are_no_longer_readable_leave_it(own: House) -> None:
    """Rows of former files are taken over only while their epochs can be read; a damaged former file is no loss."""
    record_path(own.root, 0, "epoch").rename(record_path(own.root, 0, "past"))
    publish(own)
    with attached(own.root) as connection:
        assert connection.execute("SELECT number FROM w._epochs ORDER BY 1").fetchall() == [(1,), (2,)]
        whole = comparable(connection.execute("SELECT * FROM w._epochs").fetchall())
    (own.root / DATABASE).chmod(0o644)
    (own.root / DATABASE).write_bytes(b"no database")
    publish(own)
    with attached(own.root) as connection:
        assert comparable(connection.execute("SELECT * FROM w._epochs").fetchall()) == whole
    assert database_difference(own.root, own.epochs[-1]) is None


def test_a_moved_warehouse(own: House, tmp_path: Path) -> None:
    """A variable gives the new place until the next writing command makes the file for it."""
    expected = [(len(own["names"].live(4)),)]
    moved = own.root.rename(tmp_path / "elsewhere")
    count = "SELECT count(*) FROM w.names"
    with attached(moved) as connection:
        with pytest.raises(duckdb.IOException, match="No files found"):
            connection.execute(count)
        connection.execute(f"SET VARIABLE stream_wh_root = '{moved}'")
        assert connection.execute(count).fetchall() == expected
    difference = database_difference(moved, own.epochs[-1])
    assert difference is not None
    assert (difference.kind, str(tmp_path / "root") in difference.message) == ("moved", True)
    replace_database_if_needed(moved, own.epochs[-1])
    with attached(moved) as connection:
        assert connection.execute(count).fetchall() == expected
    assert database_difference(moved, own.epochs[-1]) is None


def _failed(state: TableState) -> TableState:
    assert state.view is not None
    return replace(state, view=replace(state.view, failed="division by zero")) if state.kind == "view" else state


def test_a_view_that_stands_still_gives_an_error_and_no_rows(own: House) -> None:
    """Its columns are told, reading it says why, the other tables are read, and ``_tables`` says it too."""
    add_views(own)
    last = own.epochs[-1]
    states = tuple(_failed(state) if state.view else state for state in last.tables)
    add_epoch(own, last.number + 1, last.slot, states)
    publish(own)
    with attached(own.root) as connection:
        for query in ("SELECT * FROM w.results", "SELECT count(*) FROM w.results", "SELECT name FROM w.system.results"):
            with pytest.raises(duckdb.InvalidInputException, match="division by zero"):
                connection.execute(query).fetchall()
        assert connection.sql("DESCRIBE w.results").fetchall()[0][:2] == ("name", "VARCHAR")
        assert connection.execute("SELECT count(*) FROM w.planes").fetchall() == [(2,)]
        failed = connection.execute("SELECT name, failed FROM w._tables WHERE failed IS NOT NULL").fetchall()
        assert [(name, "division by zero" in text) for name, text in failed] == [("results", True)]
    assert database_difference(own.root, own.epochs[-1]) is None


@pytest.mark.parametrize("lost", ["_delta_log", "_schema"])
def test_a_damaged_table_does_not_keep_the_others_from_being_read(own: House, lost: str) -> None:
    """Its log or its zero-row file is lost: reading it is an error, and the file is as good as it can be."""
    shutil.rmtree(own.root / "tables" / "pairs" / lost)
    publish(own)
    with attached(own.root) as connection:
        with pytest.raises(duckdb.InvalidInputException, match="tables/pairs"):
            connection.execute("SELECT * FROM w.pairs").fetchall()
        assert connection.execute("SELECT count(*) FROM w.names").fetchall() == [(len(own["names"].live(4)),)]
    assert database_difference(own.root, own.epochs[-1]) is None


def test_every_kind_of_change_is_found(own: House) -> None:
    """Each view, comment, table or row that was added, changed or removed by hand is found."""
    changes = {
        "CREATE OR REPLACE VIEW days AS SELECT make_date(1, 1, 1) AS day, 2::INTEGER AS n": "views",
        "COMMENT ON COLUMN days.n IS 'x'": "columns",
        "DROP VIEW days": "views",
        "CREATE OR REPLACE MACRO main._paths_days_1() AS ['x']": "macros",
        "CREATE TABLE kept AS SELECT * FROM names": "columns",
        "DELETE FROM _files WHERE table_name = 'days'": "rows of _files",
        "UPDATE _epochs SET rows = rows + 1 WHERE number = 1": "rows of _epochs",
        "UPDATE _tables SET version = 0 WHERE name = 'days'": "rows of _tables",
    }
    for change, part in changes.items():
        publish(own, rebuild=True)
        (own.root / DATABASE).chmod(0o644)
        with duckdb.connect(str(own.root / DATABASE)) as connection:
            connection.execute(change)
        difference = database_difference(own.root, own.epochs[-1])
        assert difference is not None, change
        assert (difference.kind, part in difference.message) == ("changed", True), (change, difference.message)
    publish(own, rebuild=True)
    assert database_difference(own.root, own.epochs[-1]) is None
    same_tables_later(own, 5)
    difference = database_difference(own.root, own.epochs[-1])
    assert difference is not None
    assert difference.kind == "stale"


def test_it_cannot_be_written_by_accident_and_leaves_nothing_beside_it(own: House) -> None:
    """A writer would lock out readers; the log of a writer who forces his way does not reach the next file."""
    file = own.root / DATABASE
    assert stat.S_IMODE(file.stat().st_mode) & 0o222 == 0
    log = own.root / f"{DATABASE}.wal"
    log.write_bytes(b"somebody's changes")
    (own.root / f".{DATABASE}.tmp").write_bytes(b"of a killed update")
    publish(own)
    assert [path.name for path in own.root.iterdir() if "duckdb" in path.name] == [DATABASE]


def test_points_are_reached_before_and_after_it_is_replaced(own: House) -> None:
    """Until it is replaced, whoever opens it has the former epoch."""
    publish(own, 0)
    seen: list[tuple[Point, int]] = []

    def look(moment: Moment) -> None:
        with attached(own.root) as connection:
            ((newest,),) = connection.execute("SELECT max(number) FROM w._epochs").fetchall()
        seen.append((moment.point, newest))

    database.replace_database(own.root, own.epochs[2], observer=look)
    assert seen == [(Point.DATABASE_READY, 0), (Point.DATABASE_REPLACED, 2)]


@pytest.mark.parametrize("changed", [False, True], ids=["whole", "changed"])
@pytest.mark.parametrize("limit", [0, 5_000, 13_000, 40_000, 160_000])
def test_a_disk_that_does_not_take_it(own: House, limit: int, *, changed: bool) -> None:
    """However far it comes, it is said as of any other file, the former one stays, and a later attempt succeeds."""
    publish(own, 0)
    if limit >= (own.root / DATABASE).stat().st_size:
        pytest.skip("it takes the file")
    if not changed:
        database._written.clear()
    before = resource.prlimit(0, resource.RLIMIT_FSIZE)
    resource.prlimit(0, resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(StorageFailedError, match=DATABASE):
            publish(own)
    finally:
        resource.prlimit(0, resource.RLIMIT_FSIZE, before)
    assert [path.name for path in own.root.iterdir() if "duckdb" in path.name] == [DATABASE]
    with attached(own.root) as connection:
        assert connection.execute("SELECT max(number) FROM w._epochs").fetchall() == [(0,)]
    publish(own)
    assert database_difference(own.root, own.epochs[-1]) is None
