"""Tests of a root in an object store; tests that need a server are collected where its parts are installed (README)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from tests.objects.server import SERVER, StoreProject, made_bucket, running_server
from warehouse.objects.path import ObjectPath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

WITHOUT_STORE = {"test_paths.py"}
NEED_STORE = sorted(file.name for file in Path(__file__).parent.glob("test_*.py") if file.name not in WITHOUT_STORE)
collect_ignore = [] if find_spec("obstore") and SERVER else NEED_STORE


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the server, and return its address; the environment gives the address to all clients."""
    copies = tmp_path_factory.mktemp("copies")
    with running_server(tmp_path_factory.mktemp("server")) as environment, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr("warehouse.storage.copies.cache_directory", lambda: copies)  # the jars' is everybody's
        yield environment["AWS_ENDPOINT_URL"]


@pytest.fixture
def bucket(server: str, request: pytest.FixtureRequest) -> ObjectPath:  # noqa: ARG001 - its environment
    """Return an empty bucket."""
    return made_bucket(f"b{crc32(request.node.nodeid.encode())}")


@pytest.fixture(scope="session")
def spark(server: str) -> Iterator[SparkSession]:  # noqa: ARG001 - its environment
    """Return a session that reaches the server."""
    from benchmarks.delta import delta_settings  # noqa: PLC0415 - same
    from tests.conftest import SMALL_AND_SHORT  # noqa: PLC0415 - tests of the store alone do without
    from warehouse.storage.session import spark_session  # noqa: PLC0415 - same

    with pytest.MonkeyPatch.context() as patch:  # no Python on executors is needed: one started would fail
        patch.setenv("PYSPARK_PYTHON", "no-python-on-executors")
        patch.setenv("STREAM_WH_CLASS_ARCHIVE", "read")  # to write the classes of all tests takes longer than it saves
        session = spark_session((*SMALL_AND_SHORT, *delta_settings()), root=ObjectPath("s3://any"))
    yield session
    session.stop()


@pytest.fixture
def project(tmp_path: Path, bucket: ObjectPath, spark: SparkSession) -> StoreProject:
    """Return a project in the store, nothing loaded yet."""
    return StoreProject(tmp_path / "project", spark, place=bucket / "house")
