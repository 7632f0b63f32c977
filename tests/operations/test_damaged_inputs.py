"""Damage is not written on: what reads old rows to write them again verifies them, and says which file is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from warehouse.epochs.points import Point
from warehouse.errors import DamagedFileError, MissingPartError
from warehouse.storage.deltalog import commits_after
from warehouse.storage.replay import replay

from .projects import Project, StoppedError, csv, row, stop_at, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def flip(path: Path) -> bytes:
    """Change one bit of a page's values, and return what the file had."""
    whole = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(0)
    place = chunk.data_page_offset + chunk.total_compressed_size - 2
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    return whole


def files_of(project: Project, table: str) -> list[Path]:
    """Return the data files of a table at the newest epoch."""
    state = project.epoch.table(table)
    assert state is not None
    return [project.root / state.path / path for path in sorted(replay(project.root / state.path, state.version).files)]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Two streams and a view, one slot deep, with files for the next one waiting."""
    streams = {"a": stream(), "b": stream(landing="landing/b", layout={"technique": "rebuild"})}
    views: dict[str, dict[str, object]] = {"counts": {"sql": "SELECT k, count(*) AS n FROM a GROUP BY k", "search_key": "k"}}
    project = Project(tmp_path_factory.mktemp("loaded") / "project", spark, streams, views=views)
    for name in ("a", "b"):
        project.land("1.csv", csv(row("x", 0.5, 4.5), row("y", 0.5, 4.2)), landing=f"landing/{name}")
    project.update(1)
    for name in ("a", "b"):
        project.land("2.csv", csv(row("x", 1.5, 4.5), row("z", 1.5, 4.2)), landing=f"landing/{name}")
    return project


def test_spark_verifies_pages(loaded: Project, tmp_path: Path) -> None:
    """A view that is built over a damaged file is not left out for its own fault: the file is named."""
    project = loaded.copy(tmp_path / "project")
    (path,) = files_of(project, "a")
    flip(path)
    project.views["most"] = {"sql": "SELECT k, max(e) AS last FROM a GROUP BY k", "search_key": "k"}
    project.declare()
    with pytest.raises(DamagedFileError) as told:
        project.update(2)
    assert told.value.path == str(path)


def test_a_resumed_update_does_not_trust_damaged_files(loaded: Project, tmp_path: Path) -> None:
    """A commit whose file lost a bit in its pages is undone and made again; its size and footer are as they were."""
    project = loaded.copy(tmp_path / "project")
    state = project.epoch.table("a")
    assert state is not None
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(Point.STEPS_DONE))
    added = [file.path for commit in commits_after(project.root / state.path, state.version) for file in commit.added]
    for path in added:
        flip(project.root / state.path / path)
    project.update(2)
    assert project.keys("a") == "x x y z"


def test_a_rollback_refuses_an_epoch_with_a_damaged_file(loaded: Project, tmp_path: Path) -> None:
    """Nothing is written then."""
    project = loaded.copy(tmp_path / "project")
    damaged = files_of(project, "b")
    project.update(2)
    for path in damaged:
        flip(path)
    with pytest.raises(MissingPartError, match="not there or damaged"):
        project.updater().rollback(0)
    assert project.numbers == [0, 1]
