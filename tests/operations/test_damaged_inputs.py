"""Damage is not copied: a step that reads old rows to rewrite them verifies them, and names the damaged file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.errors import DamagedFileError, MissingPartError
from warehouse.storage.deltalog import commits_after
from warehouse.storage.replay import replay
from warehouse.time import HOUR

from .histories import RELATION
from .projects import ANCHOR, Project, StoppedError, csv, row, stop_at, stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


def flip(path: Path) -> bytes:
    """Change one bit of a page's values, and return the former content."""
    whole = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(0)
    offset = chunk.data_page_offset + chunk.total_compressed_size - 2
    path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
    return whole


def files_of(project: Project, table: str) -> list[Path]:
    """Return the data files of a table at the newest epoch."""
    state = project.epoch.table(table)
    assert state is not None
    return [project.root / state.path / path for path in sorted(replay(project.root / state.path, state.version).files)]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Two streams, a relation and a view, one slot deep, with files for the next update, which seals; a row waits too."""
    streams = {"a": stream(), "b": stream(landing="landing/b", layout={"technique": "rebuild", "grid": [1, 1]})}
    views: dict[str, dict[str, object]] = {"counts": {"sql": "SELECT k, count(*) AS n FROM a GROUP BY k", "search_key": "k"}}
    directory = tmp_path_factory.mktemp("loaded") / "project"
    project = Project(directory, spark, streams, views=views, relations={"r": dict(RELATION)})
    for name in ("a", "b"):
        waiting = [row("w", 1.5, 4.5)] if name == "a" else []
        project.land("1.csv", csv(row("x", 0.5, 4.5), row("y", 0.5, 4.2), *waiting), landing=f"landing/{name}")
    project.land("1.csv", "k,c,name\nx,2023-01-01T00:00:00Z,X\n", landing="landing/r")
    project.update(1)
    for name in ("a", "b"):
        project.land("2.csv", csv(row("x", 1.5, 4.5), row("z", 1.5, 4.2)), landing=f"landing/{name}")
    project.land("2.csv", "k,c,name\nx,2024-01-01T01:10:00Z,Y\n", landing="landing/r")
    return project


def test_spark_verifies_pages(loaded: Project, tmp_path: Path) -> None:
    """A view that is built over a damaged file is not blamed and left out: the error names the file."""
    project = loaded.copy(tmp_path / "project")
    (path,) = files_of(project, "a")
    flip(path)
    project.views["most"] = {"sql": "SELECT k, max(e) AS last FROM a GROUP BY k", "search_key": "k"}
    project.declare()
    with pytest.raises(DamagedFileError) as error:
        project.update(2)
    assert error.value.path == str(path)


def test_a_resumed_update_does_not_trust_damaged_files(loaded: Project, tmp_path: Path) -> None:
    """A commit whose file has a flipped bit in its pages is undone and made again; the file's size and footer were right."""
    project = loaded.copy(tmp_path / "project")
    state = project.epoch.table("a")
    assert state is not None
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(Point.STEPS_DONE))
    added = [file.path for commit in commits_after(project.root / state.path, state.version) for file in commit.added]
    for path in added:
        flip(project.root / state.path / path)
    project.update(2)
    assert project.keys("a") == "w x x y z"


def test_an_update_does_not_read_again_what_it_has_hashed(
    loaded: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files got their checksums when they were written; only files of earlier processes are read."""
    project = loaded.copy(tmp_path / "project")
    read: list[Path] = []
    monkeypatch.setattr("warehouse.storage.deltalog.damage", read.append)
    project.update(2)
    assert read == []


def test_a_rollback_refuses_an_epoch_with_a_damaged_file(loaded: Project, tmp_path: Path) -> None:
    """Nothing is written."""
    project = loaded.copy(tmp_path / "project")
    damaged = files_of(project, "b")
    project.update(2)
    for path in damaged:
        flip(path)
    with pytest.raises(MissingPartError, match="not there or damaged"):
        project.updater().rollback(0)
    assert project.numbers == [0, 1]


def flip_header(path: Path) -> bytes:
    """Change a bit of the first page's header, which no page checksum covers, and return the former content."""
    whole = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(0)
    offset = (chunk.dictionary_page_offset or chunk.data_page_offset) + 5
    path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
    return whole


def directories_of(project: Project) -> list[tuple[str, int]]:
    """Return the directories that the newest epoch names, with their versions."""
    states = project.epoch.tables
    sides = [side for state in states for side in (state.deferred, state.rejected, state.restored) if side is not None]
    return [(named.path, named.version) for named in (*states, *sides)]


def written_again(before: Project, after: Project) -> dict[str, str]:
    """Return a file with live rows that the last update of each table wrote again, by directory, in the order of the steps."""
    rewritten: list[tuple[int, str, str]] = []
    window_time = after.epoch.window_time
    for path, version in directories_of(before):
        state = replay(before.root / path, version)
        for commit in commits_after(after.root / path, version):
            for file in commit.removed:
                stats = json.loads(state.files[file]["stats"])["maxValues"] if file in state.files else {}
                if "_exp_slot" not in stats or ANCHOR + stats["_exp_slot"] * HOUR > window_time:
                    rewritten.append((int(commit.metadata["step"]), path, file))
    return {path: file for _, path, file in sorted(rewritten)}


@pytest.fixture(scope="module")
def updated(loaded: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The same after an update that rewrites rows of all kinds of tables."""
    after = loaded.copy(tmp_path_factory.mktemp("updated") / "project")
    after.update(2)
    return after


@pytest.mark.parametrize("damaged", [flip, flip_header])
def test_what_is_written_again_is_verified_first(
    loaded: Project, updated: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: Callable[[Path], bytes]
) -> None:
    """A seal, a rebuild, buckets of a relation and a view, deferred rows: the damaged file is named, nothing committed.

    However large the files are: none is so small that it is verified before any lookup.
    """
    monkeypatch.setattr("warehouse.storage.scan._VERIFIED", 0)
    files = written_again(loaded, updated)
    assert sorted(files) == sorted(["tables/a", "deferred/a", "tables/b", "tables/r", "tables/counts"])
    project = loaded.copy(tmp_path / "project")
    versions = dict(directories_of(project))
    for path, file in files.items():
        whole = damaged(project.root / path / file)
        with pytest.raises(DamagedFileError) as error:
            project.update(2)
        assert error.value.path == str(project.root / path / file)
        assert list(commits_after(project.root / path, versions[path])) == []
        assert project.epoch.number == loaded.epoch.number
        (project.root / path / file).write_bytes(whole)
    project.update(2)
    assert all(project.live(state.name) == updated.live(state.name) for state in loaded.epoch.tables)
    assert not check(project.root).faults
