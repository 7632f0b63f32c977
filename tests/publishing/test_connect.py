"""Each snippet that ``connect`` prints, executed as it is printed, reads what a scan reads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from tests.serving.house import LAYOUT, House, build, same_tables_later
from warehouse.cli.commands import connect
from warehouse.cli.main import run
from warehouse.errors import MissingPartError, UnknownNameError, UsageError
from warehouse.project import Warehouse
from warehouse.publishing import database
from warehouse.publishing.connect import TOOLS
from warehouse.publishing.database import DATABASE

from .reading import comparable, other_tools

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.operations.projects import Project


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A warehouse in a directory whose name asks for quoting; its last three epochs are the slots of an expiry block."""
    directory = tmp_path_factory.mktemp("project")
    built = build(directory / "root")
    for slot in (5, 6):
        same_tables_later(built, slot)
    built.root = built.root.rename(directory / "o'clock \"data\"")
    (directory / "warehouse.toml").write_text(f"[warehouse]\nroot = '''{built.root.name}'''\n")
    return built


@pytest.fixture
def project(house: House) -> House:
    """The same, with the file of its newest epoch, whatever a test before left."""
    database.replace_database_if_needed(house.root, house.epochs[-1])
    return house


def printed(house: House, tool: str, table: str = "names") -> str:
    """Return a snippet."""
    return Warehouse(house.root.parent, house.root).connect(tool, table)


def expected(house: House, table: str = "names") -> list[str]:
    """Return the rows that it should read."""
    with Warehouse(house.root.parent, house.root).reader() as reader:
        return comparable(reader.scan(table).all())


def executed(text: str) -> Any:  # noqa: ANN401 - what a snippet calls `rows`
    """Execute a snippet in Python and return its rows."""
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - that it can be executed is the point
    return names["rows"]


def test_the_command_prints_every_snippet(house_project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The command offers all tools; an unknown table or tool is a usage error; -o json has the text."""
    command = ["-C", str(house_project.directory), "connect"]
    assert connect.TOOLS == TOOLS
    for tool in TOOLS:
        assert run([*command, tool, "a"]) == 0
        text = capsys.readouterr().out
        assert str(house_project.root / DATABASE) in text
        assert run([*command, tool, "a", "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"tool": tool, "table": "a", "text": text}
    assert run([*command, "duckdb", "nothing"]) == 2
    assert run([*command, "excel", "a"]) == 2


@pytest.fixture
def house_project(history: Project, tmp_path: Path) -> Project:
    """A project with its own ``warehouse.toml``."""
    return history.copy(tmp_path / "project")


def test_what_cannot_be_connected_to(project: House) -> None:
    """An unknown table, an unknown tool and a missing file are errors."""
    with pytest.raises(UnknownNameError, match="naems"):
        printed(project, "duckdb", "naems")
    with pytest.raises(UsageError, match="polars"):
        printed(project, "excel")
    file = project.root / DATABASE
    aside = file.rename(file.with_name("aside"))
    with pytest.raises(MissingPartError, match="check --repair"):
        printed(project, "duckdb")
    aside.rename(file)


def test_duckdb(project: House) -> None:
    """SQL for its shell, or any client."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        assert comparable(connection.execute(printed(project, "duckdb")).fetchall()) == expected(project)


def test_pandas(project: House) -> None:
    """A data frame, again for the next epoch in the same process."""
    pytest.importorskip("pandas")
    for number in (1, 2):
        database.replace_database(project.root, project.epochs[number])
        frame = executed(printed(project, "pandas"))
        assert len(frame) == len(project["names"].live(project.epochs[number].slot))
    assert list(frame.columns) == ["name", "value", "weight", "parts"]


def test_polars(project: House) -> None:
    """A data frame of that library, with every type."""
    pytest.importorskip("polars")
    assert comparable(executed(printed(project, "polars", "moments")).rows()) == expected(project, "moments")
    assert len(executed(printed(project, "polars"))) == len(expected(project))


def test_spark(project: House, spark: SparkSession) -> None:
    """The Delta table at the epoch's version, without rows that are dead."""
    assert spark.version
    rows = executed(printed(project, "spark", "pairs"))
    answer = [tuple(row) for row in rows.select("a", "b", "c", "n").collect()]
    assert comparable(answer) == expected(project, "pairs")


def test_metabase(project: House) -> None:
    """The snippet has the form's fields: Metabase is not installed here, but query and file are right."""
    text = printed(project, "metabase", "days")
    file_match = re.search(r"Database file +(.*)\n", text)
    query = re.search(r"^ +(SELECT .*)$", text, re.MULTILINE)
    assert file_match is not None
    assert query is not None
    with duckdb.connect(file_match[1], read_only=True) as connection:
        assert comparable(connection.execute(query[1]).fetchall()) == expected(project, "days")


def files_of(text: str) -> dict[str, str]:
    """Return the files that a snippet is made of, by their names."""
    parts = re.split(r"^# file: (.*)$", text, flags=re.MULTILINE)[1:]
    return {name: content.strip() + "\n" for name, content in zip(parts[::2], parts[1::2], strict=True)}


needs_tools = pytest.mark.skipif(other_tools() is None, reason="README: tests with other tools; $STREAM_WH_TOOLS names them")


@needs_tools
def test_dbt(project: House, tmp_path: Path) -> None:
    """A project of dbt-duckdb, as printed, builds a table with the live rows in every slot of an expiry block."""
    programs = other_tools()
    assert programs is not None
    for name, content in files_of(printed(project, "dbt")).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    block = project.epochs[-3:]
    assert [(epoch.slot - 1) // LAYOUT.expiry_block for epoch in block] == [1] * LAYOUT.expiry_block
    for epoch in block:
        database.replace_database(project.root, epoch)
        process = subprocess.run(
            [programs / "dbt", "run", "--profiles-dir", "."],
            cwd=tmp_path,
            env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert process.returncode == 0, process.stdout
        rows = _asked(programs, tmp_path / "models.duckdb", "SELECT count(*) FROM live_names")
        assert rows == len(project["names"].live(epoch.slot))


@needs_tools
def test_another_version_of_duckdb(project: House) -> None:
    """The oldest DuckDB that is promised reads every table."""
    programs = other_tools()
    assert programs is not None
    link = project.root.parent / "link"
    link.symlink_to(project.root)
    for name, table in project.tables.items():
        assert _asked(programs, link / DATABASE, f"SELECT count(*) FROM {name}") == len(table.live(project.epochs[-1].slot))
    version = _asked(programs, link / DATABASE, "SELECT version()")
    assert version != f"v{duckdb.__version__}", "the environment of other tools has another DuckDB"


def _asked(programs: Path, file: Path, query: str) -> Any:  # noqa: ANN401 - one value
    code = "import duckdb, json, sys; file, query = sys.argv[1:]; connection = duckdb.connect(file, read_only=True)\n"
    code += "print(json.dumps(connection.execute(query).fetchone()[0]))"
    process = subprocess.run([programs / "python", "-c", code, file, query], capture_output=True, text=True, check=True, cwd="/")
    return json.loads(process.stdout)


def test_snippets_in_python_are_whole_programs(project: House, tmp_path: Path) -> None:
    """What is printed runs as it is, from another directory."""
    file = tmp_path / "reading.py"
    file.write_text(printed(project, "pandas", "days"))
    process = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert "day" in process.stdout
