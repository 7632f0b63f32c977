"""Damage that ``check`` and readers find: what they say to do mends it."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

from warehouse.checking.check import check
from warehouse.epochs.journal import record_path
from warehouse.publishing.database import DATABASE

from .executed import advised, executes, typed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.operations.projects import Project


@executes(
    "`stream-wh check --repair` writes it again from the epoch's record",
    "○ is damaged: ○; `stream-wh check --repair` writes it again",
)
def test_a_schema_file(past: Project) -> None:
    """A missing schema file is a finding; a file that was cut short is an error for readers of the table."""
    state = past.epoch.table("named")
    assert state is not None
    schema = past.root / state.schema_file
    whole = schema.read_bytes()
    schema.unlink()
    checked = typed(past.directory, "stream-wh check", code=4)
    typed(past.directory, advised(checked, "`stream-wh check --repair` writes it again from the epoch's record"))
    assert schema.read_bytes() == whole
    schema.write_bytes(whole[:-9])
    printed = typed(past.directory, "stream-wh scan named", code=1)
    typed(past.directory, advised(printed, "○ is damaged: ○; `stream-wh check --repair` writes it again"))
    typed(past.directory, "stream-wh scan named")


@executes("`stream-wh check --repair` or `stream-wh vacuum` removes what is older than ten minutes")
def test_left_over_files(past: Project) -> None:
    """Files that are older than ten minutes are removed."""
    strange = past.root / "tables/a/sub_index=1/exp_block=0/part-00000.parquet"
    strange.parent.mkdir(parents=True, exist_ok=True)
    strange.write_bytes(b"x" * 11)
    os.utime(strange, (0, time.time() - 700))
    printed = typed(past.directory, "stream-wh check")
    part = "`stream-wh check --repair` or `stream-wh vacuum` removes what is older than ten minutes"
    typed(past.directory, advised(printed, part))
    assert not strange.exists()
    strange.parent.mkdir(parents=True, exist_ok=True)
    strange.write_bytes(b"x" * 11)
    os.utime(strange, (0, time.time() - 700))
    typed(past.directory, "stream-wh check --repair")
    assert not strange.exists()


@executes(
    "`stream-wh check --repair` removes it",
    "`stream-wh check --repair` sets it aside and makes it again from its plan and the tables' commits",
)
def test_records(past: Project) -> None:
    """A temporary file, an old plan, the newest epoch."""
    (past.root / "epochs/.half.tmp").touch()
    typed(past.directory, advised(typed(past.directory, "stream-wh check"), "`stream-wh check --repair` removes it"))
    plan = record_path(past.root, 1, "plan")
    plan.write_bytes(plan.read_bytes()[:100])
    typed(past.directory, advised(typed(past.directory, "stream-wh check"), "`stream-wh check --repair` removes it"))
    epoch = record_path(past.root, 2, "epoch")
    epoch.write_bytes(epoch.read_bytes()[:100])
    part = "`stream-wh check --repair` sets it aside and makes it again from its plan and the tables' commits"
    typed(past.directory, advised(typed(past.directory, "stream-wh check", code=4), part))
    assert check(past.root).faults == ()


@executes(
    "the next update or `stream-wh check --repair` makes it again",
    "○ is not there; run `stream-wh update`, or `stream-wh check --repair`",
    "the next update that moves the window or `stream-wh check --repair` makes it again",
)
def test_the_database(past: Project, tmp_path: Path) -> None:
    """The database was removed, or copied with the root."""
    database = past.root / DATABASE
    database.unlink()
    printed = typed(past.directory, "stream-wh connect duckdb a", code=1)
    command = advised(printed, "○ is not there; run `stream-wh update`, or `stream-wh check --repair`")
    checked = typed(past.directory, "stream-wh check", code=4)
    assert advised(checked, "the next update or `stream-wh check --repair` makes it again") == command
    typed(past.directory, command)
    typed(past.directory, "stream-wh connect duckdb a")
    other = tmp_path / "other"
    shutil.copytree(past.directory, other)
    part = "the next update that moves the window or `stream-wh check --repair` makes it again"
    typed(other, advised(typed(other, "stream-wh check"), part))
    assert "moved" not in typed(other, "stream-wh check")


@executes(
    "or go back to an epoch without it (`stream-wh history` lists them, then `stream-wh rollback --to-epoch EPOCH`)",
    "cannot go back to epoch ○: ○; `stream-wh history` lists the epochs that can be read",
)
def test_a_data_file(past: Project) -> None:
    """What only the newest epoch names is not there: an error of readers and a finding; the epoch before has no such file."""
    old = {path for number in (0, 1) for path in _files(past, number)}
    gone = next(path for path in _files(past, 2) if path not in old)
    gone.unlink()
    part = "or go back to an epoch without it (`stream-wh history` lists them, then `stream-wh rollback --to-epoch EPOCH`)"
    command = advised(typed(past.directory, "stream-wh check", code=4), part)
    history = advised(
        typed(past.directory, command, code=2, EPOCH="77"),
        "cannot go back to epoch ○: ○; `stream-wh history` lists the epochs that can be read",
    )
    assert "1" in typed(past.directory, history)
    typed(past.directory, command, EPOCH="1")
    typed(past.directory, "stream-wh scan a")


def _files(project: Project, number: int) -> list[Path]:
    from deltalake import DeltaTable  # noqa: PLC0415 - one use

    from warehouse.epochs.journal import read_epoch  # noqa: PLC0415 - same

    files = []
    for state in read_epoch(project.root, number).tables:
        if state.name == "a":
            directory = project.root / state.path
            uris = DeltaTable(str(directory), version=state.version).file_uris()
            files += [directory / uri.split(f"{state.path}/", 1)[1] for uri in uris]
    return files
