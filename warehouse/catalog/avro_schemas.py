"""Translates the schema of an Avro file into columns with the Arrow types that Spark reads.

A union with null is a value that may be missing. A union of int and long is a long, one of float and double a double. Any other
union is a struct of ``member0``, ``member1``, ..., in which one field has a value. Text, enumerations and UUIDs are text; a time
of day is a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["arrow_schema", "has_union", "without_logical_types"]

_MOST_DIGITS = 38
_MOST_PARTS = 10_000
"""Upper bound of the types in a schema. A named type counts at each use, since a few lines can use a name any number of times."""
_UNION = b"choice"
"""Marks the fields of a union of several types."""
_NAMED = ("record", "error", "enum", "fixed")
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def arrow_schema(schema: Any) -> Any:  # noqa: ANN401 - of Avro, and of Arrow
    """Return the columns of a file as a schema of Arrow.

    Raises
    ------
    ValueError
        When Spark reads no file of that schema.

    """
    import pyarrow as pa  # noqa: PLC0415 - only Avro landings need it

    if not isinstance(schema, dict) or schema.get("type") not in ("record", "error"):
        raise ValueError("its schema is no record, so its values have no columns")
    try:
        return pa.schema(list(_Types().fields(schema)))
    except RecursionError as error:
        raise ValueError("its schema is too deep") from error


def _branches(union: list[Any]) -> list[Any]:
    """Return the branches of a union without null."""
    return [branch for branch in union if _kind(branch) != "null"]


def has_union(kind: Any) -> bool:  # noqa: ANN401 - of Arrow
    """Whether a type of :func:`arrow_schema` is, or contains, a union of several types."""
    import pyarrow.types as at  # noqa: PLC0415 - only Avro landings need it

    if not at.is_nested(kind):
        return False
    inner = [kind.field(number) for number in range(kind.num_fields)]
    return any(_UNION in (field.metadata or {}) or has_union(field.type) for field in inner)


def without_logical_types(schema: Any, kept: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - of Avro
    """Return a schema without its logical types except those in ``kept``, so that, for example, times are read as numbers."""
    match schema:
        case list():
            return [without_logical_types(branch, kept) for branch in schema]
        case dict():
            left = {key: value for key, value in schema.items() if key != "logicalType" or value in kept}
            for key in ("items", "values", "type"):
                if isinstance(left.get(key), (dict, list)):
                    left[key] = without_logical_types(left[key], kept)
            if "fields" in left:
                left["fields"] = [{**field, "type": without_logical_types(field["type"], kept)} for field in left["fields"]]
            return left
    return schema


def _kind(schema: Any) -> str:  # noqa: ANN401 - of Avro
    while isinstance(schema, dict):
        schema = schema["type"]
    return schema if isinstance(schema, str) else "union"


class _Types:
    """Translates the types of one file; it knows the named types so far, and the records that the current type is inside."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._open_records: list[str] = []
        self._parts = 0

    def fields(self, record: Mapping[str, Any]) -> Any:  # noqa: ANN401 - fields of Arrow
        """Return the fields of a record.

        Raises
        ------
        ValueError
            When Spark cannot read such a record.

        """
        import pyarrow as pa  # noqa: PLC0415 - as above

        name = str(record["name"])
        if name in self._open_records:
            raise ValueError(f"its record {name} holds itself, of which Spark makes no column")
        self._open_records.append(name)
        fields = [pa.field(field["name"], self._type(field["type"])) for field in record["fields"]]
        self._open_records.pop()
        return fields

    def _type(self, schema: Any) -> Any:  # noqa: ANN401 - of Avro, and of Arrow
        import pyarrow as pa  # noqa: PLC0415 - as above

        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise ValueError(f"its schema has more than {_MOST_PARTS} parts")
        if isinstance(schema, list):
            return self._union(_branches(schema))
        if isinstance(schema, str):
            return self._type(self._named[schema]) if schema in self._named else _plain(schema)
        kind = schema["type"]
        if kind in _NAMED:
            self._named[str(schema["name"])] = schema
        match kind:
            case "record" | "error":
                return pa.struct(self.fields(schema))
            case "array":
                items = self._type(schema["items"])
                if _takes_no_bytes(items):
                    raise ValueError("it has an array of values that take no bytes, of which a few bytes could hold any number")
                return pa.list_(items)
            case "map":
                return pa.map_(pa.string(), self._type(schema["values"]))
            case "enum":
                return pa.string()
            case "fixed" if not schema["size"]:
                raise ValueError("it has values of a type that takes no bytes, of which a few bytes could hold any number")
            case "fixed" | "bytes" | "int" | "long":
                return _logical(schema) or (pa.binary() if kind in ("fixed", "bytes") else _plain(kind))
        return self._type(kind)

    def _union(self, inner: list[Any]) -> Any:  # noqa: ANN401 - of Avro, and of Arrow
        import pyarrow as pa  # noqa: PLC0415 - as above

        if not inner:
            return pa.null()
        wider = _WIDER.get(frozenset(map(_kind, inner)))
        if wider is not None:
            return _plain(wider)
        kinds = [self._type(branch) for branch in inner]
        if len(kinds) == 1:
            return kinds[0]
        return pa.struct([pa.field(f"member{number}", kind, metadata={_UNION: b""}) for number, kind in enumerate(kinds)])


def _takes_no_bytes(kind: Any) -> bool:  # noqa: ANN401 - of Arrow
    import pyarrow.types as at  # noqa: PLC0415 - as above

    return bool(at.is_null(kind)) or (at.is_struct(kind) and all(_takes_no_bytes(field.type) for field in kind))


def _plain(kind: str) -> Any:  # noqa: ANN401 - of Arrow
    import pyarrow as pa  # noqa: PLC0415 - as above

    types = {
        "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
        "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(),
    }  # fmt: skip
    return types[kind]


def _logical(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of Arrow
    """Return the type of a number or bytes with a logical type; None if Spark does not know it."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    logical, kind = schema.get("logicalType"), schema["type"]
    if logical == "decimal" and kind in ("bytes", "fixed"):
        if schema["precision"] > _MOST_DIGITS:
            raise ValueError(f"it has decimals of {schema['precision']} digits, and Spark has {_MOST_DIGITS}")
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if logical == "date" and kind == "int":
        return pa.date32()
    units = {"millis": "ms", "micros": "us", "nanos": "ns"}
    name, _, unit = str(logical).rpartition("-")
    if kind == "long" and unit in units and name in ("timestamp", "local-timestamp"):
        return pa.timestamp(units[unit], "UTC" if name == "timestamp" else None)
    return None
