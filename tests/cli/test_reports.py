"""What verbs report, as text and as a record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.cli.outcome import render_report
from warehouse.cli.reports import plan_report, update_report, vacuum_report
from warehouse.epochs.records import Counts, Epoch, StepSeconds
from warehouse.ingest.files import LandingFile, LeftOut
from warehouse.operations.unneeded_files import VacuumReport
from warehouse.operations.update import UpdateReport
from warehouse.planning.inputs import LandingFacts
from warehouse.planning.plan_record import Plan
from warehouse.steps.kind import StepExplanation
from warehouse.time import parse_instant

if TYPE_CHECKING:
    import pytest

NOON = parse_instant("2013-01-01T12:00:00Z")
EPOCH = Epoch(
    number=3,
    window_time=NOON,
    slot=12,
    previous_slot=11,
    anchor=parse_instant("2013-01-01T00:00:00Z"),
    update_interval=3_600_000_000,
    committed_at=NOON + 5_000_000,
    catalog_digest="",
    tables=(),
    counts=(Counts("flights", files=1, rows=120, inserted=118, late=2, rejected=2, expired=85),),
    seconds=(StepSeconds("append", 3.25),),
)
FILE = LandingFile("12.csv.gz", 10, 20)
PLAN = Plan(
    epoch=3,
    window_time=NOON,
    slot=12,
    previous_slot=11,
    anchor=0,
    update_interval=1,
    retain=1,
    clock=NOON,
    catalog_digest="",
    streams=(),
    steps=(),
)


def test_an_update_tells_what_became_of_the_rows() -> None:
    """One line an epoch and one a stream, with the counts that are not zero."""
    report = update_report(UpdateReport((EPOCH,)))
    assert report.exit_code == 0
    assert report.lines == (
        "epoch 3: window time 2013-01-01T12:00:00Z, 3.2 s",
        "  flights: 120 rows of 1 file; 118 inserted (2 late), 2 rejected, 85 expired",
    )
    (epoch,) = report.record["epochs"]  # type: ignore[misc]
    assert epoch["window_time"] == "2013-01-01T12:00:00Z"
    assert epoch["counts"][0]["inserted"] == 118


def test_nothing_to_do_is_said() -> None:
    """An update that moves nothing succeeds and says so."""
    report = update_report(UpdateReport(()))
    assert (report.exit_code, report.lines) == (0, ("nothing to do: the windows are already there",))


def test_files_that_need_a_person_fail_the_update_once_each() -> None:
    """Unreadable and changed files are named with what to do, and the exit code is 1."""
    left = LeftOut(FILE, "truncated", "the gzip stream is cut short")
    facts = LandingFacts("flights", (replace(FILE, path="11.csv.gz"),), (left,), 0, 2)
    report = update_report(UpdateReport((EPOCH,), left_out=(("flights", left),), landing=(facts,)))
    assert report.exit_code == 1
    assert [problem["reason"] for problem in report.record["problems"]] == ["truncated", "changed"]  # type: ignore[attr-defined]
    assert any("12.csv.gz: the gzip stream is cut short" in line for line in report.lines)
    assert any("stream-wh health" in line for line in report.lines)
    assert any("2 files younger than landing_settle" in line for line in report.lines)


def test_an_emptied_landing_directory_is_a_warning() -> None:
    """All files gone at once may be a disk that is not mounted: they would be loaded again."""
    report = update_report(UpdateReport((EPOCH,), landing=(LandingFacts("flights", (), (), 0, 0, vanished=3),)))
    assert report.exit_code == 0
    assert [text.split(";")[0] for text in report.warnings] == [
        "flights: the landing directory is empty, and 3 files of before gone from it"
    ]


def test_names_matched_ignoring_case_are_told() -> None:
    """A file whose header has other letters' case is loaded, and what was taken for what is said."""
    facts = LandingFacts("dns", (), (), 1, 0, ignoring_case=(("Client", "CLIENT"),))
    report = update_report(UpdateReport((EPOCH,), landing=(facts,)))
    assert report.exit_code == 0
    assert '"Client" from "CLIENT"' in " ".join(report.warnings)


def test_a_completed_update_is_told_apart() -> None:
    """What an interrupted update had begun is reported as completed."""
    report = update_report(UpdateReport((), finished=(EPOCH,)))
    assert report.lines[0] == "completed what was begun:"
    assert report.lines[1].startswith("epoch 3: ")
    assert report.record["completed"]


def test_a_plan_is_told_step_by_step() -> None:
    """Each step has the sizes that it reads and writes; without a plan there is nothing to do."""
    step = StepExplanation(0, "tables/flights", "append", "1 file", 1, 2048)
    report = plan_report(PLAN, (step,), ())
    assert report.data
    assert report.lines[1] == "  1. append flights: 1 file (2.0 KiB)"
    ways = [plan_report(PLAN, (replace(step, way=way),), ()).lines[1].rpartition("; ")[2] for way in ("driver", "spark")]
    assert ways == ["few rows, in the driver", "by Spark"]
    assert plan_report(PLAN, (), ()).lines[1] == "  no table changes"
    assert plan_report(None, (), ()).lines == ("nothing to do",)


def test_a_vacuum_counts_files_and_bytes() -> None:
    """A dry run says what it would do."""
    assert vacuum_report(VacuumReport(1, 1536, 0), dry_run=True).lines[0].startswith("would remove 1 file, 1.5 KiB")


def test_reports_go_to_stderr_and_records_to_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Text is for people, JSON for programs; only `plan` prints its text as data."""
    assert render_report(update_report(UpdateReport(())), as_json=False) == 0
    out, err = capfdbinary.readouterr()
    assert (out, err) == (b"", b"nothing to do: the windows are already there\n")
    render_report(update_report(UpdateReport((EPOCH,), warnings=("w",))), as_json=True)
    out, err = capfdbinary.readouterr()
    assert out.startswith(b'{"epochs":[{"epoch":3,')
    assert b'"warnings":["w"]' in out
    assert err == b""
    render_report(plan_report(None, (), ()), as_json=False)
    assert capfdbinary.readouterr() == (b"nothing to do\n", b"")
