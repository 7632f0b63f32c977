"""Converts nested values of Parquet, ORC and Avro to declared types; fields are found by their names, as in JSON.

Spark's cast of a structure takes the fields by position. So files that have them in another order would give swapped values.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from warehouse.ingest.columns import Input
from warehouse.ingest.conversion import from_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn

__all__ = ["instant", "is_nanoseconds", "nested_value"]

_Value = tuple["SparkColumn", "SparkColumn | None"]
"""A converted value, and whether it cannot be converted (None if each can be)."""


def nested_value(value: SparkColumn, kind: DataType, arrow: Any, declared: DataType) -> _Value:  # noqa: ANN401 - Arrow's
    """Return a value as the declared type, and a column that says whether a part of it cannot be converted; None if each can be.

    A missing field is null, an additional one is ignored. Names may differ in case if no other field differs in case only.

    Parameters
    ----------
    value
        The value.
    kind
        Its type, as Spark reads it.
    arrow
        Its type, as Arrow reads it: Spark reads a time in nanoseconds as a number. None if Arrow has another form of it.
    declared
        The declared type.

    """
    if isinstance(declared, StructType) and isinstance(kind, StructType):
        return _structure(value, kind, arrow, declared)
    if isinstance(declared, ArrayType) and isinstance(kind, ArrayType):
        element, of_arrow, wanted = kind.elementType, getattr(arrow, "value_type", None), declared.elementType
        converted = F.transform(value, lambda part: nested_value(part, element, of_arrow, wanted)[0])
        failed = F.exists(value, lambda part: _or_false(nested_value(part, element, of_arrow, wanted)[1]))
        return converted, F.coalesce(failed, F.lit(False))  # noqa: FBT003 - a literal
    if _is_nested(kind) or _is_nested(declared):
        if kind == declared:
            return value, None
        return F.lit(None).cast(declared), value.isNotNull()
    text = declared.simpleString()
    if kind.simpleString() == "bigint" and text != "bigint" and is_nanoseconds(arrow):
        local = arrow.tz is None
        return from_value(instant(value, local=local), "timestamp_ntz" if local else "timestamp", Input("", "", text))
    return from_value(value, kind.simpleString(), Input("", "", text))


def _structure(value: SparkColumn, kind: StructType, arrow: Any, declared: StructType) -> _Value:  # noqa: ANN401 - Arrow's
    numbered = StructType([StructField(f"_{number}", field.dataType) for number, field in enumerate(kind)])
    plain = value.cast(numbered)  # names that differ in case only would be ambiguous
    fields, failures = [], []
    for field in declared:
        place = _place(field.name, kind.names)
        if place is None:
            fields.append(F.lit(None).cast(field.dataType).alias(field.name))
            continue
        part = plain.getField(f"_{place}")
        of_arrow = arrow.field(place).type if getattr(arrow, "num_fields", 0) == len(kind) else None
        converted, failed = nested_value(part, kind[place].dataType, of_arrow, field.dataType)
        fields.append(converted.alias(field.name))
        failures += [] if failed is None else [failed]
    failed = reduce(lambda first, second: first | second, failures) if failures else None
    return F.when(value.isNotNull(), F.struct(*fields)), failed


def _place(name: str, names: Sequence[str]) -> int | None:
    """Return the place of a name; None if it is not there."""
    if name in names:
        return names.index(name)
    alike = [place for place, other in enumerate(names) if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _is_nested(kind: DataType) -> bool:
    return "<" in kind.simpleString()


def _or_false(failed: SparkColumn | None) -> SparkColumn:
    return F.lit(False) if failed is None else F.coalesce(failed, F.lit(False))  # noqa: FBT003 - literals


def is_nanoseconds(kind: Any) -> bool:  # noqa: ANN401 - Arrow's
    """Whether an Arrow type is a time in nanoseconds."""
    import pyarrow.types  # noqa: PLC0415 - only such landings need it

    return kind is not None and bool(pyarrow.types.is_timestamp(kind) and kind.unit == "ns")


def instant(nanoseconds: SparkColumn, *, local: bool) -> SparkColumn:
    """Return the time of a number of nanoseconds since 1970, of local time or of UTC; parts of a microsecond are cut."""
    micros = F.floor(nanoseconds / F.lit(1000).cast("decimal(4,0)")).cast("bigint")
    epoch = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
    return F.timestamp_add("MICROSECOND", micros, F.expr(epoch)) if local else F.timestamp_micros(micros)
