"""A standalone cluster of Spark for the tests of this folder, which run as a step of their own (README).

Nobody but the driver sees a project: the workers see the roots and landing directories of :data:`PROJECTS`, under their own
paths, and nothing else of this machine's files (:mod:`benchmarks.standalone`).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.event_log import event_log_settings
from benchmarks.standalone import StandaloneCluster
from tests.objects.server import SERVER, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

VARIABLE = "STREAM_WH_CLUSTER"
OWN = ["test_aggregates.py", "test_budgets.py", "test_cluster.py", "test_cluster_store.py"]
collect_ignore = [] if VARIABLE in os.environ else OWN


def _isolates() -> bool:
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    all_of_it = "mount -t tmpfs tmpfs /mnt && mkdir /mnt/etc && mount --rbind /etc /mnt/etc && exec chroot / true"
    process = subprocess.run(["unshare", *as_root, "--mount", "sh", "-c", all_of_it], check=False, capture_output=True)
    return process.returncode == 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests where workers cannot be kept apart."""
    own = [item for item in items if item.path.parent == Path(__file__).parent]
    if own and not _isolates():
        for item in own:
            item.add_marker(pytest.mark.skip(reason="this machine does not let mount namespaces be made"))


_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PROJECTS = ("submitted", "killed", "large", "owing", "counted")
STORED = "stored"
"""The project whose root is in a store: of its files executors see what lands."""
ON_BOTH = {
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    # Nothing runs before both are there, and no task waits for the executor that it would like best.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "200s",
    "spark.locality.wait": "0s",
    "spark.speculation": "true",
    # Little data: what is compiled well runs no longer than that takes.
    "spark.driver.extraJavaOptions": _QUICK,
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of all projects, with the directories that they share."""
    directory = tmp_path_factory.mktemp("projects")
    for name in PROJECTS:
        for part in ("data", "landing/a"):
            (directory / name / part).mkdir(parents=True)
    (directory / STORED / "landing" / "a").mkdir(parents=True)
    return directory


@pytest.fixture(scope="session")
def store_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start the S3 server, where there is one, and return the environment in which it is found; empty without one."""
    if not SERVER:
        yield {}
        return
    with running_server(tmp_path_factory.mktemp("server")) as environment:
        yield environment


@pytest.fixture(scope="session")
def cluster(
    place: Path, store_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StandaloneCluster]:
    """Return a cluster of two workers with one core each."""
    shared = [place / name / part for name in PROJECTS for part in ("data", "landing")] + [place / STORED / "landing"]
    with StandaloneCluster(tmp_path_factory.mktemp("cluster") / "logs", shared, environment=store_environment) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the session's event log."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def on_cluster(cluster: StandaloneCluster, events: Path) -> Iterator[SparkSession]:
    """Return a session of this process whose executors are the cluster's."""
    from warehouse.storage.session import spark_session  # noqa: PLC0415 - pure tests never import Spark

    own = {"spark.master": cluster.url, **ON_BOTH, **event_log_settings(events), "spark.sql.shuffle.partitions": "3"}
    session = spark_session(own.items())
    yield session
    session.stop()
