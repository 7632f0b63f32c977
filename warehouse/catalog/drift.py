"""Compares the current declarations with the tables on disk, so that a changed declaration never corrupts them.

Invariant of a table: every row is in the place that the recorded anchor, update interval, search key and layout give. So keys
that change the place may not change; keys that only judge incoming rows may, for rows loaded from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from warehouse.catalog.archives import EXPIRED_AT
from warehouse.catalog.expression import columns_of
from warehouse.catalog.model import DEFAULT_PERIODS, LayoutSpec
from warehouse.catalog.spelling import as_written
from warehouse.catalog.types import widens
from warehouse.errors import Problem
from warehouse.layout import LayoutError, keyed_layout, resolve
from warehouse.time import format_duration, format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.aggregates.definition import AggregateDefinition
    from warehouse.catalog.declaration import ColumnRecord, Declaration
    from warehouse.catalog.model import Aggregate, Catalog, Column, Stream
    from warehouse.layout import Layout

__all__ = [
    "DeclarationDifference",
    "Drift",
    "RecordedEpoch",
    "RecordedTable",
    "added_columns",
    "compare",
    "differences",
    "effective_layout",
]

_RESTORE = "the tables on disk were built with it; restore it"
_ARCHIVE_REMEDY = 'its archive was made for these; under on_expiry = "drop" it stays as it is, and `stream-wh drop {}` forgets it'

Kind = Literal["time", "search_key", "layout", "retyped", "removed", "relation", "archive", "aggregate", "how"]
"""The part of a declaration that changed and that a table cannot follow.

The grid of times, the search key, the layout, the type of a column, a removed column, the declaration of a relation, the archive,
the columns of an aggregate's answers or what these mean, or whether a coalesced table is stored.
"""


class RecordedAnswers(Protocol):
    """An epoch's record of the answers of an aggregate."""

    @property
    def definition(self) -> AggregateDefinition:
        """The definition at the last answers."""


class RecordedTable(Protocol):
    """An epoch's record of a table."""

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

    @property
    def answers(self) -> RecordedAnswers | None:
        """Its answers, if it is an aggregate."""


class RecordedLazyTable(Protocol):
    """An epoch's record of a coalesced table without files."""

    @property
    def name(self) -> str:
        """The table's name."""


class RecordedEpoch(Protocol):
    """The last epoch's record of the warehouse; instants and durations in microseconds."""

    @property
    def anchor(self) -> int:
        """The instant that slots are counted from."""

    @property
    def update_interval(self) -> int:
        """The length of a slot."""

    @property
    def tables(self) -> Sequence[RecordedTable]:
        """Every table, also those no longer declared."""

    @property
    def lazy(self) -> Sequence[RecordedLazyTable]:
        """The coalesced tables without files."""


@dataclass(frozen=True)
class Drift:
    """What differs: ``problems`` stop an update, ``notices`` describe changes that apply from now on, ``warnings`` the rest."""

    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeclarationDifference:
    """A difference that needs a migration or another command: its ``table`` (None: all tables), and the key in its section.

    ``new`` and ``old`` are the values as they are written. ``fits``: the new type of a column can represent all values of the old
    type. ``archive`` is the name of an archive that the rows of its stream do not fit.
    """

    kind: Kind
    table: str | None
    section: str
    key: str
    new: str
    old: str
    fits: bool = False
    archive: str | None = None

    @property
    def dotted_key(self) -> str:
        """The key with its section, as in messages: ``streams.NAME.search_key``."""
        return f"{self.section}.{self.key}" if self.table is None else f"{self.section}.{self.table}.{self.key}"

    @property
    def command(self) -> str | None:
        """The command that makes the tables follow, or None if only loading everything again helps."""
        if self.kind == "time":
            return "stream-wh migrate --rebuild"
        if self.section in ("relations", "aggregates") or self.archive is not None:
            return None
        if self.kind in ("layout", "how"):
            return f"stream-wh migrate {self.table}"
        return f"stream-wh migrate {self.table} --rebuild" if self.kind == "search_key" or self.fits else None

    @property
    def remedy(self) -> str:
        """What to do."""
        if self.kind == "aggregate":
            return (
                "an answer stays as it was given, so answers of other values or with another key are another table: give the "
                f"aggregate another name, `stream-wh update`, and `stream-wh drop {self.table}` once its answers are not needed"
            )
        if self.archive is not None:
            return _ARCHIVE_REMEDY.format(self.archive)
        if self.command is not None:
            ways = " (--rebuild or --side-by-side)" if self.kind == "layout" else ""
            return f"{_RESTORE}, or let the tables follow: `{self.command}`{ways}"
        restate = f"`stream-wh restate {self.table} --since first`"
        if self.kind == "removed":
            name = self.key.removeprefix("columns.")
            renamed = f"`stream-wh migrate {self.table} --rename {name}=NEW` if it is called otherwise now, "
            renamed = "" if self.section == "relations" else renamed
            return f"{_RESTORE}; or {renamed}`null` is what files without it give. To do without it load all again: {restate}"
        return f"{_RESTORE}, or load all again: {restate}"


def compare(catalog: Catalog, epoch: RecordedEpoch) -> Drift:
    """Return the differences of a catalog from the last epoch's record.

    The problems are for :class:`warehouse.errors.ChangedDeclarationError`; each has both values and the remedy.
    """
    recorded = {table.name: table for table in epoch.tables}
    pairs = [(source, recorded[source.name]) for source in catalog.sources if source.name in recorded]
    file = catalog.file.name
    return Drift(
        problems=tuple(
            Problem(file, difference.dotted_key, difference.new, f"{difference.old}: {difference.remedy}")
            for difference in differences(catalog, epoch)
        ),
        notices=tuple(notice for stream, table in pairs for notice in _notices(stream, table.declaration)),
        warnings=tuple(
            f'table "{owner}" is no longer declared: kept, frozen; `stream-wh drop {owner}` forgets it'
            for owner in dict.fromkeys(table.owner for table in recorded.values() if not _declared(catalog, table))
        ),
    )


def differences(catalog: Catalog, epoch: RecordedEpoch) -> tuple[DeclarationDifference, ...]:
    """Return the differences that tables cannot follow. Added columns and rules for incoming rows are no differences."""
    recorded = {table.name: table for table in epoch.tables}
    all_differences = list(_time_grid_differences(catalog, epoch))
    for source in catalog.sources:
        if source.name in recorded:
            all_differences += _table_differences(source, recorded[source.name])
    for name, stream in catalog.archives.items():
        if name in recorded:
            all_differences += _archive_differences(stream, recorded[name])
    for aggregate in catalog.aggregates:
        if aggregate.name in recorded:
            all_differences += _answer_differences(catalog, aggregate, recorded[aggregate.name])
    return (*all_differences, *_storage_differences(catalog, epoch))


def _storage_differences(catalog: Catalog, epoch: RecordedEpoch) -> Iterator[DeclarationDifference]:
    """Yield the coalesced tables that are stored although they are declared lazy, and the other way round."""
    stored, lazy = {table.name for table in epoch.tables}, {table.name for table in epoch.lazy}
    for table in catalog.lazy:
        if table.name in stored:
            yield DeclarationDifference("how", table.name, "coalesced", "how", as_written("lazy"), as_written("eager"))
    for table in catalog.coalesced:
        if table.name in lazy and table.how == "eager":
            yield DeclarationDifference("how", table.name, "coalesced", "how", as_written("eager"), as_written("lazy"))


def _is_derived_table(catalog: Catalog, name: str) -> bool:
    return catalog.aggregate(name) is not None or catalog.coalesced_table(name) is not None


def added_columns(stream: Stream, recorded: Declaration) -> tuple[str, ...]:
    """Return the declared columns that a table does not have yet: the next update adds them."""
    recorded_names = {column.name for column in recorded.columns}
    return tuple(column.name for column in stream.columns if column.name not in recorded_names)


def _declared(catalog: Catalog, table: RecordedTable) -> bool:
    """Whether a recorded table belongs to a declared one: operators' state belongs to its view, an archive to its stream."""
    is_source = catalog.view(table.owner) is not None or catalog.source(table.owner) is not None
    return is_source or table.owner in catalog.archives or _is_derived_table(catalog, table.owner)


def effective_layout(stream: Stream, recorded: Layout | None, interval: int) -> Layout:
    """Return the layout to update a table with.

    Parameters
    ----------
    stream
        Its declaration, with which :func:`compare` found no problem.
    recorded
        The layout of the last epoch, or None for a table that does not exist yet. It is used unchanged, except that sealing may
        be switched; keys that the declaration leaves out keep the recorded value.
    interval
        The update interval in microseconds; used for a new table only, since p is frozen.

    Raises
    ------
    LayoutError
        When the keys contradict each other.

    """
    spec = stream.layout
    if stream.changes is not None:
        return recorded or keyed_layout(DEFAULT_PERIODS)
    if recorded is not None:
        return recorded if spec.seal is None else replace(recorded, seal=spec.seal)
    # The catalog's words are the layout's; its loader has checked them.
    arguments = {**spec.keys, "widest": stream.widest_block}
    return resolve(periods=stream.periods(interval), label=stream.label, **arguments)  # type: ignore[arg-type]


def _time_grid_differences(catalog: Catalog, epoch: RecordedEpoch) -> Iterator[DeclarationDifference]:
    for key, new, old in (
        ("anchor", format_instant(catalog.anchor), format_instant(epoch.anchor)),
        ("update_interval", format_duration(catalog.update_interval), format_duration(epoch.update_interval)),
    ):
        if new != old:
            yield DeclarationDifference("time", None, "warehouse", key, as_written(new), as_written(old))


def _table_differences(stream: Stream, table: RecordedTable) -> Iterator[DeclarationDifference]:
    """Yield each difference that the table cannot follow."""
    section = "streams" if stream.changes is None else "relations"

    def found(kind: Kind, key: str, new: object, old: object) -> DeclarationDifference:
        return DeclarationDifference(kind, stream.name, section, key, as_written(new), as_written(old))

    if table.declaration.op is None and stream.changes is not None:
        yield replace(found("relation", "op", "", ""), new="a relation", old="no relation")
    if stream.changes is not None and stream.changes.retroactive != table.declaration.retroactive:
        yield found("relation", "retroactive", stream.changes.retroactive, table.declaration.retroactive)
    if stream.search_key != table.declaration.search_key:
        yield found("search_key", "search_key", stream.search_key, table.declaration.search_key)
    declared = {column.name: column.type for column in stream.columns}
    lower = {name.lower() for name in declared}
    added_by_files = [name for name in table.declaration.added if name.lower() not in lower]
    for column in table.declaration.columns:
        new, old, key = declared.get(column.name), column.type, f"columns.{column.name}"
        if new is None and column.name not in added_by_files:
            yield replace(found("removed", key, "", old), new="nothing")
        elif new is not None and new != old:
            yield replace(found("retyped", key, new, old), fits=widens(old, new))
    for key, new_value, old_value in _layout_differences(stream.layout, table.layout):
        yield found("layout", f"layout.{key}", new_value, old_value)


def _archive_differences(stream: Stream, table: RecordedTable) -> Iterator[DeclarationDifference]:
    """Yield the difference between a stream's columns and its archive's, if there is one."""
    archived = {column.name: column.type for column in table.declaration.columns if column.name != EXPIRED_AT}
    declared = {column.name: column.type for column in stream.columns}
    if (archived, table.declaration.search_key) != (declared, stream.search_key):
        columns = ", ".join(f"{name} {kind}" for name, kind in archived.items())
        old = f"rows of {columns} with key {', '.join(table.declaration.search_key)}"
        new = as_written(stream.on_expiry)
        yield DeclarationDifference("archive", stream.name, "streams", "on_expiry", new, old, archive=table.name)


def _answer_differences(catalog: Catalog, aggregate: Aggregate, table: RecordedTable) -> Iterator[DeclarationDifference]:
    """Yield the difference between the declared answers of an aggregate and the stored answers, if there is one."""
    stored = {column.name: column.type for column in table.declaration.columns}
    asked = dict(aggregate.definition.columns)
    if asked != stored:
        new, old = (", ".join(f"{name} {kind}" for name, kind in types.items()) for types in (asked, stored))
        new, old = f"answers with {new}", f"answers with {old}"
        yield DeclarationDifference("aggregate", aggregate.name, "aggregates", "select", new, old)
    elif aggregate.search_key != table.declaration.search_key:
        new, old = as_written(list(aggregate.search_key)), as_written(list(table.declaration.search_key))
        yield DeclarationDifference("aggregate", aggregate.name, "aggregates", "search_key", new, old)
    elif table.answers is not None:
        before, now = _meanings(table.answers.definition), _meanings(aggregate.definition)
        stream = catalog.stream(aggregate.definition.source)
        columns = None if stream is None else {column.name.lower() for column in stream.columns}
        for key in now:
            (meaning, named), (old, former) = now[key], before[key]
            renamed = named != former and (columns is None or not former <= columns)  # as `migrate --rename` has it
            if meaning != old and not renamed:
                yield DeclarationDifference("aggregate", aggregate.name, "aggregates", key, meaning, old)


def _meanings(definition: AggregateDefinition) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the meaning of each key that can change without a change of the answers' columns, and the columns that it names.

    A changed ``where`` does not change the meaning: later answers count other rows.
    """
    item = "" if definition.frequent is None else definition.frequent.column
    parts = {value.name: [value.function, value.column, value.share] for value in definition.values}
    values = [f"{name} = {' '.join(str(part) for part in words if part is not None)}" for name, words in sorted(parts.items())]
    used = {value.column.lower() for value in definition.values if value.column is not None}
    groups = [f"{' '.join(sql.split())} AS {name}" for name, sql in sorted(definition.computed)]
    grouped = {name.lower() for _, sql in definition.computed for name in columns_of(sql)}
    return {
        "from": (as_written(definition.source), frozenset()),
        "over": (as_written(definition.over), frozenset()),
        "group_by": (as_written(groups), frozenset(grouped)),
        "select": (as_written(values), frozenset(used)),
        "frequent": (as_written(item), frozenset({item.lower()} - {""})),
    }


def _layout_differences(spec: LayoutSpec, layout: Layout) -> Iterator[tuple[str, object, object]]:
    for key, old in LayoutSpec.of(layout).keys.items():
        new = getattr(spec, key)
        if key != "seal" and new is not None and new != old:
            yield key, new, old
    if spec.seal is not None and spec.seal != layout.seal:
        try:
            replace(layout, seal=spec.seal)
        except LayoutError:
            yield "seal", spec.seal, layout.seal


def reading_keys(column: Column | ColumnRecord) -> tuple[object, ...]:
    """Return the keys of a column that say where its values come from and how they are read, without the type."""
    return column.source or column.name, column.expr, column.formats, column.timezone


def _notices(stream: Stream, recorded: Declaration) -> Iterator[str]:
    section = "streams" if stream.changes is None else "relations"
    for name in added_columns(stream, recorded):
        yield f"{section}.{stream.name}.columns.{name} is added; rows loaded before have null"
    recorded_columns = {column.name: column for column in recorded.columns}
    for column in stream.columns:
        former = recorded_columns.get(column.name)
        moved = (column.name in stream.partitions) != (column.name in recorded.partitions)
        if former is not None and (moved or reading_keys(column) != reading_keys(former)):
            key = f"{section}.{stream.name}.columns.{column.name}"
            yield f"{key} comes from elsewhere or is read otherwise, for rows loaded from now on"
    for key in ("arrival", "expires", "null_expiry"):
        new, old = getattr(stream, key), getattr(recorded, key)
        if new != old:
            change = f"{as_written(old) if old else 'nothing'} to {as_written(new) if new else 'nothing'}"
            yield f"streams.{stream.name}.{key} changed from {change}, for rows loaded from now on"
