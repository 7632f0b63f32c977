"""Makes the queries that merge states of slots into answers, in DuckDB's SQL.

There are two steps. :func:`windowed` merges the rows of a synopsis for the windows of all aggregates, in one pass. :func:`merged`
makes the answers of an aggregate from the merged states of its synopses. So aggregates of the same synopsis share the pass,
whatever their windows, periods and values, and an aggregate whose condition is covered by others uses their merged states (rules
CS1 to CS8, section 5). :func:`subtracted` subtracts synopses.

States merge as the sheet says (shared-aggregates, 2): counts and sums by addition, extremes by comparison, variances from counts,
means and squared differences (Chan, Golub and LeVeque), counts of values by addition for each value. A percentile is between the
two values around its place, in proportion, as Spark's ``percentile`` is. For an estimate the query gives the list of its
sketches, and Spark merges them (:mod:`warehouse.steps.sketches`).

The names of columns that a query makes for itself begin with ``_``, so they differ from the user's names of groups and values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.aggregates.synopses import (
    AFTER,
    ARRIVED,
    BATCH,
    FAILED,
    LEVEL,
    PARTS,
    RANK,
    ROWS,
    UNTIL,
    VALUE,
    ColumnState,
    counts_values,
    sketch_of,
)
from warehouse.catalog.duck_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.aggregates.definition import AggregateDefinition, Value
    from warehouse.aggregates.synopses import Synopsis
    from warehouse.planning.following import SynopsisRead

__all__ = ["FIRSTS", "KEY", "PLACE", "lengthened_rows", "merged", "subtracted", "windowed"]

KEY = "_key"
"""The number of a window of a synopsis."""
PLACE = "_place"
"""The number of a due window of an aggregate."""

FIRSTS = ("_first_1", "_first_2")
"""The first slot of each input of a join in a due window."""
_DUE = ("_text", "_first", "_end", "_full", "_late")
_HALF = 10**19
"""Half of the digits of the widest decimals."""
_WITH_COUNTS = ("sum", "mean", "m2")
_IN_PIECE = f"s.{LEVEL} = d._piece_level AND s.{ARRIVED} = d._piece_last"


def merged(definition: AggregateDefinition, reads: Sequence[SynopsisRead], *, ends: str, epoch: int) -> str:
    """Return the query for the answers of a definition.

    Parameters
    ----------
    definition, reads
        The definition, and the synopses. The table ``synopsis_i`` has the result of :func:`windowed` for number ``i``, by the
        number ``_place`` of the due windows.
    ends
        The SQL of the instant at which a window ends, by its last slot ``_end``.
    epoch
        The epoch of the rows in the answers.

    """
    groups = [quoted(name) for name, _ in definition.group_by]
    counted = [read.synopsis.counted for read in reads if read.synopsis.counted is not None]
    parts = [f"states AS ({_states(reads, groups)})", f"merged AS ({_merged(reads, groups)})"]
    joins, values = [], {value.name: _value(value) for value in definition.values}
    for number, column in enumerate(dict.fromkeys(counted)):
        own_values = [value for value in definition.values if counts_values(value) and value.column == column[0]]
        parts.append(f"ranked_{number} AS ({_ranked(reads, column, groups)})")
        parts.append(f"counted_{number} AS ({_counted(number, own_values, groups)})")
        conditions = [f"m.{name} IS NOT DISTINCT FROM c{number}.{name}" for name in ("_text", "_end", *groups)]
        joins.append(f"LEFT JOIN counted_{number} AS c{number} ON {' AND '.join(conditions)}")
        values.update({value.name: _of_counted(value, number) for value in own_values})
    columns = [
        *(f"m.{name}" for name in groups),
        "m._text AS window_length",
        f"{ends.replace('_end', 'm._end')} AS window_end",
        *(f"{sql} AS {quoted(name)}" for name, sql in values.items()),
        f"CAST({epoch} AS BIGINT) AS epoch",
        'm._full AND m._failed = 0 AS "full"',
        "m._late AS late",
    ]
    return f"WITH {', '.join(parts)} SELECT {', '.join(columns)} FROM merged AS m {' '.join(joins)}"


def windowed(synopsis: Synopsis) -> str:
    """Return the query for the merged states of all ``windows``, from the rows of a synopsis, ``stored``, by the windows' keys.

    A window reaches from the slot ``_first`` through ``_end``. Over live rows it has the rows that live after the slot
    ``_after``. For a synopsis with longer intervals, ``pieces`` has the intervals of each window.
    """
    groups = [quoted(name) for name, _ in synopsis.group_by]
    by = [KEY, *groups]
    inside = _inside(live=synopsis.live, parts=synopsis.parts is not None)
    if synopsis.listed is not None:
        return _windowed_lists(synopsis, groups, inside)
    inner = f"FROM windows AS d JOIN stored AS s ON {inside}"
    if synopsis.counted is not None:
        listed = ", ".join([f"d.{KEY}", *(f"s.{name}" for name in groups), f"s.{VALUE}"])
        return f"SELECT {listed}, sum(s.{ROWS}) AS {ROWS} {inner} GROUP BY {listed}"
    if synopsis.levels:
        inner = f"FROM pieces AS d JOIN stored AS s ON {_IN_PIECE}"
    counts = {state.column for state in synopsis.states if state.function == "count"}
    states = [state for state in synopsis.states if state.function not in _WITH_COUNTS or state.column in counts]
    return _merging([f"d.{KEY}"], by, states, "s", inner, whole=False)


def lengthened_rows(synopsis: Synopsis) -> str:
    """Return the query for rows of longer ``intervals``, from the ``stored`` rows of their ``pieces`` and from ``gained`` rows.

    States have the types in which they are stored; sketches are in lists.
    """
    groups = [quoted(name) for name, _ in synopsis.group_by]
    rows = (
        f"(SELECT d.{KEY}, s.* FROM pieces AS d JOIN stored AS s ON {_IN_PIECE} UNION ALL BY NAME "
        f"SELECT d.{KEY}, g.* FROM intervals AS d JOIN gained AS g ON g.{ARRIVED} BETWEEN d._first AND d._last) AS s"
    )
    merged = _merging([f"s.{KEY}"], [KEY, *groups], synopsis.states, "s", f"FROM {rows}", whole=False)
    kinds = {**dict.fromkeys((ROWS, FAILED), "BIGINT"), **{state.name: state.type for state in synopsis.states}}
    lists = [state.name for state in synopsis.states if state.function in ("hll", "kll")]
    cast = [f"TRY_CAST(m.{quoted(name)} AS {kind}) AS {quoted(name)}" for name, kind in kinds.items() if name not in lists]
    shown = [f"i._last AS {ARRIVED}", f"i.{LEVEL}", *(f"m.{name}" for name in groups), *cast]
    shown += [f"m.{quoted(name)}" for name in lists]
    return f"SELECT {', '.join(shown)} FROM intervals AS i JOIN ({merged}) AS m USING ({KEY})"


def _windowed_lists(synopsis: Synopsis, groups: Sequence[str], inside: str) -> str:
    """Return the query for lists by window: a row of rank 0 for each group, and a row with the counts of each item."""
    bag = ", ".join([*synopsis.slots, *groups, BATCH])
    lists = f"SELECT * REPLACE (max({AFTER}) OVER (PARTITION BY {bag}) AS {AFTER}) FROM stored"
    by = ", ".join([f"d.{KEY}", *(f"s.{name}" for name in groups), f"s.{VALUE}"])
    sums = ", ".join(f"sum(s.{name}) AS {name}" for name in (ROWS, FAILED, AFTER))
    listed = f"least(s.{RANK}, 1)"
    return (
        f"WITH lists AS ({lists}) SELECT {by}, {listed} AS {RANK}, {sums} "
        f"FROM windows AS d JOIN lists AS s ON {inside} GROUP BY {by}, {listed}"
    )


def subtracted(synopsis: Synopsis, states: Sequence[ColumnState], by: str, terms: Sequence[tuple[str, int]]) -> str:
    """Return the query for the states of a difference of windowed synopses; a group without remaining rows has no row.

    Parameters
    ----------
    synopsis, states
        The synopsis (its groups and counted values), and the needed states: counts, and sums of columns that have a count.
    by
        The column that numbers windows.
    terms
        Tables, each with 1 if its states are added, or -1 if they are subtracted.

    """
    value_column = [] if synopsis.counted is None else [VALUE]
    listed = ", ".join([by, *(quoted(name) for name, _ in synopsis.group_by), *value_column])
    sums = [ROWS] if value_column else [ROWS, FAILED, *(quoted(state.name) for state in states)]
    signed = [
        f"SELECT {listed}, {', '.join(f'{sign} * {name} AS {name}' for name in sums)} FROM {table}" for table, sign in terms
    ]
    columns = [f"sum({name}) AS {name}" for name in sums[: 1 if value_column else 2]]
    for state in states:
        name = quoted(state.name)
        total = f"coalesce(sum({name}), 0)"
        has_values = f"sum({_of('count', state.column)}) > 0"
        columns.append(
            f"{total} AS {name}" if state.function == "count" else f"CASE WHEN {has_values} THEN {total} END AS {name}"
        )
    has_rows = f"sum({ROWS}) > 0" if value_column else f"sum({ROWS}) > 0 OR sum({FAILED}) > 0"
    return f"SELECT {listed}, {', '.join(columns)} FROM ({' UNION ALL '.join(signed)}) GROUP BY {listed} HAVING {has_rows}"


def _states(reads: Sequence[SynopsisRead], groups: Sequence[str]) -> str:
    """Return the rows of all synopses; each has some of the states."""
    parts = []
    for number, read in enumerate(reads):
        if read.synopsis.counted is None:
            rows = [ROWS, FAILED] if read.rows else [f"0 AS {ROWS}", f"0 AS {FAILED}"]
            states = [quoted(state.name) for state in read.states]
            parts.append(f"SELECT {', '.join([PLACE, *groups, *rows, *states])} FROM synopsis_{number}")
    return " UNION ALL BY NAME ".join(parts)


def _merged(reads: Sequence[SynopsisRead], groups: Sequence[str]) -> str:
    """A row for each due window and group with its merged states; without groups always one for each window."""
    states = dict.fromkeys(state for read in reads if read.synopsis.counted is None for state in read.states)
    side = "JOIN" if groups else "LEFT JOIN"
    inner = f"FROM due AS d {side} states AS s ON s.{PLACE} = d.{PLACE}"
    return _merging([f"d.{name}" for name in _DUE], [*_DUE, *groups], list(states), "s", inner, whole=True)


def _merging(
    keys: Sequence[str], by: Sequence[str], states: Sequence[ColumnState], rows: str, source: str, *, whole: bool
) -> str:
    """Return the query that merges states; with ``whole``, sums have the type of answers.

    ``by`` are the columns of a row: first the ``keys``, which name their table, then columns of ``rows``.
    """
    all_keys = [*keys, *(f"{rows}.{name}" for name in by[len(keys) :])]
    moments = dict.fromkeys(state.column for state in states if state.function == "m2")
    means = []
    for name in moments:
        count, mean = (f"{rows}.{_of(function, name)}" for function in ("count", "mean"))
        means.append(f"sum({count} * {mean}) OVER w / nullif(sum({count}) OVER w, 0) AS {_of('whole', name)}")
    columns = [f"{rows}.{ROWS}", f"{rows}.{FAILED}", *(_within_range(state, rows) for state in states)]
    window = f" WINDOW w AS (PARTITION BY {', '.join(all_keys)})"
    listed = f"SELECT {', '.join([*all_keys, *columns, *means])} {source}{window}"
    merging = [f"{sql} AS {quoted(state.name)}" for state in states for sql in _merged_state(state, whole=whole)]
    outer = ", ".join(by)
    totals = [f"coalesce(sum({name}), 0) AS {name}" for name in (ROWS, FAILED)]
    return f"SELECT {', '.join([outer, *totals, *merging])} FROM ({listed}) GROUP BY {outer}"


def _within_range(state: ColumnState, rows: str) -> str:
    """Return a state before merging, or null if a sum of decimals would exceed DuckDB's range and end the query.

    The digits of absolute values are added up in two halves, since their sum may be more than an integer of DuckDB holds.
    """
    own = f"{rows}.{quoted(state.name)}"
    if state.function != "sum" or not state.type.startswith("decimal(38,"):
        return own
    digits = f"CAST(replace(CAST(abs({own}) AS VARCHAR), '.', '') AS HUGEINT)"
    upper, lower = (f"sum({digits} {operator} {_HALF}::HUGEINT) OVER w" for operator in ("//", "%"))
    return f"CASE WHEN {upper} + {lower} // {_HALF} < {_HALF} THEN {own} END AS {quoted(state.name)}"


def _merged_state(state: ColumnState, *, whole: bool) -> Iterator[str]:
    column, count = quoted(state.name), _of("count", state.column)
    match state.function:
        case "count":
            yield f"coalesce(sum({column}), 0)"
        case "min" | "max":
            yield f"{state.function}({column})"
        case "sum":
            lost = f"count_if({count} > 0 AND {column} IS NULL) > 0"
            total = f"sum({column})"
            if state.type == "double":  # fsum turns infinity into NaN
                total = f"CASE WHEN isfinite({total}) THEN fsum({column}) ELSE {total} END"
            yield f"CASE WHEN NOT {lost} THEN {f'TRY_CAST({total} AS {state.type})' if whole else total} END"
        case "mean":
            yield f"any_value({_of('whole', state.column)})"
        case "m2":
            difference = f"({_of('mean', state.column)} - {_of('whole', state.column)})"
            yield f"sum({column} + {count} * {difference} * {difference})"
        case "hll" | "kll":
            listed = f"list({column}) FILTER ({column} IS NOT NULL)"
            yield f"flatten({listed})" if whole else listed


def _value(value: Value) -> str:
    """The SQL of a value that comes from merged states."""
    column = value.column or ""
    count, squares = f"m.{_of('count', column)}", f"m.{_of('m2', column)}"
    match value.function:
        case "rows":
            return f"CAST(m.{ROWS} AS BIGINT)"
        case "count":
            return f"CAST({count} AS BIGINT)"
        case "sum":
            return f"TRY_CAST(m.{_of('sum', column)} AS {value.type})"
        case "min" | "max":
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


def _inside(*, live: bool, parts: bool) -> str:
    """The condition by which a row ``s`` of a synopsis belongs to a window ``d``."""
    conditions = [f"s.{ARRIVED} BETWEEN d._first AND d._end"]
    if live:
        conditions.append(f"s.{UNTIL} > d._after")
    if parts:
        conditions += [f"s.{name} >= d.{first}" for name, first in zip(PARTS, FIRSTS, strict=True)]
    return " AND ".join(conditions)


def _ranked(reads: Sequence[SynopsisRead], column: tuple[str, str], groups: Sequence[str]) -> str:
    """How often each value of a column came in each due window and group, and how many rows there are up to it."""
    own = [number for number, read in enumerate(reads) if read.synopsis.counted == column]
    listed = ", ".join([PLACE, *groups, VALUE, ROWS])
    counts = " UNION ALL ".join(f"SELECT {listed} FROM synopsis_{number}" for number in own)
    by = ", ".join(["d._text", "d._end", *(f"s.{name}" for name in groups)])
    rows = (
        f"SELECT {by}, s.{VALUE}, sum(s.{ROWS}) AS _n FROM due AS d JOIN ({counts}) AS s "
        f"ON s.{PLACE} = d.{PLACE} GROUP BY {by}, s.{VALUE}"
    )
    part = ", ".join(["_text", "_end", *groups])
    sums = f"sum(_n) OVER (PARTITION BY {part} ORDER BY {VALUE}) AS _through, sum(_n) OVER (PARTITION BY {part}) AS _total"
    return f"SELECT *, {sums} FROM ({rows})"


def _counted(number: int, values: Sequence[Value], groups: Sequence[str]) -> str:
    by = ", ".join(["_text", "_end", *groups])
    columns = ["count(*) AS _distinct"]
    for position, value in enumerate(value for value in values if value.share is not None):
        at = f"(_total - 1) * CAST({value.share!r} AS DOUBLE)"
        for name, rounded in (("low", "floor"), ("high", "ceil")):
            columns.append(f"min(CAST({VALUE} AS DOUBLE)) FILTER (_through > {rounded}({at})) AS _{name}_{position}")
        columns.append(f"any_value({at}) AS _at_{position}")
    for position, value in enumerate(value for value in values if value.share is not None):
        columns.append(f"{_percentile(position)} AS {quoted(value.name)}")
    return f"SELECT {by}, {', '.join(columns)} FROM ranked_{number} GROUP BY {by}"


def _percentile(number: int) -> str:
    low, high, at = (f"_{name}_{number}" for name in ("low", "high", "at"))
    share = f"({at} - floor({at}))"
    return f"CASE WHEN {low} = {high} THEN {low} ELSE (1 - {share}) * {low} + {share} * {high} END"


def _of_counted(value: Value, number: int) -> str:
    if value.function == "distinct":
        return f"CAST(coalesce(c{number}._distinct, 0) AS BIGINT)"
    return f"c{number}.{quoted(value.name)}"


def _of(function: str, column: str) -> str:
    return quoted(f"_{function}_{column}")
