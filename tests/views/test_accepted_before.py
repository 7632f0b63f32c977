"""What an earlier build accepted is accepted, with the same label and columns: eight hundred queries, and what is excepted.

``accepted_61b4f80.jsonl`` has a query per line with its search key, its label and its columns, as build 61b4f80 compiled them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.catalog.model import Catalog, Column, View
from warehouse.time import DAY, HOUR
from warehouse.views import plans
from warehouse.views.plans import judged_views

from .catalogs import catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from warehouse.views.language.types import Types
    from warehouse.views.plans import ViewPlan

_KINDS = {"k": "string", "n": "bigint", "i": "int", "f": "double", "d": "decimal(10,2)", "p": "boolean", "b": "timestamp"}
_ST = "struct<x:int,y:string>"
_WORDS = "date timestamp value first last left right position year month hour interval user case end type id name index key time"
_NAMES = ["order", "group", "my col", "日本", "select", "last", "nulls", "day", "days", "window"]
STREAMS: dict[str, tuple[dict[str, str], str | None, int | None]] = {
    "a": ({**_KINDS, "dt": "date", "st": _ST, "ar": "array<int>", "sa": f"array<{_ST}>", "bn": "binary"}, "e", DAY),
    "w": ({"k": "string", "n": "int", "q": "int", "st": _ST}, "ts + INTERVAL 2 HOURS", 2 * HOUR),
    "m": ({"k": "string", "q": "bigint", "x": "int", "y": "string"}, None, None),
    "odd": ({"k": "string", **dict.fromkeys(_NAMES, "int")}, "e", DAY),
    "odd2": ({"k": "string", **dict.fromkeys(_WORDS.split(), "int"), "list": "array<int>", "array": "array<int>"}, "e", DAY),
}
STREAMS["odd2"][0].update({"map": "int", "struct": "int"})
BELOW = (View("v1", "SELECT * FROM a WHERE n > 0", ("k",)), View("v2", "SELECT k, sum(n) AS s FROM a GROUP BY k", ("k",)))

_SPARK = "Spark refuses it: the name inside the aggregate is the output column, which is an aggregate itself"
EXCEPTIONS = {
    "SELECT k, sum(n) AS n FROM a GROUP BY k ORDER BY sum(n) LIMIT 3": _SPARK,
    "SELECT k, count(DISTINCT n) AS n FROM a GROUP BY k ORDER BY count(DISTINCT n) DESC LIMIT 2": _SPARK,
    "SELECT k, lower(k COLLATE UTF8_LCASE) AS v FROM a": "the result has a collation, and its table could never be made",
    "SELECT k, dt - DATE '2020-01-01' AS v FROM a": "the result is an interval, and its table could never be made",
    "SELECT k, INTERVAL 1 DAY AS v FROM a": "the result is an interval, and its table could never be made",
    "SELECT k, b AT TIME ZONE 'UTC' AS v FROM a": "Spark has no AT TIME ZONE; the earlier build left the time zone out",
}
"""Refused on purpose."""


def catalog_with(*views: View) -> Catalog:
    """Return the catalog of the recorded queries, with further views."""
    base = catalog()
    model, reference = base.streams[0], base.relations[0]
    columns = (("k", "string"), ("model", "string"), ("q", "int"))
    return replace(
        base,
        streams=tuple(
            replace(
                model, name=name, search_key=("k",), expires=expires, max_lifetime=lifetime,
                columns=tuple(Column(*name_and_type) for name_and_type in kinds.items()),
            )
            for name, (kinds, expires, lifetime) in STREAMS.items()
        ),
        relations=tuple(
            replace(
                reference, name=name, search_key=("k",), retroactive=retroactive,
                columns=tuple(Column(*name_and_type) for name_and_type in columns),
            )
            for name, retroactive in (("r", True), ("rn", False))
        ),
        views=(*BELOW, *views),
    )  # fmt: skip


def accepted() -> list[list[str]]:
    """Return SQL, search key, label and columns of each query."""
    lines = Path(__file__).with_name("accepted_61b4f80.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@cache
def judged_alone(sql: str, key: str) -> tuple[ViewPlan | None, str]:
    """Return the plan of a query as the only view of its own, or what is wrong with it."""
    compiled, problems = judged_views(catalog_with(View("v", sql, (key,))))
    return compiled.view("v"), problems[0].found if problems else ""


def test_what_was_accepted_is_accepted() -> None:
    """Each query by itself, so that none stands in the way of another."""
    different = []
    for sql, key, label, columns in accepted():
        plan, problem = judged_alone(sql, key)
        if plan is None:
            if sql not in EXCEPTIONS:
                different.append(f"{sql}: {problem}")
            continue
        same = str(plan.label) == label and _as_certain(plan.columns, columns)
        if not same or sql in EXCEPTIONS:
            different.append(f"{sql}: {plan.label} {plan.columns} where it was {label} {columns}")
    assert different == []


def _as_certain(columns: Types, before: str) -> bool:
    """Whether an earlier build had the same columns and known types; types unknown then may be known now."""
    own = {name: kind for name, _, kind in (part.partition(" ") for part in _split(before))}
    return list(own) == list(columns) and all(columns[name] == kind for name, kind in own.items() if kind)


def _split(written: str) -> list[str]:
    """Columns of a text, in which a comma inside a type has no space after it."""
    return written.split(", ")


def test_a_view_that_cannot_be_judged_takes_no_other_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that makes any part of the check fail is refused with a message, as are its readers; other views are compiled."""
    texts = {"bad": "SELECT k, n FROM a", "above": "SELECT k FROM bad", "good": "SELECT k FROM w"}
    views = [View(name, sql, ("k",)) for name, sql in texts.items()]

    def of_bad(argument: object) -> bool:
        return any(getattr(argument, "name", argument) == value for value in ("bad", texts["bad"]))

    for part in ("parse_query", "_planned", "_option_problems", "_table"):
        with monkeypatch.context() as patch:
            own = getattr(plans, part)

            def wrong(*arguments: object, own: Callable[..., object] = own) -> object:
                if any(map(of_bad, arguments)):
                    raise IndexError("out of reach")
                return own(*arguments)

            patch.setattr(plans, part, wrong)
            compiled, problems = judged_views(catalog_with(*views))
        assert {view_plan.name for view_plan in compiled} == {"v1", "v2", "good"}, part
        assert compiled.refused.keys() == {"bad", "above"}, part
        assert [problem.key for problem in problems] == ["views.bad.sql"], part
        assert "fails to read: IndexError: out of reach" in problems[0].found, part
