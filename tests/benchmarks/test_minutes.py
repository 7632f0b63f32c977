"""The one-minute warehouse gets the same rows whenever it is run, and its curves are the medians of the tenths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner

from benchmarks.minutes import Minutes, curves, main
from warehouse.catalog.load import load_catalog

if TYPE_CHECKING:
    from pathlib import Path


def test_curves_are_medians_of_tenths() -> None:
    """Lines without counts are skipped; a tenth without counts has an empty cell."""
    lines = [{"seconds": number, **({"files": 7} if number % 2 else {})} for number in range(1, 21)]
    rows = {line.split()[1]: line.split()[3::2] for line in curves([{**line, **COLD} for line in lines]).splitlines()[2:]}
    assert rows["seconds"] == ["1.5", "3.5", "11.5", "19.5", "5.57"]
    assert rows["files"] == ["7", "7", "7", "7", "1.00"]


COLD = {"open_ms": 1, "probe_ms": 1, "view_ms": 1}


def test_a_minute_has_the_same_rows_in_every_run(tmp_path: Path) -> None:
    """An update accepts the declaration; after a stopped run the same rows are landed again."""
    landed = []
    for name in ("one", "other"):
        minutes = Minutes(tmp_path / name, rows=5, lifetime=2)
        minutes.directory.mkdir()
        minutes.declare("1m")
        minutes.declare("1m")
        minutes.land(3)
        (file,) = (minutes.directory / "landing" / "events").iterdir()
        landed.append((file.name, file.read_bytes(), file.stat().st_mtime_ns))
        catalog = load_catalog(minutes.directory)
        assert (catalog.published, minutes.slot()) == ({"events", "totals"}, 0)
    assert landed[0] == landed[1]
    assert landed[0][1].count(b"\n") == 6


def test_files_may_be_apart(tmp_path: Path) -> None:
    """The first minute has a file, then each fourth; without the option every minute has a file."""
    for apart, slots in ((4, [1, 5, 9]), (1, list(range(1, 10)))):
        minutes = Minutes(tmp_path / str(apart), rows=1, lifetime=2, apart=apart)
        minutes.directory.mkdir()
        minutes.declare("1m")
        for slot in range(1, 10):
            minutes.land(slot)
        assert sorted(int(path.stem) for path in (minutes.directory / "landing" / "events").iterdir()) == slots


def test_a_run_with_other_options_is_refused(tmp_path: Path) -> None:
    """Its curves would mix two warehouses."""
    minutes = Minutes(tmp_path, rows=5, lifetime=2)
    minutes.declare("1m")
    refused = CliRunner().invoke(main, ["--lifetime", "2", "--retain", "2m", "--work", str(tmp_path)])
    assert refused.exit_code == 2
    assert "has a run with other options" in refused.output
