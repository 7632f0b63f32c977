"""Live tables under a root in a store, published without links, which a store does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from deltalake import DeltaTable

from tests.publishing.live.test_publish import KEPT, bag, names, scanned
from tests.serving.house import House, add_views, build, same_tables_later
from warehouse.checking.published import live_findings
from warehouse.epochs.points import Moment, Point
from warehouse.errors import LockHeldError
from warehouse.publishing.live.log import LIVE, newest_state
from warehouse.publishing.live.publish import LiveRules, free_live_space, publish_live_tables, purge_live_tables
from warehouse.serving.engine import Resources
from warehouse.storage.entries import entry_path

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.objects.path import ObjectPath


@pytest.fixture
def house(tmp_path: Path, bucket: ObjectPath) -> House:
    """A warehouse in the store, made on the disk and uploaded file by file: of five epochs."""
    made = build(tmp_path / "root")
    add_views(made)
    same_tables_later(made, 7)
    root = bucket / "house"
    for path in made.root.rglob("*"):
        if path.is_file():
            (root / path.relative_to(made.root).as_posix()).write_bytes(path.read_bytes())
    return House(root, made.tables, made.epochs)


def test_every_epoch_is_published_by_the_store_alone(house: House) -> None:
    """Rows equal a scan, past a skipped epoch too; former versions and leftovers are deleted, and a purge leaves one."""
    for epoch in (house.epochs[0], *house.epochs[2:]):
        tables = [state.name for state in epoch.tables if state.kind != "state"]
        rules = LiveRules(tables, (), KEPT)
        assert publish_live_tables(house.root, epoch, rules, now=epoch.committed_at) == tuple(tables)
        assert publish_live_tables(house.root, epoch, rules, now=epoch.committed_at) == ()
        for name in tables:
            assert bag(DeltaTable(str(house.root / LIVE / name)).to_pyarrow_table()) == scanned(house, name, epoch), name
    last, rules = house.epochs[-1], LiveRules(names(house), (), 0)
    assert pl.read_delta(str(house.root / LIVE / "names")).height == scanned(house, "names", last).total()
    (house.root / LIVE / "names" / "left.parquet").write_bytes(b"PAR1")
    assert free_live_space(house.root, last, rules, now=1 << 61, grace=0).files
    assert not free_live_space(house.root, last, rules, now=1 << 61, grace=0).files
    purge_live_tables(house.root, last, rules)
    for name in names(house):
        table = house.root / LIVE / name
        state = newest_state(table)
        assert state is not None
        assert {path.name for path in table.glob("*.parquet")} == set(state.files)
        assert bag(DeltaTable(str(table)).to_pyarrow_table()) == scanned(house, name, last)
    assert live_findings(house.root, names(house), rows=True, resources=Resources()) == []


def test_the_first_of_two_processes_commits(house: House) -> None:
    """The other process, which no lock excludes, gets an error; it changes nothing that the first process wrote."""
    rules, (former, *_, newest) = LiveRules(["names"], (), KEPT), house.epochs
    publish_live_tables(house.root, former, rules, now=former.committed_at)

    def meanwhile(moment: Moment) -> None:
        if moment.point == Point.LIVE_READY:
            publish_live_tables(house.root, newest, rules, now=newest.committed_at)

    with pytest.raises(LockHeldError):
        publish_live_tables(house.root, newest, rules, now=newest.committed_at, observer=meanwhile)
    table = house.root / LIVE / "names"
    assert bag(DeltaTable(str(table)).to_pyarrow_table()) == scanned(house, "names", newest)
    assert not entry_path(table, 2).exists()
