"""The text of ``explain`` for a coalesced table: how its points are compared, its window, and which points it did not take."""

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

__all__ = ["choice_text", "of_choice", "of_coalesced"]


_HOW = {
    "eager": "eager: an update writes the rows of groups with new points, and those that the window's edge cuts",
    "lazy": "lazy: it has no files; each read makes its rows of the points that {} stores",
}


def of_coalesced(found: CoalescedExplanation) -> Report:
    """Return an explanation as lines for people and as a record."""
    asked = found.definition
    groups = ", ".join(asked.groups)
    lines = [f"{found.name}: points of {asked.source}" + (f" by {groups}" if groups else "")]
    lines.append(f"  neighbours in time are one row when {_alike(found)}")
    lines.append(f"  {_window(found)}")
    lines.append(f"  {_HOW[found.how].format(asked.source)}")
    if found.choice is not None:
        lines.append(f"  auto: {choice_text(found.choice)}")
    if found.epoch is None:
        lines.append("  made by the next update")
    elif found.how == "lazy":
        lines.append(f"  {counted(found.rows, 'row')} now; has every point {_since(found)}")
    else:
        lines.append(f"  {counted(found.rows, 'row')} stored; has every point {_since(found)}")
        lines.append(
            f"  not taken: {counted(found.late, 'point')} that had left the window before they were loaded, "
            f"{found.repeated} with the group and time of another"
        )
    lines += map("  {}".format, _shedding(found))
    return Report(_record(found), tuple(lines), data=True)


def choice_text(choice: Choice) -> str:
    """Return the counts of a table's points, and the costs of both ways."""
    return (
        f"{choice.how}, of {counted(choice.members, 'point')} of which {choice.coalescing:.0%} go on with the row before and "
        f"{choice.late:.0%} came late: stored costs {choice.eager:.2f}, made by each read {choice.lazy:.2f}"
    )


def of_choice(choice: Choice) -> Report:
    """Return advice on a coalesced table as lines for people and as a record."""
    lines = [f"{choice.table}: {choice_text(choice)}"]
    if choice.better is None:
        lines.append(f'keep how = "{choice.how}": the other side costs no tenth less, the switch included')
    else:
        lines.append(f'recommended: how = "{choice.better}"; declare it, or "auto", and run `stream-wh migrate {choice.table}`')
    return Report({**vars(choice), "better": choice.better}, tuple(lines), data=True)


def _since(found: CoalescedExplanation) -> str:
    return "from the first one of its stream" if found.full_from is None else f"from {format_instant(found.full_from)}"


def _shedding(found: CoalescedExplanation) -> Iterator[str]:
    asked, figures = found.definition, found.shed
    if asked.budget is None:
        return
    bounds = ", ".join(f"{name} = {value:g}" for name, value in vars(asked.budget).items() if value is not None)
    yield f"sheds members beyond {bounds}, by {asked.shed}; the open member of each group stays"
    if figures is None:
        return
    yield (
        f"shed: {counted(figures.shed, 'member')} of {figures.kept + figures.shed}, of {counted(figures.runs, 'row')}, "
        f"{figures.lost} of them whole; {format_duration(figures.length_lost)} of their {format_duration(figures.length)}"
    )
    yield f"accuracy: {figures.accuracy:.4f}"
    over = found.over if asked.budget.rows is None else max(0, figures.kept - asked.budget.rows)
    if over:
        yield f"the budget of {_bound(asked.budget)} is exceeded by {counted(over, 'member')}: open members or accuracy"


def _bound(budget: CoalescedBudget) -> str:
    if budget.rows is not None:
        return counted(budget.rows, "member")
    return size_text(budget.bytes) if budget.bytes is not None else f"{budget.keep:.0%} of the members"


def _alike(found: CoalescedExplanation) -> str:
    asked = found.definition
    if asked.of is not None:
        return f"it is equally true, false or null that {asked.of}"
    return asked.same if asked.same is not None else f"{', '.join(asked.compared)} {_verb(len(asked.compared))} equal"


def _verb(columns: int) -> str:
    return "is" if columns == 1 else "are"


def _window(found: CoalescedExplanation) -> str:
    asked = found.definition
    if asked.window is None:
        return f"window: the newest {counted(asked.rows or 0, 'point')} over all groups"
    begins = "" if found.begins is None else f", now from {format_instant(found.begins)}"
    return f"window: {format_duration(asked.window)}{begins}"


def _record(found: CoalescedExplanation) -> dict[str, object]:
    asked = found.definition
    return {
        "coalesced": found.name,
        "epoch": found.epoch,
        "from": asked.source,
        "group_by": list(asked.groups),
        "values": list(asked.compared) if asked.same is None and asked.of is None else None,
        "same": asked.same,
        "of": asked.of,
        "how": found.how,
        "choice": None if found.choice is None else vars(found.choice),
        "window": None if asked.window is None else format_duration(asked.window),
        "window_rows": asked.rows,
        "begins": None if found.begins is None else format_instant(found.begins),
        "full_from": None if found.full_from is None else format_instant(found.full_from),
        "rows": found.rows,
        "late": found.late,
        "repeated": found.repeated,
        "budget": None if asked.budget is None else {k: v for k, v in vars(asked.budget).items() if v is not None},
        "over": found.over,
        "shed": None if asked.budget is None else asked.shed,
        "accuracy": None if found.shed is None else found.shed.accuracy,
        "ledger": None if found.shed is None else {k: v for k, v in vars(found.shed).items() if k != "accuracy"},
    }
