"""The wait for landing files in the triggerer, which takes no slot of a worker."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_stream_wh.waiting import ExpectedFiles, missing_tables
from warehouse.errors import Transient, WarehouseError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

__all__ = ["LandingTrigger"]


class LandingTrigger(BaseTrigger):
    """Fires once: when every expected file has landed, at the deadline, or at an error that waiting cannot repair.

    The event is ``{"missing": [table, ...]}``, or ``{"error": text}``.

    Parameters
    ----------
    expected
        :meth:`ExpectedFiles.to_json <airflow_stream_wh.waiting.ExpectedFiles.to_json>` of the expected files.
    deadline
        Microseconds since 1970 (UTC) of the wall clock.
    poke_interval
        Seconds between two checks.

    """

    def __init__(self, expected: Mapping[str, Any], deadline: int, poke_interval: float) -> None:
        super().__init__()
        self.expected = dict(expected)
        self.deadline = deadline
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what makes the same trigger in another process."""
        fields = {"expected": self.expected, "deadline": self.deadline, "poke_interval": self.poke_interval}
        return "airflow_stream_wh.triggers.LandingTrigger", fields

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check, in a thread, until nothing is missing or the deadline has passed."""
        expected = ExpectedFiles.of_json(self.expected)
        while True:
            clock = time.time_ns() // 1000
            try:
                missing = await asyncio.to_thread(missing_tables, expected, clock)
            except Transient as error:
                self.log.warning("looking again: %s", error)
                missing = tuple(expected.files)
            except WarehouseError as error:
                yield TriggerEvent({"error": str(error)})
                return
            if not missing or clock >= self.deadline:
                yield TriggerEvent({"missing": list(missing)})
                return
            remaining = (self.deadline - clock) / 1e6
            await asyncio.sleep(min(self.poke_interval, max(remaining, 0.0)))
