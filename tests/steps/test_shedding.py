"""A table that sheds: after every update it stores the exact rows without the shed members, which its ledger lists."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.coalescing.model import Model, Reading
from warehouse.catalog.declaration import ColumnRecord
from warehouse.coalescing.accuracy import accuracy
from warehouse.coalescing.budgets import CoalescedBudget
from warehouse.coalescing.definition import LEDGER, STAMPS, CoalescedDefinition
from warehouse.coalescing.runs import Run
from warehouse.layout import keyed_layout
from warehouse.steps.coalesced_in_driver import DriverReplacement, no_stored_rows
from warehouse.steps.shedding import SHED, ShedReplacement, exact_rows
from warehouse.time import HOUR
from warehouse.views.maintenance.input_facts import Move

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.coalescing.definition import Shed

BUDGETS = {
    "rows": CoalescedBudget(rows=12),
    "bytes": CoalescedBudget(bytes=700),
    "keep": CoalescedBudget(keep=0.5),
    "accuracy": CoalescedBudget(accuracy=0.8),
    "floor": CoalescedBudget(rows=5, accuracy=0.9),
}


def defined(
    budget: CoalescedBudget | None, shed: Shed = "cals", *, window: int | None = 20 * HOUR, groups: bool = True
) -> CoalescedDefinition:
    """Return a table over points of groups g with values v."""
    return CoalescedDefinition(
        "s", (("g", "string"),) if groups else (), (("v", "int"),), ("g",) if groups else ("valid_from",), window,
        None if window else 20, budget=budget, shed=shed, ledger=True,
    )  # fmt: skip


def move_to(hour: int, *, first: bool) -> Move:
    """Return the move from the hour before."""
    return Move(k0=hour - 1, k=hour, before=(hour - 1) * HOUR, now=hour * HOUR, anchor=0, interval=HOUR, first=first)


def updated(definition: CoalescedDefinition, own: pa.Table, points: Sequence[Reading], hour: int) -> ShedReplacement:
    """Return the table moved to an hour with points whose stamps are in microseconds."""
    arrived = pa.table({
        "g": pa.array([group for group, _, _ in points], pa.string()),
        "v": pa.array([value for _, _, value in points], pa.int32()),
        "_at": pa.array([stamp for _, stamp, _ in points], pa.int64()),
    })  # fmt: skip
    arrived = arrived if definition.groups else arrived.drop(["g"])
    layout, move = keyed_layout(8), move_to(hour, first=not own.num_rows)
    inner = DriverReplacement(definition, layout, move, exact_rows(definition, own), arrived)
    return ShedReplacement(definition, layout, move, own, inner.coalesced(inner.own))


def stored_after(made: ShedReplacement, own: pa.Table, hour: int) -> pa.Table:
    """Return the live rows of the table after a replacement: of the written buckets and of the others."""
    content = made.replacement
    live = own.filter(pc.greater(own["_exp"].cast(pa.int64()), hour * HOUR))
    if content.rows is None:
        return live
    assert isinstance(content.rows, pa.Table)
    untouched = live.filter(pc.invert(pc.is_in(live["sub_index"], pa.array(content.sizes, live.schema.field("sub_index").type))))
    fresh = content.rows.filter(pc.greater(content.rows["_exp"].cast(pa.int64()), hour * HOUR))
    return pa.concat_tables([untouched, fresh.select(own.column_names).cast(own.schema)])


def empty(definition: CoalescedDefinition) -> pa.Table:
    """Return the table before its first update."""
    return no_stored_rows([ColumnRecord(name, kind) for name, kind in (*definition.columns, *definition.state)])


def shed_of(rows: pa.Table) -> set[tuple[str | None, int]]:
    """Return the members that the ledger lists as shed, by group."""
    return {
        (row.get("g"), stamp) for row in rows.to_pylist() for entry in row[LEDGER] or () for stamp in entry["shed"]
    }


def model_runs(model: Model, gone: set[tuple[str | None, int]]) -> list[Run]:
    """Return the exact rows with their remaining members."""
    last = {group: stamp for group, stamp, _ in model.members()}
    runs = []
    for group, value, _, end, stamps in model.table():
        numbers = frozenset(number for number, stamp in enumerate(stamps) if (group, stamp) in gone)
        runs.append(Run(group, value, stamps, end, numbers, open=stamps[-1] == last[group]))
    return runs


def shown(runs: list[Run]) -> list[tuple[object, ...]]:
    """Return the stored rows of exact rows: their fragments."""
    fragments = []
    for run in runs:
        for piece in run.fragments:
            is_open = run.open and piece.last == len(run.stamps) - 1
            members = piece.last - piece.first + 1
            fragments.append((run.group or "", run.value or 0, piece.start, piece.end, members, is_open))
    return sorted(fragments, key=repr)


def shown_rows(rows: pa.Table) -> list[tuple[object, ...]]:
    """Return stored rows in the same form; they have as many stamps as members."""
    fragments = []
    for row in rows.to_pylist():
        assert len(row[STAMPS]) == row["members"]
        assert row[LEDGER] is None or row["open"]
        begins, ends = (int(row[name].timestamp() * 10**6) for name in ("valid_from", "valid_to"))
        fragments.append((row.get("g") or "", row["v"] or 0, begins, ends, row["members"], row["open"]))
    return sorted(fragments, key=repr)


def stream(draw: random.Random, hour: int, *, groups: bool) -> list[Reading]:
    """Return the points of an hour, 40 % of them late: some too late for the window, some with the stamp of another."""
    points = []
    for _ in range(draw.randint(0, 8)):
        late = draw.random() < 0.4
        at = draw.randint(max(0, hour - 24), hour - 1) if late else hour - 1
        stamp = at * HOUR + draw.randint(0, 5) * HOUR // 6
        points.append((draw.choice(["p", "q", None]) if groups else None, stamp, draw.choice([1, 1, 1, 2, None])))
    return points


@pytest.mark.parametrize(
    ("budget", "shed", "window", "groups"),
    [
        ("rows", "cals", 20 * HOUR, True),
        ("rows", "cals-v", None, True),
        ("bytes", "random", 20 * HOUR, True),
        ("keep", "cals-i", 20 * HOUR, False),
        ("accuracy", "cals", None, True),
        ("floor", "cals", 20 * HOUR, False),
    ],
)
def test_each_update_keeps_what_the_budget_allows(budget: str, shed: Shed, window: int | None, *, groups: bool) -> None:
    """On random streams: holes stay open, shed members stay shed, open members stay, and points meet shed neighbours."""
    draw = random.Random(f"{budget} {shed}")  # noqa: S311 - a random stream
    definition = defined(BUDGETS[budget], shed, window=window, groups=groups)
    model, own, shed_count = Model(window=window, rows=None if window else 20), empty(definition), 0
    gone: set[tuple[str | None, int]] = set()
    for hour in range(30, 46):
        points = stream(draw, hour, groups=groups)
        model.arrive(points, hour * HOUR)
        made = updated(definition, own, points, hour)
        own = stored_after(made, own, hour)
        inside = {(group, stamp) for group, stamp, _ in model.members()}
        before, gone = gone & inside, shed_of(own)
        assert gone <= inside
        assert before <= gone or BUDGETS[budget].accuracy is not None
        runs = model_runs(model, gone)
        assert shown_rows(own) == shown(runs)
        recorded = {name: value for name, value in made.commit_metadata[SHED].items() if name != "over"}
        assert recorded == {"kept": len(inside) - len(gone), "shed": len(gone), "accuracy": pytest.approx(accuracy(runs).share)}
        _within(BUDGETS[budget], runs)
        shed_count += len(gone - before)
    assert shed_count


def _within(budget: CoalescedBudget, runs: list[Run]) -> None:
    """Check that the budget holds or that no member is left to shed; a floor of accuracy always holds."""
    remaining = sum(len(run.stamps) - len(run.shed) for run in runs)
    members = sum(len(run.stamps) for run in runs)
    if budget.accuracy is not None:
        assert accuracy(runs).share >= budget.accuracy
    if budget.accuracy is None:
        only_open = all((run.open and len(run.shed) == len(run.stamps) - 1) or len(run.shed) == len(run.stamps) for run in runs)
        if budget.rows is not None:
            assert remaining <= budget.rows or only_open
        if budget.keep is not None:
            assert remaining <= -(-members // 2) or only_open


def test_a_budget_below_the_groups_is_exceeded() -> None:
    """The open member of each group stays."""
    definition = defined(CoalescedBudget(rows=1))
    points: list[Reading] = [(group, hour * HOUR, 1) for group in "abc" for hour in range(5)]
    made = updated(definition, empty(definition), points, 6)
    assert [(row["members"], row["open"]) for row in made.rows.to_pylist()] == [(1, True)] * 3
    assert made.commit_metadata[SHED] == {"kept": 3, "shed": 12, "accuracy": 0.0, "over": 2}


def test_without_a_budget_all_members_are_back() -> None:
    """The ledger has the stamps and values of all shed members."""
    definition = defined(CoalescedBudget(rows=3))
    points: list[Reading] = [(group, hour * HOUR, hour // 3) for group in ("a", None) for hour in range(9)]
    made = updated(definition, empty(definition), points, 10)
    own = stored_after(made, empty(definition), 10)
    assert shed_of(own)
    free = defined(None)
    back = updated(free, own, [], 11)
    model = Model(window=20 * HOUR)
    model.arrive(points, 11 * HOUR)
    assert shown_rows(stored_after(back, own, 11)) == shown(model_runs(model, set()))
    assert back.commit_metadata[SHED] == {"kept": 18, "shed": 0, "accuracy": 1.0, "over": 0}


def test_a_replay_sheds_the_same() -> None:
    """Random shedding too chooses the same members."""
    points: list[Reading] = [(group, hour * HOUR + 7, hour // 2) for group in "abc" for hour in range(9)]
    definition = defined(CoalescedBudget(rows=9), "random")
    forward, backward = (updated(definition, empty(definition), order, 10) for order in (points, points[::-1]))
    assert forward.rows.sort_by([("g", "ascending"), ("valid_from", "ascending")]) == backward.rows.sort_by(
        [("g", "ascending"), ("valid_from", "ascending")]
    )


def test_members_come_back_where_the_edge_would_break_the_floor() -> None:
    """All members of a long row inside the window were shed, which the accuracy no longer allows."""
    definition = defined(CoalescedBudget(accuracy=0.8), window=4 * HOUR)
    points: list[Reading] = [("a", 0, 1), *(("a", 2 * HOUR + minute * HOUR // 60, 1) for minute in range(0, 40, 6))]
    points += [("a", 2 * HOUR + 48 * HOUR // 60, 2), ("a", 2 * HOUR + 54 * HOUR // 60, 3)]
    own = stored_after(made := updated(definition, empty(definition), points, 3), empty(definition), 3)
    assert made.commit_metadata[SHED] == {"kept": 3, "shed": 7, "accuracy": pytest.approx(0.857, abs=0.001), "over": 0}
    made = updated(definition, own, [], 5)
    assert made.commit_metadata[SHED] == {"kept": 6, "shed": 3, "accuracy": 0.8125, "over": 0}
    model = Model(window=4 * HOUR)
    model.arrive(points, 5 * HOUR)
    own = stored_after(made, own, 5)
    assert shown_rows(own) == shown(model_runs(model, shed_of(own)))


@pytest.mark.parametrize("name", ["e", "m", "o", "p", "x", "s"])
def test_a_group_may_have_any_name(name: str) -> None:
    """Also one that a query might have for something else."""
    definition = replace(defined(CoalescedBudget(rows=3)), group_by=((name, "string"),), search_key=(name,))
    layout, own = keyed_layout(8), empty(definition)
    for hour in (6, 7):
        arrived = pa.table({
            name: pa.array(["a"] * 5, pa.string()), "v": pa.array([1, 1, 1, 2, 2], pa.int32()),
            "_at": pa.array([(hour - 1) * HOUR + number for number in range(5)], pa.int64()),
        })  # fmt: skip
        move = move_to(hour, first=not own.num_rows)
        inner = DriverReplacement(definition, layout, move, exact_rows(definition, own), arrived)
        own = stored_after(made := ShedReplacement(definition, layout, move, own, inner.coalesced(inner.own)), own, hour)
    assert (made.commit_metadata[SHED]["kept"], made.commit_metadata[SHED]["shed"]) == (3, 7)


@pytest.mark.parametrize(
    ("budget", "kept", "over"),
    [
        (CoalescedBudget(rows=2), 4, 2),
        (CoalescedBudget(keep=0.25), 4, 2),
        (CoalescedBudget(bytes=1), 4, 4),
        (CoalescedBudget(rows=4), 4, 0),
        (CoalescedBudget(accuracy=0.1), 5, 0),
    ],
)
def test_members_over_the_budget_are_counted(budget: CoalescedBudget, kept: int, over: int) -> None:
    """Four groups with two points each: their open members stay, whatever the budget and its unit."""
    definition = defined(budget)
    points: list[Reading] = [(group, stamp, stamp) for group in "abcd" for stamp in (1, 2)]
    recorded = updated(definition, empty(definition), points, 1).commit_metadata[SHED]
    assert (recorded["kept"], recorded["over"]) == (kept, over)
