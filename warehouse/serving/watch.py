"""Watches a user's query while it runs, and ends it when its time is up or it takes more memory than its limit.

DuckDB counts the memory of its operators, but not the values that one function call makes (*measured*: ``repeat('x',
4000000000)`` under a limit of 300 MB took 3.8 GB), and it looks for an interrupt between the chunks of its work, not inside such
a call. A process that only runs the query, such as the command line's, can be ended then, by ``unstoppable``.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.errors import QueryError, QueryTimeoutError
from warehouse.time import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from warehouse.errors import WarehouseError
    from warehouse.serving.engine import Resources

__all__ = ["Watch"]

_PAUSE_SECONDS = 0.05
_GRACE_SECONDS = 5.0
_MEASURED = Path("/proc/self/statm")
_PAGE = 4096


class Watch:
    """The bounds of one query, over all the calls into the engine that it takes."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._spent = 0.0

    @contextmanager
    def over(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Watch one call into the engine.

        Raises
        ------
        QueryTimeoutError
            When the time of all calls together is up.
        QueryError
            When the process grew past its ceiling.

        """
        begun = time.monotonic()
        ended = threading.Event()
        broken: list[WarehouseError] = []
        seconds = self._left()
        if seconds is not None and seconds <= 0:
            raise self._too_long()
        watching = threading.Thread(target=self._watch, args=(connection, ended, broken), name="query-watch", daemon=True)
        if self._resources.bounded:
            watching.start()
        try:
            yield
        except Exception as error:
            if broken:
                raise broken[0] from error
            raise
        finally:
            ended.set()
            if self._resources.bounded:
                watching.join()  # at the interpreter's end a thread must hold no connection
            self._spent += time.monotonic() - begun

    def _left(self) -> float | None:
        return self._resources.timeout / 1e6 - self._spent if self._resources.timeout else None

    def _too_long(self) -> QueryTimeoutError:
        return QueryTimeoutError(format_duration(self._resources.timeout))

    def _watch(self, connection: duckdb.DuckDBPyConnection, ended: threading.Event, broken: list[WarehouseError]) -> None:
        begun, seconds, ceiling = time.monotonic(), self._left(), self._resources.ceiling
        grace = 0.0
        while not ended.wait(_PAUSE_SECONDS):
            spent = time.monotonic() - begun
            if broken:
                connection.interrupt()  # again: one that comes before the query begins is lost
                if spent > grace and self._resources.unstoppable is not None:
                    self._resources.unstoppable(broken[0])
            elif seconds is not None and spent > seconds:
                broken.append(self._too_long())
                grace = spent + _GRACE_SECONDS
            elif ceiling is not None and _resident() > ceiling:
                limit = self._resources.memory_limit
                broken.append(QueryError(f"the query makes values beyond its memory ({limit}); ask for smaller ones"))
                grace = spent


def _resident() -> int:
    """Return the bytes of main memory that this process holds; 0 where the system does not say."""
    try:
        return int(_MEASURED.read_text().split()[1]) * _PAGE
    except OSError:
        return 0
