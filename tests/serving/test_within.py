"""Answers within a time: exact when it sufficed, else estimates whose bounds hold, whatever was read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.errors import QueryError, UsageError
from warehouse.limits import limited
from warehouse.serving import Reader
from warehouse.serving.clock import Clock
from warehouse.storage.key_summaries import write_summary
from warehouse.storage.snapshot import DataFile
from warehouse.time import MINUTE, NEVER

from .house import ANCHOR, House, Row, Table, add_epoch, table_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LONG = 600_000_000
EXACT = (
    "SELECT count(*) FROM names",
    "SELECT name, count(*) AS n, sum(value), avg(value), median(value) FROM names GROUP BY name",
    "SELECT count(weight) AS w, sum(weight) AS s, avg(weight) AS a FROM names WHERE value > 3",
    "SELECT n % 3 AS rest, day > DATE '2013-01-05' AS later, count(*), sum(n * 2) FROM days d GROUP BY 1, 2",
    "SELECT sum(amount), median(amount), count(amount) FROM amounts WHERE amount IS NOT NULL",
    "SELECT amount, count(*) FROM amounts GROUP BY amount",
    "SELECT moment, count(*) FROM moments GROUP BY ALL",
    "SELECT day, count(*) FROM days GROUP BY day",
    "SELECT a, b, count(*) FROM pairs GROUP BY a, b",
    "SELECT count(*), sum(v), avg(v), median(v) FROM nothing",
    "SELECT k, count(*) FROM nothing GROUP BY k",
)


@pytest.fixture(scope="module")
def files(house: House) -> Iterator[Reader]:
    """A reader of files."""
    with Reader.open(house.root) as opened:
        yield opened


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that ends the time after so many files."""

    def limit(files: int) -> None:
        left = [files]

        def some(_: Clock, unread: list[DataFile], reserve: float) -> list[DataFile]:
            assert reserve >= 0
            batch = unread[: min(1, left[0])]
            left[0] -= len(batch)
            del unread[: len(batch)]
            return batch

        monkeypatch.setattr(Clock, "next_files", some)

    return limit


def values_of(rows: list[tuple[Any, ...]], columns: list[str]) -> list[tuple[Any, ...]]:
    """Return rows without the bounds."""
    positions = [position for position, name in enumerate(columns) if not name.endswith(("_low", "_high"))]
    return sorted((tuple(row[position] for position in positions) for row in rows), key=repr)


@pytest.mark.parametrize("query", EXACT)
def test_with_time_enough_the_answer_is_that_of_the_plain_query(files: Reader, query: str) -> None:
    """Values and types are the same, and the bounds of numbers meet."""
    plain, within = files.sql(query), files.sql(query, within=LONG)
    assert within.within is not None
    assert within.within.exact
    names = [name for name, _ in within.columns]
    assert values_of(within.all(), names) == sorted(plain.all(), key=repr)
    columns = [column for column in within.columns if not column[0].endswith(("_low", "_high"))]
    assert columns == list(plain.columns)
    assert within.metadata["stream_wh.exact"] == "true"


def test_at_a_later_instant_less_is_live(files: Reader, house: House) -> None:
    """Rows that end by `now` count for nothing, in the bounds as little as in the answer."""
    later = house.epochs[-1].window_time + 90 * MINUTE
    query = "SELECT count(*), sum(value) FROM names"
    ((count, *_, total, _, _),) = files.sql(query, within=LONG, now=later).all()
    assert [(count, total)] == files.sql(query, now=later).all()


@pytest.mark.parametrize("seed", range(60))
def test_bounds_hold_however_little_was_read(
    files: Reader, house: House, only: Callable[[int], None], seed: int
) -> None:
    """After any number of files, with filters, groups and later instants, truth and estimate are within the bounds."""
    random = Random(seed)  # noqa: S311 - a test draws its data
    conditions = ["", "value > 4", "name = 'a'", "name = 'aa' AND value < 9", "name > 'b'"]
    condition = f" WHERE {predicate}" if (predicate := random.choice(conditions)) else ""
    group = random.choice(["", "name", "value % 2"])
    items = ", ".join([*([f"{group} AS g"] if group else []), "count(*) AS n", "count(weight) AS w", "sum(value) AS s",
                       "avg(value) AS a", "median(value) AS m", "sum(weight) AS f"])  # fmt: skip
    query = f"SELECT {items} FROM names{condition}" + (f" GROUP BY {group}" if group else "")
    now = house.epochs[-1].window_time + 90 * MINUTE if random.random() < 0.3 else None
    plain = files.sql(query, now=now)
    truth = {row[: bool(group)]: row[bool(group) :] for row in plain.all()}
    only(random.randint(0, 5))
    answer = files.sql(query, within=LONG, now=now)
    assert answer.within is not None
    for row in answer.all():
        key, numbers = row[: bool(group)], row[bool(group) :]
        for position, true in enumerate(truth.get(key, ())):
            value, low, high = numbers[3 * position : 3 * position + 3]
            for figure in (true, value):
                assert figure is None or low is None or low <= figure, (query, position)
                assert figure is None or high is None or figure <= high, (query, position)
    if answer.within.groups_complete or not group:
        assert {row[: bool(group)] for row in answer.all()} == set(truth)


def test_what_was_not_read_is_told(files: Reader, only: Callable[[int], None]) -> None:
    """The answer has the numbers of files and rows read, and whether there may be more groups."""
    only(1)
    within = files.sql("SELECT name, sum(value) FROM names GROUP BY name", within=LONG).within
    assert within is not None
    assert (within.exact, within.files_read, within.groups_complete) == (False, 1, False)
    assert 0 < within.rows_read < within.rows
    assert str(within).startswith("an estimate with certain bounds")
    assert str(replace(within, exact=True)).startswith("exact")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT max(value) FROM names",
        "SELECT * FROM names",
        "SELECT count(DISTINCT value) FROM names",
        "SELECT count(*) + 1 FROM names",
        "SELECT count(*) FROM names GROUP BY name HAVING count(*) > 1",
        "SELECT name, count(*) FROM names GROUP BY name ORDER BY 2",
        "SELECT count(*) FROM names LIMIT 1",
        "SELECT count(*) FROM names a, names b",
        "SELECT count(*) FROM (SELECT * FROM names)",
        "SELECT count(*) FROM names WHERE random() < 0.5",
        "SELECT count(*) FROM _epochs",
        "SELECT sum(name) FROM names",
        "SELECT parts, count(*) FROM names GROUP BY parts",
        "WITH n AS (SELECT * FROM names) SELECT count(*) FROM n",
        "SELECT 1",
    ],
)
def test_other_queries_are_refused(files: Reader, query: str) -> None:
    """What has no estimate with bounds is an error of the user's (exit code 2), with what helps."""
    with pytest.raises(QueryError) as caught:
        files.sql(query, within=LONG)
    assert caught.value.exit_code == 2


def test_a_time_is_above_zero_and_goes_with_nothing_else(files: Reader) -> None:
    """No time, parameters and the newest epoch are refused."""
    for within in (0, -1, True, 0.5):
        with pytest.raises(UsageError, match="within"):
            files.sql("SELECT count(*) FROM names", within=within)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="without parameters"):
        files.sql("SELECT count(*) FROM names WHERE name = ?", ["a"], within=1000)
    with pytest.raises(UsageError, match="goes with keys alone"):
        files.probe("names", from_="a", within=1000)


def test_rows_of_keys_that_are_found_in_time(files: Reader, only: Callable[[int], None]) -> None:
    """With enough time the rows are the rows of a probe, in its order; else the answer has some of them, and says so."""
    plain = files.probe("names", ["a", "b", None]).all()
    whole = files.probe("names", ["a", "b", None], within=LONG)
    assert whole.all() == plain
    assert whole.within is not None
    assert whole.within.exact
    assert files.probe("names", ["a", "b"], columns=["value"], limit=2, within=LONG).all()
    only(1)
    partial = files.probe("names", ["a", "b", None], within=LONG)
    assert partial.within is not None
    assert not partial.within.exact
    assert [row for row in plain if row in partial.all()] == partial.all()
    only(0)
    assert files.probe("names", ["a"], within=LONG).all() == []


def test_a_clock_begins_nothing_that_does_not_fit() -> None:
    """First the smallest file is read; then what is foreseen to end in time, at most half of the rest at once."""
    sizes = (50, 10, 400, 90, 100)
    files = [DataFile(str(size), size, size, 1, 0, {}) for size in sizes]
    now = [0.0]
    clock = Clock(10.0, 0.0, lambda: now[0])
    assert [file.size for file in clock.next_files(files, 0.0)] == [10]
    clock.measured(10, 0.1)
    now[0] = 1.0
    assert [file.size for file in clock.next_files(files, 0.0)] == [50, 400]
    now[0] = 9.0
    assert clock.next_files([DataFile("x", 90, 90, 1, 0, {})], 0.0) == []
    assert [file.size for file in clock.next_files(files, 0.0)] == []
    assert [file.size for file in Clock(10.0, 0.0, lambda: 0.0, 0.01).next_files(files, 8.0)] == [90]
    assert Clock(1.0, 0.0, lambda: 2.0).next_files(files, 0.0) == []


ODD = (
    "SELECT count(*) FROM odd WHERE k = 1",
    "SELECT count(*) FROM odd WHERE k = '1'",
    "SELECT count(*) FROM odd WHERE '01' = k",
    "SELECT count(*) FROM odd WHERE k = '01' AND value = 0",
    "SELECT count(*) FROM odd k WHERE k.value = 1",
    "SELECT sum(value.n), avg(value.n) FROM odd value",
    "SELECT count(k), count(name) FROM odd",
    "SELECT sum(far) FROM odd",
    "SELECT sum(wider), avg(wider), median(wider) FROM odd",
)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a table with key summaries: texts that are the same number, infinity, and floats in a column that is now double."""
    columns = (("k", "string", pa.string()), ("value", "int", pa.int32()), ("n", "bigint", pa.int64()),
               ("name", "string", pa.string()), ("far", "double", pa.float64()), ("wider", "double", pa.float32()))  # fmt: skip
    rows = [
        Row((key, value, 10**12 + value, "ß", float("inf") if value == 2 else 1.5, 0.1), ANCHOR, NEVER, load)
        for load in (1, 2, 3)
        for value, key in enumerate(["1", "01", "1.0", "2"] * 4)
    ]
    table = Table("odd", columns, ("k",), tuple(rows))
    house = House(tmp_path_factory.mktemp("odd") / "root", {"odd": table})
    for number, at in enumerate((1, 2, 3)):
        add_epoch(house, number, at, (table_state(house, table, at, number),), ())
    data = house.root / "tables" / "odd"
    with limited(summary_share=50.0):
        for file in data.glob("sub_index=*/*/*.parquet"):
            write_summary(file, ("k",))
    schema = data / "_schema" / "columns.parquet"
    stored = pq.read_table(schema)
    index = stored.schema.get_field_index("wider")
    pq.write_table(stored.set_column(index, "wider", stored["wider"].cast(pa.float64())), schema)
    return house.root


@pytest.mark.parametrize("files", [0, 1, 3, 99])
@pytest.mark.parametrize("query", ODD)
def test_bounds_hold_of_columns_that_are_not_what_they_seem(
    odd: Path, only: Callable[[int], None], query: str, files: int
) -> None:
    """Texts compared with numbers, a name of both table and column, and values that are no plain numbers."""
    with Reader.open(odd) as reader:
        (plain,) = reader.sql(query).all()
        only(files)
        answer = reader.sql(query, within=LONG)
        (row,) = answer.all()
        assert answer.within is not None
        for position, true in enumerate(plain):
            value, low, high = row[3 * position : 3 * position + 3]
            assert low is None or low <= true, (query, row)
            assert high is None or true <= high, (query, row)
            assert value == true or not answer.within.exact


FAR = (
    "SELECT sum(big), count(big) FROM far",
    "SELECT k, sum(big) FROM far GROUP BY k",
    "SELECT day + 1 AS d, t + INTERVAL 1 DAY AS later, count(*) FROM far GROUP BY ALL",
    "SELECT day AS d, median(n) FROM far GROUP BY day",
    "SELECT day + 30 AS d, median(n) FROM far GROUP BY 1",
)


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a table with the widest decimals and with the last day that Python has."""
    columns = (("k", "string", pa.string()), ("big", "decimal(38,0)", pa.decimal128(38, 0)), ("day", "date", pa.date32()),
               ("t", "timestamp", pa.timestamp("us", "UTC")), ("n", "int", pa.int32()))  # fmt: skip
    days = (date(9999, 12, 31), None, date(1, 1, 1))
    values = [("ab"[i % 2], Decimal("6e37" if i == load == 2 else "-1"), days[i % 3], i) for load in (1, 2, 3) for i in range(9)]
    rows = [
        Row((k, big, day, day and datetime(day.year, day.month, day.day, tzinfo=UTC), i), ANCHOR, NEVER, 1 + index // 9)
        for index, (k, big, day, i) in enumerate(values)
    ]
    table = Table("far", columns, ("k",), tuple(rows))
    house = House(tmp_path_factory.mktemp("far") / "root", {"far": table})
    for number, at in enumerate((1, 2, 3)):
        add_epoch(house, number, at, (table_state(house, table, at, number),), ())
    return house.root


@pytest.mark.parametrize("files", [0, 1, 2, 99])
@pytest.mark.parametrize("query", FAR)
def test_values_at_the_end_of_their_types(far: Path, only: Callable[[int], None], query: str, files: int) -> None:
    """Bounds of a sum stay in its type, which the true sum fits; groups may be days and times beyond Python's."""
    with Reader.open(far) as reader:
        plain, groups = reader.sql(query), query.count(" AS ") or query.count("GROUP BY")
        truth = {repr(row[:groups]): row[groups:] for row in plain.all()}
        only(files)
        answer = reader.sql(query, within=LONG)
        rows = answer.all()
    assert answer.within is not None
    assert not answer.within.exact or {repr(row[:groups]) for row in rows} == set(truth)
    for row in rows:
        for position, true in enumerate(truth[repr(row[:groups])]):
            value, low, high = row[groups + 3 * position : groups + 3 * position + 3]
            assert value == true or not answer.within.exact, (row, true)
            assert low is None or low <= true, (row, true)
            assert high is None or true <= high, (row, true)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(big * 2) FROM far",
        "SELECT sum(big) FROM far WHERE big < 0 OR regexp_matches(k, '(')",
        "SELECT sum(CAST(k AS INT)) FROM far",
    ],
)
def test_what_fails_without_a_time_is_the_query_s_error_with_one(far: Path, query: str) -> None:
    """It is the user's, and no file's."""
    with Reader.open(far) as reader:
        for within in (None, LONG):
            with pytest.raises(QueryError):
                reader.sql(query, within=within).all()


def test_a_sum_beyond_its_type_is_an_error(far: Path, only: Callable[[int], None]) -> None:
    """Several files of which each has a sum that fits."""
    only(99)
    with Reader.open(far) as reader, pytest.raises(QueryError, match=r"sum\(.*\) does not fit DECIMAL\(38,0\)"):
        reader.sql("SELECT sum(CASE WHEN n = 1 THEN CAST('6e37' AS DECIMAL(38,0)) END) FROM far", within=LONG).all()
