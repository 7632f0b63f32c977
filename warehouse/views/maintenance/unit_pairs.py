"""The pairs of a join by unit: how many pairs each unit has, counted without making them, and the results of parts of units."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.layout.columns import OWED_RESULT
from warehouse.promise.allocation import Worth
from warehouse.promise.units import BUCKETS, COUNTED, FIRST, LAST, Position, Unit
from warehouse.storage.arrow_types import can_be_collected, frame_of
from warehouse.storage.failures import first_line
from warehouse.views.algebra import Filter, Join, key_names
from warehouse.views.costs.chosen_order import connecting
from warehouse.views.language.budgets import without_failures
from warehouse.views.maintenance.cache import FEW
from warehouse.views.maintenance.inputs import NodeTable, user_columns
from warehouse.views.maintenance.joins import joined
from warehouse.views.maintenance.pipelines import CARRIED, LOADED, PLACE, UNIT, over, relation
from warehouse.views.maintenance.set_aside import GONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, Row

    from warehouse.promise.units import Ledger, OwedRange
    from warehouse.views.algebra import Operator
    from warehouse.views.maintenance.inputs import NodeInputs
    from warehouse.views.maintenance.set_aside import SetAside

__all__ = ["BUCKET", "Part", "StoppedUnit", "UnitCounts", "UnitPairs"]

BUCKET = "_bucket"
"""The column with the bucket of a left row's key."""
_ROW = "_row"


@dataclass(frozen=True)
class Part:
    """The part of one unit that a round makes: at most ``quota`` results from ``begin`` up to ``end``, or the ``whole`` unit."""

    unit: Unit
    begin: Position
    end: int
    quota: int
    whole: bool

    @property
    def share(self) -> float:
        """The share of the unit's places that the part covers."""
        return (self.end - self.begin.place + 1) / (LAST - FIRST + 1)


@dataclass(frozen=True)
class StoppedUnit:
    """The progress of a round in a unit: how many results were found and made, and the position of the last one made."""

    found: int
    made: int
    last: Position


def _stopped(parts: Sequence[Part], rows: Iterable[Mapping[str, int]]) -> dict[Unit, StoppedUnit]:
    """Return the progress of each part, from the rows of its results."""
    last: dict[int, Mapping[str, int]] = {}
    made: Counter[int] = Counter()
    for row in rows:
        made[row[UNIT]] += 1
        if row[UNIT] not in last or row["_rank"] > last[row[UNIT]]["_rank"]:
            last[row[UNIT]] = row
    return {
        parts[number].unit: StoppedUnit(
            row["_found"], made[number], Position(row[PLACE], row[_ROW], row["_rank"] - row["_first"] + 1)
        )
        for number, row in last.items()
    }


@dataclass(frozen=True)
class UnitCounts:
    """Counts of the units of a join, of the pairs of slots later than the ledger's, and of all pairs."""

    units: Mapping[Unit, Worth]
    later: Worth
    exact: int


@dataclass(frozen=True, eq=False)
class UnitPairs:
    """A node's join, cut into the units of a ledger, and the expression by which they are preferred.

    With rows that are set ``aside`` the units have pairs that have ended, too; ``known`` ranges were owed before.
    """

    inputs: NodeInputs
    ledger: Ledger
    expression: str | None = None
    aside: SetAside | None = None
    known: int = 0

    @property
    def ranges(self) -> Sequence[OwedRange]:
        """The ranges of load slots."""
        return self.ledger.ranges

    @property
    def _later(self) -> int:
        return 2 * len(self.ranges) + 2

    @property
    def core(self) -> Join:
        """The join."""
        return cast("Join", self.inputs.core)

    @property
    def bare(self) -> bool:
        """Whether each pair of rows with equal keys is a result."""
        return self.core.where is None and not any(isinstance(operator, Filter) for operator in _above(self.inputs.node.operator))

    @property
    def on(self) -> list[tuple[str, str]]:
        """The columns that are equal."""
        return connecting(self.core, {0}, 1)

    @cached_property
    def left(self) -> DataFrame:
        """The live rows of the left input, with their load slot, the bucket of their key and their place in a unit."""
        keys = ", ".join(quoted(name) for name, _ in self.on)
        return self.with_bucket(self._rows(0, GONE)).selectExpr("*", f"xxhash64({keys}, _ts, _exp, {LOADED}) AS {PLACE}")

    def with_bucket(self, rows: DataFrame) -> DataFrame:
        """Return rows of the left input with the bucket of their key."""
        keys = ", ".join(quoted(name) for name, _ in self.on)
        return rows.selectExpr("*", f"CAST(pmod(xxhash64({keys}), {BUCKETS}L) AS INT) AS {BUCKET}")

    @cached_property
    def right(self) -> DataFrame:
        """The live rows of the right input, with their load slot."""
        return self._rows(1, f"{GONE}_right").withColumnRenamed(LOADED, f"{LOADED}_right")

    def _rows(self, number: int, gone_column: str) -> DataFrame:
        """Return the live rows of an input and rows that are set aside, with the instant of their end (null: the row lives)."""
        live = self._live(number)
        if self.aside is None:
            return live
        rows = live.withColumn(GONE, F.expr("CAST(NULL AS BIGINT)")).unionByName(self.aside.rows(number))
        return rows.withColumnRenamed(GONE, gone_column)

    def _live(self, number: int) -> DataFrame:
        rows = relation(self.core.inputs[number], self.inputs.tables, NodeTable.live_now_with_slots)
        return rows.where(f"_exp > _ts AND unix_micros(_exp) > {self.inputs.move.now}L")

    def counted(self) -> UnitCounts:
        """Return the counts of each unit; units without a pair are left out."""
        keys = [f"_key_{number}" for number in range(len(self.on))]
        left = self._by_key(self.left, [name for name, _ in self.on], LOADED, "left_count", [BUCKET])
        right = self._by_key(self.right, [name for _, name in self.on], f"{LOADED}_right", "right_count", [])
        renamed = {"_class": "_class_right", "_rows": "_rows_right", **{key: f"{key}_right" for key in keys}}
        right = right.withColumnsRenamed(renamed)
        equal = " AND ".join(f"{key} = {key}_right" for key in keys)
        pairs = left.join(right, F.expr(equal)).withColumn("_unit", F.expr("greatest(_class, _class_right)"))
        by_key = pairs.groupBy(*keys, BUCKET, "_unit").agg(
            F.expr("sum(_rows * _rows_right) AS _pairs"),
            F.expr(f"{_distinct('_class', '_rows')} AS _left"),
            F.expr(f"{_distinct('_class_right', '_rows_right')} AS _right"),
            F.expr("max(left_count) AS left_count"),
            F.expr("max(right_count) AS right_count"),
        )
        worths = [
            (unit_class, bucket, Worth(pairs, left + right, value, right))
            for unit_class, bucket, pairs, left, right, value in self._summed(by_key, keys)
        ]
        later = [worth for unit_class, _, worth in worths if unit_class == self._later]
        return UnitCounts(
            {Unit(unit_class // 2, bucket): worth for unit_class, bucket, worth in worths if unit_class % 2},
            Worth(sum(worth.pairs for worth in later), sum(worth.rows for worth in later)),
            sum(worth.pairs for _, _, worth in worths),
        )

    def _summed(self, by_key: DataFrame, keys: Sequence[str]) -> list[Row]:
        """Return the sums of each unit, and the mean of the expression's values.

        Raises
        ------
        PySparkRuntimeError
            When the expression fails for a key: the error names it.

        """
        summed = self._sums(self._value(by_key, keys, self.expression))
        if self.expression is None:
            return summed.collect()
        try:
            return summed.collect()
        except (PySparkException, Py4JJavaError) as error:
            self._sums(self._value(by_key, keys, None)).collect()  # raises errors that the expression does not cause
            key = f'views.{self.inputs.node.table}.budget.prefer = "{self.expression}"'
            raise PySparkRuntimeError(f"{key} fails for a key, change it: {first_line(error)}") from error

    @staticmethod
    def _sums(counts: DataFrame) -> DataFrame:
        return counts.groupBy("_unit", BUCKET).agg(
            F.expr("sum(_pairs)"), F.expr("sum(_left)"), F.expr("sum(_right)"), F.expr("sum(_value * _pairs) / sum(_pairs)")
        )

    def _value(self, by_key: DataFrame, keys: Sequence[str], expression: str | None) -> DataFrame:
        """Return the counts of each key and unit, with the value of the expression."""
        if expression is None:
            return by_key.withColumn("_value", F.expr("CAST(NULL AS DOUBLE)"))
        through = self.ledger.through or 0
        ages = " ".join(
            f"WHEN {2 * number + 1} THEN {through - owed_range.upto}L" for number, owed_range in enumerate(self.ranges)
        )
        age = f"CASE _unit {ages} ELSE 0L END" if ages else "0L"
        named = [
            f"{key} AS {quoted(name)}"
            for key, names in zip(keys, key_names(self.core), strict=True)
            for name in names
            if name.lower() not in COUNTED
        ]
        counted = ("_unit", BUCKET, "_pairs", "_left", "_right", "left_count", "right_count")
        named_counts = by_key.selectExpr(*counted, f"{age} AS age", *named)
        return named_counts.withColumn("_value", F.expr(f"CAST(({without_failures(expression)}) AS DOUBLE)"))

    def _by_key(self, rows: DataFrame, key: Sequence[str], slot: str, count: str, more: Sequence[str]) -> DataFrame:
        """Return the number of rows by key and load slot, and in the column ``count`` the number of rows by key."""
        named = [f"{quoted(name)} AS _key_{number}" for number, name in enumerate(key)]
        key_columns = [f"_key_{number}" for number in range(len(key))]
        classed = rows.selectExpr(*named, *more, f"{self.class_of(slot)} AS _class")
        counted = classed.groupBy(*key_columns, *more, "_class").agg(F.expr("count(*) AS _rows"))
        total = "0L" if self.expression is None else f"sum(_rows) OVER (PARTITION BY {', '.join(key_columns)})"
        return counted.withColumn(count, F.expr(total))

    def class_of(self, slot: str) -> str:
        """Return the position of a load slot: 2n + 1 in range n, 2n below it, the greatest number after the ledger's last slot.

        Of two slots the later has the greater number.
        """
        when = []
        for number, owed_range in enumerate(self.ranges):
            if owed_range.above is not None:
                when.append(f"WHEN {slot} <= {owed_range.above}L THEN {2 * number}")
            when.append(f"WHEN {slot} <= {owed_range.upto}L THEN {2 * number + 1}")
        if self.ledger.through is not None:
            when.append(f"WHEN {slot} <= {self.ledger.through}L THEN {2 * len(self.ranges)}")
        return f"CASE {' '.join(when)} ELSE {self._later} END" if when else str(self._later)

    def made(self, parts: Sequence[Part]) -> tuple[DataFrame | pa.Table, dict[Unit, StoppedUnit]]:
        """Return the results of parts of units, and the progress of each unit; units without a result are left out."""
        results = over(self.inputs.node.operator, self.core, self._pairs(parts))
        columns = [*map(quoted, self.inputs.node.columns), *CARRIED]
        rows = results.selectExpr(*columns, UNIT, PLACE, f"xxhash64({', '.join(columns)}) AS {_ROW}")
        if all(part.whole for part in parts):
            limited = rows.selectExpr("*", "0L AS _found", "0 AS _rank", "0 AS _first")
        else:
            limited = self._limited(rows, parts)
        answer_columns = [*self.inputs.node.columns, *CARRIED]
        if self.aside is not None:
            owed = [number for number, part in enumerate(parts) if part.unit.range < self.known]
            marked = f"{UNIT} IN ({', '.join(map(str, owed))})" if owed else "false"
            limited, answer_columns = limited.withColumn(OWED_RESULT, F.expr(marked)), [*answer_columns, OWED_RESULT]
        if sum(part.quota for part in parts) <= FEW and can_be_collected(limited.schema):
            collected = limited.toArrow()
            stopped = collected.select([UNIT, PLACE, _ROW, "_found", "_rank", "_first"]).to_pylist()
            return collected.select(answer_columns), _stopped(parts, stopped)
        limited = self.inputs.cache.add(limited)
        last = "max_by(struct(_found, _rank, _first, _place, _row), _rank) AS _last"
        summed = limited.groupBy(UNIT).agg(F.expr("count(*) AS _made"), F.expr(last)).collect()
        stopped_units = {
            parts[row[UNIT]].unit: StoppedUnit(
                row["_last"]["_found"], row["_made"],
                Position(row["_last"][PLACE], row["_last"][_ROW], row["_last"]["_rank"] - row["_last"]["_first"] + 1),
            )
            for row in summed
        }  # fmt: skip
        return limited.selectExpr(*map(quoted, answer_columns)), stopped_units

    def _limited(self, rows: DataFrame, parts: Sequence[Part]) -> DataFrame:
        """Return the results of each part after its position, at most its quota; ``_found`` counts all results of the part.

        The results at the position itself end together. When they have ended, all remaining results come after the position.
        """
        limits = self.frame(
            {
                UNIT: pa.array(range(len(parts)), pa.int32()),
                "_from": [part.begin.place for part in parts],
                "_from_row": [part.begin.row for part in parts],
                "_made": [part.begin.made for part in parts],
                "_quota": [part.quota for part in parts],
            }
        )
        names = [quoted(name) for name in rows.columns]
        after = rows.join(F.broadcast(limits), UNIT).where(f"{PLACE} > _from OR {_ROW} >= _from_row")
        at_position = f"count_if({PLACE} = _from AND {_ROW} = _from_row) OVER (PARTITION BY {UNIT})"
        ranked = after.selectExpr(*names, "_quota", f"least(_made, {at_position}) AS _made").selectExpr(
            *names, "_made", "_quota",
            f"count(*) OVER (PARTITION BY {UNIT}) - _made AS _found",
            f"row_number() OVER (PARTITION BY {UNIT} ORDER BY {PLACE}, {_ROW}) AS _rank",
            f"rank() OVER (PARTITION BY {UNIT} ORDER BY {PLACE}, {_ROW}) AS _first",
        )  # fmt: skip
        return ranked.where("_rank > _made AND _rank <= _made + _quota").drop("_made", "_quota")

    def _pairs(self, parts: Sequence[Part]) -> DataFrame:
        """Return the pairs of parts of units, with the columns of both inputs, the number of the part and the place in it.

        In each bucket a pair needs at least one row whose load slot is above the ranges of all its units.
        """
        left = self.left.join(F.broadcast(self._bounds(parts)), BUCKET).where(f"{PLACE} BETWEEN _low AND _high")
        left = left.drop("_low", "_high")
        right = self.right
        terms = [joined(self.core, [left.where(f"{LOADED} > _above"), right])]
        if (above := self._least_above(parts)) is not None:
            newer = right.where(f"{LOADED}_right > {above}L")
            older = joined(self.core, [left.where(f"{LOADED} <= _above"), newer])
            terms.append(older.where(f"{LOADED}_right > _above"))
        pairs = terms[0] if len(terms) == 1 else terms[0].unionByName(terms[1])
        columns = [quoted(name) for name in user_columns(pairs)]
        if self.aside is not None:
            pairs = pairs.where(self._met_alive())
        classed = pairs.selectExpr(
            *columns, *CARRIED, BUCKET, PLACE, f"{self.class_of(f'greatest({LOADED}, {LOADED}_right)')} AS _class"
        )
        met = classed.join(F.broadcast(self._chosen(parts)), ["_class", BUCKET])
        return met.where(f"{PLACE} BETWEEN _begin AND _end").selectExpr(*columns, *CARRIED, PLACE, UNIT)

    def _met_alive(self) -> str:
        """Return the condition that neither row of a pair had ended before the update that loaded the other row."""
        move, sides = self.inputs.move, ((GONE, f"{LOADED}_right"), (f"{GONE}_right", LOADED))
        return " AND ".join(f"({gone} IS NULL OR {move.anchor}L + {slot} * {move.interval}L <= {gone})" for gone, slot in sides)

    def _least_above(self, parts: Sequence[Part]) -> int | None:
        """Return the slot after which at least one row of each pair was loaded; None if rows of all slots are new."""
        slots = [self.ranges[part.unit.range].above for part in parts]
        known_slots = [slot for slot in slots if slot is not None]
        return min(known_slots) if known_slots else None

    def _bounds(self, parts: Sequence[Part]) -> DataFrame:
        """Return for each bucket the slot after which rows are new to it, and the first and last place to read."""
        by_bucket: dict[int, list[Part]] = {}
        for part in parts:
            by_bucket.setdefault(part.unit.bucket, []).append(part)
        above = [
            min(FIRST if (slot := self.ranges[part.unit.range].above) is None else slot for part in bucket_parts)
            for bucket_parts in by_bucket.values()
        ]
        return self.frame(
            {
                BUCKET: pa.array(by_bucket, pa.int32()),
                "_above": above,
                "_low": [min(part.begin.place for part in bucket_parts) for bucket_parts in by_bucket.values()],
                "_high": [max(part.end for part in bucket_parts) for bucket_parts in by_bucket.values()],
            }
        )

    def _chosen(self, parts: Sequence[Part]) -> DataFrame:
        return self.frame(
            {
                "_class": pa.array([2 * part.unit.range + 1 for part in parts], pa.int32()),
                BUCKET: pa.array([part.unit.bucket for part in parts], pa.int32()),
                UNIT: pa.array(range(len(parts)), pa.int32()),
                "_begin": [part.begin.place for part in parts],
                "_end": [part.end for part in parts],
            }
        )

    def frame(self, columns: Mapping[str, Iterable[int]]) -> DataFrame:
        """Return whole numbers as a frame, to join with."""
        typed = {
            name: values if isinstance(values, pa.Array) else pa.array(values, pa.int64()) for name, values in columns.items()
        }
        return frame_of(self.inputs.session, pa.table(typed))


def _distinct(class_column: str, count_column: str) -> str:
    """Return how many rows of one input a key has in a unit: each class counts once."""
    return f"aggregate(collect_set(struct({class_column} AS c, {count_column} AS n)), 0L, (sum, each) -> sum + each.n)"


def _above(operator: Operator) -> Iterator[Operator]:
    """Yield the filters and projections above a node's join."""
    while not isinstance(operator, Join):
        yield operator
        operator = operator.input  # type: ignore[union-attr]
