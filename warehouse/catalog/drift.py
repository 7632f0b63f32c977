"""Whether today's declarations still fit the tables on disk: a changed declaration never corrupts.

Invariant of a table: every row lies where the recorded anchor, update interval, search key and layout put it. So what
these depend on may not change; what only judges incoming rows may, for rows loaded from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from warehouse.catalog.archives import EXPIRED_AT
from warehouse.catalog.model import DEFAULT_PERIODS
from warehouse.catalog.spelling import as_written
from warehouse.errors import Problem
from warehouse.layout import LayoutError, keyed_layout, resolve
from warehouse.time import format_duration, format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.catalog.declaration import Declaration
    from warehouse.catalog.model import Catalog, LayoutSpec, Stream
    from warehouse.layout import Layout

__all__ = ["Drift", "RecordedEpoch", "RecordedTable", "compare", "effective_layout"]

_REMEDY = "the tables on disk were built with it; restore it, or start a new root"
_OWN_REMEDY = "the tables on disk were built with it; restore it, or load all again: `stream-wh restate {} --since first`"
_ARCHIVE_REMEDY = 'its archive was made for these; under on_expiry = "drop" it stays as it is, and `stream-wh drop {}` forgets it'


class RecordedTable(Protocol):
    """What an epoch recorded of a table."""

    @property
    def name(self) -> str:
        """The table's name."""

    @property
    def owner(self) -> str:
        """The declared name that it belongs to."""

    @property
    def declaration(self) -> Declaration:
        """Its declaration when the epoch was planned."""

    @property
    def layout(self) -> Layout:
        """Its layout."""


class RecordedEpoch(Protocol):
    """What the last epoch recorded of the warehouse; instants and durations in microseconds."""

    @property
    def anchor(self) -> int:
        """The instant that slots are counted from."""

    @property
    def update_interval(self) -> int:
        """The length of a slot."""

    @property
    def tables(self) -> Sequence[RecordedTable]:
        """Every table, also those no longer declared."""


@dataclass(frozen=True)
class Drift:
    """What differs: ``problems`` stop an update, ``notices`` tell what changes from now on, ``warnings`` the rest."""

    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def compare(catalog: Catalog, epoch: RecordedEpoch) -> Drift:
    """Return how a catalog differs from what the last epoch recorded.

    The problems are for :class:`warehouse.errors.ChangedDeclarationError`; each names both values.
    """
    recorded = {table.name: table for table in epoch.tables}
    both = [(source, recorded[source.name]) for source in catalog.sources if source.name in recorded]
    differences = [(*found, _REMEDY) for found in _grid_of_times(catalog, epoch)]
    for stream, table in both:
        section = "streams" if stream.changes is None else "relations"
        remedy = _OWN_REMEDY.format(stream.name)
        differences += [(f"{section}.{stream.name}.{key}", new, old, remedy) for key, new, old in _table(stream, table)]
    for name, stream in catalog.archives.items():
        if name in recorded:
            section, remedy = f"streams.{stream.name}", _ARCHIVE_REMEDY.format(name)
            differences += [(f"{section}.{key}", new, old, remedy) for key, new, old in _archive(stream, recorded[name])]
    file = catalog.file.name
    return Drift(
        problems=tuple(Problem(file, key, new, f"{old}: {remedy}") for key, new, old, remedy in differences),
        notices=tuple(notice for stream, table in both for notice in _notices(stream, table.declaration)),
        warnings=tuple(
            f'table "{owner}" is no longer declared: kept, frozen; `stream-wh drop {owner}` forgets it'
            for owner in dict.fromkeys(table.owner for table in recorded.values() if not _declared(catalog, table))
        ),
    )


def _declared(catalog: Catalog, table: RecordedTable) -> bool:
    """Whether a recorded table belongs to something that is declared: operators' state to its view, an archive to its stream."""
    known = catalog.view(table.owner) is not None or catalog.source(table.owner) is not None
    return known or table.owner in catalog.archives


def effective_layout(stream: Stream, recorded: Layout | None, interval: int) -> Layout:
    """Return the layout to update a table with.

    Parameters
    ----------
    stream
        Its declaration, with which :func:`compare` found no problem.
    recorded
        The layout of the last epoch, or ``None`` for a table that does not exist yet. It stands; only sealing may be
        switched, and what the declaration leaves out keeps the recorded value.
    interval
        The update interval in microseconds; used for a new table only, since p is frozen.

    Raises
    ------
    LayoutError
        When the keys cannot stand together.

    """
    spec = stream.layout
    if stream.changes is not None:
        return recorded or keyed_layout(DEFAULT_PERIODS)
    if recorded is not None:
        return recorded if spec.seal is None else replace(recorded, seal=spec.seal)
    # The catalog's words are the layout's; its loader has checked them.
    arguments = {**_arguments(spec), "widest": stream.widest_block}
    return resolve(periods=stream.periods(interval), label=stream.label, **arguments)  # type: ignore[arg-type]


def _arguments(spec: LayoutSpec) -> dict[str, object]:
    return {
        "technique": spec.technique,
        "grid": spec.grid,
        "insertion": spec.insertion,
        "expiration": spec.expiration,
        "expiry_block": spec.expiry_block,
        "seal": spec.seal,
        "seed": spec.seed,
    }


def _grid_of_times(catalog: Catalog, epoch: RecordedEpoch) -> Iterator[tuple[str, str, str]]:
    for key, new, old in (
        ("anchor", format_instant(catalog.anchor), format_instant(epoch.anchor)),
        ("update_interval", format_duration(catalog.update_interval), format_duration(epoch.update_interval)),
    ):
        if new != old:
            yield f"warehouse.{key}", as_written(new), as_written(old)


def _table(stream: Stream, table: RecordedTable) -> Iterator[tuple[str, str, str]]:
    """Yield (key, declared, recorded) for each difference that the table cannot follow."""
    if table.declaration.op is None and stream.changes is not None:
        yield "op", "a relation", "no relation"
    if stream.changes is not None and stream.changes.retroactive != table.declaration.retroactive:
        yield "retroactive", as_written(stream.changes.retroactive), as_written(table.declaration.retroactive)
    if stream.search_key != table.declaration.search_key:
        yield "search_key", as_written(stream.search_key), as_written(table.declaration.search_key)
    declared = {column.name: column.type for column in stream.columns}
    recorded = {column.name: column.type for column in table.declaration.columns}
    for name in [*recorded, *(name for name in declared if name not in recorded)]:
        new, old = declared.get(name), recorded.get(name)
        if new != old:
            yield f"columns.{name}", as_written(new) if new else "nothing", as_written(old) if old else "nothing"
    yield from _layout(stream.layout, table.layout)


def _archive(stream: Stream, table: RecordedTable) -> Iterator[tuple[str, str, str]]:
    """Yield the difference, if there is one, that keeps a stream's rows from being put into its archive."""
    own = {column.name: column.type for column in table.declaration.columns if column.name != EXPIRED_AT}
    declared = {column.name: column.type for column in stream.columns}
    if (own, table.declaration.search_key) != (declared, stream.search_key):
        found = ", ".join(f"{name} {kind}" for name, kind in own.items())
        yield "on_expiry", as_written(stream.on_expiry), f"rows of {found} with key {', '.join(table.declaration.search_key)}"


def _layout(spec: LayoutSpec, layout: Layout) -> Iterator[tuple[str, str, str]]:
    recorded: dict[str, object] = {
        "technique": layout.technique,
        "grid": (layout.rows, layout.columns),
        "insertion": layout.insertion,
        "expiration": layout.expiration,
        "expiry_block": layout.expiry_block,
        "seed": layout.seed,
    }
    for key, old in recorded.items():
        new = getattr(spec, key)
        if new is not None and new != old:
            yield f"layout.{key}", as_written(new), as_written(old)
    if spec.seal is not None and spec.seal != layout.seal:
        try:
            replace(layout, seal=spec.seal)
        except LayoutError:
            yield "layout.seal", as_written(spec.seal), as_written(layout.seal)


def _notices(stream: Stream, recorded: Declaration) -> Iterator[str]:
    for key in ("arrival", "expires", "null_expiry"):
        new, old = getattr(stream, key), getattr(recorded, key)
        if new != old:
            change = f"{as_written(old) if old else 'nothing'} to {as_written(new) if new else 'nothing'}"
            yield f"streams.{stream.name}.{key} changed from {change}, for rows loaded from now on"
