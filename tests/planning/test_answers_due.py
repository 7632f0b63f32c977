"""Which answers an update gives: a pure function of what the last epoch recorded, and of the slot that it moves to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.declared import write_declarations
from warehouse.aggregates.definition import Due
from warehouse.catalog.drift import effective_layout
from warehouse.catalog.load import load_catalog
from warehouse.epochs.following import AnswersRecord
from warehouse.epochs.records import Epoch, PinnedEntry, TableState
from warehouse.planning.plan import StreamInput, make_plan
from warehouse.storage.tables import PROPERTIES
from warehouse.time import at_slot

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Catalog
    from warehouse.planning.following import AnswersPlan
    from warehouse.planning.plan_record import StreamPlan

LAST = 5
"""The slot of the last epoch."""


def catalog_of(directory: Path, **changes: object) -> Catalog:
    """Return a catalog of a stream and an aggregate of two windows, whose answers stay for four slots."""
    stream = {"landing": "s", "format": "json", "search_key": "k", "arrival": "b", "columns": {"k": "string", "b": "timestamp"}}
    aggregate: dict[str, object] = {
        "from": "s", "select": {"n": "count(*)"}, "windows": ["1h", "3h"], "every": ["1h", "2h"], "keep": "4h", **changes,
    }  # fmt: skip
    warehouse = {"anchor": "2024-01-01T00:00:00Z", "update_interval": "1h"}
    write_declarations(directory, {"warehouse": warehouse, "streams": {"s": stream}, "aggregates": {"a": aggregate}})
    return load_catalog(directory)


def planned(catalog: Catalog, last: Epoch | None, slot: int) -> AnswersPlan:
    """Return what the plan of an update for which no file waits has for the answers."""
    (answers,) = (stream.answers for stream in _streams(catalog, last, slot) if stream.answers is not None)
    return answers


def _streams(catalog: Catalog, last: Epoch | None, slot: int) -> tuple[StreamPlan, ...]:
    stream = catalog.streams[0]
    state = last.table(stream.name) if last else None
    layout = effective_layout(stream, state.layout if state else None, catalog.update_interval)
    return make_plan(catalog, last, [StreamInput(stream, layout, ())], slot=slot, clock=0).streams


def epoch_of(catalog: Catalog, slot: int = LAST, through: int = LAST, waiting: tuple[Due, ...] = ()) -> Epoch:
    """Return an epoch that has given the answers up to a slot, except the waiting ones."""
    record = AnswersRecord(catalog.aggregates[0].definition, through, waiting)
    tables = tuple(
        TableState(
            stream.name, "stream", f"tables/{stream.name}", "id", 1, stream.layout, stream.declaration, "", (),
            answers=record if stream.name == "a" else None, properties=PROPERTIES,
        )
        for stream in _streams(catalog, None, slot)
        if stream.name in ("s", "a")
    )  # fmt: skip
    now = at_slot(slot, catalog.anchor, catalog.update_interval)
    entries = tuple(PinnedEntry(state.path, state.version, "") for state in tables)
    return Epoch(
        0, now, slot, slot - 1, catalog.anchor, catalog.update_interval, now, "", tables,
        log_retain=catalog.retain, entries=entries,
    )  # fmt: skip


def ends(found: AnswersPlan) -> list[tuple[str, int, int]]:
    """Return the windows that are due, their last slots, and how late they are."""
    return sorted((due.text, due.end, due.late) for due in found.due)


def test_a_catch_up_gives_the_ends_that_single_updates_give_while_keep_lasts(tmp_path: Path) -> None:
    """The ends are multiples of the period; an answer that would have expired is not given."""
    catalog = catalog_of(tmp_path)
    caught_up = ends(planned(catalog, epoch_of(catalog), LAST + 7))
    assert caught_up == [("1h", 9, 0), ("1h", 10, 0), ("1h", 11, 0), ("1h", 12, 0), ("3h", 10, 0), ("3h", 12, 0)]
    single = [ends(planned(catalog, epoch_of(catalog, slot - 1, slot - 1), slot)) for slot in range(LAST + 1, LAST + 8)]
    assert caught_up == sorted(due for answers in single for due in answers if due[1] > LAST + 7 - 4)
    assert single[0] == [("1h", 6, 0), ("3h", 6, 0)]
    assert single[1] == [("1h", 7, 0)]


def test_answers_that_wait_are_later_at_each_move_until_they_would_expire(tmp_path: Path) -> None:
    """Or until nobody declares their window any more."""
    catalog = catalog_of(tmp_path)
    waiting = (Due("1h", 1, 2), Due("1h", 1, 4, 1), Due("3h", 3, 4, 1))
    epoch = epoch_of(catalog, waiting=waiting)
    assert ends(planned(catalog, epoch, LAST + 1)) == [("1h", 4, 2), ("1h", 6, 0), ("3h", 4, 2), ("3h", 6, 0)]
    changed = catalog_of(tmp_path, windows=["1h", "2h"])
    assert ends(planned(changed, epoch, LAST + 1)) == [("1h", 4, 2), ("1h", 6, 0), ("2h", 6, 0)]


def test_a_new_aggregate_answers_what_was_due_last_and_no_end_before(tmp_path: Path) -> None:
    """Where its stream is there the windows must move first."""
    catalog = catalog_of(tmp_path)
    assert ends(planned(catalog, None, LAST + 2)) == [("1h", 7, 0)]
    former = epoch_of(catalog)
    alone = replace(former, tables=former.tables[:1], entries=former.entries[:1])
    assert all(stream.answers is None for stream in _streams(catalog, alone, LAST))
    assert ends(planned(catalog, alone, LAST + 1)) == [("1h", 6, 0), ("3h", 6, 0)]
