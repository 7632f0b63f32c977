"""What is typed at a prompt: table and column names, keys, conditions, queries. None reads more than it may, or takes more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from warehouse.cli.keys import keys_of_lines, named_key, positional_key
from warehouse.errors import QueryError, QueryTimeoutError, UnknownNameError, UsageError, WarehouseError
from warehouse.serving import Reader
from warehouse.serving.engine import Resources
from warehouse.serving.keys import KeyColumn

from . import fuzzing

if TYPE_CHECKING:
    from tests.serving.house import House

ROOT = Path(__file__).parent.parent.parent
fuzzed = fuzzing.fuzzed(120, suppress_health_check=[HealthCheck.function_scoped_fixture])
INJECTED = (
    "' OR 1=1 --",
    "'; DROP VIEW names; --",
    '" OR ""="',
    "a') OR true --",
    "\0",
    "\\",
    "%",
    "$1",
    "?",
    "x" * 100_000,
    "a\nb",
    "\u202e",
    "'||(SELECT max(name) FROM names)||'",
)


@pytest.mark.parametrize("text", INJECTED, ids=range(len(INJECTED)))
def test_a_key_is_a_value(house: House, reader: Reader, text: str) -> None:
    """A key is bound, never part of a query: one that no row has finds nothing, in every way to give it."""
    assert not any(row.values[0] == text for row in house["names"].live(4))
    assert reader.probe("names", [text]).all() == []
    assert reader.probe("names", [text, text + "'"]).all() == []
    assert reader.probe("names", from_=text, to=text).all() == []
    assert reader.probe("names", [positional_key(text, reader.key_columns("names"))]).all() == []


@pytest.mark.parametrize("text", [*INJECTED, "../../epochs", "/etc/passwd", "names; DROP", "\udcff"], ids=range(17))
def test_a_name_is_looked_up(reader: Reader, text: str) -> None:
    """A table or column is one of those that exist; its name never reaches a query or a path."""
    for call in (
        lambda: reader.probe(text, ["a"]),
        lambda: reader.scan(text),
        lambda: reader.columns(text),
        lambda: reader.restored(text),
        lambda: reader.scan("names", columns=[text]),
        lambda: reader.probe("names", ["a"], columns=["name", text]),
    ):
        with pytest.raises(UnknownNameError, match=r"^no (table|column) named"):
            call()


BAD_CONDITIONS = {
    "closing the parenthesis": "true) UNION SELECT * FROM names WHERE (true",
    "a statement behind it": "true; DROP VIEW names",
    "an open comment": "true /*",
    "a comment at its end": "true) --",
    "a sub-query": "name IN (SELECT name FROM names)",
    "a file": "name = (SELECT content FROM read_text('/etc/passwd'))",
    "a parameter": "name = ?",
    "an order": "true ORDER BY 1",
    "a limit": "true LIMIT 1",
    "deep": "NOT " * 900 + "true",
    "long": "1" + "+1" * 900 + " > 0",
    "many parentheses": "(" * 3000 + "true" + ")" * 3000,
    "bytes that are no text": "name = '\udcff'",
    "no condition": "   ",
    "no boolean": "1",
    "a star": "count(*) > 0",
}


@pytest.mark.parametrize("text", BAD_CONDITIONS.values(), ids=list(BAD_CONDITIONS))
def test_a_condition_is_one_condition(reader: Reader, text: str) -> None:
    """Whatever would end it, add to it or read elsewhere is refused before it runs."""
    with pytest.raises(QueryError):
        reader.scan("names", where=text).all()


BAD_QUERIES = {
    "deep": "SELECT " + "NOT " * 900 + "true",
    "long": "SELECT 1" + "+1" * 900,
    "many parentheses": "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "many terms": "SELECT 1" + "+1" * 50_000,
    "bytes that are no text": "SELECT '\udcff'",
}


@pytest.mark.parametrize("text", BAD_QUERIES.values(), ids=list(BAD_QUERIES))
def test_a_query_that_is_too_much_to_parse(reader: Reader, text: str) -> None:
    """It is refused as a query, and the reader goes on."""
    with pytest.raises(QueryError):
        reader.sql(text).all()
    assert reader.sql("SELECT 1").all() == [(1,)]


WORDS = """
    SELECT FROM WHERE names system.names ( ) , * + - / 'a' " ' ; -- /* */ NOT NULL true 1e999 1 name value _exp read_text glob
    COPY TO ATTACH '/etc/passwd' UNION ALL JOIN ON = < > [ ] { } :: AS x WITH r ORDER BY LIMIT $1 ? EXPLAIN DESCRIBE lambda :
    INTERVAL CASE WHEN END CAST list_transform range query current_setting PIVOT UNPIVOT
"""
words = st.sampled_from(WORDS.split())


@fuzzed
@given(st.lists(words, max_size=14).map(" ".join))
@example("SELECT * FROM query ( 'SELECT 1' )")
@example("FROM ( DESCRIBE system.names )")
@example("SELECT current_setting ( 'a' )")
@example("WITH x AS ( COPY names TO '/tmp/x' ) SELECT 1")
def test_any_words_as_a_query(bounded: Reader, text: str) -> None:
    """A query of any words is answered or refused."""
    try:
        bounded.sql(text).all()
    except WarehouseError as error:
        assert error.exit_code in (1, 2)  # noqa: PT017 - either outcome is right


@fuzzed
@given(st.lists(words, max_size=10).map(" ".join))
@example("true ) OR ( true")
@example("name = 'a' -- ")
def test_any_words_as_a_condition(bounded: Reader, house: House, text: str) -> None:
    """A condition of any words leaves rows out or is refused; it never adds rows."""
    try:
        rows = bounded.scan("names", where=text).all()
    except WarehouseError as error:
        assert error.exit_code in (1, 2)  # noqa: PT017 - either outcome is right
    else:
        assert len(rows) <= len(house["names"].live(4))


@pytest.fixture(scope="module")
def bounded(house: House) -> Any:  # noqa: ANN401 - an iterator
    """A reader whose queries may take 0.4 seconds and 200 MB."""
    with Reader.open(house.root, resources=Resources("200MB", 2, spill_limit="50MB", timeout=400_000)) as opened:
        yield opened


KINDS = ("INTEGER", "BIGINT", "DECIMAL(5,2)", "DATE", "TIMESTAMP WITH TIME ZONE", "BOOLEAN", "VARCHAR")


@fuzzed
@given(text=st.one_of(st.text(max_size=40), st.from_regex(r"[-+0-9.eE_:TZ]{1,40}")), kind=st.sampled_from(KINDS))
@example(text="9" * 5000, kind="INTEGER")
@example(text="1e999999999", kind="DECIMAL(5,2)")
@example(text="٣", kind="INTEGER")
@example(text="294247-01-10", kind="DATE")
@example(text="\udcff", kind="VARCHAR")
@example(text="infinity", kind="TIMESTAMP WITH TIME ZONE")
def test_any_text_as_a_key(text: str, kind: str) -> None:
    """A text is a key of the type, or a usage error."""
    try:
        (key,) = positional_key(text, [KeyColumn("k", kind)])
    except UsageError:
        return
    assert key is not None


PAIR = [KeyColumn("k", "VARCHAR"), KeyColumn("n", "INTEGER")]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '["a", 1e999]', '["a", {"a": 1}]', "[NaN]", '["a", 1, 2]', "[[]]", '["a", 99999999999]'], ids=range(7)
)
def test_bad_composite_keys(tmp_path: Path, text: str) -> None:
    """A JSON array that is no key is a usage error, as an argument and as a line of a file."""
    with pytest.raises(UsageError):
        positional_key(text, PAIR)
    (tmp_path / "keys").write_text(f'["a", 1]\n{text}\n')
    with pytest.raises(UsageError, match="line 2"):
        list(keys_of_lines(tmp_path / "keys", PAIR))
    with pytest.raises(UsageError):
        named_key([f"k={text}", "k=again"], PAIR)


# --- what a query may take ---


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM range(1000000000) a, range(100000) b",
        "SELECT * FROM range(1000000000) a, range(100000) b",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT max(i) FROM r",
        "SELECT sleep_ms(20000)",
        "SELECT count(*) FROM names WHERE sleep_ms(20000) IS NULL",
    ],
)
def test_a_query_ends_when_its_time_is_up(bounded: Reader, text: str) -> None:
    """Also while it is planned, and however its rows are read; the reader answers the next."""
    for read in (lambda answer: sum(len(rows) for rows in answer.rows()), lambda answer: answer.arrow()):
        started = time.monotonic()
        with pytest.raises(QueryTimeoutError, match=r"longer than 400ms; .*--timeout"):
            read(bounded.sql(text))
        assert time.monotonic() - started < 15
    assert bounded.sql("SELECT 1").all() == [(1,)]


def test_a_condition_ends_when_its_time_is_up(bounded: Reader) -> None:
    """As a query does."""
    with pytest.raises(QueryTimeoutError):
        bounded.scan("names", where="sleep_ms(20000) IS NULL").all()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT string_agg(repeat('x', 100000), '') FROM range(1000000)",
        "SELECT list(i) FROM range(1000000000) t(i)",
        "SELECT i, hash(i) AS h FROM range(30000000) t(i) ORDER BY h",
    ],
)
def test_a_query_has_its_memory_and_its_disk(house: House, text: str) -> None:
    """What takes more fails by itself, with the setting that would give it more."""
    with (
        Reader.open(house.root, resources=Resources("100MB", 1, spill_limit="20MB")) as reader,
        pytest.raises(WarehouseError, match=r"Out of Memory.*`memory` and `spill` in \[sql\]"),
    ):
        for _ in reader.sql(text).rows():
            pass


@pytest.mark.parametrize(
    ("query", "seconds", "code", "message"),
    [
        ("SELECT length(repeat('x', 4000000000))", 50, 2, "values beyond its memory"),
        ("SELECT len(range(200000000))", 50, 2, "values beyond its memory"),
        ("SELECT sleep_ms(60000)", 2, 1, "longer than 2s"),
    ],
)
def test_the_command_ends_a_query_that_the_engine_does_not(
    house: House, tmp_path: Path, query: str, seconds: int, code: int, message: str
) -> None:
    """One call of a function is neither counted nor interrupted by the engine; the process is bounded then."""
    script = """
import sys, warehouse.cli.bounds, warehouse.serving.watch
from pathlib import Path
from warehouse.project import Warehouse
from warehouse.catalog.sizes import SqlBounds
import warehouse.cli.reading as reading
warehouse.cli.bounds._OWN_MEMORY = 400_000_000
warehouse.serving.watch._GRACE_SECONDS = 0.5
root, seconds = Path(sys.argv.pop(1)), int(sys.argv.pop(1))
reading.open_project = lambda directory: Warehouse(directory, root, SqlBounds(memory=10**8, timeout=seconds * 1_000_000))
from warehouse.cli.main import main
main()
"""
    run = subprocess.run(
        [sys.executable, "-c", script, str(house.root), str(seconds), "sql", query, "-o", "json"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == code, run.stderr
    failure = json.loads(run.stderr.splitlines()[0])
    assert message in failure["message"]
    assert failure["exit_code"] == code
    assert list(tmp_path.iterdir()) == []
