"""Every error that the warehouse raises on purpose: one class per situation, with a text that says what to do.

``exit_code`` is the process exit code of the command line, ``code`` the stable name that ``-o json`` prints, and ``Transient``
marks errors that a retry may solve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "BackupError",
    "ChangedDeclarationError",
    "ConfigurationError",
    "CursorLostError",
    "DamagedFileError",
    "EmptyFirstRunError",
    "EpochVacuumedError",
    "FileProblem",
    "ForeignChangeError",
    "LandingError",
    "LockHeldError",
    "LowAccuracyError",
    "MigrationError",
    "MissingPartError",
    "NewerFormatError",
    "NoEpochError",
    "NotDurableError",
    "NotSharedError",
    "PlatformError",
    "Problem",
    "QueryError",
    "QueryTimeoutError",
    "RecordDamagedError",
    "RestateError",
    "RollbackError",
    "RunHeldError",
    "SparkLostError",
    "StorageFailedError",
    "StoreBusyError",
    "TornRecordError",
    "Transient",
    "UnknownNameError",
    "UnreadableFilesError",
    "UpdateTimeError",
    "UsageError",
    "WarehouseError",
    "undo_foreign",
]


class WarehouseError(Exception):
    """The base of every error of this library."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1


class Transient(WarehouseError):  # noqa: N818 - the word of the contract
    """A situation that passes: the same call may succeed later."""

    code = "transient"
    exit_code = 3


@dataclass(frozen=True)
class Problem:
    """One fault of a configuration: its place, the value found, the values allowed, and the nearest valid spelling."""

    file: str
    key: str
    found: str
    allowed: str
    nearest: str | None = None

    def __str__(self) -> str:
        """One line a person can act on."""
        hint = f' (did you mean "{self.nearest}"?)' if self.nearest else ""
        return f"{self.file}: {self.key}: found {self.found}; allowed: {self.allowed}{hint}"


class ConfigurationError(WarehouseError):
    """The configuration has faults; all of them are in ``problems``."""

    code = "configuration"
    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        count = len(self.problems)
        super().__init__(f"{count} configuration {'error' if count == 1 else 'errors'}; correct and run again:\n{lines}")


class ChangedDeclarationError(ConfigurationError):
    """A declaration differs from the one that the tables on disk were built with."""

    code = "changed_declaration"


class UsageError(WarehouseError):
    """An argument cannot be used as given."""

    code = "usage"
    exit_code = 2


class UnknownNameError(UsageError):
    """A table or column that does not exist was named."""

    code = "unknown_name"

    def __init__(self, kind: str, name: str, known: Sequence[str], nearest: str | None = None) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        hint = f' Did you mean "{nearest}"?' if nearest else ""
        super().__init__(f'no {kind} named "{name}".{hint} Known: {", ".join(known) or "none"}')


class QueryError(UsageError):
    """The SQL or condition of a reading command cannot be run."""

    code = "query"


class RollbackError(UsageError):
    """The contents of an epoch cannot be gone back to."""

    code = "rollback"

    def __init__(self, epoch: int, reason: str) -> None:
        self.epoch, self.reason = epoch, reason
        super().__init__(f"cannot go back to epoch {epoch}: {reason}; `stream-wh history` lists the epochs that can be read")


class RestateError(UsageError):
    """A table cannot be restated as it was asked for."""

    code = "restate"

    def __init__(self, table: str, reason: str) -> None:
        self.table, self.reason = table, reason
        super().__init__(f'cannot restate "{table}": {reason}')


class MigrationError(UsageError):
    """A table (None: all tables) cannot be migrated as requested."""

    code = "migrate"

    def __init__(self, table: str | None, reason: str) -> None:
        self.table, self.reason = table, reason
        subject = "the warehouse" if table is None else f'"{table}"'
        super().__init__(f"cannot migrate {subject}: {reason}")


class QueryTimeoutError(WarehouseError):
    """A query of the user's ran longer than it may."""

    code = "query_timeout"

    def __init__(self, timeout: str) -> None:
        self.timeout = timeout
        super().__init__(f"the query ran longer than {timeout}; narrow it, or give it more time (--timeout, `timeout` in [sql])")


class UpdateTimeError(UsageError):
    """The update time is before the anchor or too far ahead."""

    code = "update_time"


class RecordDamagedError(WarehouseError):
    """A plan or epoch record fails its checksum or cannot be parsed."""

    code = "record_damaged"

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path}: {reason}; {remedy}")


class TornRecordError(RecordDamagedError):
    """A record is truncated or its bytes changed since it was written; the warehouse treats it as not written."""

    code = "record_torn"


class BackupError(WarehouseError):
    """A backup cannot be made or restored as requested; existing files are unchanged."""

    code = "backup"


class NewerFormatError(WarehouseError):
    """A record was written by a newer build, in a format that this one does not know; it is not damaged."""

    code = "newer_format"

    def __init__(self, path: str, found: int, written_by: str, known: int, this_build: str) -> None:
        self.path, self.found, self.written_by, self.known = path, found, written_by, known
        super().__init__(
            f"{path}: it is whole, but {written_by or 'a newer stream-wh'} wrote it in format {found} and {this_build} reads "
            f"formats up to {known}; nothing was changed. Use {written_by or 'the newer build'} or a later one for this "
            f"warehouse (`pip install --upgrade stream-wh`), or restore a backup that was made before"
        )


class NoEpochError(WarehouseError):
    """There is no epoch yet, or none within the requested range."""

    code = "no_epoch"


class CursorLostError(WarehouseError):
    """The changes of a table since an epoch can no longer be computed."""

    code = "cursor_lost"

    def __init__(self, table: str, epoch: int, newest: int, reason: str) -> None:
        self.table, self.epoch, self.newest, self.reason = table, epoch, newest, reason
        super().__init__(
            f'changes of "{table}" since epoch {epoch} can no longer be computed: {reason}. Take the whole table once '
            f"(`stream-wh scan {table}`, now of epoch {newest}) and go on from the epoch it is of (--since {newest})"
        )


class ForeignChangeError(WarehouseError):
    """A table was committed to by something that is not this warehouse."""

    code = "foreign_change"

    def __init__(self, table: str, version: int, detail: str, *, replaced: bool = False) -> None:
        self.table, self.version = table, version
        remedy = RESTORE_TABLE if replaced else undo_foreign(table)
        super().__init__(
            f'table "{table}" was changed from outside: commit {version} {detail}; nothing was written there. '
            f"{remedy}, then update again"
        )


RESTORE_TABLE = "Restore its directory from a copy, or the warehouse from a backup (`stream-wh restore DIR --replace`)"
"""What to do if the log that an epoch names no longer exists: nothing else records its contents."""


def undo_foreign(table: str) -> str:
    """Return what to do about a table (its directory, relative to the root) that outsiders changed, as part of a sentence."""
    return f"Take it back with `stream-wh repair --undo-foreign {table.rpartition('/')[2]}` (--dry-run shows what it would do)"


@dataclass(frozen=True)
class FileProblem:
    """A landing file that cannot be loaded and why."""

    path: str
    reason: str
    message: str


class UnreadableFilesError(WarehouseError):
    """Landing files of one stream cannot be read; the update leaves them out."""

    code = "unreadable_files"

    def __init__(self, stream: str, files: Sequence[FileProblem]) -> None:
        self.stream, self.files = stream, tuple(files)
        names = ", ".join(f"{problem.path} ({problem.message})" for problem in self.files[:5])
        super().__init__(f'stream "{stream}": {len(self.files)} unreadable file(s): {names}; replace or remove them')


class LandingError(WarehouseError):
    """A landing directory cannot be listed."""

    code = "landing"


class EmptyFirstRunError(WarehouseError):
    """A first update would load nothing although rows wait: it would declare all of them dead."""

    code = "empty_first_run"

    def __init__(self, streams: Mapping[str, str], at: str, *, replay: bool) -> None:
        self.streams = dict(streams)
        listed = "; ".join(f'"{name}": {detail}' for name, detail in streams.items())
        ways = "replay their history with --from first --each, or " if replay else ""
        super().__init__(
            f"no waiting row would be live at {at} ({listed}); nothing was loaded. "
            f"Choose an earlier --at, {ways}accept the loss with --allow-dead"
        )


class LockHeldError(Transient):
    """Another update holds the writer lock."""

    code = "lock_held"

    def __init__(self, holder: str) -> None:
        self.holder = holder
        super().__init__(f"the warehouse is being updated by {holder}; run again when it has ended")


class RunHeldError(Transient):
    """Another process keeps the warehouse up to date."""

    code = "run_held"

    def __init__(self, holder: str) -> None:
        self.holder = holder
        super().__init__(f"the warehouse is kept up to date by {holder}; stop that `stream-wh run` before another one starts")


class EpochVacuumedError(Transient):
    """The files of an epoch vanished under a reader."""

    code = "epoch_vacuumed"


class SparkLostError(Transient):
    """The Spark process ended while an update was using it."""

    code = "spark_lost"


class StoreBusyError(Transient):
    """An object store does not answer, or answers that it failed."""

    code = "store_busy"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"the object store did not do what was asked of it: {reason}. Run again: readers have the last epoch, and the "
            f"next update completes what was begun"
        )


class StorageFailedError(WarehouseError):
    """The disk is full, or does not let this process write or read."""

    code = "storage_failed"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"the disk did not do what was asked of it: {reason}. Free space, or correct the rights, then run again: "
            f"readers have the last epoch, and the next update completes what was begun"
        )


class NotDurableError(StorageFailedError):
    """The disk did not confirm that a write is durable (``fsync`` failed); the write was undone."""

    code = "not_durable"

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        WarehouseError.__init__(
            self,
            f"{path}: the disk did not confirm that it was written ({reason}). Nothing of that attempt is kept. Look at the "
            f"disk (the kernel's log says more), then run again: readers have the last epoch, and the next update writes what "
            f"was begun again from its source",
        )


class NotSharedError(WarehouseError):
    """Executors of a cluster and the driver do not see the same files."""

    code = "not_shared"

    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(
            f"driver and executors do not see the same files: {found}. The root and all landing directories must be on a file "
            f"system that all of them mount under the same path, without delay; correct that and run again: nothing was "
            f"committed of it, and the next update completes what was begun"
        )


class MissingPartError(WarehouseError):
    """A table's file, log or record that an epoch names is not there."""

    code = "missing_part"


class DamagedFileError(MissingPartError):
    """A file of a table does not hold the bytes that were written; it is the disk's fault, not the query's."""

    code = "damaged_file"

    def __init__(self, path: str, reason: str, table: str | None = None) -> None:
        self.path, self.reason, self.table = path, reason, table
        of = f' of table "{table}"' if table else ""
        super().__init__(
            f"file {path}{of} is damaged: {reason}. Restore it from a copy of the warehouse, or go back to an epoch without it "
            f"(`stream-wh history` lists them, then `stream-wh rollback --to-epoch EPOCH`); `stream-wh check` finds all damaged "
            f"files"
        )


class ViewFailedError(WarehouseError):
    """The last update could not maintain a view, so its rows are too old; ``built``: whether it has any rows."""

    code = "view_failed"

    def __init__(self, view: str, reason: str, *, built: bool = True) -> None:
        self.view = view
        self.reason = reason
        self.built = built
        if not built:
            super().__init__(
                f'view "{view}" is declared and has no rows: it cannot be maintained ({reason}); correct [views.{view}], '
                f"look at it with `stream-wh validate`, then run `stream-wh update`"
            )
            return
        super().__init__(
            f'view "{view}" could not be maintained by the last update ({reason}); change its SQL so that it does not fail '
            f"on these rows, then update: it is rebuilt. Earlier epochs can still be read (as_of)"
        )


class LowAccuracyError(WarehouseError):
    """Shedding has left less of a coalesced table than the caller asks for."""

    code = "low_accuracy"
    exit_code = 4

    def __init__(self, table: str, accuracy: float, minimum: float) -> None:
        self.table, self.accuracy, self.minimum = table, accuracy, minimum
        super().__init__(
            f'table "{table}" has an accuracy of {accuracy:.4f}, and {minimum:g} was asked for: members of it were shed; '
            f"raise or remove its budget in [coalesced.{table}], or ask for less. `stream-wh explain {table}` says what went"
        )


class PlatformError(WarehouseError):
    """Java or Spark is missing or of the wrong version."""

    code = "platform"
