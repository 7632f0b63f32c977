"""Computes the rows of a coalesced table by one query, in Spark or DuckDB: neighbours in time that are alike become a row.

This is the batch form of temporal-coalescing, section 5.5. In each group with new points, some rows are split into members and
coalesced again: from the row at or before the first new stamp to the row after the last one. All other rows stay as they are
stored, without the stamps that have left the window. The result equals that of section 3 over all members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.coalescing.definition import PREVIOUS, STAMPS, values_column
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.coalescing.definition import CoalescedDefinition

__all__ = ["AT", "DUCKDB", "SPARK", "Dialect", "Edge", "Query", "coalesced", "within"]

AT = "_at"
"""The stamp of a member in microseconds."""


@dataclass(frozen=True)
class Dialect:
    """The parts of SQL in which the engines differ, for one engine.

    ``instant`` makes a timestamp of microseconds, ``size`` counts a list, ``at`` gives its element by number from 1 (-1: the
    last), ``last`` a number of its last elements, ``lowest`` and ``highest`` its extremes, ``filtered`` the elements ``_s`` for
    which a condition holds. ``members`` is the select list that unnests lists of one length as columns; ``listed`` aggregates
    a column to a list in the order of the stamps, ``earliest`` a float to its value at the first stamp; ``packed`` makes a
    struct of columns.
    """

    quoted: Callable[[str], str]
    instant: str
    size: str
    at: str
    last: str
    lowest: str
    highest: str
    filtered: str
    listed: str
    earliest: str
    members: Callable[[Sequence[tuple[str, str]]], str]
    packed: Callable[[Sequence[str]], str]


def _spark_quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _duck_quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _spark_members(lists: Sequence[tuple[str, str]]) -> str:
    if len(lists) == 1:
        return f"explode({lists[0][0]}) AS {lists[0][1]}"
    return f"inline(arrays_zip({', '.join(column for column, _ in lists)})) AS ({', '.join(name for _, name in lists)})"


def _spark_packed(names: Sequence[str]) -> str:
    return "named_struct({})".format(", ".join(f"'{name}', {_spark_quoted(name)}" for name in names))


def _duck_packed(names: Sequence[str]) -> str:
    return "struct_pack({})".format(", ".join(f"{_duck_quoted(name)} := {_duck_quoted(name)}" for name in names))


_EARLIEST = "min_by({}, _at)"
SPARK = Dialect(
    quoted=_spark_quoted,
    instant="timestamp_micros({})",
    size="CAST(size({}) AS BIGINT)",
    at="element_at({}, {})",
    last="slice({0}, CAST(size({0}) - {1} + 1 AS INT), CAST({1} AS INT))",
    lowest="array_min({})",
    highest="array_max({})",
    filtered="filter({}, _s -> {})",
    listed="transform(array_sort(collect_list(named_struct('a', _at, 'x', {0}))), e -> e.x)",
    earliest=_EARLIEST,
    members=_spark_members,
    packed=_spark_packed,
)
DUCKDB = Dialect(
    quoted=_duck_quoted,
    instant="make_timestamptz({})",
    size="len({})",
    at="list_extract({}, {})",
    last="list_slice({0}, len({0}) - {1} + 1, len({0}))",
    lowest="list_min({})",
    highest="list_max({})",
    filtered="list_filter({}, lambda _s : {})",
    listed="list({} ORDER BY _at)",
    earliest="list_extract(list({} ORDER BY _at), 1)",  # its min_by makes 0.0 of a float's -0.0
    members=lambda lists: ", ".join(f"unnest({column}) AS {name}" for column, name in lists),
    packed=_duck_packed,
)


@dataclass(frozen=True)
class Edge:
    """The edge of a window: its least stamp (microseconds; None: no point has left the window).

    In a window of rows, ``group`` is the least group with that stamp, as SQL literals. Members are ordered by (stamp, group),
    null groups first.
    """

    stamp: int | None = None
    group: tuple[str, ...] | None = None


def within(edge: Edge, stamp: str, groups: Sequence[str]) -> str:
    """Return the condition that a stamp of a group has not left the window; it is null for a null group that left at the edge.

    >>> within(Edge(5), "s", ["g"])
    's >= 5'
    >>> within(Edge(5, ("'a'",)), "s", ["g"])
    "(s > 5 OR s = 5 AND (g >= 'a'))"
    """
    if edge.stamp is None:
        return "true"
    if edge.group is None:
        return f"{stamp} >= {edge.stamp}"
    reached = "true"
    for name, value in reversed(list(zip(groups, edge.group, strict=True))):
        last = reached == "true"
        if value == "NULL":
            reached = reached if last else f"({name} IS NOT NULL OR {reached})"
        elif last:
            reached = f"({name} >= {value})"
        else:
            reached = f"({name} > {value} OR {name} = {value} AND {reached})"
    # A null group is less than every literal. The comparison then gives null, and a filter drops the row.
    return f"({stamp} > {edge.stamp} OR {stamp} = {edge.stamp} AND {reached})"


@dataclass(frozen=True)
class Query:
    """The query of a coalesced table in two parts; between them each engine evaluates ``same`` in its own way.

    ``near`` gives the members to coalesce: the members of rows that are split, and new points. With ``same`` each member has its
    previous member as ``previous``. ``rest`` gives the rows that stay, without the stamps that have left the window.
    """

    definition: CoalescedDefinition
    dialect: Dialect
    near: str
    rest: str

    def rows(self, near: str, rest: str) -> str:
        """Return the query for the rows of these relations: ``near`` has a column ``_same`` under ``same``.

        It gives the columns, the state, ``_ts`` (the first stamp) and ``_exp`` (when the last stamp has left the window).
        """
        d, definition = self.dialect, self.definition
        groups, values, lists = _names(definition, d)
        partition = _partition(groups)
        first, last = d.at.format(STAMPS, 1), d.at.format(STAMPS, -1)
        if definition.same is None:
            begins = " OR ".join(["row_number() OVER w = 1", *(f"{name} IS DISTINCT FROM lag({name}) OVER w" for name in values)])
            kinds = zip(values, (kind for _, kind in definition.values), strict=True)
            earliest = [(name, d.earliest if kind == "float" else _EARLIEST) for name, kind in kinds]
            columns = [*(f"{text.format(name)} AS {name}" for name, text in earliest), f"{d.listed.format(AT)} AS {STAMPS}"]
            shown = values
        else:
            begins = "row_number() OVER w = 1 OR NOT coalesce(_same, false)"
            pairs = zip((AT, *values), (STAMPS, *lists), strict=True)
            columns = [f"{d.listed.format(value)} AS {name}" for value, name in pairs]
            shown = [
                f"{text} AS {d.quoted(f'{end}_{name}')}"
                for name, column in zip(definition.compared, lists, strict=True)
                for end, text in (
                    ("first", d.at.format(column, 1)), ("last", d.at.format(column, -1)),
                    ("min", d.lowest.format(column)), ("max", d.highest.format(column)),
                )
            ]  # fmt: skip
        ends = f"{NEVER}" if definition.window is None else f"least(_last + {definition.window} + 1, {NEVER})"
        return f"""
WITH _broken AS (SELECT *, CASE WHEN {begins} THEN 1 ELSE 0 END AS _begins FROM {near} WINDOW w AS ({partition}ORDER BY {AT})),
_numbered AS (
  SELECT *, sum(_begins) OVER ({partition}ORDER BY {AT} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _run FROM _broken),
_runs AS (SELECT {_listed(*groups, *columns)} FROM _numbered GROUP BY {_listed(*groups, "_run")}),
_every AS (SELECT * FROM _runs UNION ALL SELECT * FROM {rest}),
_ends AS (SELECT *, {first} AS _first, {last} AS _last, lead({first}) OVER ({partition}ORDER BY {first}) AS _next FROM _every)
SELECT {_listed(*groups, *shown)}, {d.instant.format("_first")} AS valid_from,
  {d.instant.format("coalesce(_next, _last)")} AS valid_to, {d.size.format(STAMPS)} AS members, _next IS NULL AS open,
  {_listed(STAMPS, *lists)}, {d.instant.format("_first")} AS _ts, {d.instant.format(ends)} AS _exp
FROM _ends"""

    def whole(self, same: str = "") -> str:
        """Return the whole query; ``same`` is the condition in the engine's SQL that a member is like ``previous``."""
        near = self.near if self.definition.same is None else f"SELECT *, {same} AS _same FROM ({self.near}) AS _beside"
        return self.rows(f"({near}) AS _near", f"({self.rest}) AS _rest")


def coalesced(definition: CoalescedDefinition, dialect: Dialect, edge: Edge, *, stored: str, arrived: str) -> Query:
    """Return the query for the rows of some groups after a batch of points.

    Parameters
    ----------
    definition
        The definition of the table.
    dialect
        The SQL dialect of the engine.
    edge
        The edge of the window.
    stored, arrived
        The relations that the query reads. ``stored`` has all rows of these groups before the batch, with the columns and the
        state of the table. ``arrived`` has their new points, with the columns of the group, the compared columns, and ``_at``.

    """
    d = dialect
    groups, values, lists = _names(definition, d)
    partition, plain = _partition(groups), definition.same is None
    value_columns = values if plain else []
    first = d.at.format(STAMPS, 1)
    kept_members = d.size.format(d.filtered.format(STAMPS, within(edge, "_s", groups)))
    equal = " AND ".join(f"p.{name} IS NOT DISTINCT FROM b.{name}" for name in groups) or "true"
    bounds = _listed(*groups, f"min({AT}) AS _lo, max({AT}) AS _hi")
    grouped = f" GROUP BY {', '.join(groups)}" if groups else ""
    judged = f"""
WITH _bounds AS (SELECT {bounds} FROM {arrived}{grouped}),
_placed AS (
  SELECT {_listed(*groups, *value_columns, STAMPS, *lists)}, {kept_members} AS _kept, {first} AS _first,
    lead({first}) OVER w AS _next, lag({first}) OVER w AS _before
  FROM {stored} WINDOW w AS ({partition}ORDER BY {first})),
_judged AS (
  SELECT p.*, _lo IS NOT NULL AND (_next IS NULL OR _next > _lo) AND (_first <= _hi OR _before IS NULL OR _before <= _hi) AS _hit
  FROM _placed p LEFT JOIN _bounds b ON {equal})"""
    remaining = [f"{d.last.format(name, '_kept')} AS {name}" for name in (STAMPS, *lists)]
    unnested = d.members([(STAMPS, AT), *zip(lists, values, strict=False)])
    order = _listed("_side", *(f"{name} NULLS FIRST" for name in values))
    previous = "" if plain else f"lag({d.packed(definition.compared)}) OVER ({partition}ORDER BY {AT}) AS {PREVIOUS}"
    near = f"""{judged},
_apart AS (SELECT {_listed(*groups, *value_columns, unnested)} FROM _judged WHERE _hit),
_members AS (
  SELECT {_listed(*groups, *values, AT)}, 0 AS _side FROM _apart
  UNION ALL SELECT {_listed(*groups, *values, AT)}, 1 AS _side FROM {arrived}),
_ranked AS (
  SELECT *, row_number() OVER (PARTITION BY {_listed(*groups, AT)} ORDER BY {order}) AS _nth
  FROM _members WHERE {within(edge, AT, groups)})
SELECT {_listed(*groups, *values, AT, previous)} FROM _ranked WHERE _nth = 1"""
    rest = f"{judged}\nSELECT {_listed(*groups, *value_columns, *remaining)} FROM _judged WHERE NOT _hit AND _kept > 0"
    return Query(definition, dialect, near, rest)


def _names(definition: CoalescedDefinition, dialect: Dialect) -> tuple[list[str], list[str], list[str]]:
    """The columns of the group, the compared columns, and the state columns with the lists of compared values (for ``same``)."""
    lists = [] if definition.same is None else [values_column(name) for name in definition.compared]
    return tuple([dialect.quoted(name) for name in names] for names in (definition.groups, definition.compared, lists))  # type: ignore[return-value]


def _partition(groups: Sequence[str]) -> str:
    return f"PARTITION BY {', '.join(groups)} " if groups else ""


def _listed(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
