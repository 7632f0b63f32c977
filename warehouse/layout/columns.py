"""The columns that the warehouse adds to a stored table, by name and Spark SQL type: the one place that spells them.

- ``_ts`` and ``_exp``: the instants at which a row begins and ends.
- ``_load_slot`` and ``_exp_slot``: the slot of the update that loaded it, and the slot in which it ends.
- ``sub_index`` and ``exp_block``: the cell of the grid, by which a table of rows is partitioned.
- ``_slot``: the slot that a deferred row waits for, by which its table is partitioned.
- ``_owed``: whether a short-lived result of a view under a budget was owed before it was made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CELL", "OWED_RESULT", "SLOTS", "SYSTEM_COLUMNS", "TIMES", "WAITING_SLOT", "cell_of", "is_reserved", "is_system"]

TIMES = ("_ts", "_exp")
SLOTS = ("_load_slot", "_exp_slot")
CELL = ("sub_index", "exp_block")
WAITING_SLOT = "_slot"
OWED_RESULT = "_owed"

SYSTEM_COLUMNS = (
    *((name, "timestamp") for name in TIMES),
    *((name, "bigint") for name in SLOTS),
    (CELL[0], "int"),
    (CELL[1], "bigint"),
)
"""The columns of every table of rows after the user's, in their order on disk."""


def is_system(name: str) -> bool:
    """Whether a stored column is the warehouse's own.

    >>> [is_system(name) for name in ("_ts", "sub_index", "SUB_INDEX", "user_id")]
    [True, True, False, False]
    """
    return name.startswith("_") or name in CELL


def is_reserved(name: str) -> bool:
    """Whether no column of a user may have a name, in any case of letters.

    >>> [is_reserved(name) for name in ("_ts", "sub_index", "SUB_INDEX", "user_id")]
    [True, True, True, False]
    """
    return is_system(name.lower())


def cell_of(values: Mapping[str, Any]) -> tuple[int, int]:
    """Return the sub-index and the expiry block of a file by its partition values, which a log holds as text.

    >>> cell_of({"sub_index": "3", "exp_block": "-2"}), cell_of({})
    ((3, -2), (0, 0))
    """
    sub_index, exp_block = (int(values.get(name) or 0) for name in CELL)
    return sub_index, exp_block
