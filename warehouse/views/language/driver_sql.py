"""Translates Spark SQL to DuckDB's SQL, for expressions that both evaluate alike; then the driver computes few rows itself.

Every expression has the type that Spark gives it, and is cast to it where DuckDB's would be another, so a value that overflows in
Spark is an error in DuckDB, too. Where the engines agree on some values only (letters beyond ASCII, a divisor of zero) the SQL
raises an error for the others. Whatever is not known to be alike is refused; Spark then computes it.
``tests/views/test_driver_sql.py`` compares both engines over values at the edges of each type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.duck_sql import literal, quoted
from warehouse.views.language.dialect import expression_of, text
from warehouse.views.language.faults import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["LeftToSparkError", "Translated", "exactly_grouped", "plain_type", "translated"]

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_DUCK = {
    "string": "VARCHAR", "int": "INTEGER", "binary": "BLOB", "timestamp": "TIMESTAMPTZ", "tinyint": "TINYINT",
    "smallint": "SMALLINT", "bigint": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE",
}  # fmt: skip
_INT, _LONG = 2**31, 2**63
_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
}  # fmt: skip
_ADDED: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_INTEGER = re.compile(r"\d+")
_FRACTION = re.compile(r"\d*\.\d+|\d+\.\d*")
_DIGITS = 18
"""Both engines represent a decimal constant of up to this many digits exactly, in the same type."""
_DIGITS_OF = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""The digits of a decimal without fraction that holds all values of a type."""
_MOST_DIGITS = 38
_EXACT = 2**53
"""Whole numbers up to which each is a double."""
_WILD = re.compile(r"(%?)([^%_\\]*)(%?)")
_UNITS = ("year", "month", "day", "hour", "minute", "second")


class LeftToSparkError(ValueError):
    """The driver cannot compute something as Spark would; Spark is to."""


@dataclass(frozen=True)
class Translated:
    """SQL of DuckDB, and the Spark SQL type of its values; None: one that is only passed on."""

    sql: str
    kind: str | None


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


def plain_type(kind: str | None) -> bool:
    """Whether values are neither nested nor of an unknown type."""
    return kind is not None and (kind in _DUCK or _DECIMAL.fullmatch(kind) is not None)


def exactly_grouped(kind: str | None) -> bool:
    """Whether both engines make the same groups of values."""
    return plain_type(kind) and kind not in ("float", "double")


def _duck(kind: str) -> str:
    return _DUCK.get(kind) or kind.upper()


@dataclass(frozen=True)
class _Translator:
    columns: Mapping[str, str | None]
    aggregates: bool

    def of(self, node: exp.Expr) -> Translated:
        """An expression."""
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
            case exp.Anonymous() if str(node.this).lower() in _FUNCTIONS:
                return _FUNCTIONS[str(node.this).lower()](self, list(node.expressions))
            case exp.Anonymous() if self.aggregates and str(node.this).lower() in _AGGREGATES:
                return _AGGREGATES[str(node.this).lower()](self, list(node.expressions))
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
                return f"({' OR '.join(self._compared(node.this, each, '=') for each in node.expressions)})"
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.NullSafeEQ():
                return self._compared(node.this, node.expression, _COMPARED[type(node)])
            case _:
                raise _refused(node)

    def truth(self, node: exp.Expr) -> str:
        """Return a condition."""
        return self.typed(node, "boolean")

    def string(self, node: exp.Expr) -> str:
        """Return a text."""
        return self.typed(node, "string")

    def typed(self, node: exp.Expr, kind: str) -> str:
        """An expression of a type."""
        found = self.of(node)
        if found.kind != kind:
            raise _refused(node)
        return found.sql

    def ascii(self, node: exp.Expr) -> str:
        """Return a text without letters that the engines might treat differently."""
        value = self.string(node)
        return f"(CASE WHEN {value} IS NULL OR regexp_full_match({value}, '[\\x00-\\x7F]*') THEN {value} ELSE error('text') END)"

    def same(self, nodes: Sequence[exp.Expr]) -> tuple[list[str], str]:
        """Values of one type; a null is of any."""
        found = [None if isinstance(each, exp.Null) else self.of(each) for each in nodes]
        kinds = {each.kind for each in found if each is not None}
        wide = next((str(each) for each in kinds if _holds_whole_numbers(each)), None)
        if kinds and kinds <= set(_WHOLE):
            kind = max((each for each in kinds if each), key=_WHOLE.index)
        elif wide is not None and kinds <= {wide, *_WHOLE}:
            kind = wide
        elif len(kinds) == 1 and plain_type(only := kinds.pop()):
            kind = str(only)
        else:
            raise LeftToSparkError(f"the driver does not give {', '.join(map(text, nodes))} one type")
        return [f"CAST({'NULL' if each is None else each.sql} AS {_duck(kind)})" for each in found], kind

    def _is(self, node: exp.Is) -> str:
        if isinstance(node.expression, exp.Null):
            return f"({self.of(node.this).sql} IS NULL)"
        if isinstance(node.expression, exp.Boolean):
            return f"({self.truth(node.this)} IS {'TRUE' if node.expression.this else 'FALSE'})"
        raise _refused(node)

    def _compared(self, one: exp.Expr, other: exp.Expr, sign: str) -> str:
        left, right = self.of(one), self.of(other)
        if not _alike(left.kind, right.kind):
            if "double" not in (left.kind, right.kind):
                raise LeftToSparkError(f"the driver does not compare {text(one)} with {text(other)}")
            left, right = self._double(left, one), self._double(right, other)
        return f"({_as_computed(left, one)} {sign} {_as_computed(right, other)})"

    def _double(self, value: Translated, node: exp.Expr) -> Translated:
        """A number as a double, rounded as Spark does."""
        if value.kind == "double":
            return value
        if value.kind in _WHOLE:
            return Translated(f"CAST({value.sql} AS DOUBLE)", "double")
        written = node.unnest()
        if isinstance(written, exp.Literal) and not written.is_string:
            return Translated(f"CAST({literal(written.this)} AS DOUBLE)", "double")
        raise _refused(node)

    def _negative(self, node: exp.Neg) -> Translated:
        found = self.of(node.this)
        if found.kind not in (*_WHOLE, "double") and _decimal(found.kind) is None:
            raise _refused(node)
        return Translated(f"(-{found.sql})", found.kind)

    def _computed(self, node: exp.Expr) -> Translated:
        first, second = self.of(node.this), self.of(node.expression)
        if first.kind in _WHOLE and second.kind in _WHOLE:
            kind = max(first.kind, second.kind, key=_WHOLE.index)
            one, other = (f"CAST({each.sql} AS {_DUCK[kind]})" for each in (first, second))
            if isinstance(node, exp.Div):
                return Translated(f"(CAST({one} AS DOUBLE) / CAST({_nonzero(other)} AS DOUBLE))", "double")
            if isinstance(node, exp.Mod):
                return Translated(f"({one} % {_nonzero(other)})", kind)
            return Translated(f"({one} {_ADDED[type(node)]} {other})", kind)
        if "double" in (first.kind, second.kind):
            one, other = self._double(first, node.this).sql, self._double(second, node.expression).sql
            if isinstance(node, exp.Div):
                return Translated(f"({one} / {_nonzero(other)})", "double")
            if type(node) in _ADDED:
                return Translated(f"({one} {_ADDED[type(node)]} {other})", "double")
        raise _refused(node)

    def _cased(self, node: exp.Case) -> Translated:
        if node.this is None:
            conditions = [self.truth(each.this) for each in node.args["ifs"]]
        else:
            conditions = [self._compared(node.this, each.this, "=") for each in node.args["ifs"]]
        default = node.args.get("default")
        results = [*(each.args["true"] for each in node.args["ifs"]), *([] if default is None else [default])]
        values, kind = self.same(results)
        whens = " ".join(f"WHEN {when} THEN {value}" for when, value in zip(conditions, values, strict=False))
        last = "" if default is None else f" ELSE {values[-1]}"
        return Translated(f"(CASE {whens}{last} END)", kind)

    def _cast(self, node: exp.Cast) -> Translated:
        kind = text(node.args["to"]).lower().replace(" ", "")
        if isinstance(node.this, exp.Null) and plain_type(kind):
            return Translated(f"CAST(NULL AS {_duck(kind)})", kind)
        inner = self.of(node.this)
        own, asked = _decimal(inner.kind), _decimal(kind)
        widened = inner.kind in _WHOLE and kind in _WHOLE and _WHOLE.index(inner.kind) <= _WHOLE.index(kind)
        if inner.kind in _WHOLE and asked is not None:
            widened = asked[0] - asked[1] >= _DIGITS_OF[inner.kind]
        elif own is not None and asked is not None:
            widened = own[1] == asked[1]  # more digits are an error of both engines
        elif own is not None and own[1] == 0 and kind == "double":
            value = f"(CASE WHEN abs({inner.sql}) > {_EXACT} THEN error('rounded') ELSE {inner.sql} END)"
            return Translated(f"CAST({value} AS DOUBLE)", kind)
        elif own is not None and own[1] == 0 and kind == "bigint":
            widened = True
        if not (widened or (inner.kind in _WHOLE and kind in ("double", "string"))):
            raise _refused(node)
        return Translated(f"CAST({inner.sql} AS {_duck(kind)})", kind)

    def _like(self, node: exp.Like) -> str:
        """A text that begins or ends with another, or has it in it."""
        pattern = node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string or node.args.get("escape"):
            raise _refused(node)
        found = _WILD.fullmatch(str(pattern.this))
        if found is None:
            raise _refused(node)
        self.of(pattern)  # refuses escapes
        before, part, after = found.groups()
        value = self.string(node.this)
        if before and after:
            found_in = f"contains({value}, {literal(part)})"
        elif before or after:
            found_in = f"{'suffix' if before else 'prefix'}({value}, {literal(part)})"
        else:
            found_in = f"({value} = {literal(part)})"
        return f"(NOT {found_in})" if node.args.get("negate") else found_in


def _decimal(kind: str | None) -> tuple[int, int] | None:
    """The digits of a decimal type, in all and of the fraction; None for others."""
    found = _DECIMAL.fullmatch(kind or "")
    return None if found is None else (int(found[1]), int(found[2]))


def _holds_whole_numbers(kind: str | None) -> bool:
    """Whether a decimal type is that of the result where Spark makes it and whole numbers one type."""
    digits = _decimal(kind)
    return digits is not None and digits[0] == _MOST_DIGITS and digits[0] - digits[1] >= _DIGITS_OF["bigint"]


def _as_computed(value: Translated, node: exp.Expr) -> str:
    """An operand that DuckDB computes before it compares: of ``v + 1 > 5`` alone it makes ``v > 4``, which never overflows."""
    computed = value.kind in _WHOLE and isinstance(node.unnest(), (exp.Neg, *_ADDED))
    return f"least({value.sql})" if computed else value.sql


def _refused(node: exp.Expr) -> LeftToSparkError:
    return LeftToSparkError(f"the driver does not compute {text(node)}")


def _alike(one: str | None, other: str | None) -> bool:
    """Whether values are compared alike as they are."""
    if one is None or other is None:
        return False
    exact = all(kind in _WHOLE or _DECIMAL.fullmatch(kind) is not None for kind in (one, other))
    return exact or (one == other and one in _DUCK)


def _nonzero(value: str) -> str:
    return f"(CASE WHEN {value} = 0 THEN error('division by zero') ELSE {value} END)"


def _constant(node: exp.Literal) -> Translated:
    if node.is_string:
        if "\\" in str(node.meta.get("as_written", "")) or "\\" in node.this:
            raise LeftToSparkError("the driver does not read escapes")
        return Translated(literal(node.this), "string")
    if _INTEGER.fullmatch(node.this) and int(node.this) < _LONG and int(node.this) != _INT:  # -2147483648 is an int
        kind = "int" if int(node.this) < _INT else "bigint"
        return Translated(f"CAST({node.this} AS {_DUCK[kind]})", kind)
    if _FRACTION.fullmatch(node.this):
        whole, _, fraction = node.this.partition(".")
        digits, scale = len(whole.lstrip("0")) + len(fraction), len(fraction)
        if 0 < digits <= _DIGITS:
            return Translated(f"CAST({literal(node.this)} AS DECIMAL({digits},{scale}))", f"decimal({digits},{scale})")
    raise _refused(node)


# --- functions ---


def _only(arguments: Sequence[exp.Expr], count: int) -> Sequence[exp.Expr]:
    if len(arguments) != count:
        raise LeftToSparkError("the driver does not know the function with so many arguments")
    return arguments


def _coalesced(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    values, kind = to.same(arguments)
    return Translated(f"coalesce({', '.join(values)})", kind)


def _chosen(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    condition, *results = _only(arguments, 3)
    values, kind = to.same(results)
    return Translated(f"(CASE WHEN {to.truth(condition)} THEN {values[0]} ELSE {values[1]} END)", kind)


def _extreme(word: str) -> Callable[[_Translator, Sequence[exp.Expr]], Translated]:
    def made(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
        values, kind = to.same(arguments)
        if kind in ("float", "double", "binary", "boolean"):
            raise LeftToSparkError(f"the driver does not compute {word} of {kind}")
        return Translated(f"{word}({', '.join(values)})", kind)

    return made


def _letters(word: str) -> Callable[[_Translator, Sequence[exp.Expr]], Translated]:
    return lambda to, arguments: Translated(f"{word}({to.ascii(_only(arguments, 1)[0])})", "string")


def _length(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    return Translated(f"CAST(length({to.ascii(_only(arguments, 1)[0])}) AS INTEGER)", "int")


def _concatenated(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    if not arguments:
        raise LeftToSparkError("the driver does not concatenate nothing")
    return Translated(f"({' || '.join(map(to.string, arguments))})", "string")


def _magnitude(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    value = to.of(_only(arguments, 1)[0])
    if value.kind not in (*_WHOLE, "double"):
        raise LeftToSparkError(f"the driver does not compute abs of {value.kind}")
    return Translated(f"abs({value.sql})", value.kind)


def _cut(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    unit, value = _only(arguments, 2)
    if not isinstance(unit, exp.Literal) or unit.this.lower() not in _UNITS:
        raise LeftToSparkError(f"the driver does not cut times at {text(unit)}")
    utc = f"({to.typed(value, 'timestamp')} AT TIME ZONE 'UTC')"
    return Translated(f"(date_trunc({literal(unit.this.lower())}, {utc}) AT TIME ZONE 'UTC')", "timestamp")


def _micros(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    return Translated(f"epoch_us({to.typed(_only(arguments, 1)[0], 'timestamp')})", "bigint")


def _instant(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    return Translated(f"make_timestamptz({to.typed(_only(arguments, 1)[0], 'bigint')})", "timestamp")


def _counted(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    (value,) = _only(arguments, 1)
    return Translated(f"count({'*' if isinstance(value, exp.Star) else to.of(value).sql})", "bigint")


def _bound(word: str) -> Callable[[_Translator, Sequence[exp.Expr]], Translated]:
    def made(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
        value = to.of(_only(arguments, 1)[0])
        if not exactly_grouped(value.kind):
            raise LeftToSparkError(f"the driver does not compute {word} of {value.kind}")
        return Translated(f"{word}({value.sql})", value.kind)

    return made


def _summed(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    value = to.of(_only(arguments, 1)[0])
    digits = _decimal(value.kind)
    if digits is not None:
        kind = f"decimal({min(_MOST_DIGITS, digits[0] + 10)},{digits[1]})"
        return Translated(f"CAST(sum({value.sql}) AS {_duck(kind)})", kind)
    if value.kind not in _WHOLE:
        raise LeftToSparkError(f"the driver does not sum {value.kind}")
    return Translated(f"CAST(sum({value.sql}) AS BIGINT)", "bigint")


def _averaged(to: _Translator, arguments: Sequence[exp.Expr]) -> Translated:
    """Spark adds doubles, in any order: exact while no sum on the way can be rounded."""
    value = to.of(_only(arguments, 1)[0])
    if value.kind not in _WHOLE:
        raise LeftToSparkError(f"the driver does not average {value.kind}")
    mean = f"CAST(sum({value.sql}) AS DOUBLE) / CAST(count({value.sql}) AS DOUBLE)"
    exact = f"sum(abs(CAST({value.sql} AS HUGEINT))) <= {_EXACT}"
    return Translated(
        f"(CASE WHEN count({value.sql}) = 0 THEN NULL WHEN {exact} THEN {mean} ELSE error('rounded') END)", "double"
    )


_FUNCTIONS: dict[str, Callable[[_Translator, Sequence[exp.Expr]], Translated]] = {
    "coalesce": _coalesced,
    "if": _chosen,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "upper": _letters("upper"),
    "lower": _letters("lower"),
    "length": _length,
    "concat": _concatenated,
    "abs": _magnitude,
    "date_trunc": _cut,
    "unix_micros": _micros,
    "timestamp_micros": _instant,
}
_AGGREGATES: dict[str, Callable[[_Translator, Sequence[exp.Expr]], Translated]] = {
    "sum": _summed,
    "avg": _averaged,
    "count": _counted,
    "max": _bound("max"),
    "min": _bound("min"),
}
