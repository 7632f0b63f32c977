"""stream-wh: an off-line stream warehouse with on-disk windows.

This module exports everything that a program needs; importing it imports neither Spark nor a database.

>>> from warehouse import Warehouse
>>> warehouse = Warehouse.open("project")                      # doctest: +SKIP
>>> warehouse.update(at="2013-01-01T12:00:00Z")                # doctest: +SKIP
>>> warehouse.probe("flights", ["N14228"]).arrow()             # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warehouse.errors import Transient, WarehouseError
    from warehouse.project import Warehouse

__all__ = ["Transient", "Warehouse", "WarehouseError"]

_HOMES = {
    "Warehouse": "warehouse.project",
    "WarehouseError": "warehouse.errors",
    "Transient": "warehouse.errors",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attributes
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
