"""The rows that the benchmarks load; equal seeds give equal rows.

A row is ``(k, at, until, a, b, v)``: a string key of 12 bytes, arrival, expiry, a number, a float, text. Nine rows of ten
have an ordinary key, all equally likely; the tenth has one of :data:`MANY` keys, each of which has many rows. Only even
numbers are keys: an odd one lies between two keys and is in no file, which bounds alone cannot tell. The text is words
of a small vocabulary, as log lines are: neither random nor repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["COLUMNS", "MANY", "SELECTED", "Shape", "absent_key", "arriving", "key", "living", "table_of", "write"]

MANY = 100
"""How many keys have many rows."""

COLUMNS = {"k": "string", "at": "timestamp", "until": "timestamp", "a": "bigint", "b": "double", "v": "string"}
SELECTED = ", ".join(f'"{name}"' for name in COLUMNS)
"""The columns in DuckDB SQL."""

_KEY_BYTES = 12
_FIXED_BYTES = _KEY_BYTES + 4 * 8
_WORD_BYTES = 8
_VOCABULARY = 4096
_MANY_SHARE = 0.1
_FILE_ROWS = 500_000


@dataclass(frozen=True)
class Shape:
    """What the rows look like: bytes of a row, number of keys, the seed."""

    row_bytes: int
    keys: int
    seed: int


def key(index: int) -> str:
    """Return the key of an index below ``Shape.keys``.

    >>> key(21), absent_key(21)
    ('key-00000042', 'key-00000043')
    """
    return f"key-{2 * index:08d}"


def absent_key(index: int) -> str:
    """Return a text that is no key and sorts behind ``key(index)``."""
    return f"key-{2 * index + 1:08d}"


def arriving(shape: Shape, rows: int, *, part: tuple[int, ...], after: int, until: int, lifetime: int) -> pa.Table:
    """Return rows that arrive in ``(after, until]`` and live up to ``lifetime``, uniformly; microseconds.

    Parameters
    ----------
    shape
        What the rows look like.
    rows
        How many.
    part
        Numbers that tell this piece of the data from others.
    after, until
        When they arrive.
    lifetime
        The longest lifetime.

    """
    rng = np.random.default_rng([shape.seed, *part])
    ts = rng.integers(after + 1, until + 1, rows)
    return table_of(shape, rng, ts, ts + rng.integers(1, lifetime + 1, rows))


def living(shape: Shape, rows: int, *, part: tuple[int, ...], at: int, lifetime: int) -> pa.Table:
    """Return the rows that are live at an instant, as if rows had always arrived evenly."""
    rng = np.random.default_rng([shape.seed, *part])
    # of age x in [0, S) a share 1 - x/S still lives; its remaining life is uniform up to S - x
    age = (lifetime * (1 - np.sqrt(rng.random(rows)))).astype(np.int64)
    remaining = 1 + (rng.random(rows) * (lifetime - age - 1)).astype(np.int64)
    return table_of(shape, rng, at - age, at + remaining)


def write(table: pa.Table, directory: Path, name: str, *, files: int = 1) -> None:
    """Write rows as Parquet files of about equal size."""
    directory.mkdir(parents=True, exist_ok=True)
    files = max(files, -(-table.num_rows // _FILE_ROWS))
    edges = [round(number * table.num_rows / files) for number in range(files + 1)]
    for number in range(files):
        piece = table.slice(edges[number], edges[number + 1] - edges[number])
        pq.write_table(piece, directory / f"{name}-{number:03d}.parquet", compression="snappy")


def table_of(shape: Shape, rng: np.random.Generator, ts: NDArray[np.int64], exp: NDArray[np.int64]) -> pa.Table:
    """Return rows with given arrivals and expiries, in microseconds; everything else is drawn."""
    rows = len(ts)
    ordinary = rng.integers(0, shape.keys, rows)
    many = rng.integers(0, MANY, rows) * (shape.keys // MANY)
    index = np.where(rng.random(rows) < _MANY_SHARE, many, ordinary)
    return pa.table(
        {
            "k": _keys(index),
            "at": pa.array(ts, pa.timestamp("us", "UTC")),
            "until": pa.array(exp, pa.timestamp("us", "UTC")),
            "a": rng.integers(0, 1 << 40, rows),
            "b": rng.random(rows),
            "v": _texts(rng, rows, shape.row_bytes - _FIXED_BYTES),
        },
    )


def _keys(index: NDArray[np.int64]) -> pa.Array:
    digits = (2 * index[:, None] // 10 ** np.arange(7, -1, -1)) % 10 + ord("0")
    prefix = np.broadcast_to(np.frombuffer(b"key-", np.uint8), (len(index), 4))
    return _fixed(np.concatenate([prefix, digits.astype(np.uint8)], axis=1))


def _texts(rng: np.random.Generator, rows: int, length: int) -> pa.Array:
    letters = np.random.default_rng(0).integers(ord("a"), ord("z") + 1, (_VOCABULARY, _WORD_BYTES), np.uint8)
    letters[:, -1] = ord(" ")
    words = rng.integers(0, _VOCABULARY, (rows, -(-length // _WORD_BYTES)))
    return _fixed(np.ascontiguousarray(letters[words].reshape(rows, -1)[:, :length]))


def _fixed(characters: NDArray[np.uint8]) -> pa.Array:
    """Return strings of equal length from a matrix of their bytes."""
    rows, length = characters.shape
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int64) * length)
    data = pa.py_buffer(np.ascontiguousarray(characters))
    return pa.Array.from_buffers(pa.large_string(), rows, [None, offsets, data]).cast(pa.string())
