"""The grammar of random views: queries over the whole language, each with the text that Spark is asked.

A query is text. What Spark does not know, ``time_window(a, INTERVAL 90 MINUTES)`` and ``row_window(a, 2, k)``, is written in few
fixed ways (:data:`WINDOWS`), so that the text for Spark is the query with these calls replaced by names of temporary views. A
query can then be shrunk as text, without the choices that made it.

What the grammar reaches: nesting and ``WITH``; aliases that hide columns, tables called as columns, names with and without
their table; fields of structs, elements of arrays, maps in expressions; all join kinds, ``USING``, commas, null-safe equality;
``EXISTS``, ``IN`` and their negations; constant conditions; extreme values; ``GROUP BY`` with ``HAVING`` over aliases; set
operations over columns of different types; first rows. Rows are chosen by orders over all columns, so that no query has two
answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["TABLES", "WINDOWS", "Query", "Window", "random_query", "spark_text"]

STRING, INT, LONG, DOUBLE, DECIMAL, BOOLEAN = "string", "int", "bigint", "double", "decimal(10,2)", "boolean"
STRUCT, ARRAY = "struct<x: int, y: string>", "array<int>"
NUMBERS = (INT, LONG, DOUBLE, DECIMAL)
PLAIN = (STRING, INT, LONG, DECIMAL, BOOLEAN)
"""Types whose values can be compared exactly: of keys, of join columns and of orders."""
TABLES: dict[str, dict[str, str]] = {
    "a": {"k": STRING, "n": LONG, "f": DOUBLE, "st": STRUCT, "ar": ARRAY, "d": DECIMAL, "p": BOOLEAN},
    "w": {"k": STRING, "n": INT, "q": INT, "st": STRUCT},
    "m": {"k": STRING, "q": LONG, "x": INT, "y": STRING},
    "r": {"k": STRING, "model": STRING, "q": INT},
}
"""Streams whose rows end each by itself (a: WK), after one length (w), never (m: MON), and a retroactive relation (r: STR)."""


class Window(NamedTuple):
    """A call of ours: how it is written, the temporary view that Spark reads for it, and which rows that has."""

    call: str
    view: str
    table: str
    minutes: int | None = None
    newest: int | None = None
    of: str | None = None


WINDOWS = (
    Window("time_window(a, INTERVAL 90 MINUTES)", "a_90", "a", minutes=90),
    Window("time_window(w, INTERVAL 45 MINUTES)", "w_45", "w", minutes=45),
    Window("time_window(m, INTERVAL 2 HOURS)", "m_120", "m", minutes=120),
    Window("row_window(a, 3)", "a_newest", "a", newest=3),
    Window("row_window(m, 2, k)", "m_newest", "m", newest=2, of="k"),
)


class Column(NamedTuple):
    """A column and its type."""

    name: str
    kind: str


class Query(NamedTuple):
    """A query and its columns; ``exact`` where no aggregate may add floats in another order."""

    sql: str
    columns: tuple[Column, ...]


def spark_text(sql: str) -> str:
    """Return a query as Spark is asked: calls of ours are temporary views."""
    for window in WINDOWS:
        sql = sql.replace(window.call, window.view)
    return sql


def random_query(chance: random.Random, depth: int = 3) -> Query:
    """Return a query of at most ``depth`` levels whose first column can be a search key."""
    while True:
        query = _Maker(chance).query(depth)
        if query.columns[0].kind in PLAIN:
            return query


class _Named(NamedTuple):
    """An item of FROM in scope: its alias and columns."""

    alias: str
    columns: tuple[Column, ...]


@dataclass
class _Maker:
    chance: random.Random
    known: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    made: int = 0

    # --- queries ---

    def query(self, depth: int) -> Query:
        """Return a query, sometimes with a WITH clause before it."""
        if depth > 1 and not self.known and self.chance.random() < 0.12:
            inner = self.query(depth - 1)
            name = self.chance.choice(["c1", "n", "st"])
            self.known = {name: inner.columns}
            outer = self.query(depth - 1)
            self.known = {}
            return Query(f"WITH {name} AS ({inner.sql}) {outer.sql}", outer.columns)
        makers: list[Callable[[int], Query]] = [
            self._selection, self._selection, self._joined, self._joined, self._joined, self._outer, self._outer,
            self._distinct, self._grouped, self._grouped, self._exists, self._in, self._united, self._first, self._limited,
        ]  # fmt: skip
        return self.chance.choice(makers)(depth)

    def _selection(self, depth: int) -> Query:
        source, named = self._item(depth)
        select, columns = self._list([named])
        where = f" WHERE {self._condition([named])}" if self.chance.random() < 0.8 else ""
        return Query(f"SELECT {select} FROM {source}{where}", columns)

    def _distinct(self, depth: int) -> Query:
        source, named = self._item(depth)
        select, columns = self._list([named], most=2)
        return Query(f"SELECT DISTINCT {select} FROM {source}", columns)

    def _joined(self, depth: int) -> Query:
        sources, scope = self._items(depth, self.chance.choice([2, 2, 2, 3]))
        text, conditions = sources[0], []
        comma = self.chance.random() < 0.15
        using = self._shared(scope) if len(scope) == 2 and self.chance.random() < 0.2 else None
        for number in range(1, len(sources)):
            if using:
                text += f" JOIN {sources[1]} USING ({using})"
            elif comma:
                text += f", {sources[number]}"
                conditions.append(self._equality(scope[:number], scope[number]))
            else:
                on = self._equality(scope[:number], scope[number])
                if self.chance.random() < 0.3:
                    on += f" AND {self._condition(scope[: number + 1], alone=False)}"
                text += f" JOIN {sources[number]} ON {on}"
        if self.chance.random() < 0.35:
            conditions.append(self._condition(scope, alone=False))
        select, columns = self._list(scope)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return Query(f"SELECT {select} FROM {text}{where}", columns)

    def _outer(self, depth: int) -> Query:
        sources, scope = self._items(depth, 2)
        kind = self.chance.choice(["LEFT", "RIGHT", "FULL"])
        on = self._equality(scope[:1], scope[1])
        if self.chance.random() < 0.35:
            on += f" AND {self._condition(scope, alone=False)}"
        where = f" WHERE {self._condition(scope)}" if self.chance.random() < 0.4 else ""
        select, columns = self._list(scope)
        return Query(f"SELECT {select} FROM {sources[0]} {kind} JOIN {sources[1]} ON {on}{where}", columns)

    def _exists(self, depth: int) -> Query:
        sources, scope = self._items(depth, 2)
        on = self._equality(scope[:1], scope[1])
        if self.chance.random() < 0.4:
            on += f" AND {self._condition(scope[1:], alone=False)}"
        word = self.chance.choice(["EXISTS", "NOT EXISTS"])
        more = f" AND {self._condition(scope[:1], alone=False)}" if self.chance.random() < 0.3 else ""
        select, columns = self._list(scope[:1])
        return Query(f"SELECT {select} FROM {sources[0]} WHERE {word} (SELECT 1 FROM {sources[1]} WHERE {on}){more}", columns)

    def _in(self, depth: int) -> Query:
        sources, scope = self._items(depth, 2)
        kind, left, right = self._pair(scope[:1], scope[1])
        if self.chance.random() < 0.5:
            none = "0" if kind in NUMBERS else "false" if kind == BOOLEAN else "''"
            test = f"coalesce({left}, {none}) NOT IN (SELECT coalesce({right}, {none}) FROM {sources[1]})"
        else:
            test = f"{left} IN (SELECT {right} FROM {sources[1]})"
        select, columns = self._list(scope[:1])
        return Query(f"SELECT {select} FROM {sources[0]} WHERE {test}", columns)

    def _grouped(self, depth: int) -> Query:
        source, named = self._item(depth)
        scope, chance = [named], self.chance
        keys: list[tuple[str, Column]] = []
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            kind = self._kind(scope, PLAIN)
            text = self._value(scope, kind, 1)
            keys.append((text, Column(self._name(scope, [column for _, column in keys]), kind)))
        parts = [f"{text} AS {column.name}" for text, column in keys]
        columns = [column for _, column in keys]
        for _ in range(chance.choice([1, 1, 2])):
            text, kind = self._aggregate(scope)
            column = Column(self._name(scope, columns), kind)
            columns.append(column)
            parts.append(f"{text} AS {column.name}")
        if not keys:
            head = Column(self._name(scope, columns), LONG)
            parts, columns = [f"count(*) AS {head.name}", *parts], [head, *columns]
        # A key is named as the input names it: a bare alias may hide a column, which then is the key.
        by = f" GROUP BY {', '.join(chance.choice([text, str(n)]) for n, (text, _) in enumerate(keys, start=1))}" if keys else ""
        having = ""
        if chance.random() < 0.3:
            having = f" HAVING {chance.choice(['count(*) > 1', 'count(*) < 3', f'{self._aggregate(scope)[0]} IS NOT NULL'])}"
            own = [column for column in columns[len(keys) :] if column.kind in (INT, LONG)]
            inside = {column.name.lower() for column in named.columns}
            if own and own[0].name.lower() not in inside and chance.random() < 0.5:
                having = f" HAVING {own[0].name} > {chance.choice([0, 1, 2])}"
        return Query(f"SELECT {', '.join(parts)} FROM {source}{self._maybe_where(scope)}{by}{having}", tuple(columns))

    def _united(self, depth: int) -> Query:
        chance = self.chance
        word = chance.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT ALL"])
        kinds = [chance.choice(PLAIN), *chance.sample((*PLAIN, DOUBLE), chance.choice([0, 1]))]
        sides, names = [], []
        for _ in range(2):
            source, named = self._item(depth)
            names = [Column(f"u{number}", kind) for number, kind in enumerate(kinds, start=1)]
            own = [self._near(kind) for kind in kinds]
            parts = [f"{self._value([named], kind, 1)} AS u{n}" for n, kind in enumerate(own, start=1)]
            sides.append((f"SELECT {', '.join(parts)} FROM {source}{self._maybe_where([named])}", own))
        columns = tuple(
            Column(name.name, _wider(left, right)) for name, left, right in zip(names, sides[0][1], sides[1][1], strict=True)
        )
        return Query(f"{sides[0][0]} {word} {sides[1][0]}", columns)

    def _first(self, depth: int) -> Query:
        source, named = self._item(depth)
        plain = [column for column in named.columns if column.kind in PLAIN]
        if not plain or len(plain) < len(named.columns):
            return self._selection(depth)
        alias = named.alias
        order = ", ".join(f"{alias}.{column.name}{self.chance.choice(['', ' DESC', ' NULLS LAST'])}" for column in plain)
        select = ", ".join(f"{alias}.{column.name}" for column in plain)
        by = self.chance.choice(plain).name
        most = self.chance.randint(1, 3)
        if self.chance.random() < 0.4:
            ranked = f"SELECT {select}, row_number() OVER (PARTITION BY {alias}.{by} ORDER BY {order}) AS rn FROM {source}"
            names = ", ".join(column.name for column in plain)
            return Query(f"SELECT {names} FROM ({ranked}) ranked WHERE rn <= {most}", tuple(plain))
        over = f"row_number() OVER (PARTITION BY {alias}.{by} ORDER BY {order}) <= {most}"
        return Query(f"SELECT {select} FROM {source} QUALIFY {over}", tuple(plain))

    def _limited(self, depth: int) -> Query:
        """Return ``ORDER BY ... LIMIT`` over all output columns, by name: an alias may hide a column of the input."""
        source, named = self._item(depth)
        parts, columns = [], []
        for _ in range(self.chance.choice([1, 2, 3])):
            kind = self._kind([named], PLAIN)
            column = Column(self._name([named], columns), kind)
            parts.append(f"{self._value([named], kind, 1)} AS {column.name}")
            columns.append(column)
        order = ", ".join(f"{column.name}{self.chance.choice(['', ' DESC', ' NULLS LAST'])}" for column in columns)
        limit = self.chance.choice([1, 2, 5])
        where = self._maybe_where([named])
        return Query(f"SELECT {', '.join(parts)} FROM {source}{where} ORDER BY {order} LIMIT {limit}", tuple(columns))

    # --- FROM ---

    def _item(self, depth: int, used: Sequence[str] = ()) -> tuple[str, _Named]:
        """Return an item of FROM: a table, one of our windows, a WITH query or a sub-query, with an alias."""
        chance = self.chance
        aliases = [alias for alias in ("t", "s", "l", "st", "n", "k", "v") if alias not in used]
        alias = chance.choice(aliases)
        if depth > 1 and chance.random() < 0.6:
            inner = self.query(depth - 1)
            return f"({inner.sql}) {alias}", _Named(alias, inner.columns)
        if self.known and chance.random() < 0.6:
            name = next(iter(self.known))
            return f"{name} {alias}", _Named(alias, self.known[name])
        if chance.random() < 0.2:
            window = chance.choice(WINDOWS)
            return f"{window.call} {alias}", _Named(alias, _columns(window.table))
        name = chance.choice(["a", "a", "w", "m", "r"])
        if name == "r" and used:  # what reads a relation is joined with nothing that leaves early
            name = "m"
        return f"{name} {alias}", _Named(alias, _columns(name))

    def _items(self, depth: int, count: int) -> tuple[list[str], list[_Named]]:
        texts: list[str] = []
        scope: list[_Named] = []
        while len(scope) < count:
            text, named = self._item(depth if not scope else max(1, depth - 1), [earlier.alias for earlier in scope])
            if any(column.kind in PLAIN for column in named.columns):
                texts.append(text)
                scope.append(named)
        return texts, scope

    def _shared(self, scope: Sequence[_Named]) -> str | None:
        """Return a column of both items, of one type, whose name occurs once on each side."""
        kinds = {column.name: column.kind for column in scope[0].columns}
        shared = [column.name for column in scope[1].columns if kinds.get(column.name) == column.kind and column.kind in PLAIN]
        return self.chance.choice(shared) if shared else None

    def _equality(self, left: Sequence[_Named], right: _Named) -> str:
        _, left_sql, right_sql = self._pair(left, right)
        sign = self.chance.choice(["=", "=", "=", "<=>"])
        return f"{left_sql} {sign} {right_sql}" if self.chance.random() < 0.5 else f"{right_sql} {sign} {left_sql}"

    def _pair(self, left: Sequence[_Named], right: _Named) -> tuple[str, str, str]:
        """A type and an expression of it on either side."""
        kinds = [kind for kind in PLAIN if self._has(left, kind) and self._has([right], kind)]
        kind = self.chance.choice(kinds) if kinds else self.chance.choice((INT, STRING))
        deep = 1 if not kinds or self.chance.random() < 0.2 else 0
        return kind, self._value(left, kind, deep, qualified=True), self._value([right], kind, deep, qualified=True)

    @staticmethod
    def _has(scope: Sequence[_Named], kind: str) -> bool:
        return any(column.kind == kind for named in scope for column in named.columns)

    # --- SELECT ---

    def _name(self, scope: Sequence[_Named], used: Sequence[Column]) -> str:
        """Return a name for an output column: often the name of another column of the input."""
        used_names = {column.name.lower() for column in used}
        names = [column.name for named in scope for column in named.columns] + ["x", "y", "n", "k", "q"]
        free = [name for name in names if name.lower() not in used_names]
        if free and self.chance.random() < 0.5:
            return self.chance.choice(free)
        self.made += 1
        return f"c{self.made}"

    def _kind(self, scope: Sequence[_Named], among: Sequence[str]) -> str:
        """One of some types: mostly one that a column has."""
        there = [kind for kind in among if self._references(scope, kind, qualified=False)]
        return self.chance.choice(there) if there and self.chance.random() < 0.92 else self.chance.choice(among)

    def _list(self, scope: Sequence[_Named], most: int = 4) -> tuple[str, tuple[Column, ...]]:
        parts: list[str] = []
        columns: list[Column] = []
        for number in range(self.chance.randint(1, most)):
            kind = self._kind(scope, PLAIN if number == 0 else (*PLAIN, DOUBLE, STRUCT, ARRAY))
            text = self._value(scope, kind, self.chance.choice([0, 0, 1, 2]))
            column = Column(self._name(scope, columns), kind)
            parts.append(f"{text} AS {column.name}")
            columns.append(column)
        return ", ".join(parts), tuple(columns)

    def _maybe_where(self, scope: Sequence[_Named]) -> str:
        return f" WHERE {self._condition(scope)}" if self.chance.random() < 0.25 else ""

    def _aggregate(self, scope: Sequence[_Named]) -> tuple[str, str]:
        chance = self.chance
        number = self._kind(scope, (INT, LONG, DECIMAL))
        plain = self._kind(scope, PLAIN)
        match chance.randrange(10):
            case 0:
                return "count(*)", LONG
            case 1:
                return f"count({self._value(scope, plain, 1)})", LONG
            case 2:
                return f"count(DISTINCT {self._value(scope, plain, 1)})", LONG
            case 3:
                return f"min({self._value(scope, plain, 1)})", plain
            case 4:
                return f"max({self._value(scope, plain, 1)})", plain
            case 5 | 6:
                return f"sum({self._value(scope, number, 1)})", LONG if number != DECIMAL else "decimal(20,2)"
            case 7:
                return f"avg({self._value(scope, number, 1)})", DOUBLE if number != DECIMAL else "decimal(14,6)"
            case 8:
                inner = f"struct({self._value(scope, plain, 0)} AS by, {self._value(scope, number, 0)} AS n)"
                return f"max({inner}).n", number
            case _:
                return f"count(CASE WHEN {self._condition(scope, alone=False)} THEN 1 END)", LONG

    # --- expressions ---

    def _reference(self, named: _Named, scope: Sequence[_Named], path: str, *, qualified: bool) -> str:
        """Return a reference to a column, with its table where SQL needs it and sometimes where it does not."""
        head = path.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0].lower()
        conflicts = [item for item in scope if item is not named and any(column.name.lower() == head for column in item.columns)]
        aliases = {item.alias.lower() for item in scope}
        if conflicts or qualified or head in aliases or self.chance.random() < 0.5:
            return f"{named.alias}.{path}"
        return path

    def _references(self, scope: Sequence[_Named], kind: str, *, qualified: bool) -> list[str]:
        references = []
        for named in scope:
            for column in named.columns:
                paths = [column.name] if column.kind == kind else []
                if column.kind == STRUCT and kind in (INT, STRING):
                    paths.append(f"{column.name}.{'x' if kind == INT else 'y'}")
                if column.kind == ARRAY and kind == INT:
                    paths.append(f"{column.name}[0]" if self.chance.random() < 0.1 else "")
                references += [self._reference(named, scope, path, qualified=qualified) for path in paths if path]
        return references

    def _value(self, scope: Sequence[_Named], kind: str, depth: int, *, qualified: bool = False) -> str:
        """Return an expression of a type."""
        references = self._references(scope, kind, qualified=qualified)
        if references and (depth == 0 or self.chance.random() < 0.6):
            return self.chance.choice(references)
        if depth == 0:
            kinds = [other_kind for other_kind in (LONG, INT, DECIMAL, STRING, BOOLEAN, DOUBLE) if other_kind != kind]
            for other_kind in kinds:
                near = self._references(scope, other_kind, qualified=qualified)
                cast = _CASTS.get((other_kind, kind))
                if near and cast:
                    return cast.format(self.chance.choice(near))
            return self._constant(kind)
        inner = [self._value(scope, kind, depth - 1, qualified=qualified) for _ in range(2)]
        number = self._value(scope, self.chance.choice((INT, LONG)), depth - 1, qualified=qualified)
        condition = self._test(scope, depth - 1)
        general = [
            f"coalesce({inner[0]}, {self._constant(kind)})",
            f"CASE WHEN {condition} THEN {inner[0]} ELSE {inner[1]} END",
            f"if({condition}, {inner[0]}, NULL)",
        ]
        own = {
            STRING: [f"upper({inner[0]})", f"concat({inner[0]}, '-', {inner[1]})", f"CAST({number} AS string)",
                     f"map('x', {inner[0]})['x']", f"{inner[0]} || 'x'",
                     f"element_at(map(coalesce({inner[0]}, 'p'), {inner[1]}, 'x x', 'y'), 'p')",
                     f"array_join(map_keys(map('x', {number})), ',')"],
            INT: [f"CAST({inner[0]} % 7 AS int)", f"length({self._value(scope, STRING, 0, qualified=qualified)})",
                  f"try_add({inner[0]}, 1)", f"named_struct('n', {inner[0]}, 'm', 1).n", f"array({inner[0]}, 2)[0]",
                  f"size(map_filter(map(1, {inner[0]}, 2, {inner[1]}), (k, v) -> v > k))",
                  f"map_entries(map('n', {inner[0]}))[0].value",
                  f"map_values(transform_values(map('k', {inner[0]}), (n, k) -> k % 5))[0]"],
            LONG: [f"try_add({number}, {inner[0]})", f"CAST({number} AS bigint)", f"try_multiply({inner[0]}, 3)",
                   f"{inner[0]} % 5"],
            DOUBLE: [f"CAST({number} AS double)", f"{inner[0]} / 4", f"-({inner[0]})", f"{inner[0]} * 0.5D"],
            DECIMAL: [f"CAST({inner[0]} / 3 AS decimal(10,2))", f"abs({inner[0]})"],
            BOOLEAN: [f"({condition})", f"NOT ({condition})"],
            STRUCT: [f"named_struct('x', {self._value(scope, INT, 0)}, 'y', {self._value(scope, STRING, 0)})"],
            ARRAY: [f"array({self._value(scope, INT, 0)}, 1)", f"transform({inner[0]}, x -> x % 3)",
                    f"map_values(map_concat(map('x', {self._value(scope, INT, 0)}), map('y', 1)))"],
        }  # fmt: skip
        return self.chance.choice([*general, *own[kind]])

    def _constant(self, kind: str) -> str:
        choices = {
            STRING: ["''", "'p'", "'ü€'", "'1'", "CAST(NULL AS string)"],
            INT: ["0", "1", "-1", "2147483647", "CAST(NULL AS int)"],
            LONG: ["2L", "0L", "9223372036854775807L", "-7L", "CAST(NULL AS bigint)"],
            DOUBLE: ["0.5D", "-0.0D", "1e300D", "double('NaN')", "CAST(NULL AS double)"],
            DECIMAL: ["CAST(1.25 AS decimal(10,2))", "CAST(-99999999.99 AS decimal(10,2))"],
            BOOLEAN: ["true", "false", "CAST(NULL AS boolean)"],
            STRUCT: ["named_struct('x', 1, 'y', 'q')"],
            ARRAY: ["array(1, 2)"],
        }
        return self.chance.choice(choices.get(kind, [f"CAST(NULL AS {kind})"]))

    def _near(self, kind: str) -> str:
        """Mostly the type itself; else one that a set operation widens to a common one."""
        if kind in (INT, LONG) and self.chance.random() < 0.3:
            return self.chance.choice([INT, LONG])
        return kind

    def _test(self, scope: Sequence[_Named], depth: int) -> str:
        kind = self._kind(scope, PLAIN)
        left = self._value(scope, kind, depth)
        other = self._constant(kind) if self.chance.random() < 0.6 else self._value(scope, kind, depth)
        sign = self.chance.choice(["=", "<>", "<", ">=", "<=>"])
        texts = [
            f"{left} {sign} {other}", f"{left} IS NULL", f"{left} IS NOT NULL", f"{left} IN ({self._constant(kind)}, {other})",
        ]  # fmt: skip
        return self.chance.choice([texts[0], texts[0], *texts])

    def _condition(self, scope: Sequence[_Named], *, alone: bool = True) -> str:
        """What WHERE and ON hold: a test, two of them, or a constant."""
        draw = self.chance.random()
        if draw < 0.12:
            return self.chance.choice(["1 = 0", "1 = 1", "true", "false", "CAST(NULL AS boolean)", "2 > 1"])
        if draw < 0.25:
            text = f"{self._test(scope, 0)} OR {self._test(scope, 1)}"
            return text if alone else f"({text})"
        if draw < 0.4:
            return f"NOT ({self._test(scope, 1)})"
        return self._test(scope, 1)


_CASTS: Mapping[tuple[str, str], str] = {
    (LONG, INT): "CAST({} % 100 AS int)",
    (INT, LONG): "CAST({} AS bigint)",
    (DECIMAL, INT): "CAST({} % 100 AS int)",
    (DECIMAL, LONG): "CAST({} AS bigint)",
    (STRING, INT): "length({})",
    (STRING, LONG): "CAST(length({}) AS bigint)",
    (LONG, STRING): "CAST({} AS string)",
    (INT, STRING): "CAST({} AS string)",
    (DECIMAL, STRING): "CAST({} AS string)",
    (BOOLEAN, STRING): "CAST({} AS string)",
    (INT, DOUBLE): "CAST({} AS double)",
    (LONG, DOUBLE): "CAST({} AS double)",
    (INT, BOOLEAN): "{} > 1",
    (LONG, BOOLEAN): "{} > 1",
    (STRING, BOOLEAN): "{} = 'p'",
}


def _columns(table: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in TABLES[table].items())


def _wider(left: str, right: str) -> str:
    return LONG if {left, right} == {INT, LONG} else left
