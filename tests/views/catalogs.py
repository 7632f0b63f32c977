"""A catalog to declare views over, without files, and ways to compile one view."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.catalog.model import Catalog, Column, Relation, Stream, View
from warehouse.errors import ConfigurationError
from warehouse.time import DAY, HOUR, MINUTE
from warehouse.views.algebra import Named, Project, Scan
from warehouse.views.plans import ViewPlan, ViewPlans, compile_views

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warehouse.errors import Problem
    from warehouse.views.algebra import Operator

Columns = tuple[tuple[str, str], ...]

INTERVAL = 10 * MINUTE
TABLES: dict[str, Columns] = {
    "flights": (("tail", "string"), ("origin", "string"), ("dest", "string"), ("delay", "int"), ("gone", "timestamp")),
    "weather": (("airport", "string"), ("wind", "double"), ("seen", "timestamp")),
    "calls": (("k", "string"), ("v", "int")),
    "events": (("k", "string"), ("v", "int"), ("parts", "array<int>")),
    "planes": (("tail", "string"), ("model", "string"), ("seats", "int")),
    "cities": (("code", "string"), ("name", "string")),
    "mayors": (("name", "string"), ("mayor", "string")),
}


def stream(name: str, *, expires: str | None, lifetime: int | None, key: str) -> Stream:
    """Return a stream of the tables above."""
    return Stream(
        name=name,
        landing=Path("/landing") / name,
        files="*",
        format="json",
        options=(),
        timezone="UTC",
        columns=tuple(Column(*column) for column in TABLES[name]),
        search_key=(key,),
        arrival="at",
        expires=expires,
        max_lifetime=lifetime,
        over_lifetime="accept",
        max_ahead=None,
        null_expiry="reject",
        unknown_columns="reject",
        landing_settle=0,
    )


def relation(name: str, *, key: str, retroactive: bool) -> Relation:
    """Return a relation of the tables above."""
    return Relation(
        name=name,
        landing=Path("/landing") / name,
        files="*",
        format="json",
        options=(),
        timezone="UTC",
        columns=tuple(Column(*column) for column in TABLES[name]),
        search_key=(key,),
        changed_at="at",
        op="'upsert'",
        retroactive=retroactive,
        max_ahead=None,
        unknown_columns="reject",
        landing_settle=0,
    )


def catalog(*views: View) -> Catalog:
    """Return a catalog with these views over streams of every label and relations of both kinds."""
    return Catalog(
        file=Path("/project/warehouse.toml"),
        root=Path("/data"),
        anchor=0,
        update_interval=INTERVAL,
        retain=0,
        vacuum="auto",
        spark=(),
        streams=(
            stream("flights", expires="landed", lifetime=DAY, key="tail"),  # WK
            stream("weather", expires="landed", lifetime=3 * HOUR, key="airport"),  # WK
            stream("calls", expires="ts + INTERVAL 30 MINUTES", lifetime=HOUR, key="k"),  # WKS(30m)
            stream("events", expires=None, lifetime=None, key="k"),  # MON
        ),
        digest="",
        relations=(
            relation("planes", key="tail", retroactive=False),
            relation("cities", key="code", retroactive=True),
            relation("mayors", key="name", retroactive=True),
        ),
        views=views,
    )


def compiled(*views: View) -> ViewPlans:
    """Return these views, compiled."""
    return compile_views(catalog(*views))


def plan(sql: str, *key: str, **keys: object) -> ViewPlan:
    """Return one compiled view; its key is by default its first column."""
    if not key:
        view_plan = compiled(View("v", sql, (), **keys)).views[0]  # type: ignore[arg-type]
        key = (next(iter(view_plan.columns)),)
    return compiled(View("v", sql, key, **keys)).views[0]  # type: ignore[arg-type]


def tree(sql: str) -> Operator:
    """Return the plan of one view's SQL."""
    return plan(sql).tree


def problems(*views: View) -> list[Problem]:
    """Return the problems of these views, none if they compile."""
    try:
        compiled(*views)
    except ConfigurationError as error:
        return list(error.problems)
    return []


def project(below: Operator | str, *columns: str) -> Project:
    """Return a projection; a column is ``name``, or ``name = expression``."""
    named = []
    for column in columns:
        name, _, sql = column.partition(" = ")
        named.append(Named(name, sql or f"`{name}`"))
    return Project(Scan(below) if isinstance(below, str) else below, tuple(named))


def qualified(alias: str, below: Operator | str, columns: Iterable[str], *more: str) -> Project:
    """Return the projection of one input of a join to ``alias.column``."""
    return project(below, *(f"{alias}.{column} = `{column}`" for column in columns), *more)
