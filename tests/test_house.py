"""The structure of the repository is what the README says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent
ROOM = re.compile(r"`(\w+)(?:/|\.py)`")


def test_imports_keep_the_contract() -> None:
    """No room imports one above it, the library imports no command, and no file imports in a circle."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_the_readme_lists_the_rooms_of_the_contract() -> None:
    """The README's table of rooms has the contract's order, from the ground up, and misses none."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "warehouse")
    text = (ROOT / "README.md").read_text()
    table = text.split("| room | what it owns |\n|---|---|\n")[1].split("\n\n")[0]
    rows = [ROOM.findall(line.split("|")[1]) for line in table.splitlines()]
    assert rows == [layer.split(" : ") for layer in reversed(layers)]
