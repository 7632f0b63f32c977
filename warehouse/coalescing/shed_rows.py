"""DuckDB queries for the rows of a coalesced table with shedding: fragments of exact rows, and the ledger of shed members.

A stored row is a fragment of an exact run; its end is frozen, so the hole between two fragments stays. The open row of a group
lists in ``_ledger`` the exact runs of the group that lost members, with all their stamps. So the exact rows are these runs, and
the stored rows that are no fragments of these runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.coalescing.definition import LEDGER, STAMPS, values_column
from warehouse.coalescing.islands import DUCKDB
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.coalescing.definition import CoalescedDefinition

__all__ = ["RUN", "exact_members", "fragments"]

RUN = "_run"
"""The number of an exact run."""


def exact_members(definition: CoalescedDefinition, stored: str) -> str:
    """Return the query that reconstructs the exact rows from the stored ones: the group, the compared columns, and the stamps.

    Parameters
    ----------
    definition
        The definition of the table; it has a ledger.
    stored
        The relation of its rows.

    """
    groups, members = _quoted(definition.groups), _members(definition)
    of_run = [f"_entry.v{position} AS {name}" for position, name in enumerate(members)]
    same_row = " AND ".join([*(f"o.{name} IS NOT DISTINCT FROM m.{name}" for name in groups), f"o.{STAMPS}[1] = m._at"])
    shown = ", ".join([*groups, *members, STAMPS])
    return f"""
WITH _entries AS (SELECT {_listed(*groups)}unnest({LEDGER}) AS _entry FROM {stored} WHERE len({LEDGER}) > 0),
_of_runs AS (SELECT {_listed(*groups)}unnest(_entry.stamps) AS _at FROM _entries)
SELECT {shown} FROM {stored} AS o ANTI JOIN _of_runs AS m ON {same_row}
UNION ALL SELECT {", ".join([*groups, *of_run, f"_entry.stamps AS {STAMPS}"])} FROM _entries"""


def fragments(definition: CoalescedDefinition, exact: str, pieces: str, lost: str) -> str:
    """Return the query for the rows to store: the fragments that are left of the exact rows; open rows have the ledger.

    Parameters
    ----------
    definition
        The definition of the table; it has a ledger.
    exact
        The relation of the exact rows, numbered by ``_run``.
    pieces
        The relation of the fragments: ``_run``, and ``lo`` and ``hi``, the numbers of the first and the last kept member from 1.
    lost
        The relation of the runs that lost members: ``_run``, and ``shed``, the stamps of these members.

    """
    d, groups = DUCKDB, _quoted(definition.groups)
    cut = "list_slice(x.{}, p.lo, p.hi)"
    if definition.same is None:
        shown, lists = [f"x.{d.quoted(name)}" for name, _ in definition.shown], []
    else:
        slices = {name: cut.format(d.quoted(values_column(name))) for name in definition.compared}
        lists = [f"{slice_sql} AS {d.quoted(values_column(name))}" for name, slice_sql in slices.items()]
        shown = [
            f"{text} AS {d.quoted(f'{end}_{name}')}"
            for name, slice_sql in slices.items()
            for end, text in (
                ("first", d.at.format(slice_sql, 1)), ("last", d.at.format(slice_sql, -1)),
                ("min", d.lowest.format(slice_sql)), ("max", d.highest.format(slice_sql)),
            )
        ]  # fmt: skip
    values = [f"v{position} := x.{name}" for position, name in enumerate(_members(definition))]
    entry = _listed(f"stamps := x.{STAMPS}", "shed := l.shed", "until := epoch_us(x.valid_to)", *values).removesuffix(", ")
    by, non_empty = (f" GROUP BY {', '.join(f'x.{name}' for name in groups)}", "") if groups else ("", " HAVING count(*) > 0")
    same_group = " AND ".join(f"f.{name} IS NOT DISTINCT FROM g.{name}" for name in groups) or "true"
    start, last = f"x.{STAMPS}[p.lo]", f"x.{STAMPS}[p.hi]"
    ends = f"{NEVER}" if definition.window is None else f"least({last} + {definition.window} + 1, {NEVER})"
    return f"""
WITH _left AS (
  SELECT {_listed(*(f"x.{name}" for name in groups), *shown)}
    {d.instant.format(start)} AS valid_from,
    CASE WHEN p.hi < len(x.{STAMPS}) THEN {d.instant.format(f"x.{STAMPS}[p.hi + 1]")} ELSE x.valid_to END AS valid_to,
    CAST(p.hi - p.lo + 1 AS BIGINT) AS members, x.open AND p.hi = len(x.{STAMPS}) AS open,
    {_listed(f"{cut.format(STAMPS)} AS {STAMPS}", *lists)}
    {d.instant.format(start)} AS _ts, {d.instant.format(ends)} AS _exp
  FROM {exact} AS x JOIN {pieces} AS p USING ({RUN})),
_ledgers AS (
  SELECT {_listed(*(f"x.{name}" for name in groups))}list(struct_pack({entry}) ORDER BY x.{STAMPS}[1]) AS {LEDGER}
  FROM {exact} AS x JOIN {lost} AS l USING ({RUN}){by}{non_empty})
SELECT f.*, g.{LEDGER} FROM _left AS f LEFT JOIN _ledgers AS g ON f.open AND {same_group}"""


def _members(definition: CoalescedDefinition) -> list[str]:
    """The columns with the compared values of a row's members."""
    names = definition.compared if definition.same is None else map(values_column, definition.compared)
    return _quoted([*names])


def _quoted(names: Sequence[str]) -> list[str]:
    return [*map(DUCKDB.quoted, names)]


def _listed(*parts: str) -> str:
    return "".join(f"{part}, " for part in parts)
