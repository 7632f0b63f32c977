"""The calls of the commands into the library, in one place; every import of it that takes time is inside a function."""
# ruff: noqa: PLC0415 - a command imports what it uses, so that a probe starts fast

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from cli.outcome import Moment, Report, Rows

if TYPE_CHECKING:
    from pathlib import Path

CONFIGURATION = "warehouse.toml"


def catalog(directory: Path) -> Any:
    """Return the checked declarations of a project."""
    from warehouse.catalog.load import load_catalog

    return load_catalog(directory)


def root_of(directory: Path) -> Path:
    """Return where the tables are, without the time it takes to check every declaration."""
    try:
        with (directory / CONFIGURATION).open("rb") as file:
            root = tomllib.load(file)["warehouse"]["root"]
    except (OSError, ValueError, LookupError, TypeError):
        root = None
    if isinstance(root, str) and root and "://" not in root:
        return (directory / root).resolve()
    return catalog(directory).root  # it says what is wrong


def tables(directory: Path) -> Rows:
    raise NotImplementedError
