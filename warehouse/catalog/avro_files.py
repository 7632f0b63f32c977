"""Reads Avro files without Spark: their schema, their blocks, and their rows as Arrow batches.

The library fastavro, an extra, reads headers and records. This module finds blocks and decompresses each within a bound. It
refuses a file that ends inside a block: Avro's own Java reader silently skips a block with only part of its first bytes.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import zlib
from dataclasses import dataclass
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from warehouse.catalog.avro_schemas import arrow_schema, has_union, without_logical_types
from warehouse.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["LARGEST_BLOCK", "AvroFile", "Block", "avro_batches", "avro_schema", "is_avro", "open_avro"]

LARGEST_BLOCK = 256 << 20
"""Bytes that a block may hold: a task reads it at once."""
_MAGIC = b"Obj\x01"
_MARKER_BYTES = 16
_ROWS_PER_BATCH = 1024
_CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
_MOST_NUMBER_BYTES = 10
_CHECKSUM_BYTES = 4


def is_avro(beginning: bytes) -> bool:
    """Whether a file with this beginning is an Avro file."""
    return beginning.startswith(_MAGIC)


@dataclass(frozen=True)
class Block:
    """A block of a file: its number from 1, the number of records that it declares, and the place of its bytes in the file."""

    number: int
    count: int
    offset: int
    length: int


@dataclass(frozen=True)
class AvroFile:
    """An open file: its schema, the compression of its blocks, the marker after each, and the offset of the first."""

    raw: IO[bytes]
    schema: Any
    codec: str
    marker: bytes
    first_block: int

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, without reading them.

        Raises
        ------
        ValueError
            When the file ends within one, or is damaged between two.

        """
        size = os.fstat(self.raw.fileno()).st_size
        offset, number = self.first_block, 0
        while offset < size:
            number += 1
            self.raw.seek(offset)
            count, length = _number(self.raw, number), _number(self.raw, number)
            offset = self.raw.tell()
            if count < 0 or length < 0:
                raise ValueError(f"the beginning of its block {number} is damaged")
            if offset + length + _MARKER_BYTES > size:
                raise ValueError(f"it ends within its block {number}: it is cut")
            self.raw.seek(offset + length)
            if self.raw.read(_MARKER_BYTES) != self.marker:
                raise ValueError(f"its block {number} is damaged: the marker behind it is another")
            yield Block(number, count, offset, length)
            offset += length + _MARKER_BYTES

    def content(self, block: Block) -> bytes:
        """Return the decompressed content of a block.

        Raises
        ------
        ValueError
            When it is damaged, or its content is larger than the bound.

        """
        self.raw.seek(block.offset)
        try:
            content = _decompressed(self.raw.read(block.length), self.codec)
        except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
            raise ValueError(f"its block {block.number} is damaged: {error}") from error
        if len(content) > LARGEST_BLOCK:
            raise ValueError(
                f"its block {block.number} holds more than {LARGEST_BLOCK} bytes, which a task would read at once; "
                "let what writes it make smaller blocks"
            )
        return content

    def records(self, block: Block, content: bytes, schema: Any) -> Iterator[Any]:  # noqa: ANN401 - of Avro
        """Yield the records of a block. ``schema`` is the file's schema, perhaps without some logical types.

        Raises
        ------
        ValueError
            When the block is damaged.

        """
        stream, library = io.BytesIO(content), _fastavro()
        parsed = library.parse_schema(schema)
        try:
            for _ in range(block.count):
                yield library.schemaless_reader(stream, parsed, None)
        except (EOFError, IndexError, ValueError, ArithmeticError, KeyError, TypeError) as error:
            raise ValueError(f"its block {block.number} is damaged: {type(error).__name__} {error}".rstrip()) from error
        if stream.tell() < len(content):
            raise ValueError(f"its block {block.number} is damaged: it holds more than its {block.count} records")


def open_avro(raw: IO[bytes]) -> AvroFile:
    """Return the Avro file that is open at its beginning.

    Raises
    ------
    PlatformError
        When the library is not installed.
    ValueError
        When it is no Avro file, or Spark cannot read it.

    """
    avro_library = _fastavro()
    try:
        file = avro_library.reader(raw)
        schema, codec = file.writer_schema, file.codec
    except (EOFError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it is no file of Avro, or cut ({type(error).__name__} {error})") from error
    if codec not in _CODECS:
        raise ValueError(f"its codec is {codec}, which is none of {', '.join(_CODECS)}")
    first_block = raw.tell()
    raw.seek(first_block - _MARKER_BYTES)
    return AvroFile(raw, schema, codec, raw.read(_MARKER_BYTES), first_block)


def avro_schema(path: Path) -> Any:  # noqa: ANN401 - Arrow's
    """Return the Arrow schema of a file, with the Avro schema in its metadata.

    Raises
    ------
    PlatformError, ValueError, OSError
        As :func:`open_avro`; also when Spark reads no such schema, or the file cannot be read.

    """
    import json  # noqa: PLC0415 - only Avro landings need it

    with path.open("rb") as raw:
        written = open_avro(raw).schema
    return arrow_schema(written).with_metadata({"avro": json.dumps(written, sort_keys=True)})


def avro_batches(path: Path, columns: tuple[str, ...] | None = None) -> Iterator[Any]:
    """Yield the rows of a file as small Arrow batches with all or the given columns; a union of several types becomes None.

    Raises
    ------
    PlatformError, ValueError, OSError
        As :func:`avro_schema`; also when a block is damaged.

    """
    import pyarrow as pa  # noqa: PLC0415 - only Avro landings need it

    with path.open("rb") as raw:
        file = open_avro(raw)
        all_fields = arrow_schema(file.schema)
        unions = {field.name for field in all_fields if has_union(field.type)}
        chosen = [field for field in all_fields if columns is None or field.name in columns]
        schema, read_by = pa.schema(chosen), without_logical_types(file.schema, ("decimal",))
        for block in file.blocks():
            records = file.records(block, file.content(block), read_by)
            while rows := list(islice(records, _ROWS_PER_BATCH)):
                columns_of_rows = [
                    pa.array(
                        [None if field.name in unions else _arrow_value(row[field.name], field.type) for row in rows], field.type
                    )
                    for field in chosen
                ]
                yield pa.RecordBatch.from_arrays(columns_of_rows, schema=schema)


def _fastavro() -> Any:  # noqa: ANN401 - an extra, not installed where types are checked
    try:
        import fastavro  # noqa: PLC0415 - other formats do without
    except ImportError as error:
        raise PlatformError("files of Avro need more of Python: pip install 'stream-wh[avro]'") from error
    return fastavro


def _arrow_value(value: Any, kind: Any) -> Any:  # noqa: ANN401 - any value, and a type of Arrow
    """Return a value in the form that Arrow accepts: a map as its pairs."""
    import pyarrow.types as at  # noqa: PLC0415 - as above

    if value is None or not at.is_nested(kind):
        return value
    if at.is_map(kind):
        return [(key, _arrow_value(item, kind.item_type)) for key, item in value.items()]
    if at.is_struct(kind):
        return {field.name: _arrow_value(value[field.name], field.type) for field in kind}
    return [_arrow_value(element, kind.value_type) for element in value]


def _number(raw: IO[bytes], block: int) -> int:
    """Return the signed number at the beginning of a block."""
    try:
        number = _unsigned(raw)
    except EOFError:
        raise ValueError(f"it ends within its block {block}: it is cut") from None
    except ValueError:
        raise ValueError(f"the beginning of its block {block} is damaged") from None
    return (number >> 1) ^ -(number & 1)


def _unsigned(raw: IO[bytes]) -> int:
    """Return the next number, whose bytes have seven bits each."""
    result = 0
    for number in range(_MOST_NUMBER_BYTES):
        byte = raw.read(1)
        if not byte:
            raise EOFError("it ends within a number")
        result |= (byte[0] & 0x7F) << (7 * number)
        if not byte[0] & 0x80:
            return result
    raise ValueError("a number has too many bytes")


def _decompressed(data: bytes, codec: str) -> bytes:
    """Return the decompressed bytes, at most one byte more than the bound."""
    limit = LARGEST_BLOCK + 1
    if codec == "null":
        return data
    if codec in ("snappy", "zstandard"):
        return _decompressed_by_arrow(data, codec, limit)
    opened: Any = {"deflate": lambda: zlib.decompressobj(-15), "bzip2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor}[codec]()
    content: bytes = opened.decompress(data, limit)
    if len(content) < limit and not opened.eof:
        raise EOFError("it ends early")
    return content


def _decompressed_by_arrow(data: bytes, codec: str, limit: int) -> bytes:
    import pyarrow as pa  # noqa: PLC0415 - as above

    if codec == "zstandard":
        return bytes(pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(limit))
    length = _unsigned(io.BytesIO(data))
    if length >= limit:
        return bytes(limit)
    content = bytes(pa.decompress(data[:-_CHECKSUM_BYTES], length, codec="snappy"))
    if zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big") != data[-_CHECKSUM_BYTES:]:
        raise ValueError("its checksum is another")
    return content
