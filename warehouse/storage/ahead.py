"""Delta's state of a table, rebuilt while Spark reads what arrived.

Before a commit Delta asks its state which transactions the table has seen and which files are in the partitions that
leave; it rebuilds the state from the log for each version. That is a job of its own which depends on nothing that
the update does, so it runs beside the reading and counting of the batch instead of after them.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["state_ahead"]


@contextmanager
def state_ahead(session: SparkSession, table: Path) -> Iterator[None]:
    """Let Delta rebuild the state of a table's newest version while the caller does something else.

    The state is only remembered: a commit that finds none, or an older one, rebuilds it as ever, and raises what is
    wrong with the table.
    """
    rebuilding = threading.Thread(target=_rebuild, args=(session, table), name="delta-state", daemon=True)
    rebuilding.start()
    try:
        yield
    finally:
        rebuilding.join()


def _rebuild(session: SparkSession, table: Path) -> None:
    jvm: Any = session._jvm  # noqa: SLF001 - the only way to Delta's states
    own = session._jsparkSession  # noqa: SLF001 - same
    with suppress(Py4JError, OSError):
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(own)  # of this thread
        jvm.org.apache.spark.sql.delta.DeltaLog.forTable(own, str(table)).unsafeVolatileSnapshot().transactions()
