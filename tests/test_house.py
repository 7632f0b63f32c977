"""The structure of the repository is what the README says."""

from __future__ import annotations

import re
import tomllib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent
ROOM = re.compile(r"`(\w+)(?:/|\.py)`")


def test_imports_keep_the_contract() -> None:
    """No room imports one above it, the library imports no command, and no file imports in a circle.

    In a process of its own: the linter turns off the loggers of the process that it runs in.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(lint_imports, config_filename=str(ROOT / "pyproject.toml"), no_cache=True).result() == 0


def test_the_readme_lists_the_rooms_of_the_contract() -> None:
    """The README's table of rooms has the contract's order, from the ground up, and misses none."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "warehouse")
    text = (ROOT / "README.md").read_text()
    table = text.split("| room | what it owns |\n|---|---|\n")[1].split("\n\n")[0]
    rows = [ROOM.findall(line.split("|")[1]) for line in table.splitlines()]
    assert rows == [layer.split(" : ") for layer in reversed(layers)]


def test_one_module_spells_the_system_columns() -> None:
    """The columns of the grid's cell, of a row's slots and of its times stand together in ``layout/columns.py`` alone."""
    pair = re.compile(r'^\w+ = .*("sub_index", "exp_block"|"_load_slot", "_exp_slot"|"_ts", "_exp"[),])', re.MULTILINE)
    rooms = (ROOT / "warehouse").rglob("*.py")
    spelled = [path.relative_to(ROOT).as_posix() for path in rooms if pair.search(path.read_text())]
    assert spelled == ["warehouse/layout/columns.py"]


def test_one_module_spells_the_folders_of_tables() -> None:
    """A room that goes through all tables cannot miss those of a role."""
    spelled = [path for path in (ROOT / "warehouse").rglob("*.py") if '"tables", "deferred"' in path.read_text()]
    assert [path.relative_to(ROOT).as_posix() for path in spelled] == ["warehouse/storage/tables.py"]


def test_no_class_name_stands_for_two_things() -> None:
    """A reader who finds a name in the code, private ones included, need not ask which class of that name it is."""
    named: dict[str, list[str]] = {}
    rooms = (ROOT / name for name in ("warehouse", "cli", "airflow_stream_wh"))
    for path in sorted({path.resolve() for room in rooms for path in room.rglob("*.py")}):
        for name in re.findall(r"^ *class (\w+)[:(]", path.read_text(), re.MULTILINE):
            named.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert len(named) > 300
    assert {name: paths for name, paths in named.items() if len(paths) > 1} == {}
