"""A workload as it is measured: lifetimes from the files, probes from the read log, work from what Spark wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.serving.house import ANCHOR
from warehouse.advice.advise import advise
from warehouse.advice.measurements import _probe_work, _reads_per_interval, measure_table, workers_of
from warehouse.advice.row_sample import sample_rows
from warehouse.advice.update_history import _written_runs, recent_epochs, update_history
from warehouse.epochs.journal import newest_epoch
from warehouse.errors import UsageError
from warehouse.layout.advice import ProbeWork
from warehouse.serving import Reader
from warehouse.serving.read_log import Read
from warehouse.time import HOUR, slot

from .places import counted, told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.operations.projects import Project


def test_lifetimes_are_those_of_the_live_rows_weighed_by_how_long_they_show(tmp_path: Path) -> None:
    """Of n live rows that live for d updates, n/d came in each: a list and a division."""
    house = told(tmp_path, lambda _: counted())
    rows = house["names"].live(4)
    counts = dict.fromkeys(range(1, 7), 0.0)
    for row in rows:
        distance = slot(row.exp, ANCHOR, HOUR) - row.load
        if distance <= 6:
            counts[distance] += 1 / distance
    with Reader.open(tmp_path) as reader:
        sample = sample_rows(reader, reader.pin.state("names"))
    assert sample.shares == pytest.approx([count / sum(counts.values()) for count in counts.values()])
    assert sample.rows_read == sum(1 for row in rows if slot(row.exp, ANCHOR, HOUR) - row.load <= 6)
    keys = {house["names"].key_of(row) for row in rows}
    assert sample.rows_per_key == pytest.approx(len(rows) / len(keys), rel=0.15)


def test_a_first_probe_opens_files_in_vain() -> None:
    """Later probes skip what their filters leave out; three rows lie in less than three of ten files on average."""
    later = _probe_work(Read(0, "t", "probe", 0.01, keys=1, files=10, opened=3, rows=3))
    assert later == ProbeWork(passed_file=7, key_file=3, row=3)
    first = _probe_work(Read(0, "t", "probe", 0.01, keys=1, first=True, files=12, opened=10, rows=3))
    assert (first.first, first.passed_file, first.row) == (1, 2, 3)
    assert 2.5 < first.key_file < 3
    assert first.opened_file + first.key_file == pytest.approx(10)
    absent = _probe_work(Read(0, "t", "probe", 0.01, keys=1, first=True, files=1, opened=1, rows=0))
    assert (absent.opened_file, absent.key_file) == (1, 0)


def test_probes_are_counted_for_each_slot_that_the_windows_moved(tmp_path: Path) -> None:
    """Replays move many slots an hour; in between, the clock counts. Scans are counted apart, earlier reads not at all."""
    epochs = told(tmp_path, lambda _: counted()).epochs
    since = epochs[6].committed_at
    reads = [Read(since + minute, "names", "probe", 0.01, keys=1) for minute in range(20)]
    reads += [Read(since + 5, "names", "scan", 0.01)]
    assert _reads_per_interval(reads, epochs, epochs[-1].committed_at) == (20 / 4, 1 / 4)
    late = epochs[-1].committed_at
    assert _reads_per_interval([Read(late, "names", "probe", 0.01, keys=1)] * 6, epochs, late + 3 * HOUR) == (2, 0)
    assert _reads_per_interval([], epochs, late) is None


@pytest.mark.parametrize(("master", "workers"), [("local[3]", 3), ("local[2,4]", 2)])
def test_workers_are_those_of_the_session(master: str, workers: int) -> None:
    """As `spark.master` says."""
    assert workers_of({"spark.master": master}) == workers


def test_tables_without_a_live_row_have_nothing_to_judge_by(tmp_path: Path) -> None:
    """The message names --what-if."""
    house = told(tmp_path, lambda _: counted())
    with Reader(tmp_path, house.epochs[0]) as reader, pytest.raises(UsageError, match="--what-if"):
        advise(reader, "names", spark={}, retain=0, now=0)


def test_what_spark_wrote_is_what_the_partitions_tell(history: Project) -> None:
    """In a real warehouse, both techniques: as many runs as files were added, with the rows that were inserted or read again."""
    epoch = newest_epoch(history.root)
    assert epoch is not None
    epochs = recent_epochs(history.root, epoch)
    for table in ("a", "b"):
        updates = update_history(epochs, table, 1).updates
        assert [update.epoch for update in updates] == [1, 2]
        for update in updates:
            assert update.work.file == update.counts.files_added
            assert update.seconds > 0
    states = [epoch.table("a") for epoch in epochs]
    for before, after, counts in zip(states, states[1:], [epoch.counts for epoch in epochs[1:]], strict=False):
        assert before is not None
        assert after is not None
        runs, _ = _written_runs(before.partitions, after.partitions)
        (entry_of_a,) = [entry for entry in counts if entry.stream == "a"]
        assert len(runs) == entry_of_a.files_added
        assert entry_of_a.inserted <= sum(runs) <= entry_of_a.inserted + entry_of_a.rewritten


def test_real_tables_get_advice_or_the_reason_why_not(history: Project) -> None:
    """Streams and views of rows with an end of their own do; a relation and a keyed view do not."""
    with Reader.open(history.root) as reader:
        for table in ("a", "b", "once", "named"):
            advice = advise(reader, table, spark={}, retain=0, now=reader.epoch.committed_at)
            assert advice.current is not None
            assert any("too few to fit" in note for note in advice.notes)
        for table, reason in (("counts", "cut by its search key"), ("r", "is a relation")):
            with pytest.raises(UsageError, match=reason):
                advise(reader, table, spark={}, retain=0, now=0)


def test_space_follows_from_retain(tmp_path: Path) -> None:
    """Superseded files stay for so long; a table that is rewritten takes the more."""
    told(tmp_path, lambda _: counted())
    with Reader.open(tmp_path) as reader:
        state = reader.pin.state("names")
        epochs = recent_epochs(tmp_path, reader.epoch)
        measured = measure_table(reader, state, epochs, workers=1, retain=10 * HOUR, now=0)
        advice = advise(reader, "names", spark={}, retain=10 * HOUR, now=0)
    assert measured.load.retained == 10
    assert advice.current is not None
    written = advice.current.footprint.written * measured.load.row_bytes
    assert advice.current.disk == pytest.approx(advice.current.bytes + 10 * written)
