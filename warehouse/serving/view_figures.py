"""Figures of a view from its epochs and tables: its short-lived results, and the sizes of its joins' inputs.

Rates are the rows of the retained epochs divided by the slots by which the epochs moved. Windows and values come from the live
rows at the pinned epoch, before the conditions of the query. So these figures help to judge a plan; they do not count its work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

import duckdb

from warehouse.epochs.journal import epoch_numbers, read_epoch
from warehouse.serving.engine import read_error
from warehouse.serving.join_sizes import joined_keys
from warehouse.serving.statement import select
from warehouse.storage.duckdb_sql import quoted
from warehouse.views.algebra import Filter, Project, Scan, TimeWindow, scanned
from warehouse.views.costs.chosen_order import equality_classes
from warehouse.views.costs.join_order import JoinInput, all_costs, batch_cost, best_order
from warehouse.views.language.dialect import column_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.epochs.records import Epoch
    from warehouse.serving.join_sizes import JoinedKeys
    from warehouse.serving.reader import Reader
    from warehouse.views.algebra import Join, Operator

__all__ = [
    "InputFigures",
    "JoinFigures",
    "ShortLived",
    "join_figures",
    "keys_of_join",
    "measured_input",
    "retained",
    "short_lived",
]

_ALL_ORDERS_UP_TO = 5


@dataclass(frozen=True)
class ShortLived:
    """Results of a view over some epochs: how many were inserted into its table, how many began and ended between two updates.

    The latter are None if they are not counted: a view whose changed keys are recomputed does not see them.
    """

    epochs: int
    inserted: int
    short_lived: int | None

    @property
    def share(self) -> Fraction | None:
        """The share of all results that no window state showed; 0 if there was no result."""
        if self.short_lived is None:
            return None
        results = self.inserted + self.short_lived
        return Fraction(self.short_lived, results) if results else Fraction(0)


@dataclass(frozen=True)
class InputFigures:
    """An input of a join: rows that arrive for each slot, live rows, and different values of the compared columns."""

    name: str
    arriving: Fraction
    rows: int
    distinct: Mapping[str, int]

    def as_input(self, classes: Mapping[str, str]) -> JoinInput:
        """Return it as the cost model sees it; ``classes`` names the class of columns that each must be equal to."""
        values = {classes[column]: count for column, count in self.distinct.items()}
        return JoinInput(self.name, self.arriving, inf, values, rows=self.rows)


@dataclass(frozen=True)
class JoinFigures:
    """A join's inputs as measured, and the orders that the cost model compares (window-joins sheet, section 8).

    ``order`` is the cheapest, as the inputs' names; costs are intermediate rows and results of one update. ``pairs`` are the
    least and the most pairs of live rows with equal keys; None if key summaries do not have them.
    """

    inputs: tuple[InputFigures, ...]
    order: tuple[str, ...]
    cost: Fraction
    dearest: Fraction
    orders: int
    pairs: tuple[int, int] | None = None


def retained(reader: Reader) -> tuple[Epoch, ...]:
    """Return the readable epochs up to the pinned one, oldest first."""
    numbers = [number for number in epoch_numbers(reader.root) if number < reader.epoch.number]
    return (*(read_epoch(reader.root, number) for number in numbers), reader.epoch)


def short_lived(epochs: Sequence[Epoch], view: str, *, known: bool) -> ShortLived:
    """Return the short-lived results of a view from the counts of some epochs; ``known``: whether the view counts them."""
    view_counts = [counts for epoch in epochs for counts in epoch.counts if counts.stream == view]
    dead = sum(counts.dead for counts in view_counts) if known else None
    return ShortLived(len(view_counts), sum(counts.inserted for counts in view_counts), dead)


def join_figures(reader: Reader, epochs: Sequence[Epoch], join: Join) -> JoinFigures:
    """Return the orders of a join whose inputs read tables of the pinned epoch, costed by their sizes there."""
    classes = equality_classes(join)
    names = [_name(operator, columns) for operator, columns in zip(join.inputs, classes, strict=True)]
    figures = tuple(
        measured_input(reader, epochs, operator, tuple(columns), name if names.count(name) == 1 else f"{name} {number + 1}")
        for number, (operator, columns, name) in enumerate(zip(join.inputs, classes, names, strict=True))
    )
    inputs = [input_figures.as_input(columns) for input_figures, columns in zip(figures, classes, strict=True)]
    cost = batch_cost(1)
    if len(inputs) <= _ALL_ORDERS_UP_TO:
        costed = all_costs(inputs, cost)
        order, least = min(costed, key=lambda candidate: candidate[1])
    else:
        best = best_order(inputs, cost)
        costed, order, least = best.candidates, best.order, best.cost
    dearest = max(candidate_cost for _, candidate_cost in costed)
    keys = keys_of_join(reader, join)
    pairs = None if keys is None else keys.pairs
    return JoinFigures(figures, tuple(input_figures.name for input_figures in order), least, dearest, len(costed), pairs)


def keys_of_join(reader: Reader, join: Join) -> JoinedKeys | None:
    """Return the rows by key of a join of two tables by their search keys; None if key summaries do not have them.

    Key summaries count all rows of the tables: if the join reads only some of the rows, the counts are upper bounds.
    """
    read = [tuple(dict.fromkeys(scanned(operator))) for operator in join.inputs]
    if join.null_safe or [len(tables) for tables in read] != [1, 1]:  # pairs of nulls are not counted
        return None
    columns = []
    for equality in join.equal:
        column_of_input = {equality.left: equality.left_column, equality.right: equality.right_column}
        columns.append((_stored(join.inputs[0], column_of_input[0]), _stored(join.inputs[1], column_of_input[1])))
    keys = joined_keys(reader, (read[0][0], read[1][0]), columns)
    reads_all = join.where is None and all(map(_takes_every_row, join.inputs))
    return keys if keys is None or reads_all else replace(keys, every=False)


def _takes_every_row(operator: Operator) -> bool:
    return isinstance(operator, Scan) or (isinstance(operator, Project) and _takes_every_row(operator.input))


def measured_input(
    reader: Reader, epochs: Sequence[Epoch], operator: Operator, columns: Sequence[str], name: str
) -> InputFigures:
    """Return an input of a join with the sizes of the tables that it reads.

    Parameters
    ----------
    reader
        The epoch whose live rows are counted.
    epochs
        The epochs in which arrivals are counted; the first of several is left out, since it may be a first build.
    operator
        The input.
    columns
        Its compared columns. A column that is computed or comes from several tables is assumed to differ in every row.
    name
        The name of the input.

    """
    tables = tuple(dict.fromkeys(scanned(operator)))
    rows, values = 0, {}
    for table in tables:
        stored_columns = {column: stored for column in columns if len(tables) == 1 and (stored := _stored(operator, column))}
        count, *distinct = _counted(reader, table, list(stored_columns.values()))
        rows += count
        values = dict(zip(stored_columns, distinct, strict=True))
    arriving = sum((_rate(epochs, table) for table in tables), Fraction(0))
    return InputFigures(name, arriving, rows, {column: values.get(column, rows) for column in columns})


def _rate(epochs: Sequence[Epoch], table: str) -> Fraction:
    """Return the rows that were added to a table for each slot."""
    later = epochs[1:] or epochs
    slots = sum(epoch.slot - epoch.previous_slot for epoch in later)
    rows = sum(counts.inserted for epoch in later for counts in epoch.counts if counts.stream == table)
    return Fraction(rows, slots) if slots else Fraction(0)


def _stored(operator: Operator, column: str) -> str | None:
    """Return the column of the scanned table from which a column of a plan is taken; None if it is computed."""
    match operator:
        case Scan():
            return column
        case Filter(input=below) | TimeWindow(input=below):
            return _stored(below, column)
        case Project(input=below, columns=columns):
            sql = next((projected.sql for projected in columns if projected.name.lower() == column.lower()), None)
            plain = None if sql is None else column_of(sql)
            return None if plain is None else _stored(below, plain)
        case _:
            return None


def _counted(reader: Reader, table: str, columns: Sequence[str]) -> Iterator[int]:
    """Yield the number of a table's live rows, then the approximate number of distinct values of each column in them."""
    pin = reader.pin
    source = pin.live_source(pin.state(table), pin.epoch.window_time)
    distinct = "".join(f", approx_count_distinct({quoted(column)})" for column in columns)
    query = f"SELECT count(*){distinct} FROM ({select(source, [*columns] or ['_exp'])})"
    try:
        row = reader.connection.execute(query).fetchone()
    except duckdb.Error as error:
        raise read_error(error, pin.read_files) from error
    yield from row or ()


def _name(operator: Operator, classes: Mapping[str, str]) -> str:
    """Return the name of an input in a query: its tables, and the qualifier of its columns if it differs."""
    prefixes = {column.rpartition(".")[0] for column in classes}
    tables = ", ".join(dict.fromkeys(scanned(operator)))
    alias = prefixes.pop() if len(prefixes) == 1 else ""
    return f"{tables} {alias}" if alias and alias != tables else tables
