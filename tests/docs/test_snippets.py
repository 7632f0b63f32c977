"""Every snippet of README.md and docs/ is executed, over projects of the bundled example; each block has a copy of its own.

The tutorial is executed in its order, and its project is what other pages are about. What cannot run here says why
where it stands, and is counted below.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.declared import toml
from warehouse.cli.main import run
from warehouse.publishing.database import DATABASE
from warehouse.sample_data import __file__ as samples

from .blocks import PAGES, Block, blocks_of
from .execute import console, lines_of, python, script, sql
from .tutorial import copied

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_RUN = {"README.md": 1, "tutorial.md": 1, "budgets.md": 1, "schedulers.md": 1, "object-storage.md": 1, "other-tools.md": 1}
"""How many blocks of a page say that they are not run; no other page has any."""
ELSEWHERE = {
    "README.md": {"tests", "demo"},  # .ci/run, and by hand
    "object-storage.md": {"a root in a store"},  # tests/objects
    "clusters.md": {"standalone", "spark-submit on a cluster"},  # tests/cluster
    "schedulers.md": {  # tests/airflow, tests/operations/test_run.py
        "systemd run", "container file",
        "cron", "systemd service", "systemd timer", "spark-submit", "airflow", "airflow spark-submit", "airflow pod",
    },
    "views.md": {""},  # tests/views/test_documentation.py
}  # fmt: skip
"""Blocks that others execute, by the comment above them."""
FRESH = "each in a project without an epoch"
EXITS = "exits with "
ALONE = ("operations.md", "erasing.md", "correcting.md", "layouts.md", "following.md", "other-tools.md")
"""Pages about one stream: without views and other tables their commands take a fraction of the time."""
RUN = [
    block
    for page in PAGES
    if page != "tutorial.md"
    for block in blocks_of(page)
    if not block.not_run and block.language != "text" and not block.directive and block.comment not in ELSEWHERE.get(page, ())
]
EXAMPLE = Path(samples).parent / "flights"


@pytest.fixture(autouse=True)
def _as_a_person_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without colours, on a wide terminal, and with tables in a project of one's own."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "130")
    monkeypatch.delenv("STREAM_WH_PROJECT", raising=False)


@pytest.fixture(scope="module")
def alone(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project that has the stream of flights only, updated at 12:00 and at 18:00."""
    del spark
    project = _declared_alone(tmp_path_factory.mktemp("alone") / "flights")
    for hour in (12, 18):
        assert run(["-C", str(project), "update", "--at", f"2013-01-01T{hour}:00:00Z"]) == 0
    return project


def _declared_alone(project: Path) -> Path:
    """Make a project with the stream of flights only, and four of its files."""
    project.mkdir(parents=True)
    text = (EXAMPLE / "warehouse.toml").read_text()
    (project / "warehouse.toml").write_text(text.split("[streams.weather]")[0])
    landing = project / "landing" / "flights"
    landing.mkdir(parents=True)
    for hour in ("11", "12", "15", "18"):
        shutil.copy(EXAMPLE / "landing" / "flights" / f"2013-01-01T{hour}.csv.gz", landing)
    return project


def test_the_tutorial(tutorial: Path) -> None:
    """Its commands do what it says and show what it shows."""
    assert (tutorial / "report.html").is_file()


@pytest.mark.parametrize("block", RUN, ids=str)
def test_a_snippet(block: Block, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> None:
    """It runs as it stands: shell commands end with 0, or with what the page says; sessions show what they show."""
    del spark  # the active one
    if block.language == "toml":
        _declared(block, tmp_path)
    elif block.comment == FRESH:
        for number, line in enumerate(lines_of(block.text)):
            script(block, _declared_alone(tmp_path / str(number)), line)
    elif "stream-wh init" in block.text:
        _begun(block, request.getfixturevalue("tutorial"), tmp_path)
    else:
        project = request.getfixturevalue("alone" if block.page in ALONE else "tutorial")
        _executed(block, copied(project, tmp_path / "flights"))


def _begun(block: Block, tutorial: Path, directory: Path) -> None:
    """Execute a block that begins with a new project; it gets the tutorial's tables, which saves updates."""
    first, rest = re.split(r"(?<=\ncd flights\n)", block.text, maxsplit=1)
    script(block, directory, first)
    shutil.copytree(tutorial / "data", directory / "flights" / "data")
    shutil.copytree(tutorial / "landing", directory / "flights" / "landing", dirs_exist_ok=True)  # known by their times, too
    script(block, directory / "flights", rest)


def _executed(block: Block, project: Path) -> None:
    """Execute a block in a project, whatever the page calls its place."""
    (project / "keys.txt").write_text("N24211\n")
    text = block.text.replace("/srv/flights", str(project)).replace("/mnt/copy", str(project))
    match block.language:
        case "sh" if block.comment.startswith(EXITS):
            code = int(re.findall(r"\d+", block.comment)[0])
            *before, last = lines_of(text)
            for line in before:
                script(block, project, line, codes=(0, code))
            script(block, project, last, codes=(code,))
        case "sh":
            script(block, project, text)
        case "console":
            console(block, project)
        case "python":
            python(block, project.parent, {})
        case "sql":
            with duckdb.connect() as connection:
                if "ATTACH" not in text:
                    connection.execute(f"ATTACH '{project / 'data' / DATABASE}' AS warehouse (READ_ONLY)")
                sql(block, connection, text)
        case _:
            raise AssertionError(f"{block}: nobody knows how to execute {block.language or 'a block without a language'}")


def _declared(block: Block, directory: Path) -> None:
    """Validate a part of a `warehouse.toml`, merged into the example's."""
    whole = tomllib.loads((EXAMPLE / "warehouse.toml").read_text())
    for section, tables in tomllib.loads(block.text).items():
        for name, keys in tables.items():
            own = whole.setdefault(section, {})
            own[name] = {**own.get(name, {}), **keys} if isinstance(keys, dict) else keys
    for name in ("flights", "weather", "planes"):
        (directory / "landing" / name).mkdir(parents=True)
    (directory / "warehouse.toml").write_text("\n".join(f"{section} = {toml(tables)}" for section, tables in whole.items()))
    assert run(["-C", str(directory), "validate"]) == 0


def test_what_is_not_run_is_known() -> None:
    """Each block that is not run says why, and there are no more of them than are counted here."""
    skipped = [block for page in PAGES for block in blocks_of(page) if block.not_run]
    assert Counter(block.page for block in skipped) == Counter(NOT_RUN)
    assert all(len(block.not_run) > 10 for block in skipped)


def test_blocks_that_others_execute_are_there() -> None:
    """Each name stands above a block of its page."""
    for page, comments in ELSEWHERE.items():
        assert comments <= {block.comment for block in blocks_of(page)}, page


def test_no_snippet_hides_in_an_indentation() -> None:
    """Code stands in fences with a language, where it is found; four blanks at the left begin none."""
    for page, path in PAGES.items():
        text = re.sub(r"^( *)```.*?^\1```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
        assert not re.findall(r"(?:\A|\n)\n    \S.*", text), page
        assert all(block.language for block in blocks_of(page)), page
