"""Two threads of one process update two warehouses with one Spark: neither sees the other's tables.

Both have a stream ``a`` and a view ``v`` of it, but other columns and rows. At the moments at which Spark knows tables by their
names the threads wait for each other, as far as they are let.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from warehouse.operations.verification import verdicts_of
from warehouse.storage.session import INTERPRETED, interpreted, table_session
from warehouse.views.verification import comparison
from warehouse.views.verification.analyser import Analyser

from .projects import Project, csv, row, stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

    from warehouse.operations.update import UpdateReport

HOURS = (1, 2)
COLUMNS = {
    "one": {"k": "string", "b": "timestamp", "e": "timestamp", "n": "int"},
    "other": {"k": "string", "b": "timestamp", "e": "timestamp", "w": "string"},
}
QUERIES = {
    "one": "SELECT k, sum(n) AS total FROM a GROUP BY k",
    "other": "SELECT k, max(w) AS total FROM a GROUP BY k",
}


def _meeting(patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:  # noqa: ANN401 - a class or a module
    """Let each thread wait after that call until the other has made it too, for a short time at most."""
    original: Callable[..., object] = getattr(owner, name)
    barrier = threading.Barrier(2)

    def call(*arguments: object) -> object:
        result = original(*arguments)
        with suppress(threading.BrokenBarrierError):
            barrier.wait(timeout=2)
        return result

    patch.setattr(owner, name, call)


def _project(directory: Path, spark: SparkSession, name: str) -> Project:
    views: dict[str, dict[str, object]] = {"v": {"sql": QUERIES[name], "search_key": "k"}}
    project = Project(directory / name, spark, {"a": stream(columns=COLUMNS[name])}, views=views)
    header = ",".join(COLUMNS[name])
    for hour in HOURS:
        lines = [f"{row(f'{name}{key}', hour - 0.5, 9)},{hour}" for key in range(3)]
        project.land(f"{hour}.csv", csv(*lines, header=header))
    return project


def test_two_warehouses_in_two_threads(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """First builds, with their proof, and the updates after them: no view is refused, or made of the other's rows."""
    _meeting(monkeypatch, Analyser, "_declare")
    _meeting(monkeypatch, comparison, "_show")
    projects = {name: _project(tmp_path, spark, name) for name in COLUMNS}
    reports: dict[str, list[UpdateReport]] = {name: [] for name in projects}

    def updates(name: str) -> None:
        for hour in HOURS:
            reports[name].append(projects[name].update(hour))

    threads = [threading.Thread(target=updates, args=(name,)) for name in projects]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, project in projects.items():
        assert [(report.failed_views, report.left_out) for report in reports[name]] == [((), ())] * len(HOURS), name
        rows = {record["k"]: record["total"] for record in project.live("v")}
        total: object = sum(HOURS) if name == "one" else str(max(HOURS))
        assert rows == {f"{name}{key}": total for key in range(3)}
        assert [verdict.outcome for verdict in verdicts_of(project.root, project.epoch, spark)] == ["same"]


def test_settings_come_back_when_the_last_thread_is_done(spark: SparkSession) -> None:
    """Two threads disable generated code in one session, one for longer: it is enabled again after both, not before."""
    session = table_session(spark, {"spark.sql.shuffle.partitions": "1"})
    before = {name: session.conf.get(name) for name in INTERPRETED}
    assert before != INTERPRETED
    first, second = interpreted(session), interpreted(session)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert {name: session.conf.get(name) for name in INTERPRETED} == INTERPRETED
    second.__exit__(None, None, None)
    assert {name: session.conf.get(name) for name in INTERPRETED} == before
