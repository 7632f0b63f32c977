"""A commit of a table as a value, and the one function that carries it out.

    files(log + commit) = files(log) - removed + added

The warehouse writes entries itself, without a library: an entry must follow one given entry, name files that Spark wrote, and
have the metadata by which the plan recognises it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warehouse.storage.entries import append_entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.storage.entries import LogEntry

__all__ = ["ENGINE", "TableCommit", "carry_out", "commit_info", "metadata_action", "remove_action"]


# Actions of a Delta log as this warehouse writes them (Delta protocol, "Actions"): plain JSON values, one a line of
# an entry.

ENGINE = "stream-wh"
"""The name of the engine in each entry of ours."""


def commit_info(
    operation: str,
    milliseconds: int,
    metadata: Mapping[str, Any],
    *,
    appends: bool,
    parameters: Mapping[str, Any] | None = None,
    **more: object,
) -> dict[str, Any]:
    """Return the action that describes the origin of an entry.

    Parameters
    ----------
    operation, parameters
        The operation's name and its parameters.
    milliseconds
        The instant of the commit, since 1970.
    metadata
        The entry's ``userMetadata``, as a JSON object.
    appends
        Whether the commit only adds, independent of the content of the table.
    more
        Further fields, as the protocol names them.

    """
    return {"commitInfo": {
        "timestamp": milliseconds,
        "operation": operation,
        "operationParameters": dict(parameters or {}),
        "isBlindAppend": appends,
        **more,
        "userMetadata": json.dumps(metadata),
        "engineInfo": ENGINE,
    }}  # fmt: skip


def metadata_action(
    table_id: str, schema: Mapping[str, Any], partition_columns: Sequence[str], properties: Mapping[str, str], at: int
) -> dict[str, Any]:
    """Return the action that defines a table: identity, columns (a Spark struct type as JSON), properties.

    ``at`` is in microseconds.
    """
    return {"metaData": {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": list(partition_columns),
        "configuration": dict(properties),
        "createdTime": at // 1000,
    }}  # fmt: skip


def remove_action(add: Mapping[str, Any], milliseconds: int, *, data_change: bool = True) -> dict[str, Any]:
    """Return the ``remove`` action for the file of an ``add`` action; it uses only path, size and partition values."""
    return {"remove": {
        "path": add["path"],
        "deletionTimestamp": milliseconds,
        "dataChange": data_change,
        "extendedFileMetadata": True,
        "partitionValues": dict(add.get("partitionValues") or {}),
        "size": add["size"],
    }}  # fmt: skip


@dataclass(frozen=True)
class TableCommit:
    """The changes of one commit, and its metadata.

    Parameters
    ----------
    operation, parameters
        The operation's name and its parameters, for people.
    at
        The instant in milliseconds since 1970.
    said
        The entry's ``userMetadata``, by which a plan recognises its steps.
    appends
        Whether the commit only adds, independent of the content of the table.
    facts
        Further fields of ``commitInfo``, as the protocol names them.
    definitions
        The actions that change the table's definition: ``protocol``, ``metaData``, ``txn``.
    added
        The ``add`` actions of added files.
    removed
        The actions of removed files; only path, size and partition values are used.
    data_change
        Whether the removed files remove rows.

    """

    operation: str
    at: int
    said: Mapping[str, Any]
    appends: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)
    definitions: Sequence[Mapping[str, Any]] = ()
    added: Sequence[Mapping[str, Any]] = ()
    removed: Sequence[Mapping[str, Any]] = ()
    data_change: bool = True

    def actions(self) -> Iterator[Mapping[str, Any]]:
        """Yield the actions of the entry, one a line."""
        yield commit_info(
            self.operation, self.at, self.said, appends=self.appends, parameters=self.parameters, **self.facts
        )
        yield from self.definitions
        yield from ({"add": add} for add in self.added)
        yield from (remove_action(add, self.at, data_change=self.data_change) for add in self.removed)


def carry_out(table: Path, base: LogEntry, commit: TableCommit) -> LogEntry:
    """Write a commit's entry durably, if ``base`` is still the newest one, and return it; its files are durable already.

    Raises
    ------
    MissingPartError
        When the base is not there.
    ForeignChangeError
        When the base is another entry by now, or somebody else has committed on it.
    LockHeldError
        When that was another process of this warehouse, which is possible only in a store without file locks.

    """
    return append_entry(table, base, commit.actions())
