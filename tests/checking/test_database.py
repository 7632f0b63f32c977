"""``check`` reports when other tools would not see the newest epoch, and ``--repair`` repairs it, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.operations.projects import HOUR, at
from tests.publishing.reading import attached
from warehouse.checking import published
from warehouse.checking.check import check
from warehouse.epochs.journal import read_epoch
from warehouse.publishing.contents import FORM
from warehouse.publishing.database import DATABASE, replace_database

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.operations.projects import Project


def _removed(project: Project) -> None:
    (project.root / DATABASE).unlink()


def _cut(project: Project) -> None:
    path = project.root / DATABASE
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 3])


def _former(project: Project) -> None:
    replace_database(project.root, read_epoch(project.root, 1))


def _changed(project: Project) -> None:
    (project.root / DATABASE).chmod(0o644)
    with duckdb.connect(str(project.root / DATABASE)) as connection:
        connection.execute("UPDATE _epochs SET rows = 7; CREATE OR REPLACE VIEW a AS SELECT 'x' AS k")


DAMAGES = {"missing": _removed, "damaged": _cut, "stale": _former, "changed": _changed}


@pytest.mark.parametrize("kind", DAMAGES)
def test_each_kind_is_found_and_mended(damaged: Project, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The finding names the file and the command that repairs it; after the repair there is no finding."""
    monkeypatch.setattr(published, "_PAUSE_SECONDS", 0)
    damage: Callable[[Project], None] = DAMAGES[kind]
    damage(damaged)
    findings = check(damaged.root, rows=False).findings
    assert [(finding.severity, finding.code, finding.subject, finding.repair) for finding in findings] == [
        ("fault", f"database_{kind}", DATABASE, "repair"),
    ]  # fmt: skip
    assert damaged.updater().repair() == (f"wrote {DATABASE} again",)
    assert check(damaged.root, rows=False).findings == ()
    with attached(damaged.root) as connection:
        assert connection.execute("SELECT count(*) FROM w.a").fetchall() == [(len(damaged.live()),)]


def test_a_warehouse_that_was_moved_has_a_note(damaged: Project) -> None:
    """The warehouse's own readers do not need the file; the note tells users of other tools what to set."""
    moved = damaged.root.rename(damaged.directory / "elsewhere")
    (finding,) = check(moved, rows=False).findings
    assert (finding.severity, finding.code, finding.repair) == ("note", "database_moved", "repair")
    assert (str(damaged.root) in finding.message, "stream_wh_root" in finding.remedy) == (True, True)


@pytest.mark.parametrize("form", [None, FORM + 1])
def test_a_file_of_another_build_has_a_note(damaged: Project, form: int | None) -> None:
    """Tools read it as before, unless it was moved, too; an update makes it again even if nothing else is to do."""
    (damaged.root / DATABASE).chmod(0o644)
    with duckdb.connect(str(damaged.root / DATABASE)) as connection:
        connection.execute("DROP MACRO _form" if form is None else f"CREATE OR REPLACE MACRO _form() AS {form}")
        connection.execute("CREATE OR REPLACE VIEW a AS SELECT 'another text' AS k")
    (finding,) = check(damaged.root, rows=False).findings
    assert (finding.severity, finding.code, finding.repair) == ("note", "database_other_build", "repair")
    moved = damaged.root.rename(damaged.directory / "elsewhere")
    (finding,) = check(moved, rows=False).findings
    assert (finding.severity, finding.code) == ("note", "database_moved")
    moved.rename(damaged.root)
    assert not damaged.update((damaged.epoch.window_time - at(0)) / HOUR).epochs
    assert check(damaged.root, rows=False).findings == ()
