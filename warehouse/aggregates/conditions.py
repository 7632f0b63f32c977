"""The atoms of a condition in Spark's SQL, for :mod:`warehouse.aggregates.predicates`."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from warehouse.aggregates.predicates import SCALE, Atom

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warehouse.aggregates.predicates import Kind, Predicate

__all__ = ["atoms_of"]

_OPERATORS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.GT: ">"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<"}


def atoms_of(condition: str, kinds: Mapping[str, Kind]) -> Predicate | None:
    """Return the atoms of a condition in Spark's SQL, or None if it is no disjunction of atoms.

    A list `x IN (1, 2)` is a disjunction of equalities. A comparison that converts a column or a string is not an atom: `n = '1'`
    and `n = '01'` hold for the same rows.

    Parameters
    ----------
    condition
        An expression.
    kinds
        How columns are compared.

    Examples
    --------
    >>> kinds = {"protocol": "text", "port": "number"}
    >>> sorted(atom.constant for atom in atoms_of("protocol = 'TCP' OR 'UDP' = protocol", kinds))
    ['TCP', 'UDP']
    >>> atoms_of("protocol = 'TCP' AND port = 80", kinds) is None
    True
    """
    try:
        candidates = list(_atoms(parse_one(condition, dialect="spark")))
    except SqlglotError:
        return None
    if any(atom is None for atom in candidates):
        return None
    atoms = frozenset(atom for atom in candidates if atom is not None)
    sound = (kinds.get(atom.attribute) == ("text" if isinstance(atom.constant, str) else "number") for atom in atoms)
    return atoms if all(sound) else None


def _atoms(tree: exp.Expr) -> Iterator[Atom | None]:
    match tree:
        case exp.Paren():
            yield from _atoms(tree.this)
        case exp.Or():
            yield from _atoms(tree.left)
            yield from _atoms(tree.right)
        case exp.In() if tree.expressions and not tree.args.get("query"):
            for constant in tree.expressions:
                yield _atom(tree.this, "=", constant)
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
    integer, _, fraction = str(tree.this).partition(".")
    if not f"{integer}{fraction}".isdecimal() or max(len(integer), len(fraction)) > SCALE:
        return None  # with an exponent it is a double, and whole numbers are compared with it as doubles
    return Decimal(tree.this)
