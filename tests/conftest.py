"""One Spark session for all tests that need one; pure tests never start it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from warehouse.limits import limited

# A runner in the background may ignore Ctrl-C and hand that on to every process; the tests of it need it as a user has it.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["STREAM_WH_READ_LOG"] = "off"  # tests leave nothing in the state directory of who runs them
settings.register_profile("behaviour", deadline=None)  # a busy machine is slow, not wrong
settings.load_profile("behaviour")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.operations.projects import Project

VFORK = "-Djdk.lang.Process.launchMechanism=VFORK" if sys.platform == "linux" else ""
"""Hadoop starts a process of `chmod` for every file and directory that it makes: this way in half the time."""
SMALL_AND_SHORT = (
    ("spark.master", "local[2]"),
    ("spark.sql.shuffle.partitions", "2"),
    ("spark.default.parallelism", "2"),
    ("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2"),  # Delta's VACUUM starts as many tasks: else 10 000
    (
        "spark.driver.extraJavaOptions",
        f"{VFORK} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC -Xmn600m",
    ),
)


@pytest.fixture(scope="session", autouse=True)
def _the_disk_is_not_waited_for() -> Iterator[None]:
    """Sync nothing: no test cuts the power. What is synced, and when, is what the watchers of ``local_disk`` are told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # a handle that is closed is an error still
        yield


@pytest.fixture
def set_limits() -> Iterator[Callable[..., object]]:
    """Put limits in force until the test ends: ``set_limits(files_per_plan=1)``."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(limited(**changes))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Return the session, stopped after the last test; it has Delta too, by which tests read and write as others do, and Avro."""
    from benchmarks.delta import delta_settings  # noqa: PLC0415 - same
    from warehouse.storage.session import INTERPRETED, spark_session  # noqa: PLC0415 - pure tests never import Spark

    with pytest.MonkeyPatch.context() as patch:  # no Python on executors is needed: one started would fail
        patch.setenv("PYSPARK_PYTHON", "no-python-on-executors")
        if "PYTEST_XDIST_WORKER" in os.environ:  # writing the classes of thousands of tests takes longer than it saves
            patch.setenv("STREAM_WH_CLASS_ARCHIVE", "read")
        session = spark_session((*SMALL_AND_SHORT, *delta_settings()), formats=("avro",))
    asked = {**INTERPRETED, "spark.sql.adaptive.enabled": "false"}
    for name, value in asked.items():  # for what tests ask Spark and Delta of few rows; the warehouse has sessions of its own
        session.conf.set(name, value)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return a warehouse of three epochs with every kind of table; tests copy it. Several processes make it once."""
    from tests.operations.histories import history_of  # noqa: PLC0415 - pure tests do without

    own = tmp_path_factory.mktemp("history")
    shared = tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return history_of(own / "project", shared / "shared-history", spark)


@pytest.fixture(scope="session")
def expiring(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return a warehouse of two epochs with views, whose next updates need no Spark; tests copy it. Made once, as above."""
    from tests.operations.expiring import expiring_of  # noqa: PLC0415 - pure tests do without

    own = tmp_path_factory.mktemp("expiring")
    shared = tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return expiring_of(own / "project", shared / "shared-expiring", lambda: spark)


@pytest.fixture(scope="session")
def tutorial(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """Return the project that the tutorial of the docs makes, three epochs of flights; tests copy it. Made once, as above."""
    from tests.docs.tutorial import tutorial_project  # noqa: PLC0415 - pure tests do without

    del spark
    own = tmp_path_factory.mktemp("tutorial")
    shared = tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return tutorial_project(own / "flights", shared / "shared-tutorial")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run quick tests first; where workers share the files, last, so that no worker waits long for the other's last file."""
    shared = hasattr(config, "workerinput")
    items.sort(key=lambda item: _is_quick(item) == shared)


def _is_quick(item: pytest.Item) -> bool:
    """Whether a test needs neither the Spark session nor processes."""
    module = getattr(item, "module", None)
    return "spark" not in getattr(item, "fixturenames", ()) and not hasattr(module, "subprocess") and not hasattr(module, "Soak")
