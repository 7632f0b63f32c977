"""Update patterns: how the rows of each edge of a plan leave it, by the full decision function.

MON: never. WKS(c): all after one constant lifetime c, in the order of their arrival. WK: at an end that is known when they
arrive. STR: when later input demands it. The *state label* takes every window as external and selects data structures; the
*output label* takes internal windows into account, which end no result, and is the label of a view's own table.

Source: update-patterns sheet, sections 2, 3 and 4.1, with the corrections A5 to A7; the labels of leaves are from DESIGN 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never

from warehouse.layout.wording import leaving_text
from warehouse.views.algebra import (
    AntiJoin,
    AsOf,
    BagDifference,
    Changes,
    Distinct,
    Filter,
    Group,
    InternalRows,
    Join,
    OuterJoin,
    OutputWindow,
    Project,
    Scan,
    TimeWindow,
    Top,
    UnionAll,
    inputs_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.views.algebra import Operator

__all__ = ["MON", "STR", "WK", "Kind", "Label", "label"]

Kind = Literal["MON", "WKS", "WK", "STR"]


@dataclass(frozen=True)
class Label:
    """An update pattern; ``constant`` is the lifetime of WKS in microseconds."""

    kind: Kind
    constant: int | None = None

    def __str__(self) -> str:
        """Return the label as the sheets write it."""
        from warehouse.time import format_duration  # noqa: PLC0415 - shown only

        return self.kind if self.constant is None else f"{self.kind}({format_duration(self.constant)})"

    @property
    def words(self) -> str:
        """How its rows leave, in words."""
        return leaving_text(self.kind, self.constant)


MON, WK, STR = Label("MON"), Label("WK"), Label("STR")


def label(operator: Operator, tables: Mapping[str, Label], *, output: bool = False) -> Label:
    """Return the label of the edge above an operator.

    Parameters
    ----------
    operator
        A plan.
    tables
        The labels of the tables that it scans; relations are STR.
    output
        The output label instead of the state label.

    """
    if isinstance(operator, Scan):
        return tables[operator.table]
    if output and (isinstance(operator, InternalRows) or (isinstance(operator, TimeWindow) and operator.internal)):
        return MON
    return label_above(operator, [label(input_operator, tables, output=output) for input_operator in inputs_of(operator)])


def label_above(operator: Operator, inputs: Sequence[Label]) -> Label:
    """Return the label of an operator's output from the labels of its inputs, every window taken as external."""
    match operator:
        case Scan():
            raise TypeError("a leaf's label is declared")
        case TimeWindow(length=length):
            return _windowed(inputs[0], length)
        case Filter() | Project() | AsOf() | InternalRows():
            return inputs[0]
        case UnionAll():
            return _united(inputs)
        case Join() | Distinct():
            return _weak(inputs)
        case BagDifference() | AntiJoin() | OuterJoin() | Group() | Top():
            return STR
        case Changes():
            return MON
        case OutputWindow(length=length):
            return STR if length is None else Label("WKS", length)
        case _:
            assert_never(operator)


def _windowed(below: Label, length: int) -> Label:
    match below:
        case Label("MON"):
            return Label("WKS", length)
        case Label("WKS", int() as constant):
            return Label("WKS", min(constant, length))
        case _:
            return below


def _united(inputs: Sequence[Label]) -> Label:
    if STR in inputs:
        return STR
    return inputs[0] if len(set(inputs)) == 1 else WK


def _weak(inputs: Sequence[Label]) -> Label:
    if STR in inputs:
        return STR
    return MON if set(inputs) == {MON} else WK
