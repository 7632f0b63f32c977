"""What is known of landing files: from a ledger's shards and the epochs above it, as it would be from every epoch ever made."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operations.projects import Project
from warehouse.epochs.journal import numbers, record_path, write_record
from warehouse.epochs.known import DIRECTORY, keep_ledger, known_files, prune_ledgers, write_ledger
from warehouse.epochs.records import Epoch, Loaded
from warehouse.errors import MissingPartError, TornRecordError
from warehouse.ingest.files import LandingFile, LeftOut
from warehouse.ingest.landing import KnownFiles, LandingStatus, landing_status, list_landing, listed_files
from warehouse.ingest.loaded_files import LoadedFiles, Shard, cut_into_shards, files_of_shard, order, paths_in
from warehouse.operations.rollback import _difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

PATHS = ("a", "a.csv", "a/1", "b", "b/x/1", "b/x/2", "c")
FILES = st.builds(LandingFile, st.sampled_from(PATHS), st.integers(1, 2), st.just(0))
ENTRIES = st.builds(
    Loaded,
    st.just("s"),
    loaded=st.lists(FILES, max_size=4).map(tuple),
    left_out=st.lists(st.builds(LeftOut, FILES, st.just("reason"), st.just("")), max_size=2).map(tuple),
    reload=st.lists(st.sampled_from(PATHS), max_size=1).map(tuple),
    gone=st.lists(st.sampled_from(PATHS), max_size=1).map(tuple),
)
HISTORIES = st.lists(ENTRIES, max_size=5)


def summed(history: Iterable[Loaded]) -> KnownFiles:
    """The model: every record in turn, in plain dictionaries."""
    loaded: dict[str, LandingFile] = {}
    left_out: dict[str, LeftOut] = {}
    reload: set[str] = set()
    for record in history:
        for path in record.gone:
            loaded.pop(path, None)
            left_out.pop(path, None)
            reload.discard(path)
        for file in record.loaded:
            loaded[file.path] = file
            left_out.pop(file.path, None)
            reload.discard(file.path)
        for entry in record.left_out:
            left_out[entry.file.path] = entry
            reload.discard(entry.file.path)
        reload.update(record.reload)
    return KnownFiles(loaded, left_out, frozenset(reload))


def modelled(files: Sequence[LandingFile], known: KnownFiles) -> LandingStatus:
    """The model: each file on its own."""
    new, changed, unreadable = [], [], []
    for file in files:
        before, failed = known.loaded.get(file.path), known.left_out.get(file.path)
        if file.path in known.reload:
            new.append(file)
        elif before is not None:
            changed += [file] if before != file else []
        elif failed is not None and failed.file == file:
            unreadable.append(failed)
        else:
            new.append(file)
    gone = sorted((known.loaded.keys() | known.left_out.keys()) - {file.path for file in files})
    return LandingStatus(tuple(new), tuple(changed), tuple(unreadable), tuple(gone), 0, not files)


def resting(loaded: LoadedFiles, size: int) -> LoadedFiles:
    """Write shards, and return what is read of them."""
    shards, written = cut_into_shards(loaded, size=size)
    contents = _CONTENTS | written
    _CONTENTS.update(written)
    assert [shard.count for shard in shards] == [len(_load(shard)) for shard in shards]
    assert contents.keys() >= {shard.name for shard in shards}
    return LoadedFiles(shards, _load)


def of_older_builds(loaded: LoadedFiles) -> LoadedFiles:
    """Return the same, as ledgers had it that did not sum up their shards as a listing has them."""
    return replace(loaded, shards=tuple(replace(shard, listed="") for shard in loaded.shards))


_CONTENTS: dict[str, bytes] = {}


def _load(shard: Shard) -> tuple[LandingFile, ...]:
    files = files_of_shard(shard, _CONTENTS[shard.name])
    assert files is not None
    return files


def changes(history: Iterable[Loaded]) -> dict[str, LandingFile | None]:
    """Return the changes of the loaded files by a history."""
    changed: dict[str, LandingFile | None] = {}
    for record in history:
        changed.update(dict.fromkeys(record.gone))
        changed.update({file.path: file for file in record.loaded})
    return changed


@given(HISTORIES, HISTORIES, HISTORIES, st.lists(FILES, max_size=7, unique_by=lambda file: file.path), st.integers(1, 3))
@settings(max_examples=150)
def test_shards_say_what_plain_dictionaries_say(
    one: list[Loaded], two: list[Loaded], three: list[Loaded], there: list[LandingFile], size: int
) -> None:
    """Shards and dictionaries agree on each path, on all paths, and on the status of a listing."""
    first = resting(LoadedFiles(changes=changes(one)), size)
    second = resting(replace(first, changes=changes(two)), size)
    third = replace(second, changes=changes(three))
    model = summed([*one, *two, *three])
    assert dict(third) == dict(model.loaded)
    assert (len(third), sorted(third)) == (len(model.loaded), sorted(model.loaded))
    assert [third.get(path) for path in PATHS] == [model.loaded.get(path) for path in PATHS]
    listed = sorted(there, key=lambda file: order(file.path))
    expected_files = replace(model, loaded=third)
    for given_files in (listed, sorted(model.loaded.values(), key=lambda file: order(file.path))):
        expected_status = modelled(given_files, model)
        rows = [(file.path, file.size, file.mtime_ns) for file in given_files]
        for variant in (expected_files, replace(expected_files, loaded=of_older_builds(third)), model):
            assert landing_status(rows, variant, settle=0, clock=0) == expected_status


@given(HISTORIES, HISTORIES, st.integers(1, 3))
def test_after_the_difference_is_recorded_all_is_known_as_before(
    before: list[Loaded], since: list[Loaded], size: int
) -> None:
    """Whatever was loaded, left out, marked or gone in between, and whichever shards tell of it."""
    then, now = summed(before), summed([*before, *since])
    shards = resting(LoadedFiles(changes=changes(before)), size)
    later = resting(replace(shards, changes=changes(since)), size)
    plain = _difference("s", now, then)
    shown = _difference("s", replace(now, loaded=later), replace(then, loaded=shards))
    for difference in (plain, shown):
        back = summed([*before, *since, difference])
        assert (back.loaded, back.left_out, back.reload) == (then.loaded, then.left_out, then.reload)


def test_a_listing_is_in_the_order_of_shards(tmp_path: Path) -> None:
    """A listing goes directory by directory; hashes alone recognise loaded files, and only shards with differences are read."""
    many = [f"d{day:02d}/{hour}.csv" for day in range(30) for hour in range(9)]
    for path in (*many, "d.csv", "d00.csv", "d\udcff.csv", "é/1.csv"):
        target = tmp_path / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(path[:3] if path.isascii() else "")
    files = [*list_landing(tmp_path, "*")]
    assert files == sorted(files, key=lambda file: order(file.path))
    shards = resting(LoadedFiles(changes={file.path: file for file in files}), 16).shards
    read: list[str] = []

    def load(shard: Shard) -> tuple[LandingFile, ...]:
        read.append(shard.first)
        return _load(shard)

    loaded = KnownFiles(LoadedFiles(shards, load), {})
    assert landing_status(listed_files(tmp_path, "*"), loaded, settle=0, clock=0) == LandingStatus((), (), (), (), 0)
    assert (len(shards) > 10, read) == (True, [])
    (tmp_path / "d15" / "4.csv").write_text("changed")
    (tmp_path / "d15" / "9.csv").write_text("new")
    (tmp_path / "d16" / "0.csv").unlink()
    status = landing_status(listed_files(tmp_path, "*"), loaded, settle=0, clock=0)
    paths = ([file.path for file in status.changed], [file.path for file in status.new], status.gone)
    assert paths == (["d15/4.csv"], ["d15/9.csv"], ("d16/0.csv",))
    assert len(read) <= 2


def test_ledgers_of_older_builds_get_what_they_lack() -> None:
    """Their shards tell what they always told, and stay; the next ledger has their second sums, and reads none after that."""
    files = [LandingFile(f"{number:03d}.csv", 1, number) for number in range(64)]
    rows = [(file.path, file.size, file.mtime_ns) for file in files]
    now = resting(LoadedFiles(changes={file.path: file for file in files}), 16)
    before = of_older_builds(now)
    for rows_there, wanted in ((rows, ()), (rows[1:], ("000.csv",))):
        assert landing_status(rows_there, KnownFiles(before, {}), settle=0, clock=0).gone == wanted
    assert cut_into_shards(before, size=16) == (now.shards, {})
    assert cut_into_shards(replace(now, load=None), size=16) == (now.shards, {})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A warehouse of one epoch, nothing loaded."""
    project = Project(tmp_path / "project", None)
    project.update(1)
    return project


def add(project: Project, *files: LandingFile) -> Epoch:
    """Record an epoch that loaded files."""
    last = project.epoch
    epoch = replace(last, number=last.number + 1, files=(Loaded("a", loaded=files),))
    write_record(record_path(project.root, epoch.number, "epoch"), epoch)
    return epoch


def test_few_records_are_read_however_many_epochs_there_are(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger is written now and then by what changed; those that nothing needs go, with their shards."""
    written: list[str] = []
    for number in range(200):
        keep_ledger(project.root, add(project, LandingFile(f"{number:04d}.csv", 1, number)), 0)
    monkeypatch.setattr("warehouse.epochs.known.read_record", _noted(written))
    assert len(known_files(project.root, project.epoch)["a"].loaded) == 200
    assert len(written) <= 33
    assert len(numbers(project.root, "ledger")) == 2
    assert len([*(project.root / DIRECTORY).iterdir()]) == 2
    for number in (0, 1, 90, 200):
        epoch = replace(project.epoch, number=number)
        assert len(known_files(project.root, epoch).get("a", KnownFiles({}, {})).loaded) == number
    write_ledger(project.root, replace(project.epoch, number=90))
    for number in range(1, 91):
        record_path(project.root, number, "epoch").unlink()
    prune_ledgers(project.root, 91)
    assert numbers(project.root, "ledger")[0] == 90
    for number in (90, 91, 130, 200):
        assert len(known_files(project.root, replace(project.epoch, number=number))["a"].loaded) == number


def _noted(read: list[str]) -> object:
    from warehouse.epochs.journal import read_record  # noqa: PLC0415 - before it is replaced

    def noted(path: Path, kind: type[object]) -> object:
        read.append(path.name)
        return read_record(path, kind)

    return noted


def test_a_shard_that_is_gone_or_damaged_is_told(project: Project) -> None:
    """Nothing is loaded a second time because the ledger has lost a part."""
    write_ledger(project.root, add(project, LandingFile("1.csv", 1, 1)))
    project.land("1.csv", "k,b,e\n")
    (shard,) = (project.root / DIRECTORY).iterdir()
    shard.write_bytes(b"?" + shard.read_bytes()[1:])
    project.land("2.csv", "k,b,e\n")
    with pytest.raises(TornRecordError, match="restore it from a backup"):
        project.update(2)
    shard.unlink()
    with pytest.raises(MissingPartError, match="restore it from a backup"):
        project.update(2)


def test_a_shard_tells_its_paths() -> None:
    """The proof of an erasure looks for keys in them; bytes of anything else are refused."""
    files = {path: LandingFile(path, 1, 2) for path in PATHS}
    _, written = cut_into_shards(LoadedFiles(changes=files))
    assert sorted(path for packed in written.values() for path in paths_in(packed)) == sorted(PATHS)
    for rubbish in (b"", b"N14228", zlib.compress(b"no list")):
        with pytest.raises(ValueError, match=r"\w"):
            paths_in(rubbish)
