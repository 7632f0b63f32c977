"""A dry run leaves every file of the project as it is, whatever is wrong with it or waits to be done."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import click
import pytest

from tests.frozen.story import land_future
from tests.frozen.test_frozen import HERE, thawed
from warehouse.cli.main import COMMANDS, stream_wh
from warehouse.epochs.journal import newest_epoch
from warehouse.publishing.live.publish import live_rules, newest_state, publish_live_tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Ended
    from tests.frozen.test_frozen import Frozen

DRY_RUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "update": ((),),
    "migrate": ((), ("a", "--grid", "1x2", "--rebuild"), ("a", "--grid", "1x2", "--side-by-side")),
    "vacuum": ((),),
    "erase": (("a", "--key", "x0"), ("--expired",)),
    "complete": (("pairs",),),
    "repair": (("--undo-foreign",), ("a", "--undo-foreign")),
}


def test_every_command_with_a_dry_run_is_here() -> None:
    """A new command with a dry run fails here until it is tested."""
    context = click.Context(stream_wh)
    commands = {name: stream_wh.get_command(context, name) for name in COMMANDS}
    assert {
        name for name, command in commands.items() if command and any(p.name == "dry_run" for p in command.params)
    } == DRY_RUNS.keys()


def tree(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file below a directory with its time and bytes, and every directory."""
    return {
        str(path.relative_to(directory)): (path.stat().st_mtime_ns, path.read_bytes()) if path.is_file() else (0, b"")
        for path in directory.rglob("*")
    }


def without_live_tables(frozen: Frozen) -> None:
    """Live tables are declared, and the one of ``a`` is gone."""
    shutil.rmtree(frozen.root / "live" / "a")


def of_another_table(frozen: Frozen) -> None:
    """Whose live tables are not published any more."""
    configuration = frozen.directory / "warehouse.toml"
    configuration.write_text(configuration.read_text().replace('publish = "delta"\n', 'publish = "off"\n'))
    for log in (frozen.root / "live").glob("*/_delta_log/*.json"):  # long ago
        log.write_text(log.read_text().replace('"timestamp":', '"timestamp":0,"then":'))


def foreign_live(frozen: Frozen) -> None:
    """Somebody committed to a live table, and removed the database."""
    state = newest_state(frozen.root / "live" / "a")
    assert state is not None
    log = frozen.root / "live" / "a" / "_delta_log" / f"{state.version + 1:020d}.json"
    log.write_text(json.dumps({"commitInfo": {"timestamp": 0}}) + "\n")
    (frozen.root / "warehouse.duckdb").unlink()


def left_overs(frozen: Frozen) -> None:
    """Write a temporary file and data files that no epoch names, all of them old."""
    for path in ("epochs/.x.tmp", "tables/a/left.parquet", "live/a/left.parquet"):
        (frozen.root / path).write_bytes(b"PAR1")
        os.utime(frozen.root / path, (0, 0))


STATES = {
    "wave": (without_live_tables, left_overs),
    "unfinished": (foreign_live, left_overs),
    "past": (of_another_table, foreign_live),
}


@pytest.mark.parametrize("name", STATES)
def test_a_dry_run_changes_no_byte(name: str, tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """Of warehouses with unfinished updates, retired epochs, damaged live tables, left-overs, and files that wait."""
    frozen = thawed(HERE / "61b4f80" / name, tmp_path / "made")
    configuration = frozen.directory / "warehouse.toml"
    configuration.write_text(configuration.read_text().replace("[warehouse]\n", '[warehouse]\npublish = "delta"\n'))
    newest = newest_epoch(frozen.root)
    assert newest is not None
    rules = live_rules(frozen.updater().catalog)
    assert publish_live_tables(frozen.root, newest, rules, now=newest.committed_at)
    land_future(frozen.directory, frozen.expected["hour"] + 1)
    for change in STATES[name]:
        copy = frozen.copy(tmp_path / change.__name__)
        change(copy)
        before = tree(copy.directory)
        for command, many in DRY_RUNS.items():
            for options in many:
                ended = invoke("-C", str(copy.directory), command, *options, "--dry-run")
                after = tree(copy.directory)
                assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set(), ended
                assert ended.code in {0, 2, 4}, ended  # done, not as it is declared, or rows are left elsewhere
