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

    def write(into: Any, held: list[Any]) -> None:  # noqa: ANN401
        into.write_table(pa.Table.from_batches(held), row_group_size=_GROUP_ROWS)

    return _pump(result, notes, writer, write)


def write_arrow(result: Result, sink: Sink, notes: Mapping[str, str]) -> int:
    """Write an Arrow IPC stream and return the number of rows."""
    import pyarrow as pa  # noqa: PLC0415 - only binary formats need it

    def writer(schema: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
        return pa.ipc.new_stream(sink, schema)

    def write(into: Any, held: list[Any]) -> None:  # noqa: ANN401
        for batch in held:
            into.write_batch(batch)

    return _pump(result, notes, writer, write)


def _pump(
    result: Result,
    notes: Mapping[str, str],
    open_writer: Callable[[Any], Any],
    write: Callable[[Any, list[Any]], None],
) -> int:
    """Pass batches on in groups of rows: small batches are put together, so that the file has few row groups."""
    count, held, rows, writer, schema = 0, [], 0, None, None
    try:
        for batch in result.batches():
            if writer is None:
                schema = batch.schema.with_metadata({**(batch.schema.metadata or {}), **notes})
                writer = open_writer(schema)
            held.append(batch.replace_schema_metadata(schema.metadata))  # type: ignore[union-attr]
            rows += batch.num_rows
            if rows >= _GROUP_ROWS:
                write(writer, held)
                count, held, rows = count + rows, [], 0
        if writer is not None and held:
            write(writer, held)
    finally:
        if writer is not None:
            writer.close()
    return count + rows
