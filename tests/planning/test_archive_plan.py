"""When an update has something to do for an archive: a pure function of what the last epoch recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.catalog.project import loaded
from warehouse.catalog.drift import effective_layout
from warehouse.epochs.records import Epoch, Partition, PinnedEntry, TableState
from warehouse.planning.plan import StreamInput, make_plan
from warehouse.planning.steps import CreateTable, MoveWindow, SetProperties, Step
from warehouse.storage.tables import PROPERTIES
from warehouse.time import at_slot

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Catalog
    from warehouse.planning.plan_record import Plan

LAST = 5
"""The slot of the last epoch."""


def catalog_of(directory: Path, **warehouse: str) -> Catalog:
    """Return a catalog of one stream with an archive."""
    changes = {f"warehouse.{key}": value for key, value in warehouse.items()}
    return loaded(directory, {"streams.flights.on_expiry": "archive", **changes})


def planned(catalog: Catalog, last: Epoch | None, slot: int) -> Plan:
    """Return the plan of an update for which no file waits."""
    stream = catalog.streams[0]
    state = last.table(stream.name) if last else None
    layout = effective_layout(stream, state.layout if state else None, catalog.update_interval)
    return make_plan(catalog, last, [StreamInput(stream, layout, ())], slot=slot, clock=0)


def epoch_of(catalog: Catalog, *parts: Partition, archive: tuple[Partition, ...] | None = ()) -> Epoch:
    """Return an epoch whose stream has partitions, and whose archive, if there is one, has other partitions."""
    plan = planned(catalog, None, LAST)
    partitions = {"flights": parts, "flights_archive": archive}
    tables = tuple(
        TableState(
            stream.name, "archive" if stream.archive_of else "stream", f"tables/{stream.name}", "id", 1, stream.layout,
            stream.declaration, "", partitions[stream.name] or (), archive_of=stream.archive_of, properties=PROPERTIES,
        )
        for stream in plan.streams
        if partitions[stream.name] is not None
    )  # fmt: skip
    now = at_slot(LAST, catalog.anchor, catalog.update_interval)
    entries = tuple(PinnedEntry(state.path, state.version, "") for state in tables)
    return Epoch(
        0, now, LAST, LAST - 1, catalog.anchor, catalog.update_interval, now, "", tables,
        log_retain=catalog.retain, entries=entries,
    )  # fmt: skip


def part(first: int | None, last: int) -> Partition:
    """Return a partition whose rows expire in these slots."""
    return Partition(1, 0, runs=1, files=1, rows=10, bytes=100, max_exp_slot=last, min_exp_slot=first)


def of_archive(plan: Plan) -> list[type[Step]]:
    """Return what a plan does for the archive."""
    return [type(step) for step in plan.steps if step.stream == "flights_archive"]


def test_a_first_update_makes_the_archive(tmp_path: Path) -> None:
    """With the stream's columns, the end of the row, and one column of the grid: its rows never expire."""
    plan = planned(catalog_of(tmp_path), None, LAST)
    archive = plan.stream("flights_archive")
    assert archive.archive_of == "flights"
    assert [column.name for column in archive.declaration.columns][-2:] == ["weight", "expired_at"]
    assert (archive.layout.technique, archive.layout.columns, archive.layout.seal) == ("norebuild", 1, True)
    assert of_archive(plan) == [CreateTable]


@pytest.mark.parametrize(
    ("first", "last", "slot", "does"),
    [
        (6, 9, 6, True),
        (6, 9, 5, False),  # the window stands still
        (7, 9, 6, False),  # nothing ends yet
        (7, 9, 8, True),  # caught up with
        (3, 5, 6, False),  # all had ended before
        (None, 9, 6, True),  # not known
    ],
)
def test_an_archive_is_moved_when_rows_may_end(tmp_path: Path, first: int | None, last: int, slot: int, *, does: bool) -> None:
    """In the slots of the update, by the bounds of the stream's partitions."""
    catalog = catalog_of(tmp_path)
    plan = planned(catalog, epoch_of(catalog, part(first, last)), slot)
    assert of_archive(plan) == ([MoveWindow] if does else [])


def test_an_archive_of_a_table_that_exists_begins_with_what_expires_now(tmp_path: Path) -> None:
    """It is made by the first update that moves the window, and gets rows from that on."""
    catalog = catalog_of(tmp_path)
    last = epoch_of(catalog, part(6, 9), archive=None)
    assert of_archive(planned(catalog, last, 6)) == [CreateTable, MoveWindow]
    assert planned(catalog, last, 6).stream("flights_archive").k0 == LAST


def test_the_log_of_an_archive_is_kept_as_long_as_its_streams(tmp_path: Path) -> None:
    """After `retain` was raised."""
    last = epoch_of(catalog_of(tmp_path, retain="1d"))
    assert of_archive(planned(catalog_of(tmp_path, retain="9d"), last, 6)) == [SetProperties]


def test_tables_of_an_earlier_build_get_the_properties_of_this_one(tmp_path: Path) -> None:
    """Each that the update moves, once: the stream's, and its archive's."""
    catalog = catalog_of(tmp_path)
    last = epoch_of(catalog)
    older = replace(last, tables=tuple(replace(table, properties=0) for table in last.tables))
    assert SetProperties not in map(type, planned(catalog, last, 6).steps)
    steps = [step.path for step in planned(catalog, older, 6).steps if isinstance(step, SetProperties)]
    assert steps == ["tables/flights", "tables/flights_archive"]
