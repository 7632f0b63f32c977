"""Whatever the layout: the same answers, every row where the layout says, only what may be on the disk."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from tests.operations.projects import counts_of
from tests.replayed import replayed
from warehouse.layout import OVERFLOW_BLOCK, exp_block, expired_below, sub_index
from warehouse.testing import bag
from warehouse.time import HOUR, MINUTE

from .placement import check_placement
from .project import live_versions, stored_files
from .script import KEYS, LAYOUTS, SLOTS

if TYPE_CHECKING:
    from .script import Run

pytestmark = pytest.mark.parametrize("stream", LAYOUTS)


def test_scans_answer_as_the_model(run: Run, stream: str) -> None:
    """At every epoch a scan gives the model's live rows, also those that outlive a later instant."""
    for epoch, state in zip(run.epochs, run.model.states, strict=True):
        assert epoch.window_time == state.window_time
        as_of = epoch.window_time + MINUTE
        assert run.project.scan(stream, as_of=as_of) == bag(run.model.scan(as_of=as_of)), state.slot
        for later in (0, 1, 7 * MINUTE, 2 * HOUR):
            now = epoch.window_time + later
            expected = bag(run.model.scan(as_of=as_of, now=now))
            assert run.project.scan(stream, as_of=as_of, now=now) == expected, (state.slot, later)


def test_live_tables_are_answers_as_they_lie(run: Run, stream: str) -> None:
    """Each epoch has one version of a live table, which, read without the warehouse, holds exactly the model's rows."""
    versions = live_versions(run.project, stream)
    assert sorted(versions) == [epoch.number for epoch in run.epochs]
    for epoch, state in zip(run.epochs, run.model.states, strict=True):
        assert versions[epoch.number] == bag(state.live), state.slot


def test_probes_answer_as_the_model(run: Run, stream: str) -> None:
    """At every epoch, probes of keys, absent keys, ranges and null return the model's rows by key, expiry and arrival."""
    project, model = run.project, run.model
    for epoch in run.epochs:
        as_of = epoch.window_time

        def same(answer: list[tuple[object, object, int, int]], expected: list[object]) -> None:
            rows = [(stored.row.key, stored.row.value, stored.ts, stored.exp) for stored in expected]  # type: ignore[attr-defined]
            assert Counter(answer) == Counter(rows), epoch.slot  # noqa: B023 - called at once
            order = [(key, end, start) for key, _, start, end in answer]
            assert order == [(key, end, start) for key, _, start, end in rows], epoch.slot  # noqa: B023 - same

        present = [key for key in KEYS if key is not None]
        for key in (*present, "absent"):
            same(project.probe(stream, [key], as_of=as_of), model.probe(key, as_of=as_of))
        same(project.probe(stream, [*present, "absent", "a"], as_of=as_of), model.probe(*present, as_of=as_of))
        same(project.probe(stream, null=True, as_of=as_of), model.probe(None, as_of=as_of))
        same(project.probe(stream, from_="a", to="c", as_of=as_of), model.probe_range("a", "c", as_of=as_of))
        same(project.probe(stream, from_="b", as_of=as_of), model.probe_range("b", as_of=as_of))


def test_updates_count_as_the_model(run: Run, stream: str) -> None:
    """Each update counts loaded, late, over-lifetime, deferred, taken, dead and rejected rows as the model does."""
    for epoch, state in zip(run.epochs, run.model.states, strict=True):
        counts = counts_of(epoch, stream)
        assert {name: getattr(counts, name) for name in asdict(state.counts)} == asdict(state.counts), state.slot
        assert counts.lost == 0
        table = epoch.table(stream)
        assert table is not None
        waiting = sum(entry.rows for entry in table.deferred.waiting) if table.deferred else 0
        assert waiting == len(state.waiting)
        assert (table.rejected.rows if table.rejected else 0) == len(state.rejected)


def test_rows_lie_where_the_layout_says(run: Run, stream: str) -> None:
    """Each row is in the cell and block of its slots, runs are sorted by key and expiry, a file lies in one block."""
    for epoch, state in zip(run.epochs, run.model.states, strict=True):
        table = epoch.table(stream)
        assert table is not None
        files = stored_files(run.project.warehouse.root, epoch, stream)
        check_placement(files, table.layout, epoch, state.live)
        partitions = {(part.sub_index, part.exp_block): part for part in table.partitions}
        assert partitions.keys() == {(file.sub_index, file.exp_block) for file in files}
        for cell, part in partitions.items():
            inside = [file for file in files if (file.sub_index, file.exp_block) == cell]
            assert (part.files, part.rows) == (len(inside), sum(len(file.rows) for file in inside))
            assert part.max_exp_slot == max(row["_exp_slot"] for file in inside for row in file.rows)


def test_expired_rows_leave(run: Run, stream: str) -> None:
    """Rebuilt tables hold no expired row; appended tables hold no row of a block that is past."""
    for epoch, state in zip(run.epochs, run.model.states, strict=True):
        table = epoch.table(stream)
        assert table is not None
        files = stored_files(run.project.warehouse.root, epoch, stream)
        dead = sum(len(file.rows) - len(file.live(epoch.window_time)) for file in files)
        if table.layout.technique == "rebuild":
            assert dead == 0
            assert counts_of(epoch, stream).expired == len(state.expired)
        else:
            assert all(file.exp_block >= expired_below(table.layout, epoch.slot) for file in files)


def test_changes_over_one_epoch_give_another(run: Run, stream: str) -> None:
    """The changes between two epochs are the model's arrivals and expirations; rewriting rows is no change."""
    counts = replayed(run.project.warehouse.root, [stream])
    states = run.model.states
    assert counts == {
        (stream, "insert"): sum(state.counts.inserted for state in states[1:]),
        (stream, "expire"): sum(len(state.expired) for state in states[1:]),
    }


def test_closed_rows_are_sealed(run: Run, stream: str) -> None:
    """Sealing merges the runs of rows of the grid that close; without it only the overflow block is merged."""
    sealed = [counts_of(epoch, stream).sealed for epoch in run.epochs]
    layout = run.epochs[-1].table(stream).layout  # type: ignore[union-attr]
    if layout.technique == "rebuild":
        assert not any(sealed)
        assert all(part.runs == 1 for epoch in run.epochs for part in epoch.table(stream).partitions)  # type: ignore[union-attr]
    elif layout.seal:
        assert any(sealed)
    last = {(part.sub_index, part.exp_block): part.runs for part in run.epochs[-1].table(stream).partitions}  # type: ignore[union-attr]
    if layout.technique == "norebuild" and not layout.seal:
        assert max(last.values()) > 1


def test_the_protocol_stays_the_lowest(run: Run, stream: str) -> None:
    """Tables of live, deferred and rejected rows stay at reader 1, writer 2, without features."""
    for kind in ("tables", "deferred", "rejected"):
        protocol = DeltaTable(str(run.project.warehouse.root / kind / stream)).protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
        assert not protocol.reader_features
        assert not protocol.writer_features


def test_the_script_meets_every_case(run: Run, stream: str) -> None:
    """The script has late, deferred, taken, dead, rejected, over-lifetime and never-expiring rows, in several blocks."""
    states = run.model.states
    for name in ("inserted", "late", "over_lifetime", "deferred", "taken", "dead", "rejected"):
        assert any(getattr(state.counts, name) for state in states), name
    layout = run.epochs[-1].table(stream).layout  # type: ignore[union-attr]
    assigned = [
        (
            sub_index(layout, row.load_slot, row.exp_slot, never=row.never),
            exp_block(layout, row.load_slot, row.exp_slot, never=row.never),
        )
        for state in states
        for row in state.live
    ]
    assert {cell for cell, _ in assigned} == set(range(1, layout.cells + 1))
    if layout.technique == "norebuild":
        assert {OVERFLOW_BLOCK, OVERFLOW_BLOCK + 1} <= {block for _, block in assigned}
    assert [epoch.slot for epoch in run.epochs] == list(SLOTS)
