"""Checks that every file that a readable epoch names exists and is whole; lists files that no epoch names.

Invariant: a named file has the size that its commit recorded and a footer with the recorded number of rows, whose row groups
follow each other in the order of the search key. Files that no readable epoch names are left over from interrupted work; no
reader reads them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warehouse.checking.findings import RESTORE_FILE, Finding, fault, note
from warehouse.checking.order import first_group_out_of_order, order_columns
from warehouse.epochs.journal import numbers, record_path
from warehouse.layout.columns import cell_of
from warehouse.objects.path import directories_in, parquet_source
from warehouse.storage.companion_files import data_file_of
from warehouse.storage.fingerprint import damage
from warehouse.storage.tables import FOLDERS, rows_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.checking.logs import NamedTable
    from warehouse.epochs.records import Epoch, TableState

__all__ = ["NamedFile", "files_findings", "leftover_findings", "named_files", "order_fault", "schema_findings"]


@dataclass(frozen=True)
class NamedFile:
    """A data file, the ``add`` action that added it to its table, and the first readable epoch that names it.

    ``path`` is relative to the table's directory, ``table.path``.
    """

    table: NamedTable
    path: str
    add: Mapping[str, Any]
    epoch: Epoch
    state: TableState

    @property
    def subject(self) -> str:
        """Its path relative to the root."""
        return f"{self.table.path}/{self.path}"

    @property
    def adopted(self) -> bool:
        """Whether the OPTIMIZE of an outsider wrote it; such a file is not sorted."""
        return any(self.path in state.adopted for _, state, _ in self.table.epochs)

    @property
    def rows(self) -> int | None:
        """The number of rows that its commit recorded."""
        rows = json.loads(self.add.get("stats") or "{}").get("numRecords")
        return None if rows is None else int(rows)

    @property
    def cell(self) -> tuple[int, int]:
        """Its sub-index and expiry block."""
        return cell_of(self.add["partitionValues"])


def named_files(table: NamedTable) -> list[NamedFile]:
    """Return each file of a table that a readable epoch names, once."""
    files: dict[str, NamedFile] = {}
    for epoch, state, side in table.epochs:
        log_state = table.states.get(side.version if side else state.version)
        for path, add in (log_state.files if log_state else {}).items():
            if path not in files:
                files[path] = NamedFile(table, path, add, epoch, state)
    return list(files.values())


def files_findings(
    root: Path, files: Sequence[NamedFile], *, order: bool = False, contents: bool = False
) -> tuple[list[Finding], list[NamedFile]]:
    """Return the faults of files, and the files that can be read.

    With ``order`` the bounds of their row groups are compared with the order of the search key. With ``contents`` every byte of a
    file is compared with the sum in its name, and every page with its checksum.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - it takes time to import

    findings: list[Finding] = []
    readable: list[NamedFile] = []
    for file in files:
        path = root / file.subject
        message, code = "", "file_damaged"
        try:
            size = path.stat().st_size
            if size != file.add["size"]:
                message = f"it has {size} bytes, {file.add['size']} were written"
            else:
                footer = pq.read_metadata(parquet_source(path))
                if file.rows is not None and footer.num_rows != file.rows:
                    message = f"its footer says {footer.num_rows} rows, its commit {file.rows}"
                elif order:
                    findings += _order_findings(file, footer)
            if contents and not message:
                message = damage(path) or ""
        except FileNotFoundError:
            message, code = "the file is not there", "file_missing"
        except Exception as error:  # noqa: BLE001 - any error of the reader is a finding
            message = f"it cannot be read: {_first_line(error)}"
        if message:
            findings.append(fault(code, file.subject, message, RESTORE_FILE, table=file.table.name))
        else:
            readable.append(file)
    return findings, readable


def _order_findings(file: NamedFile, footer: Any) -> Iterator[Finding]:  # noqa: ANN401 - pyarrow has no types
    columns = order_columns(file.state) if file.table.role == "rows" and not file.adopted else ()
    group = first_group_out_of_order(footer, columns[0]) if columns else None
    if group is not None:
        yield order_fault(file, f"row group {group} begins with a smaller {columns[0]} than the one before it has")


def order_fault(file: NamedFile, where: str) -> Finding:
    """Return the fault of a file whose rows are not sorted."""
    message = f"its rows are not in the order of the search key and _exp: {where}"
    return fault("order", file.subject, message, RESTORE_FILE, table=file.table.name)


def schema_findings(root: Path, epochs: Sequence[Epoch]) -> Iterator[Finding]:
    """Yield the faults of the zero-row files, from which readers take the columns of tables."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - it takes time to import

    seen: set[str] = set()
    for state in (state for epoch in reversed(epochs) for state in epoch.tables):
        if state.schema_file in seen:
            continue
        seen.add(state.schema_file)
        expected = [column["name"] for column in rows_schema(state.stored_columns)["fields"]]
        try:
            names = pq.read_schema(parquet_source(root / state.schema_file)).names
            message = "" if names == expected else "its columns are not the table's"
        except FileNotFoundError:
            message = "the file is not there, so the table cannot be read"
        except Exception as error:  # noqa: BLE001 - as above
            message = f"it cannot be read: {_first_line(error)}"
        if message:
            remedy = "`stream-wh check --repair` writes it again from the epoch's record"
            yield fault("schema_file", state.schema_file, message, remedy, table=state.name, repair="repair")


def leftover_findings(root: Path, files: Sequence[NamedFile], tables: Sequence[NamedTable]) -> Iterator[Finding]:
    """Yield for each directory the number and size of files that no epoch names; nothing while an update is unfinished."""
    committed = numbers(root, "epoch")
    if record_path(root, committed[-1] + 1 if committed else 0, "plan").exists():
        return
    named_paths: dict[str, set[str]] = {table.path: set(table.transient_files) for table in tables}
    for file in files:
        named_paths[file.table.path].add(file.path)
    for kind in FOLDERS:
        for directory in directories_in(root / kind):
            table_path = f"{kind}/{directory.name}"
            leftovers = [path for path in directory.rglob("*") if _is_leftover(path, directory, named_paths.get(table_path))]
            if leftovers:
                size = sum(path.stat().st_size for path in leftovers if path.exists())
                message = f"{len(leftovers)} files, {size} bytes, are named by no readable epoch"
                remedy = "`stream-wh check --repair` or `stream-wh vacuum` removes what is older than ten minutes"
                table = directory.name if table_path in named_paths else None
                yield note("left_over", table_path, message, remedy, table=table, repair="repair")


def _is_leftover(path: Path, directory: Path, named_paths: set[str] | None) -> bool:
    relative = path.relative_to(directory)
    if not path.is_file():
        return False
    if named_paths is None:
        return True
    if relative.parts[0] in ("_delta_log", "_schema"):
        return path.name.endswith(".tmp")
    return (data_file_of(relative) or relative).as_posix() not in named_paths


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
