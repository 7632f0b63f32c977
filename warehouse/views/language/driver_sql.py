"""Translates Spark SQL to DuckDB's SQL, for expressions that both engines evaluate alike, so that the driver computes few rows.

Every expression has the type that Spark gives it, and is cast to this type if DuckDB would give it another. So a value that
overflows in Spark is an error in DuckDB, too. If the engines agree only on some values (not on letters beyond ASCII, or a divisor
of zero), the SQL raises an error for the others. An expression is refused if the engines are not known to agree; then Spark
computes it.
``tests/views/test_driver_sql.py`` compares both engines over values at the edges of each type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.duck_sql import literal, quoted
from warehouse.views.language.dialect import expression_of, text
from warehouse.views.language.driver_functions import AGGREGATES, FUNCTIONS
from warehouse.views.language.driver_types import (
    DIGITS_OF,
    EXACT,
    WHOLE,
    LeftToSparkError,
    Translated,
    compared_as_they_are,
    decimal_digits,
    duck_type,
    holds_whole_numbers,
    plain_type,
)
from warehouse.views.language.faults import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["translated"]

_INT, _LONG = 2**31, 2**63
_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}  # fmt: skip
_ADDED: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_INTEGER = re.compile(r"\d+")
_FRACTION = re.compile(r"\d*\.\d+|\d+\.\d*")
_DIGITS = 18
"""Both engines represent a decimal constant of up to this many digits exactly, in the same type."""
_WILD = re.compile(r"(%?)([^%_\\]*)(%?)")


def translated(sql: str | exp.Expr, columns: Mapping[str, str | None], *, aggregates: bool = False) -> Translated:
    """Return a Spark SQL expression as DuckDB's.

    Parameters
    ----------
    sql
        The expression, without an alias.
    columns
        The types of the columns that it may name, by their names in lower case; None: the column is only passed on.
    aggregates
        Whether it may have aggregates.

    Raises
    ------
    LeftToSparkError
        When the engines are not known to agree.

    Examples
    --------
    >>> translated("`v` + 1L", {"v": "int"})
    Translated(sql='(CAST("v" AS BIGINT) + CAST(CAST(CAST(1 AS INTEGER) AS BIGINT) AS BIGINT))', kind='bigint')

    """
    try:
        return _Translator(columns, aggregates).of(expression_of(sql) if isinstance(sql, str) else sql)
    except RefusedError as error:
        raise LeftToSparkError(str(error)) from None


@dataclass(frozen=True)
class _Translator:
    columns: Mapping[str, str | None]
    aggregates: bool

    def of(self, node: exp.Expr) -> Translated:
        """Return an expression as DuckDB's."""
        match node:
            case exp.Column() if not node.table and node.name.lower() in self.columns:
                return Translated(quoted(node.name), self.columns[node.name.lower()])
            case exp.Paren():
                inner = self.of(node.this)
                return Translated(f"({inner.sql})", inner.kind)
            case exp.Literal():
                return _constant(node)
            case exp.Neg():
                return self._negative(node)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._computed(node)
            case exp.Case():
                return self._cased(node)
            case exp.Cast():
                return self._cast(node)
            case exp.DPipe():
                return Translated(f"({self.string(node.this)} || {self.string(node.expression)})", "string")
            case exp.Anonymous() if str(node.this).lower() in FUNCTIONS:
                return FUNCTIONS[str(node.this).lower()](self, list(node.expressions))
            case exp.Anonymous() if self.aggregates and str(node.this).lower() in AGGREGATES:
                return AGGREGATES[str(node.this).lower()](self, list(node.expressions))
            case _:
                return Translated(self._condition(node), "boolean")

    def _condition(self, node: exp.Expr) -> str:
        match node:
            case exp.Boolean():
                return "true" if node.this else "false"
            case exp.And() | exp.Or():
                word = "AND" if isinstance(node, exp.And) else "OR"
                return f"({self.truth(node.this)} {word} {self.truth(node.expression)})"
            case exp.Not():
                return f"(NOT {self.truth(node.this)})"
            case exp.Is():
                return self._is(node)
            case exp.Like():
                return self._like(node)
            case exp.Between():
                low = self._compared(node.this, node.args["low"], ">=")
                return f"({low} AND {self._compared(node.this, node.args['high'], '<=')})"
            case exp.In() if node.expressions and not node.args.get("query"):
                return f"({' OR '.join(self._compared(node.this, value, '=') for value in node.expressions)})"
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.NullSafeEQ():
                return self._compared(node.this, node.expression, _COMPARED[type(node)])
            case _:
                raise _refused(node)

    def truth(self, node: exp.Expr) -> str:
        """Return the SQL of a condition."""
        return self.typed(node, "boolean")

    def string(self, node: exp.Expr) -> str:
        """Return the SQL of a text."""
        return self.typed(node, "string")

    def typed(self, node: exp.Expr, kind: str) -> str:
        """Return the SQL of an expression of a type."""
        result = self.of(node)
        if result.kind != kind:
            raise _refused(node)
        return result.sql

    def ascii(self, node: exp.Expr) -> str:
        """Return the SQL of a text, which raises an error for letters that the engines might treat differently."""
        value = self.string(node)
        return f"(CASE WHEN {value} IS NULL OR regexp_full_match({value}, '[\\x00-\\x7F]*') THEN {value} ELSE error('text') END)"

    def same(self, nodes: Sequence[exp.Expr]) -> tuple[list[str], str]:
        """Return the SQL of expressions, cast to one type, and this type; a null has any type."""
        operands = [None if isinstance(node, exp.Null) else self.of(node) for node in nodes]
        kinds = {operand.kind for operand in operands if operand is not None}
        wide = next((str(kind) for kind in kinds if holds_whole_numbers(kind)), None)
        if kinds and kinds <= set(WHOLE):
            kind = max((kind for kind in kinds if kind), key=WHOLE.index)
        elif wide is not None and kinds <= {wide, *WHOLE}:
            kind = wide
        elif len(kinds) == 1 and plain_type(only := kinds.pop()):
            kind = str(only)
        else:
            raise LeftToSparkError(f"the driver does not give {', '.join(map(text, nodes))} one type")
        return [f"CAST({'NULL' if operand is None else operand.sql} AS {duck_type(kind)})" for operand in operands], kind

    def _is(self, node: exp.Is) -> str:
        if isinstance(node.expression, exp.Null):
            return f"({self.of(node.this).sql} IS NULL)"
        if isinstance(node.expression, exp.Boolean):
            return f"({self.truth(node.this)} IS {'TRUE' if node.expression.this else 'FALSE'})"
        raise _refused(node)

    def _compared(self, left_node: exp.Expr, right_node: exp.Expr, sign: str) -> str:
        left, right = self.of(left_node), self.of(right_node)
        if not compared_as_they_are(left.kind, right.kind):
            if "double" not in (left.kind, right.kind):
                raise LeftToSparkError(f"the driver does not compare {text(left_node)} with {text(right_node)}")
            left, right = self._double(left, left_node), self._double(right, right_node)
        return f"({_as_computed(left, left_node)} {sign} {_as_computed(right, right_node)})"

    def _double(self, value: Translated, node: exp.Expr) -> Translated:
        """Return a number as a double, rounded as Spark does."""
        if value.kind == "double":
            return value
        if value.kind in WHOLE:
            return Translated(f"CAST({value.sql} AS DOUBLE)", "double")
        bare = node.unnest()
        if isinstance(bare, exp.Literal) and not bare.is_string:
            return Translated(f"CAST({literal(bare.this)} AS DOUBLE)", "double")
        raise _refused(node)

    def _negative(self, node: exp.Neg) -> Translated:
        operand = self.of(node.this)
        if operand.kind not in (*WHOLE, "double") and decimal_digits(operand.kind) is None:
            raise _refused(node)
        return Translated(f"(-{operand.sql})", operand.kind)

    def _computed(self, node: exp.Expr) -> Translated:
        first, second = self.of(node.this), self.of(node.expression)
        if first.kind in WHOLE and second.kind in WHOLE:
            kind = max(first.kind, second.kind, key=WHOLE.index)
            left_sql, right_sql = (f"CAST({operand.sql} AS {duck_type(kind)})" for operand in (first, second))
            if isinstance(node, exp.Div):
                return Translated(f"(CAST({left_sql} AS DOUBLE) / CAST({_nonzero(right_sql)} AS DOUBLE))", "double")
            if isinstance(node, exp.Mod):
                return Translated(f"({left_sql} % {_nonzero(right_sql)})", kind)
            return Translated(f"({left_sql} {_ADDED[type(node)]} {right_sql})", kind)
        if "double" in (first.kind, second.kind):
            left_sql, right_sql = self._double(first, node.this).sql, self._double(second, node.expression).sql
            if isinstance(node, exp.Div):
                return Translated(f"({left_sql} / {_nonzero(right_sql)})", "double")
            if type(node) in _ADDED:
                return Translated(f"({left_sql} {_ADDED[type(node)]} {right_sql})", "double")
        raise _refused(node)

    def _cased(self, node: exp.Case) -> Translated:
        if node.this is None:
            conditions = [self.truth(branch.this) for branch in node.args["ifs"]]
        else:
            conditions = [self._compared(node.this, branch.this, "=") for branch in node.args["ifs"]]
        default = node.args.get("default")
        results = [*(branch.args["true"] for branch in node.args["ifs"]), *([] if default is None else [default])]
        values, kind = self.same(results)
        whens = " ".join(f"WHEN {when} THEN {value}" for when, value in zip(conditions, values, strict=False))
        last = "" if default is None else f" ELSE {values[-1]}"
        return Translated(f"(CASE {whens}{last} END)", kind)

    def _cast(self, node: exp.Cast) -> Translated:
        kind = text(node.args["to"]).lower().replace(" ", "")
        if isinstance(node.this, exp.Null) and plain_type(kind):
            return Translated(f"CAST(NULL AS {duck_type(kind)})", kind)
        inner = self.of(node.this)
        from_digits, to_digits = decimal_digits(inner.kind), decimal_digits(kind)
        widened = inner.kind in WHOLE and kind in WHOLE and WHOLE.index(inner.kind) <= WHOLE.index(kind)
        if inner.kind in WHOLE and to_digits is not None:
            widened = to_digits[0] - to_digits[1] >= DIGITS_OF[inner.kind]
        elif from_digits is not None and to_digits is not None:
            widened = from_digits[1] == to_digits[1]  # more digits are an error of both engines
        elif from_digits is not None and from_digits[1] == 0 and kind == "double":
            value = f"(CASE WHEN abs({inner.sql}) > {EXACT} THEN error('rounded') ELSE {inner.sql} END)"
            return Translated(f"CAST({value} AS DOUBLE)", kind)
        elif from_digits is not None and from_digits[1] == 0 and kind == "bigint":
            widened = True
        if not (widened or (inner.kind in WHOLE and kind in ("double", "string"))):
            raise _refused(node)
        return Translated(f"CAST({inner.sql} AS {duck_type(kind)})", kind)

    def _like(self, node: exp.Like) -> str:
        """Return the condition that a text begins or ends with another, equals it or contains it."""
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string or node.args.get("escape"):
            raise _refused(node)
        match = _WILD.fullmatch(str(pattern.this))
        if match is None:
            raise _refused(node)
        self.of(pattern)  # refuses escapes
        before, part, after = match.groups()
        value = self.string(node.this)
        if before and after:
            found_in = f"contains({value}, {literal(part)})"
        elif before or after:
            found_in = f"{'suffix' if before else 'prefix'}({value}, {literal(part)})"
        else:
            found_in = f"({value} = {literal(part)})"
        return f"(NOT {found_in})" if node.args.get("negate") else found_in


def _as_computed(value: Translated, node: exp.Expr) -> str:
    """Return the SQL of an operand that DuckDB computes before it compares.

    DuckDB rewrites ``v + 1 > 5`` to ``v > 4``, which never overflows.
    """
    computed = value.kind in WHOLE and isinstance(node.unnest(), (exp.Neg, *_ADDED))
    return f"least({value.sql})" if computed else value.sql


def _refused(node: exp.Expr) -> LeftToSparkError:
    return LeftToSparkError(f"the driver does not compute {text(node)}")


def _nonzero(value: str) -> str:
    return f"(CASE WHEN {value} = 0 THEN error('division by zero') ELSE {value} END)"


def _constant(node: exp.Literal) -> Translated:
    if node.is_string:
        if "\\" in str(node.meta.get("as_written", "")) or "\\" in node.this:
            raise LeftToSparkError("the driver does not read escapes")
        return Translated(literal(node.this), "string")
    if _INTEGER.fullmatch(node.this) and int(node.this) < _LONG and int(node.this) != _INT:  # -2147483648 is an int
        kind = "int" if int(node.this) < _INT else "bigint"
        return Translated(f"CAST({node.this} AS {duck_type(kind)})", kind)
    if _FRACTION.fullmatch(node.this):
        whole, _, fraction = node.this.partition(".")
        digits, scale = len(whole.lstrip("0")) + len(fraction), len(fraction)
        if 0 < digits <= _DIGITS:
            return Translated(f"CAST({literal(node.this)} AS DECIMAL({digits},{scale}))", f"decimal({digits},{scale})")
    raise _refused(node)
