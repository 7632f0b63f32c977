"""Changes that outsiders make to a Delta table, with delta-rs or by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from warehouse.storage.entries import entry_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["CHANGES", "HARMLESS", "REMOVED", "empty_commit", "split"]


def _append(table: Path) -> None:
    write_deltalake(str(table), DeltaTable(str(table)).to_pyarrow_table(), mode="append")


def _overwrite(table: Path) -> None:
    write_deltalake(str(table), DeltaTable(str(table)).to_pyarrow_table().slice(0, 1), mode="overwrite")


def _delete(table: Path) -> None:
    DeltaTable(str(table)).delete("k = 'x'")


def _update(table: Path) -> None:
    DeltaTable(str(table)).update(updates={"k": "'other'"}, predicate="k = 'x'")


def _optimize(table: Path) -> None:
    DeltaTable(str(table)).optimize.compact()


def _lying_optimize(table: Path) -> None:
    """Commit an OPTIMIZE that claims to change no row, but adds a row."""
    version = DeltaTable(str(table)).version()
    _append(table)
    path = entry_path(table, version + 1)
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        for name in ("add", "remove"):
            if name in action:
                action[name]["dataChange"] = False
        if "commitInfo" in action:
            action["commitInfo"]["operation"] = "OPTIMIZE"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def split(table: Path) -> None:
    """Cut the rows of a table into two files, by one commit that claims to change no row."""
    delta = DeltaTable(str(table))
    rows = delta.to_pyarrow_table()
    before = delta.version()
    for half in (rows.slice(0, 1), rows.slice(1)):
        write_deltalake(str(table), half, mode="overwrite" if half.num_rows == 1 else "append")
    entries = [entry_path(table, before + number) for number in (1, 2)]
    actions = [json.loads(line) for entry in entries for line in entry.read_text().splitlines()]
    for action in actions:
        for name in ("add", "remove"):
            if name in action:
                action[name]["dataChange"] = False
    actions = [action for action in actions if "commitInfo" not in action]
    info = {"commitInfo": {"timestamp": 0, "operation": "OPTIMIZE", "operationParameters": {}}}
    entries[0].write_text("".join(json.dumps(action) + "\n" for action in (info, *actions)))
    entries[1].unlink()


def _properties(table: Path) -> None:
    DeltaTable(str(table)).alter.set_table_properties({"delta.appendOnly": "true"})


def _columns(table: Path) -> None:
    DeltaTable(str(table)).alter.add_columns([Field("extra", PrimitiveType("string"))])


def _protocol(table: Path) -> None:
    """Commit a newer protocol with deletion vectors, which no commit can take back."""
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    _commit(table, [{"protocol": {**protocol, **features}}])


def _torn(table: Path) -> None:
    entry_path(table, DeltaTable(str(table)).version() + 1).write_text('{"commitInfo": {"op')


def _vacuum(table: Path) -> None:
    """Commit twice, as a VACUUM that deletes nothing."""
    for operation in ("VACUUM START", "VACUUM END"):
        _commit(table, [{"commitInfo": {"timestamp": 0, "operation": operation, "operationParameters": {}}}])


def empty_commit(table: Path) -> None:
    """Commit nothing."""
    _commit(table, [{"commitInfo": {"timestamp": 0, "operation": "WRITE", "operationParameters": {}}}])


def _restore(table: Path) -> None:
    DeltaTable(str(table)).restore(0)


def _taken_back(table: Path) -> None:
    """Commit a deletion that its author takes back."""
    version = DeltaTable(str(table)).version()
    _delete(table)
    DeltaTable(str(table)).restore(version)


def _commit(table: Path, actions: list[dict[str, Any]]) -> None:
    version = DeltaTable(str(table)).version() + 1
    entry_path(table, version).write_text("".join(json.dumps(action) + "\n" for action in actions))


HARMLESS: dict[str, Callable[[Path], None]] = {
    "vacuum": _vacuum,
    "empty": empty_commit,
    "optimize": _optimize,
    "taken back": _taken_back,
}
"""What changes no row."""

REMOVED: dict[str, Callable[[Path], None]] = {"protocol": _protocol, "torn": _torn}
"""What no commit can take back."""

CHANGES: dict[str, Callable[[Path], None]] = {
    "append": _append,
    "overwrite": _overwrite,
    "delete": _delete,
    "update": _update,
    "lying optimize": _lying_optimize,
    "properties": _properties,
    "columns": _columns,
    "restore": _restore,
    **REMOVED,
}
"""What changes rows, or what the table is."""
