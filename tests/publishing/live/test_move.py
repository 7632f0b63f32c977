"""How a live table is moved: every row once, none dead, none missing, whatever leaves the table in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.publishing.live.move import LiveFile, LiveMove, TableFile, plan_move

if TYPE_CHECKING:
    import random

Rows = tuple[int, ...]
"""The expiration slots of a file's rows."""


def stored(identity: str, rows: Rows, group: str = "b0", *, bounded: bool = True) -> TableFile:
    """Return a file of the table with its bounds, or without."""
    low, high = (min(rows), max(rows)) if bounded and rows else (None, None)
    return TableFile(identity, f"/t/{identity}", group, low, high)


@dataclass
class Table:
    """A live table in memory, moved as the real one is: rows by file, and how often each file's rows were written."""

    held: list[LiveFile] = field(default_factory=list)
    rows: dict[str, Rows] = field(default_factory=dict)
    written: int = 0
    names: count[int] = field(default_factory=count)

    def move(self, files: dict[str, tuple[TableFile, Rows]], slot: int) -> LiveMove:
        """Plan a move and carry it out."""
        move = plan_move([file for file, _ in files.values()], self.held, slot)
        rows, live_files = {file.path: self.rows[file.path] for file in move.kept}, list(move.kept)
        for shared in move.shared:
            path = f"p{next(self.names)}"
            live_files.append(LiveFile(path, frozenset((shared.identity,)), shared.group))
            rows[path] = files[shared.identity][1]
        for cut in move.cuts:
            all_ends = [slot for file in cut.files for slot in files[file.identity][1]]
            all_ends += [end for piece in cut.pieces for end in self.rows[piece.path]]
            by_bit: dict[int, list[int]] = {}
            for end in all_ends:
                if end > slot:
                    by_bit.setdefault((end ^ slot).bit_length() if end ^ slot >= 0 else 64, []).append(end)
            for ends in by_bit.values():
                path = f"p{next(self.names)}"
                live_files.append(LiveFile(path, cut.sources, cut.group, slot, min(ends), max(ends)))
                rows[path] = tuple(ends)
                self.written += len(ends)
        self.held, self.rows = live_files, rows
        return move

    def bag(self) -> Counter[int]:
        """Return all rows that it holds."""
        return Counter(end for rows in self.rows.values() for end in rows)


def live(files: dict[str, tuple[TableFile, Rows]], slot: int) -> Counter[int]:
    """Return the rows that it has to hold: a list and an if."""
    return Counter(end for _, rows in files.values() for end in rows if end > slot)


_FILES = st.lists(
    st.tuples(st.lists(st.integers(1, 40), max_size=6), st.sampled_from(["b0", "b1"]), st.booleans()), max_size=4
)


@settings(max_examples=150, deadline=None)
@given(start=st.integers(-6, 2), moves=st.lists(st.tuples(st.integers(0, 6), _FILES, st.randoms()), min_size=1, max_size=12))
def test_any_history_holds_each_live_row_once(
    start: int, moves: list[tuple[int, list[tuple[list[int], str, bool]], random.Random]]
) -> None:
    """Files come, are sealed into one, and leave; slots pass one by one and many at once."""
    table, files, slot, names = Table(), dict[str, tuple[TableFile, Rows]](), start, count()
    for passed, new, chance in moves:
        slot += passed
        for ends, group, bounded in new:
            identity = f"f{next(names)}"
            rows = tuple(slot + end for end in ends)
            files[identity] = (stored(identity, rows, group, bounded=bounded), rows)
        if len(files) > 3 and chance.random() < 0.5:
            sealed = chance.sample(sorted(files), 2)
            rows = tuple(end for identity in sealed for end in files.pop(identity)[1] if end > slot)
            identity = f"f{next(names)}"
            files[identity] = (stored(identity, rows), rows)
        table.move(files, slot)
        assert table.bag() == live(files, slot)
        assert all(file.min_exp_slot > slot for file in table.held if file.cut_slot is not None)


def test_a_row_is_written_at_most_once_for_each_bit_of_the_distance_to_its_end() -> None:
    """A file with a row for each of 64 slots: six times, and not 32 times, which rewriting it at each update would cost."""
    rows = tuple(range(1, 65))
    files = {"f": (stored("f", rows), rows)}
    table = Table()
    for slot in range(64):
        table.move(files, slot)
        assert table.bag() == live(files, slot)
    rewriting = sum(64 - slot for slot in range(1, 64))
    assert table.written <= 64 * 6 < rewriting / 4


def test_files_that_are_wholly_live_are_shared_and_stay_shared() -> None:
    """Such files are never written again."""
    files = {"f": (stored("f", (5, 9)), (5, 9)), "dead": (stored("dead", (1, 2)), (1, 2))}
    table = Table()
    assert [file.identity for file in table.move(files, 3).shared] == ["f"]
    assert table.move(files, 4) == LiveMove(tuple(table.held), (), ())
    assert not table.written


def test_pieces_of_a_file_that_left_are_void_with_all_that_they_were_joined_with() -> None:
    """Else rows of it would stay: they were sealed into another file, erased, or rolled back."""
    files = {name: (stored(name, (1, 3, 9)), (1, 3, 9)) for name in "fgh"}
    table = Table()
    for slot in (1, 2, 3):
        table.move(files, slot)
    del files["g"]
    move = table.move(files, 3)
    assert {file.identity for cut in move.cuts for file in cut.files} == {"f", "h"}
    assert table.bag() == live(files, 3)


def test_pieces_that_were_cut_later_are_void() -> None:
    """After another grid of times the slot can be an earlier one: rows that were dead then may not be now."""
    files = {"f": (stored("f", (1, 3, 9)), (1, 3, 9))}
    table = Table()
    table.move(files, 3)
    table.move(files, 2)
    assert table.bag() == live(files, 2)
