"""What other tools read of a live table is what a scan gives at its epoch: after any crash, whoever wrote into it."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from tests.serving.house import ANCHOR, House, Row, Table, add_epoch, add_views, build, same_tables_later, table_state
from warehouse.checking.published import live_findings
from warehouse.epochs.journal import epoch_path
from warehouse.epochs.points import Moment, Point
from warehouse.errors import StorageFailedError, StoreBusyError
from warehouse.project import Warehouse
from warehouse.publishing.database import replace_database_if_needed
from warehouse.publishing.live.log import LIVE, live_directory, newest_state
from warehouse.publishing.live.publish import LiveRules, free_live_space, publish_live_tables, published_states, purge_live_tables
from warehouse.serving import Reader
from warehouse.serving.engine import Resources
from warehouse.storage.checkpoints import checkpoint
from warehouse.storage.entries import entry_path
from warehouse.storage.fingerprint import has_sum
from warehouse.storage.local_disk import LocalDisk
from warehouse.storage.tables import CHECKPOINT_INTERVAL
from warehouse.time import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Callable

    from warehouse.epochs.records import Epoch

KEPT = 7 * DAY


def names(house: House) -> list[str]:
    """Return the tables that are no operators' state."""
    return [state.name for state in house.epochs[-1].tables if state.kind != "state"]


def move(house: House, number: int = -1, **options: Any) -> tuple[str, ...]:  # noqa: ANN401 - those of publish
    """LiveMove all live tables to an epoch."""
    epoch = house.epochs[number]
    rules = options.pop("rules", LiveRules(names(house), (), KEPT))
    return publish_live_tables(house.root, epoch, rules, now=options.pop("now", epoch.committed_at), **options)


def scanned(house: House, name: str, epoch: Epoch) -> Counter[str]:
    """Return the rows of a scan with `_ts` and `_exp`, a bag."""
    with Reader.open(house.root, as_of=epoch.window_time) as reader:
        answer = reader.scan(name, system_columns=True).arrow()
    return bag(answer.drop_columns(["_load_slot", "_exp_slot", "sub_index", "exp_block"]))


def bag(table: pa.Table) -> Counter[str]:
    """Return rows as texts; an end that never comes is null, as in a scan."""
    ends = table["_exp"].cast(pa.timestamp("us", "UTC"))
    table = table.set_column(table.column_names.index("_exp"), "_exp", pc.if_else(pc.equal(pc.year(ends), 9999), None, ends))
    return Counter(repr([value for _, value in sorted(row.items())]) for row in table.to_pylist())


def by_dataset(place: str) -> pa.Table:
    """Read with delta-rs and PyArrow."""
    return DeltaTable(place).to_pyarrow_dataset().to_table()


def by_engine(place: str) -> pa.Table:
    """Read with delta-rs' query engine."""
    rows = pa.table(QueryBuilder().register("t", DeltaTable(place)).execute("SELECT * FROM t"))
    return rows.cast(pa.schema([(field.name, plain(field.type)) for field in rows.schema]))


def by_polars(place: str) -> pa.Table:
    """Read with Polars."""
    rows = pl.read_delta(place).to_arrow()
    return rows.cast(pa.schema([(field.name, plain(field.type)) for field in rows.schema]))


def by_duckdb(place: str) -> pa.Table:
    """Read the files that the log names with DuckDB, and no others; no file: as delta-rs."""
    files = DeltaTable(place).file_uris()
    if not files:
        return by_dataset(place)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        shown = ", ".join(f'"{field.name}"' for field in DeltaTable(place).schema().fields)
        return connection.sql(f"SELECT {shown} FROM read_parquet({files}, union_by_name = true)").to_arrow_table()


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type as PyArrow's own readers give it."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain(kind.value_type))
    return pa.string() if pa.types.is_large_string(kind) or str(kind) == "string_view" else kind


READERS: tuple[Callable[[str], pa.Table], ...] = (by_dataset, by_engine, by_polars, by_duckdb)


def check(house: House, epoch: Epoch, tables: tuple[str, ...] = ()) -> None:
    """Every live table, read raw, is the scan of the epoch."""
    for name in tables or names(house):
        assert bag(by_dataset(str(house.root / LIVE / name))) == scanned(house, name, epoch), name


ONE = LiveRules(["names"], (), KEPT)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Streams of all key types, a view with state columns, a relation; slots 2 to 5, then time alone passes."""
    made = build(tmp_path_factory.mktemp("built") / "root")
    add_views(made)
    for slot in (6, 7, 9):
        same_tables_later(made, slot)
    return made


@pytest.fixture
def house(built: House, tmp_path: Path) -> House:
    """A copy of the test's own."""
    shutil.copytree(built.root, tmp_path / "root")
    return House(tmp_path / "root", dict(built.tables), list(built.epochs))


def test_every_version_is_the_scan_of_its_epoch_to_every_reader(house: House) -> None:
    """Live tables have the user's columns, `_ts` and `_exp` of streams, views and relations; no operators' state, no dead row."""
    for number, epoch in enumerate(house.epochs):
        tables = {state.name for state in published_states(epoch, names(house))}
        assert set(move(house, number)) == tables
        assert move(house, number) == ()  # they are there
        for name in tables:
            directory = str(house.root / LIVE / name)
            for reader in READERS if number == len(house.epochs) - 3 else READERS[:1]:
                assert bag(reader(directory)) == scanned(house, name, epoch), (epoch.number, name, reader.__name__)
    assert "results.1" not in os.listdir(house.root / LIVE)  # noqa: PTH208 - names
    for name in ("names", "pairs", "results", "planes"):
        table = DeltaTable(str(house.root / LIVE / name))
        assert [field.name for field in table.schema().fields] == [*house[name].names, "_ts", "_exp"]
        assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
        for entry in table.history():  # former versions are what they were
            facts = json.loads(entry["userMetadata"])
            table.load_as_version(entry["version"])
            assert bag(table.to_pyarrow_table()) == scanned(house, name, house.epochs[facts["epoch"]])


def test_files_without_dead_rows_are_shared_with_the_table(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are shared by links, or by copies where the file system has no links."""
    move(house)
    inodes = {path.stat().st_ino for path in (house.root / "tables" / "names").rglob("*.parquet")}
    state = newest_state(house.root / LIVE / "names")
    assert state is not None
    shared = [file.path for file in state.live_files() if file.cut_slot is None]
    assert shared
    assert all((house.root / LIVE / "names" / path).stat().st_ino in inodes for path in shared)
    shutil.rmtree(house.root / LIVE)

    linked = os.link

    def no_links(source: Path, target: Path) -> None:
        if target.suffix == ".parquet":
            raise OSError(errno.EMLINK, "Too many links")
        linked(source, target)

    monkeypatch.setattr(os, "link", no_links)
    move(house)
    assert not {path.stat().st_ino for path in (house.root / LIVE / "names").glob("*.parquet")} & inodes
    check(house, house.epochs[-1])


def test_no_reader_loses_a_nan_of_a_piece(tmp_path: Path) -> None:
    """NaN is above all numbers; with bounds that leave it out, readers would skip its row."""
    columns = (("k", "string", pa.string()), ("value", "double", pa.float64()))
    values = (1.0, float("nan"), 2.0)
    rows = tuple(Row((key, value), ANCHOR, ANCHOR + (3 - (key == "a")) * HOUR, 1) for value in values for key in ("a", "b"))
    table = Table("t", columns, ("k",), (*rows[::2], *rows[1::2]))
    house = House(tmp_path / "root", {"t": table})
    for number, slot in enumerate((1, 2)):
        add_epoch(house, number, slot, (table_state(house, table, slot, number),), ())
    move(house)
    files = DeltaTable(str(house.root / LIVE / "t")).file_uris()
    state = newest_state(house.root / LIVE / "t")
    assert state is not None
    assert [file.cut_slot for file in state.live_files()] == [2] * len(files)
    assert duckdb.read_parquet(files).filter("value > 5").count("*").fetchall() == [(1,)]


def test_a_full_disk_is_told_and_leaves_former_versions(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next move, when there is space, completes it."""
    move(house, 3)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "there")

    with monkeypatch.context() as patch:
        patch.setattr(LocalDisk, "write_exclusive", full)
        with pytest.raises(StorageFailedError, match="No space left"):
            move(house)
    check(house, house.epochs[3])
    move(house)
    check(house, house.epochs[-1])


@pytest.mark.parametrize("nth", [1, 2, 3, 5])
def test_what_a_full_disk_stopped_leaves_no_file(house: House, monkeypatch: pytest.MonkeyPatch, nth: int) -> None:
    """A failed move leaves no files, so that retries do not fill the disk until `vacuum`; former versions stay whole."""
    house.epochs.pop()  # the one before cuts pieces
    move(house, 0, rules=ONE)
    directory = house.root / LIVE / "names"
    before, count, real = {path.name for path in directory.rglob("*")}, 0, LocalDisk.sync_file

    def full(disk: LocalDisk, path: Path) -> None:
        nonlocal count
        count += str(path).startswith(str(directory))
        if count == nth:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(disk, path)

    def no_links(*_: object) -> None:
        raise OSError(errno.EMLINK, "Too many links")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", no_links)
        patch.setattr(LocalDisk, "sync_file", full)
        with pytest.raises(StorageFailedError, match="No space left"):
            move(house, rules=ONE)
    assert {path.name for path in directory.rglob("*")} == before
    check(house, house.epochs[0], ("names",))
    move(house, rules=ONE)
    check(house, house.epochs[-1], ("names",))


class Stopped(Exception):  # noqa: N818 - it is no error of ours
    """What stops a move."""


@pytest.mark.parametrize("point", [Point.LIVE_READY, Point.LIVE_MOVED])
@pytest.mark.parametrize("nth", [1, 4])
def test_a_crash_leaves_a_former_epoch_or_the_new_one_and_the_next_move_completes(house: House, point: Point, nth: int) -> None:
    """At each moment every table is an answer of one of the two epochs."""
    move(house, 2, rules=LiveRules(list(house.tables), (), KEPT))
    seen = 0

    def observe(moment: Moment) -> None:
        nonlocal seen
        seen += moment.point == point
        if seen == nth:
            raise Stopped

    with pytest.raises(Stopped):
        move(house, 5, observer=observe)
    for name in (state.name for state in published_states(house.epochs[2], names(house))):
        state = newest_state(house.root / LIVE / name)
        assert state is not None
        assert state.epoch in (2, 5)
        assert bag(by_dataset(str(house.root / LIVE / name))) == scanned(house, name, house.epochs[state.epoch])
    move(house)
    check(house, house.epochs[-1])
    move(house, now=house.epochs[-1].committed_at)
    rules = LiveRules(names(house), (), KEPT)
    freed = free_live_space(house.root, house.epochs[-1], rules, now=1 << 61, grace=0)
    assert freed.files  # what the crash left, and former versions
    check(house, house.epochs[-1])
    assert not free_live_space(house.root, house.epochs[-1], rules, now=1 << 61, grace=0).files


def deleted(place: Path) -> None:
    """Somebody deletes rows."""
    DeltaTable(str(place)).delete("value >= 400 OR name = 'ü'")


def appended(place: Path) -> None:
    """Somebody adds a row."""
    table = DeltaTable(str(place)).to_pyarrow_table().slice(0, 1)
    write_deltalake(str(place), table, mode="append")


def compacted(place: Path) -> None:
    """Somebody merges files, and vacuums all former ones."""
    table = DeltaTable(str(place))
    table.optimize.compact()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def overwritten(place: Path) -> None:
    """Somebody puts another table in its place, with other columns."""
    write_deltalake(str(place), pa.table({"x": [1]}), mode="overwrite", schema_mode="overwrite")


def without_file(place: Path) -> None:
    """A data file is gone."""
    next(place.glob("*.parquet")).unlink()


def cut_short(place: Path) -> None:
    """A data file is cut short; it is a copy by then, as the link's other name has the same bytes."""
    path = next(place.glob("*.parquet"))
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-9])


def without_log(place: Path) -> None:
    """The log is gone."""
    shutil.rmtree(place / "_delta_log")


def torn(place: Path) -> None:
    """The newest commit is half of itself."""
    path = max((place / "_delta_log").glob("*.json"))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def other_protocol(place: Path) -> None:
    """Somebody switches deletion vectors on."""
    version = DeltaTable(str(place)).version() + 1
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    entry_path(place, version).write_text(json.dumps({"protocol": protocol}) + "\n")


def gone(place: Path) -> None:
    """The table is gone."""
    shutil.rmtree(place)


_DAMAGES = (deleted, appended, compacted, overwritten, without_file, cut_short, without_log, torn, other_protocol, gone)


@pytest.mark.parametrize("damage", _DAMAGES)
@pytest.mark.parametrize("same_epoch", [True, False], ids=["same epoch", "next epoch"])
def test_whatever_somebody_did_to_it_it_is_made_again(house: House, damage: Callable[[Path], None], *, same_epoch: bool) -> None:
    """The check tells of it; the next move, or a repair at the same epoch, replaces all that is not to be trusted."""
    move(house, 4, rules=ONE)
    damage(house.root / LIVE / "names")
    if same_epoch:
        move(house, 4, rules=ONE, rebuild=True)
        check(house, house.epochs[4], ("names",))
    move(house, -1, rules=ONE)
    check(house, house.epochs[-1], ("names",))
    assert live_findings(house.root, ["names"], rows=True, resources=Resources()) == []


@pytest.mark.parametrize("damage", _DAMAGES)
def test_the_check_tells_of_whatever_somebody_did(house: House, damage: Callable[[Path], None]) -> None:
    """The check finds each kind of damage, and nothing else."""
    move(house, rules=LiveRules(["names", "pairs"], (), KEPT))
    damage(house.root / LIVE / "names")
    findings = live_findings(house.root, ["names", "pairs"], rows=True, resources=Resources())
    assert [(finding.severity, finding.table, finding.repair) for finding in findings] == [("fault", "names", "repair")]


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.EACCES, None], ids=["EIO", "EMFILE", "EACCES", "store"])
@pytest.mark.parametrize("place", ["checkpoint", "commit", "listing", "data file"])
def test_a_passing_error_leaves_a_live_table_as_it_is(
    house: House, monkeypatch: pytest.MonkeyPatch, place: str, number: int | None
) -> None:
    """Whichever file cannot be read at the moment: no version is lost, no file is written again; the next move succeeds."""
    for epoch in range(5):
        move(house, epoch, rules=ONE)
    table = house.root / LIVE / "names"
    checkpoint(table, 2)
    before = {path.name for path in table.rglob("*")}
    error = StoreBusyError("it is slow") if number is None else OSError(number, os.strerror(number), "there")

    def failing(ends: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - any method of a path
            if str(path).startswith(str(table)) and str(path).endswith(ends):
                raise error
            return real(path, *arguments, **options)

        return call

    with monkeypatch.context() as patch:
        match place:
            case "checkpoint":
                patch.setattr(Path, "read_bytes", failing(".checkpoint.parquet", Path.read_bytes))
            case "commit":
                patch.setattr(Path, "read_bytes", failing("4.json", Path.read_bytes))
            case "listing":
                patch.setattr(os, "scandir", failing("_delta_log", os.scandir))
            case _:
                patch.setattr(Path, "stat", failing(".parquet", Path.stat))
        with suppress(StorageFailedError):
            move(house, 5, rules=ONE)
        with suppress(OSError, StoreBusyError):
            free_live_space(house.root, house.epochs[4], ONE, now=house.epochs[-1].committed_at, grace=0)
    assert {path.name for path in table.rglob("*")} == before
    move(house, 5, rules=ONE)
    state = newest_state(table)
    assert state is not None
    assert state.version == 5
    check(house, house.epochs[5], ("names",))


def test_rows_that_are_not_the_tables_are_found(house: House) -> None:
    """Two pieces, or files of the table, changed places: checksums and rows tell, sizes may not."""
    move(house)
    directory = house.root / LIVE / "names"
    state = newest_state(directory)
    assert state is not None
    first, second = sorted(state.files)[:2]
    content = (directory / second).read_bytes()
    (directory / first).unlink()
    (directory / first).write_bytes(content)
    findings = live_findings(house.root, names(house), rows=True, resources=Resources())
    assert [finding.code for finding in findings] == ["live_damaged"]
    assert move(house, rebuild=True) == ("names",)
    assert live_findings(house.root, names(house), rows=True, resources=Resources()) == []


def other_rows(path: Path) -> None:
    """Put other rows of the same size into a file, whole pages and all; its link's other name keeps its bytes."""
    rows, size = pq.read_table(path), path.stat().st_size
    assert len(rows) > 1
    other = rows.set_column(0, rows.schema.field(0), rows.take([0] * len(rows)).column(0))
    path.unlink()
    for pad in range(size):
        with pq.ParquetWriter(path, other.schema, store_schema=False, write_page_checksum=True) as writer:
            writer.write_table(other)
            writer.add_key_value_metadata({"pad": "x" * pad})
        if path.stat().st_size == size:
            return
    raise AssertionError(size)


@pytest.mark.parametrize("sums", [True, False], ids=["sums", "no sums"])
@pytest.mark.parametrize("cut", [True, False], ids=["piece", "shared file"])
def test_a_repair_makes_a_file_with_other_bytes_of_the_same_size_again(
    house: House, monkeypatch: pytest.MonkeyPatch, *, cut: bool, sums: bool
) -> None:
    """The check finds nothing after the repair, and a second repair does nothing; pieces of earlier builds have no checksums."""
    epoch_path(house.root, house.epochs.pop().number).unlink()
    with monkeypatch.context() as patch:
        if not sums:
            patch.setattr("warehouse.publishing.live.files.summed_name", lambda place, **_: place.name)
        move(house)
    directory = house.root / LIVE / "names"
    state = newest_state(directory)
    assert state is not None
    live_file = next(file for file in state.live_files() if (file.cut_slot is not None) == cut)
    assert has_sum(live_file.path) == (cut and sums)
    other_rows(directory / live_file.path)
    (finding,) = live_findings(house.root, names(house), rows=True, resources=Resources())
    assert (finding.table, finding.code) == ("names", "live_damaged" if cut and sums else "live_changed")
    assert finding.remedy.startswith("`stream-wh check --repair` makes it again")
    assert move(house) == ()  # which does not look at bytes
    assert move(house, rebuild=True) == ("names",)
    assert live_findings(house.root, names(house), rows=True, resources=Resources()) == []
    check(house, house.epochs[-1])
    assert move(house, rebuild=True) == ()


@pytest.mark.parametrize("content", [b"", b'{"commitInfo": {', b"\xff\xfe", b"[1]\n", b'{"remove": 1}\n'])
def test_a_former_commit_that_cannot_be_read_stops_nothing(house: House, content: bytes) -> None:
    """The newest version is opened from a later checkpoint; files that the unreadable commit removed are deleted as leftovers."""
    for number in range(5):
        move(house, number, rules=ONE)
    directory = house.root / LIVE / "names"
    checkpoint(directory, 3)
    entry_path(directory, 1).write_bytes(content)
    os.utime(entry_path(directory, 1), ns=(house.epochs[1].committed_at * 1000,) * 2)
    move(house, 5, rules=ONE)
    far = house.epochs[-1].committed_at + 2 * KEPT
    move(house, rules=ONE, now=far)
    check(house, house.epochs[-1], ("names",))
    free_live_space(house.root, house.epochs[-1], ONE, now=1 << 61, grace=0)
    state = newest_state(directory)
    assert state is not None
    assert {path.name for path in directory.glob("*.parquet")} == set(state.files)


def test_damage_of_a_piece_does_not_move_into_new_pieces(house: House) -> None:
    """A move that cuts a piece further verifies the piece first; if it is damaged, the move cuts the table's own files again."""
    epoch_path(house.root, house.epochs.pop().number).unlink()
    move(house, rules=ONE)
    directory, following = house.root / LIVE / "names", same_tables_later(house, 8)
    state = newest_state(directory)
    assert state is not None
    pieces = [file for file in state.live_files() if file.cut_slot is not None]
    pieces_to_cut = [piece for piece in pieces if piece.min_exp_slot <= following.slot < piece.max_exp_slot]
    for piece in pieces_to_cut:
        other_rows(directory / piece.path)
    assert pieces_to_cut
    move(house, rules=ONE)
    check(house, following, ("names",))


def test_damage_of_the_table_is_not_published(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """The live table stays at its epoch with its rows, and no file is left behind; a repair reports the damage, too."""
    epoch_path(house.root, house.epochs.pop().number).unlink()  # the one before cuts a file of the table
    move(house, 3, rules=ONE)
    directory = house.root / LIVE / "names"
    before = {path.name for path in directory.rglob("*")}
    for path in (house.root / "tables" / "names").rglob("*.parquet"):
        if "_schema" not in path.parts and "_delta_log" not in path.parts:
            content = bytearray(path.read_bytes())
            content[4:64] = bytes(60)  # delta-rs writes pages without checksums
            path.unlink()
            path.write_bytes(content)
    for rebuild in (False, True):
        move(house, rules=ONE, rebuild=rebuild)
        assert {path.name for path in directory.rglob("*")} == before
    assert "names stays" in caplog.text


def test_a_commit_of_somebody_in_between_is_no_base(house: House) -> None:
    """Between what the move read and its commit somebody commits: it reads again."""
    move(house, 3)

    def meanwhile(moment: Moment) -> None:
        if moment.point == Point.LIVE_READY and moment.text == "names":
            state = newest_state(house.root / LIVE / "names")
            if state is not None and state.epoch == 3:
                appended(house.root / LIVE / "names")

    move(house, -1, observer=meanwhile)
    check(house, house.epochs[-1])


def test_readers_see_the_former_epoch_until_the_commit_and_the_new_one_after(house: House) -> None:
    """Readers see one whole epoch at each moment of a move; an open reader keeps its version afterwards."""
    move(house, 3)
    tables = {name: DeltaTable(str(house.root / LIVE / name)) for name in names(house)}
    points = []

    def look(moment: Moment) -> None:
        points.append(moment.point)
        epoch = house.epochs[3 if moment.point == Point.LIVE_READY else -1]
        assert bag(by_dataset(str(house.root / LIVE / moment.text))) == scanned(house, moment.text, epoch)

    move(house, -1, observer=look)
    assert points == [Point.LIVE_READY, Point.LIVE_MOVED] * len(names(house))
    for name, table in tables.items():
        assert bag(table.to_pyarrow_table()) == scanned(house, name, house.epochs[3])


def test_versions_go_when_they_were_superseded_longer_ago_than_retain(house: House) -> None:
    """Then their files are deleted, and only the newest version's files are left."""
    directory = house.root / LIVE / "names"
    start = house.epochs[0].committed_at
    for number in range(len(house.epochs)):
        move(house, number, now=start + number * DAY)
    state = newest_state(directory)
    assert state is not None
    assert state.oldest == 0
    for version in range(state.version + 1):
        assert bag(DeltaTable(str(directory), version=version).to_pyarrow_table()) == scanned(
            house, "names", house.epochs[version]
        )
    last = same_tables_later(house, 10)
    rules = LiveRules(names(house), (), 2 * DAY)
    publish_live_tables(house.root, last, rules, now=start + 6 * DAY)  # version 4 was superseded at 5 days
    state = newest_state(directory)
    assert state is not None
    assert state.oldest == 4
    for version in (4, 5, 6):
        DeltaTable(str(directory), version=version).to_pyarrow_table()
    on_disk = {path.name for path in directory.glob("*.parquet")}
    named = {
        uri.rsplit("/", 1)[1] for version in (4, 5, 6) for uri in DeltaTable(str(directory), version=version).file_uris()
    }  # fmt: skip
    assert on_disk == named


def test_a_long_log_is_summed_up_and_cut(house: House) -> None:
    """After 35 epochs there is a checkpoint, and the log has the versions that `retain` asks for."""
    directory = house.root / LIVE / "names"
    rules = LiveRules(["names"], (), 5 * DAY)
    for slot in range(10, 45):
        epoch = same_tables_later(house, slot)
        publish_live_tables(house.root, epoch, rules, now=epoch.committed_at + slot * DAY)
    logs = sorted(path.name for path in (directory / "_delta_log").iterdir())
    assert any(name.endswith(".checkpoint.parquet") for name in logs)
    assert len(logs) < 25
    assert bag(by_dataset(str(directory))) == scanned(house, "names", house.epochs[-1])
    state = newest_state(directory)
    assert state is not None
    assert state.trusted
    with pytest.raises(DeltaError):
        DeltaTable(str(directory), version=1)
    DeltaTable(str(directory), version=state.version - 4).to_pyarrow_table()


def test_an_update_reads_few_entries_of_a_long_log(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many versions are kept: those that pass now, the one after them, and those above the newest checkpoint."""
    start, rules = house.epochs[-1].committed_at, LiveRules(["names"], (), 40 * DAY)
    for day, slot in enumerate(range(10, 55)):
        publish_live_tables(house.root, same_tables_later(house, slot), rules, now=start + day * DAY)
    state = newest_state(house.root / LIVE / "names")
    assert state is not None
    assert (state.oldest, state.version) == (4, 44)
    reads, read = [], Path.read_bytes

    def counted(path: Path) -> bytes:
        reads.append(path.name)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    publish_live_tables(house.root, same_tables_later(house, 55), rules, now=start + 45 * DAY)
    assert 0 < len([name for name in reads if name.endswith(".json")]) <= CHECKPOINT_INTERVAL + 5


def test_the_log_of_a_bounded_table_begins_with_the_oldest_version_kept(house: House) -> None:
    """File statistics have keys of dead rows: with `erase_within` no log entry is older than `retain`."""
    start = house.epochs[0].committed_at
    for number, epoch in enumerate(house.epochs):
        publish_live_tables(house.root, epoch, LiveRules(["names"], ["names"], 2 * DAY), now=start + number * DAY)
        directory = house.root / LIVE / "names"
        state = newest_state(directory)
        assert state is not None
        versions = sorted(int(path.name[:20]) for path in (directory / "_delta_log").glob("0*.json"))
        assert versions == list(range(max(0, number - 2), number + 1))
        assert state.oldest == versions[0]
        assert bag(DeltaTable(str(directory), version=versions[0]).to_pyarrow_table()) == scanned(
            house, "names", house.epochs[versions[0]]
        )
        assert bag(by_dataset(str(directory))) == scanned(house, "names", epoch)


@pytest.mark.parametrize("tool", ["pandas", "polars"])
def test_connect_reads_the_live_table_where_there_is_one(house: House, tool: str) -> None:
    """The snippet reads the live table only if it has the newest epoch."""
    (house.root.parent / "warehouse.toml").write_text(f"[warehouse]\nroot = '{house.root.name}'\n")
    replace_database_if_needed(house.root, house.epochs[-1])
    move(house, -2)
    with Warehouse(house.root.parent, house.root) as warehouse:
        assert f"/{LIVE}/" not in warehouse.connect(tool, "names")
        move(house)
        namespace: dict[str, Any] = {}
        exec(warehouse.connect(tool, "names"), namespace)  # noqa: S102 - that it can be executed is the point
        assert f"/{LIVE}/" in warehouse.connect(tool, "names")
        assert f"/{LIVE}/" not in warehouse.connect("duckdb", "names")
    rows = namespace["rows"]
    assert [*rows.columns] == [*house["names"].names, "_ts", "_exp"]
    assert len(rows) == scanned(house, "names", house.epochs[-1]).total() > 0


def test_what_is_not_published_any_more_stays_for_retain(house: House) -> None:
    """Then the directory is gone; another's stays."""
    move(house, -1)
    newest, fewer = house.epochs[-1], LiveRules(["pairs"], (), KEPT)
    publish_live_tables(house.root, newest, fewer, now=newest.committed_at + KEPT - 1)
    assert (house.root / LIVE / "names").exists()
    assert live_directory(house.root, "names", newest) is not None
    publish_live_tables(house.root, newest, fewer, now=newest.committed_at + KEPT)
    assert os.listdir(house.root / LIVE) == ["pairs"]  # noqa: PTH208 - names


@pytest.mark.parametrize("damage", [torn, other_protocol, without_log], ids=lambda function: function.__name__)
def test_a_directory_whose_log_cannot_be_read_stays_for_retain_too(house: House, damage: Callable[[Path], None]) -> None:
    """A reader may still use the directory: it goes by the time of its newest file; an empty directory goes at once."""
    move(house)
    directory, newest = house.root / LIVE / "names", house.epochs[-1]
    damage(directory)
    (house.root / LIVE / "empty").mkdir()
    written = max(path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()) // 1000
    for now, stays in ((written + KEPT - 1, True), (written + KEPT, False)):
        publish_live_tables(house.root, newest, LiveRules(["pairs"], (), KEPT), now=now)
        assert (directory.exists(), (house.root / LIVE / "empty").exists()) == (stays, False)


def test_a_purge_leaves_the_newest_rows_alone(house: House) -> None:
    """Former versions, earlier commits, leftovers and tables that are not of the newest epoch go."""
    for number in range(len(house.epochs)):
        move(house, number)
    rules = LiveRules([name for name in names(house) if name != "days"], (), KEPT)
    (house.root / LIVE / "names" / "left.parquet").write_bytes(b"PAR1")
    purge_live_tables(house.root, house.epochs[-1], rules)
    assert not (house.root / LIVE / "days").exists()
    for name in rules.names:
        directory = house.root / LIVE / name
        state = newest_state(directory)
        assert state is not None
        assert {path.name for path in directory.glob("*.parquet")} == set(state.files)
        assert [path.name for path in (directory / "_delta_log").glob("*.json")] == [entry_path(directory, state.version).name]
        assert bag(by_dataset(str(directory))) == scanned(house, name, house.epochs[-1])
    assert move(house) == ("days",)


def test_added_columns_come_with_their_epoch(house: House) -> None:
    """The schema is that of the newest declaration; older rows have null, former versions keep their own columns."""
    from dataclasses import replace  # noqa: PLC0415 - one use

    from warehouse.epochs.records import ColumnRecord  # noqa: PLC0415 - same

    move(house)
    last = house.epochs[-1]
    state = last.table("pairs")
    assert state is not None
    columns = (*state.declaration.columns, ColumnRecord("more", "double"))
    file = house.root / "tables" / "pairs" / "_schema" / "2.parquet"
    former = pq.read_schema(house.root / state.schema_file)
    pq.write_table(former.append(pa.field("more", pa.float64())).empty_table(), file)
    wider = replace(state, declaration=replace(state.declaration, columns=columns), schema_file="tables/pairs/_schema/2.parquet")
    add_epoch(house, last.number + 1, 10, tuple(wider if entry is state else entry for entry in last.tables))
    move(house)
    directory = str(house.root / LIVE / "pairs")
    for reader in (by_dataset, by_engine, by_polars):
        rows = reader(directory)
        assert "more" in rows.column_names
        assert rows["more"].null_count == rows.num_rows > 0
    table = DeltaTable(directory)
    table.load_as_version(table.version() - 1)
    assert "more" not in table.to_pyarrow_table().column_names


def test_a_table_that_cannot_be_read_stays_where_it_is(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """Other tables move; the warehouse logs a warning, and the check finds the table."""
    move(house, 3)
    for path in (house.root / "tables" / "pairs").rglob("*.parquet"):
        if "_schema" not in path.parts:
            with suppress(FileNotFoundError):
                path.rename(path.with_suffix(".gone"))
    (house.root / LIVE / "pairs" / "_delta_log").rename(house.root / LIVE / "pairs" / "log")
    move(house)
    assert "pairs stays" in caplog.text
    assert bag(by_dataset(str(house.root / LIVE / "names"))) == scanned(house, "names", house.epochs[-1])
    findings = live_findings(house.root, names(house), rows=False, resources=Resources())
    assert [(finding.table, finding.code) for finding in findings] == [("pairs", "live_missing")]
