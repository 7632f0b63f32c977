"""The state of a warehouse, read with commands that start no Java and take a second or two."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_stream_wh.process import running_command
from airflow_stream_wh.verdict import error_of
from warehouse.errors import Transient, WarehouseError
from warehouse.time import parse_instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["NewestEpoch", "TableSummary", "current_tables", "newest_epoch"]

_RETRY_CODE = 3


@dataclass(frozen=True)
class TableSummary:
    """A table at the newest epoch: live rows, and landing files not loaded yet (None: for views, or if they cannot be listed)."""

    rows: int
    waiting_files: int | None


@dataclass(frozen=True)
class NewestEpoch:
    """The newest epoch: its number and window time (microseconds)."""

    epoch: int
    window_time: int


def newest_epoch(line: Sequence[str], environment: Mapping[str, str]) -> NewestEpoch | None:
    """Return the newest epoch, or None before the first; ``line`` is the program with its options for the project."""
    rows = _rows([*line, "history", "--limit", "1", "-o", "json"], environment)
    return None if rows is None else NewestEpoch(int(rows[0]["number"]), parse_instant(rows[0]["window_time"]))


def current_tables(line: Sequence[str], environment: Mapping[str, str]) -> Mapping[str, TableSummary]:
    """Return each table of the newest epoch; empty before the first epoch."""
    rows = _rows([*line, "status", "-o", "json"], environment)
    return {row["table"]: TableSummary(int(row["live_rows"]), row["waiting_files"]) for row in rows or ()}


def _rows(line: Sequence[str], environment: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """Run a reading command; return None if nothing has been committed yet.

    Raises
    ------
    Transient
        When the same command may succeed later.
    WarehouseError
        When it fails otherwise.

    """
    with running_command(line, environment) as running:
        ended = running.wait(_ignore)
    if ended.code == 0:
        return list(json.loads(ended.output))
    error = error_of(ended.errors)
    if error.get("code") == "no_epoch":
        return None
    text = error.get("message") or "\n".join(ended.errors[-3:])
    kind = Transient if ended.code == _RETRY_CODE or ended.code < 0 else WarehouseError
    raise kind(f"`{' '.join(line)}` ended with exit code {ended.code}: {text}")


def _ignore(line: str) -> None:
    del line
