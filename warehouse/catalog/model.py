"""Declarations as frozen values: the content of ``warehouse.toml``, checked and normalised.

Durations and instants are integers of microseconds; paths of the file system are absolute. This module reads no file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from warehouse.catalog.archives import archive_name
from warehouse.catalog.retention import DEFAULT_KEEP
from warehouse.catalog.sizes import SqlBounds
from warehouse.health import Thresholds

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from warehouse.aggregates.definition import AggregateDefinition
    from warehouse.coalescing.definition import CoalescedDefinition
    from warehouse.layout import Layout
    from warehouse.objects.path import ObjectPath
    from warehouse.promise.units import ViewBudget

__all__ = [
    "COLUMNAR",
    "AfterLoad",
    "Aggregate",
    "Catalog",
    "Coalesced",
    "Column",
    "Format",
    "LayoutSpec",
    "NullExpiry",
    "OnExpiry",
    "OverLifetime",
    "Publish",
    "Relation",
    "RelationChanges",
    "ShortLived",
    "Stream",
    "UnknownColumns",
    "View",
    "WhichListed",
    "label_of",
]

Format = Literal["csv", "json", "parquet", "orc", "avro", "zeek", "text", "logfmt", "syslog"]
COLUMNAR = ("parquet", "orc", "avro")
"""Formats whose files name and type their columns."""
LINE_FORMATS = ("text", "logfmt", "syslog")
"""Formats with a record on each line."""
SELF_NAMING_FORMATS = ("json", "logfmt")
"""Formats whose records name their fields."""
How = Literal["eager", "lazy", "auto"]
"""The words of ``how``."""
OverLifetime = Literal["accept", "clamp", "reject"]
NullExpiry = Literal["reject", "never"]
UnknownColumns = Literal["reject", "ignore", "add"]
AfterLoad = Literal["keep", "move", "delete"]
OnExpiry = Literal["drop", "archive"]
WhichListed = Literal["all", "after_last"]
ShortLived = Literal["drop", "report"]
Publish = Literal["off", "delta"]
Label = Literal["WK", "WKS", "MON", "STR"]

_CONSTANT_LIFETIME = re.compile(r"ts\s*\+\s*interval\s+(?:'[^']*'|\d+)(?:\s+[a-z]+)?", re.IGNORECASE)
_NO_LENGTH = re.compile(r"month|quarter|year", re.IGNORECASE)

MAX_RECORD = 16 * 10**6
"""Bytes of the longest line that is read."""
MAX_EXPANSION = 200
"""Bytes, or rows of a Parquet file, that one byte of a landing file may hold."""
DEFAULT_PERIODS = 24
"""p of a stream without ``expires`` and ``max_lifetime``."""


@dataclass(frozen=True)
class Column:
    """A column: its name, its Spark SQL type in canonical lower-case text (``decimal(10,2)``), and where its values come from.

    ``source`` is its name in files (a name, or a path into nested fields), if it differs; ``expr`` is calculated from source
    columns. ``formats`` and ``timezone`` say how times are written, where the stream's options do not.
    """

    name: str
    type: str
    source: str | None = None
    expr: str | None = None
    formats: tuple[str, ...] = ()
    timezone: str | None = None

    @property
    def source_name(self) -> str:
        """Its name in files; a calculated column has none."""
        return self.name if self.source is None else self.source


@dataclass(frozen=True)
class LayoutSpec:
    """The layout keys that a declaration gives; ``None`` where it leaves the choice to the default."""

    technique: str | None = None
    grid: tuple[int, int] | None = None
    insertion: str | None = None
    expiration: str | None = None
    expiry_block: int | None = None
    seal: bool | None = None
    seed: int | None = None

    @classmethod
    def of(cls, layout: Layout) -> LayoutSpec:
        """Return all keys of a layout that a table has."""
        return cls(
            layout.technique,
            (layout.rows, layout.columns),
            layout.insertion,
            layout.expiration,
            layout.expiry_block,
            layout.seal,
            layout.seed,
        )

    @property
    def keys(self) -> dict[str, object]:
        """The keys with their values, also those that are None."""
        return {**vars(self)}


@dataclass(frozen=True)
class RelationChanges:
    """How a stream's rows change a relation: the expression that gives the operation, and whether changes are retroactive."""

    op: str
    retroactive: bool


@dataclass(frozen=True)
class Stream:
    """A declared input that arrives as files.

    Paths are absolute, durations are in microseconds. ``stale_after`` is the greatest age of the newest data. ``options`` are
    passed to Spark's reader. ``expires`` is None for rows that never expire. No line of a file is longer than ``max_record``
    bytes, and no file expands to more than ``max_expansion`` times its size. Loaded files are moved to ``move_to``, if it is
    given. ``erase_within`` bounds how long the bytes of a dead row may exist; with expiry blocks up to ``widest_block`` a new
    table keeps this bound without rewriting. ``on_expiry`` says whether expired rows are dropped or archived. ``added`` names
    undeclared columns that files added. ``publish`` says whether there is also a Delta table of exactly the live rows.
    ``sources`` are further columns of the files, for expressions of columns, with their names in the files. Rejected rows stay
    for ``keep`` (None: forever). ``partitions`` names the columns whose values are folders on a file's path. ``store`` is the
    landing in an object store; then ``landing`` has the local copies, and ``listing`` says which objects are listed.
    """

    name: str
    landing: Path
    files: str
    format: Format
    options: tuple[tuple[str, str], ...]
    timezone: str
    columns: tuple[Column, ...]
    search_key: tuple[str, ...]
    arrival: str
    expires: str | None
    max_lifetime: int | None
    over_lifetime: OverLifetime
    max_ahead: int | None
    null_expiry: NullExpiry
    unknown_columns: UnknownColumns
    landing_settle: int
    layout: LayoutSpec = field(default_factory=LayoutSpec)
    changes: RelationChanges | None = None
    stale_after: int | None = None
    max_record: int = MAX_RECORD
    max_expansion: int = MAX_EXPANSION
    after_load: AfterLoad = "keep"
    move_to: Path | None = None
    erase_within: int | None = None
    widest_block: int | None = None
    on_expiry: OnExpiry = "drop"
    added: tuple[str, ...] = ()
    publish: Publish = "off"
    sources: tuple[Column, ...] = ()
    keep: int | None = DEFAULT_KEEP
    partitions: tuple[str, ...] = ()
    store: ObjectPath | None = None
    listing: WhichListed = "all"

    @property
    def landing_path(self) -> Path:
        """Where its files land: the store, or the local directory."""
        return self.store or self.landing

    def displayed_path(self, path: str, project: Path) -> str:
        """Return the path of a landing file for messages and commands: relative to the project if the file is below it.

        Parameters
        ----------
        path
            The file's path below its landing.
        project
            The directory of the project.

        """
        if self.store is not None:
            return f"{self.store}/{path}"
        file = self.landing / path
        return file.relative_to(project).as_posix() if file.is_relative_to(project) else str(file)

    @property
    def label(self) -> Label:
        """The state label of the stream as a leaf: MON, WKS or WK (DESIGN 9)."""
        return label_of(self.expires)

    def periods(self, interval: int) -> int:
        """Return ``p = ceil(S/interval)``."""
        return DEFAULT_PERIODS if self.max_lifetime is None else -(-self.max_lifetime // interval)


@dataclass(frozen=True)
class Relation:
    """A declared, slowly changing table: files of changes, stored as versions.

    A version is valid from its change (``changed_at``) to the next change of its ``search_key``; ``op`` is the Spark
    SQL expression that says ``'upsert'`` or ``'delete'``. ``max_ahead`` and ``landing_settle`` are microseconds.
    """

    name: str
    landing: Path
    files: str
    format: Format
    options: tuple[tuple[str, str], ...]
    timezone: str
    columns: tuple[Column, ...]
    search_key: tuple[str, ...]
    changed_at: str
    op: str
    retroactive: bool
    max_ahead: int | None
    unknown_columns: UnknownColumns
    landing_settle: int
    stale_after: int | None = None
    max_record: int = MAX_RECORD
    max_expansion: int = MAX_EXPANSION
    after_load: AfterLoad = "keep"
    move_to: Path | None = None
    publish: Publish = "off"
    sources: tuple[Column, ...] = ()
    keep: int | None = DEFAULT_KEEP
    partitions: tuple[str, ...] = ()
    store: ObjectPath | None = None
    listing: WhichListed = "all"

    def as_stream(self) -> Stream:
        """Return the stream of its changes: the same files, ``changed_at`` as arrival, rows that never expire."""
        return Stream(
            name=self.name,
            landing=self.landing,
            files=self.files,
            format=self.format,
            options=self.options,
            timezone=self.timezone,
            columns=self.columns,
            search_key=self.search_key,
            arrival=self.changed_at,
            expires=None,
            max_lifetime=None,
            over_lifetime="accept",
            max_ahead=self.max_ahead,
            null_expiry="never",
            unknown_columns=self.unknown_columns,
            landing_settle=self.landing_settle,
            changes=RelationChanges(self.op, self.retroactive),
            stale_after=self.stale_after,
            max_record=self.max_record,
            max_expansion=self.max_expansion,
            after_load=self.after_load,
            move_to=self.move_to,
            publish=self.publish,
            sources=self.sources,
            keep=self.keep,
            partitions=self.partitions,
            store=self.store,
            listing=self.listing,
        )


@dataclass(frozen=True)
class View:
    """A declared query that is kept as a table.

    ``sql`` is as written; :mod:`warehouse.views` checks it. An output window is either a length in microseconds or a number of
    rows. ``short_lived`` says whether results that begin and end between two updates are reported; ``short_lived_declared`` is
    True if the declaration has this key. Reported results stay for ``keep`` (microseconds; None: forever). With a ``budget`` an
    update makes a part of the results and owes the others.
    """

    name: str
    sql: str
    search_key: tuple[str, ...]
    short_lived: ShortLived = "drop"
    output_length: int | None = None
    output_rows: int | None = None
    layout: LayoutSpec = field(default_factory=LayoutSpec)
    stale_after: int | None = None
    erase_within: int | None = None
    widest_block: int | None = None
    short_lived_declared: bool = False
    publish: Publish = "off"
    keep: int | None = DEFAULT_KEEP
    budget: ViewBudget | None = None


@dataclass(frozen=True)
class Aggregate:
    """A declared aggregate over windows of a stream; its answers are a table, to which each due end adds rows."""

    name: str
    definition: AggregateDefinition

    @property
    def search_key(self) -> tuple[str, ...]:
        """The key of its answers."""
        return self.definition.search_key


@dataclass(frozen=True)
class Coalesced:
    """A declared coalesced table: points of a stream, neighbours in time that are alike made one row.

    One that is ``lazy`` has no files: each read makes its rows.
    """

    name: str
    definition: CoalescedDefinition
    how: How = "eager"

    @property
    def search_key(self) -> tuple[str, ...]:
        """The key of its rows."""
        return self.definition.search_key


@dataclass(frozen=True)
class Catalog:
    """One ``warehouse.toml``: the directory of the warehouse, its grid of update times, and its declarations.

    ``digest`` is the SHA-256 of the file's bytes, ``keys`` has its keys with their recorded values. ``warnings`` are the messages
    of ``validate`` that are no faults. With ``read_log`` readers log their probes and scans, for advice. ``target_file_size`` is
    in bytes (None: the default). Every ``verify_views`` microseconds (None: never) an update compares views with their queries.
    ``health`` has the thresholds of concerns. An update spends at most ``aggregate_time`` microseconds (None: no bound) on the
    answers of aggregates. ``coalesced`` are the stored coalesced tables, ``lazy`` the tables that each read computes.
    """

    file: Path
    root: Path
    anchor: int
    update_interval: int
    retain: int
    vacuum: Literal["auto", "manual"]
    spark: tuple[tuple[str, str], ...]
    streams: tuple[Stream, ...]
    digest: str
    warnings: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    views: tuple[View, ...] = ()
    sql: SqlBounds = field(default_factory=SqlBounds)
    read_log: bool = True
    keys: tuple[tuple[str, str], ...] = ()
    target_file_size: int | None = None
    verify_views: int | None = None
    health: Thresholds = field(default_factory=Thresholds)
    aggregates: tuple[Aggregate, ...] = ()
    aggregate_time: int | None = None
    coalesced: tuple[Coalesced, ...] = ()
    lazy: tuple[Coalesced, ...] = ()

    @property
    def sources(self) -> tuple[Stream, ...]:
        """All that arrives as files: relations, as the streams of their changes, then streams."""
        return (*(relation.as_stream() for relation in self.relations), *self.streams)

    def source(self, name: str) -> Stream | None:
        """Return the stream of that name, or the stream of changes of the relation of that name."""
        return next((source for source in self.sources if source.name == name), None)

    @property
    def stale_after(self) -> dict[str, int]:
        """How old the newest data of each table may be in microseconds, where that is declared."""
        bounds = [(source.name, source.stale_after) for source in self.sources]
        bounds += [(view.name, view.stale_after) for view in self.views]
        return {name: bound for name, bound in bounds if bound is not None}

    def stream(self, name: str) -> Stream | None:
        """Return the declared stream of that name."""
        return next((stream for stream in self.streams if stream.name == name), None)

    def relation(self, name: str) -> Relation | None:
        """Return the declared relation of that name."""
        return next((relation for relation in self.relations if relation.name == name), None)

    def view(self, name: str) -> View | None:
        """Return the declared view of that name."""
        return next((view for view in self.views if view.name == name), None)

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the declared aggregate of that name."""
        return next((aggregate for aggregate in self.aggregates if aggregate.name == name), None)

    def coalesced_table(self, name: str) -> Coalesced | None:
        """Return the declared coalesced table of that name."""
        return next((table for table in (*self.coalesced, *self.lazy) if table.name == name), None)

    def with_lazy(self, names: Collection[str]) -> Catalog:
        """Return a catalog in which the tables with ``how = "auto"`` and one of these names are lazy."""
        chosen = tuple(table for table in self.coalesced if table.how == "auto" and table.name in names)
        if not chosen:
            return self
        return replace(
            self, coalesced=tuple(table for table in self.coalesced if table not in chosen), lazy=(*self.lazy, *chosen)
        )

    @property
    def archives(self) -> dict[str, Stream]:
        """The streams whose expired rows are kept, by the name of the table that keeps them."""
        return {archive_name(stream.name): stream for stream in self.streams if stream.on_expiry == "archive"}

    @property
    def published(self) -> frozenset[str]:
        """The names of the streams, relations and views that have a Delta table of exactly their live rows."""
        sources = {source.name for source in self.sources if source.publish == "delta"}
        return frozenset(sources | {view.name for view in self.views if view.publish == "delta"})

    @property
    def erase_within(self) -> dict[str, int]:
        """How long the bytes of a dead row may exist, in microseconds, of the streams and views that bound it."""
        bounds = {stream.name: stream.erase_within for stream in self.streams}
        bounds |= {view.name: view.erase_within for view in self.views}
        return {name: bound for name, bound in bounds.items() if bound is not None}


def label_of(expires: str | None) -> Label:
    """Return the label of a stream: no ``expires`` MON, ``ts + INTERVAL constant`` WKS, anything else WK.

    Months and years are of no constant length.

    >>> label_of("ts + INTERVAL 1 HOUR"), label_of("ts + INTERVAL 1 MONTH"), label_of("landed_at"), label_of(None)
    ('WKS', 'WK', 'WK', 'MON')
    """
    if expires is None:
        return "MON"
    constant = _CONSTANT_LIFETIME.fullmatch(expires.strip()) and not _NO_LENGTH.search(expires)
    return "WKS" if constant else "WK"
