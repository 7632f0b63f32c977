"""What columns, inputs, fields and variables are called makes no difference: a query says the same under other names.

Random queries are written twice. In one every name is another; in the other all are of a handful, so that columns are called as
fields, inputs as columns and variables as both. The plan of the second gives what DuckDB gives for the first.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

import duckdb
import pytest

from .evaluate import query_of
from .test_names import ROWS, compiled, rows_of

FEW = ("x", "y", "st", "k", "n", "ar")


class Column(NamedTuple):
    """What a column is called in either text, and its kind: a number, a structure of x and y, or an array of numbers."""

    name: str
    other: str
    kind: str


class Query(NamedTuple):
    """A query under few names, the same under names of its own, and its columns."""

    few: str
    own: str
    columns: tuple[Column, ...]


@dataclass
class _Maker:
    chance: random.Random
    made: int = 0
    known: tuple[Column, ...] = field(
        default=(Column("k", "k", "text"), Column("n", "n", "int"), Column("st", "st", "struct"), Column("ar", "ar", "array"))
    )

    def fresh(self) -> str:
        self.made += 1
        return f"c{self.made}"

    def source(self, depth: int) -> Query:
        if depth == 0:
            return Query("a", "a", self.known)
        inner = self.query(depth - 1)
        return Query(f"({inner.few})", f"({inner.own})", inner.columns)

    def value(self, items: list[tuple[str, str, Query]], kind: str) -> tuple[str, str]:
        """Return an expression of a kind over one of the items, in both texts."""
        candidates = [(few, own, column) for few, own, query in items for column in query.columns]
        usable = {"int": ("int", "struct", "array"), "struct": ("struct",), "text": ("text",), "array": ("array",)}[kind]
        candidates = [candidate for candidate in candidates if candidate[2].kind in usable]
        if not candidates:
            return {"int": ("1", "1"), "text": ("'t'", "'t'")}.get(kind, ("", ""))
        few, own, column = self.chance.choice(candidates)
        few_sql, own_sql = f"{few}.{column.name}", f"{own}.{column.other}"
        if column.kind == kind:
            return few_sql, own_sql
        if column.kind == "struct":
            return f"{few_sql}.x", f"struct_extract({own_sql}, 'x')"
        variable = self.chance.choice([name for name in FEW if name != few])
        return f"transform({few_sql}, {variable} -> {variable} * 2)[0]", f"{own_sql}[1] * 2"

    def query(self, depth: int) -> Query:
        aliases = self.chance.sample(FEW, 2)
        items = [(aliases[0], self.fresh(), self.source(depth))]
        few, own = f"{items[0][2].few} AS {aliases[0]}", f"{items[0][2].own} AS {items[0][1]}"
        if self.chance.random() < 0.4:
            items.append((aliases[1], self.fresh(), self.source(self.chance.randint(0, depth))))
            left, right = self.value(items[:1], "int"), self.value(items[1:], "int")
            if not left[0][0].isdigit() and not right[0][0].isdigit():
                few += f" JOIN {items[1][2].few} AS {aliases[1]} ON {left[0]} % 7 = {right[0]} % 7"
                own += f" JOIN {items[1][2].own} AS {items[1][1]} ON {left[1]} % 7 = {right[1]} % 7"
            else:
                items.pop()
        names, columns, parts = self.chance.sample(FEW, 3), [], []
        for name in names:
            kind = self.chance.choice(("int", "int", "struct", "array", "text"))
            made = self.value(items, kind)
            kind, made = (kind, made) if made[0] else ("int", self.value(items, "int"))
            columns.append(Column(name, self.fresh(), kind))
            parts.append(made)
        condition = self.value(items, "int")
        select = ", ".join(f"{part[0]} AS {column.name}" for part, column in zip(parts, columns, strict=True))
        other = ", ".join(f"{part[1]} AS {column.other}" for part, column in zip(parts, columns, strict=True))
        return Query(
            f"SELECT {select} FROM {few} WHERE {condition[0]} > 1", f"SELECT {other} FROM {own} WHERE {condition[1]} > 1",
            tuple(columns),
        )  # fmt: skip


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    """DuckDB with the rows of the other tests of names."""
    made = duckdb.connect()
    made.execute(ROWS)
    return made


@pytest.mark.parametrize("block", range(10))
def test_names_make_no_difference(connection: duckdb.DuckDBPyConnection, block: int) -> None:
    """The answers are equal for thirty queries up to three levels deep."""
    nonempty = 0
    for seed in range(block * 30, block * 30 + 30):
        query = _Maker(random.Random(seed)).query(seed % 3)  # noqa: S311 - test data
        planned = query_of(compiled(query.few).nodes).replace("transform(", "list_transform(").replace("[0]", "[1]")
        rows, expected = rows_of(connection, planned), rows_of(connection, query.own)
        assert rows == expected, f"{seed}: {query.few}\nas {query.own}"
        nonempty += bool(expected)
    assert nonempty > 10, "most queries have rows"
