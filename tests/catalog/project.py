"""A good project as a table of dotted keys, and ways to spoil it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tests.declared import write_declarations
from warehouse.catalog.load import load_catalog
from warehouse.errors import ConfigurationError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Catalog

GOOD: dict[str, Any] = {
    "warehouse": {"root": "data", "anchor": "2013-01-01T00:00:00Z", "update_interval": "1h"},
    "spark": {"spark.master": "local[2]"},
    "streams": {
        "flights": {
            "landing": "landing/flights",
            "format": "csv",
            "search_key": "tailnum",
            "arrival": "departed_at",
            "expires": "landed_at",
            "max_lifetime": "1d",
            "columns": {
                "tailnum": "string",
                "departed_at": "timestamp",
                "landed_at": "timestamp",
                "ttl": "int",
                "weight": "double",
            },
        },
    },
}


def project(directory: Path, changes: dict[str, Any] | None = None) -> Path:
    """Write the good project with changed keys (dotted; ``None`` removes one) and return its directory."""
    content = copy.deepcopy(GOOD)
    for key, value in (changes or {}).items():
        *path, last = key.split("/") if "/" in key else key.split(".")
        table = content
        for part in path:
            table = table.setdefault(part, {})
        if value is None:
            table.pop(last)
        else:
            table[last] = copy.deepcopy(value)
    return write_declarations(directory, content)


def loaded(directory: Path, changes: dict[str, Any] | None = None) -> Catalog:
    """Return the catalog of the changed project."""
    return load_catalog(project(directory, changes))


def problems(directory: Path, changes: dict[str, Any]) -> list[Problem]:
    """Return the problems of the changed project; an empty list if it loads."""
    try:
        loaded(directory, changes)
    except ConfigurationError as error:
        return list(error.problems)
    return []
