"""Finds how a CSV file is written, for ``init --from``: delimiter, quote, comment lines, decimal comma, encoding, time formats.

DuckDB finds most of it. This module adds comment lines before the header, numbers such as ``1.234,5``, and encodings. DuckDB
reads UTF-8 only, so the beginning of other files is copied in UTF-8.
"""

from __future__ import annotations

import codecs
import re
import shlex
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from warehouse.catalog.codecs import open_decompressed
from warehouse.catalog.duck_sql import literal, quoted
from warehouse.catalog.space_delimited import space_delimited
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from duckdb import DuckDBPyConnection

__all__ = [
    "PATTERN_PARTS",
    "SAMPLE",
    "CsvDialect",
    "csv_dialect",
    "false_numbers",
    "literal_path",
    "misfitting_records",
    "times_that_need_a_pattern",
]

SAMPLE = 100_000
"""Rows of a sample."""
_HEAD_BYTES = 1 << 20
_COPY_BYTES = 64 << 20
_BYTE_ORDER_MARKS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_WINDOWS_1252 = re.compile(rb"[\x80-\x9f]")
"""Bytes that are letters and quotes in windows-1252, and control characters in ISO-8859-1."""
_MISSING_WORDS = (
    *("NA", "N/A", "NULL", "null", "\\N", "-", "NaT", "nan", "None", "n/a", "#N/A"),
    *("0000-00-00 00:00:00", "0000-00-00"),
)
"""Words for a missing value. In a column of texts they may be values: NA is Namibia."""
_NUMBERS = frozenset({"BIGINT", "DOUBLE", "HUGEINT"})
_SEPARATORS = re.compile(r"[,;\t|]")
_COMMENT_SIGNS = "#%!*;"
_NUMBER_WITH_COMMA = r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?([eE][+-]?\d+)?"
_CERTAIN_DECIMAL_COMMA = r"[+-]?[\d.]*\d,(\d{1,2}|\d{4,})([eE].*)?"
"""A number whose comma does not separate thousands."""
_NUMBER_WITH_POINT = r"[+-]?\d+\.\d+"
PATTERN_PARTS = {
    "%Y": "yyyy",
    "%y": "yy",
    "%m": "MM",
    "%d": "dd",
    "%H": "HH",
    "%I": "hh",
    "%M": "mm",
    "%S": "ss",
    "%p": "a",
    "%b": "MMM",
    "%B": "MMMM",
    "%f": "SSSSSS",
    "%g": "SSS",
}
_ISO = r"\d{4}-\d{1,2}-\d{1,2}([T ]\d{1,2}:\d{1,2}(:\d{1,2}(\.\d+)?\s*(Z|UTC|[+-]\d{1,2}(:?\d{2})?)?)?)?"
"""Dates and times that Spark reads without a pattern."""
_PART = re.compile(r"%.|[^%A-Za-z]|[A-Za-z]+")
_ISO_PATTERNS = frozenset({"%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"})


@dataclass(frozen=True)
class CsvDialect:
    """How a file is written.

    A stream with ``options`` reads the file. ``unreadable`` are types in formats that Spark has no pattern for. ``path`` is the
    file in UTF-8, and ``query`` reads it there. ``guessed`` are options that may be wrong. ``refused`` maps the position of each
    column that cannot be declared to the reason, ``file_names`` the position of a column to its name in the file if DuckDB
    renamed it.
    """

    options: tuple[tuple[str, str], ...]
    unreadable: frozenset[str]
    path: Path
    query: str
    guessed: tuple[str, ...] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    file_names: Mapping[int, str] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the queries."""
        return {"file": literal_path(self.path)}

    def texts_query(self, column: str) -> str:
        """Return the query for the texts of a column, called ``text``."""
        texts_query = self.query.removesuffix(")") + ", all_varchar = true)"
        return f"SELECT {quoted(column)} AS text FROM ({texts_query}) WHERE {quoted(column)} IS NOT NULL LIMIT {SAMPLE}"


def csv_dialect(
    connection: DuckDBPyConnection, source: Path, folder: Path, *, strict: bool = True, known_arguments: str = ""
) -> CsvDialect:
    """Return the dialect of a file; ``folder`` is for a copy of the file. If not ``strict``, DuckDB accepts mixed line ends.

    ``known_arguments`` are arguments of DuckDB's reader that need not be detected.

    Raises
    ------
    UsageError
        When the file is empty, or has other text before its header.

    """
    encoding, guessed = _encoding(source)
    path = _in_utf8(source, encoding, folder) if encoding else source
    parameters = {"file": literal_path(path)}
    lines = _head(path).decode(errors="replace").splitlines()
    comment = None if known_arguments else _leading_comment(lines)
    arguments = f"{known_arguments}, hive_partitioning = false{'' if strict else ', strict_mode = false'}"
    arguments += f", comment = {literal(comment)}" if comment else ""
    spaced = None if known_arguments else space_delimited(lines, comment)
    arguments += spaced.arguments if spaced else ""
    missing = "-" if spaced and spaced.names else _missing_word(connection, parameters, lines, arguments)
    arguments += f", nullstr = ['', {literal(missing)}]" if missing else ""
    delimiter, quote, header, date, time, detected_comment, skipped = _sniffed(connection, parameters, arguments)
    names = spaced.names if spaced else ()
    if not header and not names:
        names = _numbered_names(connection, parameters, arguments)
    if not any(line.strip() for line in lines):
        raise UsageError(f"{source} is empty; name a file with rows")
    arguments += f", header = false, names = [{', '.join(map(literal, names))}]" if names else ""
    before = [line for line in lines[:skipped] if line.strip() and not (comment and line.startswith(comment))]
    if before:
        raise UsageError(
            f'{source} begins with a line that is neither header nor comment: "{before[0][:60]}"; '
            f"remove what stands before the header (`tail -n +{skipped + 1}`), or begin those lines with #"
        )
    if comment is None and detected_comment not in (None, "", "(empty)"):
        comment, arguments = detected_comment, f"{arguments}, comment = {literal(detected_comment)}"
    delimiter, quote = (" ", '"') if spaced else (delimiter, quote)
    options = [("delimiter", delimiter)] if delimiter != "," else []
    options += [("quote", quote)] if quote not in {'"', "", "(empty)"} else []
    options += [("escape", "\\")] if spaced and spaced.escaped else []
    options += [("names", ",".join(names))] if names else []
    options += [("comment", comment)] if comment else []
    if delimiter != "," and _has_decimal_comma(connection, parameters, arguments):
        options.append(("decimal", ","))
        arguments += ", decimal_separator = ',', thousands = '.'"
    options += [("nullValue", missing)] if missing else []
    options += [("encoding", encoding)] if encoding else []
    refused, file_names = (
        ({}, {}) if names else _refused_and_renamed(connection, parameters, arguments.replace(", header = true", ""))
    )
    unreadable = set()
    for option, kind, form in (("dateFormat", "date", date), ("timestampFormat", "timestamp", time)):
        if form and form not in _ISO_PATTERNS and "%y" not in form:  # DuckDB misplaces years of two digits
            pattern = java_pattern(form)
            if pattern:
                options.append((option, pattern))
            else:
                unreadable.add(kind)
    query = f"SELECT * FROM read_csv($file, ignore_errors = true{arguments})"
    doubts = (("encoding", guessed), ("names", bool(names) and not (spaced and spaced.names)))
    doubtful = tuple(name for name, is_doubtful in doubts if is_doubtful)
    return CsvDialect(tuple(options), frozenset(unreadable), path, query, doubtful, refused, file_names)


def _sniffed(connection: DuckDBPyConnection, parameters: dict[str, str], arguments: str) -> tuple[Any, ...]:
    """Return DuckDB's findings: delimiter, quote, presence of a header, formats of dates and times, comment, skipped lines.

    If records lack fields, DuckDB may take each line for one field; a second query then ignores the incomplete records.
    """
    query = "SELECT Delimiter, Quote, HasHeader, DateFormat, TimestampFormat, Comment, SkipRows, Columns[1].name, len(Columns)"
    query += " FROM sniff_csv($file{})"
    row = connection.execute(query.format(arguments), parameters).fetchone() or (",", '"', True, None, None, None, 0, "", 0)
    if row[-1] == 1 and _SEPARATORS.search(row[-2]):
        second_row = connection.execute(query.format(", ignore_errors = true" + arguments), parameters).fetchone()
        row = second_row if second_row is not None and second_row[-1] > 1 else row
    return row[:-2]


def _refused_and_renamed(
    connection: DuckDBPyConnection, parameters: dict[str, str], arguments: str
) -> tuple[dict[int, str], dict[int, str]]:
    """Return, by position, why columns cannot be declared, and the names that repeat an earlier name in another case."""
    rows_sql = f"read_csv($file, header = false, all_varchar = true, ignore_errors = true{arguments})"
    row = connection.execute(f"SELECT * FROM {rows_sql} LIMIT 1", parameters).fetchone() or ()
    names = [(name or "").strip() for name in row]
    refused = {index: "it has no name in the header" for index, name in enumerate(names) if not name}
    repeated = {index for index, name in enumerate(names) if name and names.count(name) > 1}
    refused |= dict.fromkeys(repeated, "its name stands in the header more than once")
    lower = [name.lower() for name in names]
    file_names = {index: name for index, name in enumerate(names) if index not in refused and lower.index(name.lower()) < index}
    return refused, file_names


def _numbered_names(connection: DuckDBPyConnection, parameters: dict[str, str], arguments: str) -> tuple[str, ...]:
    """Return names for the columns of a file without a header: ``column1`` is the first."""
    row = connection.execute(f"SELECT len(Columns) FROM sniff_csv($file{arguments})", parameters).fetchone()
    return tuple(f"column{number}" for number in range(1, (row[0] if row else 0) + 1))


def _missing_word(connection: DuckDBPyConnection, parameters: dict[str, str], lines: Sequence[str], arguments: str) -> str | None:
    """Return the word for a missing value: read as null, it makes more columns numbers or times; None if no word does."""
    fields = {field.strip('"') for line in lines for field in _SEPARATORS.split(line)}

    def texts(words: str) -> int:
        kinds = f"DESCRIBE SELECT * FROM read_csv($file, ignore_errors = true{arguments}{words})"
        return [kind for _, kind, *_ in connection.execute(kinds, parameters).fetchall()].count("VARCHAR")

    words = [word for word in _MISSING_WORDS if word in fields]
    return next((word for word in words if texts(f", nullstr = ['', {literal(word)}]") < texts("")), None)


def misfitting_records(connection: DuckDBPyConnection, dialect: CsvDialect) -> tuple[int, str, str]:
    """Return the number of records at the beginning of a file that do not fit the others, a column, and an example.

    The table ``sample`` does not have these records. If they have another number of fields, the column is empty and the example
    is such a record. If they have text in a column of numbers, the results are that column and such a text.
    """
    count, record = _records_of_other_length(connection, dialect)
    if count:
        return count, "", record
    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    unfit = {name: f"TRY_CAST({quoted(name)} AS {kind}) IS NULL AND {quoted(name)} IS NOT NULL"
             for name, kind in described if kind in _NUMBERS}  # fmt: skip
    if not unfit or "decimal" in dict(dialect.options):
        return 0, "", ""
    examples = [f"CASE WHEN {bad} THEN [{literal(name)}, {quoted(name)}] END" for name, bad in unfit.items()]
    texts_query = f"({dialect.query.removesuffix(')')}, all_varchar = true) LIMIT {SAMPLE})"
    query = f"SELECT count(*), first(coalesce({', '.join(examples)})) FROM {texts_query} WHERE {' OR '.join(unfit.values())}"
    count, example = connection.execute(query, dialect.parameters).fetchone() or (0, None)
    column, text = example or ("", "")
    return count, column, text


def _records_of_other_length(connection: DuckDBPyConnection, dialect: CsvDialect) -> tuple[int, str]:
    """Return the number of records with fewer or more fields than the others, and the first such record."""
    texts_query = f"{dialect.query.removesuffix(')')}, all_varchar = true, store_rejects = true)"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE all_texts AS {texts_query} LIMIT {SAMPLE}", dialect.parameters)
    short_or_long = "error_type IN ('MISSING COLUMNS', 'TOO MANY COLUMNS')"
    query = f"SELECT count(DISTINCT line), first(csv_line ORDER BY line) FROM reject_errors WHERE {short_or_long}"
    count, record = connection.execute(query).fetchone() or (0, None)
    return count, record or ""


def times_that_need_a_pattern(connection: DuckDBPyConnection, dialect: CsvDialect) -> list[str]:
    """Return the columns of the table ``sample`` that are times for DuckDB, and whose text Spark reads only with a pattern."""
    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    parameters = {"file": literal_path(dialect.path), "iso": _ISO}
    texts_query = dialect.query.removesuffix(")") + ", all_varchar = true)"
    options = {option for option, _ in dialect.options}
    columns = []
    for name, kind in described:
        option = "dateFormat" if kind == "DATE" else "timestampFormat" if kind.startswith("TIMESTAMP") else None
        if option is None or option in options:
            continue
        column = quoted(name)
        texts = f"(SELECT {column} FROM ({texts_query}) LIMIT {SAMPLE})"
        query = f"SELECT count(*) FROM {texts} WHERE NOT regexp_full_match(trim({column}), $iso)"
        (other,) = connection.execute(query, parameters).fetchone() or (0,)
        columns += [name] if other else []
    return columns


def false_numbers(connection: DuckDBPyConnection, dialect: CsvDialect) -> list[str]:
    """Return the columns of the table ``sample`` that are numbers for DuckDB alone: points between any digits, as in 10.0.0.1."""
    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    names = [name for name, kind in described if kind in _NUMBERS]
    if not names or "decimal" not in dict(dialect.options):
        return []
    fits = (f"bool_and(regexp_full_match(trim({quoted(name)}), {literal(_NUMBER_WITH_COMMA)}))" for name in names)
    texts_query = f"({dialect.query.removesuffix(')')}, all_varchar = true) LIMIT {SAMPLE})"
    row = connection.execute(f"SELECT {', '.join(fits)} FROM {texts_query}", dialect.parameters).fetchone() or ()
    return [name for name, fit in zip(names, row, strict=True) if fit is False]


def literal_path(source: Path) -> str:
    """Return a path in which the characters of patterns are escaped, so that DuckDB reads that one file."""
    return re.sub(r"([\[\]*?])", r"[\1]", str(source))


def java_pattern(strptime: str) -> str | None:
    """Return Spark's pattern for a strptime one.

    >>> java_pattern("%d/%m/%Y %H:%M")
    'dd/MM/yyyy HH:mm'
    """
    parts = _PART.findall(strptime)
    if any(part.startswith("%") and part not in PATTERN_PARTS for part in parts):
        return None
    return "".join(PATTERN_PARTS.get(part, f"'{part}'" if part.isalpha() else part) for part in parts)


def _leading_comment(lines: Sequence[str]) -> str | None:
    """Return the sign that begins the lines before the header; None if there is none, or the first line is the header itself."""
    filled = [line for line in lines if line.strip()][:1000]
    sign = filled[0].removeprefix("\ufeff")[:1] if filled else ""
    if not sign or sign not in _COMMENT_SIGNS:
        return None
    notes = next((number for number, line in enumerate(filled) if not line.removeprefix("\ufeff").startswith(sign)), len(filled))
    if notes == len(filled):
        return None
    signs = [(filled[0].count(separator), filled[notes].count(separator)) for separator in ",;\t|"]
    header = notes == 1 and not filled[0][1:2].isspace() and any(first == second > 0 for first, second in signs)
    return None if header else sign


def _has_decimal_comma(connection: DuckDBPyConnection, parameters: dict[str, str], arguments: str) -> bool:
    """Whether a column has numbers with a comma, and no column has numbers with a decimal point."""
    texts_query = f"SELECT * FROM read_csv($file, ignore_errors = true, all_varchar = true{arguments}) LIMIT {SAMPLE}"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE sample AS {texts_query}", parameters)
    commas = False
    for (name,) in connection.execute("SELECT column_name FROM (DESCRIBE sample)").fetchall():
        text = f"trim({quoted(name)})"
        like = [
            f"regexp_full_match({text}, {literal(pattern)})"
            for pattern in (_NUMBER_WITH_COMMA, _CERTAIN_DECIMAL_COMMA, _NUMBER_WITH_POINT)
        ]
        conditions = ("true", *like[:2], f"{like[2]} AND NOT {like[0]}")
        counts = ", ".join(f"count(*) FILTER ({condition})" for condition in conditions)
        row = connection.execute(f"SELECT {counts} FROM sample WHERE {text} != ''").fetchone()
        filled, numbers, sure, pointed = row or (0, 0, 0, 0)
        if pointed:
            return False
        commas = commas or (filled > 0 and numbers == filled and sure > 0)
    return commas


def _encoding(source: Path) -> tuple[str | None, bool]:
    """Return the encoding of a file (None: UTF-8), and whether it is a guess."""
    head = _head(source)
    if head[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        command = f"iconv -f UTF-32 -t UTF-8 {shlex.quote(str(source))} > utf8.csv"
        raise UsageError(f"{source} is in UTF-32, which updates do not read; convert it (`{command}`)")
    if head[:2] in _BYTE_ORDER_MARKS:
        return _BYTE_ORDER_MARKS[head[:2]], False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        text = False
    else:
        text = True
    for zeros, name in ((head[1::2].count(0), "UTF-16LE"), (head[::2].count(0), "UTF-16BE")):
        if zeros > len(head) // 4:
            return name, False
    if text:
        return None, False
    return ("windows-1252" if _WINDOWS_1252.search(head) else "ISO-8859-1"), True


def _in_utf8(source: Path, encoding: str, folder: Path) -> Path:
    """Copy a file, or its beginning, in UTF-8."""
    target = folder / "copy.csv"
    with _open(source) as content:
        text = content.read(_COPY_BYTES).decode(encoding, errors="replace").removeprefix("\ufeff")
    target.write_text(text, newline="")
    return target


def _head(source: Path) -> bytes:
    with _open(source) as content:
        return content.read(_HEAD_BYTES)


@contextmanager
def _open(source: Path) -> Iterator[IO[bytes]]:
    with source.open("rb") as raw:
        yield open_decompressed(raw, source.name)
