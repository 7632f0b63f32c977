"""The Spark session: the caller's active session, or a new one.

Each table is read and written in a session of its own (``spark.newSession()``), because the Parquet options of its
key columns are session settings and would leak into the next table (DESIGN 4).
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import signal
import sys
import threading
from collections import OrderedDict
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from warehouse.errors import LockHeldError, PlatformError
from warehouse.storage.cluster import cores
from warehouse.storage.hadoop import store_settings
from warehouse.storage.jvm import ClassArchive, class_archive, java_options
from warehouse.storage.packages import AVRO, jar_settings
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

__all__ = [
    "COMPRESSION",
    "INTERPRETED",
    "hold_lock",
    "interpreted",
    "jobs_run",
    "lazily",
    "own_session",
    "owned_settings",
    "release_lock",
    "spark_session",
    "table_session",
]

_OWNED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A failed read must fail the update; a file that is skipped in silence would count as loaded.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Whole records are typed here, so a line of the wrong shape must not be hidden by reading fewer columns.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
}
COMPRESSION = {"spark.sql.parquet.compression.codec": "zstd", "parquet.compression.codec.zstd.level": "1"}
"""*Measured*, a million rows of 130 bytes with words in them: a third less space than by Snappy, probes a sixth slower."""
_ENCODINGS = {"parquet.writer.version": "PARQUET_2_0"}
"""Whole numbers and times are stored as differences, strings without the beginning that they share with the one before.

*Measured*, 500 000 rows of the benchmarks' shape, Zstandard 1: 71.5 instead of 81.7 bytes a row, written and read with no more
processor time (``python -m benchmarks.encodings``)."""
_CHECKSUMS = {"parquet.page.write-checksum.enabled": "true", "parquet.page.verify-checksum.enabled": "true"}
"""A page that a disk has changed is not read as rows (Parquet, `PageHeader.crc`)."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings by which Spark interprets expressions instead of generating code: that is faster where rows are few."""
_DUMP_SECONDS = 120.0
_LOGGER = logging.getLogger("warehouse.spark")
_SECRET = re.compile(r"secret|password|passwd|token|credential|access[.]?key|private[.]?key", re.IGNORECASE)
"""Names of settings with secret values; Spark's own ``spark.redaction.regex``, and a few more words."""
_NOISE = ("WARNING: Using incubator modules",)
_DEFAULTS = {
    "spark.master": "local[*]",
    "spark.app.name": "stream-wh",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark would write the full text of every query's plan, which nobody reads: with few rows it takes a tenth of the JVM's time.
    "spark.sql.ui.explainMode": "simple",
    # Telling the JVM which Python line made each expression takes four calls to it for every expression.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
}
_PAGE = "4m"
"""The first allocation of every hash table, sort and broadcast, which Spark also clears, however few the rows are.

Spark's own choice is up to 64 MB: with two cores and a heap of 2 GB, the broadcasts of fifteen joins of few rows fill the heap. A
task has at most 8192 pages, so 4 MB are enough for 32 GB a task."""
_FORGOTTEN = {
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "1",
}
"""How much Spark remembers of work that is done, where there is no page to show it on."""


def owned_settings() -> frozenset[str]:
    """Return the Spark settings that the warehouse owns; ``[spark]`` may not give them."""
    return frozenset(_OWNED)


def spark_session(
    settings: Iterable[tuple[str, str]] = (), *, small: bool = False, root: Path | None = None, formats: Collection[str] = ()
) -> SparkSession:
    """Return the active Spark session, or start one with ``settings``.

    ``small`` is for little data. ``root`` is the directory of the tables, and ``formats`` are the formats of the files to read.

    Raises
    ------
    PlatformError
        When Java or Spark is missing.

    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - reading commands never import Spark

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    under_submit = "PYSPARK_GATEWAY_PORT" in os.environ
    own_settings = dict(settings)
    unseen = _FORGOTTEN if own_settings.get("spark.ui.enabled", "false") == "false" else {}
    all_settings = {**_DEFAULTS, **unseen, **own_settings, **_OWNED}
    archive = None
    if under_submit:
        all_settings = {**_unless_submitted(_DEFAULTS), **own_settings, **_OWNED}
        all_settings.pop("spark.master", None)
    if root is not None and not store_of(root).local_paths:
        all_settings |= store_settings(root, all_settings, launched=under_submit)
    if "avro" in formats and not under_submit:
        all_settings |= jar_settings(AVRO, all_settings)
    if not under_submit:
        archive = _with_jvm_settings(all_settings, small=small)
    builder = SparkSession.builder
    for key, value in all_settings.items():
        builder = builder.config(key, value)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # the exception reports a failed query
    try:
        if not under_submit:
            _launch(all_settings)
        with _own_interrupts():
            session = builder.getOrCreate()
    except Exception as error:
        raise PlatformError(f"Spark does not start ({_first_line(error)}); run `stream-wh doctor`") from error
    atexit.register(_stop, session, archive)
    return session


def _unless_submitted(defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the defaults that neither the command line of ``spark-submit`` nor its files give."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - reading commands never import Spark

    SparkContext._ensure_initialized()  # noqa: SLF001 - until the gateway is there, a SparkConf knows of no setting
    submitted = SparkConf()
    return {key: value for key, value in defaults.items() if not submitted.contains(key)}


def _with_jvm_settings(settings: dict[str, str], *, small: bool) -> ClassArchive | None:
    """Add settings for the JVM that this process starts."""
    options = [f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"]
    archive = None
    if settings["spark.master"].startswith("local"):
        settings.setdefault("spark.buffer.pageSize", _PAGE)
        archive = class_archive(settings.get("spark.driver.extraClassPath", ""))
        options += [java_options(small=small), archive.options if archive else ""]
    options.append(settings.get("spark.driver.extraJavaOptions", ""))
    settings["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
    return archive


def _launch(settings: Mapping[str, str]) -> None:
    """Start the JVM with its standard error filtered: it announces one of its own modules at every start."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - reading commands never import Spark
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - same

    if SparkContext._gateway is not None:  # noqa: SLF001 - the JVM of an earlier session is used again
        return
    # Only settings that start the JVM are on its command line, which every user of the machine can read; the rest is set later.
    open_ = [(key, value) for key, value in settings.items() if not _SECRET.search(key)]
    conf = SparkConf(loadDefaults=False).setAll(open_)
    read_end, write_end = os.pipe()
    try:
        with _names_in_utf_8():
            gateway = launch_gateway(conf, popen_kwargs={"stderr": write_end})
    finally:
        os.close(write_end)
        threading.Thread(target=_forward, args=(read_end,), name="spark-stderr", daemon=True).start()
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)  # noqa: SLF001 - how the context takes a gateway


@contextmanager
def _names_in_utf_8() -> Iterator[None]:
    """Start the JVM in UTF-8 where the locale is C, as under cron: Java 17 would find no file whose path is not ASCII."""
    lc_all = os.environ.get("LC_ALL")
    effective = lc_all or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "C"
    if effective not in {"C", "POSIX"}:
        yield
        return
    os.environ["LC_ALL"] = "C.UTF-8"
    try:
        yield
    finally:
        if lc_all is None:
            del os.environ["LC_ALL"]
        else:
            os.environ["LC_ALL"] = lc_all


def _forward(read_end: int) -> None:
    """Forward the output of the JVM until it ends; it is read even if it cannot be written, so that the JVM does not wait."""
    with os.fdopen(read_end, errors="replace") as lines:
        for line in lines:
            if line.startswith(_NOISE):
                continue
            if _LOGGER.isEnabledFor(logging.INFO) and logging.getLogger().hasHandlers():
                _LOGGER.info(line.rstrip())
            else:
                with suppress(OSError, ValueError):
                    sys.stderr.write(line)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the caller's handler of Ctrl-C: Spark's own calls the JVM from inside the signal handler."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(session: SparkSession, archive: ClassArchive | None) -> None:
    with suppress(Exception):  # the JVM may have ended before
        useful = _worked.is_set()
        gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - the only handle on the JVM
        session.stop()
        if archive is not None and archive.written is not None:
            gateway.proc.stdin.close()
            gateway.proc.wait(timeout=_DUMP_SECONDS)
            archive.keep(useful=useful)


def jobs_run() -> int:
    """Return how many jobs the Spark of this process has run; 0 before it is started."""
    from pyspark import SparkContext  # noqa: PLC0415 - reading commands never import Spark

    context: Any = SparkContext._active_spark_context  # noqa: SLF001 - `getOrCreate` would start one
    if context is None:
        return 0
    if _scheduler.get("of") is not context:
        _scheduler.update(of=context, jobs=context._jsc.sc().dagScheduler())  # noqa: SLF001 - it has no public counter
    return int(_scheduler["jobs"].numTotalJobs())


@contextmanager
def interpreted(session: SparkSession) -> Iterator[None]:
    """Interpret expressions in a session for the length of a block; of several threads the last one restores the settings."""
    with _making:
        users, before = _interpreting.get(id(session), (0, {}))
        if not users:
            before = {name: str(session.conf.get(name)) for name in INTERPRETED}
            for name, value in INTERPRETED.items():
                session.conf.set(name, value)
        _interpreting[id(session)] = users + 1, before
    try:
        yield
    finally:
        with _making:
            users, before = _interpreting.pop(id(session))
            if users > 1:
                _interpreting[id(session)] = users - 1, before
            else:
                for name, former in before.items():
                    session.conf.set(name, former)


def table_session(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a session for tables with ``settings`` and the settings that the warehouse owns.

    It is made once in each process and cached, so code that changes a setting must restore it. Threads that update other
    warehouses use it too, so code that needs temporary views for longer than one call uses :func:`own_session`.
    """
    _worked.set()
    key = (session.sparkContext, tuple(sorted(settings.items())))
    with _making:
        cached = _sessions.get(key)
        if cached is None:
            cached = _sessions[key] = _new_session(session, settings)
            while len(_sessions) > _MOST_SESSIONS:
                _sessions.popitem(last=False)
        _sessions.move_to_end(key)
    return cached


def lazily(spark: Callable[[], SparkSession], settings: Mapping[str, str]) -> Callable[[], SparkSession]:
    """Return a function that gives the session of tables with these settings: Spark is asked for when that is first called."""
    return cache(lambda: table_session(spark(), settings))


def own_session(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a new session with the settings of a table's session."""
    _worked.set()
    return _new_session(session, settings)


def _new_session(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    new_session = session.newSession()
    sized = {
        # An update is a few small stages whose sizes are known: re-planning between them costs more than it gives.
        "spark.sql.adaptive.enabled": "false",
        # The only shuffles are counts by cell and the runs themselves, which are cut by their sizes.
        "spark.sql.shuffle.partitions": str(cores(session)),
        # Java never compiles a method beyond this size: the code of a classification made as one method is interpreted.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        **COMPRESSION,
        **_ENCODINGS,
    }
    conf = session.sparkContext._conf  # noqa: SLF001 - `getConf` copies all settings, one call of the JVM each
    defaults = {key: value for key, value in sized.items() if not (conf.contains(key) or conf.contains(f"spark.hadoop.{key}"))}
    for key, value in {**_OWNED, **_CHECKSUMS, **defaults, **settings}.items():
        new_session.conf.set(key, value)
    return new_session


_worked = threading.Event()
_sessions: OrderedDict[tuple[object, ...], SparkSession] = OrderedDict()
"""Sessions of tables, by the Spark that they belong to and their settings."""
_making = threading.Lock()
_interpreting: dict[int, tuple[int, dict[str, str]]] = {}
"""How many callers interpret expressions in a session, by its id, and the settings that it had."""
_MOST_SESSIONS = 128
_held: dict[str, Any] = {}
_scheduler: dict[str, Any] = {}
"""The Spark of this process, and the counter of its jobs."""


def hold_lock(session: SparkSession, path: Path) -> None:
    """Let the JVM hold a file lock until it ends, so that no update starts while an orphaned JVM may still commit."""
    if not store_of(path).local_paths:
        return  # it may still write, but to another directory than other stagings
    key = str(path.resolve())
    if key in _held:
        return
    jvm: Any = session._jvm  # noqa: SLF001 - the gateway is the only way to the JVM's file locks
    channel = getattr(jvm, "java.io.RandomAccessFile")(key, "rw").getChannel()  # one call; by its parts, four
    lock = channel.tryLock()
    if lock is None:
        raise LockHeldError("the Spark of another update that is still ending")
    _held[key] = lock


def release_lock(path: Path) -> None:
    """Release the JVM's file lock."""
    lock = _held.pop(str(path.resolve()), None)
    if lock is not None:
        with suppress(Py4JError):  # a JVM that has ended holds no lock
            lock.release()
            lock.channel().close()


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
