"""Tables that outsiders changed stand still over several updates, with what reads them; the others move, and they catch up.

Hours of arrival and end, and when a file comes; a table is changed at 2 (#), and what was done is taken back before 5 (*)::

    hour   0.....1.....2.....3.....4.....5.....6.....7
                       #     :     :  *  |
    x        ....:.....|.....:.....:..   |                   lives while its table stands still, and ends then
    x        . . : . . | ..  :     :     |                   ends soon
    q            : ....|.....:.....:.....|.                  lives on
    w            :     |   ..:.....:.....|.....:..           comes at 1, waits, is due while its table stands still
    l            :     | ....:.....:.....|..                 of a file that comes meanwhile
    short        :     |     : ....:...  |                   comes and ends meanwhile: dead on arrival, as when an update is late
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from tests.replayed import replayed
from warehouse.catalog.model import LayoutSpec
from warehouse.checking.check import check
from warehouse.cli.main import run
from warehouse.cli.reports import plan_report, update_report
from warehouse.epochs.journal import read_epoch
from warehouse.epochs.points import Moment, Point
from warehouse.errors import ForeignChangeError, MigrationError, RollbackError, UsageError
from warehouse.operations.backup import back_up, verify
from warehouse.operations.migrate import MigrationRequest
from warehouse.operations.update import UpdateOptions
from warehouse.operations.verification import verdicts_of
from warehouse.project import Warehouse
from warehouse.steps.registry import explain
from warehouse.time import HOUR

from .histories import RELATION
from .outsiders import CHANGES
from .projects import LATER, Project, StoppedError, at, csv, row, stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = {
    1: [row("x", 0.5, 4.4), row("x", 0.2, 2.6), row("w", 2.5, 6.3), row("no", 0, "?")],
    2: [row("y", 1.5, 2.8), row("q", 1.2, 5.1), row("w2", 3.5, 7.3)],
    3: [row("l", 2.2, 5.4), row("late", 1.5, 5.5)],
    4: [row("m", 3.6, 5.7), row("short", 3.2, 4.6), row("x", 3.5, 7.2), row("w5", 4.5, 8.2)],
    5: [row("n", 4.5, 6.5), row("no", 4, "?")],
    6: [row("o", 5.5, 8.5)],
}
BOTH: dict[str, object] = {"sql": "SELECT a.k, c.e AS until FROM a JOIN c ON a.k = c.k", "search_key": "k"}
OF_C: dict[str, object] = {"sql": "SELECT k, count(*) AS n FROM c GROUP BY k", "search_key": "k"}


def _land(project: Project, hour: int) -> None:
    for name in project.streams:
        project.land(f"{hour}.csv", csv(*ROWS.get(hour, ())), landing=f"landing/{name}")
    for name in project.relations:
        lines = f"k,c,name\nx,2023-01-01T00:00:00Z,{hour}\nq,2024-01-01T0{hour - 1}:30:00Z,{hour}\n"
        project.land(f"{hour}.csv", lines, landing=f"landing/{name}")


def _rows(project: Project, name: str) -> list[str]:
    """Return the user's columns of the live rows: a rebuilt view has other system columns."""
    system = ("sub_index", "exp_block")
    return sorted(
        str({key: value for key, value in record.items() if key[0] != "_" and key not in system}) for record in project.live(name)
    )


def _content(project: Project) -> dict[str, Any]:
    names = [state.name for state in project.epoch.tables if state.kind != "state"]
    waiting = {f"{name} waits": sorted(record["k"] for record in project.deferred(name)) for name in project.streams}
    invalid = {f"{name} rejects": len(project.rejected(name)) for name in project.streams}
    return {**{name: _rows(project, name) for name in names}, **waiting, **invalid}


def _faults(project: Project) -> list[str]:
    return [f"{finding.code}: {finding.message}" for finding in check(project.root).faults]


def _run(project: Project, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["-C", str(project.directory), *arguments])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def _served(project: Project, table: str) -> list[str]:
    """Return the rows that readers serve of a table at the newest epoch, by scan and by probe of each key."""
    with Warehouse.open(project.directory) as warehouse:
        scanned = sorted(record[0] for record in warehouse.scan(table, columns=["k"]).all())
        probed = sorted(record[0] for record in warehouse.probe(table, list("xyqwl"), columns=["k"]).all())
    assert [key for key in scanned if key in "xyqwl"] == probed
    return scanned


def _loaded(project: Project, table: str) -> list[str]:
    """Return the landing files that epochs record as loaded into a table, as often as they do."""
    epochs = (read_epoch(project.root, number) for number in project.numbers)
    return sorted(file.path for epoch in epochs for entry in epoch.files if entry.stream == table for file in entry.loaded)


def _differing(project: Project, spark: SparkSession) -> list[str]:
    verdicts = verdicts_of(project.root, project.epoch, spark)
    return [
        f"{verdict.view}: {verdict.outcome} {verdict.reason}"
        for verdict in verdicts
        if verdict.outcome not in ("same", "not verifiable")
    ]


def test_the_others_move_and_the_table_catches_up(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of three tables stand still, with an archive and a view; every command reports it, and afterwards no row is missing."""
    streams = {
        "a": stream(on_expiry="archive"),
        "b": stream(landing="landing/b", layout={"technique": "rebuild"}),
        "c": stream(landing="landing/c"),
    }
    project = Project(tmp_path / "project", spark, streams, views={"both": BOTH, "of_c": OF_C})
    _land(project, 1)
    _land(project, 2)
    project.update(2)
    CHANGES["delete"](project.root / "tables/a")
    CHANGES["lying optimize"](project.root / "tables/b")
    pinned = {name: project.stored(name) for name in ("a", "b")}
    for hour, alive, other_keys in ((3, "q x", "l late q w x"), (4, "q x", "l late m q short w w2 x x")):
        _land(project, hour)
        plan, _ = project.updater().plan(UpdateOptions(at=at(hour)))
        assert plan is not None
        dry = "\n".join(plan_report(plan, explain(plan, project.epoch, project.root), ()).lines)
        report = project.update(hour)
        done = update_report(report)
        assert done.exit_code == 1
        for text in (dry, "\n".join(done.lines)):
            for table in ("a", "b"):
                assert f'table "{table}" stands still: it was changed from outside: commit' in text
                assert f"stream-wh repair --undo-foreign {table}" in text
        assert [name for name, _ in report.stopped] == ["a", "a_archive", "b"]
        assert [name for name, _ in report.failed_views] == ["both"]
        assert {name: project.stored(name) for name in ("a", "b")} == pinned
        assert (_served(project, "a"), _served(project, "b")) == (alive.split(), alive.split())
        assert (project.keys("c"), project.keys("of_c")) == (other_keys, " ".join(dict.fromkeys(other_keys.split())))
        assert {fault.split(":")[0] for fault in _faults(project)} == {"foreign_commit"}
        assert len(_faults(project)) == 2
    assert project.update(4).epochs == ()  # nothing new: it stands still, and the update goes on saying so
    assert update_report(project.update(4)).exit_code == 1
    _says_so(project, capsys)
    for table in ("a", "b"):
        assert _run(project, capsys, "repair", "--undo-foreign", table)[0] == 0
    _land(project, 5)
    report = project.update(5)
    assert (report.stopped, report.failed_views, _faults(project), _differing(project, spark)) == ((), (), [], [])
    for name in "abc":
        assert (project.keys(name), _served(project, name)) == (LIVE, LIVE.split())
        assert _loaded(project, name) == ["1.csv", "2.csv", "3.csv", "4.csv", "5.csv"]
        assert (project.deferred(name), len(project.rejected(name))) == ([], 2)
    assert (project.keys("a_archive"), project.keys("of_c")) == ("x x y", " ".join(LIVE.split()))
    replayed(project.root, ["a", "b", "c", "a_archive", "of_c"])
    assert "outside" not in _run(project, capsys, "status")[1]


LIVE = "l late m n q w w2 w5 x"


def _says_so(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Check the commands that report it, and the verbs that need the current table."""
    code, output = _run(project, capsys, "status", "--check")
    assert code == 4
    for table in ("a", "b"):
        assert f"{table}: stands still: it was changed from outside" in output
        assert f"repair --undo-foreign {table}" in output
    code, output = _run(project, capsys, "update", "--dry-run", "--at", "2024-01-01T04:00:00Z")
    assert (code, "nothing to do" in output, 'table "b" stands still' in output) == (0, True, True)
    code, output = _run(project, capsys, "metrics")
    failed = [line for line in output.splitlines() if line.startswith("stream_wh_table_failed")]
    assert [line.split('"')[1] for line in failed if line.endswith(" 1.0")] == ["a", "a_archive", "b", "both"]
    page = project.directory / "report.html"
    assert _run(project, capsys, "report", "--output-file", str(page))[0] == 0
    for table in ("a", "b"):
        assert f"repair --undo-foreign {table}" in page.read_text()
    assert _run(project, capsys, "check")[0] == 4
    with pytest.raises(UsageError, match=r'view "both" stands still: it reads a.*repair --undo-foreign a'):
        project.updater().rebuild("both")
    with pytest.raises(RollbackError, match="repair --undo-foreign a"):
        project.updater().rollback(0)
    with pytest.raises(ForeignChangeError, match="repair --undo-foreign b"):
        project.updater().restate("b")


# --- each table, each kind of change, each way to go on ---


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return a warehouse after two updates with every kind of table: both techniques with archives, a relation, views."""
    streams = {
        "a": stream(on_expiry="archive"),
        "b": stream(landing="landing/b", layout={"technique": "rebuild"}, on_expiry="archive"),
        "c": stream(landing="landing/c", unknown_columns="add"),
    }
    views: dict[str, dict[str, object]] = {
        "of_a": {"sql": "SELECT DISTINCT k FROM a", "search_key": "k"},
        "both": BOTH,
        "above": {"sql": "SELECT k, count(*) AS n FROM both GROUP BY k", "search_key": "k"},
        "of_c": OF_C,
        "named": {"sql": "SELECT c.k, r.name, c.e FROM c JOIN r ON c.k = r.k", "search_key": "k"},
    }
    settings: dict[str, object] = {"retain": "2h", "publish": "delta"}
    directory = tmp_path_factory.mktemp("standing") / "base"
    project = Project(directory, spark, streams, settings, LATER, views, relations={"r": dict(RELATION)})
    for hour in (1, 2):
        project.clock = LATER + hour * HOUR
        _land(project, hour)
        project.update(hour)
    return project


Contents = dict[int, dict[str, Any]]


@pytest.fixture(scope="module")
def model(base: Project, tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """Return the contents of the tables in an undisturbed warehouse with updates in time."""
    return _updated(base.copy(tmp_path_factory.mktemp("model") / "project"), (3, 4, 5, 6))


@pytest.fixture(scope="module")
def late(base: Project, tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """Return the same without updates from 3 to 4: rows that came and ended meanwhile are dead, and in no archive."""
    return _updated(base.copy(tmp_path_factory.mktemp("late") / "project"), (5, 6))


def _updated(project: Project, hours: tuple[int, ...]) -> Contents:
    contents: Contents = {}
    for hour in (3, 4, 5, 6):
        project.clock = LATER + hour * HOUR
        _land(project, hour)
        if hour in hours:
            project.update(hour)
            contents[hour] = _content(project)
    return contents


STOPPED = {
    "tables/a": {"a", "a_archive", "of_a", "both", "above"},
    "tables/b": {"b", "b_archive"},
    "tables/r": {"r", "named"},
    "deferred/b": {"b", "b_archive"},
    "rejected/a": {"a", "a_archive", "of_a", "both", "above"},
    "tables/a_archive": {"a", "a_archive", "of_a", "both", "above"},
    "tables/both": {"both", "above"},
    "tables/of_c": {"of_c"},
}
"""What stands still when outsiders change a directory."""
CASES = [
    *(("tables/a", change, "step") for change in CHANGES),
    *(("tables/b", change, way) for change in ("delete", "torn") for way in ("step", "each", "jump", "again")),
    *(("tables/a", "overwrite", way) for way in ("each", "jump", "again")),
    *((path, "columns", "step") for path in STOPPED),
    ("tables/a_archive", "properties", "again"),
    ("tables/r", "append", "step"),
    ("tables/r", "delete", "again"),
    ("deferred/b", "append", "jump"),
    ("rejected/a", "overwrite", "step"),
    ("tables/both", "append", "each"),
]


@pytest.mark.long
@pytest.mark.parametrize(("path", "change", "way"), CASES)
def test_whatever_stood_still_catches_up(
    base: Project, model: Contents, late: Contents, tmp_path: Path, spark: SparkSession, path: str, change: str, way: str
) -> None:
    """Two updates pass; then it goes on in the next update, by jumps, with --each, or at the same window time.

    Then it is as after a late update: archives lack rows that came and ended meanwhile, and rows see changes of a relation from
    the window time on before which its table has not been joined.
    """
    project = base.copy(tmp_path / "project")
    stopped = STOPPED[path]
    CHANGES[change](project.root / path)
    for hour in (3, 4):
        project.clock = LATER + hour * HOUR
        _land(project, hour)
        report = project.update(hour)
        content = _content(project)
        assert {name for name, _ in (*report.stopped, *report.failed_views)} == stopped
        moved = {name for name in content if name.split(" ")[0] not in stopped}
        assert {name: content[name] for name in moved} == {name: model[hour][name] for name in moved}
        assert {fault.split(":")[0] for fault in _faults(project)} <= {"foreign_commit"}
    project.updater().undo_foreign()
    if way == "again":
        assert not project.update(4).stopped
        assert _expected(_content(project), model[4]) == _expected(model[4], model[4])
    for hour in (5, 6):
        project.clock = LATER + hour * HOUR
        _land(project, hour)
        if hour == 5 and way in ("each", "jump"):
            continue
        report = project.update(hour, each=way == "each")
        assert (report.stopped, report.failed_views, _faults(project)) == ((), (), [])
        content, in_time = _content(project), model[hour]
        behind = {name for name in stopped if "archive" in name}
        by_arrival = stopped & {"named"} if way == "step" else set()
        rhythm = late[hour] if way in ("step", "each") else content
        assert content == {name: rhythm[name] if name in behind | by_arrival else in_time[name] for name in content}
    assert _differing(project, spark) == []
    for name in ("a", "b", "c", "r"):
        assert _loaded(project, name)[-2:] == ["5.csv", "6.csv"]
        assert len(set(_loaded(project, name))) == len(_loaded(project, name))


def _expected(content: dict[str, Any], like: dict[str, Any], without: str = "archive") -> dict[str, Any]:
    """Return the content that does not depend on delays: archives lack rows that come and end between two updates."""
    return {name: content[name] for name in like if not name.endswith(("archive", without))}


# --- kills, and the other verbs ---


def _hour(project: Project, hour: int) -> None:
    project.clock = LATER + hour * HOUR
    _land(project, hour)


def _killed(project: Project, hour: int, point: Point, nth: int) -> None:
    """Kill an update when it reaches a point for the n-th time."""
    seen: list[Moment] = []

    def observe(moment: Moment) -> None:
        if moment.point == point:
            seen.append(moment)
            if len(seen) == nth:
                raise StoppedError

    with pytest.raises(StoppedError):
        project.update(hour, observer=observe)


KILLS = [(Point.PLAN_WRITTEN, 1), (Point.STEP_COMMITTED, 2), (Point.STEPS_DONE, 1), (Point.EPOCH_WRITTEN, 1)]


@pytest.mark.long
@pytest.mark.parametrize(("change", "kill"), [*(("delete", kill) for kill in KILLS), ("torn", KILLS[1])])
def test_a_killed_update_leaves_no_table_behind(
    base: Project, model: Contents, tmp_path: Path, change: str, kill: tuple[Point, int]
) -> None:
    """Kills while the table stands still, before the change is taken back, and while it catches up."""
    project = base.copy(tmp_path / "project")
    CHANGES[change](project.root / "tables/a")
    _hour(project, 3)
    _killed(project, 3, *kill)
    report = project.update(3)
    assert [name for name, _ in report.stopped] == ["a", "a_archive"]
    _hour(project, 4)
    _killed(project, 4, *kill)
    project.updater().undo_foreign("a")
    _killed(project, 4, Point.STEP_COMMITTED, 3)  # the plan that was begun, or the one that catches up
    report = project.update(4)
    assert (report.stopped, report.failed_views, _faults(project)) == ((), (), [])
    assert _expected(_content(project), model[4]) == _expected(model[4], model[4])
    CHANGES[change](project.root / "tables/a")
    _hour(project, 5)
    assert [name for name, _ in project.update(5).stopped] == ["a", "a_archive"]
    project.updater().undo_foreign()
    _hour(project, 6)
    _killed(project, 6, *kill)
    _killed(project, 6, Point.EPOCH_WRITTEN if kill[0] != Point.EPOCH_WRITTEN else Point.DATABASE_READY, 1)
    report = project.update(6)
    assert (report.stopped, report.failed_views, _faults(project)) == ((), (), [])
    assert _expected(_content(project), model[6]) == _expected(model[6], model[6])
    assert _loaded(project, "a")[-2:] == ["5.csv", "6.csv"]
    assert len(set(_loaded(project, "a"))) == len(_loaded(project, "a"))


@pytest.mark.long
def test_going_back_to_when_it_stood_still(base: Project, model: Contents, tmp_path: Path) -> None:
    """A rollback and a restatement to an epoch in which the table had an earlier slot than the others."""
    project = base.copy(tmp_path / "project")
    CHANGES["overwrite"](project.root / "tables/a")
    numbers = {}
    for hour in (3, 4):
        _hour(project, hour)
        project.update(hour)
        numbers[hour] = project.epoch.number
    project.updater().undo_foreign()
    with pytest.raises(RollbackError, match="then update again"):  # not yet caught up
        project.updater().rollback(numbers[3])
    with pytest.raises(UsageError, match='table "a" stands still'):
        project.updater().restate("a", since="first")
    _hour(project, 5)
    project.update(5)
    assert _expected(_content(project), model[5]) == _expected(model[5], model[5])
    done = project.updater().restate("a", since=at(3))
    assert (sorted(done.files), _faults(project)) == (["3.csv", "4.csv", "5.csv"], [])
    assert _expected(_content(project), model[5]) == _expected(model[5], model[5])
    rolled = project.updater().rollback(numbers[3])
    forgotten = [f"{file.stream}{file.path[0]}" for file in rolled.forgotten]
    assert sorted(forgotten) == ["a3", "a4", "a5", "b4", "b5", "c4", "c5", "r4", "r5"]
    assert (project.keys("a"), _faults(project)) == ("q w w2", [])  # two that waited are due
    _hour(project, 6)
    assert (project.update(6).stopped, _faults(project)) == ((), [])
    content = _content(project)
    assert _expected(content, model[6], "named") == _expected(model[6], model[6], "named")
    # late changes act from the last window time on
    assert ["'name': '3'" in line for line in content["named"]] == [True]


@pytest.mark.long
def test_the_other_tables_are_managed_while_one_stands_still(base: Project, model: Contents, tmp_path: Path) -> None:
    """Migrating, restating, rebuilding, erasing, backing up: verbs that need the table say what to do, the others work."""
    project = base.copy(tmp_path / "project")
    CHANGES["append"](project.root / "tables/a")
    added = set(DeltaTable(str(project.root / "tables/a")).file_uris())
    _hour(project, 3)
    project.update(3)
    before = _content(project)
    updater = project.updater()
    with pytest.raises(MigrationError, match="repair --undo-foreign a"):
        updater.migrate("a", MigrationRequest(LayoutSpec(grid=(1, 2))))
    with pytest.raises(ForeignChangeError, match="repair --undo-foreign a"):
        updater.erase("a", ["q"])
    updater.migrate("b", MigrationRequest(LayoutSpec(grid=(2, 2))))
    updater.restate("c", since=at(2))
    updater.rebuild("of_c")
    updater.repair()
    assert (_content(project), {fault.split(":")[0] for fault in _faults(project)}) == (before, {"foreign_commit"})
    made = back_up(project.root, project.directory / "warehouse.toml", tmp_path / "backup", now=1)
    assert verify(tmp_path / "backup") == made
    project.clock += HOUR // 2
    outlook = project.updater().vacuum(dry_run=True)
    assert project.updater().vacuum().files == outlook.files
    assert all(Path(file).exists() for file in added)
    _hour(project, 4)
    assert [name for name, _ in project.update(4).stopped] == ["a", "a_archive"]
    project.updater().undo_foreign("a")
    _hour(project, 5)
    assert (project.update(5).stopped, _faults(project)) == ((), [])
    assert _expected(_content(project), model[5]) == _expected(model[5], model[5])
