"""Reads columns whose values are folders on a file's path (:mod:`warehouse.catalog.folder_values`), typed as text of CSV."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.folder_values import NULL_FOLDER
from warehouse.ingest.columns import inputs_of
from warehouse.ingest.conversion import expected_value, from_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from warehouse.catalog.model import Stream

__all__ = ["with_folder_columns"]

_TO_THE_PATH = r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?"


def with_folder_columns(rows: DataFrame, stream: Stream, carried: Sequence[str]) -> DataFrame:
    """Return the rows with all values of a record, also the values from folders, then the ``carried`` columns.

    If a folder is no value of its column's type, the row gets the fault ``mistyped``, unless it has a fault already.
    """
    if not stream.partitions:
        return rows
    folders = _folders(stream)
    hive = F.exists(folders, lambda folder: reduce(_either, [folder.startswith(f"{name}=") for name in stream.partitions]))
    fault, message = F.col("_fault"), F.col("_fault_message")
    values = {}
    for input_ in inputs_of(stream):
        if not input_.is_folder:
            continue
        text = F.when(hive, _named(folders, input_.label)).otherwise(
            F.try_element_at(folders, F.lit(stream.partitions.index(input_.label) + 1))
        )
        value, failed = from_text(text, input_, {})
        values[input_.label] = value
        if failed is not None:
            mismatch = F.concat(F.lit(f'column "{input_.label}": its folder "'), text, F.lit(f'" is no {expected_value(input_)}'))
            message = F.coalesce(message, F.when(fault.isNull() & failed, mismatch))
            fault = F.coalesce(fault, F.when(failed, F.lit("mistyped")))
    columns = [values.get(input_.label, F.col(f"`{input_.label}`")).alias(input_.label) for input_ in inputs_of(stream)]
    faults = {"_fault": fault, "_fault_message": message}
    return rows.select(*columns, *[faults.get(name, F.col(name)).alias(name) for name in carried])


def _folders(stream: Stream) -> SparkColumn:
    """Return the folders between the landing directory and a file, from the file's URI."""
    path = _decoded(F.regexp_replace("_file", _TO_THE_PATH, ""))
    names = F.split(F.substr(path, F.lit(len(str(stream.landing)) + 2)), "/")
    return F.slice(names, F.lit(1), F.size(names) - 1)


def _named(folders: SparkColumn, name: str) -> SparkColumn:
    """Return the value of the last folder of that name."""
    folder = F.try_element_at(F.filter(folders, lambda candidate: candidate.startswith(f"{name}=")), F.lit(-1))
    text = F.substr(folder, F.lit(len(name) + 2))
    return F.when(text != NULL_FOLDER, F.coalesce(_decoded(text), text))


def _decoded(text: SparkColumn) -> SparkColumn:
    """Return text without percent escapes such as ``%2F``; a plus sign stays."""
    return F.try_url_decode(F.replace(text, F.lit("+"), F.lit("%2B")))


def _either(left: SparkColumn, right: SparkColumn) -> SparkColumn:
    return left | right
