"""Plans declared aggregates: synopses of streams and views, shared by aggregates, and the answers that are due.

Both are tables that follow a stream, as archives do, or a view's node. A synopsis gets a row for each slot and group of the rows
that the update loads, in the same epoch; its rows end when no window can reach their slot any more. A synopsis that gets or loses
intervals longer than a slot is written again. The plan answers the windows that end in the slots of the update, from the synopses
at the plan's versions. An answer expires ``keep`` after its window's end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec import structs

from warehouse.aggregates import intervals
from warehouse.aggregates.definition import Due
from warehouse.aggregates.intervals import longest_levels, upkeep
from warehouse.aggregates.predicates import kinds_of
from warehouse.aggregates.sharing import assigned, lengthened, missing
from warehouse.aggregates.synopses import ARRIVED, needs
from warehouse.catalog.declaration import ColumnRecord, table_declaration
from warehouse.layout import resolve
from warehouse.planning.following import AnswersPlan, SynopsisPlan, SynopsisRead
from warehouse.planning.plan_record import StreamPlan
from warehouse.time import NEVER, at_slot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from warehouse.aggregates.definition import AggregateDefinition
    from warehouse.aggregates.predicates import Kind
    from warehouse.aggregates.synopses import ColumnState, Need, Synopsis
    from warehouse.catalog.model import Aggregate, Catalog
    from warehouse.epochs.following import AnswersRecord, SynopsisRecord
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.ingest.files import InputFiles
    from warehouse.planning.plan_record import NodePlan

__all__ = ["Followed", "aggregate_plans", "compared", "histories", "over_views", "unneeded_synopses", "without_history"]


@dataclass(frozen=True)
class Followed:
    """A stream or view that a plan moves, with the facts for the tables that follow it.

    ``first``: it is built in this plan; ``more``: files are left for another plan at the same window time; its load slots start
    above ``k0``; ``arrives``: it may get rows.
    """

    name: str
    first: bool
    more: bool
    k0: int
    arrives: bool
    view: bool = False

    @classmethod
    def of_stream(cls, stream: StreamPlan, arriving: Collection[str]) -> Followed:
        """Return a stream; ``arriving`` are the streams that may get rows."""
        return cls(stream.name, stream.first, bool(stream.more), stream.k0, stream.name in arriving)

    @classmethod
    def of_views(cls, nodes: Sequence[NodePlan], streams: Sequence[StreamPlan]) -> tuple[Followed, ...]:
        """Return the views whose own tables are planned. They lack the rows of files that a stream left for another epoch."""
        more = any(stream.more for stream in streams)
        own = (node for node in nodes if node.name == node.view)
        return tuple(cls(node.name, node.first, more, node.k0, arrives=True, view=True) for node in own)


def compared(catalog: Catalog, source: str) -> Mapping[str, Kind]:
    """Return how the columns of a stream are compared in conditions; of a view, only columns with types known without Spark."""
    stream = catalog.stream(source)
    if stream is not None:
        return kinds_of((column.name, column.type) for column in stream.columns)
    definitions = (aggregate.definition for aggregate in catalog.aggregates if aggregate.definition.source == source)
    return kinds_of(column for definition in definitions for column in definition.compared)


def histories(last: Epoch | None, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first slot for which synopses have all rows, and the number of slots they keep; new synopses have none."""
    states = [last.table(name) if last else None for name in names]
    records = [None if state is None else state.synopsis for state in states]
    return [(NEVER, 0) if record is None or record.emptied else (record.full_from, record.slots) for record in records]


def over_views(catalog: Catalog) -> tuple[str, ...]:
    """Return the aggregates that read a view."""
    return tuple(aggregate.name for aggregate in catalog.aggregates if catalog.view(aggregate.definition.source) is not None)


def without_history(catalog: Catalog, last: Epoch | None) -> list[str]:
    """Return the streams that have a table, and whose aggregates need a synopsis that does not exist."""
    if last is None or not catalog.aggregates:
        return []
    needs_of: dict[str, list[Need]] = {}
    for aggregate in catalog.aggregates:
        if catalog.stream(aggregate.definition.source) is not None:
            needs_of.setdefault(aggregate.definition.source, []).extend(needs(aggregate.definition))
    existing = [state.synopsis.synopsis for state in last.tables if state.synopsis is not None]
    return [
        name
        for name, stream_needs in needs_of.items()
        if last.table(name) is not None and missing(stream_needs, existing, compared(catalog, name))
    ]


def aggregate_plans(
    catalog: Catalog,
    last: Epoch | None,
    followed: Sequence[Followed],
    *,
    slot: int,
    epoch: int,
    stopped: Collection[str],
    landed: Mapping[str, tuple[InputFiles, ...]],
) -> list[StreamPlan]:
    """Return the plans of synopses and answers that follow the planned streams or views, all synopses first.

    ``slot`` is the slot of the update, ``epoch`` the number of its epoch. Answers that are ``stopped`` wait. ``landed`` are the
    files of streams that were loaded before and are still there.
    """
    plans: list[StreamPlan] = []
    for stream in followed:
        own = [aggregate for aggregate in catalog.aggregates if aggregate.definition.source == stream.name]
        if own:
            plans += _Following(catalog, last, stream, slot, epoch, landed.get(stream.name, ())).plans(own)
    plans.sort(key=lambda plan: plan.answers is not None)
    return [plan for plan in plans if plan.name not in stopped]


@dataclass
class _Asked:
    """What aggregates need of a synopsis: states and lists, the number of slots, and windows with their periods.

    An aggregate that reads other synopses since they know more needs nothing of this one, but its existing rows stay, for the
    ``longest`` window of all.
    """

    synopsis: Synopsis
    slots: int = 0
    longest: int = 0
    windows: dict[int, int] = field(default_factory=dict)


def _asked(
    aggregates: Sequence[Aggregate],
    synopses: Sequence[tuple[str, Synopsis]],
    kinds: Mapping[str, Kind] | None,
    begun: Sequence[tuple[int, int]],
) -> dict[str, _Asked]:
    """Return the states that aggregates need of each synopsis; states that no aggregate names any more are left out."""
    asked_of: dict[str, _Asked] = {}
    used: dict[str, set[ColumnState]] = {}
    all_needs = [(need, aggregate.definition.windows) for aggregate in aggregates for need in needs(aggregate.definition)]
    for need, declared in all_needs:
        for served in assigned(need, [synopsis for _, synopsis in synopses], kinds, begun):
            for name, synopsis in (synopses[number] for number in served.numbers):
                asked = asked_of.setdefault(name, _Asked(replace(synopsis, listed=need.synopsis.listed)))
                asked.synopsis = lengthened(asked.synopsis, need.synopsis.listed)
                asked.slots = max(need.slots, asked.slots)
                asked.windows |= {
                    window.slots: min(window.every, asked.windows.get(window.slots, window.every)) for window in declared
                }
                used.setdefault(name, set()).update(served.states)
    for name, asked in asked_of.items():
        similar = [need for need, _ in all_needs if asked.synopsis.alike(need.synopsis)]
        asked.longest = max([asked.slots, *(need.slots for need in similar)])
        states = used[name].union(*(need.synopsis.states for need in similar))
        asked.synopsis = replace(asked.synopsis, states=tuple(state for state in asked.synopsis.states if state in states))
    return asked_of


def unneeded_synopses(catalog: Catalog, epoch: Epoch, source: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the synopses of a stream or view with the states that no declared aggregate needs; the next update removes these."""
    aggregates = [aggregate for aggregate in catalog.aggregates if aggregate.definition.source == source]
    recorded = [*_recorded(epoch, source)]
    asked = _asked(aggregates, recorded, compared(catalog, source), histories(epoch, [name for name, _ in recorded]))
    for name, synopsis in recorded:
        needed = asked[name].synopsis.states if name in asked else ()
        counted = [f"values({synopsis.counted[0]})"] if synopsis.counted is not None and name not in asked else []
        states = (f"{state.function}({state.column})" for state in synopsis.states if state not in needed)
        yield name, (*counted, *states)


def _recorded(epoch: Epoch | None, source: str) -> Iterator[tuple[str, Synopsis]]:
    for state in epoch.tables if epoch else ():
        if state.synopsis is not None and state.synopsis.synopsis.source == source:
            yield state.name, state.synopsis.synopsis


@dataclass(frozen=True)
class _Following:
    """The tables that follow one stream or view of a plan."""

    catalog: Catalog
    last: Epoch | None
    stream: Followed
    slot: int
    epoch: int
    landed: tuple[InputFiles, ...]

    @property
    def moves(self) -> bool:
        """Whether the window moves; else the stream continues with files that were left over."""
        return self.last is None or self.slot > self.last.slot

    def state(self, name: str) -> TableState | None:
        """Return the state of a table at the last epoch."""
        return self.last.table(name) if self.last else None

    def plans(self, aggregates: Sequence[Aggregate]) -> Iterator[StreamPlan]:
        all_needs = [need for aggregate in aggregates for need in needs(aggregate.definition)]
        recorded = [*_recorded(self.last, self.stream.name)]
        existing = [synopsis for _, synopsis in recorded]
        kinds = compared(self.catalog, self.stream.name)
        new = missing(all_needs, existing, kinds)
        synopses = [
            *recorded,
            *((f"{self.stream.name}.synopsis{self.epoch}_{number}", synopsis) for number, synopsis in enumerate(new)),
        ]
        begun = histories(self.last, [name for name, _ in synopses])
        asked = _asked(aggregates, synopses, kinds, begun)
        kept_slots = max(-(-aggregate.definition.keep // self.catalog.update_interval) for aggregate in aggregates)
        spare = 0 if self.catalog.aggregate_time is None else kept_slots
        synopsis_plans = {name: self._synopsis(name, asked[name], spare) for name, _ in synopses if name in asked}
        sure = {name: plan.sure for name, plan in synopsis_plans.items()}
        recorded = [entry for entry in synopses if entry[0] in synopsis_plans]
        answers = [plan for aggregate in aggregates if (plan := self._answers(aggregate, recorded, sure)) is not None]
        first = min([self.slot + 1, *(due.end for plan in answers if plan.answers for due in plan.answers.due)])
        yield from (self._synopsis_plan(name, structs.replace(plan, first_end=first)) for name, plan in synopsis_plans.items())
        yield from answers

    def _with_intervals(self, name: str, synopsis: Synopsis, windows: Mapping[int, int]) -> Synopsis:
        """Return a synopsis with the longer intervals that it should have."""
        state = self.state(name)
        groups = 1.0
        if state is not None and state.synopsis is not None:
            stored_slots = state.synopsis.slots * (1 + upkeep(synopsis.levels))
            groups = max(groups, sum(part.rows for part in state.partitions) / max(stored_slots, 1))
        return replace(synopsis, levels=longest_levels(synopsis, windows, groups))

    def _synopsis(self, name: str, asked: _Asked, spare: int) -> SynopsisPlan:
        synopsis = self._with_intervals(name, asked.synopsis, asked.windows)
        state = self.state(name)
        record = None if state is None or state.synopsis is None else state.synopsis
        slots = max(asked.slots + spare, min(record.slots, asked.longest + spare) if record else 0)
        emptied = record is None or record.emptied
        longer = record is not None and not emptied and slots > record.slots
        built = self.stream.view and self.stream.first
        missed = self._missed(record)
        rebuilt = synopsis.live and not emptied and (longer or built or missed)
        less = record is not None and not emptied and (slots < record.slots or synopsis.states != record.synopsis.states)
        large = state is not None and not emptied and sum(part.bytes for part in state.partitions) > intervals.WRITTEN_AGAIN
        if large and record is not None:
            rewritten = longer or less or self._lacks_intervals(record)
            synopsis = replace(synopsis, levels=0 if rewritten else record.synopsis.levels)
        carried = not rebuilt and (longer or less or self._other_intervals(record, synopsis))
        history = (emptied or rebuilt or missed) and not built and self.state(self.stream.name) is not None
        return SynopsisPlan(
            synopsis,
            slots,
            arrives=self.stream.arrives,
            opening=self.stream.first and not self.stream.view,
            history=history,
            carried=carried,
            large=large and carried,
            landed=self.landed if history and not synopsis.live else (),
            rebuilt=rebuilt,
            spare=spare,
            sure=self._sure(record, rebuilt=rebuilt),
            view=self.stream.view,
            built=built,
            since=None if record is None or emptied or synopsis.live or not (built or missed) else record.through,
            merged=None if record is None or emptied or carried else record.merged,
        )

    @staticmethod
    def _other_intervals(record: SynopsisRecord | None, synopsis: Synopsis) -> bool:
        """Whether an existing synopsis has other intervals than it needs, or lacks needed ones."""
        if record is None or record.emptied:
            return False
        return synopsis.levels != record.synopsis.levels or _Following._lacks_intervals(record)

    @staticmethod
    def _lacks_intervals(record: SynopsisRecord) -> bool:
        """Whether a synopsis that needs longer intervals lacks them, since the grid of times changed."""
        return record.synopsis.levels > 0 and record.merged is None

    def _missed(self, record: SynopsisRecord | None) -> bool:
        """Whether the view has rows that its synopsis lacks: the view failed, and a verb other than an update built it."""
        if record is None or record.emptied or record.through is None or self.last is None:
            return False
        return self.stream.view and record.through < self.last.slot

    def _sure(self, record: SynopsisRecord | None, *, rebuilt: bool) -> int:
        """Return the first slot for which no row of the windows that end with it has left before this plan."""
        if self.last is None or record is None or record.emptied:
            return 0
        return self.last.slot if record.sure is None or rebuilt else record.sure

    def _synopsis_plan(self, name: str, own: SynopsisPlan) -> StreamPlan:
        state = self.state(name)
        emptied = state is None or state.synopsis is None or state.synopsis.emptied
        layout = state.layout if state is not None and not (own.carried or own.rebuilt) else None
        layout = layout or resolve(periods=own.slots, label="WKS")
        columns = tuple(ColumnRecord(column, kind) for column, kind in own.synopsis.columns)
        lowest, k0 = self.slot - layout.periods, self.stream.k0
        if own.view and state is not None and state.synopsis is not None and state.synopsis.through is not None:
            k0 = state.synopsis.through
        return StreamPlan(
            name=name,
            declaration=table_declaration(columns, (ARRIVED,), label="WKS", max_lifetime=None),
            layout=layout,
            k0=lowest if emptied else max(lowest, min(k0, self.slot)),
            first=emptied,
            inputs=(),
            left_out=(),
            synopsis=own,
        )

    def _answers(
        self, aggregate: Aggregate, synopses: Sequence[tuple[str, Synopsis]], sure: Mapping[str, int]
    ) -> StreamPlan | None:
        """Return the answers to give now; None before a new aggregate's windows move, or while files of a slot are left."""
        definition, state = aggregate.definition, self.state(aggregate.name)
        record = state.answers if state else None
        if state is None and not self.moves:
            return None
        interval = self.catalog.update_interval
        kept_slots = -(-definition.keep // interval)
        through = self.slot if not self.stream.more else record.through if record else self.slot - 1
        newest = definition.newest_due(self.slot) - 1
        after = record.through if record and state and state.declared else max(newest, record.through if record else newest)
        columns = tuple(ColumnRecord(column, kind) for column, kind in definition.columns)
        layout = state.layout if state is not None else resolve(periods=kept_slots, label="WKS")
        lowest = self.slot - layout.periods
        kinds = compared(self.catalog, self.stream.name)
        begun = histories(self.last, [name for name, _ in synopses])
        reads = tuple(read for need in needs(definition) for read in _reads(need, synopses, kinds, begun))
        return StreamPlan(
            name=aggregate.name,
            declaration=table_declaration(columns, definition.search_key, label="WKS", max_lifetime=definition.keep),
            layout=layout,
            k0=lowest if state is None else max(lowest, min(after, self.slot - 1)),
            first=state is None,
            inputs=(),
            left_out=(),
            answers=AnswersPlan(
                definition,
                reads,
                tuple(due for due in self._due(aggregate, record, after, through) if self._stays(due, definition)),
                through,
                sure=max((sure[table] for read in reads for table in read.tables), default=0),
                within=self.catalog.aggregate_time,
            ),
        )

    def _due(self, aggregate: Aggregate, record: AnswersRecord | None, after: int, through: int) -> Iterator[Due]:
        """The answers that wait from before, and the answers that are due now."""
        definition = aggregate.definition
        declared = {window.text for window in definition.windows}
        for due in record.waiting if record else ():
            if due.text in declared:
                yield replace(due, late=due.late + self.moves)
        kept_slots = -(-definition.keep // self.catalog.update_interval)
        for window, end in definition.due(max(after, self.slot - kept_slots), through):
            yield Due(window.text, window.slots, end)

    def _stays(self, due: Due, definition: AggregateDefinition) -> bool:
        """Whether an answer has not expired yet."""
        anchor, interval = self.catalog.anchor, self.catalog.update_interval
        return at_slot(due.end, anchor, interval) + definition.keep > at_slot(self.slot, anchor, interval)


def _reads(
    need: Need, synopses: Sequence[tuple[str, Synopsis]], kinds: Mapping[str, Kind] | None, begun: Sequence[tuple[int, int]]
) -> Iterator[SynopsisRead]:
    for served in assigned(need, [synopsis for _, synopsis in synopses], kinds, begun):
        name, synopsis = synopses[served.number]
        plus, less = (tuple(synopses[number][0] for number in numbers) for numbers in (served.plus, served.less))
        yield SynopsisRead(name, synopsis, served.states, served.rows, plus, less)
