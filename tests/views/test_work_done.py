"""What maintenance costs: what is read, joined and written follows what arrived, not what is stored.

Twelve keys live long in all streams; then one row of key ``a`` comes for each; then nothing::

    hour   0.........1.........2.........3
    x       a..l a..l |    a    |
    y       a..l      |     a   |
    z       a..l      |      a  |
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.operations.projects import Project, at, stream, text
from warehouse.storage import lookup, scan
from warehouse.storage.deltalog import commits_after
from warehouse.storage.scan import TableFiles
from warehouse.storage.snapshot import DataFile
from warehouse.time import to_micros
from warehouse.views.maintenance import appended

from .warehouses import asked, land, stored, view

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}
_Wanted = Callable[[DataFile], bool]
KEYS = "abcdefghijkl"
VIEWS = {
    "joined": view("SELECT l.k, l.v AS lv, r.v AS rv FROM x l JOIN y r ON l.k = r.k"),
    "odd": view("SELECT DISTINCT k, v % 2 AS odd FROM z"),
    "grouped": view("SELECT k, count(*) AS n, sum(v) AS s FROM x GROUP BY k"),
    "both": view("SELECT k, v FROM x UNION ALL SELECT k, v FROM y"),
    "recent": view("SELECT k, v FROM time_window(forever, INTERVAL 3 HOURS)"),
    "all_rows": view("SELECT k, v FROM forever WHERE v > 0"),
}


class Plan(NamedTuple):
    """A physical plan: the name of an operator, what it says of itself, and the plans below."""

    name: str
    text: str
    below: tuple[Plan, ...]

    def all(self) -> Iterator[Plan]:
        """Yield the plan and all plans below it."""
        yield self
        for child in self.below:
            yield from child.all()

    @property
    def leaves(self) -> set[str]:
        """Return the names of the operators that read."""
        return {operator.name.split(" ")[0] for operator in self.all() if not operator.below}


class Work(NamedTuple):
    """The project after three updates; of the second: the plans of joins, and the files that Spark read, by table."""

    project: Project
    plans: list[Plan]
    files: dict[str, set[str]]


def _plan(node: Any) -> Plan:  # noqa: ANN401 - a SparkPlan of the JVM
    children = node.children()
    below = tuple(_plan(children.apply(number)) for number in range(children.size()))
    return Plan(node.nodeName(), node.simpleString(200), below)


def _line(key: str, begins: float, value: int) -> str:
    return f"{key},{text(begins)},{text(begins + 20)},{value}"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Work:
    """Run three updates and watch the second."""
    streams: dict[str, dict[str, object]] = {
        name: stream(columns=COLUMNS, landing=f"landing/{name}", max_lifetime="24h") for name in "xyz"
    }
    plain = {name: kind for name, kind in COLUMNS.items() if name != "e"}
    streams["forever"] = stream(columns=plain, landing="landing/forever", expires=None, max_lifetime=None)
    project = Project(tmp_path_factory.mktemp("work") / "project", spark, streams, views=VIEWS)
    many = [_line(key, 0.5, number) for number, key in enumerate(KEYS)]
    forever = [",".join(part for position, part in enumerate(line.split(",")) if position != 2) for line in many]
    land(project, 1, {"x": [*many, *many], "y": many, "z": many}, ",".join(COLUMNS))
    land(project, 1, {"forever": forever}, ",".join(plain))
    project.update(1)
    land(project, 2, {"x": [_line("a", 1.5, 40)], "y": [_line("a", 1.6, 41)], "z": [_line("a", 1.7, 40)]}, ",".join(COLUMNS))
    plans: list[Plan] = []
    files: dict[str, set[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "LARGE", -1)  # as if windows were more than the driver looks through
        patch.setattr(appended, "new_results", _watched_join(plans))
        patch.setattr(TableFiles, "read", _watched_reader(files))
        project.update(2)
    assert stored(project, "joined") == asked(project, str(VIEWS["joined"]["sql"]))
    return Work(project, plans, files)


def _watched_join(plans: list[Plan]) -> Callable[..., DataFrame | None]:
    original = appended.new_results

    def watched(*arguments: Any) -> DataFrame | None:  # noqa: ANN401 - passed on
        rows = original(*arguments)
        if rows is not None:
            plans.append(_plan(rows._jdf.queryExecution().executedPlan()))
        return rows

    return watched


def _watched_reader(files: dict[str, set[str]]) -> Callable[..., DataFrame]:
    original = TableFiles.read

    def watched(
        self: TableFiles, session: SparkSession, path: str, version: int, columns: Sequence[Any], wanted: _Wanted, **more: bool
    ) -> DataFrame:
        asked_for = {Path(file.path).name for file in self.files(path, version) if wanted(file)}
        if not more.get("placed"):  # a stream reads its own files to seal them
            files.setdefault(path, set()).update(asked_for)
        return original(self, session, path, version, columns, wanted, **more)

    return watched


def _operations(project: Project, table: str) -> set[str]:
    """Return the operations in the commits of a table."""
    operations = set()
    for commit in (project.root / "tables" / table / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        operations |= {action["commitInfo"]["operation"] for action in actions if "commitInfo" in action}
    return operations


def test_each_term_of_a_join_starts_at_what_arrived(work: Work) -> None:
    """Each side has one new row, so there are two terms: the collected delta is sent to the other side's files."""
    joins = [operator for plan in work.plans for operator in plan.all() if operator.name == "BroadcastHashJoin"]
    assert len(joins) == 2
    for join in joins:
        left, right = join.below
        build, streamed = (left, right) if "BuildLeft" in join.text else (right, left)
        assert build.leaves == {"LocalTableScan"}
        assert "Scan" in streamed.leaves
    other_joins = {
        operator.name for plan in work.plans for operator in plan.all() if "Join" in operator.name
    } - {"BroadcastHashJoin"}
    assert not other_joins


def test_few_rows_are_joined_without_reading_windows_by_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Each window is asked for the new keys of the other window and returns their matches; Spark reads neither window."""
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}", max_lifetime="24h") for name in "xy"}
    project = Project(tmp_path / "project", spark, streams, views={"joined": VIEWS["joined"]})
    many = [_line(key, 0.5, number) for number, key in enumerate(KEYS)]
    land(project, 1, {"x": [*many, *many], "y": many}, ",".join(COLUMNS))
    project.update(1)
    land(project, 2, {"x": [_line("a", 1.5, 40)], "y": [_line("b", 1.6, 41), _line("c", 1.7, 42)]}, ",".join(COLUMNS))
    asked_for: list[tuple[set[str], list[str], int]] = []
    files: dict[str, set[str]] = {}

    def watched(
        files: Sequence[DataFile], schema: StructType, keys: pa.Table | None, *more: Any, **named: Any  # noqa: ANN401 - passed on
    ) -> pa.Table | None:
        rows = lookup.looked_up(files, schema, keys, *more, **named)
        if keys is not None and rows is not None:
            tables = {Path(file.path).relative_to(project.root / "tables").parts[0] for file in files}
            asked_for.append((tables, sorted(keys["k"].to_pylist()), rows.num_rows))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "looked_up", watched)
        patch.setattr(TableFiles, "read", _watched_reader(files))
        project.update(2)
    assert sorted(asked_for, key=str) == [({"x"}, ["b", "c"], 4), ({"y"}, ["a"], 1)]
    assert files == {}
    assert stored(project, "joined") == asked(project, str(VIEWS["joined"]["sql"]))


def test_distinct_reads_only_new_files_of_its_input(work: Work) -> None:
    """Of the stream that nothing else reads, the files of this update alone; the spare rows and its own it reads as it needs."""
    state = work.project.epoch.table("z")
    assert state is not None
    new = {Path(file.path).name for commit in commits_after(work.project.root / state.path, 1) for file in commit.added}
    assert work.files["tables/z"] == new
    assert len(new) == 1
    assert stored(work.project, "odd") == asked(work.project, str(VIEWS["odd"]["sql"]))


def test_a_group_by_rewrites_the_buckets_of_changed_groups(work: Work) -> None:
    """One group changed: files of its bucket are replaced and no others; the other groups keep the ts of the first update."""
    epoch = work.project.epoch
    removed = {entry.table: entry.files for entry in epoch.removed}
    assert len({name.split("/")[0] for name in removed["tables/grouped"]}) == 1
    times = {row["k"]: to_micros(row["_ts"]) for row in work.project.live("grouped")}
    assert times == {key: at(2 if key == "a" else 1) for key in KEYS}


def test_views_of_rows_that_end_by_themselves_are_written_without_merge(work: Work) -> None:
    """The logs of MON, WKS and WK tables know creations and writes."""
    labels = {}
    for state in work.project.epoch.tables:
        if state.view is not None and state.view.node.label != "STR":
            labels[state.name] = state.view.node.label
            assert _operations(work.project, state.name) <= {"CREATE TABLE", "WRITE"}
    assert set(labels.values()) == {"MON", "WKS", "WK"}


def test_a_quiet_update_commits_nothing(work: Work) -> None:
    """Nothing came and nothing expired: a new epoch, and no commit in any table."""
    before = {state.name: state.version for state in work.project.epoch.tables}
    work.project.update(3)
    assert work.project.epoch.window_time == at(3)
    assert {state.name: state.version for state in work.project.epoch.tables} == before
    for name, version in before.items():
        assert list(commits_after(work.project.root / "tables" / name, version)) == []
