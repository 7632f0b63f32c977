"""The names of a query: the stored tables, and the items of its FROM with their columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from warehouse.catalog.functions import WITHOUT_PARENTHESES
from warehouse.catalog.model import label_of
from warehouse.catalog.spelling import nearest
from warehouse.catalog.types import Array, Struct, canonical, parse_type
from warehouse.coalescing.definition import OWN_COLUMNS
from warehouse.views.labels import STR, WK, Label
from warehouse.views.language.binding import replaced_columns, with_field
from warehouse.views.language.dialect import text
from warehouse.views.language.intervals import interval_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.views.algebra import Operator
    from warehouse.views.language.faults import Faults
    from warehouse.views.language.types import Types

__all__ = ["UNKNOWN", "Item", "Scope", "Table", "bound_column", "declared_tables", "owners_of", "stream_label"]


UNKNOWN = "?"
"""The name of a column that could not be resolved."""
_SYSTEM = {
    "_ts": "the time a row arrived; a column of the stream that holds it can be named",
    "_exp": "a row's end, which the view's rows inherit; a column of the stream that holds it can be named",
}
_CLOCK = "which depends on the clock or the session"


@dataclass(frozen=True)
class Table:
    """A stored table that a query can name.

    ``lifetime`` is S in microseconds, ``never_null`` the columns without nulls, in lower case. ``partial`` names the view under a
    budget that the table is, or that it reads. A ``lazy`` table has no files, so no view can follow it.
    """

    name: str
    kind: Literal["stream", "relation", "view", "coalesced", "aggregate"]
    columns: Types
    label: Label
    lifetime: int | None
    key: tuple[str, ...] = ()
    retroactive: bool = False
    never_null: frozenset[str] = frozenset()
    partial: str | None = None
    lazy: bool = False


def declared_tables(catalog: Catalog) -> dict[str, Table]:
    """Return the streams, relations, coalesced tables and aggregates of a catalog; an answer's lifetime may change, hence WK."""
    tables = {}
    for stream in catalog.streams:
        label = stream_label(stream)
        bounds = [bound for bound in (stream.max_lifetime, label.constant) if bound is not None]
        types: Types = {column.name: column.type for column in stream.columns}
        bound = min(bounds, default=None)
        tables[stream.name] = Table(stream.name, "stream", types, label, bound, stream.search_key)
    for relation in catalog.relations:
        types = {column.name: column.type for column in relation.columns}
        tables[relation.name] = Table(
            relation.name, "relation", types, STR, None, relation.search_key, retroactive=relation.retroactive
        )
    for coalesced in (*catalog.coalesced, *catalog.lazy):
        window = coalesced.definition.window  # from the first stamp that is in it to the end of the last
        tables[coalesced.name] = Table(
            coalesced.name, "coalesced", dict(coalesced.definition.columns), STR, None if window is None else 2 * window + 1,
            coalesced.search_key, never_null=frozenset(OWN_COLUMNS), lazy=coalesced in catalog.lazy,
        )  # fmt: skip
    for aggregate in catalog.aggregates:
        definition = aggregate.definition
        tables[aggregate.name] = Table(
            aggregate.name, "aggregate", dict(definition.columns), WK, definition.keep, definition.search_key
        )
    return tables


@dataclass
class Item:
    """One item of FROM: its rows under plain names, and its alias.

    ``relation`` is set if it is a bare relation; ``internal`` if it is an internal window.
    """

    alias: str
    node: exp.Expr
    operator: Operator
    columns: tuple[str, ...]
    relation: Table | None = None
    internal: bool = False
    types: Types = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def column(self, name: str) -> str | None:
        """Return the column of that name, ignoring case, as it is spelled."""
        return next((column for column in self.columns if column.lower() == name.lower()), None)

    def is_plain(self, column: str) -> bool:
        """Whether a column certainly has no fields."""
        kind = self.types.get(column)
        return kind is not None and not isinstance(parse_type(kind), (Array, Struct))


@dataclass
class Scope:
    """The items of one FROM; ``qualified`` names are ``alias.column``, else the plain names of the only item."""

    items: list[Item]
    faults: Faults
    qualified: bool
    merged: dict[str, exp.Expr] = field(default_factory=dict)
    """USING columns by lower-case name: the meaning of the unqualified name."""

    def name(self, number: int, column: str) -> str:
        """Return the bound name of an item's column, and note that it is needed."""
        item = self.items[number]
        item.used.add(column)
        return f"{item.alias}.{column}" if self.qualified else column

    def has(self, column: exp.Column) -> bool:
        """Whether a name can be resolved in this scope."""
        return self._found(_parts(column)) != [] or _parts(column)[0].lower() in self.merged

    def bind(self, node: exp.Expr) -> exp.Expr:
        """Return a copy of an expression whose columns have their bound names; unknown names are faults."""
        return replaced_columns(node, self.resolve)

    def resolve(self, column: exp.Column) -> exp.Expr:
        """Return a bound column, with the fields that follow in its name."""
        parts = _parts(column)
        if len(parts) == 1 and parts[0].lower() in self.merged:
            return self.merged[parts[0].lower()].copy()
        meanings = self._found(parts)
        if len(meanings) != 1:
            self._add_fault(column, parts, meanings)
            return bound_column(UNKNOWN, None, UNKNOWN, column)
        number, name, fields = meanings[0]
        self._check_fields(column, name, self.items[number].types.get(name), fields)
        bound: exp.Expr = bound_column(self.name(number, name), number, name, column)
        for part in fields:
            bound = with_field(bound, part)
        return bound

    def columns(self, alias: str | None = None) -> list[tuple[str, exp.Expr]]:
        """Return the columns of ``*`` or ``alias.*``: names and bound columns, USING columns first and once."""
        star_columns: list[tuple[str, exp.Expr]] = []
        if alias is None:
            star_columns = [(self._spelled(name), node.copy()) for name, node in self.merged.items()]
        for number, item in enumerate(self.items):
            if alias is not None and item.alias.lower() != alias.lower():
                continue
            for column in item.columns:
                if alias is not None or column.lower() not in self.merged:
                    star_columns.append((column, bound_column(self.name(number, column), number, column, item.node)))
        return star_columns

    def _spelled(self, name: str) -> str:
        return next(column for item in self.items for column in item.columns if column.lower() == name)

    def _found(self, parts: Sequence[str]) -> list[tuple[int, str, tuple[str, ...]]]:
        """Return (item, column, fields) of each meaning of a dotted name; a qualified one comes first and alone."""
        aliased = [
            (number, column, tuple(parts[2:]))
            for number, item in enumerate(self.items)
            if len(parts) > 1 and item.alias.lower() == parts[0].lower() and (column := item.column(parts[1]))
        ]
        is_alias = len(parts) > 1 and parts[0].lower() in {item.alias.lower() for item in self.items}
        return aliased or [
            (number, column, tuple(parts[1:]))
            for number, item in enumerate(self.items)
            if (column := item.column(parts[0])) and not (is_alias and item.is_plain(column))
        ]

    def _check_fields(self, column: exp.Column, name: str, type_text: str | None, fields: Sequence[str]) -> None:
        """Add the fault of a field that the column's type does not have, if the type is certain."""
        kind = parse_type(type_text) if type_text is not None else None
        for part in fields:
            while isinstance(kind, Array):
                kind = kind.element
            if kind is None:
                return
            field_types = (
                {struct_field.name: struct_field.type for struct_field in kind.fields} if isinstance(kind, Struct) else {}
            )
            field_name = next((known_name for known_name in field_types if known_name.lower() == part.lower()), None)
            if field_name is None:
                allowed = (
                    f"fields of {name} ({', '.join(field_types)})"
                    if field_types
                    else f"{name} is {canonical(kind)} and has no fields"
                )
                self.faults.add(column, f'the unknown field "{part}" of {name}', allowed, nearest(part, field_types))
                return
            kind = field_types[field_name]

    def _add_fault(self, column: exp.Column, parts: Sequence[str], meanings: Sequence[tuple[int, str, tuple[str, ...]]]) -> None:
        column_text = text(column)
        if meanings:
            owners = [f"{self.items[number].alias}.{name}" for number, name, _ in meanings]
            self.faults.add(column, f'the ambiguous column "{column_text}"', f"one of {', '.join(owners)}", owners[0])
            return
        last = parts[-1].lower()
        if last in _SYSTEM:
            self.faults.add(column, f'the system column "{column_text}"', f"columns of the inputs; {last} is {_SYSTEM[last]}")
        elif last.startswith("_"):
            self.faults.add(
                column, f'the name "{column_text}"', "columns of the inputs; names that begin with _ are the system's"
            )
        elif len(parts) == 1 and last in WITHOUT_PARENTHESES:
            self.faults.add(column, f"{last}, {_CLOCK}", "a deterministic expression of the columns of the inputs")
        else:
            self._add_unknown(column, column_text, parts)

    def _add_unknown(self, column: exp.Column, column_text: str, parts: Sequence[str]) -> None:
        items = [item for item in self.items if len(parts) > 1 and item.alias.lower() == parts[0].lower()] or self.items
        names = [name for item in items for name in item.columns]
        aliases = [item.alias for item in self.items]
        if len(parts) > 1 and parts[0].lower() not in {alias.lower() for alias in aliases}:
            closest = nearest(parts[0], aliases)
            suggestion = f"{closest}.{parts[1]}" if closest else None
            allowed = f"columns of {', '.join(aliases) or 'nothing: this part of the query cannot name what is outside it'}"
            self.faults.add(column, f'the unknown column "{column_text}"', allowed, suggestion)
            return
        closest = nearest(parts[-1], names)
        suggestion = f"{parts[0]}.{closest}" if closest and len(parts) > 1 else closest
        allowed = f"columns of the inputs ({', '.join(names) or 'none'})"
        self.faults.add(column, f'the unknown column "{column_text}"', allowed, suggestion)


def bound_column(name: str, owner: int | None, base: str, at: exp.Expr | None) -> exp.Column:
    """Return a column by its bound name; it remembers its item, the item's name for it, and its place in the SQL."""
    identifier = exp.to_identifier(name, quoted=True)
    if at is not None:
        first = next((node for node in at.find_all(exp.Identifier) if "start" in node.meta), None)
        identifier.meta.update({key: first.meta[key] for key in ("start", "end")} if first else {})
    column = exp.Column(this=identifier)
    column.meta.update({"owner": owner, "base": base})
    return column


def owners_of(node: exp.Expr) -> frozenset[int]:
    """Return the items whose columns a bound expression uses."""
    owners = (column.meta.get("owner") for column in node.find_all(exp.Column))
    return frozenset(owner for owner in owners if owner is not None)


def _parts(column: exp.Column) -> list[str]:
    return [part.name for part in column.parts]


# --- the update pattern of a stream, by its ``expires`` expression ---

_CONSTANT = re.compile(r"ts\s*\+\s*(interval\b.*)", re.IGNORECASE | re.DOTALL)


def stream_label(stream: Stream) -> Label:
    """Return a stream's label as a leaf; a constant that is not a day-time interval makes it WK, which is always safe."""
    kind = label_of(stream.expires)
    if kind != "WKS":
        return Label(kind)
    match = _CONSTANT.fullmatch((stream.expires or "").strip())
    constant = interval_of(match[1]) if match else None
    return WK if constant is None else Label("WKS", constant)
