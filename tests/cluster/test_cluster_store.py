"""A root in a store and a cluster together: executors share with the driver the store, and of its files what lands."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.event_log import event_log_settings, tasks
from tests.declared import toml
from tests.objects.server import SERVER, StoreProject, made_bucket
from tests.operations.projects import at, text
from warehouse.checking.check import check
from warehouse.objects.client import client

from .conftest import ON_BOTH, STORED
from .test_cluster import MANY, ROOT, answers, expected, landed, model

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.standalone import StandaloneCluster
    from warehouse.testing import Model

__all__ = ["model"]

pytestmark = pytest.mark.skipif(not SERVER, reason="README: tests of object storage; $STREAM_WH_S3_SERVER names the server")
HOURS = 5


@pytest.fixture
def project(place: Path, store_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> StoreProject:
    """Return a project whose root is in the store."""
    for name, value in store_environment.items():
        monkeypatch.setenv(name, value)
    client.cache_clear()
    return StoreProject(place / STORED, None, place=made_bucket("cluster") / "house")


def test_executors_write_to_the_store(
    project: StoreProject, cluster: StandaloneCluster, tmp_path: Path, model: Model
) -> None:
    """An update whose master is in `[spark]` hands its jars to them: both write, and rows are loaded, expire and are sealed."""
    landed(project, model, 1, MANY)
    for hour in range(2, HOURS + 1):
        landed(project, model, hour, 200)
    model.update_each(at(HOURS))
    events = tmp_path / "events"
    events.mkdir()
    settings = {**ON_BOTH, **event_log_settings(events), "spark.master": cluster.url}
    file = project.directory / "warehouse.toml"
    file.write_text(f"spark = {toml(settings)}\n{file.read_text()}")
    command = ["-m", "warehouse.cli.main", "-C", str(project.directory), "update", "--at", text(HOURS), "--each"]
    process = subprocess.run(
        [sys.executable, *command], env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": "no-python"},
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert project.numbers == list(range(HOURS))
    assert answers(project) == expected(model)
    assert {task.executor for task in tasks(events) if task.written} == {"0", "1"}
    assert cluster.sees(project.directory / "landing") == [True, True]
    assert cluster.sees(file) == [False, False]
    assert [finding for finding in check(project.root).findings if finding.severity == "fault"] == []
