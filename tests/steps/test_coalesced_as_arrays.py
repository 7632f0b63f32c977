"""The driver's arrays give the same as DuckDB: rows, rewritten cells, and points that were not taken."""

from __future__ import annotations

import random
import weakref
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.catalog.declaration import ColumnRecord
from warehouse.coalescing.cells import Cells, blocks_of
from warehouse.coalescing.definition import CoalescedDefinition
from warehouse.coalescing.islands import AT
from warehouse.layout import keyed_layout
from warehouse.limits import limited, limits
from warehouse.steps.coalesced_as_arrays import ArrayReplacement, can_be_arrays, numbered
from warehouse.steps.coalesced_in_driver import DriverReplacement, no_stored_rows
from warehouse.storage.commit import staged_place
from warehouse.storage.driver_writer import encoded_in_driver, stage_in_driver
from warehouse.storage.snapshot import DataFile
from warehouse.storage.whole_files import fits_arrays, read_in_cells
from warehouse.time import HOUR
from warehouse.views.maintenance.input_facts import Move

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from warehouse.views.maintenance.keyed import Replacement

GROUPS = {"g": ("string", pa.string(), ["a", "b", None]), "h": ("bigint", pa.int64(), [1, None])}
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [1, 2, None]),
    "string": (pa.string(), ["x", "", None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "double": (pa.float64(), [0.0, -0.0, float("nan"), 1.5, None]),
    "float": (pa.float32(), [-0.0, float("nan"), 1.5, None]),
    "decimal(12,2)": (pa.decimal128(12, 2), [Decimal("1.50"), Decimal("-3.25"), None]),
    "binary": (pa.binary(), [b"\0", b"\xff", None]),
}
LAYOUT = keyed_layout(24)


def definition(kind: str) -> CoalescedDefinition:
    """Return a table of two columns of groups; one of them is the search key."""
    group_by = tuple((name, group[0]) for name, group in GROUPS.items())
    return CoalescedDefinition("s", group_by, (("v", kind),), ("g",), window=3 * HOUR)


def drawn(draw: random.Random, kind: str, slot: int, count: int) -> pa.Table:
    """Return points of a slot, some of them late."""
    at = [slot * HOUR - draw.randrange(48 if draw.random() < 0.4 else 12) * (HOUR // 12) for _ in range(count)]
    arrow_type, values = VALUES[kind]
    groups = {name: pa.array([draw.choice(group[2]) for _ in at], group[1]) for name, group in GROUPS.items()}
    return pa.table({**groups, "v": pa.array([draw.choice(values) for _ in at], arrow_type), AT: pa.array(at, pa.int64())})


def content(rows: pa.Table) -> list[str]:
    """Return rows in a fixed order, with all columns; a NaN equals a NaN."""
    return sorted(map(repr, rows.to_pylist()))


def live(stored: pa.Table, change: Replacement, slot: int) -> pa.Table:
    """Return the rows that are live at a slot, after buckets or cells were replaced."""
    staying = [
        cell[0] not in change.sizes if change.cells is None else cell not in change.cells.leaving for cell in cells_of(stored)
    ]
    rows = stored.filter(pa.array(staying, pa.bool_()))
    if change.rows is not None:
        assert isinstance(change.rows, pa.Table)
        rows = pa.concat_tables([rows, change.rows.select(rows.column_names).cast(rows.schema)])
    alive = [end > slot * HOUR for end in rows["_exp"].cast(pa.int64()).to_pylist()]
    return rows.filter(pa.array(alive, pa.bool_()))


def cells_of(rows: pa.Table) -> list[tuple[int, int]]:
    """Return the cell of each row."""
    return list(zip(rows["sub_index"].to_pylist(), rows["exp_block"].to_pylist(), strict=True))


def in_cells(rows: pa.Table, cells: Collection[tuple[int, int]]) -> pa.Table:
    """Return the rows of some cells, and of block 0."""
    return rows.filter(pa.array([not cell[1] or cell in cells for cell in cells_of(rows)], pa.bool_()))


def moving(slot: int) -> Move:
    """Return the move from the slot before to a slot."""
    return Move(k0=slot - 1, k=slot, before=(slot - 1) * HOUR, now=slot * HOUR, anchor=0, interval=HOUR, first=False)


@dataclass
class Kept:
    """A table kept by arrays, and the runs of its cells; ``read`` and ``written`` count the rows that updates read and wrote.

    ``left`` are the cells whose files left with the last one.
    """

    own: CoalescedDefinition
    rows: pa.Table
    apart: bool = False
    runs: Counter[tuple[int, int]] = field(default_factory=Counter)
    read: int = 0
    written: int = 0
    left: frozenset[tuple[int, int]] = frozenset()

    def update(self, slot: int, points: pa.Table, own: CoalescedDefinition | None = None) -> ArrayReplacement:
        """Move the table to a slot, with only the rows of the cells that the step requires."""
        former, self.own = self.own, own or self.own
        window = self.own.window or 0
        again = former.window != window
        cells = Cells.of(self.runs.items(), window, slot * HOUR - window, apart=self.apart, again=again)
        made = ArrayReplacement(self.own, LAYOUT, moving(slot), in_cells(self.rows, cells.due), points, cells)
        if lacking := made.cells_to_read:
            begins = self.rows.filter(pa.array([its_cell in lacking for its_cell in cells_of(self.rows)], pa.bool_()))
            hit = made.hit_cells(begins.select([*self.own.groups, "valid_from", "sub_index", "exp_block"]))
            assert hit <= lacking
            made = replace(made, own=in_cells(self.rows, cells.due | hit))
        self.read += made.own.num_rows
        change = made.replacement
        if change.cells is not None:
            self.written += sum(change.cells.sizes.values())
            assert isinstance(change.rows, pa.Table)
            assert Counter(cells_of(change.rows)) == change.cells.sizes
            self.left = frozenset(change.cells.leaving)
            for cell in self.left:
                self.runs.pop(cell, None)
            self.runs.update(change.cells.sizes.keys())
        self.rows = live(self.rows, change, slot)
        self.require_in_place(slot * HOUR - window)
        return made

    def require_in_place(self, edge: int) -> None:
        """Rows of cells are closed, begin in their block, and are whole."""
        for row in self.rows.to_pylist():
            if row["exp_block"]:
                assert not row["open"]
                assert blocks_of(np.array(row["_stamps"][:1]), self.own.window or 0).tolist() == [row["exp_block"]]
                assert row["_stamps"][0] >= edge


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("kind", VALUES)
def test_both_ways_give_one_table(kind: str, apart: bool) -> None:
    """Over moves with late, with equal and without points; rows that stay keep the slot that loaded them."""
    draw, own = random.Random(kind), definition(kind)  # noqa: S311 - points of a test
    columns = [ColumnRecord(name, column_type) for name, column_type in (*own.columns, *own.state)]
    ours, after = Kept(own, no_stored_rows(columns)), no_stored_rows(columns)
    assert can_be_arrays(own)
    seen: set[tuple[int, int]] = set()
    for slot in range(1, 10):
        ours.apart = apart and slot != 8  # once all closed rows go back
        points = drawn(draw, kind, slot, 0 if slot == 6 else 14)
        theirs = DriverReplacement(own, LAYOUT, moving(slot), after, points)
        before = ours.rows
        made = ours.update(slot, points)
        of_arrays, of_driver = made.replacement, theirs.replacement
        assert made.losses == theirs.losses
        assert apart or of_arrays.sizes.keys() <= of_driver.sizes.keys()  # rows that end by themselves are no reason to write
        assert {key: count for key, count in of_arrays.fresh.items() if count} == {
            key: count for key, count in of_driver.fresh.items() if count
        }
        changed = made.changed
        assert changed is not None
        names = changed.inserted.column_names
        was, now = (Counter(content(rows.select(names))) for rows in (before, ours.rows))
        assert Counter(content(changed.inserted)) - Counter(content(changed.removed)) == now - was
        assert Counter(content(changed.removed)) - Counter(content(changed.inserted)) == was - now
        after = live(after, of_driver, slot)
        assert content(ours.rows.drop_columns("exp_block")) == content(after.drop_columns("exp_block"))
        seen |= ours.runs.keys()
    assert ours.written > 50
    assert any(block for _, block in seen) is apart


def test_an_update_leaves_closed_rows_unwritten() -> None:
    """With long rows in many groups, it reads and writes open rows, rows at the edge, and a few more that come in bulk."""
    group_by, groups, window = (("g", "bigint"),), 40, 64 * HOUR
    own = CoalescedDefinition("s", group_by, (("v", "int"),), ("g",), window=window)
    stored = Kept(own, no_stored_rows([ColumnRecord(name, kind) for name, kind in (*own.columns, *own.state)]), apart=True)
    draw = random.Random(3)  # noqa: S311 - points of a test
    values = [0] * groups

    def update(slot: int, late: Sequence[int] = ()) -> None:
        for group in range(groups):
            values[group] += draw.random() < 0.5
        at = [slot * HOUR - draw.randrange(HOUR) for _ in range(groups)]
        points = pa.table({
            "g": pa.array([*range(groups), *[7] * len(late)], pa.int64()),
            "v": pa.array([*values, *[-1] * len(late)], pa.int32()), AT: pa.array([*at, *late], pa.int64()),
        })  # fmt: skip
        stored.read = stored.written = 0
        stored.update(slot, points)

    read = written = 0
    for slot in range(1, 130):
        update(slot)
        if slot > 65:
            read, written = read + stored.read, written + stored.written
    row_count = stored.rows.num_rows
    assert row_count > 1200
    assert read < 64 * row_count * 0.45
    assert written < 64 * row_count * 0.45
    runs, edge = dict(stored.runs), 130 * HOUR - window
    assert max(runs.values()) <= 3
    assert len([cell for cell in runs if cell[1]]) > 16
    due = Cells.of(runs.items(), window, edge, apart=True, again=False).due
    hit = next(
        row for row in stored.rows.to_pylist()
        if row["g"] == 7 and row["exp_block"] and len(row["_stamps"]) > 1 and (row["sub_index"], row["exp_block"]) not in due
    )  # fmt: skip
    update(130, [hit["_stamps"][0] + 1])
    assert {cell for cell in stored.left - due if cell[1]} == {(hit["sub_index"], hit["exp_block"])}
    assert stored.written < row_count * 0.45


def test_a_shorter_window_applies_at_once() -> None:
    """Remaining rows end earlier, which is a change for readers of the table; cells are cells of the new window."""
    own = definition("int")
    nothing = no_stored_rows([ColumnRecord(name, kind) for name, kind in (*own.columns, *own.state)])
    for apart in (False, True):
        stored_table = Kept(own, nothing, apart)
        points = drawn(random.Random(7), "int", 1, 30)  # noqa: S311 - points of a test
        stored_table.update(1, points)
        stored = stored_table.rows
        assert len(stored_table.runs) > (4 if apart else 0)
        later, no_points = replace(moving(2), k=1, now=HOUR, k0=1), points.slice(0, 0)
        cells = Cells.of(stored_table.runs.items(), 3 * HOUR, -2 * HOUR, apart=apart, again=False)
        assert ArrayReplacement(own, LAYOUT, later, stored, no_points, cells).replacement.rows is None
        changed = stored_table.update(1, no_points, replace(own, window=2 * HOUR)).changed
        assert changed is not None
        rows = stored_table.rows
        assert {max(row["_stamps"]) + 2 * HOUR + 1 for row in rows.to_pylist()} == set(rows["_exp"].cast(pa.int64()).to_pylist())
        assert (changed.removed.num_rows, changed.inserted.num_rows) == (stored.num_rows, rows.num_rows)


def test_what_was_made_does_not_hold_the_arrays() -> None:
    """An update keeps the result of each large table until all of its steps are done."""
    own = definition("int")
    nothing = no_stored_rows([ColumnRecord(name, kind) for name, kind in (*own.columns, *own.state)])
    move = Move(k0=0, k=1, before=0, now=HOUR, anchor=0, interval=HOUR, first=False)
    points = drawn(random.Random(3), "int", 1, 9)  # noqa: S311 - points of a test
    by = ArrayReplacement(own, LAYOUT, move, nothing, points, Cells(3 * HOUR, -2 * HOUR, apart=False))
    arrays, result = weakref.ref(by), by.result
    del by
    assert arrays() is None
    assert result.losses["points"] == 9
    assert result.replacement.rows is not None


def test_what_is_not_for_arrays() -> None:
    """Conditions over neighbours, windows of rows, shed members, and groups that lie in several buckets."""
    own = definition("int").__dict__
    for other in ({"same": "v > previous.v"}, {"window": None, "rows": 9}, {"ledger": True}, {"search_key": ("valid_from",)}):
        assert not can_be_arrays(CoalescedDefinition(**{**own, **other}))


def test_numbers_are_in_the_order_of_the_values() -> None:
    """Nulls are first, NaN last, both zeros equal; the smallest value counts among equal points."""
    values = pa.chunked_array([[1.5, float("nan"), None], [-0.0, 0.0, float("-inf")]], pa.float64())
    assert numbered([values]).tolist() == [3, 4, 0, 2, 2, 1]
    assert numbered([pa.chunked_array([["b", None, "a", "b"]])]).tolist() == [2, 0, 1, 2]


def test_all_rows_of_files_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    """In several buckets; too many rows, and files that cannot be read, are left to Spark."""
    own = definition("int")
    nothing = no_stored_rows([ColumnRecord(name, kind) for name, kind in (*own.columns, *own.state)])
    points = drawn(random.Random(1), "int", 1, 60)  # noqa: S311 - points of a test
    rows = ArrayReplacement(own, LAYOUT, moving(1), nothing, points, Cells(3 * HOUR, -2 * HOUR, apart=False)).replacement.rows
    assert isinstance(rows, pa.Table)
    staged = stage_in_driver(encoded_in_driver(rows, key=["g"], filtered=["g"], file_rows=4, group_rows=2), tmp_path / "t")
    files = [
        DataFile(str(path), path.stat().st_size, None, int(staged_place(path).parent.parent.name.split("=")[1]), 0, {})
        for path in sorted(staged.rglob("*.parquet"))
    ]
    assert len({file.sub_index for file in files}) > 1
    rows_read = read_in_cells(files, rows.schema)
    assert fits_arrays(files, limits().array_bytes)
    assert rows_read is not None
    assert content(rows_read) == content(rows)
    with limited(array_values=20):
        assert not fits_arrays(files, limits().array_bytes)
    Path(files[0].path).write_bytes(b"PAR1")
    assert not fits_arrays(files, limits().array_bytes)
    assert read_in_cells(files, rows.schema) is None


def test_wide_rows_of_small_files_are_left_to_spark(tmp_path: Path) -> None:
    """A file stores a repeated text once, so its footer does not tell the bytes of the rows in memory."""
    path = tmp_path / "wide.parquet"
    rows = pa.table({"v": pa.array(["x" * 10_000] * 1_000)})
    pq.write_table(rows, path)
    files = [DataFile(str(path), path.stat().st_size, None, 3, 0, {})]
    schema = pa.schema([("v", pa.string()), ("sub_index", pa.int32()), ("exp_block", pa.int64())])
    rows_read = read_in_cells(files, schema)
    assert rows_read is not None
    assert (rows_read.num_rows, rows_read.schema) == (1_000, schema)
    with limited(array_bytes=1_000_000):
        assert fits_arrays(files, limits().array_bytes)
        assert read_in_cells(files, schema) is None
