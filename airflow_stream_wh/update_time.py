"""T of a task: the instant to which its update moves the windows. It is never the wall clock."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from warehouse.errors import UsageError
from warehouse.time import parse_instant

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SOURCES", "UPDATE_TIME", "update_time"]

SOURCES = ("partition_date", "data_interval_end", "logical_date")
"""The fields of a run that may have T, in this order, if no argument gives it."""

UPDATE_TIME = "{{ (partition_date or data_interval_end or logical_date).isoformat() }}"
"""The same as a template, for operators that are not of this package; a run that has none of them fails to render."""


def update_time(explicit: str | datetime | None, context: Mapping[str, object]) -> tuple[int, str]:
    """Return T in microseconds since 1970, and where it comes from.

    Parameters
    ----------
    explicit
        The task's argument, rendered: ISO 8601 text (without an offset it is UTC) or a datetime; None or an empty text: not
        given.
    context
        Airflow's context of the running task.

    Raises
    ------
    UsageError
        When the argument is no instant (``now`` is no instant: a retry would have another time), or when there is no
        argument and the run has no date, as a manual one without a logical date.

    """
    if isinstance(explicit, datetime):
        return _micros(explicit), "at"
    if explicit is not None and explicit.strip():
        try:
            return parse_instant(explicit), "at"
        except (ValueError, OverflowError) as error:
            raise UsageError(f"the update time `at` cannot be read: {error}") from error
    for source in SOURCES:
        date = context.get(source)
        if isinstance(date, datetime):
            return _micros(date), source
    raise UsageError(
        f"this run has no update time: it has none of {', '.join(SOURCES)}, and no argument `at`. "
        f"Give the argument, or trigger the run with a logical date"
    )


def _micros(moment: datetime) -> int:
    """Return an instant in microseconds; by its text, since Airflow's datetimes are of pendulum and divide in another way."""
    return parse_instant(moment.isoformat())
