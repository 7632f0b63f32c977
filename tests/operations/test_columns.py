"""Columns that are added later: declared columns, which are null in old rows, and columns that landing files bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from warehouse import Warehouse
from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.errors import ChangedDeclarationError
from warehouse.ingest.files import LandingFile
from warehouse.ingest.unknown_columns import MOST_ADDED, with_unknown_columns

from .histories import counts
from .projects import Project, StoppedError, at, csv, row, stop_at, stream, text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp"}
MORE = {"k": "string", "n": "int", "b": "timestamp", "e": "timestamp"}


@pytest.fixture
def copy(history: Project, tmp_path: Path) -> Project:
    """Return a copy of the project: epochs of slots 1, 2 and 3; w2 waits for slot 5."""
    return history.copy(tmp_path / "project")


def values(project: Project, column: str, table: str = "a") -> dict[str, Any]:
    """Return a column of the live rows by key."""
    return {record["k"]: record[column] for record in project.live(table)}


def test_old_rows_have_null_in_a_declared_column_for_every_reader(copy: Project) -> None:
    """Old and waiting rows stay in place; the library, deltalake and Spark read null, and new rows have values."""
    before = len(copy.live())
    copy.change(columns=MORE)
    copy.views["counts"] = {**copy.views["counts"], "sql": "SELECT k, count(*) AS n, count(n) AS known FROM a GROUP BY k"}
    copy.declare()
    warned = copy.update(3).warnings  # the windows do not move, and still the column is there
    assert "streams.a.columns.n is added; rows loaded before have null" in warned
    assert (values(copy, "n"), len(copy.live())) == ({"bad": None, "w": None, "x": None}, before)
    assert check(copy.root).findings == ()
    copy.land("4.csv", csv(row("y", 3.5, 7) + ",4", header="k,b,e,n"))
    copy.update(5)
    assert values(copy, "n") == {"w": None, "w2": None, "y": 4}
    state = copy.epoch.table("a")
    assert state is not None
    with Warehouse.open(copy.directory) as warehouse:
        assert sorted(warehouse.scan("a", columns=["k", "n"]).all()) == [("w", None), ("w2", None), ("y", 4)]
        assert warehouse.sql("SELECT sum(n), count(n), count(*) FROM a").all() == [(4, 1, 3)]
        assert warehouse.probe("a", ["y"], columns=["n"]).all() == [(4,)]
    table = DeltaTable(str(copy.root / state.path), version=state.version).to_pyarrow_table(columns=["k", "n"])
    assert {record["k"]: record["n"] for record in table.to_pylist()}.items() >= {"w": None, "w2": None, "y": 4}.items()
    assert copy.spark is not None
    delta = copy.spark.read.format("delta").option("versionAsOf", state.version).load(str(copy.root / state.path))
    assert {row["k"]: row["n"] for row in delta.where("_exp_slot > 5").collect()} == {"w": None, "w2": None, "y": 4}
    assert {record["k"]: (record["n"], record["known"]) for record in copy.live("counts")} == {
        "w": (1, 0), "w2": (1, 0), "y": (1, 1),
    }  # fmt: skip
    assert "n" not in copy.live(number=2)[0]
    assert check(copy.root).findings == ()


def test_a_column_is_added_once_however_often_the_update_stops(copy: Project) -> None:
    """Also if no file comes, so that the waiting rows' table gets the column and nothing else."""
    copy.change(columns=MORE)
    for point, step in ((Point.STEP_COMMITTED, 0), (Point.STEP_COMMITTED, 1), (Point.DURABLE, -1)):
        with pytest.raises(StoppedError):
            copy.update(4, observer=stop_at(point, step))
        assert "n" not in copy.live()[0]
    copy.update(4)
    assert (copy.epoch.number, values(copy, "n")) == (3, {"bad": None, "w": None, "x": None})
    assert check(copy.root).findings == ()
    copy.update(5)
    assert values(copy, "n") == {"w": None, "w2": None}
    assert check(copy.root).findings == ()


def test_going_back_to_before_a_column_adds_it_again(copy: Project) -> None:
    """The column is null in the rows of that time."""
    copy.change(columns=MORE)
    copy.update(4)
    copy.updater().rollback(1)
    assert set(values(copy, "n").values()) == {None}
    assert check(copy.root).findings == ()


def test_a_column_that_is_gone_from_the_file_is_refused(copy: Project) -> None:
    """It may have another name: the error says what to do in both cases."""
    copy.change(columns={"key": "string", "b": "timestamp", "e": "timestamp"}, search_key="key")
    with pytest.raises(ChangedDeclarationError, match=r"streams.a.columns.k: found nothing.*`stream-wh migrate a --rename k=N"):
        copy.update(4)


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_files_bring_columns(tmp_path: Path, spark: SparkSession, form: str) -> None:
    """Text stays text, Parquet keeps its types; views read what is declared; a column may be declared afterwards."""
    views = {"each": {"sql": "SELECT DISTINCT * FROM a", "search_key": "k"}}
    declared = stream(format=form, unknown_columns="add", columns=COLUMNS, max_lifetime="8h")
    project = Project(tmp_path / "project", spark, {"a": declared}, views=views)

    def land(number: int, **more: Any) -> None:  # noqa: ANN401 - values of any type
        begins, ends = at(number - 0.5), at(number + 6)
        rows = {"k": f"r{number}", "b": text(number - 0.5), "e": text(number + 6), **more}
        if form == "csv":
            project.land(f"{number}.csv", ",".join(rows) + "\n" + ",".join(map(str, rows.values())) + "\n")
        elif form == "json":
            import json  # noqa: PLC0415 - one use

            project.land(f"{number}.json", json.dumps(rows) + "\n")
        else:
            times = {"b": pa.scalar(begins, pa.timestamp("us", "UTC")), "e": pa.scalar(ends, pa.timestamp("us", "UTC"))}
            table = pa.table({name: [value] for name, value in {**rows, **times}.items()})
            (project.directory / "landing" / "a").mkdir(parents=True, exist_ok=True)
            pq.write_table(table, project.directory / "landing" / "a" / f"{number}.parquet")

    land(1)
    project.update(1)
    land(2, size=7)
    project.update(2)
    seven = 7 if form == "parquet" else "7"
    assert values(project, "size") == {"r1": None, "r2": seven}
    assert check(project.root).findings == ()
    land(3, size=8, color="red")
    project.update(3)
    assert values(project, "color") == {"r1": None, "r2": None, "r3": "red"}
    assert not any({"size", "color"} & record.keys() for record in project.live("each"))
    project.change(unknown_columns="reject", columns={**COLUMNS, "size": "bigint" if form == "parquet" else "string"})
    project.update(4)
    assert values(project, "size")["r2"] == seven
    assert values(project, "color")["r3"] == "red"
    assert {record["size"] for record in project.live("each")} == {None, seven, 8 if form == "parquet" else "8"}
    assert check(project.root).findings == ()


@pytest.mark.parametrize("name", ["_load_slot", "sub_index", "ts", "a b", "", "K "])
def test_columns_that_no_table_can_have(tmp_path: Path, name: str) -> None:
    """The file is left out with the reason."""
    project = Project(tmp_path / "project", None, {"a": stream(unknown_columns="add")})
    file = LandingFile("1.csv", 1, 0)
    (source,) = project.updater().catalog.sources
    extended, problems = with_unknown_columns(source, source.landing, [(("k", "b", "e", name), [file])])
    assert (extended, [(problem.path, problem.reason) for problem in problems]) == (source, [("1.csv", "unknown_columns")])


def test_a_file_of_ever_new_fields_is_left_out(tmp_path: Path) -> None:
    """Files can add a limited number of columns to a table."""
    project = Project(tmp_path / "project", None, {"a": stream(format="json", unknown_columns="add")})
    path = project.land("1.json", "".join(f'{{"f{number}": 1}}\n' for number in range(MOST_ADDED + 1)))
    (source,) = project.updater().catalog.sources
    _, problems = with_unknown_columns(source, source.landing, [((), [LandingFile(path.name, path.stat().st_size, 0)])])
    assert [problem.message.split(";")[0] for problem in problems] == [f"it brings {MOST_ADDED + 1} undeclared columns"]


def test_properties_of_tables_beside_are_recorded_though_no_row_moves(copy: Project) -> None:
    """A longer `retain` commits to every table; the next update starts from these commits."""
    copy.warehouse["retain"] = "30d"
    copy.declare()
    copy.update(4)
    copy.update(5)
    assert counts(copy) == {"w": 1, "w2": 1}
    assert check(copy.root).findings == ()
