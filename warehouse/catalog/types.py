"""Column types: parses Spark SQL text, and writes the canonical text and the schema type of Delta's log.

Only types that keep the table protocol at reader 1 / writer 2, and that Spark, delta-rs
and DuckDB read alike, exist here.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

from warehouse.catalog.spelling import FaultError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ALLOWED",
    "Array",
    "AtomicType",
    "Decimal",
    "Field",
    "SqlType",
    "Struct",
    "canonical",
    "delta_type",
    "is_key_type",
    "parse_type",
    "unusable_name",
    "widens",
]


ALLOWED = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), string, binary, date, timestamp, "
    "array<...>, struct<name:type,...>"
)
"""The allowed types, for error messages."""

_DELTA_NAMES = {
    "boolean": "boolean",
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
}
_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
}
_REFUSED = {
    "timestamp_ntz": "timestamp (text without an offset is read in the stream's timezone)",
    "variant": "string, or struct<...> with the fields that are used",
    "interval": "bigint, e.g. seconds, added with timestampadd(SECOND, column, ts)",
    "map": "array<struct<key:...,value:...>>",
    "char": "string",
    "character": "string",
    "varchar": "string",
    "text": "string",
    "uuid": "string",
    "json": "string",
    "time": "string, or bigint microseconds",
    "datetime": "timestamp",
    "timestamptz": "timestamp",
    "bool": "boolean",
    "hugeint": "decimal(38,0)",
    "void": "the type of the values to come",
    "null": "the type of the values to come",
}
_KEY_TYPES = frozenset({"string", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "boolean"})
_MAX_PRECISION = 38
_MAX_DIGITS = 9
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([^\W\d]\w*)|(\d+)|([<>(),:])|(\S))")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Delta refuses the first nine in names without column mapping; settings and statistics name columns by dotted paths.
_MAX_NAME = 255
_MAX_DEPTH = 32
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of characters that control a terminal, or make a text look different from its content."""
_NAME_FAULTS = set(" ,;{}()\n\t=.`\"'\r\0")


@dataclass(frozen=True)
class AtomicType:
    """A type without parameters, by its canonical name."""

    name: str


@dataclass(frozen=True)
class Decimal:
    """An exact number of ``precision`` digits, ``scale`` of them after the point."""

    precision: int
    scale: int


@dataclass(frozen=True)
class Array:
    """Elements of one type, null allowed."""

    element: SqlType


@dataclass(frozen=True)
class Field:
    """A named part of a struct."""

    name: str
    type: SqlType


@dataclass(frozen=True)
class Struct:
    """Named parts."""

    fields: tuple[Field, ...]


SqlType: TypeAlias = "AtomicType | Decimal | Array | Struct"


def parse_type(text: str) -> SqlType:
    """Return the type that the text of a Spark SQL type describes; aliases and case do not matter.

    Raises
    ------
    FaultError
        With a valid type to write instead.

    Examples
    --------
    >>> canonical(parse_type("ARRAY<STRUCT<a: Integer, b DEC(5)>>"))
    'array<struct<a:int,b:decimal(5,0)>>'

    """
    parser = _Parser(text)
    parsed = parser.type()
    parser.end()
    return parsed


def canonical(kind: SqlType) -> str:
    """Return the canonical lower-case text of a type; names of struct fields keep their case."""
    match kind:
        case AtomicType(name):
            return name
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(element):
            return f"array<{canonical(element)}>"
        case Struct(fields):
            return f"struct<{','.join(f'{_quoted(field.name)}:{canonical(field.type)}' for field in fields)}>"
        case _:
            assert_never(kind)


def delta_type(kind: SqlType | str) -> object:
    """Return a type as a Delta (and Spark) schema has it, in values of JSON; every part may be null.

    Parameters
    ----------
    kind
        A type, or its Spark SQL text.

    Examples
    --------
    >>> delta_type("bigint"), delta_type("array<int>")
    ('long', {'type': 'array', 'elementType': 'integer', 'containsNull': True})

    """
    parsed = parse_type(kind) if isinstance(kind, str) else kind
    match parsed:
        case AtomicType(name):
            return _DELTA_NAMES[name]
        case Decimal():
            return canonical(parsed)
        case Array(element):
            return {"type": "array", "elementType": delta_type(element), "containsNull": True}
        case Struct(fields):
            listed = [
                {"name": field.name, "type": delta_type(field.type), "nullable": True, "metadata": {}}
                for field in fields
            ]
            return {"type": "struct", "fields": listed}
        case _:
            assert_never(parsed)


def is_key_type(kind: SqlType) -> bool:
    """Whether a column of this type can be part of a search key."""
    return isinstance(kind, Decimal) or (isinstance(kind, AtomicType) and kind.name in _KEY_TYPES)


def unusable_name(name: str) -> str | None:
    """Return why a column or field name cannot be stored, or None.

    >>> unusable_name("a b")
    "the character ' '"
    """
    if not name:
        return "an empty name"
    if len(name) > _MAX_NAME:
        return f"{len(name)} characters (at most {_MAX_NAME} are kept)"
    bad = sorted(_NAME_FAULTS.intersection(name)) + [sign for sign in name if unicodedata.category(sign) in _CONTROL_CATEGORIES]
    return f"the character {bad[0]!a}" if bad else None


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name}`"


class _Parser:
    """Recursive descent over the tokens of one type text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [next(part for part in match.groups() if part) for match in _TOKEN.finditer(text)]
        self._position = 0
        self._depth = 0

    def type(self) -> SqlType:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise FaultError("a type nested too deeply", f"arrays and structs at most {_MAX_DEPTH} levels deep")
        parsed = self._type()
        self._depth -= 1
        return parsed

    def _type(self) -> SqlType:
        word = self._next("a type").lower()
        name = _ALIASES.get(word, word)
        if name in _DELTA_NAMES:
            return AtomicType(name)
        match name:
            case "decimal":
                return self._decimal()
            case "array":
                return Array(self._element())
            case "struct":
                return self._struct()
        raise self._refusal(word)

    def end(self) -> None:
        if self._position < len(self._tokens):
            raise FaultError(f'"{self._tokens[self._position]}" after the type "{self._text}"', "one type: " + ALLOWED)

    def _refusal(self, word: str) -> FaultError:
        if word in _REFUSED:
            return FaultError(f'the type "{word}"', f"{_REFUSED[word]} in its place")
        names = [*_DELTA_NAMES, *_ALIASES, "decimal", "array", "struct"]
        return FaultError(f'the type "{word}"', ALLOWED, nearest(word, names))

    def _decimal(self) -> Decimal:
        precision, scale = 10, 0
        if self._peek() == "(":
            self._position += 1
            precision = self._number()
            if self._peek() == ",":
                self._position += 1
                scale = self._number()
            self._expect(")")
        if not (1 <= precision <= _MAX_PRECISION and scale <= precision):
            allowed = f"decimal(p,s) with p from 1 to {_MAX_PRECISION}, s from 0 to p"
            raise FaultError(f"decimal({precision},{scale})", allowed)
        return Decimal(precision, scale)

    def _element(self) -> SqlType:
        self._expect("<")
        element = self.type()
        self._expect(">")
        return element

    def _struct(self) -> Struct:
        self._expect("<")
        fields = tuple(self._fields())
        lower = [field.name.lower() for field in fields]
        if repeated := next((name for name in lower if lower.count(name) > 1), None):
            raise FaultError(f'the field "{repeated}" twice', "field names that are unique ignoring case")
        return Struct(fields)

    def _fields(self) -> Iterator[Field]:
        while True:
            name = self._next("a field name")
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            elif not (name[0].isalpha() or name[0] == "_"):
                raise FaultError(f'"{name}" in "{self._text}"', "struct<name:type,...>")
            if reason := unusable_name(name):
                raise FaultError(f'{reason} in the field name "{name}"', "letters, digits and underscores")
            if self._peek() == ":":
                self._position += 1
            yield Field(name, self.type())
            if self._peek() != ",":
                break
            self._position += 1
        self._expect(">")

    def _peek(self) -> str | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _next(self, wanted: str) -> str:
        token = self._peek()
        if token is None:
            raise FaultError(f'"{self._text}", which ends where {wanted} is due', ALLOWED)
        self._position += 1
        return token

    def _number(self) -> int:
        token = self._next("a number")
        if not token.isdecimal() or len(token) > _MAX_DIGITS:
            raise FaultError(f'"{token}" in "{self._text}"', "decimal(p,s) with two numbers")
        return int(token)

    def _expect(self, symbol: str) -> None:
        token = self._next(f'"{symbol}"')
        if token != symbol:
            raise FaultError(f'"{token}" in "{self._text}" where "{symbol}" is due', ALLOWED)


# --- which type can represent every value of another: to these a column may change without a change of values ---

_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Integer types with the decimal digits that their values have at the most."""
_DOUBLE_HOLDS = ("tinyint", "smallint", "int", "float")
_FLOAT_HOLDS = ("tinyint", "smallint")


def widens(old: str, new: str) -> bool:
    """Whether the type ``new`` can represent every value of the type ``old`` exactly; both are canonical texts.

    >>> widens("int", "bigint"), widens("bigint", "int"), widens("int", "decimal(10,0)"), widens("bigint", "double")
    (True, False, True, False)
    """
    narrow, wide = parse_type(old), parse_type(new)
    if isinstance(narrow, Decimal) and isinstance(wide, Decimal):
        return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale and narrow != wide
    if not isinstance(narrow, AtomicType):
        return False
    if isinstance(wide, Decimal):
        digits = _INTEGERS.get(narrow.name)
        return digits is not None and wide.precision - wide.scale >= digits
    if not isinstance(wide, AtomicType):
        return False
    if narrow.name in _INTEGERS and wide.name in _INTEGERS:
        return _INTEGERS[wide.name] > _INTEGERS[narrow.name]
    exact_types = {"double": _DOUBLE_HOLDS, "float": _FLOAT_HOLDS}
    return narrow.name in exact_types.get(wide.name, ())
