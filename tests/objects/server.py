"""An S3 server on loopback, and projects whose root is in it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

from tests.operations.projects import Project
from warehouse.objects.path import ObjectPath

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SERVER", "StoreProject", "made_bucket", "running_server"]

SERVER = os.environ.get("STREAM_WH_S3_SERVER", "")
"""Moto's command, in an environment of its own (README); what starts is the part of it that is S3."""
_SECONDS = 30.0


@contextmanager
def running_server(directory: Path) -> Iterator[dict[str, str]]:
    """Start the server with its log in a directory, and give the environment in which clients find it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (directory / "server.log").open("w") as log:
        program = [Path(SERVER).with_name("python"), Path(__file__).with_name("s3_alone.py"), str(port)]
        process = subprocess.Popen(program, stdout=log, stderr=log)
        try:
            _await(process, port)
            yield {
                "AWS_ACCESS_KEY_ID": "somebody",
                "AWS_SECRET_ACCESS_KEY": "something",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                "AWS_REGION": "us-east-1",
                "AWS_ALLOW_HTTP": "true",
            }
        finally:
            process.terminate()
            process.wait()


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            if time.monotonic() > deadline or process.poll() is not None:
                raise
            time.sleep(0.05)
        else:
            return


def made_bucket(name: str) -> ObjectPath:
    """Make a bucket on the server that the environment names."""
    connection = HTTPConnection(os.environ["AWS_ENDPOINT_URL"].removeprefix("http://"), timeout=10)
    connection.request("PUT", f"/{name}")
    assert connection.getresponse().status == HTTPStatus.OK
    connection.close()
    return ObjectPath(f"s3://{name}")


@dataclass
class StoreProject(Project):
    """A project whose root is in the store; landing directories are local."""

    place: ObjectPath = field(default_factory=lambda: ObjectPath("s3://nowhere"))

    def __post_init__(self) -> None:
        self.warehouse = {"root": str(self.place), **self.warehouse}
        super().__post_init__()

    @property
    def root(self) -> ObjectPath:
        """Return where the tables are."""
        return self.place
