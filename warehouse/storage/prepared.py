"""Prepared plans: Spark's physical plan for some rows is cached, and run again over other rows with the same columns.

Spark analyses, optimises and plans each frame again. For few rows that is most of the work: the classification of a stream has
some hundred expressions, and from one update to the next only the rows change. So its physical plan is cached, with a placeholder
for the rows of each source; the next update fills in its own rows.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = ["JvmNames", "PlanCache", "PlannedRows", "active_session", "jvm_names", "planned", "prepared"]

P = TypeVar("P")
_Java = Any
"""An object of the JVM."""
_KEPT = 64
"""Plans that are kept at most; each holds some hundred kilobytes of the JVM."""
_SOURCE = "org.apache.spark.sql.execution.RDDScanExec"


@dataclass(frozen=True)
class _Node:
    """A node of a physical plan, an object of the JVM.

    A ``placeholder`` stands for the rows of a source. ``children`` are the node's children if a placeholder is below it, else
    empty: then the node stays as it is.
    """

    java: _Java
    children: tuple[_Node, ...] = ()
    placeholder: _Placeholder | None = None

    @property
    def varies(self) -> bool:
        """Whether it is a placeholder, or has one below."""
        return self.placeholder is not None or bool(self.children)


@dataclass(frozen=True)
class _Placeholder:
    """What a node that holds the rows of a source is made of, except the rows."""

    output: _Java
    others: tuple[_Java, ...]


@dataclass(frozen=True)
class _Plan:
    """A physical plan, and the schema of its rows (an object of the JVM) with its text."""

    session: SparkSession
    root: _Node
    schema: _Java
    schema_text: str


class PlanCache(Generic[P]):
    """Plans by key; the plan that was not used for the longest time leaves when there are too many."""

    def __init__(self) -> None:
        self._plans: OrderedDict[Hashable, P] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        """Return the number of plans."""
        return len(self._plans)

    def get(self, key: Hashable) -> P | None:
        """Return a plan."""
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
            return plan

    def put(self, key: Hashable, plan: P) -> None:
        """Cache a plan."""
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > _KEPT:
                self._plans.popitem(last=False)


@dataclass(frozen=True)
class PlannedRows:
    """Rows as a physical plan has them: objects of the JVM, and the schema as text."""

    session: SparkSession
    rows: _Java
    schema: _Java
    schema_text: str


@dataclass(frozen=True)
class JvmNames:
    """Scala's empty list, and Spark's class of sessions."""

    empty_list: _Java
    sessions: _Java

    def listed(self, *members: _Java) -> _Java:
        """Return a list of Scala."""
        return reduce(_prepended, reversed(members), self.empty_list)


_names: dict[Any, JvmNames] = {}
_kept: PlanCache[_Plan] = PlanCache()
_planned: WeakKeyDictionary[DataFrame, PlannedRows] = WeakKeyDictionary()
"""The rows of frames that were made from a cached plan, which need not be planned once more."""


def planned(frame: DataFrame) -> PlannedRows:
    """Return the rows of a frame, planned with the settings of its own session."""
    known = _planned.get(frame)
    if known is not None:
        return known
    java: Any = frame._jdf  # noqa: SLF001 - PySpark has no plans
    with active_session(frame.sparkSession):
        return PlannedRows(frame.sparkSession, java.queryExecution().toRdd(), java.schema(), str(java.schema().json()))


def prepared(key: Hashable, sources: Sequence[PlannedRows], made: Callable[[Sequence[DataFrame]], DataFrame]) -> DataFrame:
    """Return ``made`` of the sources as frames, planned only if no plan is cached under the key.

    Parameters
    ----------
    key
        Everything on which ``made`` depends except the sources, with the settings of their session.
    sources
        Rows of one session, or of several sessions that differ only in settings of writers.
    made
        Makes a frame from the sources, row by row: each source is read once, and all values depend only on the key and the rows
        of the sources.

    """
    session = sources[0].session
    full_key = (id(session), tuple(source.schema_text for source in sources), key)
    plan = _kept.get(full_key)
    with active_session(session):
        if plan is None:
            frame = made([_frame(session, source.rows, source.schema) for source in sources])
            java: Any = frame._jdf  # noqa: SLF001 - as above
            root = _node(java.queryExecution().executedPlan())
            if sum(1 for _ in _placeholders(root)) != len(sources):
                return frame
            plan = _Plan(session, root, java.schema(), str(java.schema().json()))
            _kept.put(full_key, plan)
        rows = _over(plan.root, iter(sources), jvm_names(session)).execute()
        frame = _frame(session, rows, plan.schema)
    _planned[frame] = PlannedRows(session, rows, plan.schema, plan.schema_text)
    return frame


@contextmanager
def active_session(session: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread for the length of a block.

    A node of a physical plan belongs to the session that is active when the node is made: a thread that has used no session yet
    has no active one, and other threads may have another one, with other settings.
    """
    sessions = jvm_names(session).sessions
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001 - PySpark sets it only where it makes a session
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def jvm_names(session: SparkSession) -> JvmNames:
    """Return objects of the JVM; they are looked up once, which takes a call for each part of a name."""
    jvm: Any = session._jvm  # noqa: SLF001 - PySpark has none of them
    names = _names.get(jvm)
    if names is None:
        names = JvmNames(
            getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$"), jvm.org.apache.spark.sql.classic.SparkSession
        )
        _names.clear()
        _names[jvm] = names
    return names


def _frame(session: SparkSession, rows: _Java, schema: _Java) -> DataFrame:
    java: Any = session._jsparkSession  # noqa: SLF001 - PySpark makes frames of its own rows only
    return DataFrame(java.internalCreateDataFrame(rows, schema, False), session)  # noqa: FBT003 - a call by position


def _node(java: _Java) -> _Node:
    """Return a node of a physical plan with what is below it."""
    if java.getClass().getName() == _SOURCE:
        others = java.name(), java.outputPartitioning(), java.outputOrdering(), java.stream()
        return _Node(java, placeholder=_Placeholder(java.output(), others))
    children = java.children()
    nodes = tuple(_node(children.apply(number)) for number in range(children.size()))
    return _Node(java, nodes if any(node.varies for node in nodes) else ())


def _placeholders(node: _Node) -> Iterator[_Node]:
    """Yield the nodes that hold the rows of sources, from left to right."""
    if node.placeholder is not None:
        yield node
    for child in node.children:
        yield from _placeholders(child)


def _over(node: _Node, sources: Iterator[PlannedRows], names: JvmNames) -> _Java:
    """Return a node of a plan over other rows."""
    if node.placeholder is not None:
        return node.java.copy(node.placeholder.output, next(sources).rows, *node.placeholder.others)
    if not node.children:
        return node.java
    return node.java.withNewChildren(names.listed(*[_over(child, sources, names) for child in node.children]))


def _prepended(rest: _Java, first: _Java) -> _Java:
    """Return a list of Scala with one more element before it."""
    return getattr(rest, "$colon$colon")(first)
