"""Tables of every column type and every key type, made by updates of a real warehouse from Parquet files.

A project has a stream for each :class:`Made`, a relation and a view; ``n`` numbers the rows of a stream. Each update brings a
batch; a later one declares the column ``later``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.operations.projects import Project, at, stream
from warehouse.storage.replay import replay

from .values import KEY_TYPES, arrow_type, values_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["ODD_DIRECTORY", "SYSTEM", "Made", "Stored", "built", "shapes", "stored"]

ODD_DIRECTORY = "it's 100% + #1 ü & \"so\" on"
SYSTEM = (
    ("_ts", "timestamp"),
    ("_exp", "timestamp"),
    ("_load_slot", "bigint"),
    ("_exp_slot", "bigint"),
    ("sub_index", "int"),
    ("exp_block", "bigint"),
)
_NUMBERS = (
    ("d", "decimal(18,2)"), ("s", "smallint"), ("t", "tinyint"), ("i", "int"), ("c", "decimal(9,2)"), ("z", "decimal(38,0)"),
)  # fmt: skip
_MIXED = (("flag", "boolean"), ("amount", "decimal(38,10)"), ("day", "date"))
_NESTED = "struct<x:int,y:struct<z:string>>"
ODD_NAMES = {"float": "größe", "double": "a%b", "binary": "c+d#e-f", "array<int>": "列", _NESTED: "ß|~^"}


@dataclass(frozen=True)
class Made:
    """A stream for tests: its columns with their types, its key, its technique."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    technique: str = "norebuild"

    def rows(self, first: int, count: int) -> list[dict[str, Any]]:
        """Return rows by their numbers; each column goes through its values in steps of 7."""
        columns = tuple(enumerate(self.columns))
        return [
            {"n": number, **{name: values_of(kind, 7 * number + position) for position, (name, kind) in columns}}
            for number in range(first, first + count)
        ]


@dataclass(frozen=True)
class Stored:
    """A table on disk: its columns in order, the rows of its files read one by one without any pruning, its files."""

    name: str
    path: Path
    version: int
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    files: tuple[Path, ...]
    schema_file: Path


def shapes() -> list[Made]:
    """Return streams of both techniques: their keys have columns of every key type, and one stream has every column type."""
    wide = tuple((ODD_NAMES.get(kind, f"c_{position}"), kind) for position, kind in enumerate((*KEY_TYPES, *ODD_NAMES)))
    return [
        Made("wide", (("k", "string"), *wide), ("k",)),
        Made("mixed", (*_MIXED, ("x", "double")), tuple(name for name, _ in _MIXED), "rebuild"),
        Made("moments", (("m", "timestamp"), ("b", "bigint"), ("f", "float")), ("m", "b")),
        Made("numbers", _NUMBERS, tuple(name for name, _ in _NUMBERS)),
    ]  # fmt: skip


def built(directory: Path, spark: SparkSession, made: Sequence[Made], *, updates: int, rows: int) -> Project:
    """Return a project after ``updates`` updates, each with ``rows`` rows for every stream."""
    streams = {
        shape.name: stream(
            landing=f"landing/{shape.name}",
            format="parquet",
            search_key=list(shape.key),
            columns={"n": "bigint", **dict(shape.columns), "b_": "timestamp", "e_": "timestamp"},
            arrival="b_",
            expires="e_",
            null_expiry="never",
            layout={"technique": shape.technique},
        )
        for shape in made
    }
    relation = {
        "landing": "landing/rel", "format": "parquet", "search_key": "k", "changed_at": "b_",
        "columns": {"k": "string", "n": "bigint", "b_": "timestamp"},
    }  # fmt: skip
    views = {"seen": {"sql": "SELECT DISTINCT k, n FROM wide WHERE n % 3 <> 0", "search_key": "k"}}
    project = Project(directory, spark, streams, views=views, relations={"rel": relation})
    for number in range(1, updates + 1):
        later = number == updates
        for shape in made:
            batch = shape.rows(rows * (number - 1), rows)
            columns = [("n", "bigint"), *shape.columns]
            if later:
                declared = cast("dict[str, str]", project.streams[shape.name]["columns"])
                project.streams[shape.name]["columns"] = {**declared, "later": "string"}
                columns.append(("later", "string"))
                batch = [{**row, "later": values_of("string", row["n"])} for row in batch]
            _land(project, shape.name, number, columns, batch)
        rows_of_relation = [
            {"k": f"{value}{number % 2}", "n": n} for n, value in enumerate(("a", "\U0010ffff" * 40, "y" * 3000))
        ]
        _land(project, "rel", number, [("k", "string"), ("n", "bigint")], rows_of_relation, relation=True)
        project.declare()
        project.update(number)
    return project


def _land(
    project: Project,
    name: str,
    number: int,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[dict[str, Any]],
    *,
    relation: bool = False,
) -> None:
    arrays = {column: _array([row[column] for row in rows], kind) for column, kind in columns}
    arrays["b_"] = _array([at(number - 0.5)] * len(rows), "timestamp")
    if not relation:
        ends = [None if row["n"] % 4 == 0 else at(number + row["n"] % 4) for row in rows]
        arrays["e_"] = _array(ends, "timestamp")
    path = project.directory / "landing" / name / f"{number} ü%20.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays), path)


def _array(values: Sequence[Any], kind: str) -> pa.Array:
    return pa.array(values, pa.int64()).cast(arrow_type(kind)) if kind == "timestamp" else pa.array(values, arrow_type(kind))


def stored(project: Project, name: str) -> Stored:
    """Return a table at the newest epoch as its files hold it."""
    state = project.epoch.table(name)
    assert state is not None
    path = project.root / state.path
    adds = replay(path, state.version).files
    columns = (*((column.name, column.type) for column in state.declaration.columns), *SYSTEM)
    rows: list[dict[str, Any]] = []
    for file, add in adds.items():
        values = {key: int(value) for key, value in add["partitionValues"].items()}
        content = plain(pq.ParquetFile(path / unquote(file)).read())
        rows += [{**dict.fromkeys(key for key, _ in columns), **row, **values} for row in content.to_pylist()]
    return Stored(
        name, path, state.version, columns, tuple(state.declaration.search_key), tuple(rows),
        tuple(path / unquote(file) for file in adds), project.root / state.schema_file,
    )  # fmt: skip


def plain(table: pa.Table) -> pa.Table:
    """Return a table with instants as microseconds."""
    for n, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(n, field.name, table.column(n).cast(pa.timestamp("us", "UTC")).cast(pa.int64()))
    return table
