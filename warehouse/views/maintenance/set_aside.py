"""Rows that ended while one of their units was owed, for a view under a budget that reports its short-lived results.

They stay in a separate keyed table (``VIEW.owed``) until their units are made. So the pairs of an owed unit do not change: pairs
with an ended part go to the short-lived results, all others into the view. The invariant of the table, at each epoch with ledger
L:

    it holds each row of an input that ended after the view was built, and has a partner, of either kind, in a unit that L owes

A row keeps its load slot; a row that ended before it was stored has the slot of its update. The table's ``_ts`` is the window
time of the update in which a row ended. A pair counts if neither row had ended before the update that loaded the other: an update
without a budget finds exactly these pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import ColumnRecord
from warehouse.catalog.identifiers import quoted
from warehouse.time import NEVER
from warehouse.views.maintenance.inputs import NodeTable, user_columns
from warehouse.views.maintenance.keyed import Replacement, no_stored_rows_like, replacement
from warehouse.views.maintenance.pipelines import CARRIED, LOADED, relation, window_lengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from warehouse.layout import Layout
    from warehouse.views.algebra import Join, Operator
    from warehouse.views.maintenance.inputs import NodeInputs

__all__ = ["GONE", "SetAside", "set_aside_columns", "set_aside_replacement"]

GONE = "_gone"
"""The column with the window time (microseconds) of the update in which a row ended."""

_SIDE, _BEGINS, _ENDS, _OUT = "side", "begins", "ends", "outlasts"
_LOADED = "loaded"
_SYSTEM = ((_SIDE, "int"), (_LOADED, "bigint"), (_BEGINS, "timestamp"), (_ENDS, "timestamp"), (_OUT, "timestamp"))


def set_aside_columns(inputs: Sequence[Operator], tables: dict[str, NodeTable]) -> tuple[ColumnRecord, ...]:
    """Return the columns of a table of rows of a join's two inputs: the input, the times, and the columns of both."""
    columns = [ColumnRecord(name, kind) for name, kind in _SYSTEM]
    for number, operator in enumerate(inputs):
        rows = relation(operator, tables, NodeTable.live_now)
        types = dict(rows.dtypes)
        columns += [ColumnRecord(_name(number, index), types[name]) for index, name in enumerate(user_columns(rows))]
    return tuple(columns)


def _name(number: int, index: int) -> str:
    return f"row{number}_{index}"


@dataclass(frozen=True, eq=False)
class SetAside:
    """The rows that are set aside: earlier rows, in ``table``, and rows that end with this step."""

    inputs: NodeInputs
    core: Join
    table: NodeTable

    def rows(self, number: int) -> DataFrame:
        """Return the rows of one input that are set aside, with the columns of its pipeline and their load slot."""
        return self._rows[number]

    @cached_property
    def _rows(self) -> tuple[DataFrame, DataFrame]:
        left, right = (self.inputs.cache.add(self._held(number).unionByName(self._ended(number))) for number in (0, 1))
        return left, right

    @cached_property
    def any(self) -> bool:
        """Whether any row is set aside."""
        return any(not rows.isEmpty() for rows in self._rows)

    def _held(self, number: int) -> DataFrame:
        """Return the rows of one input that were set aside before."""
        columns = [f"{_name(number, index)} AS {quoted(name)}" for index, name in enumerate(user_columns(self._pipeline(number)))]
        times = [f"{column} AS {name}" for column, name in zip((_BEGINS, _ENDS, _OUT), CARRIED, strict=True)]
        return (
            self.table.live_before()
            .where(f"{_SIDE} = {number}")
            .selectExpr(*columns, *times, f"{_LOADED} AS {LOADED}", f"unix_micros(_ts) AS {GONE}")
        )

    def _pipeline(self, number: int) -> DataFrame:
        return relation(self.core.inputs[number], self.inputs.tables, NodeTable.live_now)

    def _ended(self, number: int) -> DataFrame:
        """Return the rows of one input that were live at the last epoch, or arrived since, and have ended."""
        operator, move = self.core.inputs[number], self.inputs.move
        whole = any(window_lengths(operator))
        lived = relation(operator, self.inputs.tables, lambda table: table.live_before_with_slots(whole=whole))
        arrived = relation(operator, self.inputs.tables, lambda table: table.arrived().selectExpr("*", f"{move.k}L AS {LOADED}"))
        has_ended = f"_exp > _ts AND unix_micros(_exp) <= {move.now}L"
        ended = lived.where(f"{has_ended} AND unix_micros(_exp) > {move.before}L").unionByName(arrived.where(has_ended))
        return ended.selectExpr("*", f"{move.now}L AS {GONE}")

    def stored(self, number: int, rows: DataFrame) -> DataFrame:
        """Return rows of one input with the columns of the table."""
        types = {column.name: column.type for column in self.table.columns}
        terms = {_name(number, index): quoted(name) for index, name in enumerate(user_columns(self.rows(number)))}
        terms |= {_SIDE: str(number), _LOADED: LOADED, _BEGINS: "_ts", _ENDS: "_exp", _OUT: "_out"}
        return rows.selectExpr(*[f"CAST({terms.get(name, 'NULL')} AS {kind}) AS {name}" for name, kind in types.items()])


def set_aside_replacement(inputs: NodeInputs, rows: DataFrame | None, table: NodeTable, layout: Layout) -> Replacement:
    """Return the new content of the table of rows that are set aside; None: it becomes empty."""
    move, names = inputs.move, [column.name for column in table.columns]
    stored = table.rows_to_rewrite()
    if rows is None and (stored is None or not table.size):
        return Replacement(None, {}, {}, 0)
    content = stored.where("false").select(*names) if rows is None and stored is not None else rows
    if content is None:
        raise TypeError("no rows that could be set aside")
    new = content.selectExpr(*names, f"timestamp_micros({move.now}L) AS _ts", f"timestamp_micros({NEVER}L) AS _exp")
    return replacement(
        no_stored_rows_like(new) if stored is None else stored, new, None, names, of_keys=None, columns=names,
        search_key=[_LOADED], layout=layout, move=move, cache=inputs.cache,
    )  # fmt: skip
