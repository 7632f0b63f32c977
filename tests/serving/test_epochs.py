"""Which epoch a reader pins, and what it does when files go away."""

from __future__ import annotations

import shutil
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from warehouse.epochs.journal import epoch_path
from warehouse.errors import EpochVacuumedError, MissingPartError, NoEpochError
from warehouse.limits import limited
from warehouse.serving import Reader
from warehouse.storage.key_summaries import summary_path, write_summary
from warehouse.time import HOUR

from .house import add_epoch, same_tables_later

if TYPE_CHECKING:
    from .house import House


def test_as_of_pins_the_newest_epoch_at_or_before(house: House) -> None:
    """Each epoch answers with its own rows, whatever was loaded since.

    epochs    0    1    2
    slot      2    3    4
    as_of       ^ 0  ^ 1
    """
    for epoch in house.epochs:
        for as_of in (epoch.window_time, epoch.window_time + HOUR - 1):
            with Reader.open(house.root, as_of=as_of) as reader:
                assert reader.epoch.number == epoch.number
                answer = reader.probe("names", ["a", "b"])
                assert (answer.epoch, answer.window_time) == (epoch.number, epoch.window_time)
                expected = house["names"].probed(lambda key: key[0] in ("a", "b"), epoch.slot)
                assert answer.all() == expected
                assert len(reader.scan("pairs").all()) == len(house["pairs"].live(epoch.slot))
    with pytest.raises(NoEpochError, match="retain"):
        Reader.open(house.root, as_of=house.epochs[0].window_time - 1)


def test_nothing_loaded_yet(tmp_path: Path) -> None:
    """A root without an epoch says what to run."""
    with pytest.raises(NoEpochError, match="update"):
        Reader.open(tmp_path)


def test_a_reader_stays_with_its_epoch_until_refreshed(own: House) -> None:
    """A new epoch is seen by refresh, not before; an answer outlives the refresh."""
    with Reader.open(own.root) as reader:
        before = reader.scan("names")
        condition = reader.scan("names", where="true")
        same_tables_later(own, 5)
        assert reader.scan("names").epoch == 2
        assert reader.epoch.number == 2
        assert reader.refresh()
        assert not reader.refresh()
        after = reader.scan("names")
        assert (before.epoch, after.epoch) == (2, 3)
        assert len(before.all()) == len(condition.all()) == len(own["names"].live(4))
        assert len(after.all()) == len([row for row in own["names"].live(4) if row.exp > after.window_time])


def test_key_summaries_are_read_once_by_a_reader(own: House) -> None:
    """A reader at a later epoch still has the summaries of files that it has seen, even if they were deleted on the disk."""
    files = [path for path in (own.root / "tables/names").rglob("*.parquet") if path.parent.name != "_schema"]
    with limited(summary_share=50.0):
        for file in files:
            write_summary(file, ["name"])
    assert any(summary_path(file).exists() for file in files)

    def opened(reader: Reader, key: str) -> int:
        answer = reader.probe("names", [key])
        assert answer.all() == own["names"].probed(lambda row_key: row_key[0] == key, 4, reader.epoch.window_time)
        return answer.explain.plan.files_read

    with Reader.open(own.root) as reader:
        absent = opened(reader, "aaa")
        for file in files:
            summary_path(file).unlink(missing_ok=True)
        same_tables_later(own, 5)
        assert reader.refresh()
        assert opened(reader, "aaa") <= absent
    with Reader.open(own.root) as reader:
        assert opened(reader, "aaa") > absent, "which the bounds of the files do not exclude"


def test_a_reader_that_misses_a_file_takes_the_newest_epoch_once(own: House) -> None:
    """The files of its epoch are gone, a newer epoch has others: the answer is of the newer one."""
    with Reader.open(own.root, as_of=None) as reader:
        reader.scan("days").all()
        shutil.move(own.root / "tables/days", own.root / "tables/days_moved")
        for name in ("names", "pairs", "amounts", "moments", "nothing"):
            assert reader.probe(name, null=True).epoch == 2
        moved = {"path": "tables/days_moved", "schema_file": "tables/days_moved/_schema/columns.parquet"}
        states = [replace(state, **moved) if state.name == "days" else state for state in own.epochs[-1].tables]
        add_epoch(own, 3, 4, tuple(states))
        answer = reader.scan("days")
        assert answer.epoch == 3
        assert len(answer.all()) == len(own["days"].live(4))
        assert reader.sql("SELECT count(*) FROM days").all() == [(len(own["days"].live(4)),)]


def test_without_a_newer_epoch_the_error_is_worth_a_retry(own: House) -> None:
    """Files of the newest epoch are gone: probe, scan, sql and a condition all say so, with exit code 3."""
    with Reader.open(own.root) as reader:
        answer = reader.scan("names")
        shutil.rmtree(next((own.root / "tables/names").glob("sub_index=*")))
        for read in (
            lambda: reader.probe("names", ["a"]),
            lambda: reader.scan("names"),
            lambda: reader.scan("names", where="true"),
            lambda: reader.sql("SELECT 1 FROM names"),
            answer.all,
            answer.arrow,
            lambda: reader.probe("names", from_="", now=reader.epoch.window_time + 1),
        ):
            with pytest.raises(EpochVacuumedError) as raised:
                read()
            assert raised.value.exit_code == 3
        assert reader.probe("days", null=True).all() == []


def test_bloom_filters_of_files_that_vanished(own: House) -> None:
    """The second probe, which reads filters, fails in the same way."""
    with Reader.open(own.root) as reader:
        reader.probe("names", ["a"])
        for path in (own.root / "tables/names").glob("sub_index=*"):
            shutil.rmtree(path)
        with pytest.raises(EpochVacuumedError):
            reader.probe("names", ["a"])


def test_a_missing_or_replaced_table_is_no_transient_error(own: House) -> None:
    """A table that is not there, is another one, or holds a damaged file needs a person."""
    with Reader.open(own.root) as reader:
        shutil.rmtree(own.root / "tables/pairs/_delta_log")
        with pytest.raises(MissingPartError):
            reader.scan("pairs")
        shutil.copytree(own.root / "tables/names/_delta_log", own.root / "tables/pairs/_delta_log")
        with pytest.raises(MissingPartError, match="Delta id"):
            reader.scan("pairs")
        for path in (own.root / "tables/days").glob("sub_index=*/*/*.parquet"):
            path.write_bytes(b"no parquet")
        with pytest.raises(MissingPartError, match="is damaged"):
            reader.scan("days").all()


def test_reading_writes_nothing_and_needs_no_permission_to(own: House) -> None:
    """Every way of reading works in a directory without write permission and leaves it as it is."""

    def everything() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in own.root.rglob("*")}

    directories = [own.root, *(path for path in own.root.rglob("*") if path.is_dir())]
    for path in directories:
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    before = everything()
    try:
        with Reader.open(own.root) as reader:
            reader.probe("names", ["a"]).all()
            reader.probe("names", ["a"]).all()
            reader.scan("pairs", where="a > 0").arrow()
            reader.sql("SELECT * FROM _files, _epochs, _rejected, system.days").all()
        assert everything() == before
    finally:
        for path in directories:
            path.chmod(stat.S_IRWXU)


def test_a_relative_root(own: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative root is resolved when the reader opens, and stays the same when the process moves on."""
    monkeypatch.chdir(own.root.parent)
    with Reader.open(Path(own.root.name)) as reader:
        monkeypatch.chdir("/")
        assert len(reader.scan("days").all()) == len(own["days"].live(4))
    assert epoch_path(own.root, 0).exists()
