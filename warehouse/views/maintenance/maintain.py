"""Maintaining one node: from what arrived and what expired to what its step commits.

Append nodes (MON, WKS, WK) gain rows and lose them by their own ``_exp``; keyed nodes (STR) are replaced where they changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.time import NEVER
from warehouse.views.algebra import (
    AntiJoin,
    BagDifference,
    Changes,
    Distinct,
    Group,
    Join,
    OuterJoin,
    OutputWindow,
    Top,
    inputs_of,
    scanned,
    stateful_of,
)
from warehouse.views.maintenance.distinct import moved
from warehouse.views.maintenance.feeds import changes, feed, most_arrived, over
from warehouse.views.maintenance.groups import adjusted, is_adjustable, recomputed, state_columns
from warehouse.views.maintenance.join_inputs import join_inputs
from warehouse.views.maintenance.joins import joined, new_results
from warehouse.views.maintenance.kept import FEW, can_be_gathered, gathered, gathered_keys, kept
from warehouse.views.maintenance.keyed import Replacement, replacement
from warehouse.views.maintenance.keys import among, renamed
from warehouse.views.maintenance.negation import difference, uncovered
from warehouse.views.maintenance.outer import outer_joined
from warehouse.views.maintenance.placement import placed
from warehouse.views.maintenance.tops import first_rows, newest_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from warehouse.layout import Layout
    from warehouse.views.algebra import Node, Operator
    from warehouse.views.maintenance.feeds import Move, Tables

__all__ = ["Maintenance"]


@dataclass
class Maintenance:
    """One node at one step.

    Parameters
    ----------
    node, layout
        What it is and how its table is laid out.
    move
        From when to when.
    tables
        What it reads.
    own, spares
        Its own rows, and for DISTINCT the spare ones, that were live at the last epoch (none on a first build), with
        all columns of their tables.

    """

    node: Node
    layout: Layout
    move: Move
    tables: Tables
    own: Callable[[], DataFrame | None]
    spares: Callable[[], DataFrame | None]
    _held: list[Callable[[], object]] = field(default_factory=list)
    _values: DataFrame | None = None

    @property
    def core(self) -> Operator | None:
        """The operator whose state the node is."""
        return stateful_of(self.node.operator)

    def release(self) -> None:
        """Let the kept rows go."""
        for release in self._held:
            release()
        self._held.clear()
        self._values = None

    def analysed(self) -> DataFrame:
        """Return the answer over whole inputs, for its columns only: nothing runs."""
        core = self.core
        match core:
            case None:
                return feed(self.node.operator, self.tables.now, self.tables.versions)
            case Distinct() | Changes():
                rows = feed(core.input, self.tables.now, self.tables.versions)
            case Join():
                rows = joined(core, [feed(each, self.tables.now, self.tables.versions) for each in core.inputs])
            case OutputWindow():
                below = stateful_of(core.input)
                if isinstance(below, Join):
                    parts = [feed(each, self.tables.now, self.tables.versions) for each in below.inputs]
                    rows = over(core.input, below, joined(below, parts))
                else:
                    rows = feed(core.input, self.tables.now, self.tables.versions)
            case _:
                return self._current(None, None)
        return over(self.node.operator, core, rows)

    # --- append nodes ---

    def appended(self) -> DataFrame | None:
        """Return the rows that entered the answer, placed, with ``_fate`` (``dead``: short-lived); none when none can be.

        They are kept until :meth:`release` as they are before they are placed: the code that computes them is then the same
        at each step, and those that it makes are few.
        """
        if isinstance(self.core, Distinct):
            return placed(self._appearances(), self.node.columns, self.layout, self.move)
        rows = self._arrivals(self.node.operator)
        return None if rows is None else placed(self._kept(rows), self.node.columns, self.layout, self.move)

    def _kept(self, rows: DataFrame) -> DataFrame:
        held, release = kept(rows)
        self._held.append(release)
        return held

    def _arrivals(self, operator: Operator) -> DataFrame | None:
        core = stateful_of(operator)
        match core:
            case None:
                return feed(operator, self.tables.arrived, self.tables.versions)
            case Join():
                inputs = join_inputs(core, self.tables, self.move)
                self._held.append(inputs.release)
                rows = new_results(core, inputs)
            case OutputWindow(length=int() as length):
                rows = self._arrivals(core.input)
                rows = None if rows is None else _until(rows, f"unix_micros(_ts) + {length}L")
            case Changes():
                rows = _until(feed(core.input, self.tables.arrived, self.tables.versions), f"{NEVER}L")
            case _:
                raise TypeError(f"{type(core).__name__} is not maintained by appending")
        return None if rows is None else over(operator, core, rows)

    def _appearances(self) -> DataFrame:
        """Rows of DISTINCT: those shown now, and appearances that were over before anybody could see them."""
        value = [quoted(name) for name in self.node.columns]
        values = self.values()
        shown = values.where("exp IS NOT NULL").selectExpr(
            *value, "timestamp_micros(gen) AS _ts", "timestamp_micros(exp) AS _exp"
        )
        lost = values.selectExpr(*value, "explode(lost) AS _span").selectExpr(
            *value, "timestamp_micros(_span.gen) AS _ts", "timestamp_micros(_span.exp) AS _exp"
        )
        return shown.unionByName(lost).selectExpr(*value, "_ts", "_exp", "_exp AS _out")

    def values(self) -> DataFrame:
        """Return what becomes of each touched value of DISTINCT; both of its tables are written from it."""
        if self._values is None:
            core = self.core
            if not isinstance(core, Distinct):
                raise TypeError(f"{self.node.table} is no DISTINCT")
            rows = over(self.node.operator, core, feed(core.input, self.tables.arrived, self.tables.versions))
            arrived = rows.where("_exp > _ts").select(*map(quoted, self.node.columns), "_ts", "_exp")
            most = most_arrived(core.input, self.tables)
            if most is not None and most <= FEW and can_be_gathered(arrived):
                arrived, _ = gathered(arrived)
            held = [rows for rows in (self.own(), self.spares()) if rows is not None]
            if held:
                value = [quoted(name) for name in self.node.columns]
                gone = self.tables.ended(self.node.table).select(*value)
                touched = self._known(arrived.select(*value).unionByName(gone).distinct())
                held = [among(rows, touched, self.node.columns) for rows in held]
            self._values = self._kept(moved(arrived, held, self.node.columns, self.move))
        return self._values

    def spared(self, layout: Layout) -> Replacement:
        """Return the new content of the table of spare rows."""
        columns = self.node.columns
        value = [quoted(name) for name in columns]
        values = self.values().where("spare IS NOT NULL OR had_spare")
        new = values.where("spare IS NOT NULL").selectExpr(
            *value, f"timestamp_micros({self.move.now}L) AS _ts", "timestamp_micros(spare) AS _exp"
        )
        old = self.spares()
        if old is None:
            return self._replaced(_placeless(new), new, None, columns, layout)
        return self._replaced(old, new, self._known(values.select(*value)), columns, layout)

    # --- keyed nodes ---

    def replaced(self) -> tuple[Replacement, DataFrame | None]:
        """Return the new content of the buckets that changed, and short-lived rows where they are known."""
        old = None if self.move.first else self.own()
        keys = None if old is None else self._changed_keys()
        if keys is not None:
            keys = self._known(keys)
        state: Sequence[str] = ()
        if isinstance(self.core, Group) and is_adjustable(self.core, self._input_types()):
            state = state_columns(self.core)
        rows = self._current(keys, old)
        lost = None
        if isinstance(self.core, AntiJoin):
            if not self.move.first:  # asked for again: which are short-lived, and how many
                rows = self._kept(rows)
            lost = rows.where(f"unix_micros(_exp) <= {self.move.now}L")
            rows = rows.where(f"unix_micros(_exp) > {self.move.now}L")
        elif self.core is None:
            lost = self._unseen()
        changed_key = self.node.changed_key or self.node.search_key
        result = self._replaced(_placeless(rows) if old is None else old, rows, keys, changed_key, self.layout, state)
        return result, lost

    def _known(self, keys: DataFrame) -> DataFrame:
        """The changed keys, computed once."""
        few = gathered_keys(keys)
        return self._kept(keys) if few is None else few

    def _unseen(self) -> DataFrame | None:
        """What a selection makes of rows that were over before anybody could see them."""
        operator = self.node.operator
        if self.move.first or not any(self.tables.unseen(table) is not None for table in scanned(operator)):
            return None

        def gone(table: str) -> DataFrame:
            rows = self.tables.unseen(table)
            return self.tables.now(table).where("false") if rows is None else rows

        return feed(operator, gone, self.tables.versions)

    @property
    def _timed(self) -> bool:
        """Whether rows are told apart by their times too: those of a row window that a join above asks for what came."""
        return self.node.hidden and isinstance(self.core, Top) and not self.core.order

    def _replaced(
        self,
        old: DataFrame,
        new: DataFrame,
        keys: DataFrame | None,
        changed_key: Sequence[str],
        layout: Layout,
        state: Sequence[str] = (),
    ) -> Replacement:
        columns = self.node.columns
        search_key = columns if layout is not self.layout else self.node.search_key
        result = replacement(
            old, new, keys, changed_key,
            columns=columns, search_key=search_key, state=state, layout=layout, move=self.move, timed=self._timed,
        )  # fmt: skip
        self._held.append(result.release)
        return result

    def _changed_keys(self) -> DataFrame | None:
        """The keys of rows that came or went; none: the whole answer is looked at."""
        core, node = self.core, self.node
        if core is None:
            return renamed(changes(node.operator, self.tables, self.move), node.search_key, node.search_key).distinct()
        if not node.changed_key:
            return None
        parts = [
            renamed(changes(each, self.tables, self.move), by, node.changed_key)
            for each, by in zip(inputs_of(core), node.changed_by, strict=True)
        ]
        keys = parts[0]
        for part in parts[1:]:
            keys = keys.unionByName(part)
        return keys.distinct()

    def _current(self, keys: DataFrame | None, old: DataFrame | None) -> DataFrame:
        """The rows of the changed keys that are in the answer now, with the carried columns."""
        core, node = self.core, self.node
        match core:
            case None:
                rows = feed(node.operator, self.tables.now, self.tables.versions)
                return among(rows, keys, node.search_key)
            case Group():
                return self._grouped(core, keys, old)
            case AntiJoin():
                sides = [self._recent(side, keys, number) for number, side in enumerate((core.left, core.right))]
                rows = uncovered(sides[0], sides[1], core.on, self.move)
            case BagDifference():
                left, right = (self._live(side, keys, number) for number, side in enumerate((core.left, core.right)))
                rows = difference(left, right, left_columns(left))
            case OuterJoin():
                left, right = (self._live(side, keys, number) for number, side in enumerate((core.left, core.right)))
                rows = outer_joined(core, left, right)
            case Top():
                rows = first_rows(core, self._live(core.input, keys, 0))
            case Join():
                rows = joined(core, [self._live(each, keys, number) for number, each in enumerate(core.inputs)])
            case OutputWindow(rows=int() as limit):
                rows = self._latest(core, limit, old)
            case _:
                raise TypeError(f"{type(core).__name__} is not maintained by keys")
        return over(node.operator, core, rows)

    def _live(self, operator: Operator, keys: DataFrame | None, number: int) -> DataFrame:
        """An input's rows of the changed keys that are live now."""
        rows = feed(operator, self.tables.now, self.tables.versions).where(f"unix_micros(_exp) > {self.move.now}L")
        by = self.node.changed_by[number] if self.node.changed_by else ()
        return among(rows, keys, by, self.node.changed_key)

    def _recent(self, operator: Operator, keys: DataFrame | None, number: int) -> DataFrame:
        """An input's rows of the changed keys that lived at any time since the last epoch."""
        if self.move.first or any(self.tables.keyed(table) for table in scanned(operator)):
            return self._live(operator, keys, number)
        before = feed(operator, self.tables.before, self.tables.versions)
        arrived = feed(operator, self.tables.arrived, self.tables.versions)
        rows = before.unionByName(arrived).where(f"unix_micros(_exp) > {self.move.before}L AND _exp > _ts")
        return among(rows, keys, self.node.changed_by[number], self.node.changed_key)

    def _input_types(self) -> dict[str, str]:
        if not isinstance(self.core, Group):
            return {}
        return dict(feed(self.core.input, self.tables.now, self.tables.versions).dtypes)

    def _grouped(self, group: Group, keys: DataFrame | None, old: DataFrame | None) -> DataFrame:
        types = self._input_types()
        if is_adjustable(group, types):
            if old is None:
                rows = adjusted(group, self._live(group.input, None, 0).selectExpr("*", "1 AS _weight"), None, types)
            else:
                moved_rows = changes(group.input, self.tables, self.move)
                rows = adjusted(group, moved_rows, among(old, keys, group.keys), types)
        else:
            rows = recomputed(group, self._live(group.input, keys, 0))
        names = [quoted(name) for name in rows.columns]
        never = f"timestamp_micros({NEVER}L)"
        return rows.selectExpr(*names, f"timestamp_micros({self.move.now}L) AS _ts", f"{never} AS _exp", f"{never} AS _out")

    def _latest(self, window: OutputWindow, limit: int, old: DataFrame | None) -> DataFrame:
        """The last results of all that were and those that came."""
        rows = self._arrivals(window.input)
        never = f"timestamp_micros({NEVER}L)"
        parts = []
        if rows is not None:
            parts.append(_until(rows, f"{NEVER}L"))
        if old is not None:
            own = [quoted(name) for name in self.node.columns]
            parts.append(old.selectExpr(*own, "_ts", f"{never} AS _exp", f"{never} AS _out"))
        every = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
        return newest_rows(every, limit)


def left_columns(rows: DataFrame) -> list[str]:
    """Return the columns that are not carried."""
    return [name for name in rows.columns if name not in ("_ts", "_exp", "_out", "_weight")]


def _until(rows: DataFrame, end: str) -> DataFrame:
    """Let what is derived from rows leave the answer at an instant of their own."""
    others = [quoted(name) for name in rows.columns if name != "_out"]
    return rows.selectExpr(*others, f"timestamp_micros({end}) AS _out")


def _placeless(rows: DataFrame) -> DataFrame:
    """No rows, with the columns of a keyed table."""
    return rows.where("false").withColumns(
        {
            "_load_slot": F.lit(0).cast("bigint"),
            "_exp_slot": F.lit(0).cast("bigint"),
        }
    )
