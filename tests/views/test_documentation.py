from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from warehouse.catalog.load import load_catalog
from warehouse.catalog.model import View
from warehouse.sample_data import __file__ as samples
from warehouse.views.plans import compile_views

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog

PAGE = (Path(__file__).parents[2] / "docs" / "views.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


DECLARED = [(view["sql"], (view["search_key"],)) for text in _blocks("toml") for view in tomllib.loads(text)["views"].values()]
QUERIES = [*DECLARED, *((sql, ()) for sql in _blocks("sql"))]


@pytest.fixture(scope="module")
def example() -> Catalog:
    """The example that the page is about."""
    return load_catalog(Path(samples).parent / "flights")


@pytest.mark.parametrize(("sql", "key"), QUERIES)
def test_queries_of_the_page_can_be_views(example: Catalog, sql: str, key: tuple[str, ...]) -> None:
    """Each query of the page on views can be declared over the example."""
    (plan,) = compile_views(replace(example, views=(View("shown", sql, key),)))
    assert plan.columns


def test_the_page_shows_the_language() -> None:
    """Each part of the language has its query."""
    assert len(QUERIES) >= 14
    together = " ".join(sql for sql, _ in QUERIES)
    for word in ("LEFT JOIN", "NOT EXISTS", "NOT IN", "UNION", "GROUP BY", "QUALIFY", "WITH", "row_window", "internal"):
        assert word in together
