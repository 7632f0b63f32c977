"""Tables whose files were rearranged at will, written without Spark, and the bags of rows that are live at each epoch.

A file of a history is a list of rows in a cell. From one epoch to the next the window moves or stands, rows come (late,
double, without key, for ever), files are merged or dropped; in a keyed table the rows of a key are replaced; and a step
that is no update (a rollback, a restatement) may drop, double and move rows as it likes.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from warehouse.epochs.journal import epoch_path, write_record
from warehouse.epochs.records import ColumnRecord, Declaration, Epoch, TableState
from warehouse.layout import Layout
from warehouse.time import HOUR, NEVER, at_slot, slot

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import Cause

__all__ = ["ANCHOR", "Drawn", "Row", "bag", "histories", "write"]

ANCHOR = 0
LAYOUT = Layout("norebuild", 2, 2, "staggered", "blocks", periods=6, expiry_block=3, seal=True)
Row = tuple[str | None, int, int, int]
"""Key, value, ts, exp."""
Cell = tuple[int, int]
CAUSES: tuple[Cause, ...] = ("update", "update", "update", "rollback")
COLUMNS = {"k": pa.string(), "v": pa.list_(pa.int64())}
SYSTEM = {"_ts": pa.timestamp("us", "UTC"), "_exp": pa.timestamp("us", "UTC"), "_load_slot": pa.int64(), "_exp_slot": pa.int64()}


@dataclass(frozen=True)
class File:
    """A data file: its name, its cell and its rows."""

    name: str
    cell: Cell
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Drawn:
    """A table at one epoch."""

    slot: int
    files: tuple[File, ...]
    cause: Cause = "update"

    def live(self) -> Counter[Row]:
        """Return the bag of rows that a reader sees."""
        tau = at_slot(self.slot, ANCHOR, HOUR)
        return Counter(row for file in self.files for row in file.rows if row[3] > tau)


@dataclass
class _Making:
    draw: st.DrawFn
    keyed: bool
    made: int = 0
    turned: bool = False
    files: list[File] = field(default_factory=list)

    def cell(self, row: Row) -> Cell:
        """Return where a row lies: a function of the row, as in every layout; another one after some that were no update."""
        number = ord((row[0] or "x")[0]) if self.keyed else row[1]
        block = 0 if self.keyed or row[3] == NEVER else slot(row[3], ANCHOR, HOUR) // 3
        return ((number + self.turned) % 2 + 1, block)

    def add(self, rows: list[Row]) -> None:
        """Put rows into files, one for each cell."""
        cells: dict[Cell, list[Row]] = {}
        for row in rows:
            cells.setdefault(self.cell(row), []).append(row)
        for cell, own in cells.items():
            self.made += 1
            self.files.append(File(f"{self.made:04}.parquet", cell, tuple(own)))

    def batch(self, at: int) -> list[Row]:
        """Draw rows that are live at a slot."""
        tau = at_slot(at, ANCHOR, HOUR)
        lives = st.one_of(st.integers(1, 24), st.none())
        keys = st.sampled_from(["a", "b", "c", None])
        drafts = st.lists(st.tuples(keys, st.integers(0, 3), st.integers(0, 3), lives), max_size=5)
        return [
            (key, value, tau - back * HOUR // 2, NEVER if life is None else tau + life * HOUR // 4)
            for key, value, back, life in self.draw(drafts)
        ]

    def replace_keys(self) -> None:
        """Take the rows of some keys out of the files in which they lie; what is left of these files is written again."""
        gone = self.draw(st.sets(st.sampled_from(["a", "b", "c", None]), max_size=2))
        touched = [file for file in self.files if any(row[0] in gone for row in file.rows)]
        self.files = [file for file in self.files if file not in touched]
        self.add([row for file in touched for row in file.rows if row[0] not in gone])

    def seal(self) -> None:
        """Merge the files of some cells."""
        cells = sorted({file.cell for file in self.files})
        merged: set[Cell] = self.draw(st.sets(st.sampled_from(cells), max_size=2)) if cells else set()
        sealed = [file for file in self.files if file.cell in merged]
        self.files = [file for file in self.files if file.cell not in merged]
        self.add([row for file in sealed for row in file.rows])

    def drop_dead(self, at: int) -> None:
        """Drop files of which all rows are dead."""
        tau = at_slot(at, ANCHOR, HOUR)
        self.files = [file for file in self.files if any(row[3] > tau for row in file.rows)]

    def disturb(self) -> None:
        """Change the files as no update does: rows and whole files are removed, doubled and moved."""
        rows = [row for file in self.files for row in file.rows]
        copies: list[Row] = self.draw(st.lists(st.sampled_from(rows), max_size=8)) if rows else []
        chosen = self.draw(st.lists(st.booleans(), min_size=len(self.files), max_size=len(self.files)))
        self.files = [file for file, stays in zip(self.files, chosen, strict=True) if stays]
        self.add(copies)
        if self.draw(st.booleans()):
            self.turned = not self.turned
            self.files = [replace(file, cell=(3 - file.cell[0], file.cell[1])) for file in self.files]


@st.composite
def histories(draw: st.DrawFn, *, keyed: bool) -> tuple[Drawn, ...]:
    """Draw a table at two to four epochs."""
    making = _Making(draw, keyed)
    at = 5
    epochs: list[Drawn] = []
    for _ in range(draw(st.integers(2, 4))):
        at += draw(st.sampled_from([0, 1, 1, 2, 5]))
        cause = draw(st.sampled_from(CAUSES))
        if cause == "rollback":
            making.disturb()
        if keyed:
            making.replace_keys()
        making.add(making.batch(at))
        if draw(st.booleans()):
            making.seal()
        if draw(st.booleans()):
            making.drop_dead(at)
        epochs.append(Drawn(at, tuple(making.files), cause))
    return tuple(epochs)


def write(root: Path, epochs: tuple[Drawn, ...], *, keyed: bool) -> None:
    """Write a history as a warehouse with table ``t``: data files, one commit for each epoch, and the epochs."""
    table = root / "tables" / "t"
    (table / "_delta_log").mkdir(parents=True)
    (table / "_schema").mkdir()
    pq.write_table(_arrow(()), table / "_schema" / "columns.parquet")
    former: set[File] = set()
    for version, epoch in enumerate(epochs):
        files = set(epoch.files)
        actions = [*([] if version else _head()), *map(_remove, former - files), *(_add(table, file) for file in files - former)]
        former = files
        text = "".join(json.dumps(action) + "\n" for action in [*actions, {"commitInfo": {"operation": "WRITE"}}])
        (table / "_delta_log" / f"{version:020}.json").write_text(text)
        write_record(epoch_path(root, version), _epoch(version, epoch, keyed=keyed))


def _head() -> list[dict[str, Any]]:
    kinds: dict[str, Any] = {"k": "string", "v": {"type": "array", "elementType": "long", "containsNull": True}}
    kinds |= {"_ts": "timestamp", "_exp": "timestamp", "_load_slot": "long", "_exp_slot": "long"}
    kinds |= {"sub_index": "integer", "exp_block": "long"}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {
            "id": "t", "format": {"provider": "parquet", "options": {}}, "configuration": {}, "createdTime": 0,
            "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": ["sub_index", "exp_block"],
        }},
    ]  # fmt: skip


def _path(file: File) -> str:
    return f"sub_index={file.cell[0]}/exp_block={file.cell[1]}/{file.name}"


def _remove(file: File) -> dict[str, Any]:
    return {"remove": {"path": _path(file), "deletionTimestamp": 0, "dataChange": True}}


def _add(table: Path, file: File) -> dict[str, Any]:
    path = table / _path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = _arrow(file.rows)
    pq.write_table(content, path)
    ends = [slot(row[3], ANCHOR, HOUR) for row in file.rows]
    bounds = {"numRecords": len(ends), "minValues": {"_exp_slot": min(ends)}, "maxValues": {"_exp_slot": max(ends)}}
    return {"add": {
        "path": _path(file), "partitionValues": {"sub_index": str(file.cell[0]), "exp_block": str(file.cell[1])},
        "size": path.stat().st_size, "modificationTime": 0, "dataChange": True,
        "stats": json.dumps({**bounds, "nullCount": {"_exp_slot": 0}}),
    }}  # fmt: skip


def _arrow(rows: tuple[Row, ...]) -> pa.Table:
    """Return rows as they are stored; the value is a list, so that nested columns are compared too."""
    stored = {
        "k": [row[0] for row in rows],
        "v": [[row[1], None] for row in rows],
        "_ts": [row[2] for row in rows],
        "_exp": [row[3] for row in rows],
        "_load_slot": [slot(row[2], ANCHOR, HOUR) for row in rows],
        "_exp_slot": [slot(row[3], ANCHOR, HOUR) for row in rows],
    }
    return pa.table({name: pa.array(stored[name], kind) for name, kind in (COLUMNS | SYSTEM).items()})


def _epoch(number: int, epoch: Drawn, *, keyed: bool) -> Epoch:
    columns = (ColumnRecord("k", "string"), ColumnRecord("v", "array<bigint>"))
    declaration = Declaration(
        landing="../landing", files="*", format="csv", options=(), timezone="UTC", columns=columns, search_key=("k",),
        arrival="ts", expires="exp", max_lifetime=6 * HOUR, over_lifetime="accept", max_ahead=None, null_expiry="reject",
        unknown_columns="reject", label="WK",
    )  # fmt: skip
    kind: Literal["relation", "stream"] = "relation" if keyed else "stream"
    state = TableState("t", kind, "tables/t", "t", number, LAYOUT, declaration, "tables/t/_schema/columns.parquet", ())
    tau = at_slot(epoch.slot, ANCHOR, HOUR)
    return Epoch(number, tau, epoch.slot, epoch.slot - 1, ANCHOR, HOUR, tau, "", (state,), cause=epoch.cause)


def bag(table: pa.Table) -> Counter[Row]:
    """Return the rows of an answer with columns k, v, _ts, _exp."""
    ts, exp = (table[name].cast(pa.int64()).to_pylist() for name in ("_ts", "_exp"))
    keys, values = table["k"].to_pylist(), table["v"].to_pylist()
    return Counter(
        (key, value[0], start, NEVER if end is None else end)
        for key, value, start, end in zip(keys, values, ts, exp, strict=True)
    )
