"""The new results of a join of few rows that arrived, found where Spark's driver runs: an index nested loop.

Formula F1 as in :mod:`warehouse.views.maintenance.joins`, without a Spark job: from what arrived, input by input, the rows
from before that have the values which the results so far ask for are looked up (:mod:`warehouse.storage.lookup`), and pairs
that meet are found. Columns are not looked at beyond that: pairs are numbers of rows, by which both sides are taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.storage.arrow_types import compared_alike
from warehouse.storage.lookup import FAILURES, MATCHES, WIDE, leave_to_spark, query_in_driver
from warehouse.views.algebra import Filter, Project
from warehouse.views.language.dialect import names_in
from warehouse.views.maintenance.feeds import CARRIED
from warehouse.views.maintenance.join_inputs import connecting
from warehouse.views.maintenance.keys import distinct_keys
from warehouse.views.maintenance.picking import earlier, later

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from warehouse.views.algebra import Join, Operator
    from warehouse.views.maintenance.join_inputs import JoinInputs

__all__ = ["local_results", "named_above"]

_CANDIDATES = 20_000_000
"""Pairs with equal keys that are looked at, at most."""


def local_results(join: Join, inputs: JoinInputs, operator: Operator) -> pa.Table | None:
    """Return the results with at least one new part, short-lived ones included; none when Spark is to find them.

    The join's further condition is not asked. Its columns are those of the inputs in their order that ``operator``, whose core
    the join is, may mean; ``_ts``, ``_exp``, ``_out``.
    """
    try:
        return _results(join, inputs, named_above(operator, join))
    except FAILURES as error:
        leave_to_spark(error)
        return None


def _results(join: Join, inputs: JoinInputs, wanted: AbstractSet[str] | None) -> pa.Table | None:
    known = [each.picked for each in inputs.arrived if each.picked is not None]
    if inputs.before is None or len(known) < len(inputs.arrived):
        return None
    asked = None
    if wanted is not None:
        compared = [name.lower() for each in join.equal for name in (each.left_column, each.right_column)]
        asked = {*wanted, *compared, *CARRIED}
        known = [rows.select([name for name in rows.column_names if name.lower() in asked]) for rows in known]
    columns = [name for rows in known for name in rows.column_names if name not in CARRIED]
    terms = []
    for position, start in enumerate(inputs.order):
        if known[start].num_rows:
            new = set(inputs.order[:position])
            found = _term(join, start, inputs, known, new, asked)
            if found is None:
                return None
            terms.append(found.select([*columns, *CARRIED]))
    return pa.concat_tables(terms) if terms else None


def _term(
    join: Join, start: int, inputs: JoinInputs, known: Sequence[pa.Table], new: set[int], asked: AbstractSet[str] | None
) -> pa.Table | None:
    """What arrived at one input, with what was before at the others, and what arrived at those in ``new``."""
    result, there = known[start], {start}
    todo = [number for number in inputs.order if number != start]
    while todo:
        number = next((each for each in todo if connecting(join, there, each)), None)
        if number is None or inputs.before is None:
            return None
        todo.remove(number)
        on = connecting(join, there, number)
        if not all(compared_alike(result.schema.field(one).type) for one, _ in on):
            return None
        keys = distinct_keys(result, [one for one, _ in on], nulls=join.null_safe)
        side = inputs.before[number].looked_up([other for _, other in on], keys, asked)
        if side is None:
            return None
        side = side.select(known[number].column_names)
        if number in new:
            side = pa.concat_tables([side, known[number]])
        found = _met(result, side, on, null_safe=join.null_safe)
        if found is None:
            return None
        result = found
        there.add(number)
    return result


def _met(left: pa.Table, right: pa.Table, on: Sequence[tuple[str, str]], *, null_safe: bool) -> pa.Table | None:
    """Join two tables on equal columns, where their lifetimes overlap; a result begins last and ends first."""
    if any(left.schema.field(one).type != right.schema.field(other).type for one, other in on):
        return None
    sign = "IS NOT DISTINCT FROM" if null_safe else "="
    equal = " AND ".join(f"l.key_{place} {sign} r.key_{place}" for place in range(len(on)))
    overlap = "greatest(l.begins, r.begins) < least(l.ends, r.ends)"
    sides = {
        "l": _numbered(left, [one for one, _ in on]),
        "r": _numbered(right, [other for _, other in on]),
    }
    counted = " JOIN ".join(f"(SELECT columns('key_.*'), count(*) AS n FROM {side} GROUP BY ALL) AS {side}" for side in sides)
    candidates = query_in_driver(f"SELECT coalesce(sum(l.n * r.n), 0)::DOUBLE AS n FROM {counted} ON {equal}", sides)
    if candidates is None or candidates["n"][0].as_py() > _CANDIDATES:
        return None
    pairs = query_in_driver(f"SELECT l.row, r.row AS other FROM l JOIN r ON {equal} AND {overlap} LIMIT {MATCHES + 1}", sides)
    if pairs is None or pairs.num_rows > MATCHES or _bytes(left, pairs["row"]) + _bytes(right, pairs["other"]) > WIDE:
        return None
    one, other = left.take(pairs["row"]), right.take(pairs["other"])
    times = [choose(one[name], other[name]) for name, choose in zip(CARRIED, (later, earlier, earlier), strict=True)]
    one, other = one.drop_columns(CARRIED), other.drop_columns(CARRIED)
    names = [*one.column_names, *other.column_names, *CARRIED]
    return pa.Table.from_arrays([*one.columns, *other.columns, *times], names)


def _bytes(rows: pa.Table, taken: pa.ChunkedArray) -> float:
    """How many bytes some rows take: exact for texts, at most for what is nested."""
    most = max(pc.value_counts(taken).field("counts").to_pylist(), default=0)
    total = 0.0
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            total += pc.sum(pc.binary_length(column).take(taken)).as_py() or 0
        elif pa.types.is_nested(column.type):
            total += column.nbytes * most
        else:
            total += column.nbytes / max(1, len(column)) * len(taken)
    return total


def _numbered(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The values that are compared, under names of ours, and the numbers of their rows."""
    named = {f"key_{place}": rows[name] for place, name in enumerate(columns)}
    times = {"begins": rows["_ts"].cast(pa.int64()), "ends": rows["_exp"].cast(pa.int64())}
    return pa.table({"row": pa.array(range(rows.num_rows), pa.int64()), **named, **times})


def named_above(operator: Operator, core: Join) -> set[str] | None:
    """Return the names, in lower case, that the filters and projections above a join may mean; none when all are kept.

    Examples
    --------
    >>> from warehouse.views.algebra import Filter, Join, Named, Project, Scan
    >>> join = Join((Scan("l"), Scan("r")), ())
    >>> above = Project(Filter(join, "`a` > `B`.`c`"), (Named("x", "`D` + 1"),))
    >>> sorted(named_above(above, join)), named_above(Filter(join, "`a` > 1"), join)
    (['a', 'b', 'c', 'd'], None)
    >>> sorted(named_above(Project(join, (Named("x", "concat('`', `a`, '`', `b`)"),)), join))
    ['a', 'b']
    """
    texts, picks = [core.where or ""], False
    while operator is not core:
        match operator:
            case Project():
                texts += [column.sql for column in operator.columns]
                picks = True
            case Filter():
                texts.append(operator.condition)
            case _:
                return None
        operator = operator.input
    return {name.lower() for text in texts for name in names_in(text)} if picks else None
