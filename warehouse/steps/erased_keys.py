"""Keys to erase: as a plan records them, as conditions for the engines, and as text may show them.

``K`` holds whole search keys or prefixes of them. A row is erased iff its search key begins with a member of K, an invalid
row iff its text, or the reason given for it, shows one.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from warehouse.aggregates.synopses import VALUE
from warehouse.serving.key_conditions import where_key
from warehouse.serving.keys import KeyColumn, keys_of, parse_key
from warehouse.serving.pruning import Keys
from warehouse.time import format_instant, to_datetime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.epochs.records import TableState
    from warehouse.planning.plan_record import Erasure
    from warehouse.serving.statement import Statement

__all__ = ["ErasedKeys", "Key", "erased_keys", "held_in", "key_columns", "keys_of_erasure"]

_ENGINE_TYPES = {"string": "VARCHAR", "byte": "TINYINT", "short": "SMALLINT", "int": "INTEGER", "long": "BIGINT"}
_TIMESTAMP = "TIMESTAMP WITH TIME ZONE"
Key = tuple[Any, ...]


@dataclass(frozen=True)
class ErasedKeys:
    """Keys of these columns (with DuckDB's types), in the form in which they are compared: timestamps are microseconds."""

    columns: tuple[KeyColumn, ...]
    keys: tuple[Key, ...]

    @property
    def selection(self) -> Keys:
        """The rows that begin with one of the keys."""
        return Keys(self.keys)

    @property
    def condition(self) -> Statement:
        """The condition on rows, in DuckDB's SQL."""
        return where_key(self.selection, self.columns)

    def within(self, state: TableState) -> ErasedKeys:
        """Return the same keys under the names of their columns in a table; if a column is missing, the names stay."""
        names = held_in(state, [column.name for column in self.columns]) or {}
        return replace(
            self, columns=tuple(KeyColumn(names.get(column.name, column.name), column.type) for column in self.columns)
        )

    def by_length(self) -> dict[int, list[Key]]:
        """Return the keys by their number of parts, as Spark takes the values."""
        grouped: dict[int, list[Key]] = {}
        for key in self.keys:
            parts = tuple(self._stored(part, column) for part, column in zip(key, self.columns, strict=False))
            grouped.setdefault(len(key), []).append(parts)
        return grouped

    @staticmethod
    def _stored(part: Any, column: KeyColumn) -> Any:  # noqa: ANN401 - any key value
        if column.type == _TIMESTAMP and part is not None:
            return to_datetime(part)
        return part

    def texts(self) -> tuple[tuple[str | None, ...], ...]:
        """Return the keys as texts, which :func:`keys_of_erasure` reads back."""
        return tuple(
            tuple(None if part is None else _text(part, column) for part, column in zip(key, self.columns, strict=False))
            for key in self.keys
        )

    def patterns(self) -> tuple[tuple[str, ...], ...]:
        r"""Return regular expressions, of Python's and of Java's dialect: a text shows a key when all of one tuple are found.

        A key is found only as a whole word: no ASCII letter or digit touches it. Keys that are all null occur in no text.

        >>> ErasedKeys((KeyColumn("k", "VARCHAR"),), (("N1",), ("N2",))).patterns()
        (('(?:(?<![0-9A-Za-z])N1(?![0-9A-Za-z])|(?<![0-9A-Za-z])N2(?![0-9A-Za-z]))',),)
        """
        shapes_of_keys = [
            [_shapes(part, column) for part, column in zip(key, self.columns, strict=False) if part is not None]
            for key in self.keys
        ]
        single = [shape for shapes in shapes_of_keys if len(shapes) == 1 for shape in shapes[0]]
        several = [tuple(_either(shape) for shape in shapes) for shapes in shapes_of_keys if len(shapes) > 1]
        return ((_either(single),), *several) if single else tuple(several)

    def hashes(self, table: str, salt: str) -> list[str]:
        """Return hashes that name the keys without revealing them: SHA-256 of the JSON array of salt, table and texts."""
        return [
            hashlib.sha256(json.dumps([salt, table, *parts], ensure_ascii=False).encode()).hexdigest() for parts in self.texts()
        ]


def held_in(state: TableState, key: Sequence[str]) -> dict[str, str] | None:
    """Return the columns of a table with a stream's key, by the key's columns; None if a column is missing.

    Tables that follow a stream have the key in their groups; synopses and answers also have it as counted values.
    """
    if state.synopsis is not None:
        synopsis, item = state.synopsis.synopsis, VALUE
        counted = synopsis.counted[0] if synopsis.counted else None
        groups = [name for name, _ in synopsis.group_by]
    elif state.answers is not None:
        definition, item = state.answers.definition, "item"
        counted = definition.frequent.column if definition.frequent else None
        groups = [name for name, _ in definition.group_by]
    elif state.coalesced is not None:  # a row holds the points of a group
        counted, item, groups = None, "", [*state.coalesced.definition.groups]
    else:
        counted, item, groups = None, "", [column.name for column in state.declaration.columns]
    columns = {name.lower(): name for name in groups}
    if counted is not None:
        columns.setdefault(counted.lower(), item)
    column_of = {name: columns.get(name.lower()) for name in key}
    present = {name: column for name, column in column_of.items() if column is not None}
    return present if len(present) == len(column_of) else None


def key_columns(columns: Sequence[ColumnRecord], search_key: Sequence[str]) -> tuple[KeyColumn, ...]:
    """Return a recorded search key with DuckDB's types.

    >>> key_columns([ColumnRecord("k", "timestamp")], ["k"])  # doctest: +SKIP
    (KeyColumn(name='k', type='TIMESTAMP WITH TIME ZONE'),)
    """
    types = {column.name.lower(): column.type for column in columns}
    return tuple(KeyColumn(name, _engine_type(types[name.lower()])) for name in search_key)


def _engine_type(kind: str) -> str:
    return _TIMESTAMP if kind == "timestamp" else _ENGINE_TYPES.get(kind, kind.upper())


def erased_keys(columns: Sequence[KeyColumn], given: Sequence[object]) -> ErasedKeys:
    """Return the keys that values spell: scalars, or tuples of parts.

    Raises
    ------
    UsageError
        When a value is not of its column's type.

    """
    return ErasedKeys(tuple(columns), keys_of(given, columns).keys)


def keys_of_erasure(erasure: Erasure) -> ErasedKeys | None:
    """Return the keys that a plan erases; None if it erases expired rows."""
    if not erasure.keys:
        return None
    columns = key_columns(erasure.key, [column.name for column in erasure.key])
    values = [
        tuple(None if text is None else parse_key(text, column.type) for text, column in zip(parts, columns, strict=False))
        for parts in erasure.keys
    ]
    return erased_keys(columns, values)


def _text(part: Any, column: KeyColumn) -> str:  # noqa: ANN401 - any key value
    if column.type == _TIMESTAMP:
        return format_instant(part)
    match part:
        case bool():
            return str(part).lower()
        case Decimal():
            return format(part, "f")
        case date():
            return part.isoformat()
        case _:
            return str(part)


def _shapes(part: Any, column: KeyColumn) -> list[str]:  # noqa: ANN401 - any key value
    """Return expressions of the ways in which a value is commonly written."""
    text = _text(part, column)
    match part:
        case str():
            variants = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], text.replace('"', '""')}
            return [_alone(re.escape(variant), variant) for variant in sorted(variants) if variant]
        case bool():
            return [_alone(f"(?i:{text})", text)]
        case int() if column.type == _TIMESTAMP:
            day, _, clock = text.removesuffix("Z").partition("T")
            return [_alone(f"{day}[T ]{re.escape(clock)}Z?", text)]
        case int() | Decimal():
            whole, _, decimals = text.removeprefix("-").partition(".")
            sign = "-" if text.startswith("-") else ""
            digits = decimals.rstrip("0")
            return [_alone(f"{sign}0*{whole.lstrip('0') or '0'}" + (f"\\.{digits}0*" if digits else "(?:\\.0*)?"), text)]
        case _:
            return [_alone(re.escape(text), text)]


def _alone(pattern: str, text: str) -> str:
    """Return the pattern with a check that no letter or digit touches it where it begins or ends with one."""
    before = "(?<![0-9A-Za-z])" if _is_word(text[0]) else ""
    return f"{before}{pattern}(?![0-9A-Za-z])" if _is_word(text[-1]) else f"{before}{pattern}"


def _is_word(letter: str) -> bool:
    return letter.isascii() and letter.isalnum()


def _either(patterns: Sequence[str]) -> str:
    return f"(?:{'|'.join(patterns)})"
