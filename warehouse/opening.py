"""Opens a project directory: its declarations, the root of its tables, readers of epochs, contexts of verbs that write."""

from __future__ import annotations

import hashlib
import time
import tomllib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from warehouse.catalog.sizes import SqlBounds
from warehouse.epochs.journal import newest_epoch
from warehouse.epochs.points import Observer, nobody
from warehouse.errors import ChangedDeclarationError, RecordDamagedError, UnknownNameError, UsageError
from warehouse.objects.path import is_uri, path_of
from warehouse.time import parse_duration, parse_instant, to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.operations.context import WriteContext
    from warehouse.serving import Reader
    from warehouse.serving.engine import Resources

__all__ = ["Instant", "OpenProject", "beginning_of", "clock_now", "instant_of", "time_given"]

Instant = int | str | datetime
"""Microseconds since 1970 (UTC), ISO 8601 text, or a datetime that knows its time zone."""


class OpenProject:
    """The declarations and readers of one project directory; :class:`warehouse.project.Warehouse` has parameters and verbs."""

    def __init__(
        self,
        directory: Path,
        root: Path,
        sql: SqlBounds | None = None,
        *,
        read_log: bool = True,
        hot: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.root = root
        self.sql_bounds = sql or SqlBounds()
        self._read_log = read_log
        self._hot = tuple(hot)
        self._readers: dict[int | None, Reader] = {}
        self._closed = False

    @classmethod
    def open(cls, directory: str | Path = ".", *, compared: bool = True, hot: Sequence[str] = ()) -> Self:
        """Open the project in a directory.

        Parameters
        ----------
        directory
            The directory of ``warehouse.toml``.
        compared
            Whether to compare the declarations with the newest epoch; False for the verification of a damaged warehouse.
        hot
            Names of tables whose live rows this object caches in memory. It answers probes, scans and queries of the newest epoch
            from memory, and reads the files that each new epoch adds. Rows take about 1.5 times the bytes of their values,
            without an upper bound. A declared table may appear with a later epoch.

        Raises
        ------
        ConfigurationError
            When ``warehouse.toml`` has faults; the error lists all of them.
        ChangedDeclarationError
            When a declaration differs from the one with which the tables were built.
        UnknownNameError
            When a name in ``hot`` is not a table.

        """
        path = Path(directory)
        content = _content(path)
        raw = _raw(content)
        root = _root(path, raw)
        if not compared:
            project = cls(path, root or _catalog(path).root, hot=hot)
            project._check_hot(hot)
            return project
        if root is not None:
            last = newest_epoch(root)
            if last is not None and last.catalog_digest == hashlib.sha256(content).hexdigest():
                reads = raw.get("warehouse", {}).get("read_log", "on")
                opened = cls(path, root, SqlBounds.of(raw.get("sql", {})), read_log=reads == "on", hot=hot)
                opened._check_hot(hot)
                return opened
        catalog = _catalog(path)
        warehouse = cls(path, catalog.root, catalog.sql, read_log=catalog.read_log, hot=hot)
        warehouse._check_hot(hot)
        warehouse._check_declarations()
        return warehouse

    def _check_hot(self, names: Sequence[str]) -> None:
        if isinstance(names, str):
            raise UsageError("hot is one text; allowed: a list of names of tables")
        if not names:
            return
        from warehouse.catalog.spelling import nearest  # noqa: PLC0415 - few name tables
        from warehouse.serving.visible_tables import visible  # noqa: PLC0415 - same

        catalog, last = self.catalog, newest_epoch(self.root)
        declarations = (catalog.sources, catalog.views, catalog.aggregates, catalog.coalesced)
        declared = [table.name for tables in declarations for table in tables]
        known_names = list(dict.fromkeys([*declared, *(table.name for table in (visible(last) if last else ()))]))
        for name in names:
            if name not in known_names:
                raise UnknownNameError("table", name, known_names, nearest(name, known_names))

    def _check_declarations(self) -> None:
        from warehouse.catalog.drift import compare  # noqa: PLC0415 - only when the file is another

        last = newest_epoch(self.root)
        problems = compare(self.catalog, last).problems if last else ()
        if problems and last is not None and not self._migrating(last):
            raise ChangedDeclarationError(problems)

    def _migrating(self, last: Epoch) -> bool:
        """Whether a migration to this very file is running; until it ends readers have the epoch before it."""
        from warehouse.epochs.journal import plan_path, read_record  # noqa: PLC0415 - only when the file is another
        from warehouse.planning.plan_record import Plan  # noqa: PLC0415 - same

        try:
            plan = read_record(plan_path(self.root, last.number + 1), Plan)
        except (OSError, RecordDamagedError):
            return False
        return plan.catalog_digest == self.catalog.digest

    @property
    def catalog(self) -> Catalog:
        """The declarations in force, checked."""
        return _catalog(self.directory)

    def close(self) -> None:
        """Close the readers; a closed warehouse reads nothing."""
        self._closed = True
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    # --- readers, and contexts of verbs that write ---

    def _context(self, observer: Observer = nobody, spark: SparkSession | None = None) -> WriteContext:
        from warehouse.operations.context import WriteContext, announced, logged  # noqa: PLC0415 - reading does without
        from warehouse.operations.watching import shown_in_notebooks  # noqa: PLC0415 - same
        from warehouse.storage.jvm import SMALL_WORK  # noqa: PLC0415 - reading does without
        from warehouse.storage.session import spark_session  # noqa: PLC0415 - reading does without

        catalog = self.catalog
        formats = {source.format for source in catalog.streams} | {source.format for source in catalog.relations}

        def session(work: int) -> SparkSession:
            return spark or spark_session(catalog.spark, small=work < SMALL_WORK, root=catalog.root, formats=formats)

        return WriteContext(catalog, session, clock_now, announced(catalog.root, logged(shown_in_notebooks(observer))))

    def reader(
        self, as_of: Instant | None = None, *, resources: Resources | None = None, hot: Sequence[str] = ()
    ) -> Reader:
        """Return a reader of the newest epoch, or of the newest at or before ``as_of``; the caller closes it.

        ``resources`` bounds its memory, threads and time; the default is the section ``[sql]``. The reader caches ``hot`` tables
        in memory.

        Raises
        ------
        NoEpochError
            When there is no epoch, or no readable epoch at or before that time.
        UnknownNameError
            When a hot table does not exist.

        """
        self._check_open()
        self._check_hot(hot)
        return self._reader(as_of, resources, hot)

    def _reader(self, as_of: Instant | None, resources: Resources | None, hot: Sequence[str]) -> Reader:
        from warehouse.serving import Reader  # noqa: PLC0415 - updating does without

        return Reader.open(
            self.root,
            as_of=instant_of(as_of),
            resources=resources or self.resources(self.sql_bounds),
            logged=self._read_log,
            hot=hot,
        )

    @staticmethod
    def resources(bounds: SqlBounds) -> Resources:
        """Return bounds as the engine takes them."""
        from warehouse.serving.engine import Resources  # noqa: PLC0415 - updating does without

        return Resources(f"{bounds.memory}B", spill_limit=f"{bounds.spill}B", timeout=bounds.timeout)

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the warehouse is closed; open it again: Warehouse.open(directory)")

    def _newest(self, as_of: Instant | None) -> Reader:
        """A kept reader, refreshed when there is a newer epoch, so that snapshots, footers and hot tables stay warm."""
        from warehouse.epochs.journal import epoch_numbers  # noqa: PLC0415 - one use

        self._check_open()
        moment = instant_of(as_of)
        numbers = epoch_numbers(self.root)
        reader = self._readers.get(moment)
        if reader is not None and (not numbers or (moment is None and numbers[-1] < reader.epoch.number)):
            self._readers.pop(moment).close()  # the directory now has another warehouse, or none
            reader = None
        if reader is None:
            reader = self._readers[moment] = self._reader(moment, None, self._hot if moment is None else ())
        elif moment is None and numbers[-1] > reader.epoch.number:
            reader.refresh()
        return reader

    def warm(self) -> None:
        """Read the files that the newest epoch added to hot tables, before the first read needs them.

        Raises
        ------
        NoEpochError
            When nothing was committed.

        """
        self._newest(None).warm()


def clock_now() -> int:
    """Return the machine's time in microseconds since 1970."""
    return time.time_ns() // 1000


def _catalog(directory: Path) -> Catalog:
    from warehouse.catalog.load import load_catalog  # noqa: PLC0415 - reading mostly does without
    from warehouse.views.readable_views import readable_views  # noqa: PLC0415 - same

    return load_catalog(directory, facts_of_views=readable_views)


def _content(directory: Path) -> bytes:
    try:
        return (directory / "warehouse.toml").read_bytes()
    except OSError:
        return b""


def _raw(content: bytes) -> dict[str, Any]:
    """Return the contents of the file, unchecked; empty if it is not TOML."""
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        return {}


def _root(directory: Path, raw: dict[str, Any]) -> Path | None:
    try:
        root = raw["warehouse"]["root"]
    except (LookupError, TypeError):
        return None
    if not isinstance(root, str) or not root:
        return None
    if is_uri(root):
        return path_of(root)
    return None if "://" in root else Path(directory.absolute() / root)


def instant_of(given: Instant | None) -> int | None:
    """Return an instant in microseconds since 1970; None stays None.

    Raises
    ------
    UsageError
        When a datetime has no time zone.

    """
    if isinstance(given, datetime):
        if given.tzinfo is None:
            aware = f"datetime({given.year}, {given.month}, {given.day}, ..., tzinfo=UTC)"
            raise UsageError(f"the datetime {given.isoformat()} has no time zone; say which it is in, such as {aware}")
        return to_micros(given)
    return parse_instant(given) if isinstance(given, str) else given


def time_given(within: int | str | None) -> int | None:
    """Return a time in microseconds; a text is a duration such as ``"200ms"``.

    Raises
    ------
    UsageError
        When a text is no duration.

    """
    try:
        return parse_duration(within) if isinstance(within, str) else within
    except ValueError as error:
        raise UsageError(f"within: {error}") from None


def beginning_of(given: Instant | Literal["first"] | None) -> int | Literal["first"] | None:
    """Return an instant in microseconds since 1970; ``"first"`` and None stay as they are."""
    return "first" if given == "first" else instant_of(given)
