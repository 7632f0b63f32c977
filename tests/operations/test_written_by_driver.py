"""Rows of a stream that Spark classifies and the driver writes: the same tables as by Spark, whatever is sealed or rewritten."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.operations.projects import Project, csv, parquet, row, stream
from warehouse.epochs.points import Moment, Point
from warehouse.ingest import batch
from warehouse.limits import limited
from warehouse.storage import writer
from warehouse.storage.scan import TableFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from warehouse.ingest.batch_counts import BatchCounts

NOTHING = -1
"""No file is so small, not even none: the rows of no stream are few."""
STREAMS = {"a": stream(), "b": stream(landing="landing/b", format="parquet", layout={"technique": "rebuild"})}
LINES = {
    1: [row("b", 0.5, 3), row("a", 0.5, 4.5), row("", 0.2, 2.5), row("wait", 1.5, 4.5), row("dead", 0.1, 0.9)],
    2: [row("a", 1.5, 4.5), row("b", 1.2, 5), row("ü", 1.1, 4)],
    3: [row("late", 1.5, 5), row("a", 2.5, 4.5)],
}


def landed(project: Project, hour: int) -> None:
    """Land the same rows for each stream, as a text file and as a Parquet file."""
    project.land(f"{hour}.csv", csv(*LINES[hour]))
    rows = [line.split(",") for line in LINES[hour]]
    times = [pa.array([record[column] for record in rows]).cast(pa.timestamp("us", "UTC")) for column in (1, 2)]
    keys = pa.array([record[0] or None for record in rows])
    project.land(f"{hour}.parquet", parquet(pa.table({"k": keys, "b": times[0], "e": times[1]})), landing="landing/b")


def seen(project: Project) -> list[Any]:
    """Return the rows and counts of each stream at an epoch, and the rows of its files in order."""
    return [(project.picture(name), in_files(project, name)) for name in STREAMS]


def in_files(project: Project, name: str) -> list[Any]:
    """Return the rows of each live file of a table with its directory."""
    state = project.epoch.table(name)
    assert state is not None
    files = [Path(uri) for uri in DeltaTable(str(project.root / state.path), version=state.version).file_uris()]
    return sorted((file.parent.name, file.parent.parent.name, str(pq.ParquetFile(file).read().to_pylist())) for file in files)


def test_the_driver_writes_what_spark_writes(tmp_path: Path, spark: SparkSession) -> None:
    """Rows handed over by Spark with counts, and rows written by Spark: equal tables, and files with equal rows in order.

    In hour 3 the driver does not read the stored rows that are sealed or rewritten; Spark writes them with the others.
    """
    handed, by_spark = (Project(tmp_path / name, spark, STREAMS) for name in ("handed", "spark"))
    rewritten = []
    for hour in LINES:
        for project in (handed, by_spark):
            landed(project, hour)
        with pytest.MonkeyPatch.context() as patch, limited(driver_bytes=NOTHING):
            if hour == 3:
                patch.setattr(TableFiles, "as_many_to_rewrite", lambda *_: None)
            else:
                patch.setattr(writer, "place", None)  # not asked for
            handed.update(hour)
        with pytest.MonkeyPatch.context() as patch, limited(driver_bytes=NOTHING, driver_rows=0):
            patch.setattr(writer, "stage_in_driver", None)
            by_spark.update(hour)
        assert seen(handed) == seen(by_spark), hour
        rewritten += [handed.counts("a").rewritten > 0, handed.counts("b").rewritten > 0]
    assert any(rewritten[::2])
    assert any(rewritten[1::2])


def test_a_file_that_changes_while_it_is_handed_over_is_left_out(tmp_path: Path, spark: SparkSession) -> None:
    """Like a file that changes while it is read; the other file is loaded."""
    project = Project(tmp_path, spark, {"a": stream()})
    project.land("1.csv", csv(row("a", 0.5, 3)))
    changed = project.land("2.csv", csv(row("b", 0.5, 3)))
    counted = batch._counted_in_driver

    def counting(rows: pa.Table) -> BatchCounts:
        changed.write_text(csv(row("c", 0.5, 3), row("d", 0.5, 3)))
        return counted(rows)

    with limited(driver_bytes=NOTHING), pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "_counted_in_driver", counting)
        project.update(1)
    assert project.keys() == "a"


@pytest.mark.parametrize("wide", [False, True])
def test_text_is_not_read_once_more_after_the_last_look_at_it(tmp_path: Path, spark: SparkSession, *, wide: bool) -> None:
    """If the file changes later, rejected rows, and rows too wide for the driver, are the counted rows."""
    changing, still = (Project(tmp_path / name, spark, {"a": stream()}) for name in ("changing", "still"))
    lines = [row("b", 0.5, 3)] * 30 + [row("w" * 400, 0.5, 3) if wide else row("r", 0.5, 0.2)]
    changed, _ = (project.land("1.csv", csv(*lines)) for project in (changing, still))

    def change(moment: Moment) -> None:
        if moment.point == Point.STEP_READY:
            changed.write_text(csv(row("c", 0.5, 3), row("d", 0.5, 0.2)))

    with limited(driver_bytes=NOTHING, written_bytes=8000):
        changing.update(1, observer=change)
        still.update(1)
    assert changing.picture("a") == still.picture("a")
    assert changing.counts("a").rejected == (0 if wide else 1)


def test_a_column_whose_small_letters_are_more_is_handed_over(tmp_path: Path, spark: SparkSession) -> None:
    """The Turkish capital I with a dot has two signs as a small letter, and Spark compares names sign by sign."""
    columns = {"\u0130l": "string", "b": "timestamp", "e": "timestamp"}
    project = Project(tmp_path, spark, {"a": stream(search_key="\u0130l", columns=columns)})
    project.land("1.csv", csv(row("a", 0.5, 3), row("b", 0.5, 3), header="\u0130l,b,e"))
    with limited(driver_bytes=NOTHING), pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "place", None)  # not asked for
        project.update(1)
    assert len(project.live("a")) == 2
