"""Rows of a key are gone from every file under the root, and everything else is as if they had never come.

The script, four slots deep, blocks of two; ``Gone7`` is erased after hour 3::

    hour     0.........1.........2.........3
    Gone7     ........ |         |         |        dead on arrival
                  .....|....     |         |        its file named by the first epoch alone
                  .....|.........|.....    |        dead, its block not yet past
                  .....|.........|.........|..      live, and another from hour 1.2
    beside   a deferred row and two invalid ones of ``Gone7``; rows of a, b, c, d, e and Gone78
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.operations.projects import Project, StoppedError, at, csv, row, stream, text
from tests.publishing.reading import attached
from tests.views.warehouses import view
from warehouse.epochs.points import Moment, Point
from warehouse.errors import CursorLostError, NoEpochError, UnknownNameError, UsageError
from warehouse.project import Warehouse
from warehouse.publishing.database import DATABASE
from warehouse.publishing.difference import database_difference

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HEADER = "k,b,e,v"
VIEWS = {
    "joined": view("SELECT l.k, l.v AS lv, r.v AS rv FROM a l JOIN r ON l.v = r.v", short_lived="report"),
    "kinds": view("SELECT DISTINCT v FROM a", "v"),
    "nested": view("SELECT n, count(*) AS m FROM (SELECT v, count(*) AS n FROM a GROUP BY v) c GROUP BY n", "n"),
}
COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}


def _row(key: str, begins: float, ends: float | str, value: object = 1) -> str:
    return f"{row(key, begins, ends)},{value}"


def _land(project: Project, name: str, *lines: str, table: str = "a") -> None:
    project.land(name, csv(*lines, header=HEADER), landing=f"landing/{table}")


def _files(project: Project, *, without: str | None) -> None:
    """Land two updates' files; ``without`` names a key whose rows are omitted."""
    files = {
        ("a", 1): [
            *(_row("Gone7", begins, ends) for begins, ends in ((0.2, 0.9), (0.5, 1.5), (0.5, 2.6), (0.5, 4.2))),
            *(_row("a", 0.5, 4.4), _row("b", 0.6, 2.6, 2)),
        ],
        ("a", 3): [
            *(_row("Gone7", 1.2, 5.1, 2), _row("Gone7", 2.2, 2.4, 3), _row("Gone7", 6.5, 8), _row("Gone7", 1.5, "?"), "x,Gone7"),
            *(_row("c", 1.5, 5, 3), _row("d", 1.4, "?"), _row("e", 6.6, 8), _row("Gone78", 2.5, 6, 2)),
        ],
        ("r", 1): [_row("p", 0.5, 4.4, 1), _row("q", 0.5, 4.1, 2)],
        ("r", 3): [_row("s", 2.1, 2.9, 3), _row("t", 2.1, 5.9, 3)],
    }
    for (table, hour), lines in files.items():
        remaining = [line for line in lines if without is None or without not in line.split(",")]
        _land(project, f"{hour}.csv", *remaining, table=table)


def _declared(directory: Path, spark: SparkSession) -> Project:
    layout = {"grid": [2, 2]}
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}", files="1.csv", layout=layout) for name in "ar"}
    return Project(directory, spark, streams, {"publish": "delta"}, views=VIEWS)


def _run(project: Project, *, without: str | None = None) -> Project:
    """Load a file of each stream with each update."""
    _files(project, without=without)
    for hour in (1, 3):
        for name in "ar":
            project.change(name, files=f"[1-{hour}].csv")
        project.update(hour)
    return project


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """The warehouse after the script."""
    project = _run(_declared(tmp_path_factory.mktemp("begun") / "project", spark))
    assert project.keys() == "Gone7 Gone7 Gone78 a c"
    assert len(project.stored()) == 7
    assert [entry["k"] for entry in project.deferred()] == ["Gone7", "e"]
    assert len(project.rejected()) == 3
    return project


@pytest.fixture
def project(begun: Project, tmp_path: Path) -> Project:
    """A copy of it for each test."""
    return begun.copy(tmp_path / "project")


def _held(root: Path, key: str) -> list[str]:
    """Return every file under the root that shows the key: all columns of all Parquet files, all other bytes."""
    paths = []
    for path in sorted(root.rglob("*")):
        if not path.is_file():
            continue
        if path.suffix == ".parquet":
            shown = repr(pq.ParquetFile(path).read().to_pylist()) + repr(pq.read_metadata(path).to_dict())
        else:
            shown = path.read_bytes().decode(errors="replace")
        if any(f"{mark}{key}{other}" in shown for mark in "',\":" for other in "',\"\\"):
            paths.append(path.relative_to(root).as_posix())
    return paths


def _tables(project: Project) -> dict[str, list[dict[str, Any]]]:
    names = [state.name for state in project.epoch.tables if state.kind != "state"]
    return {name: [{k: v for k, v in record.items() if k[0] != "_"} for record in project.live(name)] for name in names}


def _plain(rows: list[dict[str, Any]]) -> list[str]:
    hidden = ("sub_index", "exp_block")
    return sorted(repr({name: value for name, value in record.items() if name not in hidden}) for record in rows)


def test_every_trace_of_a_key_goes_and_the_rest_is_as_if_it_had_never_come(
    project: Project, tmp_path: Path, spark: SparkSession
) -> None:
    """Tables, views, operators' state, deferred and invalid rows, logs, older epochs; the next update goes on from there."""
    assert len(_held(project.root, "Gone7")) > 10
    other = _run(_declared(tmp_path / "other", spark), without="Gone7")
    outlook, receipt = project.updater().erase("a", ["Gone7"])
    assert receipt is not None
    assert _held(project.root, "Gone7") == []
    assert receipt.proof.traces == ()
    assert [path.rpartition("/")[2] for path in receipt.landing] == ["1.csv", "3.csv"]
    assert not receipt.whole
    assert (outlook.rows, receipt.epochs_retired, project.numbers) == (6, 2, [2])
    assert receipt.views_built_anew == ("joined", "kinds", "nested")
    for name, rows in _tables(other).items():
        assert _plain(_tables(project)[name]) == _plain(rows), name
    assert [entry["k"] for entry in project.deferred()] == ["e"]
    assert [record["raw"] for record in project.rejected()] == [record["raw"] for record in other.rejected()]
    for target in (project, other):
        _land(target, "1x.csv", _row("f", 3.5, 6, 2), _row("c", 3.2, 7.2))
        for name in "ar":
            target.change(name, files="*.csv")
        target.update(4)
        target.update(7)
    assert _held(project.root, "Gone7") == []
    for name, rows in _tables(other).items():
        assert _plain(_tables(project)[name]) == _plain(rows), name
    assert project.keys().split() == ["c", "e"]


@pytest.mark.parametrize("one_in", [3, pytest.param(1, marks=pytest.mark.long)])
def test_an_erasure_stopped_anywhere_is_completed_by_the_next_update_or_erasure(project: Project, one_in: int) -> None:
    """Stopped once at each of its points: readers see the whole erasure or nothing, and no part of the request is lost.

    Points of steps are those of the first step and of one in so many after it.
    """
    before = _tables(project)
    seen: list[tuple[Point, int]] = []

    def observe(moment: Moment) -> None:
        if (moment.point, moment.step) not in seen and (moment.step < 0 or moment.step % one_in == 0):
            seen.append((moment.point, moment.step))
            raise StoppedError

    attempts = 0
    while True:
        attempts += 1
        count = len(seen)
        try:
            if attempts % 2:
                project.updater(observe).erase("a", ["Gone7"])
            else:
                project.update(3, observer=observe)
        except StoppedError:
            written = Point.EPOCH_WRITTEN in [point for point, _ in seen]
            assert (_tables(project) == before) is not written, seen[-1]
            assert ("'Gone7'" in repr(_tables(project))) is not written, seen[-1]
        if len(seen) == count and attempts % 2:
            break
    points = [point for point, _ in seen]
    for point in (Point.PLAN_WRITTEN, Point.STEP_COMMITTED, Point.SWEPT, Point.LOGS_CUT, Point.PROVED, Point.RECEIPT_WRITTEN):
        assert point in points
    assert _held(project.root, "Gone7") == []
    receipts = [json.loads(path.read_text()) for path in (project.root / "erasures").iterdir()]
    assert [receipt["proof"]["traces"] for receipt in receipts] == [[]]
    assert project.numbers == [2]


def test_looking_changes_nothing_and_tells_what_would_go(project: Project) -> None:
    """A dry run needs no Spark, names rows, views and landing files, and changes no byte."""
    files = {path: path.stat().st_mtime_ns for path in project.directory.rglob("*")}
    project.spark, spark = None, project.spark
    outlook, receipt = project.updater().erase("a", ["Gone7"], dry_run=True)
    assert receipt is None
    assert not outlook.nothing
    assert outlook.rows == 6
    assert [path.name for path in outlook.landing] == ["1.csv", "3.csv"]
    assert outlook.before.traces
    nobody_there, none = project.updater().erase("a", ["nobody"], dry_run=True)
    assert (nobody_there.nothing, none) == (True, None)
    assert {path: path.stat().st_mtime_ns for path in project.directory.rglob("*")} == files
    project.spark = spark


def test_erasing_a_key_that_nobody_has_changes_nothing(project: Project) -> None:
    """A mistyped key does not remove the older epochs."""
    outlook, receipt = project.updater().erase("a", ["Gone"])
    assert (outlook.nothing, receipt, project.numbers) == (True, None, [0, 1])


def test_expired_rows_go_from_all_tables(project: Project) -> None:
    """Their files too; live rows, waiting rows and views do not change."""
    before = _tables(project)
    stored = [row for name in before for row in project.stored(name)]
    assert len(stored) > sum(map(len, before.values()))
    _, receipt = project.updater().erase(None, None)
    assert receipt is not None
    assert receipt.whole
    assert receipt.rows >= len(stored) - sum(map(len, before.values()))
    assert _tables(project) == before
    for state in project.epoch.tables:
        assert len(project.stored(state.name)) == len(project.live(state.name)), state.name
    assert project.updater().erase(None, None)[0].nothing
    assert [entry["k"] for entry in project.deferred()] == ["Gone7", "e"]
    project.update(4)


def test_what_cannot_be_erased_is_refused_before_anything_is_written(project: Project) -> None:
    """A view's rows, a missing table, a frozen view above the rows."""
    with pytest.raises(UsageError, match=r"view's table: its rows come back .* in a, r"):
        project.updater().erase("joined", ["x"])
    with pytest.raises(UnknownNameError, match="b"):
        project.updater().erase("b", ["x"])
    with pytest.raises(UsageError, match="allowed"):
        project.updater().erase("a", [7])
    del project.views["nested"]
    project.declare()
    with pytest.raises(UsageError, match=r'"nested" .* drop nested'):
        project.updater().erase("a", ["Gone7"])
    assert project.numbers == [0, 1]


def test_nothing_can_be_erased_before_there_is_anything(tmp_path: Path) -> None:
    """An empty warehouse raises an error."""
    with pytest.raises(NoEpochError):
        Project(tmp_path / "empty", None).updater().erase("a", ["x"])


def test_readers_that_were_open_go_on_with_the_newest_epoch(project: Project) -> None:
    """A reader pinned to an older epoch reads the newest epoch after the older files are deleted."""
    with Warehouse.open(project.directory) as warehouse:
        reader = warehouse.reader()
        early = warehouse.reader(as_of=at(1))
        in_memory = warehouse.reader(hot=["a"])
        for opened in (reader, in_memory):
            assert len(opened.probe("a", ["Gone7"]).all()) == len(opened.sql("FROM a WHERE k = 'Gone7'").all()) == 2
        assert len(early.scan("a").all()) > 0
        project.updater().erase("a", ["Gone7"])
        for opened in (reader, in_memory):
            assert opened.sql("FROM a WHERE k = 'Gone7'").all() == opened.probe("a", ["Gone7"]).all() == []
        with pytest.raises(CursorLostError, match="or an erasure retired them"):
            reader.changes("a", since=0)
        with pytest.raises(NoEpochError):
            warehouse.reader(as_of=at(1))


@pytest.mark.parametrize("layout", [{"technique": "rebuild"}, {"grid": [1, 1]}], ids=["rebuild", "1x1"])
def test_composite_keys_and_prefixes_go_from_every_layout(tmp_path: Path, spark: SparkSession, layout: dict[str, object]) -> None:
    """Numbers are compared as numbers: 7 goes, 70 stays; a prefix erases all keys that begin with it; nulls are keys too."""
    columns = {"n": "int", "k": "string", "b": "timestamp", "e": "timestamp"}
    declared = stream(columns=columns, search_key=["n", "k"], layout=layout)
    project = Project(tmp_path / "project", spark, {"a": declared})
    begins, ends = text(0.5), text(3.5)
    keys = [(7, "x"), (7, "y"), (70, "x"), (8, "x"), (8, "y"), ("", "x"), (9, "")]
    project.land("1.csv", csv(*(f"{n},{k},{begins},{ends}" for n, k in keys), "7,x,?,?", "8,z,?,?", header="n,k,b,e"))
    project.update(1)
    _, receipt = project.updater().erase("a", [(7,), (8, "y"), (None, "x")])
    assert receipt is not None
    assert receipt.proof.traces == ()
    assert sorted((entry["n"], entry["k"]) for entry in project.live()) == [(8, "x"), (9, None), (70, "x")]
    assert [record["raw"][:3] for record in project.rejected()] == ["8,z"]
    assert [path.rpartition("/")[2] for path in receipt.landing] == ["1.csv"]


def test_a_relations_key_goes_with_all_its_versions(tmp_path: Path, spark: SparkSession) -> None:
    """Rows that were joined with it are rebuilt."""
    relation = {
        "landing": "landing/planes",
        "format": "csv",
        "search_key": "k",
        "changed_at": "b",
        "columns": {"k": "string", "b": "timestamp", "maker": "string"},
    }
    views = {"made": view("SELECT a.k, p.maker FROM a JOIN planes p ON a.k = p.k")}
    project = Project(tmp_path / "project", spark, relations={"planes": relation}, views=views)
    changes = [f"{k},{text(hour)},{maker}" for k, hour, maker in (("x", 0.1, "Old1"), ("x", 0.6, "New1"), ("y", 0.1, "m"))]
    project.land("1.csv", csv(*changes, header="k,b,maker"), landing="landing/planes")
    project.land("1.csv", csv(row("x", 0.5, 4), row("y", 0.5, 4), row("x", 0.7, 4)))
    project.update(1)
    assert [entry["maker"] for entry in project.live("made")].count("Old1") == 1
    _, receipt = project.updater().erase("planes", ["x"])
    assert receipt is not None
    assert receipt.proof.traces == ()
    assert {trace.path.split("/")[1] for trace in receipt.proof.elsewhere} == {"a"}
    assert [(entry["k"], entry["maker"]) for entry in project.live("made")] == [("y", "m")]
    assert _held(project.root, "Old1") == []


def test_what_other_tools_open_is_no_trace_and_a_copy_in_it_goes(tmp_path: Path, spark: SparkSession) -> None:
    """A key that is a part of a date there proves nothing; rows that somebody copied into the file are deleted with it."""
    project = Project(tmp_path / "project", spark)
    landed = project.land("1.csv", csv(row("2024", 0.5, 4), row("secret", 0.5, 4), row("kept", 0.5, 4)))
    project.update(1)
    landed.unlink()
    database = project.root / DATABASE
    database.chmod(0o644)
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE copied AS SELECT * FROM a")
    for key in ("2024", "secret"):
        _, receipt = project.updater().erase("a", [key])
        assert receipt is not None
        assert (receipt.rows, receipt.proof.traces) == (1, ())
    with attached(project.root) as connection:
        assert connection.execute("SELECT k FROM w.a").fetchall() == [("kept",)]
        with pytest.raises(duckdb.CatalogException):
            connection.execute("SELECT * FROM w.copied")
    assert b"secret" not in database.read_bytes()
    assert database_difference(project.root, project.epoch) is None
