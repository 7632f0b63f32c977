"""A query is what was written: what sqlglot would leave out is refused, and an index after ``array(...)`` is an index."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.fuzz.grammar import random_query
from warehouse.views.language import dialect
from warehouse.views.language.dialect import parse_query, text
from warehouse.views.language.faults import RefusedError


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT array(n, 2)[0] AS c FROM a",
        "SELECT list[0] AS c, t.array[1] AS d FROM a AS t",
        "SELECT array(array(n, 2)[1], k)[0] AS c FROM a",
    ],
)
def test_an_index_stays_an_index(sql: str) -> None:
    """Also after a call of ``array`` and after columns called as it."""
    assert text(parse_query(sql)) == sql


def test_a_reader_that_leaves_words_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever part of a query it is."""
    monkeypatch.setattr(dialect, "text", lambda tree: tree.sql(dialect="spark").replace("7", ""))
    with pytest.raises(RefusedError) as refused:
        parse_query("SELECT n + 7 AS c FROM a")
    assert refused.value.found == "7, which this reader of SQL would leave out"


def test_random_queries_keep_their_words() -> None:
    """None of the fuzzer's queries is refused for it, nor says less than was written."""
    for seed in range(150):
        sql = random_query(random.Random(seed)).sql  # noqa: S311 - test data
        assert not Counter(name for name in ("[0]", "map(", "struct(") if name in sql) - Counter(
            name for name in ("[0]", "map(", "struct(") if name in text(parse_query(sql))
        )


@pytest.mark.parametrize(
    "expression",
    ["interval '90' minutes", "INTERVAL -1 HOUR", "INTERVAL 1 day 2 hours", ".5", "0.5", "1e3", "10L", "X'1F'", "a::int"],
)
def test_other_spellings_of_one_word_are_no_loss(expression: str) -> None:
    """What the reader writes in another way with the same meaning is not refused."""
    assert parse_query(f"SELECT {expression} FROM t").expressions
