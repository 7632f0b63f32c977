"""Key summaries: a few bytes that give the number of rows of each search key in a data file.

Invariant, for a file with rows R and a summary (rows, counts, rest):

    rows = #R    and    counts[k] = #{ r in R : r.key = k } for each k in counts    and    rest = rows - sum(counts)

If all keys fit, they are listed and ``rest`` is 0: the summary is *exact*. Otherwise the most frequent ones are listed, and
``rest`` counts the rows of all others. A key that is not listed has at most ``rest`` rows. Summaries are linear: the summary of
two files together is the sum of theirs, so a window's summary is the sum over its files, and no file is opened. Summaries count
stored rows, also dead ones.

Source: promising-tuples sheet, 3.1, 3.3 (exact tables, one-sided rule), 11 (summary table).
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import xxhash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from warehouse.promise.presence import Parts

__all__ = ["LEAST_COUNT", "Key", "KeySummary", "decode", "encode", "join_bounds", "most_frequent", "stored_part", "total"]

Key = tuple[Any, ...]

_MAGIC = b"KS1\n"
_SUM_BYTES = 8
_EPOCH = date(1970, 1, 1).toordinal()
_DIFFERENCE_LIMIT = 1 << 62
_EXACT = Context(prec=80)
_SAMPLE = 512
"""Number of keys that are encoded to estimate how many fit."""
_EXCESS = 2
"""If a file has more keys than those that fit times this factor, only the most frequent keys are encoded."""
LEAST_COUNT = 2
"""The least count of a listed key if not all keys fit; a key with a single row is not frequent."""


@dataclass(frozen=True)
class KeySummary:
    """The rows of each search key in some data files.

    Attributes
    ----------
    rows
        The number of all rows.
    counts
        The number of rows of each listed key. A key has all its parts, as :func:`stored_part` returns them.

    """

    rows: int
    counts: Mapping[Key, int]

    @cached_property
    def rest(self) -> int:
        """The number of rows whose keys are not listed."""
        return self.rows - sum(self.counts.values())

    @property
    def exact(self) -> bool:
        """Whether every key is listed."""
        return self.rest == 0

    def between(self, prefix: Key) -> tuple[int, int]:
        """Return the least and the greatest number of rows whose key begins with these parts.

        >>> KeySummary(9, {("a",): 4, ("b",): 3}).between(("a",)), KeySummary(7, {("a",): 4, ("b",): 3}).between(("c",))
        ((4, 6), (0, 0))
        """
        least = self.counts.get(prefix, 0)
        if not least:
            width = len(prefix)
            least = sum(count for key, count in self.counts.items() if key[:width] == prefix)
        return least, least + self.rest

    def __add__(self, other: KeySummary) -> KeySummary:
        """Return the summary of the files of both summaries."""
        return KeySummary(self.rows + other.rows, dict(Counter(self.counts) + Counter(other.counts)))

    def __sub__(self, other: KeySummary) -> KeySummary:
        """Return the summary without files that were added before."""
        return KeySummary(self.rows - other.rows, dict(Counter(self.counts) - Counter(other.counts)))


def total(summaries: Iterable[KeySummary]) -> KeySummary:
    """Return the summary of the files of all summaries.

    >>> total([KeySummary(3, {("a",): 2, ("b",): 1}), KeySummary(5, {("a",): 5})]).counts
    {('a',): 7, ('b',): 1}
    """
    counts: Counter[Key] = Counter()
    rows = 0
    for summary in summaries:
        rows += summary.rows
        counts.update(summary.counts)
    return KeySummary(rows, dict(counts))


def join_bounds(left: KeySummary, right: KeySummary) -> tuple[int, int]:
    """Return a lower and an upper bound of the pairs of rows with the same key; null matches no key.

    If one side does not list a row's key, the row may have as many partners as the most frequent key of the other side.
    """
    pairs = sum(count * right.counts.get(key, 0) for key, count in left.counts.items() if None not in key)
    most_left, most_right = (max(summary.counts.values(), default=0) + summary.rest for summary in (left, right))
    unlisted = left.rest * most_right + right.rest * most_left
    return pairs, min(pairs + unlisted, left.rows * right.rows)


def stored_part(part: Any) -> Any:  # noqa: ANN401 - any key value
    """Return a part of a key as summaries store it: days for dates, text for decimals. Timestamps are given as microseconds.

    A decimal without a fraction is a whole number, and other decimals have no trailing zeros: a column that gets a wider type,
    for example another scale, keeps its keys.

    >>> stored_part(date(1970, 1, 2)), stored_part(Decimal("1.50")), stored_part(Decimal("2.00")), stored_part(None)
    (1, '1.5', 2, None)
    """
    match part:
        case Decimal():
            short = _EXACT.normalize(part)
            is_whole = short == short.to_integral_value(context=_EXACT)
            return int(short) if is_whole and -2 * _DIFFERENCE_LIMIT <= short < 2 * _DIFFERENCE_LIMIT else format(short, "f")
        case date():
            return part.toordinal() - _EPOCH
        case _:
            return part


# --- bytes ---


def encode(rows: int, columns: Sequence[Parts], counts: Sequence[int], most_bytes: int) -> bytes | None:
    """Return a summary within a number of bytes, with fewer keys if necessary; None: no key would be left.

    Parameters
    ----------
    rows
        The number of rows of the file.
    columns
        The parts of its distinct keys, a list for each column of the search key, in the order of keys; 64-bit integers may be an
        array.
    counts
        The number of rows of each key.
    most_bytes
        The greatest length of the result, in bytes.

    """
    if len(counts) > _EXCESS * _SAMPLE:
        sample = _encode(rows, [column[:_SAMPLE] for column in columns], counts[:_SAMPLE])
        fitting = most_bytes * _SAMPLE // len(sample)
        if fitting * _EXCESS < len(counts):  # not all keys would fit
            positions = most_frequent(counts, fitting)
            if not positions:
                return None
            columns, counts = [_selected(column, positions) for column in columns], [counts[position] for position in positions]
    content = _encode(rows, columns, counts)
    while len(content) > most_bytes:
        fewer = min(len(counts) * most_bytes // (len(content) + 1), len(counts) - 1)
        positions = most_frequent(counts, fewer)
        if not positions:
            return None
        columns, counts = [_selected(column, positions) for column in columns], [counts[position] for position in positions]
        content = _encode(rows, columns, counts)
    return content


def most_frequent(counts: Sequence[int], keys: int) -> list[int]:
    """Return the positions of the largest counts, at most ``keys`` of them, in ascending order; counts of 1 are left out."""
    ranked = sorted(range(len(counts)), key=lambda position: -counts[position])[: max(keys, 0)]
    return sorted(position for position in ranked if counts[position] >= LEAST_COUNT)


def _encode(rows: int, columns: Sequence[Parts], counts: Sequence[int]) -> bytes:
    body = zlib.compress(msgspec.msgpack.encode((rows, [_as_differences(column) for column in columns], counts)), 6)
    return _MAGIC + xxhash.xxh3_64_digest(body) + body


def _selected(column: Parts, positions: Sequence[int]) -> Parts:
    import numpy as np  # noqa: PLC0415 - reading does not need it

    return column[list(positions)] if isinstance(column, np.ndarray) else [column[position] for position in positions]


def _as_differences(values: Parts) -> tuple[bool, Sequence[Any]]:
    """Return whole numbers as differences where these fit into 64 bits, and other values as they are."""
    import numpy as np  # noqa: PLC0415 - as above

    if isinstance(values, np.ndarray):
        if len(values) and values.min() >= -_DIFFERENCE_LIMIT and values.max() < _DIFFERENCE_LIMIT:
            return True, [int(values[0]), *np.diff(values).tolist()]
        return False, values.tolist()
    if values and all(type(value) is int and -_DIFFERENCE_LIMIT <= value < _DIFFERENCE_LIMIT for value in values):
        return True, [values[0], *(later - earlier for earlier, later in pairwise(values))]
    return False, values


def decode(content: bytes) -> KeySummary | None:
    """Return the summary that :func:`encode` encoded; None if the bytes are damaged."""
    body = content[len(_MAGIC) + _SUM_BYTES :]
    if not content.startswith(_MAGIC) or content[len(_MAGIC) :][:_SUM_BYTES] != xxhash.xxh3_64_digest(body):
        return None
    try:
        rows, columns, counts = msgspec.msgpack.decode(zlib.decompress(body))
    except (zlib.error, msgspec.MsgspecError, ValueError):
        return None
    parts = [list(accumulate(values)) if differences else values for differences, values in columns]
    return KeySummary(rows, dict(zip(zip(*parts, strict=True), counts, strict=True)))
