"""Updates on a cluster whose executors share nothing with the driver but the root and the landing directories."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from benchmarks.event_log import event_log_settings, tasks
from benchmarks.standalone import spark_home
from tests.operations.projects import Project, at, csv, stream, text
from warehouse.epochs.points import Moment, Point
from warehouse.errors import NotSharedError
from warehouse.storage.key_summaries import read_summary
from warehouse.storage.session import table_session
from warehouse.testing import Model, Row, Rules
from warehouse.time import HOUR, to_datetime

from .conftest import ON_BOTH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.standalone import StandaloneCluster

ROOT = Path(__file__).parent.parent.parent
MANY = 60_000
"""More rows than one task writes where others are free."""
SPELLS: dict[str, object] = {"from": "a", "group_by": "k", "of": "k < 'k01'", "window": "4h"}
"""One row for each key."""


def landed(project: Project, model: Model, hour: int, count: int, *, files: int = 2) -> None:
    """Let rows of an hour arrive, each living for up to four."""
    drawn = random.Random(hour)  # noqa: S311 - test data
    rows = []
    for _ in range(count):
        begins = hour - drawn.random()
        rows.append((f"k{drawn.randrange(count):06d}", begins, begins + 0.001 + 3.9 * drawn.random()))
    model.arrive(*(Row(at(begins), at(ends), key) for key, begins, ends in rows))
    for number in range(files):
        lines = [f"{key},{text(begins)},{text(ends)}" for key, begins, ends in rows[number::files]]
        project.land(f"{hour}-{number}.csv", csv(*lines))


def answers(project: Project) -> list[tuple[object, object]]:
    """Return key and expiry of the live rows."""
    return sorted((row["k"], row["_exp"]) for row in project.live())


def expected(model: Model) -> list[tuple[object, object]]:
    """Return those of the model."""
    return sorted((stored.row.key, to_datetime(stored.exp)) for stored in model.scan())


def landed_points(project: Project) -> dict[str, int]:
    """Return how many points of each key landed."""
    lines = [line for file in sorted((project.directory / "landing" / "a").iterdir()) for line in file.read_text().split()[1:]]
    return dict(Counter(key for key, _ in {tuple(line.split(",")[:2]) for line in lines}))


@pytest.fixture
def model() -> Model:
    """Return the model of the project's only stream."""
    return Model(Rules(anchor=at(0), interval=HOUR, max_lifetime=4 * HOUR))


def test_spark_submit_moves_windows_by_both_executors(
    cluster: StandaloneCluster, place: Path, tmp_path: Path, model: Model
) -> None:
    """The documented command loads, expires and seals; both executors write; neither sees the project or a Python.

    A coalesced table has the points that arrived, dead ones too.
    """
    project = Project(place / "submitted", None, warehouse={"root": "data"}, coalesced={"spells": SPELLS})
    landed(project, model, 1, MANY)
    for hour in (2, 3, 4):
        landed(project, model, hour, 200)
    model.update_each(at(4))
    events = tmp_path / "events"
    events.mkdir()
    settings = {**ON_BOTH, **event_log_settings(events), "spark.app.name": "nightly"}
    process = subprocess.run(
        [str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url,
         *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
         str(ROOT / "jobs" / "update.py"), "-C", str(project.directory), "--at", text(4), "--each"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": "no-python"},
        cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert answers(project) == expected(model)
    assert {row["k"]: row["members"] for row in project.live("spells")} == landed_points(project)
    assert project.numbers == [0, 1, 2, 3]
    written = {task.executor for task in tasks(events) if task.written}
    assert written == {"0", "1"}
    assert cluster.sees(project.root) == [True, True]
    assert cluster.sees(project.directory / "warehouse.toml") == cluster.sees(Path(sys.executable)) == [False, False]
    assert any('"App Name":"nightly"' in log.read_text() for log in events.iterdir()), "the command line wins over defaults"


def test_a_large_run_is_written_by_both_executors(
    on_cluster: SparkSession, place: Path, events: Path, model: Model
) -> None:
    """One run of more bytes than `target_file_size` is cut into ranges of keys, each written by a task of its own.

    An aggregate of the stream, whose condition and groups the executors evaluate, counts all that arrived.
    """
    layout = {"grid": [1, 1], "expiry_block": 4}
    declared = {"root": "data", "target_file_size": "1MB"}
    values = {"n": "count(*)", "kinds": "count(DISTINCT k)"}
    grouped = {"where": "k < 'k02'", "group_by": ["left(k, 4) AS head"]}
    declaration = {"from": "a", **grouped, "select": values, "windows": ["1h"], "keep": "9h"}
    project = Project(
        place / "large", on_cluster, {"a": stream(layout=layout)}, warehouse=declared, aggregates={"hourly": declaration}
    )
    landed(project, model, 1, 22_000)
    before = len(tasks(events))
    project.update(1)
    model.update(at(1))
    assert answers(project) == expected(model)
    bounds, summaries = [], []
    for file in (project.root / "tables/a").glob("sub_index=*/*/*.parquet"):
        keys = pq.read_table(file, columns=["k"], partitioning=None)["k"].to_pylist()
        assert keys == sorted(keys)
        bounds.append((file.parent, keys[0], keys[-1]))
        if (summary := read_summary(str(file), len(keys))) is not None:
            summaries.append(summary)
            counts = Counter(keys)
            assert all(counts[key] == count for (key,), count in summary.counts.items()), "of the rows that an executor wrote"
    assert summaries
    assert len(bounds) >= 3
    bounds.sort()
    assert all(previous[0] != following[0] or previous[2] < following[1] for previous, following in pairwise(bounds)), bounds
    assert len({task.executor for task in tasks(events)[before:] if task.written}) == 2
    landing = project.directory / "landing" / "a"
    keys = [line.partition(",")[0] for path in landing.iterdir() for line in path.read_text().splitlines()[1:]]
    arrived = {head: [key for key in keys if key < "k02" and key.startswith(head)] for head in {key[:4] for key in keys}}
    assert {row["head"]: (row["n"], row["kinds"], row["full"]) for row in project.live("hourly")} == {
        head: (len(arrived_keys), len(set(arrived_keys)), True) for head, arrived_keys in arrived.items() if arrived_keys
    }


def test_settings_of_the_project_hold(on_cluster: SparkSession) -> None:
    """What is given for all of Spark is not replaced by what an update would choose."""
    own = table_session(on_cluster, {})
    assert own.conf.get("spark.sql.shuffle.partitions") == "3"
    assert own.conf.get("spark.sql.adaptive.enabled") == "false"


def test_a_root_that_executors_do_not_see_is_an_error(
    on_cluster: SparkSession, place: Path, tmp_path: Path, model: Model
) -> None:
    """Executors write to directories of their own, of which Spark says nothing: the rows are missed, and nothing is committed."""
    shared = str(place / "large" / "landing" / "a")
    project = Project(tmp_path / "hidden", on_cluster, {"a": stream(landing=shared)}, warehouse={"root": "data"})
    landed(Project(place / "large", None), model, 3, 100)
    with pytest.raises(NotSharedError, match=r"executors wrote \d+ rows below .*_staged, of which 0 are there for the driver"):
        project.update(3)
    assert project.numbers == []


def test_a_landing_directory_that_executors_do_not_see_is_an_error(
    on_cluster: SparkSession, tmp_path: Path, model: Model
) -> None:
    """No file is left out as unreadable: the cluster is to blame."""
    project = Project(tmp_path / "hidden", on_cluster, warehouse={"root": "data"})
    landed(project, model, 1, 10)
    with pytest.raises(NotSharedError, match="an executor does not find what the driver does"):
        project.update(1)
    assert project.numbers == []


def test_a_lost_executor_costs_time_and_no_row(
    cluster: StandaloneCluster, on_cluster: SparkSession, place: Path, model: Model
) -> None:
    """One is killed with the rows that it keeps, when they are counted and not yet written; its part is read again."""
    project = Project(place / "killed", on_cluster, warehouse={"root": "data"})
    landed(project, model, 1, 200)
    project.update(1)
    landed(project, model, 2, MANY)
    killed = []

    def kill(moment: Moment) -> None:
        if moment.point == Point.STEP_READY and not killed:
            killed.extend(cluster.executors()[:1])
            os.kill(killed[0], 9)

    project.update(2, observer=kill)
    model.update(at(1))
    model.update(at(2))
    assert killed
    assert answers(project) == expected(model)
