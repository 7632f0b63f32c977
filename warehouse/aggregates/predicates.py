"""Which synopses together have the rows of a query with a predicate: shared-aggregates sheet, section 6.

A predicate here is a disjunction of atoms `attribute op constant` with one of the operators =, <>, < and >, as a set of atoms.
Conjunctions, ranges that overlap and everything else need a synopsis of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

__all__ = ["Algebra", "Atom", "Cover", "Predicate", "atoms_of", "cover", "disjoint"]

Algebra = Literal["duplicate-insensitive", "additive", "subtractable"]
"""What merging states of overlapping, disjoint, or containing bags gives (section 2): MIN, MAX and sketches of distinct values
are duplicate-insensitive; sums, counts and counters are subtractable; other states that add up are additive."""

_OPERATORS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.GT: ">"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<"}
_TERMS = 6
"""Synopses that a cover has at most: more of them cost more than one of its own."""
_TRIED = 20_000
"""Partial covers that a search looks at before it gives up."""


@dataclass(frozen=True)
class Atom:
    """A comparison of a column with a constant; rows with NULL in the column do not satisfy it."""

    attribute: str
    operator: Literal["=", "<>", "<", ">"]
    constant: str | Decimal


Predicate = frozenset[Atom]
"""A disjunction."""


@dataclass(frozen=True)
class Cover:
    """Names of synopses whose states are merged, and of those whose states are subtracted from that."""

    merged: tuple[str, ...]
    subtracted: tuple[str, ...] = ()


def atoms_of(condition: str, texts: Collection[str]) -> Predicate | None:
    """Return the atoms of a condition in Spark's SQL, or None if it is no disjunction of atoms.

    A list `x IN (1, 2)` is a disjunction of equalities. A comparison that would convert a column or a string is no atom:
    `n = '1'` and `n = '01'` hold for the same rows.

    Parameters
    ----------
    condition
        An expression.
    texts
        Columns of type string, in lower case; all others that are compared have numbers.

    Examples
    --------
    >>> sorted(atom.constant for atom in atoms_of("protocol = 'TCP' OR 'UDP' = protocol", ["protocol"]))
    ['TCP', 'UDP']
    >>> atoms_of("protocol = 'TCP' AND port = 80", ["protocol"]) is None
    True
    """
    try:
        found = list(_atoms(parse_one(condition, dialect="spark")))
    except SqlglotError:
        return None
    if any(each is None for each in found):
        return None
    atoms = frozenset(each for each in found if each is not None)
    return atoms if all(isinstance(each.constant, str) == (each.attribute in texts) for each in atoms) else None


def _atoms(tree: exp.Expr) -> Iterator[Atom | None]:
    match tree:
        case exp.Paren():
            yield from _atoms(tree.this)
        case exp.Or():
            yield from _atoms(tree.left)
            yield from _atoms(tree.right)
        case exp.In() if tree.expressions and not tree.args.get("query"):
            for each in tree.expressions:
                yield _atom(tree.this, "=", each)
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.GT():
            operator = _OPERATORS[type(tree)]
            yield _atom(tree.left, operator, tree.right) or _atom(tree.right, _MIRRORED[operator], tree.left)
        case _:
            yield None


def _atom(column: exp.Expr, operator: str, constant: exp.Expr) -> Atom | None:
    if not isinstance(column, exp.Column) or column.table:
        return None
    value = _constant(constant)
    return None if value is None else Atom(column.name.lower(), operator, value)  # type: ignore[arg-type]


def _constant(tree: exp.Expr) -> str | Decimal | None:
    if isinstance(tree, exp.Neg):
        inner = _constant(tree.this)
        return -inner if isinstance(inner, Decimal) else None
    if not isinstance(tree, exp.Literal):
        return None
    if tree.is_string:
        return str(tree.this)
    number = Decimal(tree.this)
    return number if number.is_finite() else None


def disjoint(first: Atom, second: Atom) -> bool:
    """Whether no row satisfies both atoms."""
    if first.attribute != second.attribute or type(first.constant) is not type(second.constant):
        return False
    if second.operator == "=":
        first, second = second, first
    if first.operator == second.operator == "=":
        return _differ(first.constant, second.constant)
    if first.operator == "=":
        return not _HOLDS[second.operator](first.constant, second.constant)
    if {first.operator, second.operator} == {"<", ">"}:
        below, above = (first, second) if first.operator == "<" else (second, first)
        return not _HOLDS["<"](above.constant, below.constant)
    return False


def _differ(left: str | Decimal, right: str | Decimal) -> bool:
    """Whether no value equals both, of whatever numeric type: a column of doubles is compared with rounded constants."""
    return left != right if isinstance(left, str) else float(left) != float(right)


def _less(left: str | Decimal, right: str | Decimal) -> bool:
    """Order of numbers, and of strings by their UTF-8 bytes as Spark compares them."""
    return left.encode() < right.encode() if isinstance(left, str) and isinstance(right, str) else left < right  # type: ignore[operator]


_HOLDS: Mapping[str, Callable[[str | Decimal, str | Decimal], bool]] = {
    "<>": lambda left, right: left != right,
    "<": _less,
    ">": lambda left, right: _less(right, left),
}


def cover(wanted: Predicate, stored: Mapping[str, Predicate], algebra: Algebra) -> Cover | None:
    """Return the fewest synopses that together give the answer for a predicate, or None if they do not.

    Duplicate-insensitive states need a cover: predicates whose atoms together are those wanted. Additive ones need a disjoint
    cover: no two of its atoms hold for one row, so none is counted twice. Subtractable ones may also come from a disjoint
    cover of more atoms, less a disjoint cover of the atoms that are too many.

    Parameters
    ----------
    wanted
        The atoms of the query.
    stored
        The atoms of each synopsis with the same states over the same input, by name.
    algebra
        Of the states.

    Examples
    --------
    >>> tcp, udp = atoms_of("p = 'TCP'", ["p"]), atoms_of("p = 'UDP'", ["p"])
    >>> cover(tcp | udp, {"q1": tcp, "q2": udp}, "subtractable")
    Cover(merged=('q1', 'q2'), subtracted=())
    >>> cover(tcp, {"q2": udp, "q3": tcp | udp}, "subtractable")
    Cover(merged=('q3',), subtracted=('q2',))
    """
    search = _Search(dict(sorted(stored.items())), algebra)
    for terms in range(1, _TERMS + 1):
        for merged in search.covers(wanted, terms, wider=False):
            return Cover(merged)
        if algebra == "subtractable":
            for merged in (found for size in range(1, terms) for found in search.covers(wanted, size, wider=True)):
                extra = frozenset[Atom]().union(*(stored[name] for name in merged)) - wanted
                for subtracted in search.covers(extra, terms - len(merged), wider=False):
                    return Cover(merged, subtracted)
    return None


@dataclass
class _Search:
    stored: Mapping[str, Predicate]
    algebra: Algebra
    tried: int = 0

    def covers(self, wanted: Predicate, terms: int, *, wider: bool) -> Iterator[tuple[str, ...]]:
        """Covers of exactly so many synopses; wider ones may have more atoms than are wanted."""
        yield from self._further(wanted, frozenset(), (), terms, wider=wider)

    def _further(
        self, wanted: Predicate, covered: Predicate, names: tuple[str, ...], terms: int, *, wider: bool
    ) -> Iterator[tuple[str, ...]]:
        self.tried += 1
        missing = wanted - covered
        if not missing:
            if names and not terms:
                yield tuple(sorted(names))
            return
        if not terms or self.tried > _TRIED:
            return
        atom = min(missing, key=lambda each: (each.attribute, each.operator, str(each.constant)))
        for name, atoms in self.stored.items():
            if atom in atoms and (wider or atoms <= wanted) and self._joins(atoms, covered):
                yield from self._further(wanted, covered | atoms, (*names, name), terms - 1, wider=wider)

    def _joins(self, atoms: Predicate, covered: Predicate) -> bool:
        if self.algebra == "duplicate-insensitive":
            return True
        return not atoms & covered and _all_disjoint(atoms | covered)


def _all_disjoint(atoms: Predicate) -> bool:
    return all(disjoint(first, second) for first in atoms for second in atoms if first != second)
