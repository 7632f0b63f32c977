"""Actions of a Delta log as this warehouse writes them (Delta protocol, "Actions"): plain JSON values, one a line of an entry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ENGINE", "commit_info", "metadata_action", "remove_action"]

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
    """Return the action by which an entry says what made it.

    Parameters
    ----------
    operation, parameters
        The operation's name and what it was given.
    milliseconds
        The instant of the commit, since 1970.
    metadata
        The entry's ``userMetadata``, as a JSON object.
    appends
        Whether the commit only adds, whatever the table held.
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
    """Return the action that says what a table is: identity, columns (a Spark struct type as JSON), properties.

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
    """Return the action by which the file of an ``add`` action leaves; of it only path, size and partition values are used."""
    return {"remove": {
        "path": add["path"],
        "deletionTimestamp": milliseconds,
        "dataChange": data_change,
        "extendedFileMetadata": True,
        "partitionValues": dict(add.get("partitionValues") or {}),
        "size": add["size"],
    }}  # fmt: skip
