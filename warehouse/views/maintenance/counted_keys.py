"""Counts the rows of each key in the inputs of a join, from the key summaries of the tables that they read.

With these counts the cost of a join order needs no assumption about how values are spread over rows. They are read if a join
of three or more inputs compares one class of columns, which is the search key of each input's table, and if many rows arrived:
with few rows every order is fast. Summaries count stored rows, so rows that have ended are counted too.

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
"""Rows that arrived below which every order is fast."""
_SEVERAL = 3
_SMALL = 256 << 10
_MOST_FILES = 1_000
_MOST_KEYS = 200_000
_COUNTED = 5_000
"""Keys of arrived rows that are counted at most; if there are more, a part of them is counted."""


def counted_keys(
    operators: Sequence[Operator],
    classes: Sequence[Mapping[str, str]],
    tables: Mapping[str, NodeTable],
    arrived: Sequence[tuple[int, pa.Table | None]],
) -> KeyCounts | None:
    """Return the rows by key of a join's inputs, named by their numbers; None: they are unknown, or not worth reading.

    Parameters
    ----------
    operators, classes
        The inputs, and for each which of its columns belongs to which class of equal columns.
    tables
        The tables that they read.
    arrived
        The number of rows that arrived at each input, and the columns of ``classes`` of them, where these are in the driver.

    """
    if len(operators) < _SEVERAL or sum(rows for rows, _ in arrived) < _WORTH or len({*_names(classes)}) != 1:
        return None
    keys = [_key_of(operator, own, tables) for operator, own in zip(operators, classes, strict=True)]
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
    """Return the class of each input that has one column of one class; other inputs have a name of their own."""
    for number, own in enumerate(classes):
        yield next(iter(own.values())) if len(own) == 1 else f"several of {number}"


def _key_of(
    operator: Operator, own: Mapping[str, str], tables: Mapping[str, NodeTable]
) -> tuple[NodeTable, str, str] | None:
    """Return the table of an input, its search key, and the input's column that is this key; None if there is no such column."""
    (column,) = own
    found = list(origins(operator, {column.lower(): column}))
    if len(found) != 1 or not picks_only(operator):
        return None
    name, held = found[0]
    table = tables[name]
    if len(table.search_key) != 1 or [each.lower() for each in held] != [table.search_key[0].lower()]:
        return None
    return table, table.search_key[0], column


def _type(table: NodeTable, name: str) -> str:
    return next(each.type.lower() for each in table.columns if each.name.lower() == name.lower())


def _counts(files: Sequence[DataFile] | None) -> dict[Any, int] | None:
    """Return the rows of each key in some files; None if a summary is missing, or does not list each key."""
    if files is None or len(files) > _MOST_FILES:
        return None
    found, keys = [], 0
    for file in files:
        summary = read_summary(file.path, file.rows, _SMALL)
        if summary is None or not summary.exact or (keys := keys + len(summary.counts)) > _MOST_KEYS:
            return None
        found.append(summary)
    return {key[0]: count for key, count in total(found).counts.items() if key[0] is not None}


def _sampled(batches: Mapping[str, Mapping[Any, int]]) -> dict[str, dict[Any, int]]:
    """Return the arrived rows of each key, if there are many keys of a part of them: orders are only compared."""
    every = Counter[Any]()
    for batch in batches.values():
        every.update(batch.keys())
    chosen = {*list(every)[:: max(1, len(every) // _COUNTED)]}
    return {name: {key: count for key, count in batch.items() if key in chosen} for name, batch in batches.items()}
