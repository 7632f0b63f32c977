"""The query that merges states of slots into answers, in DuckDB's SQL over ``due`` and one table for each synopsis.

States merge as the sheet says (shared-aggregates, 2): counts and sums by addition, extremes by comparison, variances from counts,
means and squared differences (Chan, Golub and LeVeque), counts of values by addition for each value. A percentile is between
the two values around its place, in proportion, as Spark's ``percentile`` has it. Of an estimate the query gives the list of
its sketches, which Spark merges (:mod:`warehouse.steps.sketches`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.aggregates.synopses import ARRIVED, FAILED, PARTS, ROWS, UNTIL, VALUE, State, counts_values, sketch_of
from warehouse.catalog.duck_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.aggregates.definition import Definition, Value
    from warehouse.planning.following import SynopsisRead

__all__ = ["FIRSTS", "merged", "reached"]

FIRSTS = ("_first_1", "_first_2")
"""The first slot of each input of a join in a due window."""
_DUE = ("_text", "_first", "_end", "_full", "_late")
_MOMENTS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")


def merged(definition: Definition, reads: Sequence[SynopsisRead], *, ends: str, epoch: int) -> str:
    """Return the query for the answers of a definition.

    Parameters
    ----------
    definition, reads
        What is asked, and the synopses, of which number ``i`` is the table ``synopsis_i``.
    ends
        The SQL of the instant at which a window ends, by its last slot ``_end``.
    epoch
        Whose rows the answers know.

    """
    groups = [quoted(name) for name, _ in definition.group_by]
    counted = [read.synopsis.counted for read in reads if read.synopsis.counted is not None]
    parts = [f"states AS ({_states(definition, reads, groups)})", f"merged AS ({_merged(definition, reads, groups)})"]
    joins, values = [], {value.name: _value(value) for value in definition.values}
    for number, column in enumerate(dict.fromkeys(counted)):
        asked = [value for value in definition.values if counts_values(value) and value.column == column[0]]
        parts.append(f"ranked_{number} AS ({_ranked(definition, reads, column, groups)})")
        parts.append(f"counted_{number} AS ({_counted(number, asked, groups)})")
        same = [f"m.{name} IS NOT DISTINCT FROM c{number}.{name}" for name in ("_text", "_end", *groups)]
        joins.append(f"LEFT JOIN counted_{number} AS c{number} ON {' AND '.join(same)}")
        values.update({value.name: _of_counted(value, number) for value in asked})
    shown = [
        *(f"m.{name}" for name in groups),
        "m._text AS window_length",
        f"{ends.replace('_end', 'm._end')} AS window_end",
        *(f"{sql} AS {quoted(name)}" for name, sql in values.items()),
        f"CAST({epoch} AS BIGINT) AS epoch",
        'm._full AND m._failed = 0 AS "full"',
        "m._late AS late",
    ]
    return f"WITH {', '.join(parts)} SELECT {', '.join(shown)} FROM merged AS m {' '.join(joins)}"


def _states(definition: Definition, reads: Sequence[SynopsisRead], groups: Sequence[str]) -> str:
    """The rows of all synopses of states, of which each has some of these."""
    parts, slots = [], [ARRIVED, *([UNTIL] if definition.over == "live" else []), *(PARTS if definition.parts else ())]
    for number, read in enumerate(reads):
        if read.synopsis.counted is None:
            rows = [ROWS, FAILED] if read.rows else [f"0 AS {ROWS}", f"0 AS {FAILED}"]
            states = [quoted(state.name) for state in read.states]
            parts.append(f"SELECT {', '.join([*slots, *groups, *rows, *states])} FROM synopsis_{number}")
    return " UNION ALL BY NAME ".join(parts)


def _merged(definition: Definition, reads: Sequence[SynopsisRead], groups: Sequence[str]) -> str:
    """A row for each due window and group with its merged states; without groups always one for each window."""
    by = ", ".join([*(f"d.{name}" for name in _DUE), *(f"s.{name}" for name in groups)])
    kept = dict.fromkeys(state for read in reads if read.synopsis.counted is None for state in read.states)
    side = "JOIN" if groups else "LEFT JOIN"
    inner = f"FROM due AS d {side} states AS s ON {reached(definition)}"
    moments = dict.fromkeys(value.column for value in definition.values if value.function in _MOMENTS and value.column)
    means = [
        f"sum(s.{_of('count', name)} * s.{_of('mean', name)}) OVER w / nullif(sum(s.{_of('count', name)}) OVER w, 0) "
        f"AS {_of('whole', name)}"
        for name in moments
    ]
    window = f" WINDOW w AS (PARTITION BY {by})" if means else ""
    rows = f"SELECT d.*, s.*{''.join(', ' + mean for mean in means)} {inner}{window}"
    states = [f"{sql} AS {quoted(state.name)}" for state in kept for sql in _merged_state(state)]
    outer = ", ".join([*_DUE, *groups])
    totals = [f"coalesce(sum({ROWS}), 0) AS {ROWS}", f"coalesce(sum({FAILED}), 0) AS {FAILED}"]
    return f"SELECT {', '.join([outer, *totals, *states])} FROM ({rows}) GROUP BY {outer}"


def _merged_state(state: State) -> Iterator[str]:
    own, count = quoted(state.name), _of("count", state.column)
    match state.function:
        case "count":
            yield f"coalesce(sum({own}), 0)"
        case "min" | "max":
            yield f"{state.function}({own})"
        case "sum":
            add = "fsum" if state.type == "double" else "sum"
            lost = f"count_if({count} > 0 AND {own} IS NULL) > 0"
            yield f"CASE WHEN NOT {lost} THEN TRY_CAST({add}({own}) AS {state.type}) END"
        case "mean":
            yield f"any_value({_of('whole', state.column)})"
        case "m2":
            mean, whole = _of("mean", state.column), _of("whole", state.column)
            yield f"sum({own} + {count} * ({mean} - {whole}) * ({mean} - {whole}))"
        case "hll" | "kll":
            yield f"list({own}) FILTER ({own} IS NOT NULL)"


def _value(value: Value) -> str:
    """The SQL of a value that comes from merged states."""
    column = value.column or ""
    count, squares = f"m.{_of('count', column)}", f"m.{_of('m2', column)}"
    match value.function:
        case "rows":
            return f"CAST(m.{ROWS} AS BIGINT)"
        case "count":
            return f"CAST({count} AS BIGINT)"
        case "sum" | "min" | "max":
            return f"m.{_of(value.function, column)}"
        case "avg":
            return f"CAST(m.{_of('sum', column)} AS DOUBLE) / nullif({count}, 0)"
        case "var_pop":
            return f"{squares} / nullif({count}, 0)"
        case "stddev_pop":
            return f"sqrt({squares} / nullif({count}, 0))"
        case "var_samp":
            return f"CASE WHEN {count} > 1 THEN {squares} / ({count} - 1) END"
        case "stddev_samp":
            return f"CASE WHEN {count} > 1 THEN sqrt({squares} / ({count} - 1)) END"
        case "distinct" | "percentile":
            sketch = sketch_of(value)
            return "NULL" if sketch is None else f"m.{quoted(sketch.name)}"


def reached(definition: Definition) -> str:
    """Return the condition by which a row ``s`` of a synopsis belongs to a due window ``d``."""
    found = [f"s.{ARRIVED} BETWEEN d._first AND d._end"]
    if definition.over == "live":
        found.append(f"s.{UNTIL} > d._end")
    if definition.parts is not None:
        found += [f"s.{name} >= d.{first}" for name, first in zip(PARTS, FIRSTS, strict=True)]
    return " AND ".join(found)


def _ranked(definition: Definition, reads: Sequence[SynopsisRead], column: tuple[str, str], groups: Sequence[str]) -> str:
    """How often each value of a column came in each due window and group, and how many rows there are up to it."""
    own = [number for number, read in enumerate(reads) if read.synopsis.counted == column]
    counts = " UNION ALL BY NAME ".join(f"SELECT * FROM synopsis_{number}" for number in own)
    by = ", ".join(["d._text", "d._end", *(f"s.{name}" for name in groups)])
    rows = (
        f"SELECT {by}, s.{VALUE}, sum(s.{ROWS}) AS n FROM due AS d JOIN ({counts}) AS s "
        f"ON {reached(definition)} GROUP BY {by}, s.{VALUE}"
    )
    part = ", ".join(["_text", "_end", *groups])
    return (
        f"SELECT *, sum(n) OVER (PARTITION BY {part} ORDER BY {VALUE}) AS through, sum(n) OVER (PARTITION BY {part}) AS total "
        f"FROM ({rows})"
    )


def _counted(number: int, asked: Sequence[Value], groups: Sequence[str]) -> str:
    by = ", ".join(["_text", "_end", *groups])
    found = ["count(*) AS distinct_values"]
    for place, value in enumerate(value for value in asked if value.share is not None):
        at = f"(total - 1) * CAST({value.share!r} AS DOUBLE)"
        for name, rounded in (("low", "floor"), ("high", "ceil")):
            found.append(f"min(CAST({VALUE} AS DOUBLE)) FILTER (through > {rounded}({at})) AS {name}_{place}")
        found.append(f"any_value({at}) AS at_{place}")
    for place, value in enumerate(value for value in asked if value.share is not None):
        found.append(f"{_percentile(place)} AS {quoted(value.name)}")
    return f"SELECT {by}, {', '.join(found)} FROM ranked_{number} GROUP BY {by}"


def _percentile(place: int) -> str:
    low, high, at = (f"{name}_{place}" for name in ("low", "high", "at"))
    share = f"({at} - floor({at}))"
    return f"CASE WHEN {low} = {high} THEN {low} ELSE (1 - {share}) * {low} + {share} * {high} END"


def _of_counted(value: Value, number: int) -> str:
    if value.function == "distinct":
        return f"CAST(coalesce(c{number}.distinct_values, 0) AS BIGINT)"
    return f"c{number}.{quoted(value.name)}"


def _of(function: str, column: str) -> str:
    return quoted(f"_{function}_{column}")
