"""What docs/schedulers.md tells to write, as far as it can be tried without Airflow; the rest is in ``test_dags``."""

from __future__ import annotations

import ast
import configparser
import shlex
from typing import TYPE_CHECKING

import pytest

from airflow_stream_wh.verdict import RETRY_CODES
from warehouse.cli.commands.update import update
from warehouse.cli.main import stream_wh

from .recipes import recipe

if TYPE_CHECKING:
    from pathlib import Path


def _accepted(arguments: list[str], project: Path) -> dict[str, object]:
    """Parse a command line of the docs, for another project, and return the options of ``update``."""
    if arguments[0] == "-C":
        assert stream_wh.make_context("stream-wh", ["-C", str(project), *arguments[2:]]).params["directory"] == project
        arguments = arguments[2:]
    assert arguments[0] == "update"
    return update.make_context("update", arguments[1:]).params


def test_cron(tmp_path: Path) -> None:
    """Five fields, a user, and a command line that is accepted; cron takes a percent sign for the end of the line."""
    variable, line = recipe("cron").strip().splitlines()
    fields = line.split(None, 6)
    assert variable.startswith("STREAM_WH_PROJECT=")
    assert fields[:6] == ["5", "*", "*", "*", "*", "warehouse"]
    assert "%" not in line
    words = shlex.split(fields[6].partition(">>")[0])
    assert words[0].endswith("/stream-wh")
    assert _accepted(words[1:], tmp_path)["output"] == "json"


def test_systemd(tmp_path: Path) -> None:
    """The service interrupts as Ctrl-C does, and does not repeat what no retry mends; the timer starts it."""
    service, timer = (configparser.ConfigParser(interpolation=None) for _ in range(2))
    for unit in (service, timer):
        unit.optionxform = str  # type: ignore[assignment, method-assign]
    service.read_string(recipe("systemd service"))
    timer.read_string(recipe("systemd timer"))
    words = shlex.split(service["Service"]["ExecStart"])
    assert words[0].endswith("/stream-wh")
    _accepted(words[1:], tmp_path)
    assert service["Service"]["KillSignal"] == "SIGINT"
    final = {int(code) for code in service["Service"]["RestartPreventExitStatus"].split()}
    assert final == {1, 2, 4}
    assert final.isdisjoint(RETRY_CODES)
    assert timer["Timer"]["Persistent"] == "true"
    assert timer["Install"]["WantedBy"] == "timers.target"


def test_spark_submit(tmp_path: Path) -> None:
    """The command accepts the arguments that follow the job's path."""
    words = shlex.split(recipe("spark-submit"))
    position = words.index("jobs/update.py")
    assert words[0] == "spark-submit"
    assert _accepted([*words[position + 1 : position + 3], "update", *words[position + 3 :]], tmp_path)["at"] is not None


@pytest.mark.parametrize("marker", ["airflow", "airflow spark-submit", "airflow pod"])
def test_python(marker: str) -> None:
    """It is Python, and what it imports of this package is there."""
    import airflow_stream_wh  # noqa: PLC0415 - what the recipes import

    names = [
        alias.name
        for node in ast.walk(ast.parse(recipe(marker)))
        if isinstance(node, ast.ImportFrom) and node.module == "airflow_stream_wh"
        for alias in node.names
    ]
    assert names
    assert set(names) <= set(airflow_stream_wh.__all__)


def test_the_pod_runs_the_command(tmp_path: Path) -> None:
    """The arguments name the project on the pod's volume."""
    calls = [node for node in ast.walk(ast.parse(recipe("airflow pod"))) if isinstance(node, ast.Call)]
    pod = next(call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "KubernetesPodOperator")
    keywords = {word.arg: word.value for word in pod.keywords}
    command = ast.literal_eval(keywords["cmds"])
    assert command[:2] == ["stream-wh", "-C"]
    assert isinstance(keywords["arguments"], ast.List)
    *before, last = keywords["arguments"].elts
    assert isinstance(last, ast.Name)
    assert last.id == "UPDATE_TIME"
    _accepted([*(ast.literal_eval(word) for word in before), "2013-01-01T12:00:00+00:00"], tmp_path)
