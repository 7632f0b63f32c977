"""Rows that only the process of an update knows: expired ones that no file stores, and the changes of a keyed table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = ["Changed", "Dead"]


@dataclass(frozen=True, eq=False)
class Dead:
    """Rows that expired before they were stored, and their count.

    ``made`` returns them to Spark; ``known`` has them in the driver.
    """

    made: Callable[[], DataFrame]
    count: int
    known: pa.Table | None = None

    @cached_property
    def rows(self) -> DataFrame:
        """The rows as Spark has them."""
        return self.made()


@dataclass(frozen=True, eq=False)
class Changed:
    """How a keyed table differs from the last epoch, if this process made its step: few rows that came, and that went.

    Both have the user columns, ``_ts`` and ``_exp``; rows that ended by themselves went, too.
    """

    came: pa.Table
    gone: pa.Table
