"""Converts synopses and answers to another grid of times.

If each slot of the new grid consists of whole slots of the former one, a window of the new grid is also a window of the former
one, so synopses lose no history: each row moves to the slot that contains its own. A slot may then have several rows of a group,
as after late batches. Longer intervals are left out; the next update makes intervals of the new grid.

On any other grid a former slot moves to the slot in which it ends. Both grids have a slot that ends at the window time, so rows
that arrive later are counted exactly; windows that begin earlier are not full. The next update writes synopses of live rows
again, from the stored rows. Answers do not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec import structs

from warehouse.aggregates.definition import Due
from warehouse.layout import resolve
from warehouse.planning.following import AnswersPlan, SynopsisPlan
from warehouse.planning.plan_record import StreamPlan
from warehouse.planning.steps import MigrateTable
from warehouse.time import at_slot, grid_slot
from warehouse.time import slot as slot_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.layout import Layout

__all__ = ["Regridding"]


@dataclass(frozen=True)
class Regridding:
    """A change from the grid of the last epoch to the declared grid."""

    catalog: Catalog
    last: Epoch

    @property
    def merges(self) -> bool:
        """Whether each slot of the new grid is made of whole slots of the former one."""
        catalog, last = self.catalog, self.last
        return not (catalog.update_interval % last.update_interval or (catalog.anchor - last.anchor) % last.update_interval)

    def _slots(self, former: int) -> int:
        """The number of whole new slots in a number of former slots."""
        return former * self.last.update_interval // self.catalog.update_interval

    def _containing(self, former: int) -> int:
        """The slot that contains a former slot."""
        instant = at_slot(former, self.last.anchor, self.last.update_interval)
        return slot_of(instant, self.catalog.anchor, self.catalog.update_interval)

    def _whole(self, former: int) -> int:
        """The first slot that contains only former slots from ``former`` on."""
        return self._containing(former - 1) + 1

    def base(self, state: TableState) -> TableState:
        """Return the record of a synopsis or of answers in slots of the new grid; records of other tables stay as they are."""
        synopsis, answers = state.synopsis, state.answers
        if synopsis is not None:
            slots, full_slot = self._slots(synopsis.slots), self._whole(synopsis.full_from)
            through = None if synopsis.through is None else self._ended(synopsis.through)
            if not self.merges:
                slots, full_slot = 0 if synopsis.synopsis.live else slots, self._ended(self.last.slot) + 1
                through = None if synopsis.through is None else self._containing(synopsis.through)
            changed = replace(synopsis, slots=slots, full_from=full_slot, sure=None, through=through, merged=None)
            return replace(state, synopsis=changed)
        aggregate = self.catalog.aggregate(state.name)
        if answers is None or aggregate is None:
            return state
        waiting = tuple(due for former in answers.waiting if (due := self._due(former)) is not None)
        through = self._ended(answers.through)
        return replace(state, answers=replace(answers, definition=aggregate.definition, through=through, waiting=waiting))

    def _ended(self, former: int) -> int:
        """Return the last slot that has ended once a former slot has ended."""
        end = at_slot(former, self.last.anchor, self.last.update_interval)
        return grid_slot(end, self.catalog.anchor, self.catalog.update_interval)

    def _due(self, due: Due) -> Due | None:
        """A waiting answer; None if its window does not fit the new grid."""
        if not self.merges or self._slots(due.slots) * self.catalog.update_interval != due.slots * self.last.update_interval:
            return None
        if self._containing(due.end) == self._containing(due.end + 1):
            return None
        return Due(due.text, self._slots(due.slots), self._containing(due.end), due.late)

    def plan(self, state: TableState, slot: int) -> StreamPlan | None:
        """Return the plan of a synopsis or of answers from a state that :meth:`base` gave; None for other tables."""
        synopsis, answers = state.synopsis, state.answers
        planned = StreamPlan(state.name, state.declaration, state.layout, slot - 1, first=False, inputs=(), left_out=())
        if synopsis is not None:
            grid = self.last.anchor, self.last.update_interval
            synopsis_plan = SynopsisPlan(
                synopsis.synopsis, synopsis.slots, arrives=False, opening=False, history=False, carried=False, sure=slot,
                former_grid=grid, view=synopsis.through is not None,
            )  # fmt: skip
            return structs.replace(planned, layout=_layout(synopsis.slots), synopsis=synopsis_plan)
        if answers is not None:
            kept_slots = -(-answers.definition.keep // self.catalog.update_interval)
            answers_plan = AnswersPlan(answers.definition, (), answers.waiting, answers.through, sure=0, within=1)
            return structs.replace(planned, layout=_layout(kept_slots), answers=answers_plan)
        return None

    def steps(self, state: TableState) -> Iterator[MigrateTable]:
        """Yield the step of such a table."""
        rows = sum(part.rows for part in state.partitions)
        yield MigrateTable(state.name, state.path, state.table_id, state.version, state.stored_columns, (), rows, reslotted=True)


def _layout(periods: int) -> Layout:
    return resolve(periods=max(1, periods), label="WKS")
