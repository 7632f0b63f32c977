"""Collect the facts that a warehouse's health is judged by; nothing is written, no lock is taken, no Spark is started."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.advice.coalescing import switch_signs
from warehouse.advice.drift import drift_signs
from warehouse.advice.update_history import RecentEpochs
from warehouse.epochs.journal import plan_path, read_record
from warehouse.epochs.lock import running
from warehouse.epochs.view_findings import open_findings
from warehouse.errors import RecordDamagedError, WarehouseError
from warehouse.health import Arrivals, Facts, TableFacts
from warehouse.operations.decided_catalog import decided_catalog
from warehouse.operations.erasure.overdue import overdue
from warehouse.operations.standing_still import foreign_notes, stopped_of
from warehouse.planning.plan_record import Plan
from warehouse.serving.staleness import stale_tables
from warehouse.serving.visible_tables import visible
from warehouse.storage.store import store_of
from warehouse.time import DAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.planning.inputs import LandingFacts
    from warehouse.serving.reader import Reader

__all__ = ["arrivals", "health_facts", "unbuilt_views"]

_REPLAYED_INTERVALS = 100
"""If the window time was this number of intervals behind the clock at each known commit, the past is being replayed."""


def health_facts(
    catalog: Catalog,
    reader: Reader,
    landing: Callable[[], Iterable[LandingFacts]],
    *,
    now: int,
    layouts: bool = True,
) -> Facts:
    """Return the facts about a warehouse at an instant.

    Parameters
    ----------
    catalog, reader
        The declarations and the newest epoch.
    landing
        Lists the landing directories.
    now
        The clock's instant in microseconds.
    layouts
        Whether to look for layouts that no longer fit, which reads statistics of many epochs.

    """
    root, epoch = catalog.root, reader.epoch
    recent = RecentEpochs(root, epoch)
    facts_by_stream: dict[str, LandingFacts] = {}
    listing = None
    try:
        facts_by_stream = {facts.stream: facts for facts in landing()}
    except (WarehouseError, OSError) as error:
        listing = str(error)
    stopped = stopped_of(epoch)
    stopped_messages = {f'table "{name}" stands still: {reason}' for name, reason in stopped.items()}
    return Facts(
        now=now,
        epoch=epoch.number,
        window_time=epoch.window_time,
        committed_at=epoch.committed_at,
        update_interval=epoch.update_interval,
        tables=tuple(_tables(catalog, epoch, recent.since(epoch.committed_at - DAY), facts_by_stream, now)),
        running=running(root, now),
        planned=_planned(root, epoch),
        listing=listing,
        outsiders=tuple(note.message for note in foreign_notes(root, epoch) if note.message not in stopped_messages),
        layouts=_layouts(catalog, reader, recent, now) if layouts else (),
        disk_free=store_of(root).free_bytes(root),
        written=sum(counts.bytes_written for counts in epoch.counts),
        replayed=all(past.committed_at - past.window_time > _REPLAYED_INTERVALS * past.update_interval for past in recent),
    )


def _tables(
    catalog: Catalog,
    epoch: Epoch,
    epochs: Sequence[Epoch],
    landing: dict[str, LandingFacts],
    now: int,
) -> Iterator[TableFacts]:
    stopped, refused = stopped_of(epoch), {**dict(epoch.refused), **unbuilt_views(catalog, epoch)}
    stale = stale_tables(epoch, catalog.stale_after, now)
    dead = {row.table: row.message(now) for row in overdue(catalog.root, catalog.erase_within, now)}
    owners = {state.name: state.owner for state in epoch.tables}
    overdue_of = {owners.get(name, name): text for name, text in dead.items()}
    differing = {finding.view: finding.summary for finding in open_findings(catalog.root, epoch)}
    kinds = {aggregate.name: "aggregate" for aggregate in catalog.aggregates} | {
        coalesced.name: "coalesced" for coalesced in catalog.coalesced
    }
    declared_names = {source.name for source in catalog.sources} | {view.name for view in catalog.views} | set(catalog.archives)
    declared_names |= kinds.keys()
    states = {state.name: state for state in visible(epoch)}
    epochs_of_day = [past for past in epochs if past.committed_at > epoch.committed_at - DAY]
    for name in (*states, *sorted((declared_names | refused.keys()) - states.keys())):
        state = states.get(name)
        loads = state is not None and state.kind in ("stream", "relation")  # other tables load no files
        facts = TableFacts(
            name=name,
            kind=state.kind if state else "view" if catalog.view(name) else kinds.get(name, "stream"),
            declared=name in declared_names and (state is None or state.declared),
            standing_still=stopped.get(name) or (state.view.failed if state and state.view else None) or refused.get(name),
            differs=f"differed from its query: {differing[name]}" if name in differing else None,
            stale=stale.get(name),
            erasure_overdue=overdue_of.get(name),
            answers_waiting=len(state.answers.waiting) if state and state.answers else 0,
            answers_late=state.answers.late if state and state.answers else 0,
            over_budget=state.coalesced.over if state and state.coalesced and state.declared else 0,
            lapsed=_lapsed(epochs, name),
            last=arrivals(epochs[-1:], epochs, name) if loads else Arrivals(),
            day=arrivals(epochs_of_day, epochs, name) if loads else Arrivals(),
        )
        landed = landing.get(name)
        yield facts if landed is None else replace(
            facts,
            unreadable=tuple((unreadable.file.path, unreadable.message) for unreadable in landed.unreadable),
            changed=tuple(_called(catalog, name, file.path) for file in landed.changed),
            vanished=landed.vanished,
        )


def _lapsed(epochs: Sequence[Epoch], name: str) -> int:
    """Return the number of owed units of a view that ended with the newest epoch before they were made."""
    states = [epoch.table(name) for epoch in epochs[-2:]]
    lapsed = [state.view.ledger.lapsed if state and state.view and state.view.ledger else 0 for state in states]
    return max(0, lapsed[-1] - lapsed[0])


def _called(catalog: Catalog, stream: str, path: str) -> str:
    source = catalog.source(stream)
    return path if source is None else source.displayed_path(path, catalog.file.parent)


def arrivals(chosen: Sequence[Epoch], known: Sequence[Epoch], table: str) -> Arrivals:
    """Return the counts of rows that arrived for a table in the chosen epochs; ``known`` are all epochs that can be read."""
    first = next((epoch.number for epoch in known if epoch.table(table) is not None), None)
    stood_still = {epoch.number for epoch in known if (state := epoch.table(table)) is not None and state.stopped is not None}
    total = Arrivals()
    for epoch in chosen:
        counts = next((entry for entry in epoch.counts if entry.stream == table), None)
        if counts is None or epoch.cause != "update":
            continue
        built = epoch.number == first and (first != known[0].number or first == 0)  # the contents of retired epochs are unknown
        catching_up = built or epoch.slot - epoch.previous_slot > 1 or epoch.number - 1 in stood_still
        total = Arrivals(
            updates=total.updates + 1,
            rows=total.rows + counts.rows,
            rejected=total.rejected + counts.rejected,
            lost=total.lost + counts.lost,
            on_time=total.on_time + (0 if catching_up else counts.rows + counts.taken),
            dead=total.dead + (0 if catching_up else counts.dead),
            late=total.late + (0 if catching_up else counts.late),
        )
    return total


def unbuilt_views(catalog: Catalog, epoch: Epoch) -> dict[str, str | None]:
    """Return the declared views that an epoch does not have, and why each cannot be maintained; None: an update builds it."""
    owners = {state.owner for state in epoch.tables}
    missing = [view.name for view in catalog.views if view.name not in owners]
    if not missing:
        return {}
    from warehouse.views.plans import judged_views  # noqa: PLC0415 - it reads SQL, which takes time

    refused = judged_views(catalog)[0].refused
    return {view: str(refused[view]) if view in refused else None for view in missing}


def _planned(root: Path, epoch: Epoch) -> int | None:
    """Return the instant at which an unfinished update began; None if no update is unfinished."""
    try:
        return read_record(plan_path(root, epoch.number + 1), Plan).clock
    except (FileNotFoundError, RecordDamagedError):
        return None


def _layouts(catalog: Catalog, reader: Reader, recent: RecentEpochs, now: int) -> tuple[tuple[str, str], ...]:
    try:
        signs = drift_signs(
            reader,
            spark=dict(catalog.spark),
            retain=catalog.retain,
            now=now,
            target_file_size=catalog.target_file_size,
            recent=recent,
        )
        return signs if not catalog.coalesced else (*signs, *switch_signs(reader, decided_catalog(catalog, catalog.root)))
    except (WarehouseError, OSError) as error:
        return (("", f"whether layouts still fit is not known: {error}"),)
