"""How tests run the command line: in this process, or as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner

from warehouse.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.serving.house import House

SOURCE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    def json(self) -> object:
        """Return what was printed, decoded."""
        return msgspec.json.decode(self.out)

    def error(self) -> dict[str, object]:
        """Return the error object."""
        return msgspec.json.decode(self.err, type=dict[str, object])


@dataclass(frozen=True)
class Place:
    """A project directory, the model of its tables, which were written without Spark, and a way to run commands in it."""

    directory: Path
    house: House
    invoke: Callable[..., Ended]

    def command(self, *arguments: str) -> Ended:
        """Run a command, however it ends."""
        return self.invoke("-C", str(self.directory), *arguments)

    def run(self, *arguments: str, text: str | None = None) -> Ended:
        """Run a command that succeeds."""
        ended = self.invoke("-C", str(self.directory), *arguments, text=text)
        assert ended.code == 0, ended.err
        return ended

    def fail(self, *arguments: str) -> tuple[int, str]:
        """Run a command that fails and return its exit code and the error's code name."""
        ended = self.command(*arguments, "-o", "json")
        assert ended.out == ""
        return ended.code, str(ended.error()["code"])

    def rows(self, *arguments: str, text: str | None = None) -> list[dict[str, Any]]:
        """Return the rows that a command prints."""
        lines = self.run(arguments[0], "-o", "jsonl", *arguments[1:], text=text).out.splitlines()
        return [msgspec.json.decode(line) for line in lines]


@pytest.fixture
def invoke() -> Callable[..., Ended]:
    """Run a command in this process, error handling included."""

    def start(*arguments: str, text: str | None = None) -> Ended:
        with CliRunner().isolation(input=text) as (out, err, _):
            code = run(list(arguments))
            sys.stdout.flush()
            sys.stderr.flush()
            return Ended(code, out.getvalue().decode(), err.getvalue().decode())

    return start


def command_line() -> list[str]:
    """Return the installed entry point, or what it calls when the project is not installed."""
    installed = Path(sys.executable).parent / "stream-wh"
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "warehouse.cli"]


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment in which a process finds this source tree."""
    paths = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": paths}


@pytest.fixture
def stream_wh(environment: dict[str, str]) -> Callable[..., Ended]:
    """Run the real entry point as a process."""

    def start(*arguments: str, text: str = "", cwd: Path | None = None, **env: str) -> Ended:
        process = subprocess.run(
            [*command_line(), *arguments],
            input=text.encode(),
            capture_output=True,
            cwd=cwd,
            env={**environment, **env},
            timeout=120,
            check=False,
        )
        return Ended(process.returncode, process.stdout.decode(), process.stderr.decode())

    return start
