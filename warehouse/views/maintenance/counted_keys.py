"""Counts the rows of each key in the inputs of a join, from the key summaries of the tables that they read.

With these counts the cost of a join order needs no assumption about how values are spread over rows. The summaries are read if a
join of three or more inputs compares one class of columns, which is the search key of each input's table, and if many rows
arrived: with few rows every order is fast. Summaries count stored rows, so rows that have ended are counted too.

Source: window-joins sheet, 12 (counted keys); promising-tuples sheet, 11 (summary table).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from warehouse.promise.summaries import total
from warehouse.storage.key_summaries import counts_in, read_summary
from warehouse.views.costs.join_order import KeyCounts
from warehouse.views.maintenance.keys import origins
from warehouse.views.maintenance.pipelines import picks_only

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from warehouse.storage.snapshot import DataFile
    from warehouse.views.algebra import Operator
    from warehouse.views.maintenance.inputs import NodeTable

__all__ = ["counted_keys"]

_WORTH = 10_000
"""If fewer rows arrived, every order is fast."""
_SEVERAL = 3
_SMALL = 256 << 10
_MOST_FILES = 1_000
_MOST_KEYS = 200_000
_COUNTED = 5_000
"""Keys of arrived rows that are counted at most; of more keys, a sample is counted."""


def counted_keys(
    operators: Sequence[Operator],
    classes: Sequence[Mapping[str, str]],
    tables: Mapping[str, NodeTable],
    arrived: Sequence[tuple[int, pa.Table | None]],
) -> KeyCounts | None:
    """Return the number of rows by key of each input of a join, by the input's number; None: unknown, or not worth reading.

    Parameters
    ----------
    operators, classes
        The inputs, and for each input the columns that the join compares, with the classes of equal columns.
    tables
        The tables that the inputs read.
    arrived
        For each input the number of rows that arrived, and their columns of ``classes`` if the rows are in the driver.

    """
    if len(operators) < _SEVERAL or sum(rows for rows, _ in arrived) < _WORTH or len({*_names(classes)}) != 1:
        return None
    keys = [_key_of(operator, column_classes, tables) for operator, column_classes in zip(operators, classes, strict=True)]
    if any(key is None for key in keys) or len({_type(table, name) for table, name, _ in filter(None, keys)}) > 1:
        return None
    windows, batches = {}, {}
    for number, (key, (_, rows)) in enumerate(zip(keys, arrived, strict=True)):
        table, _, column = key  # type: ignore[misc]
        window = _counts(table.files_before())
        batch = _counts(table.loaded_files()) if rows is None else counts_in(rows[column])
        if window is None or batch is None:
            return None
        windows[f"{number}"], batches[f"{number}"] = window, batch
    return KeyCounts(windows, _sampled(batches))


def _names(classes: Sequence[Mapping[str, str]]) -> Iterable[str]:
    """Yield for each input the class of its only compared column; for other inputs a name that no other input has."""
    for number, column_classes in enumerate(classes):
        yield next(iter(column_classes.values())) if len(column_classes) == 1 else f"several of {number}"


def _key_of(
    operator: Operator, column_classes: Mapping[str, str], tables: Mapping[str, NodeTable]
) -> tuple[NodeTable, str, str] | None:
    """Return the table of an input, its search key, and the input's column that is this key; None if there is no such column."""
    (column,) = column_classes
    scans = list(origins(operator, {column.lower(): column}))
    if len(scans) != 1 or not picks_only(operator):
        return None
    name, columns = scans[0]
    table = tables[name]
    if len(table.search_key) != 1 or [stored_name.lower() for stored_name in columns] != [table.search_key[0].lower()]:
        return None
    return table, table.search_key[0], column


def _type(table: NodeTable, name: str) -> str:
    return next(column.type.lower() for column in table.columns if column.name.lower() == name.lower())


def _counts(files: Sequence[DataFile] | None) -> dict[Any, int] | None:
    """Return the number of rows of each key in some files; None if a summary is missing, or does not list each key."""
    if files is None or len(files) > _MOST_FILES:
        return None
    summaries, keys = [], 0
    for file in files:
        summary = read_summary(file.path, file.rows, _SMALL)
        if summary is None or not summary.exact or (keys := keys + len(summary.counts)) > _MOST_KEYS:
            return None
        summaries.append(summary)
    return {key[0]: count for key, count in total(summaries).counts.items() if key[0] is not None}


def _sampled(batches: Mapping[str, Mapping[Any, int]]) -> dict[str, dict[Any, int]]:
    """Return the number of arrived rows of each key; of many keys only a sample, since orders are only compared."""
    keys = Counter[Any]()
    for batch in batches.values():
        keys.update(batch.keys())
    chosen = {*list(keys)[:: max(1, len(keys) // _COUNTED)]}
    return {name: {key: count for key, count in batch.items() if key in chosen} for name, batch in batches.items()}
