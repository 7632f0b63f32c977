"""parquet and arrow (an IPC stream): record batches straight to the destination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from warehouse.cli.output.records import Result
    from warehouse.cli.output.sink import Sink

__all__ = ["write_arrow", "write_parquet"]

_GROUP_ROWS = 100_000


def write_parquet(result: Result, sink: Sink, notes: Mapping[str, str]) -> int:
    """Write one Parquet file and return the number of rows; row groups are of bounded size."""
    import pyarrow as pa  # noqa: PLC0415 - only binary formats need it
    from pyarrow import parquet  # noqa: PLC0415

    def writer(schema: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
        return parquet.ParquetWriter(sink, schema)

    def write(into: Any, batches: list[Any]) -> None:  # noqa: ANN401
        into.write_table(pa.Table.from_batches(batches), row_group_size=_GROUP_ROWS)

    return _write_in_groups(result, notes, writer, write)


def write_arrow(result: Result, sink: Sink, notes: Mapping[str, str]) -> int:
    """Write an Arrow IPC stream and return the number of rows."""
    import pyarrow as pa  # noqa: PLC0415 - only binary formats need it

    def writer(schema: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
        return pa.ipc.new_stream(sink, schema)

    def write(into: Any, batches: list[Any]) -> None:  # noqa: ANN401
        for batch in batches:
            into.write_batch(batch)

    return _write_in_groups(result, notes, writer, write)


def _write_in_groups(
    result: Result,
    notes: Mapping[str, str],
    open_writer: Callable[[Any], Any],
    write: Callable[[Any, list[Any]], None],
) -> int:
    """Write batches in groups of rows, so that small batches do not make many row groups; return the number of rows."""
    count, batches, rows, writer, schema = 0, [], 0, None, None
    try:
        for batch in result.batches():
            if writer is None:
                schema = batch.schema.with_metadata({**(batch.schema.metadata or {}), **notes})
                writer = open_writer(schema)
            batches.append(batch.replace_schema_metadata(schema.metadata))  # type: ignore[union-attr]
            rows += batch.num_rows
            if rows >= _GROUP_ROWS:
                write(writer, batches)
                count, batches, rows = count + rows, [], 0
        if writer is not None and batches:
            write(writer, batches)
    finally:
        if writer is not None:
            writer.close()
    return count + rows
