"""Restating: landing files are read again under a corrected declaration, in place of the rows they gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.replayed import replayed
from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.errors import ChangedDeclarationError, CursorLostError, RestateError, RollbackError, UnknownNameError
from warehouse.operations.restate import _reread, _restatable
from warehouse.serving import Reader
from warehouse.time import DAY, HOUR, to_micros

from .histories import counts
from .projects import Project, StoppedError, at, csv, row, stop_at, stream

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def copy(history: Project, tmp_path: Path) -> Project:
    """Return a copy of the project: epochs of slots 1, 2 and 3."""
    return history.copy(tmp_path / "project")


def lives(project: Project) -> set[tuple[str, float]]:
    """Return the keys of the stream's live rows and their ends, in hours."""
    return {(record["k"], round((to_micros(record["_exp"]) - at(0)) / HOUR, 3)) for record in project.live()}


def test_files_since_a_time_are_read_by_the_corrected_expression(copy: Project) -> None:
    """Rows of earlier files stay, views follow, the window time is the same; no row is doubled."""
    copy.change(expires="timestampadd(MINUTE, 30, e)", max_lifetime="5h")
    report = copy.updater().restate("a", since=at(1))
    epoch = copy.epoch
    assert (epoch.cause, epoch.starts_from, epoch.slot, len(report.epochs)) == ("restate", 0, 3, 1)
    assert report.files == ("2.csv",)
    assert lives(copy) == {("x", 4.2), ("x", 5.5), ("bad", 5.5), ("w", 6.5)}  # w waited, and is judged when its slot comes
    assert (counts(copy), copy.keys("once"), copy.keys("named")) == ({"bad": 1, "w": 1, "x": 2}, "bad w x", "bad x x")
    assert [record["k"] for record in copy.deferred()] == ["w2"]
    assert (len(copy.rejected()), copy.keys("b")) == (2, "q q2")
    assert check(copy.root).findings == ()
    copy.update(5)
    assert lives(copy) == {("x", 5.5), ("bad", 5.5), ("w", 6.5), ("w2", 6.5)}
    assert counts(copy) == {"bad": 1, "w": 1, "w2": 1, "x": 1}
    assert replayed(copy.root)["a", "delete"] == 3  # bad, w and one x, whose ends were corrected


def test_without_a_time_everything_that_can_be_is_read_again(copy: Project) -> None:
    """All files while the first epoch is readable, except a lost file; a crash in between is completed later."""
    copy.land("1.csv", csv(row("other", 0.5, 4)))
    copy.change(expires="timestampadd(MINUTE, 30, e)", max_lifetime="5h")
    with pytest.raises(StoppedError):
        copy.updater(stop_at(Point.STEP_COMMITTED, 2)).restate("a", allow_lost=True)
    assert copy.keys() == "bad w x x"
    assert len(copy.update(3).finished) == 1
    assert lives(copy) == {("x", 5.5), ("bad", 5.5)}
    assert (counts(copy), len(copy.updater().landing()[1].changed)) == ({"bad": 1, "x": 1}, 1)
    assert check(copy.root).findings == ()


def test_rejected_records_are_tried_again_alone(copy: Project) -> None:
    """Valid records are loaded, the others stay rejected; no other row of their files is doubled; views follow."""
    copy.land("3.csv", csv(row("open", 3.2, ""), row("ok", 3.3, 6)))
    copy.land("4.csv", csv(row("wide", 3.4, 6) + ",1", header="k,b,e,more"))
    copy.update(4)
    assert (len(copy.rejected()), copy.keys()) == (3, "bad ok w x x")
    copy.change(null_expiry="never", unknown_columns="ignore")
    report = copy.updater().restate("a", rejected=True)
    assert report.files == ("1.csv", "2.csv", "3.csv", "4.csv")
    rejected = [(record["file"], record["record"], record["reason"]) for record in copy.rejected()]
    assert sorted(rejected) == [("1.csv", 5, "mistyped"), ("2.csv", 4, "mistyped")]
    assert (copy.keys(), copy.keys("once")) == ("bad ok open w wide x x", "bad ok open w wide x")
    assert counts(copy) == {"bad": 1, "ok": 1, "open": 1, "w": 1, "wide": 1, "x": 2}
    assert check(copy.root).findings == ()


def test_views_and_unknown_tables_are_refused(copy: Project) -> None:
    """A view follows the tables that it reads."""
    copy.spark = None
    with pytest.raises(RestateError, match="it is a view"):
        copy.updater().restate("counts")
    with pytest.raises(UnknownNameError, match="stream or relation"):
        copy.updater().restate("nothing")


def test_files_that_are_not_there_any_more_are_named(copy: Project) -> None:
    """Their rows would be lost, so the user must ask for it."""
    copy.spark = None
    copy.land("2.csv", csv(row("other", 1.5, 5)))
    with pytest.raises(RestateError, match=r"1 file\(s\) that gave rows are missing or changed \(2.csv\).*--allow-lost"):
        copy.updater().restate("a", since=at(1))
    assert copy.numbers == [0, 1, 2]


def test_a_time_before_the_oldest_epoch_is_refused(copy: Project) -> None:
    """The error names the earliest possible time."""
    copy.warehouse["retain"] = "0s"
    copy.declare()
    copy.spark = None
    copy.updater().vacuum()
    with pytest.raises(RestateError, match="epochs before 2024-01-01T03:00:00Z are not readable any more"):
        copy.updater().restate("a", since=at(1))


def test_a_stream_that_has_no_table_yet_is_unknown(copy: Project) -> None:
    """The stream was declared after the last update."""
    copy.streams["later"] = stream(landing="landing/later")
    copy.declare()
    copy.spark = None
    with pytest.raises(UnknownNameError):
        copy.updater().restate("later")


def test_a_changed_type_is_followed_by_loading_every_file_again(copy: Project) -> None:
    """Columns may change if no row of the table stays; earlier epochs are still read with their own columns."""
    before = copy.live()
    copy.change(columns={"k": "string", "b": "timestamp", "e": "string"}, expires="to_timestamp(e)")
    with pytest.raises(ChangedDeclarationError, match="stream-wh restate a --since first"):
        copy.update(4)
    with pytest.raises(ChangedDeclarationError):
        copy.updater().restate("a", since=at(1))
    report = copy.updater().restate("a", since="first")
    assert report.files == ("1.csv", "2.csv")
    assert lives(copy) == {("x", 4.2), ("x", 5.0), ("bad", 5.0), ("w", 6.0)}
    assert {type(record["e"]) for record in copy.live()} == {str}
    assert (counts(copy), copy.keys("named")) == ({"bad": 1, "w": 1, "x": 2}, "bad x x")
    assert (copy.live(number=2), [record["k"] for record in copy.deferred()]) == (before, ["w2"])
    assert {record["reason"] for record in copy.rejected()} == {"expires_failed"}
    assert check(copy.root).findings == ()
    copy.update(5)
    assert (lives(copy), counts(copy)) == ({("w", 6.0), ("w2", 6.0)}, {"w": 1, "w2": 1})
    with pytest.raises(RollbackError, match="other columns"):
        copy.updater().rollback(1)
    with Reader.open(copy.root) as reader, pytest.raises(CursorLostError, match="columns of epoch 2 are not those of today"):
        reader.changes("a", since=2)


def test_files_that_were_put_away_are_put_back(copy: Project) -> None:
    """Whether or not an update has noticed that they were moved; the plan moves them, so a crash loads none twice."""
    landing, archive = copy.directory / "landing/a", copy.directory / "landing/loaded/a"
    copy.change(after_load="move")
    assert copy.updater().vacuum().landing == 1
    assert [path.name for path in archive.iterdir()] == ["1.csv"]
    copy.change(expires="timestampadd(MINUTE, 30, e)", max_lifetime="5h")
    with pytest.raises(StoppedError):
        copy.updater(stop_at(Point.PLANNED)).restate("a")
    assert not (landing / "1.csv").exists()
    copy.update(4)  # which notices that the file is gone
    with pytest.raises(StoppedError):
        copy.updater(stop_at(Point.STEP_STARTED)).restate("a", since="first")
    assert (landing / "1.csv").exists()
    assert len(copy.update(4).finished) == 1
    assert lives(copy) == {("x", 4.7), ("x", 5.5), ("bad", 5.5), ("w", 6.5)}
    assert ({file.path for file in copy.epoch.files[0].loaded}, copy.updater().landing()[0].waiting) == ({"1.csv", "2.csv"}, 0)
    assert check(copy.root).findings == ()
    copy.update(5)
    assert lives(copy) == {("x", 5.5), ("bad", 5.5), ("w", 6.5), ("w2", 6.5)}
    copy.clock += 30 * DAY
    assert copy.updater().vacuum().landing == 2
    assert sorted(path.name for path in archive.iterdir()) == ["1.csv", "2.csv"]
    assert list(landing.iterdir()) == []


def test_rejected_records_of_files_that_were_put_away(copy: Project) -> None:
    """They are tried again; a file that can no longer be identified is named."""
    copy.change(after_load="move")
    copy.updater().vacuum()
    copy.spark = None
    catalog, last = copy.updater().catalog, copy.epoch
    reread = _reread(catalog, last, *_restatable(catalog, last, "a"), None, rejected=True, allow_lost=False)
    assert ([file.path for file in reread.files], reread.lost, reread.back) == (["1.csv", "2.csv"], (), {"1.csv": "1.csv"})
    (copy.directory / "landing/loaded/a/1.csv").unlink()
    reread = _reread(catalog, last, *_restatable(catalog, last, "a"), None, rejected=True, allow_lost=False)
    assert ([file.path for file in reread.files], reread.lost) == (["2.csv"], ("1.csv",))
