"""Requirements on a store: names that are written once, objects that are replaced only if unchanged, one claim."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.epochs import claim
from warehouse.epochs.claim import CLAIM, store_claim
from warehouse.errors import ForeignChangeError, LockHeldError, PlatformError, StoreBusyError
from warehouse.objects.client import client
from warehouse.objects.path import parquet_source
from warehouse.storage.checkpoints import checkpoint
from warehouse.storage.deltalog import Commit, commits_after, void_commit
from warehouse.storage.entries import append_entry, entry_at, entry_path
from warehouse.storage.replay import checkpoints, replay
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warehouse.objects.path import ObjectPath

WRITERS = 16


def test_of_many_writers_of_a_name_one_wins(bucket: ObjectPath) -> None:
    """Exactly one of several writers writes a name that must be free; the others get an error."""

    def attempt(number: int) -> bool:
        try:
            store_of(bucket / "epochs" / "1.json").write_exclusive(bucket / "epochs" / "1.json", str(number).encode())
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        won = list(pool.map(attempt, range(WRITERS)))
    assert won.count(True) == 1
    assert (bucket / "epochs" / "1.json").read_text() == str(won.index(True))


def test_a_put_whose_answer_was_lost_is_no_conflict(bucket: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that tries again after its answer was lost finds its own object, and has won."""
    put = obstore.put

    def twice(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the arguments of obstore
        put(*arguments, **options)
        return put(*arguments, **options)

    monkeypatch.setattr(obstore, "put", twice)
    tag = (bucket / "once").put(b"mine", "create")
    monkeypatch.undo()
    assert (bucket / "once").read_with_tag() == (b"mine", tag)
    with pytest.raises(FileExistsError):
        (bucket / "once").put(b"mine", "create")


def test_a_directory_is_what_is_below_it(bucket: ObjectPath) -> None:
    """Objects are listed by prefix; directory marks of other programs are no objects."""
    store_of(bucket / "tables" / "a" / "x.bin").write_replacing(bucket / "tables" / "a" / "x.bin", b"0123456789")
    store_of(bucket / "tables" / "ab" / "y.bin").write_replacing(bucket / "tables" / "ab" / "y.bin", b"1")
    obstore.put(bucket.store, "tables/empty", b"")
    assert sorted(path.name for path in (bucket / "tables").iterdir()) == ["a", "ab"]
    assert [path.name for path in (bucket / "tables" / "a").rglob("*")] == ["x.bin"]
    assert ((bucket / "tables").is_dir(), (bucket / "tables").is_file(), (bucket / "none").exists()) == (True, False, False)
    assert (bucket / "tables" / "a" / "x.bin").stat().st_size == 10
    with (bucket / "tables" / "a" / "x.bin").open("rb") as stream:
        assert (stream.seek(-3, io.SEEK_END), stream.read(), stream.seek(2), stream.read(2)) == (7, b"789", 2, b"23")
    store_of(bucket / "tables" / "a").remove_tree(bucket / "tables" / "a")
    assert [path.name for path in (bucket / "tables").iterdir()] == ["ab"]
    with pytest.raises(FileNotFoundError):
        (bucket / "tables" / "a" / "x.bin").read_bytes()


def test_a_store_that_does_not_answer_is_worth_another_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing answer is a transient error that names the path, and ends a command with exit code 3."""
    from warehouse.objects.path import ObjectPath  # noqa: PLC0415 - beside its use

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    client.cache_clear()
    try:
        path = ObjectPath("s3://nobody/x")
        path.store.__class__  # noqa: B018 - it is made with that address
        with pytest.raises(StoreBusyError, match="s3://nobody/x") as error:
            path.read_bytes()
        assert error.value.exit_code == 3
    finally:
        client.cache_clear()


def commit(table: ObjectPath, version: int, **metadata: int) -> None:
    """Write a commit with an epoch and a step."""
    import json  # noqa: PLC0415 - here alone

    line = {"commitInfo": {"operation": "WRITE", "userMetadata": json.dumps(metadata)}}
    store_of(entry_path(table, version)).write_exclusive(entry_path(table, version), (json.dumps(line) + "\n").encode())


def test_an_entry_is_appended_once_whoever_appends_it(bucket: ObjectPath) -> None:
    """The second writer learns whether the first was another process of the warehouse or an outsider."""
    table = bucket / "tables" / "a"
    commit(table, 0, epoch=1, step=2)
    base = entry_at(table, 0)
    made = append_entry(table, base, [{"commitInfo": {"userMetadata": '{"epoch": 1, "step": 3}'}}])
    assert made == entry_at(table, 1)
    with pytest.raises(LockHeldError, match="version 1 of a"):
        append_entry(table, base, [{"commitInfo": {}}])
    foreign = append_entry(table, made, [{"commitInfo": {"operation": "OPTIMIZE"}}])
    with pytest.raises(ForeignChangeError, match="commit 2"):
        append_entry(table, made, [{"commitInfo": {}}])
    entry_path(table, 2).write_bytes(b"{}\n")
    with pytest.raises(ForeignChangeError, match="commit 2"):
        append_entry(table, foreign, [{"commitInfo": {}}])
    assert not entry_path(table, 3).exists()


def test_a_commit_is_made_void_as_it_was_judged_or_not_at_all(bucket: ObjectPath) -> None:
    """A process that was held up between reading a commit and undoing it undoes no other commit."""
    table = bucket / "tables" / "a"
    commit(table, 0, epoch=1, step=2)
    judged: Commit = next(commits_after(table, -1))
    void_commit(table, judged)
    assert [entry.void for entry in commits_after(table, -1)] == [True]
    with pytest.raises(LockHeldError):
        void_commit(table, judged)


def test_removed_files_are_named_while_they_are_there(bucket: ObjectPath, tmp_path: Path) -> None:
    """A checkpoint in a store equals the checkpoint on a disk: it omits removed files that nobody can need."""
    table, local = bucket / "tables" / "a", tmp_path / "a"
    for number in range(6):
        write_deltalake(local, pa.table({"k": [number], "p": [f"{number % 2} /x"]}), mode="append", partition_by=["p"])
    DeltaTable(local).delete("k in (0, 1)")
    (remaining, deleted) = sorted(set(replay(local, 5).files) - set(replay(local, 6).files))
    (local / deleted).unlink()
    for file in local.rglob("*"):
        if file.is_file():
            (table / file.relative_to(local).as_posix()).upload(file)
    checkpoint(table, 3)
    checkpoint(table, 6)
    checkpoint(local, 6)
    assert checkpoints(table / "_delta_log").keys() == {3, 6}
    files = [pq.ParquetFile(parquet_source(path / "_delta_log" / f"{6:020d}.checkpoint.parquet")) for path in (table, local)]
    removed = [parquet.read(columns=["remove.path"])["remove"].drop_null().to_pylist() for parquet in files]
    assert [unquote(action["path"]) for action in removed[0]] == [remaining]
    assert (removed[0], replay(table, 6)) == (removed[1], replay(local, 6))
    for version in range(6):
        entry_path(table, version).unlink()
    assert (replay(table, 6), DeltaTable(str(table)).version()) == (replay(local, 6), 6)
    assert sorted(DeltaTable(str(table)).to_pyarrow_table()["k"].to_pylist()) == [2, 3, 4, 5]
    assert not [path for path in table.rglob("*") if "_checkpoint" in path.parts]


def test_a_checkpoint_that_a_store_refuses_fails_no_update(bucket: ObjectPath, caplog: pytest.LogCaptureFixture) -> None:
    """The log is complete without it; commits are missing, or the store does not answer."""
    commit(bucket / "a", 0)
    checkpoint(bucket / "a", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(obstore, "get", raiser(StoreBusyError("nobody answers")))
        checkpoint(bucket / "a", 0)
    assert [record.message.count("no checkpoint of version") for record in caplog.records] == [1, 1]
    assert [path.name for path in (bucket / "a" / "_delta_log").iterdir()] == [entry_path(bucket / "a", 0).name]


def raiser(error: Exception) -> Callable[..., Any]:
    """Return a function that raises an error."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_two_writers_at_once_one_holds_the_claim(bucket: ObjectPath) -> None:
    """The error of the second writer names the holder; the second writer can hold the claim afterwards."""
    with store_claim(bucket, 0), pytest.raises(LockHeldError, match=r"process .* since 1970") as error, store_claim(bucket, 0):
        pass
    assert error.value.exit_code == 3
    assert not (bucket / CLAIM).exists()
    with store_claim(bucket, 0):
        assert (bucket / CLAIM).exists()


def test_a_claim_that_gives_no_sign_of_life_is_taken_over(bucket: ObjectPath, set_limits: Callable[..., object]) -> None:
    """When its former holder continues, it neither renews nor removes the new claim."""
    set_limits(claim_seconds=-1.0)
    with store_claim(bucket, 0):
        _, tag = (bucket / CLAIM).read_with_tag()
        other = store_claim(bucket, 2)
        other.__enter__()
        content = (bucket / CLAIM).read_bytes()
        set_limits(claim_renewal_seconds=0.0)
        claim._keep(bucket / CLAIM, {}, tag, Event())  # it ends, since the claim is not its own any more
    assert (bucket / CLAIM).read_bytes() == content
    other.__exit__(None, None, None)
    assert not (bucket / CLAIM).exists()


def test_a_holder_gives_signs_of_life(bucket: ObjectPath, set_limits: Callable[..., object]) -> None:
    """The holder writes its claim again, and deletes the object at the end."""
    set_limits(claim_renewal_seconds=0.01)
    with store_claim(bucket, 0):
        deadline = time.monotonic() + 30
        while b"signs" not in (bucket / CLAIM).read_bytes():
            assert time.monotonic() < deadline
    assert not (bucket / CLAIM).exists()


def test_the_claim_of_a_process_that_is_gone_is_taken_over_at_once(bucket: ObjectPath) -> None:
    """On the same host nobody waits for a process that was killed."""
    import json  # noqa: PLC0415 - here alone
    import socket  # noqa: PLC0415 - same

    killed = {"host": socket.gethostname(), "pid": 2**22 + 1, "since": "2024-01-01T00:00:00Z", "token": "x"}
    store_of(bucket / CLAIM).write_replacing(bucket / CLAIM, json.dumps(killed).encode())
    with store_claim(bucket, 0):
        pass
    store_of(bucket / CLAIM).write_replacing(bucket / CLAIM, json.dumps({**killed, "host": "elsewhere"}).encode())
    with pytest.raises(LockHeldError, match="on elsewhere"), store_claim(bucket, 0):
        pass


def test_a_bucket_that_is_not_there_is_told(bucket: ObjectPath) -> None:
    """An update reports it before it does anything."""
    with pytest.raises(PlatformError, match="no such bucket"), store_claim(bucket.parent / "nothere", 0):
        pass


def test_a_store_without_conditional_puts_is_refused(bucket: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that overwrites existing objects cannot keep two updates apart."""
    put = obstore.put
    monkeypatch.setattr(obstore, "put", lambda *arguments, **options: put(*arguments, **{**options, "mode": "overwrite"}))
    with pytest.raises(PlatformError, match="If-None-Match"), store_claim(bucket, 0):
        pass
