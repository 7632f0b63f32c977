"""Verbs that need no Spark: init, validate, doctor, demo's shape."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from warehouse.cli import checks
from warehouse.cli.commands import demo
from warehouse.cli.main import stream_wh

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ended


def test_init_writes_an_example_that_validates(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """A new project is valid as it is, and a second init overwrites nothing."""
    directory = tmp_path / "w"
    assert invoke("init", str(directory), "--example", "flights").code == 0
    validated = invoke("-C", str(directory), "validate", "-o", "json")
    assert validated.code == 0, validated.err
    record = validated.json()
    assert isinstance(record, dict)
    assert (record["streams"], record["relations"]) == (["flights", "weather"], ["planes"])
    assert record["views"] == ["with_weather", "destinations", "without_strong_wind", "by_carrier", "with_plane"]
    before = (directory / "warehouse.toml").read_bytes()
    second = invoke("init", str(directory), "--example", "flights")
    assert second.code == 2
    assert (directory / "warehouse.toml").read_bytes() == before


def test_init_is_relative_to_the_project_option(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """-C DIR init writes into DIR."""
    assert invoke("-C", str(tmp_path), "init", "--example", "flights").code == 0
    assert (tmp_path / "warehouse.toml").exists()


def test_init_knows_its_examples(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """An unknown example is a usage error that names the known ones."""
    ended = invoke("init", str(tmp_path / "w"), "--example", "fligths")
    assert ended.code == 2
    assert "flights" in ended.err


def test_init_infers_a_project_from_a_file(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """The columns come from the file."""
    source = tmp_path / "m.csv"
    source.write_text("sensor,at,until\na,2024-01-01T00:00:00Z,2024-01-01T01:00:00Z\n")
    ended = invoke("init", str(tmp_path / "w"), "--from", str(source))
    assert ended.code == 0, ended.err
    (stream,) = tomllib.loads((tmp_path / "w" / "warehouse.toml").read_text())["streams"].values()
    assert set(stream["columns"]) == {"sensor", "at", "until"}


def test_validate_reports_every_fault(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """Faults come together: exit code 2, and objects with -o json."""
    (tmp_path / "warehouse.toml").write_text('[warehouse]\nanchor = "x"\nupdate_interval = "1 hour"\nretein = "1d"\n')
    ended = invoke("-C", str(tmp_path), "validate")
    assert ended.code == 2
    for key in ("anchor", "update_interval", "retein"):
        assert key in ended.err
    problems = invoke("-C", str(tmp_path), "validate", "-o", "json").error()["problems"]
    assert {problem["key"].rpartition(".")[2] for problem in problems} >= {"anchor", "update_interval"}  # type: ignore[attr-defined]


def test_doctor_says_ok_or_what_to_do(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """One row a check; whatever is not ok has something to do, and then the exit code is 4."""
    ended = invoke("-C", str(tmp_path), "doctor", "-o", "json")
    rows: list[dict[str, object]] = ended.json()  # type: ignore[assignment]
    assert [row["check"] for row in rows] == [name for name, _ in checks.CHECKS]
    assert all(row["ok"] is (row["to_do"] is None) for row in rows)
    assert ended.code == (0 if all(row["ok"] for row in rows) else 4)


def test_doctor_finds_a_missing_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Ended]) -> None:
    """Without Java, or with JAVA_HOME pointing nowhere, it says which one to install."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = checks.java(tmp_path)
    assert "does not run" in finding.found
    assert "Java 17" in (finding.to_do or "")
    assert invoke("-C", str(tmp_path), "doctor").code == 4


def test_doctor_finds_a_java_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 17 it must be."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\" 2023-10-17' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = checks.java(tmp_path)
    assert finding.found == "21.0.1"
    assert finding.to_do


def test_doctor_checks_the_root_of_the_project(tmp_path: Path) -> None:
    """A root that does not exist yet is checked at the nearest directory above it; a faulty file is no crash."""
    assert checks.root(tmp_path).to_do is None
    (tmp_path / "warehouse.toml").write_text(
        '[warehouse]\nroot = "a/b"\nanchor = "2013-01-01T00:00:00Z"\nupdate_interval = "1h"\n'
    )
    assert "writable" in checks.root(tmp_path).found
    (tmp_path / "warehouse.toml").write_text("nonsense")
    assert checks.root(tmp_path).to_do == "run `stream-wh validate`"


def test_a_check_that_breaks_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Ended]) -> None:
    """An exception inside a check is a finding."""

    def broken(_: Path) -> checks.CheckResult:
        raise ZeroDivisionError

    monkeypatch.setattr("warehouse.cli.commands.doctor.CHECKS", (("broken", broken),))
    ended = invoke("-C", str(tmp_path), "doctor", "-o", "json")
    assert ended.code == 4
    assert ended.json()[0]["ok"] is False  # type: ignore[index]


@pytest.mark.parametrize("step", demo._STEPS, ids=lambda step: step[1][0])
def test_each_command_of_the_demo_parses(step: tuple[str, tuple[str, ...]]) -> None:
    """The demo shows commands that exist with options that exist."""
    name, *arguments = step[1]
    command = stream_wh.get_command(click.Context(stream_wh), name)
    assert command is not None
    command.make_context(name, arguments)


def test_demo_keeps_its_directory_only_when_asked(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """It never works in a directory that holds something."""
    (tmp_path / "file").touch()
    ended = invoke("demo", "--keep", str(tmp_path))
    assert ended.code == 2
    assert ended.out == ""


def test_demo_prints_each_command_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Ended]) -> None:
    """A command line, then its output; the first failure ends the demo with its exit code."""
    steps = (("a", ("init", ".", "--example", "flights")), ("b", ("validate",)), ("c", ("tables",)), ("d", ("tables",)))
    monkeypatch.setattr(demo, "_STEPS", steps)
    ended = invoke("demo", "--keep", str(tmp_path / "w"))
    assert ended.code == 1  # no epoch yet
    assert ended.out.count("$ stream-wh tables") == 1
    assert "$ stream-wh init . --example flights" in ended.out
    assert (tmp_path / "w" / "warehouse.toml").exists()


def test_demo_ends_with_the_report_that_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Callable[..., Ended]
) -> None:
    """The printed path is the path of a file that stays, even if the demo's directory is removed."""
    assert demo._STEPS[-1][1][0] == "report"
    monkeypatch.setattr(demo, "_STEPS", (("a", ("init", ".", "--example", "flights")),))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(demo, "_REPORT", "warehouse.toml")  # stands for the page: without epochs there is no report
    ended = invoke("demo")
    line = next(line for line in ended.out.splitlines() if line.startswith("The report that it made"))
    page = Path(line.partition(": ")[2])
    assert (ended.code, page.name, page.is_file(), page.parent.parent) == (0, "warehouse.toml", True, tmp_path)
    again = invoke("demo", "--keep", str(tmp_path / "kept"))
    assert f": {tmp_path / 'kept' / 'warehouse.toml'}" in again.out
