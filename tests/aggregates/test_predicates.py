"""Covers of predicates: the table and the vector of the shared-aggregates sheet, section 6, and random rows."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from warehouse.aggregates.conditions import atoms_of
from warehouse.aggregates.predicates import Algebra, Atom, Kind, Predicate, cover, difference, disjoint, kinds_of

KINDS: dict[str, Kind] = {"protocol": "text", "user": "text", "b": "text", "a": "number"}
ROWS = (("TCP", "U", 10), ("TCP", "V", 40), ("UDP", "U", 25), ("UDP", "V", 7), ("ICMP", "U", 90), ("ICMP", "V", 3))


def parsed(condition: str) -> Predicate:
    """Return the atoms of a condition that has them."""
    atoms = atoms_of(condition, KINDS)
    assert atoms is not None
    return atoms


TCP, UDP, USER = parsed("protocol = 'TCP'"), parsed("protocol = 'UDP'"), parsed("user = 'U'")


def holds(predicate: Predicate, row: dict[str, str | Decimal | None]) -> bool:
    """Whether a row satisfies an atom."""
    compared = {"=": "__eq__", "<>": "__ne__", "<": "__lt__", ">": "__gt__"}
    values = [(row[atom.attribute], atom) for atom in predicate]
    return any(value is not None and getattr(value, compared[atom.operator])(atom.constant) is True for value, atom in values)


@pytest.mark.parametrize(
    ("wanted", "stored", "algebra", "found"),
    [
        (TCP | UDP, {"Q1": TCP, "Q2": UDP}, "additive", ("Q1", "Q2")),
        (TCP, {"Q2": UDP, "Q3": TCP | UDP}, "additive", None),
        (TCP | USER, {"Q4": TCP, "Q5": USER}, "duplicate-insensitive", ("Q4", "Q5")),
        (TCP | USER, {"Q4": TCP, "Q5": USER}, "additive", None),
        (TCP, {"Q1": TCP, "Q3": TCP | UDP}, "additive", ("Q1",)),
        (TCP, {}, "additive", None),
        (TCP, {"Q3": TCP | UDP}, "duplicate-insensitive", None),
    ],
)
def test_sheet(wanted: Predicate, stored: dict[str, Predicate], algebra: Algebra, found: tuple[str, ...] | None) -> None:
    """Section 6: Q1 to Q6."""
    assert cover(wanted, stored, algebra) == found


ICMP = parsed("protocol = 'ICMP'")


@pytest.mark.parametrize(
    ("wanted", "stored", "found"),
    [
        (TCP, {"Q2": UDP, "Q3": TCP | UDP}, (("Q3",), ("Q2",))),
        (UDP, {"Q1": TCP, "Q3": TCP | UDP}, (("Q3",), ("Q1",))),
        (TCP, {"Q3": TCP | UDP}, None),
        (TCP, {"Q1": TCP}, None),
        (TCP, {"Q2": USER, "Q3": TCP | USER}, None),
        (TCP, {"all": TCP | UDP | ICMP, "rest": UDP | ICMP, "u": UDP, "i": ICMP}, (("all",), ("rest",))),
        (TCP, {"all": TCP | UDP | ICMP, "u": UDP, "i": ICMP}, (("all",), ("i", "u"))),
        (TCP | UDP, {"a": TCP | ICMP, "b": UDP, "c": ICMP}, (("a", "b"), ("c",))),
    ],
)
def test_sheet_subtraction(
    wanted: Predicate, stored: dict[str, Predicate], found: tuple[tuple[str, ...], tuple[str, ...]] | None
) -> None:
    """Section 6: Q1 = Q3 - Q2; atoms that can hold for one row are not taken away."""
    assert difference(wanted, stored) == found


@pytest.mark.parametrize("condition", ["a = 9007199254740993e0", "a < 1e3", f"a = 1.{'1' * 19}", f"a < {'1' * 19}"])
def test_constants_that_are_not_compared_exactly(condition: str) -> None:
    """Spark compares whole numbers with 9007199254740993e0 as doubles, so 9007199254740992 equals it, and is below it too."""
    assert atoms_of(condition, KINDS) is None


def test_decimals_that_are_not_compared_exactly() -> None:
    """In `decimal(38,2)` Spark holds 1.12 and 1.123 equal."""
    types = ("decimal(38,2)", "decimal(20,19)", "decimal(38,18)", "decimal(20,0)")
    assert [*kinds_of((kind, kind) for kind in types)] == ["decimal(38,18)", "decimal(20,0)"]


def test_vector() -> None:
    """Section 6: sums and maxima over the six rows, and why sums over overlapping atoms do not add up."""

    def lengths(predicate: Predicate) -> list[int]:
        return [length for protocol, user, length in ROWS if holds(predicate, {"protocol": protocol, "user": user})]

    assert (sum(lengths(TCP)), sum(lengths(UDP)), sum(lengths(TCP | UDP))) == (50, 32, 82)
    assert (max(lengths(TCP)), max(lengths(USER)), max(lengths(TCP | USER))) == (40, 90, 90)
    assert sum(lengths(TCP | UDP)) - sum(lengths(UDP)) == 50
    assert (sum(lengths(TCP | USER)), sum(lengths(TCP)) + sum(lengths(USER))) == (165, 175)


@pytest.mark.parametrize(
    ("condition", "atoms"),
    [
        ("a = 1 OR (b <> 'x' OR 2 < a)", {("a", "=", Decimal(1)), ("b", "<>", "x"), ("a", ">", Decimal(2))}),
        ("a IN (1, -2.50)", {("a", "=", Decimal(1)), ("a", "=", Decimal("-2.5"))}),
        ("a = 1 OR a = 1", {("a", "=", Decimal(1))}),
        ("a = 1 AND b = 2", None),
        ("a = 1 OR a = '1'", None),
        ("B = 'x'", {("b", "=", "x")}),
        ("day = '2024-01-01'", None),
        ("share = 0.5", None),
        ("a = '1'", None),
        ("b = 1", None),
        ("a = b", None),
        ("a >= 1", None),
        ("NOT a = 1", None),
        ("a IS NULL", None),
        ("s.f = 1", None),
        ("a = NULL", None),
        ("a IN (SELECT 1)", None),
        ("a = (", None),
    ],
)
def test_atoms(condition: str, atoms: set[tuple[str, str, str | Decimal]] | None) -> None:
    """Only disjunctions of comparisons with constants have atoms."""
    found_atoms = atoms_of(condition, KINDS)
    assert (None if found_atoms is None else {(atom.attribute, atom.operator, atom.constant) for atom in found_atoms}) == atoms


ATOMS = st.builds(
    Atom,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["=", "<>", "<", ">"]),
    st.integers(0, 3).map(Decimal),
)
VALUES = (None, *(Decimal(number) / 2 for number in range(-1, 8)))
BAG = [{"a": first, "b": second} for first in VALUES for second in VALUES]
PREDICATES = st.frozensets(ATOMS, min_size=1, max_size=3)


@given(ATOMS, ATOMS)
def test_disjoint_atoms(first: Atom, second: Atom) -> None:
    """Disjoint atoms share no row; for one attribute they are found whenever no value satisfies both."""
    shared = any(holds(frozenset([first]), row) and holds(frozenset([second]), row) for row in BAG)
    assert disjoint(first, second) == disjoint(second, first) == (not shared)


def test_constants_that_are_one_double_are_not_disjoint() -> None:
    """A column of doubles can equal both."""
    near = Atom("a", "=", Decimal("0.1")), Atom("a", "=", Decimal("0.10000000000000000001"))
    assert not disjoint(*near)


@given(PREDICATES, st.lists(PREDICATES, max_size=6), st.sampled_from(["duplicate-insensitive", "additive"]))
def test_covers_give_the_query_s_rows(wanted: Predicate, others: list[Predicate], algebra: Algebra) -> None:
    """Sums by the cover equal the query's sums; where rows may repeat, the sets of rows are equal."""
    stored = {
        str(number): predicate
        for number, predicate in enumerate([*others, *(frozenset([atom]) for atom in sorted(wanted, key=str)[:2])])
    }
    names = cover(wanted, stored, algebra)
    assume(names is not None)
    assert names is not None
    if algebra == "duplicate-insensitive":
        assert [row for row in BAG if any(holds(stored[name], row) for name in names)] == [
            row for row in BAG if holds(wanted, row)
        ]
    else:
        counted = sum(holds(stored[name], row) for row in BAG for name in names)
        assert counted == sum(holds(wanted, row) for row in BAG)


APART = st.sampled_from([parsed(text) for text in ("a = 0", "a = 1", "a = 2", "a > 2", "a < 0", "a <> 1", "a < 2", "b = 'x'")])
UNIONS = st.lists(APART, min_size=1, max_size=3).map(lambda atoms: frozenset[Atom]().union(*atoms))


@settings(suppress_health_check=[HealthCheck.filter_too_much])  # some of the drawn synopses have no difference
@given(UNIONS, st.lists(UNIONS, max_size=6), st.lists(APART, min_size=1, max_size=2))
def test_differences_give_the_query_s_rows(wanted: Predicate, others: list[Predicate], extra: list[Predicate]) -> None:
    """Each row is in as many added as subtracted synopses, and in one more added synopsis if the query has it."""
    synopses = [*others, wanted.union(*extra), *extra]
    difference_found = difference(wanted, {str(number): atoms for number, atoms in enumerate(synopses) if atoms != wanted})
    assume(difference_found is not None)
    assert difference_found is not None
    stored = dict(enumerate(synopses))
    for row in ({**row, "b": text} for row in BAG for text in ("x", None)):
        plus, less = (sum(holds(stored[int(name)], row) for name in names) for names in difference_found)
        assert plus - less == holds(wanted, row)
