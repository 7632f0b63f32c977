"""CONTRIBUTING.md names files, commands and tests that are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.index import behaviours, listing

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
NAMED = re.compile(r"`(?P<path>[\w./-]+(?:\.py|\.md|\.toml|\.yaml|/))`")


def _paths() -> list[Path]:
    """Return the files and folders that the page names; a name without a folder stands in the last folder that was named."""
    paths, folder = [], ROOT
    for part in re.split(r"\n(?=\n|\d+\. |\|)", TEXT):
        for name in NAMED.findall(part):
            if "/" in name:
                folder = (ROOT / name) if name.endswith("/") else (ROOT / name).parent
                paths.append(ROOT / name)
            elif (ROOT / name).exists():
                paths.append(ROOT / name)
            else:
                paths.append(folder / name)
    return [path for path in paths if path.stem != "NAME"]


def test_every_file_that_the_page_names_exists() -> None:
    """So that a walk leads somewhere."""
    paths = _paths()
    assert len(paths) > 50
    assert [str(path.relative_to(ROOT)) for path in paths if not path.exists()] == []


def test_every_folder_of_tests_is_in_the_index() -> None:
    """A behaviour whose tests stand in a folder of their own has a row."""
    table = TEXT.split("## Which test shows what")[1].split("\n## ")[0]
    folders = [path.name for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()]
    missing = [name for name in folders if f"`tests/{name}/" not in table]
    assert missing == [], "add a row to the table of CONTRIBUTING.md"


def test_the_index_describes_every_test() -> None:
    """By the first line of its docstring, so that it can be found by what it shows."""
    tests = list(behaviours())
    assert len(tests) > 1000
    assert [f"{test.file}:{test.line}" for test in tests if not test.text] == []
    assert [line for line in listing("so that it can be found by what") if "tests/test_contributing.py" in line]
    command = [sys.executable, "-m", "tests.index", "so that a walk leads"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert process.stdout.count(b"\n") == 1


def test_the_hooks_are_commands_of_the_page() -> None:
    """What runs before a commit is what a contributor runs, with the versions of the lock file."""
    entries = re.findall(r"^ +entry: (.+)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    commands = [line.split("#")[0].strip() for line in TEXT.splitlines()]
    assert len(entries) == 2
    assert [entry for entry in entries if entry not in commands] == []
