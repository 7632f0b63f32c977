from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.errors import EpochVacuumedError, MissingPartError, PlatformError
from warehouse.limits import limited
from warehouse.storage import snapshot
from warehouse.storage.snapshot import Bounds, Snapshot, read_snapshot

if TYPE_CHECKING:
    from pathlib import Path


def table(**columns: object) -> pa.Table:
    """Return rows of one sub-index and expiry block."""
    count = len(next(iter(columns.values())))
    grid = {"sub_index": pa.array([1] * count, pa.int32()), "exp_block": pa.array([7] * count, pa.int64())}
    return pa.table({**columns, **grid})


def written(root: Path, *tables: pa.Table, columns: tuple[str, ...] = ()) -> Snapshot:
    """Return the snapshot after one commit for each of some tables."""
    for rows in tables:
        write_deltalake(str(root / "tables/t"), rows, partition_by=["sub_index", "exp_block"], mode="append")
    return read_snapshot(root, "tables/t", len(tables) - 1, columns)


def test_files_of_a_pinned_version(tmp_path: Path) -> None:
    """A snapshot holds the files up to its version, with absolute paths, sizes, rows and places in the grid."""
    first, second = table(k=["a", "b"]), table(k=["c"])
    assert len(written(tmp_path, first, second).files) == 2
    (file,) = read_snapshot(tmp_path, "tables/t", 0, ("k",)).files
    assert (file.rows, file.sub_index, file.exp_block, file.of("k")) == (2, 1, 7, Bounds("a", "b", 0))
    assert file.path.startswith(f"{tmp_path}/tables/t/sub_index=1/exp_block=7/")
    with open(file.path, "rb") as stream:  # noqa: PTH123 - the text itself is what engines open
        assert len(stream.read()) == file.size


@pytest.mark.parametrize("name", ["with space", "ü", "q?m#h", "[a]*", "it's", "100%"])
def test_any_root_that_opens(tmp_path: Path, name: str) -> None:
    """Odd characters in the root neither hide the table nor its files."""
    written(tmp_path / "plain", table(k=[1]))
    (tmp_path / "plain").rename(tmp_path / name)
    (file,) = read_snapshot(tmp_path / name, "tables/t", 0, ()).files
    with open(file.path, "rb") as stream:  # noqa: PTH123 - the text itself is what engines open
        assert stream.read(4) == b"PAR1"


@pytest.mark.parametrize("name", ["a%20b", "a\\b"])
def test_a_root_that_deltalake_misreads_is_refused(tmp_path: Path, name: str) -> None:
    """A percent escape or a backslash in the root's name is an error that says so."""
    with pytest.raises(PlatformError, match="percent escape or a backslash"):
        read_snapshot(tmp_path / name, "tables/t", 0, ())


def test_percent_encoded_names_are_decoded_once(tmp_path: Path) -> None:
    """A file whose name holds an escape is found under its own name."""
    path = tmp_path / "tables/t"
    write_deltalake(str(path), pa.table({"k": [1], "p": ["a b"]}), partition_by=["p"])
    (file,) = read_snapshot(tmp_path, "tables/t", 0, ()).files
    assert "/p=a%20b/" in file.path
    assert (file.sub_index, file.exp_block) == (0, 0)
    with open(file.path, "rb") as stream:  # noqa: PTH123 - the text itself is what engines open
        assert stream.read(4) == b"PAR1"


def test_bounds_hold_every_value(tmp_path: Path) -> None:
    """Timestamps are cut to milliseconds and decimals pass through doubles: bounds are widened; integers are exact."""
    exact = Decimal("123456789012345.67")
    micros = [-1_500_001, 1_999]
    data = table(
        t=pa.array(micros, pa.timestamp("us", "UTC")),
        d=pa.array([exact, exact], pa.decimal128(17, 2)),
        i=pa.array([2**62 + 1, -(2**62) - 1]),
        day=pa.array([date(2012, 1, 1), None]),
        s=pa.array(["ü" * 40, None]),
        nothing=pa.array([None, None], pa.int64()),
    )
    (file,) = written(tmp_path, data, columns=("t", "d", "i", "day", "s", "nothing", "absent")).files
    assert file.of("t").low <= min(micros)
    assert file.of("t").high >= max(micros)
    assert file.of("d").low <= exact <= file.of("d").high
    assert file.of("i") == Bounds(-(2**62) - 1, 2**62 + 1, 0)
    assert file.of("day") == Bounds(date(2012, 1, 1), date(2012, 1, 1), 1)
    assert file.of("s").low <= "ü" * 40
    assert file.of("s").high >= ("ü" * 40)[: len(file.of("s").high)]
    assert file.of("nothing") == Bounds(None, None, 2)
    assert file.of("absent") == file.of("unasked") == Bounds()
    assert file.min_exp_slot is file.max_exp_slot is None


def test_dates_and_times_that_python_does_not_have(tmp_path: Path) -> None:
    """A bound beyond the year 9999 bounds nothing, and the file is still there."""
    days = pa.array([date.max.toordinal(), 0], pa.int32()).cast(pa.date32())
    moments = pa.array([2**58, -(2**58)]).cast(pa.timestamp("us", "UTC"))
    (file,) = written(tmp_path, table(d=days, t=moments), columns=("d", "t")).files
    assert file.of("d") == Bounds(date(1970, 1, 1), None, 0)
    assert (file.rows, file.of("t").nulls) == (2, 0)


def test_missing_parts(tmp_path: Path) -> None:
    """A missing table or log is a missing part; a version that the log does not reach is missing with its epoch."""
    with pytest.raises(MissingPartError, match="Restore"):
        read_snapshot(tmp_path, "tables/t", 0, ())
    written(tmp_path, table(k=[1]))
    with pytest.raises(EpochVacuumedError, match="run again"):
        read_snapshot(tmp_path, "tables/t", 5, ())
    shutil.rmtree(tmp_path / "tables/t/_delta_log")
    with pytest.raises(MissingPartError):
        read_snapshot(tmp_path, "tables/t", 0, ())


def test_a_version_is_read_once_until_its_log_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other columns of it need no second read; after a further commit, and for another table of that name, it is read again."""
    read: list[int] = []
    plain = snapshot._contents

    def counted(opened: DeltaTable, location: str, version: int) -> object:
        read.append(version)
        return plain(opened, location, version)

    monkeypatch.setattr(snapshot, "_contents", counted)
    first = written(tmp_path, table(k=[1], v=[5]), columns=("k",))
    assert read_snapshot(tmp_path, "tables/t", 0, ("v",)).files[0].of("v") == Bounds(5, 5, 0)
    assert [file.path for file in snapshot.stored_files(tmp_path / "tables/t", 0)] == [
        file.path.removeprefix(f"{tmp_path}/tables/t/") for file in first.files
    ]
    assert read == [0]
    write_deltalake(str(tmp_path / "tables/t"), table(k=[2], v=[6]), mode="append")
    assert len(read_snapshot(tmp_path, "tables/t", 1, ()).files) == 2
    assert read_snapshot(tmp_path, "tables/t", 0, ("k",)).files == first.files
    assert read == [0, 1, 0]
    with limited(known_files=2):
        read_snapshot(tmp_path, "tables/t", 1, ())
    read_snapshot(tmp_path, "tables/t", 1, ())
    assert read == [0, 1, 0, 1]  # with its two files it was more than may be kept
    shutil.rmtree(tmp_path / "tables/t")
    other = written(tmp_path, table(k=[3], v=[7]))
    assert other.table_id != first.table_id
    assert other.files != first.files


@pytest.mark.parametrize("steps", ["+-+c+-", "+*+=c-*+", "++c-+x+-=", "=-c+*-*+"])
def test_a_table_that_moves_on_is_as_if_it_were_opened_anew(tmp_path: Path, steps: str) -> None:
    """Rows come (+), go (-), a column comes (*), all are replaced (=), a checkpoint is made (c), entries before it go (x)."""
    path = tmp_path / "tables/t"
    written(tmp_path, table(k=[0, 1], v=[0, 1]), columns=("k", "v"))
    for number, step in enumerate(steps, start=2):
        columns = {"k": [number], "v": [number]} | ({"w": [number]} if step == "*" else {})
        if step in "+*=":
            how = "overwrite" if step == "=" else "append"
            write_deltalake(str(path), table(**columns), mode=how, schema_mode="merge", partition_by=["sub_index", "exp_block"])
        elif step == "-":
            DeltaTable(str(path)).delete(f"k < {number - 2}")
        elif step == "c":
            DeltaTable(str(path)).create_checkpoint()
        else:
            newest = max((path / "_delta_log").glob("*.checkpoint.parquet")).name[:20]
            for entry in (path / "_delta_log").glob("*.json"):
                if entry.stem < newest:
                    entry.unlink()
        version = DeltaTable(str(path)).version()
        moved = read_snapshot(tmp_path, "tables/t", version, ("k", "v", "w"))
        shutil.copytree(path, tmp_path / f"{number}/tables/t")
        opened = read_snapshot(tmp_path / str(number), "tables/t", version, ("k", "v", "w"))
        assert [replace(file, path=file.path.replace(f"{tmp_path}/{number}/", f"{tmp_path}/")) for file in opened.files] == list(
            moved.files
        )
        assert snapshot._opened[str(path)][0][0] == version


def test_a_table_whose_former_entry_was_replaced_is_opened_anew(tmp_path: Path) -> None:
    """As after a restore from a copy: nothing that was read of the former table applies to this one."""
    first = written(tmp_path, table(k=[1]))
    shutil.rmtree(tmp_path / "tables/t")
    other = written(tmp_path, table(k=[2]), table(k=[3]))
    assert other.table_id != first.table_id
    assert {file.path for file in first.files}.isdisjoint(file.path for file in other.files)
    assert len(other.files) == 2


_STRUCTURE = pa.array([{"x": 1, "y": {"z": [1]}}])


@pytest.mark.parametrize(
    "own", [{"s": _STRUCTURE}, {"s": pa.array([[{"x": 1}]])}, {"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}, {}]
)
def test_bounds_after_a_structure_are_read(tmp_path: Path, own: dict[str, pa.Array]) -> None:
    """With any columns between the key and the warehouse's own: without bounds no file could be skipped."""
    moment = pa.array([1_704_067_200_123_456], pa.timestamp("us", "UTC"))
    columns = {
        "k": pa.array(["a"]), "d": pa.array([date(2024, 2, 29)]), "n": pa.array([Decimal("-12.345")]), "f": pa.array([-0.5]),
        "o": pa.array([True]), **own, "_ts": moment, "_load_slot": pa.array([3]), "_exp_slot": pa.array([5]),
    }  # fmt: skip
    read_columns = ("k", "d", "n", "f", "_ts", "_load_slot", "_exp_slot")
    listed = {"delta.dataSkippingStatsColumns": ",".join(f"`{name}`" for name in read_columns)}
    write_deltalake(
        str(tmp_path / "tables/t"), table(**columns), partition_by=["sub_index", "exp_block"], configuration=listed
    )
    (file,) = read_snapshot(tmp_path, "tables/t", 0, read_columns).files
    plain = written(tmp_path / "plain", table(**{name: columns[name] for name in read_columns}), columns=read_columns).files[0]
    assert dict(file.bounds) == dict(plain.bounds)
    assert (file.rows, file.sub_index, file.exp_block, file.min_exp_slot) == (1, 1, 7, 5)


@pytest.mark.parametrize("odd", ["1", {"x": 1}, 1 << 63, -1, True])
def test_odd_counts_are_not_known(tmp_path: Path, odd: object) -> None:
    """A reader of files ignores them, like odd bounds, and does not end with an error."""
    listed = {"delta.dataSkippingStatsColumns": "k,_exp_slot"}
    path = tmp_path / "tables/t"
    rows = table(k=["a"], s=_STRUCTURE, _exp_slot=[5])
    write_deltalake(str(path), rows, partition_by=["sub_index", "exp_block"], configuration=listed)
    commit = path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    (add,) = [action["add"] for action in actions if "add" in action]
    stats = json.loads(add["stats"])
    stats["nullCount"]["k"] = odd
    stats["numRecords"] = odd if type(odd) is int else 1
    add["stats"] = json.dumps(stats)
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    (file,) = read_snapshot(tmp_path, "tables/t", 0, ("k", "_exp_slot")).files
    assert (file.rows, file.of("k"), file.max_exp_slot) == (None if type(odd) is int else 1, Bounds("a", "a", None), 5)
