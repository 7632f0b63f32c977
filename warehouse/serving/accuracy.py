"""The exact accuracy, after shedding, of the coalesced tables of an answer: Eq. 6 of the load-shedding sheet.

A table's accuracy is over the exact rows of its window, all groups together. The ledger has the exact rows that lost members; all
other exact rows equal the stored rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warehouse.coalescing.accuracy import accuracy
from warehouse.coalescing.definition import LEDGER, STAMPS
from warehouse.coalescing.runs import Run
from warehouse.serving.statement import select
from warehouse.serving.visible_tables import with_tables_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import duckdb

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.serving.pin import Pin

__all__ = ["ShedFigures", "is_shed", "shed_below", "shed_figures", "shed_share"]


def is_shed(state: TableState) -> bool:
    """Whether a table keeps only as many of its members as a budget allows."""
    return state.coalesced is not None and state.coalesced.definition.budget is not None


def shed_below(epoch: Epoch, tables: Iterable[str]) -> tuple[str, ...]:
    """Return the shed tables that ``tables`` include, or that their views are built on, by name."""
    shed = {state.name for state in epoch.tables if is_shed(state)}
    return tuple(sorted(shed & with_tables_below(epoch, tables))) if shed else ()


def shed_share(pin: Pin, connection: duckdb.DuckDBPyConnection, state: TableState, at_least: int = 0) -> float:
    """Return the accuracy of a shed table, a share; parameters as for :func:`shed_figures`."""
    record = state.coalesced
    if not at_least and record is not None and record.shed is not None and state.declared and state.stopped is None:
        return record.shed.accuracy
    return shed_figures(pin, connection, state, at_least).accuracy


@dataclass(frozen=True)
class ShedFigures:
    """The effect of shedding on a table: its kept and shed members, and the loss of its rows.

    ``runs`` exact rows lost members; ``lost`` of them have no member left. ``length_lost`` is the lost part of their ``length``,
    in microseconds. ``accuracy`` is a share.
    """

    kept: int
    shed: int
    runs: int
    lost: int
    length: int
    length_lost: int
    accuracy: float


def shed_figures(pin: Pin, connection: duckdb.DuckDBPyConnection, state: TableState, at_least: int = 0) -> ShedFigures:
    """Return the figures of shedding of a table, from its rows and its ledger.

    Parameters
    ----------
    pin, connection
        The epoch, and a connection for it.
    state
        The table.
    at_least
        A length in microseconds: shorter rows do not count for the accuracy (theta of the sheet).

    """
    if state.coalesced is None:
        raise TypeError(f"{state.name} is no coalesced table")
    tau, window, least = pin.epoch.window_time, state.coalesced.definition.window, max(1, at_least)
    edge = 0 if window is None else tau - window
    source = pin.read_source(connection, state, pin.live_files(state, tau), tau, hot=False)
    window_stamps = f"list_filter({STAMPS}, lambda s : s >= {edge})"
    own_stamps = f"SELECT epoch_us(valid_to) AS until, {window_stamps} AS own FROM ({select(source, ['valid_to', STAMPS])})"
    query = f"SELECT count(*) FILTER (until - own[1] >= {least}), coalesce(sum(len(own)), 0)::BIGINT FROM ({own_stamps})"
    rows, members = connection.execute(query).fetchall()[0]
    ledgers = connection.execute(select(source, [LEDGER], where=f"len({LEDGER}) > 0")).fetchall()
    runs = [run for (entries,) in ledgers for entry in entries if (run := _run(entry, edge)) is not None]
    remaining_fragments = sum(fragment.length >= least for run in runs for fragment in run.fragments)
    figures = accuracy(runs, at_least)
    fragments = rows - remaining_fragments + figures.rows + figures.extraneous
    return ShedFigures(
        kept=members,
        shed=sum(len(run.shed) for run in runs),
        runs=sum(bool(run.shed) for run in runs),
        lost=sum(not run.fragments for run in runs),
        length=sum(run.length for run in runs),
        length_lost=sum(run.length - sum(fragment.length for fragment in run.fragments) for run in runs),
        accuracy=(rows - remaining_fragments + figures.mean_kept * figures.rows) / fragments if fragments else 1.0,
    )


def _run(entry: Mapping[str, Any], edge: int) -> Run | None:
    """Return the run of an entry, without the members that have left the window; an open run ends at its last member."""
    stamps, shed, until = tuple(entry["stamps"]), set(entry["shed"]), int(entry["until"])
    numbers = frozenset(number for number, stamp in enumerate(stamps) if stamp in shed)
    return Run(None, None, stamps, until, numbers, open=until == stamps[-1]).within(edge)
