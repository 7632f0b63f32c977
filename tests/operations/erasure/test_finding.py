"""Rows to erase are found whatever the key's type, and a proof overlooks no file; without Spark, against the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.serving.house import ANCHOR, House, build
from warehouse.operations.erasure.derived_tables import tables_above
from warehouse.operations.erasure.finding import dead_rows, rows_of_keys
from warehouse.operations.erasure.overdue import dead_since
from warehouse.operations.erasure.proof import Proof, prove
from warehouse.operations.unneeded_files import named_files
from warehouse.steps.erased_keys import ErasedKeys, erased_keys, key_columns
from warehouse.time import HOUR

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ("names", "pairs", "days", "amounts", "moments")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Return the small warehouse of the reading commands."""
    return build(tmp_path_factory.mktemp("house") / "data")


def _keys(house: House, name: str, *values: object) -> ErasedKeys:
    state = house.epochs[-1].table(name)
    assert state is not None
    return erased_keys(key_columns(state.declaration.columns, state.declaration.search_key), values)


def _proof(house: House, name: str, keys: ErasedKeys) -> Proof:
    return prove(house.root, [name], keys, named_files(house.root, [house.epochs[-1]]))


@pytest.mark.parametrize("name", TABLES)
def test_the_rows_of_each_key_are_found(house: House, name: str) -> None:
    """As many rows as in the model, including dead rows; the proof finds a trace of each, in this table alone."""
    table, state, last = house[name], house.epochs[-1].table(name), house.epochs[-1].slot
    assert state is not None
    stored = [row for row in table.rows if row.load <= last]
    for key in {table.key_of(row) for row in stored}:
        keys = _keys(house, name, key)
        (key_rows, *_) = rows_of_keys(house.root, state, keys)
        assert key_rows.rows == len([row for row in stored if table.key_of(row) == key])
        assert key_rows.cells
        traced = [trace.path for trace in _proof(house, name, keys).traces if not trace.path.startswith("rejected/")]
        assert {path.split("/")[1] for path in traced} == {name}
        assert sum(path.endswith(".parquet") for path in traced) == key_rows.files


def test_a_key_that_nobody_has_leaves_no_trace(house: House) -> None:
    """The proof reads all files and counts all bytes."""
    proof = _proof(house, "names", _keys(house, "names", "nobody-of-this-name"))
    assert (proof.traces, proof.elsewhere) == ((), ())
    files = [path for path in house.root.rglob("*") if path.is_file()]
    assert (proof.files, proof.bytes) == (len(files), sum(path.stat().st_size for path in files))


def test_no_kind_of_file_is_overlooked(tmp_path: Path) -> None:
    """A leftover data file, the log of an undone commit, a record's message, an unknown file, an unreadable file."""
    own = build(tmp_path / "data")
    keys = _keys(own, "names", "Planted1")
    assert _proof(own, "names", keys).traces == ()
    log = own.root / "tables" / "days" / "_delta_log"
    statistics = json.dumps({"minValues": {"k": "Planted1"}})
    planted = {
        own.root / "tables" / "names" / "_delta_log" / f"{99:020d}.json": json.dumps({"add": {"path": "x", "stats": statistics}}),
        own.root / "epochs" / f"{0:020d}.ledger.json": json.dumps({"body": {"left_out": [{"message": "no Planted1 here"}]}}),
        own.root / "notes.txt": "Planted1",
        own.root / "tables" / "names" / "broken.parquet": "no parquet",
    }
    elsewhere = {log / f"{99:020d}.json": json.dumps({"add": {"path": "x", "stats": statistics}})}
    for path, content in (planted | elsewhere).items():
        path.write_text(content)
    named = named_files(build(tmp_path / "plain").root, own.epochs[-1:])
    proof = prove(own.root, ["names"], keys, named)
    assert {trace.path for trace in proof.traces} >= {path.relative_to(own.root).as_posix() for path in planted}
    assert [trace.path for trace in proof.elsewhere] == [path.relative_to(own.root).as_posix() for path in elsewhere]


def test_dead_rows_are_found_and_dated(house: House) -> None:
    """By their end, and by the slot in which the oldest dead row ended."""
    epoch = house.epochs[-1]
    state = epoch.table("names")
    assert state is not None
    stored = [row for row in house["names"].rows if row.load <= epoch.slot]
    dead = [row.exp for row in stored if row.exp <= epoch.window_time]
    assert dead_rows(house.root, state, epoch.window_time, epoch.slot).rows == len(dead) > 0
    since = dead_since(house.root)["names"]
    assert since < min(dead) <= since + HOUR
    assert (since - ANCHOR) % HOUR == 0
    assert dead_since(house.root, ANCHOR) == {}


def test_tables_above_are_those_of_views_that_read_it(house: House) -> None:
    """A stream that no view reads has no tables above."""
    assert tables_above(house.epochs[-1], "names") == ()
