"""Conditions on floating point columns: covers and differences presume the comparisons that Spark makes."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest

from warehouse.aggregates.conditions import atoms_of
from warehouse.aggregates.predicates import Predicate, cover, difference, disjoint, kinds_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONSTANTS = ("0", "-0.0", "0.1", "0.10000000000000000001", "0.100000001490116119", "16777216", "16777217", "16777216.5", "1e39")
VALUES = (
    "'NaN'", "'Infinity'", "'-Infinity'", "-0.0", "0.0", "0.1", "0.100000001490116119", "-0.1", "16777216", "16777217",
    "16777218", "1e-45", "3.4028235e38", "5", "NULL",
)  # fmt: skip
OPERATORS = ("=", "<>", "<", ">")
KINDS = kinds_of([("f", "float"), ("d", "double")])
CONDITIONS = [f"{column} {operator} {text}" for column, operator, text in product("fd", OPERATORS, CONSTANTS)]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[bool | None]]:
    """What Spark says of every condition for every pair of values: NaN, infinities, both zeros, values that are no floats."""
    rows = ", ".join(f"(CAST({f} AS FLOAT), CAST({d} AS DOUBLE))" for f, d in product(VALUES, VALUES[:6]))
    shown = [f"{condition} AS c{number}" for number, condition in enumerate(CONDITIONS)]
    columns = zip(*spark.sql(f"SELECT {', '.join(shown)} FROM VALUES {rows} AS v(f, d)").collect(), strict=True)
    return {condition: list(column) for condition, column in zip(CONDITIONS, columns, strict=True)}


def atom(condition: str) -> Predicate:
    """Return the predicate of a condition."""
    atoms = atoms_of(condition, KINDS)
    assert atoms is not None
    return atoms


SOUND = [condition for condition in CONDITIONS if "1e39" not in condition and len(condition.split()[2]) <= 20]


def test_a_constant_that_is_not_compared_exactly_is_no_atom() -> None:
    """A double, or more digits than a decimal takes."""
    assert [text for text in CONSTANTS if atoms_of(f"f = {text}", KINDS) is None] == ["0.10000000000000000001", "1e39"]


def test_one_atom_is_one_condition(found: dict[str, list[bool | None]]) -> None:
    """Constants that are written otherwise hold for the same rows: zero, with and without a sign and a point."""
    by_atom: dict[Predicate, set[tuple[bool | None, ...]]] = {}
    for condition in SOUND:
        by_atom.setdefault(atom(condition), set()).add(tuple(found[condition]))
    assert max(map(len, by_atom.values())) == 1
    assert len(by_atom) < len(SOUND)


def test_disjoint_atoms_share_no_row(found: dict[str, list[bool | None]]) -> None:
    """For NaN, which is greater than every number, and for constants that are one float or one double, too."""
    apart = 0
    for first, second in combinations(SOUND, 2):
        if disjoint(*atom(first), *atom(second)):
            apart += 1
            assert not any(left and right for left, right in zip(found[first], found[second], strict=True)), (first, second)
    assert apart > 100


def test_parts_give_the_rows_of_the_whole(found: dict[str, list[bool | None]]) -> None:
    """Every union of two conditions that can be answered from others has exactly their rows."""
    stored = {condition: atom(condition) for condition in SOUND}
    covered = subtracted = 0
    for first, second in combinations(SOUND[:: 2], 2):
        both = [left or right for left, right in zip(found[first], found[second], strict=True)]
        parts = cover(stored[first] | stored[second], {first: stored[first], second: stored[second]}, "additive")
        if parts is not None:
            covered += 1
            counts = [sum(value or 0 for value in values) for values in zip(*(found[name] for name in parts), strict=True)]
            assert counts == [int(value or 0) for value in both], (first, second)
        parts_of_difference = difference(stored[first], {"both": stored[first] | stored[second], second: stored[second]})
        if parts_of_difference is not None:
            subtracted += 1
            less = [int(left or 0) - int(right or 0) for left, right in zip(both, found[second], strict=True)]
            assert less == [int(value or 0) for value in found[first]], (first, second)
    assert min(covered, subtracted) > 50


def test_constants_of_one_float_are_compared_as_doubles(found: dict[str, list[bool | None]]) -> None:
    """A float never equals 0.1 or 16777217, which are no floats; so these conditions hold for no row."""
    assert not any([*found["f = 0.1"], *found["f = 16777217"]])
    assert all(any(found[condition]) for condition in ("f = 16777216", "f = 0", "d = 0.1"))
