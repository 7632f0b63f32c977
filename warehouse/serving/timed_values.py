"""Values of answers with a time limit: parts of groups, exact numbers and texts as Arrow columns, and bounds after rounding.

Nothing here loads pandas: at the end of the time there is none left for that.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from warehouse.errors import QueryError
from warehouse.promise.bounds import BoundedEstimate, Unread
from warehouse.promise.summaries import stored_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

__all__ = [
    "FLOATS",
    "exact_bound",
    "exact_number",
    "group_array",
    "in_range",
    "number_text",
    "numbers_of",
    "rounded_outward",
    "sort_value",
    "stored_values",
    "text_array",
    "widened_by_rounding",
]

FLOATS = ("FLOAT", "DOUBLE")
"""DuckDB's types of rounded numbers."""
_EXACT = Context(prec=60)
_NAN = float("nan")
_ROUNDING = 2.0**-40


def stored_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the parts of groups in the form of key summaries; all NaN are one value.

    Days and times stay whole numbers: an expression may give a value that Python's types do not hold.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import, needed only here

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return [_NAN if isinstance(part, float) and math.isnan(part) else stored_part(part) for part in column.to_pylist()]


def sort_value(part: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - any value of a group
    """Return the value by which a stored part of a group is sorted: NaN is the greatest number, decimals are no texts."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, needed only here

    if part is _NAN:
        return math.inf
    return Decimal(part) if part is not None and pa.types.is_decimal(kind) else part


def text_array(texts: Iterable[str | None]) -> pa.Array:
    """Return texts as a column; other ways to make one load pandas if it is installed."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, needed only here

    builder = pa.lib.StringBuilder()
    builder.append_values(texts)
    return builder.finish()


def numbers_of(column: pa.Array, kind: type[np.generic]) -> np.ndarray:
    """Return the numbers of a column without nulls; the conversion of PyArrow loads pandas."""
    if not len(column):
        return np.array([], kind)
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def group_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return stored parts of groups as a column of their own type, cast from texts."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, needed only here

    texts = text_array(None if value is None else str(value) for value in values)
    if pa.types.is_timestamp(kind):
        return texts.cast(pa.int64()).cast(pa.timestamp("us", kind.tz))
    return texts.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else texts.cast(kind)


def exact_number(value: Any) -> Any:  # noqa: ANN401 - a number, or the text of an exact one
    """Return a summand: 0 for None, a fraction for the text of an exact number, else the number."""
    return 0 if value is None else Fraction(value) if isinstance(value, str) else value


def exact_bound(value: Any) -> Any:  # noqa: ANN401 - a number
    """Return a bound as a fraction; None if there is no bound."""
    return None if value is None else Fraction(value)


def number_text(value: Any, kind: str) -> str | None:  # noqa: ANN401 - a number
    """Return a number as a text that the engine casts to a type; estimates are rounded to the type."""
    if value is None:
        return None
    if kind in FLOATS:
        return repr(float(value))
    if isinstance(value, Fraction):
        digits = int(kind.removeprefix("DECIMAL(").rstrip(")").split(",")[1]) if kind.startswith("DECIMAL") else 0
        exact = _EXACT.divide(Decimal(value.numerator), Decimal(value.denominator))
        return format(exact.quantize(Decimal(1).scaleb(-digits), context=_EXACT), "f")
    return str(value) if isinstance(value, (int, Decimal)) else repr(value)


def in_range(found: BoundedEstimate, named: str, kind: str, *, exact: bool) -> BoundedEstimate:
    """Return a sum and its bounds in the range of their type: the query without a time limit fails for other sums.

    Raises
    ------
    QueryError
        When the sum is ``exact``, and its type does not hold it.

    """
    most = _most(kind)
    if most is None:
        return found
    if exact and found.value is not None and abs(found.value) > most:
        raise QueryError(f"{named} does not fit {kind}; cast its argument to DOUBLE")
    parts = (found.value, found.low, found.high)
    return BoundedEstimate(*(None if part is None else max(-most, min(part, most)) for part in parts))


def _most(kind: str) -> Fraction | None:
    """Return the greatest number of an exact type that sums have; None for other types."""
    if kind == "HUGEINT":
        return Fraction(2**127 - 1)
    if not kind.startswith("DECIMAL("):
        return None
    digits, decimals = map(int, kind.removeprefix("DECIMAL(").rstrip(")").split(","))
    return Fraction(10**digits - 1, 10**decimals)


def rounded_outward(found: BoundedEstimate, values: np.ndarray) -> BoundedEstimate:
    """Widen the bounds of doubles by a step, since they are rounded; drop the bounds if a value is not a number."""
    if len(values) and math.isnan(values[-1]):  # the greatest
        return BoundedEstimate(found.value, None, None)
    if found.low == found.high:
        return found
    low = None if found.low is None else math.nextafter(found.low, -math.inf)
    high = None if found.high is None else math.nextafter(found.high, math.inf)
    return BoundedEstimate(found.value, low, high)


def widened_by_rounding(found: BoundedEstimate, read: float, facts: Sequence[Unread]) -> BoundedEstimate:
    """Return bounds that are widened by the largest rounding error: a sum of floats depends on their order."""
    values = [abs(read), *(max(abs(unread.low or 0), abs(unread.high or 0)) * unread.most for unread in facts)]
    slack = sum(values) * _ROUNDING
    if not math.isfinite(slack):
        return BoundedEstimate(found.value, None, None)
    return BoundedEstimate(
        found.value, None if found.low is None else found.low - slack, None if found.high is None else found.high + slack
    )
