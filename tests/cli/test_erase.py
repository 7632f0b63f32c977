"""``erase`` at the command line: what it asks for, what it tells, its exit codes."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.projects import Project, csv, row
from warehouse.epochs.lock import writer_lock
from warehouse.errors import LockHeldError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Two epochs, rows of three keys."""
    project = Project(tmp_path_factory.mktemp("begun") / "project", spark)
    for hour in (1, 2):
        project.land(f"{hour}.csv", csv(row("Gone7", hour - 0.5, 4), row("b", hour - 0.5, 4), row("c", hour - 0.5, 4)))
        project.update(hour)
    return project


@pytest.fixture
def project(begun: Project, tmp_path: Path) -> Project:
    """A copy of it for each test."""
    return begun.copy(tmp_path / "project")


@pytest.fixture
def erase(project: Project, invoke: Callable[..., Ended]) -> Callable[..., Ended]:
    """Run ``erase`` in the project."""
    return lambda *arguments, **options: invoke("-C", str(project.directory), "erase", *arguments, **options)


def test_an_erasure_exits_with_4_until_the_landing_files_are_clean(project: Project, erase: Callable[..., Ended]) -> None:
    """The receipt is printed and stored; it names the key by a hash that the key's owner can compute."""
    foreseen = erase("a", "--key", "Gone7", "--dry-run")
    assert foreseen.code == 4
    assert "would erase 2 rows of tables/a" in foreseen.out
    assert len(project.numbers) == 2
    ended = erase("a", "--key", "Gone7", "--yes", "-o", "json")
    assert ended.code == 4, ended.err
    receipt: dict[str, Any] = json.loads(ended.out)
    assert (receipt["rows"], receipt["whole"], len(receipt["landing"])) == (2, False, 2)
    digest = hashlib.sha256(json.dumps([receipt["salt"], "a", "Gone7"]).encode()).hexdigest()
    assert receipt["keys"] == [digest]
    text = (project.root / "erasures" / f"{2:020d}.json").read_text()
    assert json.loads(text)["keys"] == [digest]
    assert "Gone7" not in text.replace(str(project.directory), "")
    assert json.loads(text)["beyond_reach"].startswith("backups and other copies of the root that were made before epoch 2 hold")
    second = erase("a", "--key", "Gone7", "--yes")
    assert second.code == 4
    assert "nothing to erase" in second.err
    for hour in (1, 2):
        path = project.directory / f"landing/a/{hour}.csv"
        path.write_text(path.read_text().replace("Gone7", "x"))
    assert erase("a", "--key", "Gone7", "--yes").code == 0
    assert project.keys() == "b b c c"


def test_many_keys_come_from_a_file_or_standard_input(project: Project, erase: Callable[..., Ended], tmp_path: Path) -> None:
    """One a line, beside those of --key."""
    keys = tmp_path / "keys.txt"
    keys.write_text("Gone7\nnobody\n")
    ended = erase("a", "--keys-from", str(keys), "--key", "b", "--yes")
    assert ended.code == 4
    assert "made before epoch 2 hold the rows still" in ended.out + ended.err
    assert project.keys() == "c c"
    assert "would erase 2 rows" in erase("a", "--keys-from", "-", "--dry-run", text="c\n").out


def test_it_asks_only_where_somebody_can_answer(project: Project, erase: Callable[..., Ended]) -> None:
    """Without a terminal --yes is needed."""
    ended = erase("a", "--key", "b")
    assert ended.code == 2
    assert "--yes" in ended.err
    assert len(project.numbers) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a", "--yes"), "--key or --keys-from, or --expired"),
        (("a", "--key", "b", "--expired", "--yes"), "not both"),
        (("--key", "b", "--yes"), "TABLE"),
        (("b", "--key", "b", "--yes"), 'no table named "b"'),
        (("b", "--expired", "--yes"), 'no table named "b"'),
    ],
)
def test_what_it_cannot_know_is_a_usage_error(arguments: tuple[str, ...], told: str, erase: Callable[..., Ended]) -> None:
    """Exit code 2, with what is missing."""
    ended = erase(*arguments)
    assert ended.code == 2
    assert told in ended.err


def test_expired_rows_of_all_tables(project: Project, erase: Callable[..., Ended]) -> None:
    """Nothing to do, once older epochs and dead rows are gone."""
    project.update(9)
    first = erase("--expired", "--yes")
    assert first.code == 0, first.err
    assert "receipt:" in first.err
    assert "nothing to erase" in erase("--expired", "--yes").err


def test_it_waits_for_nobody(project: Project, erase: Callable[..., Ended]) -> None:
    """While the lock is held it says by whom, worth retrying."""
    with writer_lock(project.root, 0):
        ended = erase("a", "--key", "b", "--yes")
    assert ended.code == LockHeldError.exit_code
    assert "process" in ended.err


def test_status_tells_of_dead_rows_that_are_overdue(project: Project, invoke: Callable[..., Ended]) -> None:
    """The clock of the process is years later than the rows."""
    project.warehouse["retain"] = "1h"
    project.change(erase_within="9h")
    project.update(4)
    status = invoke("-C", str(project.directory), "status", "--check", "-o", "json")
    (table,) = json.loads(status.out)
    assert table["oldest_dead_row"] == "2024-01-01T03:00:00Z"
    assert status.code == 4
    assert "erase_within allows 9h" in status.err
    assert invoke("-C", str(project.directory), "status", "-o", "json").code == 0
    check = invoke("-C", str(project.directory), "check", "-o", "json")
    assert check.code == 4
    assert [finding["code"] for finding in json.loads(check.out)] == ["erase_overdue"]


def test_a_key_that_is_found_nowhere_is_shown_as_it_was_understood(erase: Callable[..., Ended]) -> None:
    """A mistyped key is no proof; the form that `probe` takes is refused, since it would be looked for as it stands."""
    ended = erase("a", "--key", "Gone 7", "--yes")
    assert ended.code == 0
    assert 'looked for the key "Gone 7"' in ended.err
    foreseen = erase("a", "--key", "Gone 7", "--dry-run")
    assert 'looked for the key "Gone 7"' in foreseen.out + foreseen.err
    for arguments in (("--key", "k=Gone7"), ("--key", "b", "--key", "K=Gone7")):
        refused = erase("a", *arguments, "--yes")
        assert refused.code == 2
        assert "--key Gone7" in refused.err
    broken = erase("a", "--key", "Gone7\r", "--yes")
    assert (broken.code, "line break" in broken.err) == (2, True)
