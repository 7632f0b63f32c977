"""Plans and epochs whose bytes changed after they were written: never taken for others, whatever was changed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.operations.projects import Project, StoppedError, stop_at
from warehouse.aggregates.definition import AggregateDefinition, Due
from warehouse.checking.check import check
from warehouse.epochs import journal
from warehouse.epochs.following import AnswersRecord
from warehouse.epochs.journal import (
    decode_record,
    encode_record,
    epoch_path,
    newest_epoch,
    plan_path,
    read_epoch,
    record_path,
    this_build,
)
from warehouse.epochs.known import write_ledger
from warehouse.epochs.points import Point
from warehouse.epochs.records import Epoch
from warehouse.errors import NewerFormatError, NoEpochError, RecordDamagedError, TornRecordError
from warehouse.planning.plan_record import Plan
from warehouse.serving import Reader

from .fuzzing import fuzzed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warehouse.epochs.journal import Kind


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """The plan and the epoch of a first update."""
    project = Project(tmp_path_factory.mktemp("records") / "project", None)
    project.update(1)
    return plan_path(project.root, 0).read_bytes(), epoch_path(project.root, 0).read_bytes()


@fuzzed(300)
@given(place=st.floats(0, 1), replaced=st.binary(max_size=3), length=st.integers(0, 40), which=st.booleans())
@example(place=0.0, replaced=b"", length=10**6, which=True)
@example(place=1.0, replaced=b"", length=0, which=False)
@example(place=1.0, replaced=b" ", length=0, which=False)
def test_any_change_of_a_record(
    records: tuple[bytes, bytes], place: float, replaced: bytes, length: int, *, which: bool
) -> None:
    """It decodes to what was written, or not at all."""
    kind: type = Plan if which else Epoch
    content = records[0] if which else records[1]
    begin = int(place * len(content))
    changed = content[:begin] + replaced + content[begin + length :]
    whole = decode_record(content, kind, "x")
    try:
        assert decode_record(changed, kind, "x") == whole
    except (RecordDamagedError, NewerFormatError) as error:
        assert "x: " in str(error)  # noqa: PT017 - either outcome is right


@fuzzed(100)
@given(st.binary(max_size=200))
@example(b"[" * 100_000)
@example(b'{"format":1,"checksum":"","body":' + b"[" * 100_000)
@example(b'{"format":1e999,"checksum":"","body":{}}')
def test_any_bytes_as_a_record(content: bytes) -> None:
    """They are no record."""
    with pytest.raises(RecordDamagedError):
        decode_record(content, Epoch, "x")


REFUSED = r"it is whole, but stream-wh 9\.9 wrote it in format 99 and stream-wh .* reads\s+formats up to \d+; nothing was changed"


def newer(path: Path, *, foreign: bool = False) -> bytes:
    """Give a record the format of a build to come, and return its former bytes; ``foreign``: whose envelope is another too."""
    former = path.read_bytes()
    envelope = {**json.loads(former), "format": 99, "written_by": "stream-wh 9.9"}
    if foreign:
        envelope = {"format": 99, "written_by": "stream-wh 9.9", "parts": [1, 2]}
    path.write_bytes(msgspec.json.encode(envelope) if foreign else _with_head(former))
    return former


def _with_head(former: bytes) -> bytes:
    body = former[former.index(b'"checksum"') :]
    body = re.sub(rb',"written_by":"[^"]*"}$', b"}", body)
    return b'{"format":99,"written_by":"stream-wh 9.9",' + body


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("kind", ["epoch", "plan", "ledger"])
def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path, kind: Kind, *, foreign: bool) -> None:
    """A record of a later build is not damaged: no verb goes back behind it, repairs or removes it."""
    project = Project(tmp_path / "project", None)
    project.update(1)
    project.update(2)
    if kind == "plan":  # of an epoch that is not written yet: a damaged one would be removed and made again
        project.land("1.csv", "k,b,e\n")
        with pytest.raises(StoppedError):
            project.update(3, observer=stop_at(Point.PLAN_WRITTEN))
    elif kind == "ledger":
        write_ledger(project.root, project.epoch)
    path = record_path(project.root, 2 if kind == "plan" else 1, kind)
    newer(path, foreign=foreign)
    content = path.read_bytes()
    epochs = sorted(path.name for path in (project.root / "epochs").iterdir())
    if kind == "epoch":
        with pytest.raises(NewerFormatError, match=REFUSED):
            newest_epoch(project.root)
        with pytest.raises(NewerFormatError, match=REFUSED):
            Reader.open(project.root)
    verbs: list[Callable[[], object]] = [lambda: project.update(3), lambda: check(project.root)]
    for verb in (*verbs, project.updater().repair) if kind != "ledger" else verbs:  # repairing reads no ledger
        with pytest.raises(NewerFormatError, match=REFUSED):
            verb()
    assert (path.read_bytes(), sorted(path.name for path in (project.root / "epochs").iterdir())) == (content, epochs)


def test_a_build_that_would_leave_answers_out_refuses_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of format 2 does not know that answers can wait: it would count them as given."""
    definition = AggregateDefinition("a", None, (), (), (), 1, ("k",))
    record = AnswersRecord(definition, 7, (Due("1h", 1, 7),))
    written = encode_record(record)
    assert decode_record(written, AnswersRecord, "answers") == record
    monkeypatch.setattr(journal, "FORMAT", 2)
    with pytest.raises(NewerFormatError):
        decode_record(written, AnswersRecord, "answers")


def test_a_record_says_who_wrote_it(records: tuple[bytes, bytes]) -> None:
    """So that an older build can say which one to take."""
    assert all(json.loads(record)["written_by"] == this_build() for record in records)


def test_readers_of_a_torn_epoch_have_the_one_before(tmp_path: Path) -> None:
    """By every way in; a torn one further back is an error, and so is a torn one that is alone."""
    project = Project(tmp_path / "project", None)
    for slot in (1, 2, 3):
        project.update(slot)
    path = epoch_path(project.root, 2)
    pinned = Reader.open(project.root)
    path.write_bytes(path.read_bytes()[:-1])
    assert not pinned.refresh()
    assert pinned.epoch.number == 2, "a reader never goes back"
    pinned.close()
    newest = newest_epoch(project.root)
    assert newest is not None
    assert newest.number == 1
    with Reader.open(project.root) as reader:
        assert reader.epoch.number == 1
        assert reader.sql("SELECT number FROM _epochs ORDER BY 1").all() == [(0,), (1,)]
    report = project.update(3)
    assert [epoch.number for epoch in report.finished] == [2]
    middle = epoch_path(project.root, 1)
    middle.write_bytes(b"")
    with pytest.raises(TornRecordError):
        read_epoch(project.root, 1)
    with pytest.raises(TornRecordError), Reader.open(project.root, as_of=newest.window_time):
        pass
    alone = Project(tmp_path / "alone", None)
    alone.update(1)
    epoch_path(alone.root, 0).write_bytes(b"")
    with pytest.raises(TornRecordError):
        Reader.open(alone.root)
    assert [epoch.number for epoch in alone.update(1).finished] == [0]
    with pytest.raises(NoEpochError):
        Reader.open(tmp_path / "nowhere")
