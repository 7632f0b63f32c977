"""The text of ``explain`` for a coalesced table: how its points are compared, its window, and the points that it left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.cli.outcome import Report
from warehouse.time import format_duration, format_instant
from warehouse.units import counted, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.coalescing.budgets import CoalescedBudget
    from warehouse.coalescing.choosing import Choice
    from warehouse.serving.coalesced_explanation import CoalescedExplanation

__all__ = ["choice_report", "choice_text", "coalesced_report"]


_HOW_TEXTS = {
    "eager": "eager: an update writes the rows of groups with new points, and those that the window's edge cuts",
    "lazy": "lazy: it has no files; each read makes its rows of the points that {} stores",
}


def coalesced_report(explanation: CoalescedExplanation) -> Report:
    """Return an explanation as lines for people and as a record."""
    definition = explanation.definition
    groups = ", ".join(definition.groups)
    lines = [f"{explanation.name}: points of {definition.source}" + (f" by {groups}" if groups else "")]
    lines.append(f"  neighbours in time are one row when {_comparison_text(explanation)}")
    lines.append(f"  {_window(explanation)}")
    lines.append(f"  {_HOW_TEXTS[explanation.how].format(definition.source)}")
    if explanation.choice is not None:
        lines.append(f"  auto: {choice_text(explanation.choice)}")
    if explanation.epoch is None:
        lines.append("  made by the next update")
    elif explanation.how == "lazy":
        lines.append(f"  {counted(explanation.rows, 'row')} now; has every point {_full_from_text(explanation)}")
    else:
        lines.append(f"  {counted(explanation.rows, 'row')} stored; has every point {_full_from_text(explanation)}")
        lines.append(
            f"  not taken: {counted(explanation.late, 'point')} that had left the window before they were loaded, "
            f"{explanation.repeated} with the group and time of another"
        )
    lines += map("  {}".format, _shedding(explanation))
    return Report(_record(explanation), tuple(lines), data=True)


def choice_text(choice: Choice) -> str:
    """Return a text about a table's points, and the costs if it is stored or made by each read."""
    return (
        f"{choice.how}, of {counted(choice.members, 'point')} of which {choice.coalescing:.0%} go on with the row before and "
        f"{choice.late:.0%} came late: stored costs {choice.eager:.2f}, made by each read {choice.lazy:.2f}"
    )


def choice_report(choice: Choice) -> Report:
    """Return advice on a coalesced table as lines for people and as a record."""
    lines = [f"{choice.table}: {choice_text(choice)}"]
    if choice.better is None:
        lines.append(f'keep how = "{choice.how}": the other side costs no tenth less, the switch included')
    else:
        lines.append(f'recommended: how = "{choice.better}"; declare it, or "auto", and run `stream-wh migrate {choice.table}`')
    return Report({**vars(choice), "better": choice.better}, tuple(lines), data=True)


def _full_from_text(explanation: CoalescedExplanation) -> str:
    if explanation.full_from is None:
        return "from the first one of its stream"
    return f"from {format_instant(explanation.full_from)}"


def _shedding(explanation: CoalescedExplanation) -> Iterator[str]:
    definition, figures = explanation.definition, explanation.shed
    if definition.budget is None:
        return
    bounds = ", ".join(f"{name} = {value:g}" for name, value in vars(definition.budget).items() if value is not None)
    yield f"sheds members beyond {bounds}, by {definition.shed}; the open member of each group stays"
    if figures is None:
        return
    yield (
        f"shed: {counted(figures.shed, 'member')} of {figures.kept + figures.shed}, of {counted(figures.runs, 'row')}, "
        f"{figures.lost} of them whole; {format_duration(figures.length_lost)} of their {format_duration(figures.length)}"
    )
    yield f"accuracy: {figures.accuracy:.4f}"
    over = explanation.over if definition.budget.rows is None else max(0, figures.kept - definition.budget.rows)
    if over:
        yield f"the budget of {_bound(definition.budget)} is exceeded by {counted(over, 'member')}: open members or accuracy"


def _bound(budget: CoalescedBudget) -> str:
    if budget.rows is not None:
        return counted(budget.rows, "member")
    return size_text(budget.bytes) if budget.bytes is not None else f"{budget.keep:.0%} of the members"


def _comparison_text(explanation: CoalescedExplanation) -> str:
    definition = explanation.definition
    if definition.of is not None:
        return f"it is equally true, false or null that {definition.of}"
    if definition.same is not None:
        return definition.same
    return f"{', '.join(definition.compared)} {_verb(len(definition.compared))} equal"


def _verb(columns: int) -> str:
    return "is" if columns == 1 else "are"


def _window(explanation: CoalescedExplanation) -> str:
    definition = explanation.definition
    if definition.window is None:
        return f"window: the newest {counted(definition.rows or 0, 'point')} over all groups"
    begins = "" if explanation.begins is None else f", now from {format_instant(explanation.begins)}"
    return f"window: {format_duration(definition.window)}{begins}"


def _record(explanation: CoalescedExplanation) -> dict[str, object]:
    definition = explanation.definition
    return {
        "coalesced": explanation.name,
        "epoch": explanation.epoch,
        "from": definition.source,
        "group_by": list(definition.groups),
        "values": list(definition.compared) if definition.same is None and definition.of is None else None,
        "same": definition.same,
        "of": definition.of,
        "how": explanation.how,
        "choice": None if explanation.choice is None else vars(explanation.choice),
        "window": None if definition.window is None else format_duration(definition.window),
        "window_rows": definition.rows,
        "begins": None if explanation.begins is None else format_instant(explanation.begins),
        "full_from": None if explanation.full_from is None else format_instant(explanation.full_from),
        "rows": explanation.rows,
        "late": explanation.late,
        "repeated": explanation.repeated,
        "budget": None if definition.budget is None else {k: v for k, v in vars(definition.budget).items() if v is not None},
        "over": explanation.over,
        "shed": None if definition.budget is None else definition.shed,
        "accuracy": None if explanation.shed is None else explanation.shed.accuracy,
        "ledger": None if explanation.shed is None else {k: v for k, v in vars(explanation.shed).items() if k != "accuracy"},
    }
