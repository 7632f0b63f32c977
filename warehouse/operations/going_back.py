"""The verbs that go back: what is refused, the plan, and the landing files that it concerns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.catalog.declaration import declaration
from warehouse.catalog.drift import compare, effective_layout
from warehouse.epochs.known import known_files, known_of
from warehouse.errors import ChangedDeclarationError, RestateError, RollbackError, UnknownNameError
from warehouse.ingest.landing import list_landing
from warehouse.operations.restate import Reread, RestateReport, above, loaded_since, rejected_before
from warehouse.operations.restate_plan import Changed, restate_base, restate_plan
from warehouse.operations.rollback import RollbackReport, base_of, forgotten_files, loadable, rollback_plan, target_epoch
from warehouse.operations.standing import behind, stopped_of
from warehouse.planning.declared_nodes import with_columns
from warehouse.planning.inputs import present
from warehouse.planning.node_plans import unbuilt
from warehouse.steps.relanding import Aside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.steps import Plan

__all__ = ["GoingBack"]


@dataclass(frozen=True)
class GoingBack:
    """A warehouse whose lock is held and whose newest epoch ``last`` no plan is above; ``finished`` were completed just now.

    ``nodes`` are those of the declared views, ``clock`` is in microseconds, ``begin`` records a plan and executes it, and
    ``go_on`` makes the epoch that loads what an epoch left over.
    """

    catalog: Catalog
    nodes: Sequence[NodeInput]
    last: Epoch
    finished: tuple[Epoch, ...]
    clock: int
    spark: Callable[[], SparkSession]
    begin: Callable[[Plan], Epoch]
    go_on: Callable[[Epoch], Epoch]

    def roll_back(self, to_epoch: int) -> RollbackReport:
        """Write an epoch with the contents of an earlier one; see :mod:`warehouse.operations.rollback`."""
        catalog, last = self.catalog, self.last
        warnings = self._undrifted()
        for name, reason in stopped_of(last).items():
            raise RollbackError(to_epoch, f'table "{name}" stands still: {reason}')
        target = target_epoch(catalog.root, last, to_epoch)
        if compare(catalog, target).problems:
            raise RollbackError(to_epoch, "its tables have other columns, keys or layouts than are declared today")
        base, steps, told = base_of(last, target, self.nodes)
        known = forgotten_files(catalog.root, last, target)
        nodes = with_columns(self.nodes, catalog, base, last.slot, self.spark)
        epoch = self.begin(rollback_plan(catalog, last, target, nodes, (base, steps), known, clock=self.clock))
        return RollbackReport(epoch, target, loadable(known, present(catalog)), self.finished, (*warnings, *told))

    def _undrifted(self) -> tuple[str, ...]:
        drift = compare(self.catalog, self.last)
        if drift.problems:
            raise ChangedDeclarationError(drift.problems)
        return (*self.catalog.warnings, *drift.notices, *drift.warnings)

    def restate(
        self, table: str, since: int | Literal["first"] | None, *, rejected: bool, allow_lost: bool
    ) -> RestateReport:
        """Read landing files of a table once more; see :mod:`warehouse.operations.restate`."""
        catalog, last = self.catalog, self.last
        stream, state = self._restatable(table)
        changed, warnings = self._changed(stream, since)
        found = self._reread(stream, state, since, rejected=rejected, allow_lost=allow_lost)
        if rejected and not found.files:
            return RestateReport((), None, (), found.lost, finished=self.finished, warnings=warnings)
        moving = behind(last, self.nodes).moving(self.nodes)
        nodes = above(table, moving, unbuilt(moving, last))
        base = restate_base(last, table, found, nodes, changed)
        above_it = {given.node.table for given in nodes}
        every = with_columns(moving, catalog, base.epoch, last.slot, self.spark)
        columns = [given for given in every if given.node.table in above_it]
        epochs = [self.begin(restate_plan(catalog, stream, found, base, columns, clock=self.clock))]
        while any(entry.more for entry in epochs[-1].files):
            epochs.append(self.go_on(epochs[-1]))
        read = tuple(file.path for file in found.files)
        return RestateReport(
            tuple(epochs), found.since, read, found.lost, tuple(found.back), finished=self.finished, warnings=warnings
        )

    def _restatable(self, table: str) -> tuple[Stream, TableState]:
        stream, state = self.catalog.source(table), self.last.table(table)
        if stream is not None and state is not None:
            return stream, state
        if self.catalog.view(table) is not None:
            raise RestateError(table, "it is a view, which follows what it reads; restate the streams or relations below it")
        raise UnknownNameError("stream or relation", table, [source.name for source in self.catalog.sources])

    def _changed(self, stream: Stream, since: int | Literal["first"] | None) -> tuple[Changed | None, tuple[str, ...]]:
        """What the table on disk cannot follow; that is for restating all of it."""
        drift = compare(self.catalog, self.last)
        section = "streams" if stream.changes is None else "relations"
        own = [problem for problem in drift.problems if problem.key.startswith(f"{section}.{stream.name}.")]
        archived = any(problem.key.endswith(".on_expiry") for problem in own)
        if len(own) < len(drift.problems) or archived or (own and since != "first"):
            raise ChangedDeclarationError(drift.problems)
        warnings = (*self.catalog.warnings, *drift.warnings)
        if not own:
            return None, warnings
        layout = effective_layout(stream, None, self.catalog.update_interval)
        return Changed(declaration(stream, self.catalog.root), layout), warnings

    def _reread(
        self, stream: Stream, state: TableState, since: int | Literal["first"] | None, *, rejected: bool, allow_lost: bool
    ) -> Reread:
        root = self.catalog.root
        known = known_of(known_files(root, self.last), stream.name)
        there = list(list_landing(stream.place, stream.files))
        aside = Aside(stream, frozenset(list_landing(stream.place, "*")))
        if rejected:
            return rejected_before(root, stream.name, state.rejected, known, there, aside)
        found = loaded_since(root, self.last, stream.name, known, there, since, aside)
        if found.lost and not allow_lost:
            names = ", ".join(found.lost[:3])
            raise RestateError(
                stream.name,
                f"{len(found.lost)} file(s) that gave rows are not there as they were ({names}); put them back, or give "
                "--allow-lost to do without their rows",
            )
        return found
