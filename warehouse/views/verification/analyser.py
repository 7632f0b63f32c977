"""Compares the columns that Spark's analyser gives a view's text with the columns of its nodes; a difference is an error.

The text is analysed over empty tables with the columns of the tables that the view names, so nothing runs. A different type shows
that a name, a function or a conversion has different meanings in the two. The references are compared, too: the nodes are written
as one query, and each column, condition, group key and order of it must come from the same columns as in the text.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from warehouse.catalog.identifiers import quoted
from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import canonical, parse_type
from warehouse.errors import ConfigurationError, Problem
from warehouse.views.language.temporal_text import for_spark
from warehouse.views.language.window_calls import without_windows
from warehouse.views.verification.plan_query import outer_lookups, query_of
from warehouse.views.verification.plan_references import UnknownPlanError, references
from warehouse.views.verification.references import agree, differing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.views.algebra import Node
    from warehouse.views.maintenance.analysis import Shape

__all__ = ["Analyser"]


@dataclass
class Analyser:
    """Analyses the texts of views in a separate session, over tables without rows that have the names of the real tables."""

    session: SparkSession
    _known: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def check(
        self, view: str, sql: str, tables: Mapping[str, Sequence[ColumnRecord]], shape: Shape, nodes: Sequence[Node] = ()
    ) -> None:
        """Compare the columns that Spark gives a view's text with the columns of its table, and the references of both.

        Parameters
        ----------
        view, sql
            The view, and its query as declared.
        tables
            The columns of streams, relations and views.
        shape
            The columns of the view's own node.
        nodes
            All nodes of the view, its own the last; without them only columns are compared.

        Raises
        ------
        ConfigurationError
            When Spark refuses the text, gives it other columns or types, or nulls where the node has no nulls, or resolves a name
            to another column than the nodes.

        """
        self._declare(tables)
        text = without_windows(for_spark(sql))
        try:
            rows = self.session.sql(text)
            fields = rows.schema.fields
        except PySparkException as error:
            raise _refusal(view, f"a query that Spark refuses: {str(error).strip().splitlines()[0]}") from None
        theirs = [(column.name, _type(column.dataType.simpleString())) for column in fields]
        ours = [(column.name, _type(column.type)) for column in shape.columns]
        differences = [
            f"{_named(our_column)} where Spark has {_named(their_column)}"
            for our_column, their_column in zip_longest(ours, theirs)
            if our_column is None or their_column is None or not _agree(our_column, their_column)
        ]
        if differences:
            raise _refusal(view, f"a query that this build reads in another way than Spark: {'; '.join(differences)}")
        nulls = [column.name for column in fields if column.nullable and column.name in shape.never_null]
        if nulls:
            raise _refusal(view, f"a query that this build reads in another way than Spark: no nulls in {', '.join(nulls)}")
        if not nodes:
            return
        names = {name: tuple(column.name for column in columns) for name, columns in tables.items()}
        difference = self._differing_references(view, rows, query_of(nodes, names), outer_lookups(nodes))
        if difference:
            raise _refusal(view, f"a query that this build reads in another way than Spark: {difference}")

    def _differing_references(
        self, view: str, rows: DataFrame, ours: str, lookups: Mapping[str, tuple[str, ...]]
    ) -> str:
        """Return how the references of the nodes differ from the text's; an empty text if they agree or cannot be compared."""
        try:
            node_references, text_references = (references(_plan(frame), lookups) for frame in (self.session.sql(ours), rows))
        except (UnknownPlanError, PySparkException) as error:
            logging.getLogger("warehouse").debug("%s: what its nodes refer to is not compared: %s", view, error)
            return ""
        return "" if agree(node_references, text_references) else differing(node_references, text_references)

    def _declare(self, tables: Mapping[str, Sequence[ColumnRecord]]) -> None:
        for name, columns in tables.items():
            declared = tuple((column.name, column.type) for column in columns)
            if self._known.get(name) != declared:
                empty = [f"CAST(NULL AS {kind}) AS {quoted(column)}" for column, kind in declared]
                self.session.range(0).selectExpr(*empty).createOrReplaceTempView(name)
                self._known[name] = declared


def _plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().analyzed().toJSON())  # noqa: SLF001 - the public interface only prints a plan


def _type(kind: str) -> str:
    try:
        return canonical(parse_type(kind))
    except FaultError:
        return kind


def _agree(ours: tuple[str, str], theirs: tuple[str, str]) -> bool:
    """Whether a column is the same. Spark names a column without a name by its expression, the view by its field."""
    same_name = ours[0].lower() == theirs[0].lower() or not re.fullmatch(r"\w+", theirs[0])
    return same_name and ours[1].lower() == theirs[1].lower()


def _named(column: tuple[str, str] | None) -> str:
    return "no column" if column is None else f"{column[0]} {column[1]}"


def _refusal(view: str, found: str) -> ConfigurationError:
    return ConfigurationError([Problem("warehouse.toml", f"views.{view}.sql", found, "a query that Spark can run")])
