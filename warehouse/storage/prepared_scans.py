"""Prepared scans: Spark's physical plan that reads some files is cached, and run again over other files.

To read a few lines, Spark looks files up, analyses each step of the query, optimises and plans it: that takes longer than to read
them. From one update to the next only the files change, and the instants of the update. So the physical plan is cached, and the
next update puts its own files into the node that scans them, and its own instants into a literal.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.storage.prepared import PlannedRows, active_session, jvm_names, planned

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.storage.prepared import JvmNames

__all__ = ["FileScan", "scanned"]

_Java = Any
"""An object of the JVM."""
_KEPT = 64
"""Plans that are kept at most."""
_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
_PROJECTION = "org.apache.spark.sql.execution.ProjectExec"
_LITERAL = "org.apache.spark.sql.catalyst.expressions.Literal"


@dataclass(frozen=True, eq=False)
class FileScan:
    """Rows that are read from files, with a column of whole numbers.

    Parameters
    ----------
    session
        The session that reads.
    paths
        The files.
    read
        Reads files: a frame that depends on the files, on ``key`` and on settings of the session only.
    key
        Everything else on which the frame depends.
    column, numbers
        The name of the column, and the array that it has in each row; a column of that name is replaced.

    """

    session: SparkSession
    paths: list[str]
    read: Callable[[list[str]], DataFrame]
    key: Hashable
    column: str
    numbers: tuple[int, ...]

    def frame(self) -> DataFrame:
        """Return the rows as a frame that is planned anew."""
        array = f"array({', '.join(f'{number}L' for number in self.numbers)})"
        return self.read(self.paths).withColumn(self.column, F.expr(array))


@dataclass(frozen=True)
class _Files:
    """What the node that scans files is made of, besides the files."""

    node: _Java
    others: tuple[_Java, ...]
    relation: _Java
    of_relation: tuple[_Java, ...]


@dataclass(frozen=True)
class _Projection:
    """A projection with the column of numbers, the alias of this column, and its place."""

    node: _Java
    columns: _Java
    place: int
    alias: _Java


@dataclass(frozen=True)
class _ScanNode:
    """A node of a physical plan: what changes in it, and its child, if one below changes."""

    java: _Java
    files: _Files | None = None
    projection: _Projection | None = None
    child: _ScanNode | None = None


@dataclass(frozen=True)
class _Classes:
    """Classes and objects of the JVM: to look one up takes a call for each part of its name."""

    source: _Java
    index: _Java
    no_cache: _Java
    none: _Java
    arrays: _Java
    literal: _Java
    array_type: _Java
    to_seq: _Java


@dataclass(frozen=True)
class _ScanPlan:
    """A plan and its session, which lives as long: plans are found by its identity."""

    session: SparkSession
    root: _ScanNode
    schema: _Java
    schema_text: str
    classes: _Classes


_kept: OrderedDict[Hashable, _ScanPlan] = OrderedDict()
_keeping = Lock()


def scanned(scan: FileScan) -> PlannedRows:
    """Return the rows of files, planned only if no plan is cached for a scan of the same kind.

    Raises
    ------
    pyspark.errors.AnalysisException
        When a file is not there.

    """
    key = (id(scan.session), scan.column, len(scan.numbers), scan.key)
    with _keeping:
        plan = _kept.get(key)
        if plan is not None:
            _kept.move_to_end(key)
    if plan is not None:
        with active_session(scan.session):
            files = _index(scan, plan)
            if files is not None:
                java = _over(plan.root, files, _numbers(scan, plan), jvm_names(scan.session))
                return PlannedRows(scan.session, java.execute(), plan.schema, plan.schema_text)
    frame = scan.frame()
    rows = planned(frame)
    if plan is None:
        root = _node(frame._jdf.queryExecution().executedPlan(), scan.column)  # noqa: SLF001 - PySpark has no plans
        if root is not None and _is_whole(root):
            with _keeping:
                _kept[key] = _ScanPlan(scan.session, root, rows.schema, rows.schema_text, _classes(scan.session))
                while len(_kept) > _KEPT:
                    _kept.popitem(last=False)
    return rows


def _classes(session: SparkSession) -> _Classes:
    jvm: Any = session._jvm  # noqa: SLF001 - as above
    spark = jvm.org.apache.spark.sql
    datasources, expressions = spark.execution.datasources, spark.catalyst.expressions

    def single(package: _Java, name: str) -> _Java:
        return getattr(getattr(package, f"{name}$"), "MODULE$")

    return _Classes(
        single(datasources, "DataSource"),
        datasources.InMemoryFileIndex,
        single(datasources, "NoopCache"),
        single(jvm.scala, "None"),
        expressions.UnsafeArrayData,
        expressions.Literal,
        spark.types.DataTypes.createArrayType(spark.types.DataTypes.LongType, False),  # noqa: FBT003 - a call by position
        jvm.PythonUtils.toSeq,
    )


def _node(java: _Java, column: str) -> _ScanNode | None:
    """Return a node of a plan if the scan of files is below it, else None."""
    name = java.getClass().getName()
    if name == _SCAN:
        relation = java.relation()
        others = (
            java.stream(), java.output(), java.requiredSchema(), java.partitionFilters(), java.optionalBucketSet(),
            java.optionalNumCoalescedBuckets(), java.dataFilters(), java.tableIdentifier(), java.disableBucketedScan(),
        )  # fmt: skip
        of_relation = (
            relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(), relation.fileFormat(), relation.options(),
            relation.sparkSession(),
        )  # fmt: skip
        return _ScanNode(java, files=_Files(java, others, relation, of_relation))
    children = java.children()
    if children.size() != 1:
        return None
    child = _node(children.apply(0), column)
    return None if child is None else _ScanNode(java, None, _projection(java, name, column), child)


def _projection(java: _Java, name: str, column: str) -> _Projection | None:
    if name != _PROJECTION:
        return None
    columns = java.projectList()
    for place in range(columns.size()):
        alias = columns.apply(place)
        if alias.name() == column and alias.children().size() == 1 and alias.child().getClass().getName() == _LITERAL:
            return _Projection(java, columns, place, alias)
    return None


def _is_whole(root: _ScanNode) -> bool:
    """Whether exactly one node has the column of numbers as a literal, so that all that changes can be replaced."""
    found, node = 0, root
    while node.child is not None:
        found, node = found + (node.projection is not None), node.child
    return found == 1


def _index(scan: FileScan, plan: _ScanPlan) -> _Java | None:
    """Return Spark's list of the files; None if it lacks some, so that Spark says what is the matter."""
    session, classes, node = scan.session, plan.classes, plan.root
    while node.child is not None:
        node = node.child
    options = node.files.relation.options() if node.files else None
    java: Any = session._jsparkSession  # noqa: SLF001 - as above
    configuration = java.sessionState().newHadoopConf()
    check_empty, check_exists, globs, threads = False, False, False, 1  # the list shows what is missing
    paths = classes.source.checkAndGlobPathIfNecessary(
        classes.to_seq(scan.paths), configuration, check_empty, check_exists, threads, globs
    )
    index = classes.index(java, paths, options, classes.none, classes.no_cache, classes.none, classes.none)
    return index if index.allFiles().size() == len(scan.paths) else None


def _numbers(scan: FileScan, plan: _ScanPlan) -> _Java:
    """Return the literal with the numbers."""
    gateway: Any = scan.session.sparkContext._gateway  # noqa: SLF001 - as above
    values = gateway.new_array(gateway.jvm.long, len(scan.numbers))
    for place, number in enumerate(scan.numbers):
        values[place] = number
    return plan.classes.literal(plan.classes.arrays.fromPrimitiveArray(values), plan.classes.array_type)


def _over(node: _ScanNode, index: _Java, numbers: _Java, names: JvmNames) -> _Java:
    """Return a node of a plan over other files, with other numbers."""
    if node.files is not None:
        files = node.files
        return files.node.copy(files.relation.copy(index, *files.of_relation), *files.others)
    if node.child is None:
        return node.java
    child = _over(node.child, index, numbers, names)
    if node.projection is None:
        return node.java.withNewChildren(names.listed(child))
    projection = node.projection
    alias = projection.alias.withNewChildren(names.listed(numbers))
    return projection.node.copy(projection.columns.updated(projection.place, alias), child)
