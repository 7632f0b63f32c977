"""The results that a join makes under a budget, by preferred units, and its ledger afterwards.

First the pairs of each owed unit are counted: a join of the numbers of rows by key counts them and makes no pair. Then the budget
is assigned to units, and only their pairs are made. If a condition leaves fewer results than pairs, the rest of the budget goes
to the next units, so at least one result is made while any result is owed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.layout.columns import OWED_RESULT
from warehouse.promise.allocation import Worth, allocate, budget_used
from warehouse.promise.units import LAST, Position, Unit, slice_end
from warehouse.storage.arrow_types import framed
from warehouse.views.maintenance.keys import semi_joined
from warehouse.views.maintenance.pipelines import LOADED
from warehouse.views.maintenance.set_aside import SetAside
from warehouse.views.maintenance.unit_pairs import BUCKET, Part, StoppedUnit, UnitCounts, UnitPairs

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import DataFrame

    from warehouse.promise.units import Ledger, ViewBudget
    from warehouse.views.algebra import Join
    from warehouse.views.maintenance.inputs import NodeInputs

__all__ = ["BudgetedResults", "made_within"]

_MORE = 4
"""Each round looks at a part of a unit that is this many times as large as in the round before."""


@dataclass(frozen=True)
class BudgetedResults:
    """The results that were made, as rows that arrived (None: no result), and the ledger after them.

    ``reported`` are the results that have ended, with whether they were owed; ``set_aside`` are the ended rows whose units are
    still owed. Both are None if they are not needed.
    """

    rows: DataFrame | pa.Table | None
    ledger: Ledger
    reported: DataFrame | pa.Table | None = None
    set_aside: DataFrame | None = None


def made_within(
    inputs: NodeInputs, budget: ViewBudget, before: Ledger, upto: int | None, *, reports: bool = False
) -> BudgetedResults:
    """Return the results of a join under a budget for an update, or for a chunk of ``complete``.

    Parameters
    ----------
    inputs
        The node, whose core is a join of two inputs, and its tables.
    budget
        The bound of the results.
    before
        The ledger before this step.
    upto
        The slot up to which all rows are loaded; None: the slot of ``before``.
    reports
        Whether results that end before they are made are also made.

    """
    ledger = before.with_slots(upto)
    known_ranges = len(before.ranges) if before.waiting is None else before.waiting
    join = UnitPairs(inputs, ledger, budget.expression, _aside(inputs) if reports else None, known_ranges)
    counts = join.counted()
    todo = {unit: worth for unit in ledger.units() if (worth := counts.units.get(unit)) is not None}
    positions: dict[Unit, Position | None] = {}
    made: Counter[Unit] = Counter()
    rows: list[DataFrame | pa.Table] = []
    remaining, slack = budget.amount, 2
    while remaining > 0 and (ready := _ready(todo, ledger.waiting)):
        parts = _parts(ledger, positions, ready, allocate(ready, budget, remaining), slack)
        if not parts:
            break
        round_results, stopped = join.made(parts)
        rows.append(round_results)
        for part in parts:
            progress = stopped.get(part.unit, StoppedUnit(0, 0, part.begin))
            positions[part.unit] = _position(part, progress)
            made[part.unit] += progress.made
            remaining -= budget_used(todo[part.unit], budget, progress.made, part.share)
            if positions[part.unit] is None:
                del todo[part.unit]
        slack *= _MORE
    waiting_range = None if len(_ready(todo, ledger.waiting)) == len(todo) else ledger.waiting
    lapsed = [unit for unit in ledger.units() if unit not in counts.units and unit.range != waiting_range]
    positions.update(dict.fromkeys(lapsed))
    after = replace(
        ledger.with_positions(positions),
        made=made.total(),
        exact=counts.exact if join.bare else None,
        lapsed=before.lapsed + sum(1 for unit in lapsed if unit.range < known_ranges),
        later=counts.later.pairs,
    )
    if join.aside is None:
        missing = {unit: worth.pairs - made[unit] for unit, worth in todo.items()}
        begun = {unit for unit in missing if ledger.position(unit) != Position()}  # pairs of earlier steps are not counted
        after = _with_missing(after, counts, missing, begun, bare=join.bare)
    else:
        after = _with_live(after, join, counts, todo)
    if before.given_up:  # no unit has the pairs that were given up
        most = counts.exact - made.total() - inputs.own.live_now().count()
        after = replace(after, most=most, least=most if join.bare else 0)
    if budget.complete == "never":
        after = replace(after, ranges=(), given_up=before.given_up + len(todo), rows=0, incomplete=0)
    results = _united(rows, inputs)
    if join.aside is None:
        return BudgetedResults(results, after.without_empty())
    lives, reported = _split(results, inputs.move.now)
    set_aside = _still_aside(replace(join, ledger=after), whole=after.through == inputs.move.k)
    return BudgetedResults(lives, after.without_empty(), reported, set_aside)


def _aside(inputs: NodeInputs) -> SetAside | None:
    """Return the rows that are set aside; None if no row is."""
    if inputs.owed is None or inputs.move.first:
        return None
    aside = SetAside(inputs, cast("Join", inputs.core), inputs.owed)
    return aside if aside.any else None


def _split(rows: DataFrame | pa.Table | None, now: int) -> tuple[DataFrame | pa.Table | None, DataFrame | pa.Table | None]:
    """Return the live results, without the column that marks owed results, and the results that have ended."""
    if rows is None:
        return None, None
    if isinstance(rows, pa.Table):
        lives = pc.greater(rows["_exp"].cast(pa.int64()), now)
        return rows.filter(lives).drop_columns([OWED_RESULT]), rows.filter(pc.invert(lives))
    lives = f"unix_micros(_exp) > {now}L"
    return rows.where(lives).drop(OWED_RESULT), rows.where(f"NOT {lives}")


def _with_live(ledger: Ledger, join: UnitPairs, counts: UnitCounts, todo: Mapping[Unit, Worth]) -> Ledger:
    """Return the ledger with bounds of the missing live pairs; rows that are set aside cost work, but are not in the answer.

    If a part of a unit was made, its pairs that are still live are not counted.
    """
    live = replace(join, aside=None, expression=None).counted()
    missing = {unit: live.units[unit].pairs for unit in todo if unit in live.units}
    begun = {unit for unit in missing if ledger.position(unit) != Position()}
    bounded = _with_missing(replace(ledger, exact=live.exact if join.bare else None), live, missing, begun, bare=join.bare)
    return replace(bounded, rows=sum(counts.units[unit].rows for unit in todo) + counts.later.rows, later=live.later.pairs)


def _still_aside(join: UnitPairs, *, whole: bool) -> DataFrame | None:
    """Return the rows that stay set aside: rows with a partner in an owed unit, and all rows while a slot is incomplete."""
    aside = cast("SetAside", join.aside)
    newest: dict[int, int] = {}
    for number, owed_range in enumerate(join.ranges):
        newest.update(dict.fromkeys(owed_range.owed, 2 * number + 1))
    if not whole:
        return aside.stored(0, aside.rows(0)).unionByName(aside.stored(1, aside.rows(1)))
    if not newest:
        return None
    owed = join.frame({BUCKET: pa.array(newest, pa.int32()), "_newest": pa.array(newest.values(), pa.int32())})
    left_key, right_key = [name for name, _ in join.on], [name for _, name in join.on]
    condition = f"{join.class_of(LOADED)} <= _newest"
    rows = join.with_bucket(aside.rows(0)).join(F.broadcast(owed), BUCKET).where(condition)
    left = semi_joined(rows, join.right.select(*map(quoted, right_key)), left_key, right_key)
    key_columns = [f"{quoted(name)} AS _key_{number}" for number, name in enumerate(left_key)]
    keys = join.left.join(F.broadcast(owed), BUCKET).where(condition).selectExpr(*key_columns, "_newest")
    keys = keys.groupBy(*[f"_key_{number}" for number in range(len(key_columns))]).agg(F.expr("max(_newest) AS _newest"))
    equal = [f"{quoted(name)} = _key_{number}" for number, name in enumerate(right_key)]
    right = aside.rows(1).join(keys, F.expr(" AND ".join([*equal, f"{join.class_of(LOADED)} <= _newest"])), "left_semi")
    return aside.stored(0, left).unionByName(aside.stored(1, right))


def _ready(todo: Mapping[Unit, Worth], waiting: int | None) -> dict[Unit, Worth]:
    """Return the units that may be made now; units of the waiting range only if no other unit is owed."""
    ready = {unit: worth for unit, worth in todo.items() if unit.range != waiting}
    return ready or dict(todo)


def _with_missing(
    ledger: Ledger, counts: UnitCounts, missing: Mapping[Unit, int], begun: Collection[Unit], *, bare: bool
) -> Ledger:
    """Return the ledger with bounds of the missing pairs and of the rows that lack a partner."""
    untouched = [unit for unit in missing if bare and ledger.position(unit) == Position()]
    incomplete: dict[int, int] = {}
    for unit in untouched:  # a row may be in several units of its bucket
        incomplete[unit.bucket] = max(incomplete.get(unit.bucket, 0), counts.units[unit].rows)
    return replace(
        ledger,
        least=sum(missing[unit] for unit in missing if unit not in begun) + counts.later.pairs if bare else 0,
        most=sum(missing.values()) + counts.later.pairs,
        rows=sum(counts.units[unit].rows for unit in missing) + counts.later.rows,
        incomplete=sum(incomplete.values()),
    )


def _parts(
    ledger: Ledger,
    positions: Mapping[Unit, Position | None],
    todo: Mapping[Unit, Worth],
    quotas: Mapping[Unit, int],
    slack: int,
) -> list[Part]:
    parts = []
    for unit, quota in quotas.items():
        begin = positions.get(unit) or ledger.position(unit)
        pairs = todo[unit].pairs
        end = LAST if quota >= pairs else slice_end(begin, pairs, quota, slack)
        parts.append(Part(unit, begin, end, quota, begin == Position() and quota >= pairs))
    return parts


def _position(part: Part, stopped: StoppedUnit) -> Position | None:
    """Return the position up to which a unit is made after a round; None if it is made whole."""
    if stopped.found > stopped.made:
        return stopped.last
    return None if part.end == LAST else Position(part.end + 1)


def _united(rows: Sequence[DataFrame | pa.Table], inputs: NodeInputs) -> DataFrame | pa.Table | None:
    if not rows:
        return None
    tables = [part for part in rows if isinstance(part, pa.Table)]
    if len(tables) == len(rows):
        return pa.concat_tables(tables, promote_options="default")  # rounds differ in which columns can be null
    first, *more = (framed(part, inputs) for part in rows)
    for other in more:
        first = first.unionByName(other)
    return first
