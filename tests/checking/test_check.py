"""``check`` finds each kind of damage, names the file, and finds nothing in an intact warehouse."""

from __future__ import annotations

import dataclasses
import json
import shutil
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.checking.odd_logs import odd_entries
from warehouse import Warehouse
from warehouse.checking.check import check
from warehouse.cli.main import run
from warehouse.epochs.journal import epoch_path, plan_path, read_epoch, read_record, record_path, write_record
from warehouse.errors import WarehouseError
from warehouse.planning.plan_record import Plan
from warehouse.storage.entries import entry_path
from warehouse.storage.fingerprint import summed_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.operations.projects import Project


def faults(project: Project, *, rows: bool = True) -> set[str]:
    """Return the codes of the faults."""
    return {finding.code for finding in check(project.root, rows=rows).faults}


def data_file(project: Project, table: str = "a") -> Path:
    """Return the first data file of a table at the newest epoch."""
    state = project.epoch.table(table)
    assert state is not None
    uris = DeltaTable(str(project.root / state.path), version=state.version).file_uris()
    return project.root / state.path / min(uris).split(f"{state.path}/", 1)[1]


def rewrite(path: Path, change: Callable[[dict[str, list[object]]], None], *, row_group_size: int | None = None) -> None:
    """Write a data file again with other values, of the same size and sum as far as the log knows."""
    table = pq.read_table(path, partitioning=None)
    values = table.to_pydict()
    change(values)
    pq.write_table(table.from_pydict(values, schema=table.schema), path, row_group_size=row_group_size)
    other = path.rename(path.with_name(summed_name(path, whole=True)))
    size = other.stat().st_size
    log = next(parent for parent in path.parents if (parent / "_delta_log").exists()) / "_delta_log"
    for commit in log.glob("*.json"):
        lines = [json.loads(line) for line in commit.read_text().splitlines()]
        for line in lines:
            if "add" in line and line["add"]["path"].split("/")[-1] == path.name:
                line["add"]["size"] = size
                line["add"]["path"] = line["add"]["path"].replace(path.name, other.name)
        commit.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_whole_warehouse_has_no_findings(history: Project) -> None:
    """Each row of streams, relations, views, operator state, waiting and rejected rows is where it belongs."""
    report = check(history.root)
    assert report.findings == ()
    assert report.epochs == 3
    assert {"tables/once.spare", "deferred/a", "rejected/a"} <= {
        path.relative_to(history.root).as_posix() for path in history.root.glob("*/*")
    }
    assert report.rows >= 20
    quick = check(history.root, rows=False)
    assert (quick.findings, quick.rows, quick.files) == ((), 0, report.files)


def test_a_missing_file_is_a_fault(damaged: Project) -> None:
    """``check`` names a data file that does not exist."""
    file = data_file(damaged)
    file.unlink()
    report = check(damaged.root)
    assert [finding.code for finding in report.faults] == ["file_missing"]
    assert report.faults[0].subject == file.relative_to(damaged.root).as_posix()
    assert report.faults[0].table == "a"


def test_a_truncated_file_is_a_fault_also_without_reading_rows(damaged: Project) -> None:
    """The file's size differs from the committed size."""
    file = data_file(damaged, "named")
    file.write_bytes(file.read_bytes()[:-7])
    assert faults(damaged, rows=False) == {"file_damaged"}


def test_a_flipped_page_is_found_by_reading_rows(damaged: Project) -> None:
    """Footer and size are right; only the data cannot be decoded, or has other values."""
    file = data_file(damaged)
    content = bytearray(file.read_bytes())
    content[4:60] = bytes(56)
    file.write_bytes(bytes(content))
    assert faults(damaged, rows=False) == set()
    assert faults(damaged) != set()


@pytest.mark.parametrize("table", ["a", "b"])
def test_a_row_in_a_wrong_cell_is_a_fault(damaged: Project, table: str) -> None:
    """In both techniques, a row's slots belong to another sub-index or block."""

    def later(values: dict[str, list[object]]) -> None:
        values["_load_slot"][0] = int(str(values["_load_slot"][0])) - 3  # type: ignore[index]

    rewrite(data_file(damaged, table), later)
    assert "misplaced" in faults(damaged)


def test_a_row_in_a_wrong_bucket_is_a_fault(damaged: Project) -> None:
    """A row of a keyed table must lie in the bucket of its key's hash."""

    def renamed(values: dict[str, list[object]]) -> None:
        values["k"] = [f"other{number}" for number in range(len(values["k"]))]

    state = damaged.epoch.table("counts")
    assert state is not None
    uris = DeltaTable(str(damaged.root / state.path), version=state.version).file_uris()
    for uri in uris:
        rewrite(damaged.root / state.path / uri.split(f"{state.path}/", 1)[1], renamed)
    report = check(damaged.root)
    assert {"misplaced", "statistics"} <= {finding.code for finding in report.faults}


def test_slots_that_do_not_fit_times_are_faults(damaged: Project) -> None:
    """Files are pruned by ``_exp_slot``, so it must fit the row's end."""

    def other(values: dict[str, list[object]]) -> None:
        values["_exp_slot"] = [int(str(slot)) + 1 for slot in values["_exp_slot"]]

    rewrite(data_file(damaged), other)
    assert {"slots", "statistics"} <= faults(damaged)


def test_rows_out_of_order_are_a_fault(damaged: Project) -> None:
    """A run is sorted by search key and end; without reading rows, the bounds of row groups show a wrong order."""

    def turned(values: dict[str, list[object]]) -> None:
        values.update({name: column[::-1] for name, column in values.items()})

    files = damaged.root.glob("tables/*/sub_index=*/*/*.parquet")
    several = next(path for path in files if len(set(pq.read_table(path, columns=["k"], partitioning=None)["k"].to_pylist())) > 1)
    rewrite(several, turned, row_group_size=1)
    assert "order" in faults(damaged, rows=False)
    assert "order" in faults(damaged)


def test_a_foreign_commit_is_a_fault(damaged: Project) -> None:
    """Another program has written to the table."""
    state = damaged.epoch.table("a")
    assert state is not None
    delta = DeltaTable(str(damaged.root / state.path))
    write_deltalake(delta, delta.to_pyarrow_table(), mode="append")
    assert faults(damaged) == {"foreign_commit"}


def test_a_missing_commit_is_a_fault(damaged: Project) -> None:
    """The log does not reach the recorded version."""
    state = damaged.epoch.table("a")
    assert state is not None
    entry_path(damaged.root / state.path, state.version).unlink()
    assert faults(damaged) == {"log"}


def test_properties_protocol_and_columns_are_compared(damaged: Project) -> None:
    """Properties that external readers rely on must be as the warehouse set them."""
    first = entry_path(damaged.root / "tables/a", 0)
    text = first.read_text()
    assert '"minReaderVersion":1' in text
    first.write_text(text.replace('"minReaderVersion":1', '"minReaderVersion":3').replace('"10"', '"11"'))
    assert faults(damaged) == {"protocol", "property"}
    first.write_text(text.replace('\\"name\\": \\"k\\"', '\\"name\\": \\"kk\\"'))
    assert "columns" in faults(damaged)


@pytest.mark.parametrize(
    ("table", "every"), [("a", 15), *(pytest.param(table, 1, marks=pytest.mark.long) for table in ("a", "counts"))]
)
def test_odd_values_in_a_log_are_found(damaged: Project, table: str, every: int) -> None:
    """With each value of an entry changed, the check ends, and names the value if readers get other rows or an error."""
    state = damaged.epoch.table(table)
    assert state is not None
    chance = Random(7)  # noqa: S311 - nothing is secret here
    expected = served(damaged, table)
    readings: dict[str, str] = {}
    for version in (0, state.version):
        entry = entry_path(damaged.root / state.path, version)
        content = entry.read_text()
        for path, texts in islice(odd_entries(content), 0, None, every):
            entry.write_text(chance.choice(texts))
            report = check(damaged.root, rows=False)
            try:
                read = "same rows" if served(damaged, table) == expected else "other rows"
            except WarehouseError as error:
                read = f"{type(error).__name__}: {error}"
            if not report.faults:
                readings[f"{version}.{path}"] = read
        entry.write_text(content)
    assert {key: read for key, read in readings.items() if read != "same rows"} == {}
    assert not faults(damaged)


def served(project: Project, table: str) -> list[str]:
    """Return the rows of a table as readers see them."""
    with Warehouse.open(project.directory) as warehouse:
        return sorted(map(str, warehouse.scan(table).all()))


def test_records_are_compared_with_logs(damaged: Project) -> None:
    """The counts of an epoch must equal the counts of its tables."""
    epoch = damaged.epoch
    path = epoch_path(damaged.root, epoch.number)
    path.unlink()
    state = next(state for state in epoch.tables if state.name == "a")
    parts = (dataclasses.replace(state.partitions[0], rows=state.partitions[0].rows + 1), *state.partitions[1:])
    states = tuple(dataclasses.replace(table, partitions=parts) if table is state else table for table in epoch.tables)
    write_record(path, dataclasses.replace(epoch, tables=states, window_time=epoch.window_time + 1))
    assert faults(damaged) == {"counts", "window_time", "database_changed"}


@pytest.mark.parametrize("kind", ["epoch", "plan"])
def test_damaged_records_are_named(damaged: Project, kind: str) -> None:
    """A truncated newest epoch can be repaired, an older epoch cannot; the damaged plan of a complete epoch does no harm."""
    newest = record_path(damaged.root, 2, kind)  # type: ignore[arg-type]
    newest.write_bytes(newest.read_bytes()[:100])
    findings = check(damaged.root).findings
    if kind == "plan":
        assert [(note.severity, note.code, note.repair) for note in findings] == [("note", "old_plan_damaged", "repair")]
        return
    assert ("fault", "epoch_damaged", "repair") in [(finding.severity, finding.code, finding.repair) for finding in findings]
    older = record_path(damaged.root, 1, "epoch")
    older.write_bytes(older.read_bytes()[:100])
    assert {finding.repair for finding in check(damaged.root).faults if finding.code == "epoch_damaged"} == {""}


def test_a_gap_between_epochs_is_a_fault(damaged: Project) -> None:
    """The record of an epoch is missing, and with it the list of its loaded files."""
    epoch_path(damaged.root, 1).unlink()
    assert {"epoch_missing", "ledger"} <= faults(damaged)


def test_an_unfinished_update_and_left_overs_are_notes(damaged: Project) -> None:
    """Leftovers do not harm readers, so the exit code stays 0."""
    strange = damaged.root / "tables/a/sub_index=1/exp_block=0/part-00000.parquet"
    strange.parent.mkdir(parents=True, exist_ok=True)
    strange.write_bytes(b"x" * 11)
    (damaged.root / "epochs/.x.tmp").write_bytes(b"")
    report = check(damaged.root)
    assert not report.faults
    assert [(finding.code, finding.subject) for finding in report.findings] == [
        ("temporary_file", "epochs/.x.tmp"), ("left_over", "tables/a"),
    ]  # fmt: skip
    epoch_path(damaged.root, 2).unlink()
    report = check(damaged.root)
    assert not report.faults
    assert {finding.code for finding in report.findings} == {"temporary_file", "unfinished"}
    assert {finding.repair for finding in report.findings if finding.code == "unfinished"} == {"update"}


def test_a_file_loaded_twice_is_a_fault(damaged: Project) -> None:
    """Two epochs name the same landing file, though nobody asked to reload it."""
    first, last = read_epoch(damaged.root, 0), damaged.epoch
    epoch_path(damaged.root, last.number).unlink()
    write_record(epoch_path(damaged.root, last.number), dataclasses.replace(last, files=(*last.files, *first.files)))
    assert faults(damaged) == {"loaded_twice"}


def test_a_missing_schema_file_is_a_fault(damaged: Project) -> None:
    """Readers take the columns from the schema file."""
    state = damaged.epoch.table("named")
    assert state is not None
    (damaged.root / state.schema_file).unlink()
    at_fault = check(damaged.root).faults
    assert [(fault.code, fault.subject, fault.repair) for fault in at_fault] == [("schema_file", state.schema_file, "repair")]


def test_a_missing_table_is_a_fault(damaged: Project) -> None:
    """The whole directory of a table is missing."""
    shutil.rmtree(damaged.root / "tables/b")
    assert {"log", "schema_file"} == faults(damaged)


def test_plans_of_epochs_stay_readable(damaged: Project) -> None:
    """Each epoch has a plan, which the other tests damage."""
    assert [read_record(plan_path(damaged.root, number), Plan).epoch for number in (0, 1, 2)] == [0, 1, 2]


def test_the_command_prints_findings_and_fails_on_a_fault(damaged: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 0 without a fault, else 4; ``-o json`` prints the list; ``--repair`` prints its repairs."""
    options = ["-C", str(damaged.directory), "check"]
    assert run([*options, "-o", "json"]) == 0
    output = capsys.readouterr()
    assert (json.loads(output.out), "0 faults, 0 notes in 3 epochs" in output.err) == ([], True)
    data_file(damaged).unlink()
    assert run([*options, "--quick", "-o", "json"]) == 4
    (finding,) = json.loads(capsys.readouterr().out)
    assert (finding["severity"], finding["code"], finding["repaired_by"]) == ("fault", "file_missing", None)
    (damaged.root / "epochs/.half.tmp").touch()
    assert run([*options, "--repair", "-o", "csv"]) == 4
    assert "removed epochs/.half.tmp" in capsys.readouterr().err
