"""What entered and what left: changes over epoch i give epoch j, whatever became of the files between."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.epochs.journal import epoch_path
from warehouse.errors import CursorLostError, UnknownNameError, UsageError
from warehouse.serving import Reader
from warehouse.serving.change_plan import TableAtEpoch, changes_between
from warehouse.storage.snapshot import Bounds, DataFile
from warehouse.time import HOUR, NEVER, at_slot, to_micros

from .drawn import ANCHOR, Drawn, Row, bag, histories, write

if TYPE_CHECKING:
    from .house import House

LEAVING = ("expire", "delete", "update_preimage")
COMING = ("insert", "update_postimage")
ORDER = ("expire", "delete", "update_preimage", "update_postimage", "insert")


def told(reader: Reader, since: int, to: int) -> pa.Table:
    """Return the changes between two epochs."""
    return reader.changes("t", since=since, to=to, system_columns=True).arrow()


def of_types(changes: pa.Table, types: tuple[str, ...], epoch: int | None = None) -> Counter[Row]:
    """Return the changes of some types, of one epoch or all, as a bag of rows."""
    wanted = pc.is_in(changes["_change_type"], value_set=pa.array(types))
    rows = changes.filter(wanted)
    return bag(rows if epoch is None else rows.filter(pc.equal(rows["_change_epoch"], epoch)))


def replayed(state: Counter[Row], changes: pa.Table) -> Counter[Row]:
    """Return a bag of rows with changes applied: what leaves must have been there."""
    for epoch in sorted(set(changes["_change_epoch"].to_pylist())):
        leaving = of_types(changes, LEAVING, epoch)
        assert leaving <= state
        state = state - leaving + of_types(changes, COMING, epoch)
    return state


def check(epochs: tuple[Drawn, ...], *, keyed: bool) -> None:
    """Compare the changes of a history, written to disk, with its bags of live rows."""
    root = Path(tempfile.mkdtemp(prefix="changes-"))
    try:
        write(root, epochs, keyed=keyed)
        with Reader.open(root) as reader:
            for since, to in combinations(range(len(epochs)), 2):
                changes = told(reader, since, to)
                assert replayed(epochs[since].live(), changes) == epochs[to].live()
                check_told(changes, epochs, since, to, keyed=keyed)
    finally:
        shutil.rmtree(root)


def check_told(changes: pa.Table, epochs: tuple[Drawn, ...], since: int, to: int, *, keyed: bool) -> None:
    """Check that each change has its type, epoch and time, and that there is no needless change."""
    for epoch in range(since + 1, to + 1):
        before, now = (at_slot(drawn.slot, ANCHOR, HOUR) for drawn in epochs[epoch - 1 : epoch + 1])
        expired = of_types(changes, ("expire",), epoch)
        assert all(before < row[3] <= now for row in expired)
        arrivals, departures = of_types(changes, COMING, epoch), of_types(changes, ("delete", "update_preimage"), epoch)
        assert not arrivals & departures
        pre, post = (Counter(row[0] for row in of_types(changes, (kind,), epoch).elements()) for kind in ORDER[2:4])
        assert pre == post
        if keyed:
            alone = [{row[0] for row in of_types(changes, (kind,), epoch)} for kind in ("delete", "insert")]
            assert not alone[0] & alone[1]
        else:
            assert not pre
    kinds, numbers, instants = (changes[f"_change_{name}"].to_pylist() for name in ("type", "epoch", "time"))
    order = list(zip(numbers, map(ORDER.index, kinds), strict=True))
    assert order == sorted(order)
    times = {epoch: to_micros(time) for epoch, time in zip(numbers, instants, strict=True)}
    assert times == {epoch: at_slot(epochs[epoch].slot, ANCHOR, HOUR) for epoch in times}


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(epochs=histories(keyed=False))
def test_changes_over_one_epoch_give_the_other(epochs: tuple[Drawn, ...]) -> None:
    """For every two epochs, across merged, dropped and moved files, double rows, null keys, and what is no update."""
    check(epochs, keyed=False)


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(epochs=histories(keyed=True))
def test_changes_of_a_keyed_table_pair_what_has_one_key(epochs: tuple[Drawn, ...]) -> None:
    """What went and what came with one key is an update, as often as there are both; the rest came or went."""
    check(epochs, keyed=True)


def _file(name: str, cell: int, ends: tuple[int, int] | None, block: int = 0) -> DataFile:
    bounds = {} if ends is None else {"_exp_slot": Bounds(ends[0], ends[1], 0)}
    return DataFile(name, 1, 1, cell, block, bounds)


def _names(files: tuple[DataFile, ...]) -> str:
    return " ".join(sorted(file.path for file in files))


# slot     5          6          7
# cell 1   a [6..9]   a          a
# cell 1   b [20]     b          b          nothing ends: never read
# cell 2   c [5..6]   .          .          what is left of it expires: read for that alone
# cell 2   d [8..9]   e = d      e          merged: compared; nothing of it ends before 8
# cell 3   .          f [7..9]   f          came, alone in its partition
# cell 3   g [5]      g          .          had expired before: never read
def test_only_files_that_can_tell_something_are_read() -> None:
    """A file of both epochs is read only for rows that expire in it, once, however many epochs have it."""
    a, b, c, d = _file("a", 1, (6, 9)), _file("b", 1, (20, 20)), _file("c", 2, (5, 6)), _file("d", 2, (8, 9))
    e, f, g = _file("e", 2, (8, 9)), _file("f", 3, (7, 9)), _file("g", 3, (5, 5))
    first_epoch, second_epoch = TableAtEpoch(0, 50, 5, (a, b, c, d, g)), TableAtEpoch(1, 60, 6, (a, b, e, f, g))
    plan = changes_between([first_epoch, second_epoch, TableAtEpoch(2, 70, 7, (a, b, e, f))])
    assert {(interval.after, interval.until): _names(interval.files) for interval in plan.expiring} == {
        (50, 70): "a", (50, 60): "c", (60, 70): "f",
    }  # fmt: skip
    first, second = plan.moved
    assert (_names(first.added), _names(first.removed)) == ("f", "")
    assert (_names(first.compared_added), _names(first.compared_removed)) == ("e", "d")
    assert not any((second.added, second.removed, second.compared_added, second.compared_removed))
    assert plan.files == {"a", "c", "d", "e", "f"}


def test_rows_that_may_lie_elsewhere_are_compared_wherever_they_lie() -> None:
    """After anything but an update a row that is still there may be in another partition."""
    old, new = _file("old", 1, (9, 9)), _file("new", 2, (9, 9))
    before = TableAtEpoch(0, 50, 5, (old,))
    settled, moved = (changes_between([before, TableAtEpoch(1, 50, 5, (new,), settled=same)]) for same in (True, False))
    assert (_names(settled.moved[0].added), _names(settled.moved[0].removed)) == ("new", "old")
    assert (_names(moved.moved[0].compared_added), _names(moved.moved[0].compared_removed)) == ("new", "old")


def test_a_file_without_bounds_is_read_for_everything() -> None:
    """A file without bounds is read for every question."""
    dim = _file("dim", 1, None)
    plan = changes_between([TableAtEpoch(0, 50, 5, (dim,)), TableAtEpoch(1, 60, 6, (dim,)), TableAtEpoch(2, 60, 6)])
    assert [(interval.after, interval.until, _names(interval.files)) for interval in plan.expiring] == [(50, 60, "dim")]
    assert [_names(move.removed) for move in plan.moved] == ["", "dim"]


@given(st.data())
@settings(max_examples=5, deadline=None, derandomize=True, database=None)
def test_a_cursor_reads_on_where_it_stopped(data: st.DataObject) -> None:
    """Changes of two spans, one after the other, are the changes of both."""
    epochs = data.draw(histories(keyed=False).filter(lambda drawn: len(drawn) > 2))
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory), epochs, keyed=False)
        with Reader.open(Path(directory)) as reader:
            parts = [told(reader, number, number + 1) for number in range(len(epochs) - 1)]
            whole = told(reader, 0, len(epochs) - 1)
    for kind in ORDER:
        assert sum((of_types(part, (kind,)) for part in parts), Counter()) == of_types(whole, (kind,))


def test_columns_and_limits_are_those_of_reads(house: House, reader: Reader) -> None:
    """User's columns by default, the row's times on demand, chosen ones, and the type, epoch and time of the change."""
    own = list(house["names"].names)
    change = ["_change_type", "_change_epoch", "_change_time"]
    answer = reader.changes("names", since=0)
    assert [name for name, _ in answer.columns] == [*own, *change]
    assert (answer.epoch, answer.window_time) == (2, house.epochs[2].window_time)
    table = reader.changes("names", since=0, columns=["_exp", "NAME"], limit=3).arrow()
    assert table.column_names == ["_exp", "name", *change]
    assert table.num_rows == 3
    assert [name for name, _ in reader.changes("names", since=0, system_columns=True).columns] == [*own, "_ts", "_exp", *change]
    whole = reader.changes("names", since=0, system_columns=True).arrow()
    assert len(whole) == len(answer.all())
    assert NEVER not in whole["_exp"].cast("int64").to_pylist()
    with pytest.raises(UnknownNameError):
        reader.changes("names", since=0, columns=["_load_slot"])


def test_the_newest_epoch_has_no_changes_after_it(reader: Reader) -> None:
    """A consumer that has read everything reads nothing, and reads on from there."""
    assert reader.changes("names", since=2).all() == []
    assert reader.changes("nothing", since=0).all() == []


def test_a_reader_that_stayed_behind_goes_on_to_the_epoch_that_is_asked_for(own: House) -> None:
    """A cursor may be newer than what a long-lived reader has pinned."""
    with Reader(own.root, own.epochs[0]) as reader:
        assert reader.changes("names", since=0, to=2).epoch == 2
        assert reader.epoch.number == 2


@pytest.mark.parametrize(("since", "to"), [(-1, None), (3, None), (1, 0), (0, 9), (True, None), ("1", None)])
def test_what_is_no_range_of_epochs_is_refused(reader: Reader, since: int, to: int | None) -> None:
    """With what is allowed."""
    with pytest.raises(UsageError):
        reader.changes("names", since=since, to=to)


def test_an_unknown_table_is_refused(reader: Reader) -> None:
    """As by every read."""
    with pytest.raises(UnknownNameError):
        reader.changes("name", since=0)


def test_a_cursor_whose_epoch_is_gone_is_told_what_to_do(own: House) -> None:
    """The error names the epoch to take the whole table of, and to go on from."""
    epoch_path(own.root, 0).rename(epoch_path(own.root, 0).with_name("0.past.json"))
    with Reader.open(own.root) as reader:
        assert reader.changes("names", since=1).all()
        with pytest.raises(CursorLostError, match=r"since epoch 0 .* before 1 fell out .*scan names.*--since 2") as caught:
            reader.changes("names", since=0)
    assert (caught.value.epoch, caught.value.newest, caught.value.exit_code) == (0, 2, 1)
