"""Copies on the local disk: a file is fetched once, only its tail if that is enough, and the oldest copies are deleted."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.errors import EpochVacuumedError, PlatformError
from warehouse.serving.bloom import first_filters
from warehouse.serving.engine import Resources, connect
from warehouse.storage.copies import VARIABLE, Copies, copies_of
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from warehouse.objects.path import ObjectPath

LONG_AGO = 1_000_000_000


@pytest.fixture
def copies(bucket: ObjectPath, tmp_path: Path) -> Copies:
    """Return a cache of copies of a bucket's files, with a limit of 25 bytes."""
    return Copies(bucket, tmp_path / "copies", 25)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the requests to the store."""
    names: list[str] = []
    get, get_range = obstore.get, obstore.get_range
    monkeypatch.setattr(obstore, "get", lambda store, path: (names.append(path), get(store, path))[1])

    def ranged(store: object, path: str, *, start: int, end: int) -> object:
        names.append(f"{path} {end - start}")
        return get_range(store, path, start=start, end=end)

    monkeypatch.setattr(obstore, "get_range", ranged)
    return names


def test_a_file_is_fetched_once(bucket: ObjectPath, copies: Copies, fetched: list[str]) -> None:
    """Each later reader, also in another process, finds the copy."""
    store_of(bucket / "tables" / "a").write_replacing(bucket / "tables" / "a", b"content")
    (copy,) = copies.whole([str(bucket / "tables" / "a")])
    with open(copy, "rb") as stream:  # noqa: PTH123 - as DuckDB does
        assert stream.read() == b"content"
    assert copies.whole([str(bucket / "tables" / "a")] * 2) == [copy, copy]
    assert Copies(bucket, copies.directory, 25).whole([str(bucket / "tables" / "a")]) == [copy]
    assert fetched == ["tables/a"]
    assert copies.directory.stat().st_mode & 0o077 == 0, "nobody else reads them"


def test_the_copies_that_were_used_longest_ago_go(bucket: ObjectPath, copies: Copies) -> None:
    """Copies of one read stay together, however large; copies that somebody may be reading stay for a while."""
    names = [str(bucket / name) for name in "abcd"]
    for name in "abcd":
        store_of(bucket / name).write_replacing(bucket / name, b"0123456789")
    first, second = copies.whole(names[:2])
    os.utime(first, (LONG_AGO, LONG_AGO))
    (third,) = copies.whole(names[2:3])
    assert [Path(copy).exists() for copy in (first, second, third)] == [False, True, True]
    assert all(Path(copy).exists() for copy in copies.whole(names))


def test_a_file_that_is_gone_is_told_as_a_vacuumed_one(bucket: ObjectPath, copies: Copies) -> None:
    """A reader then goes to the newest epoch, as it does when a local file was deleted."""
    for ask in (copies.whole, lambda names: [copies.current(name) for name in names]):
        with pytest.raises(EpochVacuumedError, match="run again"):
            ask([str(bucket / "gone")])
    with pytest.raises(EpochVacuumedError, match="run again"):
        copies.tails([(str(bucket / "gone"), 10)], lambda _: {})


def test_a_file_that_may_be_replaced_is_asked_for(bucket: ObjectPath, copies: Copies) -> None:
    """When the file is replaced, its copy is replaced as well."""
    store_of(bucket / "columns.parquet").write_replacing(bucket / "columns.parquet", b"1")
    before = copies.current(str(bucket / "columns.parquet"))
    store_of(bucket / "columns.parquet").write_replacing(bucket / "columns.parquet", b"2")
    after = copies.current(str(bucket / "columns.parquet"))
    assert (before != after, after == copies.current(str(bucket / "columns.parquet"))) == (True, True)


def test_of_a_file_that_is_only_asked_for_a_key_the_tail_is_copied(
    bucket: ObjectPath, copies: Copies, fetched: list[str]
) -> None:
    """Footer and Bloom filters have their offsets in the whole file, however large; the rows are not fetched."""
    content = io.BytesIO()
    rows = pa.table({"k": [f"key{number:06}" for number in range(120_000)]})
    options = {"row_group_size": 20_000, "compression": "none", "use_dictionary": False}
    pq.write_table(rows, content, bloom_filter_options={"k": True}, **options)
    whole = content.getvalue()
    store_of(bucket / "x.parquet").write_replacing(bucket / "x.parquet", whole)
    with connect(Resources()) as connection:
        name = str(bucket / "x.parquet")
        (tail,) = copies.tails([(name, len(whole))], lambda paths: first_filters(connection, paths, ["k"]))
        begin = first_filters(connection, [tail], ["k"])[tail]
        with open(tail, "rb") as stream:  # noqa: PTH123 - as the filters' reader does
            assert stream.seek(begin) == begin
            assert stream.read() == whole[begin:]
        assert connection.execute("SELECT num_rows FROM parquet_file_metadata(?)", [tail]).fetchone() == (120_000,)
        assert copies.tails([(name, len(whole))], lambda _: {}) == [tail]
    assert sum(int(request.split()[1]) for request in fetched) < len(whole) // 2


def test_how_much_is_kept_is_the_users(bucket: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is copied under a local root; a limit that is no number is refused."""
    assert copies_of(tmp_path) is None
    monkeypatch.setenv(VARIABLE, "1000")
    made = copies_of(bucket)
    assert made is not None
    assert made.bound == 1000
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(PlatformError, match=VARIABLE):
        copies_of(bucket)
