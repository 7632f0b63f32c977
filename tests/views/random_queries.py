"""Random queries of the language of views, each with what it is for DuckDB: operators over operators, a few levels deep.

Values are texts and whole numbers, so that both engines mean the same. Where rows are chosen by an order, it is of all
columns: rows that it does not tell apart are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Query", "random_query"]

TEXT, NUMBER = "string", "int"


class Column(NamedTuple):
    """A column and whether it holds texts or numbers."""

    name: str
    kind: str


class Query(NamedTuple):
    """The same query as a view declares it and as DuckDB reads it, where ``{tau}`` is the window time."""

    sql: str
    oracle: str
    columns: tuple[Column, ...]


def random_query(chance: random.Random, tables: Mapping[str, Sequence[tuple[str, str]]], depth: int, *, windows: bool) -> Query:
    """Return a query.

    Parameters
    ----------
    chance
        Where choices come from.
    tables
        What it may read: columns and kinds of each table.
    depth
        How many operators stand on each other at the most.
    windows
        Whether tables may be read through time windows.

    """
    columns_of = {name: tuple(Column(*name_and_kind) for name_and_kind in columns) for name, columns in tables.items()}
    return _Maker(chance, columns_of, windows).query(depth)


@dataclass(frozen=True)
class _Maker:
    chance: random.Random
    tables: Mapping[str, tuple[Column, ...]]
    windows: bool

    def query(self, depth: int) -> Query:
        makers: list[Callable[[int], Query]] = [
            self._selection, self._joined, self._joined, self._outer, self._distinct, self._grouped, self._grouped,
            self._negated, self._company, self._united, self._first_of_each,
        ]  # fmt: skip
        return self.chance.choice(makers)(depth)

    # --- FROM ---

    def _item(self, depth: int, alias: str) -> Query:
        """An item of FROM with its alias: a table, a window, or a sub-query."""
        if depth > 1 and self.chance.random() < 0.75:
            inner = self.query(depth - 1)
            return Query(f"({inner.sql}) {alias}", f"({inner.oracle}) {alias}", inner.columns)
        name = self.chance.choice(sorted(self.tables))
        columns = self.tables[name]
        if not self.windows or self.chance.random() < 0.5:
            return Query(f"{name} {alias}", f"{name} {alias}", columns)
        minutes = self.chance.choice([40, 90, 200])
        rows = f"(SELECT * FROM system.{name} WHERE _ts > TIMESTAMPTZ '{{tau}}' - INTERVAL {minutes} MINUTES) {alias}"
        return Query(f"time_window({name}, INTERVAL {minutes} MINUTES) {alias}", rows, columns)

    def _pair(self, depth: int) -> tuple[Query, Query, str]:
        """Return two items and an equality of columns of one kind."""
        left, right = self._item(depth, "l"), self._item(max(1, depth - 1), "r")
        pairs = [
            (left_column, right_column)
            for left_column in left.columns
            for right_column in right.columns
            if left_column.kind == right_column.kind
        ]
        if not pairs:
            return self._pair(depth)
        left_column, right_column = self.chance.choice(pairs)
        return left, right, f"l.{left_column.name} = r.{right_column.name}"

    # --- SELECT ---

    def _picked(self, sources: Sequence[tuple[str, Query]], most: int = 4) -> tuple[str, tuple[Column, ...]]:
        """Some columns or expressions of the inputs, under names of their own."""
        every = [(f"{alias}.{column.name}", column.kind) for alias, source in sources for column in source.columns]
        chosen = self.chance.sample(every, min(len(every), self.chance.randint(1, most)))
        parts, columns = [], []
        for number, (written, kind) in enumerate(chosen, start=1):
            shown = written
            if self.chance.random() < 0.3:
                shown = f"{written} || 'x'" if kind == TEXT else self.chance.choice([f"{written} + 1", f"coalesce({written}, 7)"])
            parts.append(f"{shown} AS c{number}")
            columns.append(Column(f"c{number}", kind))
        return ", ".join(parts), tuple(columns)

    def _condition(self, alias: str, source: Query) -> str:
        column = self.chance.choice(source.columns)
        name = f"{alias}.{column.name}"
        if column.kind == TEXT:
            return self.chance.choice([f"{name} <> 'x'", f"{name} IS NOT NULL", f"{name} IN ('x', 'y')"])
        return self.chance.choice([f"{name} > 1", f"{name} IS NULL OR {name} < 4", f"NOT {name} = 2"])

    def _made(self, select: str, columns: tuple[Column, ...], sources: Sequence[Query], text: str) -> Query:
        """Return one query for both engines; ``text`` has ``{0}``, ``{1}`` in place of the items."""
        return Query(
            f"SELECT {select} FROM {text.format(*(query.sql for query in sources))}",
            f"SELECT {select} FROM {text.format(*(query.oracle for query in sources))}",
            columns,
        )

    def _selection(self, depth: int) -> Query:
        source = self._item(depth, "s")
        select, columns = self._picked([("s", source)])
        return self._made(select, columns, [source], f"{{0}} WHERE {self._condition('s', source)}")

    def _distinct(self, depth: int) -> Query:
        source = self._item(depth, "s")
        select, columns = self._picked([("s", source)], 2)
        return self._made(f"DISTINCT {select}", columns, [source], "{0}")

    def _joined(self, depth: int) -> Query:
        left, right, equal = self._pair(depth)
        select, columns = self._picked([("l", left), ("r", right)])
        more = f" WHERE {self._condition('r', right)}" if self.chance.random() < 0.3 else ""
        return self._made(select, columns, [left, right], f"{{0}} JOIN {{1}} ON {equal}{more}")

    def _outer(self, depth: int) -> Query:
        left, right, equal = self._pair(depth)
        select, columns = self._picked([("l", left), ("r", right)])
        kind = self.chance.choice(["LEFT", "RIGHT", "FULL"])
        return self._made(select, columns, [left, right], f"{{0}} {kind} JOIN {{1}} ON {equal}")

    def _grouped(self, depth: int) -> Query:
        source = self._item(depth, "s")
        keys = self.chance.sample(source.columns, self.chance.randint(0, min(2, len(source.columns))))
        parts = [f"s.{key.name} AS c{number}" for number, key in enumerate(keys, start=1)]
        columns = [Column(f"c{number}", key.kind) for number, key in enumerate(keys, start=1)]
        for _ in range(self.chance.randint(1, 2)):
            column = self.chance.choice(source.columns)
            calls = [("count(*)", NUMBER), (f"count(s.{column.name})", NUMBER), (f"max(s.{column.name})", column.kind)]
            calls += [(f"count(DISTINCT s.{column.name})", NUMBER), (f"min(s.{column.name})", column.kind)]
            calls += [(f"sum(s.{column.name})", NUMBER)] * 3 if column.kind == NUMBER else []
            call, kind = self.chance.choice(calls)
            columns.append(Column(f"c{len(columns) + 1}", kind))
            parts.append(f"{call} AS {columns[-1].name}")
        by = f" GROUP BY {', '.join(f's.{key.name}' for key in keys)}" if keys else ""
        having = " HAVING count(*) > 1" if keys and self.chance.random() < 0.3 else ""
        return self._made(", ".join(parts), tuple(columns), [source], "{0}" + by + having)

    def _negated(self, depth: int) -> Query:
        left, right, equal = self._pair(depth)
        select, columns = self._picked([("l", left)])
        more = f" AND ({self._condition('r', right)})" if self.chance.random() < 0.3 else ""
        return self._made(select, columns, [left, right], f"{{0}} WHERE NOT EXISTS (SELECT 1 FROM {{1}} WHERE {equal}{more})")

    def _company(self, depth: int) -> Query:
        left, right, equal = self._pair(depth)
        select, columns = self._picked([("l", left)])
        left_name, right_name = equal.split(" = ")
        written = self.chance.choice(
            [f"EXISTS (SELECT 1 FROM {{1}} WHERE {equal})", f"{left_name} IN (SELECT {right_name} FROM {{1}})"]
        )
        return self._made(select, columns, [left, right], f"{{0}} WHERE {written}")

    def _united(self, depth: int) -> Query:
        """Return a set operation over two selections of columns of the same kinds."""
        left, right = self._item(depth, "s"), self._item(max(1, depth - 1), "s")
        kinds = [kind for kind in (TEXT, NUMBER) if any(column.kind == kind for column in left.columns)]
        kinds = [kind for kind in kinds if any(column.kind == kind for column in right.columns)]
        if not kinds:
            return self._united(depth)
        columns = tuple(Column(f"c{number}", kind) for number, kind in enumerate(kinds, start=1))
        sides = []
        for source in (left, right):
            picked = [self.chance.choice([column for column in source.columns if column.kind == kind]) for kind in kinds]
            select = ", ".join(f"s.{chosen.name} AS {column.name}" for chosen, column in zip(picked, columns, strict=True))
            sides.append(self._made(select, columns, [source], "{0}"))
        word = self.chance.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT ALL"])
        return Query(f"{sides[0].sql} {word} {sides[1].sql}", f"{sides[0].oracle} {word} {sides[1].oracle}", columns)

    def _first_of_each(self, depth: int) -> Query:
        source = self._item(depth, "s")
        select = ", ".join(f"s.{column.name} AS c{number}" for number, column in enumerate(source.columns, start=1))
        columns = tuple(Column(f"c{number}", column.kind) for number, column in enumerate(source.columns, start=1))
        order = ", ".join(f"s.{column.name} {self.chance.choice(['ASC', 'DESC'])} NULLS LAST" for column in source.columns)
        by = self.chance.choice(source.columns).name
        first = f"{{0}} QUALIFY row_number() OVER (PARTITION BY s.{by} ORDER BY {order}) <= {self.chance.randint(1, 3)}"
        return self._made(select, columns, [source], first)
