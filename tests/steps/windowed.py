"""The states of synopses for due windows, as an update merges them, for tests of the queries over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.aggregates.sharing import assigned
from warehouse.aggregates.synopses import Synopsis, needs
from warehouse.planning.following import SynopsisRead
from warehouse.steps.merging import FIRSTS, PLACE
from warehouse.steps.window_run import WindowBounds, WindowRun

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import duckdb

    from warehouse.aggregates.definition import AggregateDefinition, Window
    from warehouse.aggregates.predicates import Kind

NEVER = -(2**62)
DueWindow = tuple["Window", int]


def reads_of(
    definition: AggregateDefinition, synopses: Sequence[Synopsis], kinds: Mapping[str, Kind] | None = None
) -> tuple[SynopsisRead, ...]:
    """Return the reads of synopses; each synopsis is the table with its number."""
    return tuple(
        SynopsisRead(
            str(served.number), synopses[served.number], served.states, served.rows,
            tuple(map(str, served.plus)), tuple(map(str, served.less)),
        )
        for need in needs(definition)
        for served in assigned(need, synopses, kinds)
    )  # fmt: skip


def due_table(due: Sequence[DueWindow]) -> pa.Table:
    """Return due windows, none of which is late, as a table."""
    return pa.table({
        PLACE: pa.array(range(len(due)), pa.int64()),
        "_text": [window.text for window, _ in due],
        "_first": [end - window.slots + 1 for window, end in due],
        "_end": [end for _, end in due],
        "_full": [True] * len(due),
        "_late": [0] * len(due),
        **dict(zip(FIRSTS, map(list, zip(*map(firsts, due), strict=True)), strict=True)),
    })  # fmt: skip


def firsts(due: DueWindow) -> tuple[int, ...]:
    """Return the first slots of the inputs of a join."""
    window, end = due
    return (NEVER, NEVER) if window.parts is None else tuple(end - length + 1 for length in window.parts)


def run_of(
    synopses: Sequence[Synopsis], table: Callable[[duckdb.DuckDBPyConnection, int], pa.Table], asked: Sequence[DueWindow] = ()
) -> WindowRun:
    """Return a run over synopses, which ``table`` gives by their numbers; others ask for some windows of each."""

    def stored(connection: duckdb.DuckDBPyConnection, name: str) -> str:
        connection.register(f"raw_{name}", table(connection, int(name)))
        return f"SELECT * FROM raw_{name}"

    return WindowRun(stored, lambda name: synopses[int(name)], lambda _: bounds_of(asked))


def bounds_of(due: Sequence[DueWindow]) -> list[WindowBounds]:
    """Return the rows of due windows, as bounds of slots."""
    return [WindowBounds(end - window.slots + 1, end, end, *firsts((window, end))) for window, end in due]
