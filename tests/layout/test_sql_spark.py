"""The Spark SQL text of the formulas against the Python functions, on a real session."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from warehouse.layout import (
    Layout,
    exp_block,
    exp_block_sql,
    resolve,
    slot_sql,
    sub_index,
    sub_index_sql,
)
from warehouse.storage.arrow_types import local_frame
from warehouse.time import MICROSECOND, MINUTE, NEVER, slot

from .strategies import AXES, EXPIRATIONS, INSERTIONS, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEVER_SLOT = 70_000_000
ROWS = [
    *((a, a + lifetime, False) for a in range(-13, 40, 2) for lifetime in (1, 2, 5, 11, 12, 13, 30)),
    *((a, NEVER_SLOT, True) for a in (-40, -12, -1, 0, 1, 12, 13, 99)),
    *((a, a + 7, False) for a in (-(2**45), 2**45, 2**52 + 1)),
]
LAYOUTS: tuple[Layout, ...] = (
    *(plain(rows, columns, axis, 12, seed=3) for (rows, columns), axis in product([(3, 4), (5, 1)], AXES)),
    *(
        resolve(periods=12, label="WK", grid=(5, 3), expiry_block=5, insertion=insertion, expiration=expiration, base=9)
        for insertion, expiration in product(INSERTIONS, EXPIRATIONS)
    ),
    resolve(periods=12, label="MON"),
    resolve(periods=1, label="WK"),
)


def test_sql_is_the_formula(spark: SparkSession) -> None:
    """Sub-index and expiry block are equal in Spark and in Python for every assignment, including negative slots."""
    frame = local_frame(spark, ROWS, "a bigint, b bigint, forever boolean")
    for first in range(0, len(LAYOUTS), 6):
        chosen = LAYOUTS[first : first + 6]
        columns = [
            text
            for number, layout in enumerate(chosen)
            for text in (
                f"{sub_index_sql(layout, 'a', 'b', 'forever')} AS s{number}",
                f"{exp_block_sql(layout, 'a', 'b', 'forever')} AS x{number}",
            )
        ]
        values = frame.selectExpr("a", "b", "forever", *columns)
        assert dict(values.dtypes)["s0"] == "int"
        assert dict(values.dtypes)["x0"] == "bigint"
        for line in values.collect():
            for number, layout in enumerate(chosen):
                expected = (
                    sub_index(layout, line.a, line.b, never=line.forever),
                    exp_block(layout, line.a, line.b, never=line.forever),
                )
                assert (line[f"s{number}"], line[f"x{number}"]) == expected, (layout, line)


def test_arguments_may_be_expressions(spark: SparkSession) -> None:
    """The arguments may be any expressions; columns called like the text's own names are no matter."""
    layout = resolve(periods=12, label="WK", insertion="permuted", expiration="permuted", seed=5)
    frame = local_frame(spark, [(4, 9, 2)], "part bigint, digest bigint, x bigint")
    text = sub_index_sql(layout, "part - x * 3", "digest - x", "x = 1 OR false")
    assert frame.selectExpr(f"{text} AS s").collect()[0].s == sub_index(layout, -2, 7)
    moved = replace(layout, base=100)
    moved_sql = sub_index_sql(moved, "CAST(part AS INT)", "CAST(digest AS INT)", "false")
    assert frame.selectExpr(f"{moved_sql} AS s").collect()[0].s == sub_index(moved, 4, 9)


def test_slots_in_sql(spark: SparkSession) -> None:
    """The slot of an instant in Spark equals that in Python: around the anchor, on and off the grid, and never."""
    anchor, interval = 1_356_998_400 * 10**6, 5 * MINUTE
    instants = [anchor + n * interval + off for n in (-700_000, -1, 0, 1, 3) for off in (-MICROSECOND, 0, MICROSECOND)]
    instants += [0, -1, NEVER]
    frame = local_frame(spark, [(micros,) for micros in instants], "micros bigint")
    for at, step in ((anchor, interval), (-anchor, 7 * MICROSECOND), (0, 1)):
        values = frame.selectExpr("micros", f"{slot_sql('timestamp_micros(micros)', at, step)} AS slot").collect()
        assert [line.slot for line in values] == [slot(line.micros, at, step) for line in values]
