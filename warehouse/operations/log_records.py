"""What an update does, as log records of the standard library: logger ``warehouse.updates``, one record for each moment.

A record's message is for people; its ``fields`` (an attribute of the record) say the same for machines. Nothing of rows,
keys or settings is in either. Who calls the library decides what becomes of the records.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from warehouse.epochs.lock import announce
from warehouse.epochs.points import Moment, Observer, Point

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["announced", "log_event", "logged"]

_LOGGER = logging.getLogger("warehouse.updates")
_TOLD = {
    Point.LOCKED: logging.INFO,
    Point.PLAN_WRITTEN: logging.INFO,
    Point.STEP_STARTED: logging.DEBUG,
    Point.STEP_COMMITTED: logging.INFO,
    Point.EPOCH_WRITTEN: logging.INFO,
    Point.RETIRED: logging.INFO,
}


def logged(observer: Observer) -> Observer:
    """Return an observer that logs each moment worth it, then calls another."""

    def observe(moment: Moment) -> None:
        level = _TOLD.get(moment.point, logging.DEBUG)
        where = {"epoch": moment.epoch if moment.epoch >= 0 else None, "step": moment.step if moment.step >= 0 else None}
        fields = {"point": moment.point.value, **{name: value for name, value in where.items() if value is not None}}
        log_event(level, f"{moment.point.value}: {moment.text}" if moment.text else moment.point.value, fields)
        observer(moment)

    return observe


def announced(root: Path, observer: Observer) -> Observer:
    """Return an observer that leaves each step beside the writer lock, for ``status`` to show, then calls another."""
    words = {Point.PLANNED: "planned", Point.STEPS_DONE: "making it durable", Point.EPOCH_WRITTEN: "epoch written, tidying up"}

    def observe(moment: Moment) -> None:
        if moment.point is Point.STEP_STARTED:
            announce(root, f"epoch {moment.epoch}, step {moment.step + 1}: {moment.text}")
        elif moment.point in words:
            announce(root, f"epoch {moment.epoch}: {words[moment.point]}")
        observer(moment)

    return observe


def log_event(level: int, message: str, fields: Mapping[str, object]) -> None:
    """Log a message with its fields."""
    _LOGGER.log(level, message, extra={"fields": dict(fields)})
