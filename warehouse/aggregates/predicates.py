"""Finds synopses that together have the rows of a query with a predicate (shared-aggregates sheet, section 6).

A predicate is a set of atoms `attribute op constant`, combined by OR; the operator is =, <>, < or >. A query with a conjunction,
overlapping ranges or any other condition needs a separate synopsis.

The sheet also subtracts: the rows of one predicate are the rows of wider predicates minus the rows of others. That requires
synopses that know the same rows, so a subtraction takes only the slots that all of them know completely: in other slots a
difference could be too large or negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from decimal import Decimal

__all__ = ["SCALE", "Algebra", "Atom", "Kind", "Predicate", "cover", "difference", "disjoint", "kinds_of"]

Algebra = Literal["duplicate-insensitive", "additive"]
"""How states of bags merge (section 2).

MIN, MAX and sketches of distinct values are duplicate-insensitive; all other states are additive: they may only be merged if no
row is in two of them.
"""
Kind = Literal["text", "number"]
"""How the values of a column are compared."""
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
"""Types of numbers besides decimals. Floats are compared as doubles: NaN is greater than every number, zeros are equal."""
_WHOLE, SCALE = 20, 18
"""Digits before and after the point that Spark compares exactly; its widest decimal has as many together.

Spark rounds numbers with more digits, so that `d = 1.12` and `d = 1.123` hold for one row of `decimal(38,2)`.
"""

_TERMS = 6
"""The largest number of synopses of a cover: more of them cost more than a separate synopsis."""
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


def kinds_of(columns: Iterable[tuple[str, str]]) -> dict[str, Kind]:
    """Return how columns are compared, by their names in lower case. Columns of other types appear in no atom.

    >>> kinds_of([("Port", "int"), ("host", "string"), ("day", "date"), ("share", "float")])
    {'port': 'number', 'host': 'text', 'share': 'number'}
    """
    kinds: dict[str, Kind] = {}
    for name, kind in columns:
        if kind == "string":
            kinds[name.lower()] = "text"
        elif kind in _NUMBERS or _is_exact(kind):
            kinds[name.lower()] = "number"
    return kinds


def _is_exact(kind: str) -> bool:
    """Whether values of a type are decimals that Spark compares exactly with the constants of atoms."""
    if not kind.startswith("decimal("):
        return False
    precision, scale = map(int, kind.removeprefix("decimal(").removesuffix(")").split(","))
    return precision - scale <= _WHOLE and scale <= SCALE


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
    """Whether a number is less than another, or a string by its UTF-8 bytes, as Spark compares them."""
    return left.encode() < right.encode() if isinstance(left, str) and isinstance(right, str) else left < right  # type: ignore[operator]


_HOLDS: Mapping[str, Callable[[str | Decimal, str | Decimal], bool]] = {
    "<>": lambda left, right: left != right,
    "<": _less,
    ">": lambda left, right: _less(right, left),
}


def cover(wanted: Predicate, stored: Mapping[str, Predicate], algebra: Algebra) -> tuple[str, ...] | None:
    """Return the fewest synopses that together give the answer for a predicate, or None if there are none.

    Duplicate-insensitive states need a cover: predicates that together have exactly the wanted atoms. Additive states need a
    disjoint cover: no two of its atoms hold for one row, so no row is counted twice.

    Parameters
    ----------
    wanted
        The atoms of the query.
    stored
        The atoms of each synopsis with the same states over the same input, by name.
    algebra
        The algebra of the states.

    Examples
    --------
    >>> tcp, udp = frozenset({Atom("p", "=", "TCP")}), frozenset({Atom("p", "=", "UDP")})
    >>> cover(tcp | udp, {"q1": tcp, "q2": udp}, "additive")
    ('q1', 'q2')
    """
    search = _Search(dict(sorted(stored.items())), algebra)
    covers = (merged for terms in range(1, _TERMS + 1) for merged in search.covers(wanted, terms))
    return next(covers, None)


def difference(wanted: Predicate, stored: Mapping[str, Predicate]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return synopses to add and synopses to subtract for the rows of a predicate; None without such synopses, or with a cover.

    The added synopses are a disjoint supercover: no two of their atoms hold for one row, and they have all atoms of the
    predicate. The subtracted synopses are a disjoint cover of the superfluous atoms. As few synopses as possible are used.

    Examples
    --------
    >>> tcp, udp = frozenset({Atom("p", "=", "TCP")}), frozenset({Atom("p", "=", "UDP")})
    >>> difference(tcp, {"q2": udp, "q3": tcp | udp})
    (('q3',), ('q2',))
    """
    sound = {name: atoms for name, atoms in sorted(stored.items()) if _all_disjoint(atoms)}
    search = _Search(sound, "additive", wider=True)
    best: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    for terms in range(1, _TERMS):
        if best is not None and terms + 1 >= len(best[0]) + len(best[1]):
            break
        for wider in search.covers(wanted, terms):
            superfluous = frozenset[Atom]().union(*(sound[name] for name in wider)) - wanted
            remaining = {name: atoms for name, atoms in sound.items() if name not in wider}
            subtracted = cover(superfluous, remaining, "additive") if superfluous else None
            if subtracted is None or terms + len(subtracted) > _TERMS:
                continue
            if best is None or terms + len(subtracted) < len(best[0]) + len(best[1]):
                best = wider, subtracted
    return best


@dataclass
class _Search:
    stored: Mapping[str, Predicate]
    algebra: Algebra
    wider: bool = False
    tried: int = 0

    def covers(self, wanted: Predicate, terms: int) -> Iterator[tuple[str, ...]]:
        """Yield the covers of exactly this number of synopses."""
        yield from self._further(wanted, frozenset(), (), terms)

    def _further(
        self, wanted: Predicate, covered: Predicate, names: tuple[str, ...], terms: int
    ) -> Iterator[tuple[str, ...]]:
        self.tried += 1
        missing = wanted - covered
        if not missing:
            if names and not terms:
                yield tuple(sorted(names))
            return
        if not terms or self.tried > _TRIED:
            return
        atom = min(missing, key=lambda candidate: (candidate.attribute, candidate.operator, str(candidate.constant)))
        for name, atoms in self.stored.items():
            if atom in atoms and (self.wider or atoms <= wanted) and self._joins(atoms, covered):
                yield from self._further(wanted, covered | atoms, (*names, name), terms - 1)

    def _joins(self, atoms: Predicate, covered: Predicate) -> bool:
        if self.algebra == "duplicate-insensitive":
            return True
        return not atoms & covered and _all_disjoint(atoms | covered)


def _all_disjoint(atoms: Predicate) -> bool:
    return all(disjoint(first, second) for first in atoms for second in atoms if first != second)
