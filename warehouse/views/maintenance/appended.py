"""The rows that enter an append node (MON, WKS, WK) at one step; they leave it by their own ``_exp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from warehouse.catalog.identifiers import quoted
from warehouse.storage.arrow_types import can_be_collected, frame_of
from warehouse.storage.session import interpreted
from warehouse.time import NEVER
from warehouse.views.algebra import Changes, Distinct, Join, OutputWindow, scanned, stateful_of
from warehouse.views.maintenance.cache import FEW
from warehouse.views.maintenance.distinct import appearances
from warehouse.views.maintenance.inputs import NodeTable
from warehouse.views.maintenance.joins import join_inputs, local_results, new_results
from warehouse.views.maintenance.pipelines import evaluated, evaluated_above, keeps_values, most_arrived, over, relation
from warehouse.views.maintenance.placement import placed

if TYPE_CHECKING:
    import pyarrow as pa

    from warehouse.views.algebra import Operator
    from warehouse.views.maintenance.inputs import NodeInputs

__all__ = ["EVALUATED", "appended", "arriving"]


EVALUATED = 5_000
"""Upper bound of the arrived rows for which the driver takes the values of users' expressions, which may be large."""


def appended(inputs: NodeInputs, values: DataFrame | pa.Table | None = None) -> DataFrame | pa.Table | None:
    """Return the rows that entered the answer, with their cells and ``_fate`` (``dead``: short-lived); None: no row entered.

    ``values`` are the changes of a DISTINCT's values. Few rows are in the driver, or are collected. Many rows are cached before
    their cells are computed, so the generated code that computes them is the same at each step; the results are few.
    """
    node, layout, move = inputs.node, inputs.layout, inputs.move
    if isinstance(inputs.core, Distinct) and values is not None:
        return placed(appearances(values, node.columns), node.columns, layout, move)
    rows, few = _arrivals(inputs, node.operator)
    if rows is None:
        return None
    if isinstance(rows, DataFrame):
        if not few or not can_be_collected(rows.schema):
            return placed(inputs.cache.add(rows), node.columns, layout, move)
        with interpreted(inputs.session):
            rows = rows.toArrow()
    return placed(rows, node.columns, layout, move)


def arriving(inputs: NodeInputs, operator: Operator) -> DataFrame | None:
    """Return the rows that entered an operator's answer, without cells; their results stay for ever. None: no row entered."""
    rows, _ = _arrivals(inputs, operator)
    if rows is None:
        return None
    return _until(rows if isinstance(rows, DataFrame) else frame_of(inputs.session, rows), f"{NEVER}L")


def _arrivals(inputs: NodeInputs, operator: Operator) -> tuple[DataFrame | pa.Table | None, bool]:
    """Return the rows that entered an operator's answer, in the driver if possible, and whether they are certainly few."""
    core, few = stateful_of(operator), False
    match core:
        case None:
            return _of_pipeline(inputs, operator)
        case Join():
            sides = join_inputs(core, inputs)
            results = local_results(core, sides, operator)
            if results is None:
                rows = new_results(core, sides)
            else:
                output = evaluated_above(operator, core, results, core.where)
                if output is not None:
                    return output, True
                few = keeps_values(inputs.node.operator, core)
                rows = frame_of(inputs.session, results)
                rows = rows if core.where is None else rows.where(core.where)
        case OutputWindow(length=int() as length):
            below, _ = _arrivals(inputs, core.input)
            rows = below if below is None or isinstance(below, DataFrame) else frame_of(inputs.session, below)
            rows = None if rows is None else _until(rows, f"unix_micros(_ts) + {length}L")
        case Changes():
            rows = _until(relation(core.input, inputs.tables, NodeTable.arrived), f"{NEVER}L")
        case _:
            raise TypeError(f"{type(core).__name__} is not maintained by appending")
    return (None if rows is None else over(operator, core, rows)), few


def _of_pipeline(inputs: NodeInputs, operator: Operator) -> tuple[DataFrame | pa.Table, bool]:
    """Return the rows of the pipeline over the arrived rows, and whether they are few."""
    tables = inputs.tables
    most = most_arrived(operator, tables)
    arrived = (
        {name: tables[name].arrived_in_driver() for name in set(scanned(operator))} if most is not None and most <= FEW else {}
    )
    in_driver = {name: rows for name, rows in arrived.items() if rows is not None}
    if not arrived or len(in_driver) < len(arrived) or sum(rows.num_rows for rows in in_driver.values()) > EVALUATED:
        return relation(operator, tables, NodeTable.arrived), False
    rows = evaluated(operator, tables, lambda table: in_driver[table.name])
    if rows is not None:
        return rows, True
    frames = {name: frame_of(inputs.session, rows) for name, rows in in_driver.items()}
    return relation(operator, tables, lambda table: frames[table.name]), True


def _until(rows: DataFrame, end: str) -> DataFrame:
    """Set the instant at which the rows' results leave the answer."""
    columns = [quoted(name) for name in rows.columns if name != "_out"]
    return rows.selectExpr(*columns, f"timestamp_micros({end}) AS _out")
