"""What the driver makes as arrays is what DuckDB makes: rows, what is written again, and what was not taken."""

from __future__ import annotations

import random
import weakref
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.catalog.declaration import ColumnRecord
from warehouse.coalescing.definition import Definition
from warehouse.coalescing.islands import AT
from warehouse.layout import keyed_layout
from warehouse.limits import limited
from warehouse.steps.coalesced_as_arrays import ArrayReplacement, in_numbers, numbered
from warehouse.steps.coalesced_in_driver import DriverReplacement, no_stored_rows
from warehouse.storage.driver_writer import stage_in_driver
from warehouse.storage.snapshot import DataFile
from warehouse.storage.whole_files import fits_arrays, read_in_cells
from warehouse.time import HOUR
from warehouse.views.maintenance.inputs import Move

if TYPE_CHECKING:
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


def definition(kind: str) -> Definition:
    """A table of two columns of groups, one of which is the search key."""
    group_by = tuple((name, each[0]) for name, each in GROUPS.items())
    return Definition("s", group_by, (("v", kind),), ("g",), window=3 * HOUR)


def drawn(draw: random.Random, kind: str, slot: int, count: int) -> pa.Table:
    """Points of a slot, and late ones."""
    at = [slot * HOUR - draw.randrange(48 if draw.random() < 0.4 else 12) * (HOUR // 12) for _ in range(count)]
    held, values = VALUES[kind]
    groups = {name: pa.array([draw.choice(each[2]) for _ in at], each[1]) for name, each in GROUPS.items()}
    return pa.table({**groups, "v": pa.array([draw.choice(values) for _ in at], held), AT: pa.array(at, pa.int64())})


def content(rows: pa.Table) -> list[str]:
    """Rows in an order, with all columns; a NaN equals a NaN."""
    return sorted(map(repr, rows.to_pylist()))


def live(stored: pa.Table, change: Replacement, slot: int) -> pa.Table:
    """The rows that are live at a slot, after buckets were replaced."""
    rest = [each not in change.sizes for each in stored["sub_index"].to_pylist()]
    rows = stored.filter(pa.array(rest, pa.bool_()))
    if change.rows is not None:
        assert isinstance(change.rows, pa.Table)
        rows = pa.concat_tables([rows, change.rows.select(rows.column_names).cast(rows.schema)])
    alive = [each > slot * HOUR for each in rows["_exp"].cast(pa.int64()).to_pylist()]
    return rows.filter(pa.array(alive, pa.bool_()))


@pytest.mark.parametrize("kind", VALUES)
def test_both_ways_give_one_table(kind: str) -> None:
    """Over moves with late points, with equal ones and without any; rows that stay keep the slot that loaded them."""
    draw, own = random.Random(kind), definition(kind)  # noqa: S311 - points of a test
    columns = [ColumnRecord(name, each) for name, each in (*own.columns, *own.state)]
    stored, written = no_stored_rows(columns), 0
    assert in_numbers(own)
    for slot in range(1, 9):
        points = drawn(draw, kind, slot, 0 if slot == 6 else 14)
        move = Move(k0=slot - 1, k=slot, before=(slot - 1) * HOUR, now=slot * HOUR, anchor=0, interval=HOUR, first=False)
        theirs = DriverReplacement(own, LAYOUT, move, stored, points)
        ours = ArrayReplacement(own, LAYOUT, move, stored, points)
        assert ours.losses == theirs.losses
        found, wanted = ours.replacement, theirs.replacement
        assert found.sizes.keys() <= wanted.sizes.keys()  # rows that end by themselves are no reason to write a bucket again
        assert {key: count for key, count in found.fresh.items() if count} == {
            key: count for key, count in wanted.fresh.items() if count
        }
        changed = ours.changed
        assert changed is not None
        names = changed.came.column_names
        was, now = (Counter(content(rows.select(names))) for rows in (stored, live(stored, found, slot)))
        assert Counter(content(changed.came)) - Counter(content(changed.gone)) == now - was
        assert Counter(content(changed.gone)) - Counter(content(changed.came)) == was - now
        after = live(stored, wanted, slot)
        stored = live(stored, found, slot)
        assert content(stored) == content(after)
        written += sum(found.sizes.values())
    assert written > 50


def test_a_shorter_window_applies_at_once() -> None:
    """Rows that stay end earlier, and that is a change for readers of the table."""
    own = definition("int")
    nothing = no_stored_rows([ColumnRecord(name, kind) for name, kind in (*own.columns, *own.state)])
    points = drawn(random.Random(7), "int", 1, 30)  # noqa: S311 - points of a test
    move = Move(k0=0, k=1, before=0, now=HOUR, anchor=0, interval=HOUR, first=False)
    stored = ArrayReplacement(own, LAYOUT, move, nothing, points).replacement.rows
    assert isinstance(stored, pa.Table)
    later, none = replace(move, k0=1, before=HOUR), points.slice(0, 0)
    assert ArrayReplacement(own, LAYOUT, later, stored, none).replacement.rows is None
    shorter = ArrayReplacement(replace(own, window=2 * HOUR), LAYOUT, later, stored, none)
    rows, changed = shorter.replacement.rows, shorter.changed
    assert isinstance(rows, pa.Table)
    assert changed is not None
    assert {max(row["_stamps"]) + 2 * HOUR + 1 for row in rows.to_pylist()} == set(rows["_exp"].cast(pa.int64()).to_pylist())
    assert (changed.gone.num_rows, changed.came.num_rows) == (stored.num_rows, rows.num_rows)


def test_what_was_made_does_not_hold_the_arrays() -> None:
    """An update keeps it until all of its steps are done, of each large table."""
    own = definition("int")
    nothing = no_stored_rows([ColumnRecord(name, kind) for name, kind in (*own.columns, *own.state)])
    move = Move(k0=0, k=1, before=0, now=HOUR, anchor=0, interval=HOUR, first=False)
    by = ArrayReplacement(own, LAYOUT, move, nothing, drawn(random.Random(3), "int", 1, 9))  # noqa: S311 - points of a test
    arrays, made = weakref.ref(by), by.made
    del by
    assert arrays() is None
    assert made.losses["points"] == 9
    assert made.replacement.rows is not None


def test_what_is_not_for_arrays() -> None:
    """Conditions over neighbours, windows of rows, what was shed, and groups that lie in several buckets."""
    own = definition("int").__dict__
    for other in ({"same": "v > previous.v"}, {"window": None, "rows": 9}, {"ledger": True}, {"search_key": ("valid_from",)}):
        assert not in_numbers(Definition(**{**own, **other}))


def test_numbers_are_in_the_order_of_the_values() -> None:
    """Nulls first, NaN last, both zeros as one: of equal points the smallest value counts."""
    values = pa.chunked_array([[1.5, float("nan"), None], [-0.0, 0.0, float("-inf")]], pa.float64())
    assert numbered([values]).tolist() == [3, 4, 0, 2, 2, 1]
    assert numbered([pa.chunked_array([["b", None, "a", "b"]])]).tolist() == [2, 0, 1, 2]


def test_all_rows_of_files_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    """In several buckets; more than the driver takes is left to Spark, and so is a file that cannot be read."""
    own = definition("int")
    nothing = no_stored_rows([ColumnRecord(name, kind) for name, kind in (*own.columns, *own.state)])
    move = Move(k0=0, k=1, before=0, now=HOUR, anchor=0, interval=HOUR, first=False)
    rows = ArrayReplacement(own, LAYOUT, move, nothing, drawn(random.Random(1), "int", 1, 60)).replacement.rows  # noqa: S311 - same
    assert isinstance(rows, pa.Table)
    staged = stage_in_driver(rows, tmp_path / "t", key=["g"], filtered=["g"], file_rows=4, group_rows=2)
    files = [
        DataFile(str(path), path.stat().st_size, None, int(path.parent.parent.name.split("=")[1]), 0, {})
        for path in sorted(staged.rglob("*.parquet"))
    ]
    assert len({file.sub_index for file in files}) > 1
    found = read_in_cells(files, rows.schema)
    assert fits_arrays(files)
    assert found is not None
    assert content(found) == content(rows)
    with limited(array_values=20):
        assert not fits_arrays(files)
    Path(files[0].path).write_bytes(b"PAR1")
    assert not fits_arrays(files)
    assert read_in_cells(files, rows.schema) is None


def test_wide_rows_of_small_files_are_left_to_spark(tmp_path: Path) -> None:
    """A text that many rows have lies once in a file, so its footer tells nothing of what becomes of it."""
    path = tmp_path / "wide.parquet"
    rows = pa.table({"v": pa.array(["x" * 10_000] * 1_000)})
    pq.write_table(rows, path)
    files = [DataFile(str(path), path.stat().st_size, None, 3, 0, {})]
    wanted = pa.schema([("v", pa.string()), ("sub_index", pa.int32()), ("exp_block", pa.int64())])
    found = read_in_cells(files, wanted)
    assert found is not None
    assert (found.num_rows, found.schema) == (1_000, wanted)
    with limited(array_bytes=1_000_000):
        assert fits_arrays(files)
        assert read_in_cells(files, wanted) is None
