"""The text of ``explain``: the plan as a tree, then a line or two for each finding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from warehouse.cli.outcome import Report
from warehouse.time import format_duration
from warehouse.units import counted
from warehouse.views.describe import rendered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from warehouse.serving.explanation import Explanation, JoinOrder
    from warehouse.views.describe import Alternative, Line

__all__ = ["view_report"]

_PULL_UP = "negation pull-up"
_OF_A_TABLE = ("table", "label", "search_key", "periods", "hidden")


def view_report(explanation: Explanation) -> Report:
    """Return an explanation as lines for people and as a record."""
    plan = explanation.description
    lines = [*_tree(explanation, plan.lines), ""]
    if plan.lifetime is not None:
        lines.append(f"results live for {format_duration(plan.lifetime)} at the most")
    lines.extend(_losses(explanation))
    for order in explanation.joins:
        lines.extend(_order(order))
    for other in plan.alternatives:
        lines.extend(_alternative(explanation, other))
    for table, share in explanation.shed:
        lines.append(f"stands on members that were shed, of {table}: its accuracy is {share:.4f}, that of the view is not known")
    if explanation.jobs is not None:
        took = f"by {counted(explanation.jobs, 'Spark job')}" if explanation.jobs else "in the driver, without a Spark job"
        lines.append(f"epoch {explanation.epoch} computed it {took}")
    lines.extend(_budget(explanation))
    if explanation.measured is None:
        lines.append("no figures: no update has built it yet")
    return Report(_record(explanation), tuple(lines), data=True, warnings=plan.warnings)


def _tree(explanation: Explanation, lines: tuple[Line, ...]) -> list[str]:
    return rendered(replace(explanation.description, lines=lines, alternatives=(), warnings=())).splitlines()


def _amount(pairs: int | None, rows: int | None, seconds: float | None) -> str:
    if seconds is not None:
        return f"the results of {seconds:g} seconds"
    return f"{pairs} results" if rows is None else f"{rows} joined rows"


def _budget(explanation: Explanation) -> Iterator[str]:
    """Yield lines about a view's budget: its bounds, and the results that are missing."""
    if (budget := explanation.budget) is not None:
        orders = {"desc": "most pairs first", "asc": "fewest pairs first", "weighted": "the same share of all"}
        rest = "the rest is owed" if budget.complete == "later" else "the rest is not made"
        order = orders.get(budget.prefer, f"by {budget.prefer}")
        yield f"budget: at most {_amount(budget.pairs, budget.rows, budget.seconds)} an epoch, {order}; {rest}"
    for owed in explanation.owed:
        if owed.ended:
            yield f"  rebuilds gave up what it owed of {counted(owed.ended, 'row')} that had ended"
        if owed.complete:
            yield f"  all {owed.made} results of the last epoch were within it, so that nothing was ranked: the plain plan"
            continue
        yield f"  {owed.text}"
        if owed.exact:
            shares = f"{100 * owed.share_least:.1f} to {100 * owed.share_most:.1f} %"
            yield f"  it has {shares} of its results, and {owed.units} owed units"
        if owed.units:
            yield f"  {owed.cost}"
        if owed.lapsed:
            yield f"  {owed.lapsed} units ended before they were made"


def _losses(explanation: Explanation) -> Iterator[str]:
    if explanation.budget is not None:
        return  # pairs that are not made are not counted
    parts = []
    if explanation.predicted is not None:
        parts.append(f"{_percent(explanation.predicted)} predicted")
    if explanation.measured is not None:
        measured = explanation.measured
        if measured.short_lived is None or measured.share is None:
            parts.append("not counted, since its rows can leave before their own end")
        else:
            count = measured.inserted + measured.short_lived
            parts.append(f"{_percent(measured.share)} measured ({measured.short_lived} of {count} in {_epochs(measured.epochs)})")
    if parts:
        fate = "kept beside the view" if explanation.short_lived == "report" else "lost"
        yield f"short-lived results, {fate}: {'; '.join(parts)}"


def _order(order: JoinOrder) -> Iterator[str]:
    figures = order.figures
    yield (
        f"join order in {order.table}: {', '.join(figures.order)}; {_number(figures.cost)} intermediate rows and results an"
        f" update, the dearest of {figures.orders} orders {_number(figures.dearest)}"
    )
    for source in figures.inputs:
        values = "".join(f", {count} different {column}" for column, count in source.distinct.items())
        yield f"  {source.name}: {_number(source.arriving)} rows an update, {source.rows} live{values}"
    if figures.pairs is not None:
        least, most = figures.pairs
        yield f"  {least if least == most else f'{least} to {most}'} pairs of live rows with equal keys, by key summaries"
    if any(len(source.distinct) > 1 for source in figures.inputs):
        yield "  the values of the columns that are compared are taken to be independent"


def _alternative(explanation: Explanation, other: Alternative) -> Iterator[str]:
    costs = _costs(explanation, other)
    costs_text = f"; {_number(costs[1])} a slot, as declared {_number(costs[0])}" if costs else ""
    if costs and costs[1] > costs[0]:
        yield f"{other.name} would not pay{costs_text}"
        return
    yield ""
    yield f"{other.name}: {other.why}{costs_text}"
    yield from (f"  {line}" for line in _tree(explanation, other.lines))


def _costs(explanation: Explanation, other: Alternative) -> tuple[float, float] | None:
    """Return the costs of the declared plan and of another one, in rows handled for each slot."""
    if other.name != _PULL_UP or explanation.placement is None:
        return None
    return explanation.placement.push_down.total, explanation.placement.pull_up.total


def _record(explanation: Explanation) -> Mapping[str, object]:
    plan, measured = explanation.description, explanation.measured
    return {
        "view": explanation.name,
        "epoch": explanation.epoch,
        "jobs": explanation.jobs,
        "shed": dict(explanation.shed),
        "budget": None if explanation.budget is None else msgspec.to_builtins(explanation.budget),
        "owed": [msgspec.to_builtins(ledger) for ledger in explanation.owed],
        "plan": _lines(plan.lines),
        "tables": [{name: getattr(node, name) for name in _OF_A_TABLE} for node in plan.nodes],
        "max_lifetime": None if plan.lifetime is None else format_duration(plan.lifetime),
        "short_lived": {
            "mode": explanation.short_lived,
            "predicted_share": None if explanation.predicted is None else round(float(explanation.predicted), 6),
            "measured_share": None if measured is None or measured.share is None else round(float(measured.share), 6),
            "counted": None if measured is None else msgspec.to_builtins(measured),
        },
        "join_orders": [
            {
                "table": order.table,
                "order": order.figures.order,
                "cost": float(order.figures.cost),
                "dearest": float(order.figures.dearest),
                "orders": order.figures.orders,
                "pairs": order.figures.pairs,
                "inputs": [
                    {
                        "name": source.name,
                        "arriving": float(source.arriving),
                        "rows": source.rows,
                        "distinct": dict(source.distinct),
                    }
                    for source in order.figures.inputs
                ],
            }
            for order in explanation.joins
        ],
        "equal_plans": [
            {"name": other.name, "why": other.why, "plan": _lines(other.lines), "costs": _named(_costs(explanation, other))}
            for other in plan.alternatives
        ],
    }


def _lines(lines: Sequence[Line]) -> list[dict[str, object]]:
    return [
        {
            "depth": len(line.branch) // 3,
            "operator": line.operator,
            "text": line.text,
            "state_label": str(line.state),
            "output_label": str(line.output),
            "table": line.table,
            "structure": line.structure,
            "variant": line.variant,
        }
        for line in lines
    ]


def _named(costs: tuple[float, float] | None) -> dict[str, float] | None:
    return None if costs is None else {"declared": costs[0], "this": costs[1]}


def _percent(share: Fraction) -> str:
    return f"{float(share):.1%}"


def _number(value: float | Fraction) -> str:
    return f"{float(value):.1f}".removesuffix(".0")


def _epochs(count: int) -> str:
    return f"{count} epoch" + ("" if count == 1 else "s")
