"""A damaged data file is found by ``check``, and is an error of the warehouse, never of the query."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.checking.damages import damages
from warehouse import Warehouse
from warehouse.checking.check import check
from warehouse.errors import DamagedFileError, MissingPartError, WarehouseError
from warehouse.storage.fingerprint import damage, fingerprint, has_sum, summed_name, tail_start
from warehouse.storage.replay import replay
from warehouse.storage.scan import TableFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.operations.projects import Project

ROLES = ("rows", "view", "relation", "deferred", "rejected")
READS: dict[str, Callable[[Warehouse, str], Any]] = {
    "probe": lambda warehouse, table: warehouse.probe(table, ["x"]).all(),
    "scan": lambda warehouse, table: warehouse.scan(table).all(),
    "batches": lambda warehouse, table: [row for batch in warehouse.scan(table).batches() for row in batch.to_pylist()],
    "where": lambda warehouse, table: warehouse.scan(table, where="k >= 'a'").all(),
    "sql": lambda warehouse, table: warehouse.sql(f"SELECT k, count(*), max(hash(COLUMNS(*))) FROM {table} GROUP BY k").all(),
}


def seeded(number: int) -> Random:
    """Return the same choices each time."""
    return Random(number)  # noqa: S311 - nothing is secret here


def files_of(project: Project) -> dict[str, tuple[str, Path]]:
    """Return a data file of each role at the newest epoch, with the table of the file."""
    examples: dict[str, tuple[str, Path]] = {}
    roles = {"a": "rows", "named": "view", "r": "relation"}
    for state in project.epoch.tables:
        sides = [(state.deferred, "deferred"), (state.rejected, "rejected"), (state.restored, "restored")]
        tables = [(state, roles.get(state.name)), *sides]
        for table, role in tables:
            files = replay(project.root / table.path, table.version).files if table is not None and role else {}
            if files and role is not None:
                examples.setdefault(role, (state.name, project.root / table.path / max(files)))
    return examples


def outcome(read: Callable[[Warehouse, str], Any], project: Project, table: str, expected: object) -> str:
    """Return the outcome of a read: the right rows, an error that names the file, or wrong rows."""
    try:
        with Warehouse.open(project.directory) as warehouse:
            return "right" if sorted_rows(read(warehouse, table)) == expected else "other rows"
    except DamagedFileError:
        return "error"


def sorted_rows(rows: list[Any]) -> list[str]:
    """Return rows in one order."""
    return sorted(map(repr, rows))


def test_every_file_of_a_table_has_its_sum(history: Project) -> None:
    """Each writer adds the sum: loads, seals, views, waiting and rejected rows, relations."""
    written = [path for path in history.root.rglob("*.parquet") if "_schema" not in path.parts and "_delta_log" not in path.parts]
    assert len(written) > len(ROLES)
    for path in written:
        assert has_sum(path.name)
        assert damage(path) is None
    assert tuple(role for role in ROLES if role in files_of(history)) == ROLES


def test_check_finds_damage_in_every_region_of_every_kind_of_file(damaged: Project) -> None:
    """Bytes of pages, page headers, Bloom filters, indexes, footers and magic are flipped, zeroed or cut."""
    random = seeded(17)
    for role, (table, path) in files_of(damaged).items():
        whole = path.read_bytes()
        drawn = list(damages(path, random, 2))
        assert {example.region for example in drawn} >= {"magic", "header", "page", "footer", "end"}
        for change in drawn:
            path.write_bytes(change.content)
            assert damage(path) is not None, (role, change.region, change.kind)
        path.write_bytes(random.choice(drawn).content)
        subject = path.relative_to(damaged.root).as_posix()
        faults = [(fault.code, fault.table) for fault in check(damaged.root).faults if fault.subject == subject]
        assert faults == [("file_damaged", table)], role
        path.write_bytes(whole)
    assert check(damaged.root).faults == ()


def test_without_a_sum_of_the_whole_file_pages_are_verified(damaged: Project) -> None:
    """On a cluster the sum covers the tail only, and files of earlier builds have no sum."""
    _, path = files_of(damaged)["rows"]
    random = seeded(5)
    bare = path.with_name("bare.parquet")
    bare.write_bytes(path.read_bytes())
    tail = path.with_name(summed_name(bare, whole=False))
    assert f".sum-{tail_start(bare)}-{fingerprint(bare, tail_start(bare))}." in tail.name
    for change in damages(path, random, 4):
        bare.write_bytes(change.content)
        tail.write_bytes(change.content)
        if change.region == "page" or change.kind == "cut":
            assert damage(bare) is not None, change.kind
        if change.region in {"page", "tail", "footer", "end"} or change.kind == "cut":
            assert damage(tail) is not None, (change.region, change.kind)
    bare.write_bytes(path.read_bytes())
    assert damage(bare) is None


def fuzzed(project: Project, random: Random, each: int, roles: Sequence[str]) -> Counter[tuple[str, str]]:
    """Damage files of the tables that are read, and count the outcomes of the reads; a read raises no other error."""
    counts: Counter[tuple[str, str]] = Counter()
    files = files_of(project)
    for table, path in (files[role] for role in roles):
        whole = path.read_bytes()
        expected = {}
        with Warehouse.open(project.directory) as warehouse:
            for name, read in READS.items():
                expected[name] = sorted_rows(read(warehouse, table))
        for change in damages(path, random, each):
            path.write_bytes(change.content)
            assert damage(path) is not None
            counts["check", "found"] += 1
            for name, read in READS.items():
                counts[name, outcome(read, project, table, expected[name])] += 1
        path.write_bytes(whole)
    return counts


def test_a_read_of_a_damaged_file_gives_rows_or_an_error_that_names_it(damaged: Project) -> None:
    """Probes do not verify, so wrong rows are possible; an error is the warehouse's, never the query's."""
    counts = fuzzed(damaged, seeded(3), 1, ["rows"])
    assert all(counts[name, "error"] for name in READS if name != "probe")  # which skips files and row groups without the key


@pytest.mark.long
def test_how_much_damage_is_found(damaged: Project) -> None:
    """Print how many damages the check finds, how many reads find, and how many reads return wrong rows."""
    counts = fuzzed(damaged, seeded(11), 10, ["rows", "view", "relation"])
    for (name, result), count in sorted(counts.items()):
        print(f"{name}: {result} {count}")  # noqa: T201 - the figure is for the reader of the run


def test_the_error_says_which_file_of_which_table_and_what_to_do(damaged: Project) -> None:
    """Hot tables and SQL raise the same error, and the commands that it names work."""
    table, path = files_of(damaged)["rows"]
    content = bytearray(path.read_bytes())
    content[-6:] = b"\0" * 6
    path.write_bytes(content)
    for hot in ((), (table,)):
        with pytest.raises(DamagedFileError) as error, Warehouse.open(damaged.directory, hot=hot) as warehouse:
            warehouse.sql(f"SELECT * FROM {table} WHERE upper(k) > 'A'").all()
        assert error.value.path == str(path)
        assert error.value.table == table
        for part in ("stream-wh history", "stream-wh rollback", "stream-wh check"):
            assert part in str(error.value)


def test_a_mistake_of_the_query_stays_one(damaged: Project) -> None:
    """If all files are intact, the error tells to correct the query."""
    with Warehouse.open(damaged.directory) as warehouse, pytest.raises(WarehouseError, match="correct the query") as error:
        warehouse.sql("SELECT k::INTEGER FROM a").all()
    assert not isinstance(error.value, MissingPartError)


def test_rows_of_a_damaged_file_are_not_taken_to_be_written_again(damaged: Project) -> None:
    """Sealing, rebuilding, migrating and erasing verify a file before they read it."""
    state = damaged.epoch.table("a")
    assert state is not None
    _, path = files_of(damaged)["rows"]
    whole = path.read_bytes()
    for change in damages(path, seeded(7), 1):
        path.write_bytes(change.content)
        files = TableFiles(damaged.root)
        with pytest.raises(DamagedFileError) as error:
            files.require_whole(files.files(state.path, state.version))
        assert (error.value.path, error.value.table) == (str(path), "a")
    path.write_bytes(whole)
    files.require_whole(files.files(state.path, state.version))
