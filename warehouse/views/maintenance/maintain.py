"""Maintaining one node: from what arrived and what expired to what its step commits.

Append nodes (MON, WKS, WK) gain rows and lose them by their own ``_exp``; keyed nodes (STR) are replaced where they changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.storage.arrow_types import can_be_gathered
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
from warehouse.views.maintenance.kept import FEW, Keys, gathered, gathered_keys, kept
from warehouse.views.maintenance.keyed import Replacement, replacement
from warehouse.views.maintenance.keys import among, renamed
from warehouse.views.maintenance.local_joins import local_results
from warehouse.views.maintenance.narrowing import narrowed
from warehouse.views.maintenance.negation import difference, uncovered
from warehouse.views.maintenance.outer import outer_joined
from warehouse.views.maintenance.picking import keeps_values, picked_above
from warehouse.views.maintenance.placement import placed, placed_here
from warehouse.views.maintenance.tops import first_rows, newest_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from warehouse.layout import Layout
    from warehouse.views.algebra import Node, Operator
    from warehouse.views.maintenance.feeds import Move, Tables
    from warehouse.views.maintenance.narrowing import Scanned

__all__ = ["Entered", "Maintenance"]


@dataclass(frozen=True)
class Entered:
    """The rows that entered an answer; ``known`` where they are at hand."""

    rows: DataFrame
    known: pa.Table | None = None


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
        all columns of their tables; of some keys alone, where rows that have others may be missing.

    """

    node: Node
    layout: Layout
    move: Move
    tables: Tables
    own: Callable[[pa.Table | None], DataFrame | None]
    spares: Callable[[pa.Table | None], DataFrame | None]
    _held: list[Callable[[], object]] = field(default_factory=list)
    _values: DataFrame | None = None
    _local: bool = False

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

    def appended(self) -> Entered | None:
        """Return the rows that entered the answer, placed, with ``_fate`` (``dead``: short-lived); none when none can be.

        Few are at hand, or are gathered. Others are kept until :meth:`release` as they are before they are placed: the code
        that computes them is then the same at each step, and those that it makes are few.
        """
        if isinstance(self.core, Distinct):
            return Entered(placed(self._appearances(), self.node.columns, self.layout, self.move))
        rows = self._arrivals(self.node.operator)
        if rows is None:
            return None
        if not isinstance(rows, DataFrame):
            known = rows
        elif self._local and can_be_gathered(rows.schema):
            with self.tables.interpreted():
                known = rows.toArrow()
        else:
            return Entered(placed(self._kept(rows), self.node.columns, self.layout, self.move))
        known = placed_here(known, self.node.columns, self.layout, self.move)
        return Entered(self.tables.frame(known), known)

    def _kept(self, rows: DataFrame) -> DataFrame:
        held, release = kept(rows)
        self._held.append(release)
        return held

    def _arrivals(self, operator: Operator) -> DataFrame | pa.Table | None:
        """What entered an operator's answer, not placed; at hand where nothing is left to Spark."""
        core = stateful_of(operator)
        match core:
            case None:
                return feed(operator, self.tables.arrived, self.tables.versions)
            case Join():
                inputs = join_inputs(core, self.tables, self.move)
                self._held.append(inputs.release)
                found = local_results(core, inputs, operator)
                if found is None:
                    rows = new_results(core, inputs)
                else:
                    own = picked_above(operator, core, found) if core.where is None else None
                    if own is not None:
                        return own
                    self._local = keeps_values(self.node.operator, core)
                    rows = self.tables.frame(found)
                    rows = rows if core.where is None else rows.where(core.where)
            case OutputWindow(length=int() as length):
                rows = self._arriving(core.input)
                rows = None if rows is None else _until(rows, f"unix_micros(_ts) + {length}L")
            case Changes():
                rows = _until(feed(core.input, self.tables.arrived, self.tables.versions), f"{NEVER}L")
            case _:
                raise TypeError(f"{type(core).__name__} is not maintained by appending")
        return None if rows is None else over(operator, core, rows)

    def _arriving(self, operator: Operator) -> DataFrame | None:
        """The same as a frame."""
        rows = self._arrivals(operator)
        return rows if rows is None or isinstance(rows, DataFrame) else self.tables.frame(rows)

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
            if most is not None and most <= FEW and can_be_gathered(arrived.schema):
                arrived, _ = gathered(arrived)
            held: list[DataFrame] = []
            if not self.move.first:
                value = [quoted(name) for name in self.node.columns]
                gone = self.tables.ended(self.node.table).select(*value)
                touched = self._known(arrived.select(*value).unionByName(gone).distinct())
                stored = (self.own(touched.values), self.spares(touched.values))
                held = [among(rows, touched.rows, self.node.columns) for rows in stored if rows is not None]
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
        old = self.spares(None)
        if old is None:
            return self._replaced(_placeless(new), new, None, columns, layout)
        keys = self._known(values.select(*value))
        return self._replaced(old, new, keys, columns, layout, of_keys=self.spares(keys.values))

    # --- keyed nodes ---

    def replaced(self) -> tuple[Replacement, DataFrame | None]:
        """Return the new content of the buckets that changed, and short-lived rows where they are known."""
        old = None if self.move.first else self.own(None)
        keys = None if old is None else self._changed_keys()
        known = None if keys is None else self._known(keys)
        state: Sequence[str] = ()
        if isinstance(self.core, Group) and is_adjustable(self.core, self._input_types()):
            state = state_columns(self.core)
        of_keys = old if known is None or known.values is None else self.own(known.values)
        rows = self._current(known, of_keys)
        lost = None
        if isinstance(self.core, AntiJoin):
            if not self.move.first:  # asked for again: which are short-lived, and how many
                rows = self._kept(rows)
            lost = rows.where(f"unix_micros(_exp) <= {self.move.now}L")
            rows = rows.where(f"unix_micros(_exp) > {self.move.now}L")
        elif self.core is None:
            lost = self._unseen()
        changed_key = self.node.changed_key or self.node.search_key
        if old is not None and not state and isinstance(self.core, Group):  # a table of a build that adjusted such sums
            kinds = {name: kind for name, kind in old.dtypes if name.startswith("_state_")}
            rows = rows.withColumns({name: F.lit(None).cast(kind) for name, kind in kinds.items()}) if kinds else rows
            state = list(kinds)
        result = self._replaced(
            _placeless(rows) if old is None else old, rows, known, changed_key, self.layout, state, of_keys=of_keys
        )
        return result, lost

    def _known(self, keys: DataFrame) -> Keys:
        """The changed keys, computed once."""
        return gathered_keys(keys) or Keys(self._kept(keys))

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
        keys: Keys | None,
        changed_key: Sequence[str],
        layout: Layout,
        state: Sequence[str] = (),
        *,
        of_keys: DataFrame | None = None,
    ) -> Replacement:
        columns = self.node.columns
        search_key = columns if layout is not self.layout else self.node.search_key
        result = replacement(
            old, new, None if keys is None else keys.rows, changed_key, of_keys=old if of_keys is None else of_keys,
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

    def _current(self, keys: Keys | None, old: DataFrame | None) -> DataFrame:
        """The rows of the changed keys that are in the answer now, with the carried columns."""
        core, node = self.core, self.node
        match core:
            case None:
                return self._of_keys(node.operator, self.tables.now, keys, node.search_key)
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

    def _of_keys(
        self,
        operator: Operator,
        scan: Scanned,
        keys: Keys | None,
        columns: Sequence[str],
        by: Sequence[str] | None = None,
    ) -> DataFrame:
        """A pipeline's rows whose columns are one of the keys (which call them ``by``); no keys: all rows."""
        if keys is None:
            return feed(operator, scan, self.tables.versions)
        values = None if keys.values is None or not columns else keys.values.select(list(by or columns))
        rows = feed(operator, narrowed(operator, scan, columns, values), self.tables.versions)
        return among(rows, keys.rows, columns, by)

    def _live(self, operator: Operator, keys: Keys | None, number: int) -> DataFrame:
        """An input's rows of the changed keys that are live now."""
        by = self.node.changed_by[number] if self.node.changed_by else ()
        rows = self._of_keys(operator, self.tables.now, keys, by, self.node.changed_key)
        return rows.where(f"unix_micros(_exp) > {self.move.now}L")

    def _recent(self, operator: Operator, keys: Keys | None, number: int) -> DataFrame:
        """An input's rows of the changed keys that lived at any time since the last epoch."""
        if self.move.first or any(self.tables.keyed(table) for table in scanned(operator)):
            return self._live(operator, keys, number)
        by, changed = self.node.changed_by[number], self.node.changed_key
        before = self._of_keys(operator, self.tables.before, keys, by, changed)
        came = feed(operator, self.tables.arrived, self.tables.versions)
        arrived = among(came, None if keys is None else keys.rows, by, changed)
        return before.unionByName(arrived).where(f"unix_micros(_exp) > {self.move.before}L AND _exp > _ts")

    def _input_types(self) -> dict[str, str]:
        if not isinstance(self.core, Group):
            return {}
        return dict(feed(self.core.input, self.tables.now, self.tables.versions).dtypes)

    def _grouped(self, group: Group, keys: Keys | None, old: DataFrame | None) -> DataFrame:
        types = self._input_types()
        if is_adjustable(group, types):
            if old is None:
                rows = adjusted(group, self._live(group.input, None, 0).selectExpr("*", "1 AS _weight"), None, types)
            else:
                moved_rows = changes(group.input, self.tables, self.move)
                rows = adjusted(group, moved_rows, among(old, None if keys is None else keys.rows, group.keys), types)
        else:
            rows = recomputed(group, self._live(group.input, keys, 0))
        names = [quoted(name) for name in rows.columns]
        never = f"timestamp_micros({NEVER}L)"
        return rows.selectExpr(*names, f"timestamp_micros({self.move.now}L) AS _ts", f"{never} AS _exp", f"{never} AS _out")

    def _latest(self, window: OutputWindow, limit: int, old: DataFrame | None) -> DataFrame:
        """The last results of all that were and those that came."""
        rows = self._arriving(window.input)
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
