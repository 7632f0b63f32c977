"""Spark SQL in and out, word for word: sqlglot's tree is written back exactly as it was read.

sqlglot's own Spark dialect translates functions (a round trip of ``to_date(x, 'yyyyMMdd')`` loses the format, a round trip of
``x - INTERVAL 2 HOURS 3 MINUTES`` changes its value). Here every function is a name with arguments, every
string keeps its escapes, and the clock's words without parentheses are columns that no table has.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import sqlglot
import sqlglot.parser
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from warehouse.catalog.identifiers import quoted
from warehouse.errors import PlatformError
from warehouse.views.language.faults import TOO_DEEP, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import Token
    from sqlglot.dialects.dialect import DialectType

__all__ = [
    "as_written",
    "column_of",
    "conjuncts",
    "expression_of",
    "meaning",
    "names_in",
    "parse_query",
    "plain",
    "text",
    "tokens_of",
    "unquoted",
]

_SYNTAX_FUNCTIONS = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION")
_WITH_UNIT = frozenset({"timestampadd", "timestampdiff", "dateadd", "datediff", "date_add", "date_diff"})
_UNIT_ARGUMENTS = 3
_UNITS = "MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY DAYOFYEAR WEEK MONTH QUARTER YEAR"
_UNIT_WORDS = frozenset(_UNITS.split())
_WORDS = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.VAR, TokenType.IDENTIFIER})
_SIZED = frozenset({TokenType.VARCHAR, TokenType.CHAR, TokenType.NCHAR, TokenType.NVARCHAR})
_SAME = {"SUBSTR": "SUBSTRING", "POSITION": "LOCATE", "LTRIM": "TRIM", "RTRIM": "TRIM"}
_IMPLIED = frozenset({"NULLS", "LAST", "BOTH", "LEADING", "TRAILING"})
"""Words that are left out if they do not change the meaning."""
_PLAIN = re.compile(r"`((?:[^`]|``)+)`")
_WRITTEN = "as_written"
_FIELD_OF = re.compile(r"\((`(?:[^`]|``)+`)\)\.(?=`|[A-Za-z_])")
_VARIABLE = re.compile(r"`#([^`#]+)#`")


class _Verbatim(Spark):
    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        tokens = super().tokenize(sql, dialect)
        for word, following in pairwise(tokens):  # the function window(...), not the clause WINDOW
            if word.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
                word.token_type = TokenType.VAR
        return tokens

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["'", '"', "\\"]  # noqa: RUF012 - Spark 4 reads '' inside a string as one quote

    class Parser(SparkParser):
        ARRAY_CONSTRUCTORS = {}  # noqa: RUF012 - an index after array(...), or after a column called list, is an index
        FUNCTIONS = {}  # noqa: RUF012 - sqlglot's way
        FUNCTION_PARSERS = {  # noqa: RUF012 - functions whose arguments are no list
            name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _SYNTAX_FUNCTIONS
        }
        NO_PAREN_FUNCTIONS = {}  # noqa: RUF012 - sqlglot's way
        NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012 - sqlglot's way
            name: parser for name, parser in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name == "CASE"
        }

    class Generator(SparkGenerator):
        def literal_sql(self, expression: exp.Literal) -> str:
            literal_text = expression.meta.get(_WRITTEN)
            return str(literal_text) if literal_text is not None else super().literal_sql(expression)

        def dot_sql(self, expression: exp.Dot) -> str:
            # `st`.`x` reads as column x of an input st; (`st`).`x` is the field of the column and nothing else.
            if not isinstance(expression.this, exp.Column):
                return super().dot_sql(expression)
            return f"({self.sql(expression.this)}).{self.sql(expression.expression)}"


def parse_query(sql: str) -> exp.Query:
    """Return the tree of one query; nodes of words have their position in ``meta``.

    Raises
    ------
    RefusedError
        When it does not parse, is not a query, or is several queries.

    """
    tree = _parsed(sql)
    _require_all_words(sql, tree)
    return tree


@lru_cache(maxsize=8192)
def expression_of(sql: str) -> exp.Expr:
    """Return the tree of an expression that this build has written; it is cached, so it must not be changed.

    Raises
    ------
    RefusedError
        When it does not parse.

    """
    node: exp.Expr = _parsed(f"SELECT {sql}").selects[0]
    return node


def _parsed(sql: str) -> exp.Query:
    if not str(sqlglot.parser.__file__).endswith(".py"):
        raise PlatformError(
            "the package `sqlglotc` is installed, compiled, so views cannot extend its parser; run `pip uninstall sqlglotc`"
        )
    try:
        trees = [tree for tree in sqlglot.parse(sql, read=_Verbatim) if tree is not None]
    except SqlglotError as error:
        raise _unparsed(sql, error) from None
    except RecursionError:
        raise RefusedError(None, *TOO_DEEP) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        found = "several statements" if len(trees) > 1 else "no query"
        raise RefusedError(trees[1] if len(trees) > 1 else None, found, "one query: SELECT ... FROM ...")
    tree: exp.Query = trees[0]
    for literal in tree.find_all(exp.Literal):
        _keep_spelling(literal, sql)
    for total in list(tree.find_all(exp.Add)):
        _keep_interval(total)
    for call in tree.find_all(exp.Anonymous):
        _keep_unit(call)
    return tree


def _require_all_words(sql: str, tree: exp.Query) -> None:
    """Refuse words that the SQL parser ignores: the query would be another one, and its answer silently wrong."""
    try:
        lost = _words(sql) - _words(text(tree))
    except RecursionError:
        raise RefusedError(None, *TOO_DEEP) from None
    if lost:
        found = f"{', '.join(sorted(lost))}, which this reader of SQL would leave out"
        raise RefusedError(None, found, "the same query written in another way")


def _words(sql: str) -> Counter[str]:
    """Return the names and values of a text, as often as each occurs, in one spelling.

    sqlglot writes the constant interval ``-1 hours`` as ``'-1' HOUR``, and the number ``.5`` as ``0.5``.
    """
    tokens = tokens_of(sql)
    sized = {number + 2 for number, token in enumerate(tokens) if token.token_type in _SIZED}  # VARCHAR(10) is a string
    return Counter(
        _one_spelling(word)
        for number, token in enumerate(tokens)
        if token.token_type in _WORDS and number not in sized and token.text.upper() not in _IMPLIED
        for word in token.text.split() or [""]  # INTERVAL '1 day' is written INTERVAL '1' DAY
    )


def _one_spelling(word: str) -> str:
    upper = word.strip().lstrip("+-").strip().upper()
    upper = upper.lstrip("0.") or upper
    unit = upper.removesuffix("S")
    return unit if unit in _UNIT_WORDS else _SAME.get(upper, upper)


def _unparsed(sql: str, error: SqlglotError) -> RefusedError:
    details = getattr(error, "errors", None) or [{}]
    detail: dict[str, Any] = details[0]
    line, column, word = detail.get("line"), detail.get("col"), detail.get("highlight")
    message = re.sub(r"\x1b\[\d+m", "", str(detail.get("description") or error)).splitlines()[0]
    reason = re.split(r" but got | for <class", message)[0].rstrip(". ")
    if line is None or column is None:
        return RefusedError(None, f"a query that does not parse: {reason}", "Spark SQL")
    start = str(detail.get("start_context", "")) + str(word)
    offset = sql.find(start) + len(start) - len(str(word)) if start in sql else 0
    return RefusedError(offset, f'"{word}", where the query stops to parse ({reason})', "Spark SQL")


def _keep_spelling(literal: exp.Literal, sql: str) -> None:
    start, end = literal.meta.get("start"), literal.meta.get("end")
    if not literal.is_string or start is None or end is None:
        return
    literal_text = sql[start : end + 1]
    if literal_text[-1:] in {"'", '"'} and len(literal_text) > 1:
        literal.meta[_WRITTEN] = literal_text


def _keep_interval(total: exp.Add) -> None:
    """Keep ``INTERVAL 2 HOURS 3 MINUTES``, which is parsed as a sum, as one operand."""
    parts = (total.this, total.expression)
    if isinstance(total.parent, exp.Binary) and all(isinstance(part, (exp.Interval, exp.Add)) for part in parts):
        total.replace(exp.Paren(this=total.copy()))


def _keep_unit(call: exp.Anonymous) -> None:
    """Keep the unit of ``timestampadd(SECOND, ...)``, which is not a column."""
    first = call.expressions[0] if call.expressions else None
    if call.name.lower() not in _WITH_UNIT or len(call.expressions) != _UNIT_ARGUMENTS or not isinstance(first, exp.Column):
        return
    if not first.table and first.name.upper().removesuffix("S") in _UNITS.split():
        first.replace(exp.Var(this=first.name))


def tokens_of(sql: str) -> list[Token]:
    """Return the tokens of a text, each with its position."""
    return _Verbatim().tokenize(sql)


def text(node: exp.Expr) -> str:
    """Return a node as Spark SQL."""
    return node.sql(dialect=_Verbatim, normalize_functions=False, comments=False)


def meaning(node: exp.Expr) -> str:
    """Return the same text for nodes with the same meaning, in whatever case the names of functions are written."""
    return node.sql(dialect=_Verbatim, normalize_functions="lower", comments=False)


def unquoted(node: exp.Expr) -> str:
    """Return a bound node as a person would write it, for messages."""
    return as_written(text(node))


def as_written(sql: str) -> str:
    """Return an expression of this build as a person would write it.

    >>> as_written("transform((`l.st`).`xs`, `#x#` -> `#x#` + 1)")
    'transform(l.st.xs, x -> x + 1)'
    """
    return _VARIABLE.sub(r"\1", _FIELD_OF.sub(r"\1.", sql)).replace("`", "")


def plain(name: str) -> str:
    """Return a column name as a person would write it: in backticks only where it must be."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted(name)


def column_of(sql: str) -> str | None:
    """Return the column's name if an expression is nothing but a column in backticks; None if not.

    >>> column_of("`f.a`"), column_of("`a` + 1")
    ('f.a', None)
    """
    match = _PLAIN.fullmatch(sql)
    return match[1].replace("``", "`") if match else None


def names_in(sql: str) -> set[str]:
    """Return the names in backticks in an expression, including qualifiers and fields of structures.

    >>> sorted(names_in("concat('`', `a``b`, `c`.`d`)"))
    ['a`b', 'c', 'd']
    """
    return {token.text for token in _Verbatim().tokenize(sql) if token.token_type is TokenType.IDENTIFIER}


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the parts of a condition that all must hold."""
    match condition:
        case None:
            return
        case exp.And():
            yield from conjuncts(condition.this)
            yield from conjuncts(condition.expression)
        case exp.Paren():
            yield from conjuncts(condition.this)
        case _:
            yield condition
