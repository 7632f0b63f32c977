"""Answers of the newest epoch, put together of partial results where a query is one of aggregates over one table."""

from __future__ import annotations

import math
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.epochs.journal import epoch_path
from warehouse.errors import EpochVacuumedError, QueryError, UsageError, WarehouseError
from warehouse.limits import limited
from warehouse.serving import Reader
from warehouse.serving import answer as answers
from warehouse.serving.aggregation import aggregation_of
from warehouse.serving.pinned_sandboxes import EMPTY

from .house import build, same_tables_later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .house import House

KEPT = (
    "SELECT count(*) FROM names",
    "SELECT count(*) AS n, count(value) v, sum(value), min(value), max(value), avg(value) FROM names",
    "SELECT name, count(*), avg(weight) FROM names GROUP BY name ORDER BY name NULLS FIRST",
    "SELECT upper(name) AS u, length(upper(name)), sum(value) + 1 FROM names GROUP BY upper(name) ORDER BY u",
    "SELECT n.name, max(n.value) - min(n.value) AS spread FROM names n GROUP BY n.name HAVING count(*) > 1 ORDER BY 2, 1",
    "SELECT name, sum(value) FILTER (WHERE weight > 1) FROM names WHERE name LIKE 'a%' GROUP BY ALL ORDER BY ALL",
    "SELECT a, b, count(*) many FROM pairs GROUP BY 1, 2 ORDER BY many DESC, a, b LIMIT 3",
    "SELECT date_trunc('month', day) AS month, sum(n) / count(*) AS mean FROM days GROUP BY month ORDER BY month",
    "SELECT even, count(*), min(amount), max(amount), sum(amount) FROM amounts GROUP BY even ORDER BY even",
    "SELECT CASE WHEN sum(n) > 5 THEN 'many' ELSE 'few' END AS size, count(*) FROM days",
    "SELECT filename, max(moment) FROM moments WHERE moment BETWEEN '1969-01-01' AND '2030-01-01' GROUP BY filename",
    "SELECT count(*), sum(v), max(k) FROM nothing",
    "SELECT k, count(*) FROM nothing GROUP BY k",
    "SELECT count(*), count(*) FROM days",
    "SELECT sum(n) AS s, s + 1 AS t FROM days",
    "SELECT count(*) FROM days HAVING count(*) > 1000",
    "SELECT name, coalesce(name, '-') || '!' FROM names GROUP BY name ORDER BY name",
)
RUN = (
    "SELECT name FROM names",
    "SELECT DISTINCT name, count(*) FROM names GROUP BY name",
    "SELECT count(DISTINCT name) FROM names",
    "SELECT avg(amount) FROM amounts",
    "SELECT median(value) FROM names",
    "SELECT count(*) FROM names, days",
    "SELECT count(*) FROM system.names",
    "SELECT count(*) FROM names WHERE value < (SELECT max(n) FROM days)",
    "SELECT count(*), random() > 2 FROM names",
    "SELECT count(*) FROM days WHERE day < current_date",
    "SELECT count(*) OVER () FROM names",
    "SELECT -n AS n, count(*) FROM days GROUP BY n ORDER BY n + 0",
    "SELECT n % 2 AS rest, count(*) AS _g0 FROM days GROUP BY n % 2 HAVING _g0 > 1",
    "SELECT name, count(*) FROM names GROUP BY ROLLUP (name)",
    "SELECT string_agg(name, ',' ORDER BY name) FROM names",
    "SELECT count(*) FROM (FROM names)",
    "WITH w AS (FROM names) SELECT count(*) FROM w",
    "SELECT count(*) FROM _epochs",
    "SELECT sum(value) FROM names UNION ALL SELECT 1",
)


def near(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    """Whether rows are equal; floats may differ by the order of their sums."""
    return len(found) == len(expected) and all(
        math.isclose(left, right) if isinstance(left, float) and isinstance(right, float) else left == right
        for row, expected_row in zip(sorted(found, key=repr), sorted(expected, key=repr), strict=True)
        for left, right in zip(row, expected_row, strict=True)
    )


@contextmanager
def hidden(house: House, *numbers: int) -> Iterator[None]:
    """Have no epochs of these numbers, then have them."""
    paths = [epoch_path(house.root, number) for number in numbers]
    for path in paths:
        path.rename(path.with_suffix(".hidden"))
    try:
        yield
    finally:
        for path in paths:
            path.with_suffix(".hidden").rename(path)


@pytest.mark.parametrize("query", [*KEPT, *RUN])
def test_the_answer_is_that_of_the_rows(house: House, query: str) -> None:
    """Names, types and rows are the same; after each epoch only new files are read."""
    with hidden(house, 1, 2):
        reader = Reader.open(house.root)
        assert reader.sql(query, isolation="latest").epoch == 0
    for newest in (1, 2):
        with hidden(house, *range(newest + 1, 3)), Reader.open(house.root) as fresh:
            answer, expected = reader.sql(query, isolation="latest"), fresh.sql(query)
            assert answer.columns == expected.columns
            if "random" not in query:
                assert near(answer.all(), expected.all())
            assert (answer.epoch, answer.newest) == (newest, None if "random" in query else True)
            if query in KEPT:
                files = fresh.pin.snapshot(fresh.epoch.tables[0]).files if "names" in query else ()
                assert answer.put is not None
                assert not files or answer.put[1] < answer.put[0]
                repeated = reader.sql(query, isolation="latest")
                assert repeated.put == (answer.put[0], 0)
                assert near(repeated.all(), expected.all())
            else:
                assert answer.put is None
    reader.close()


def test_files_whose_results_are_kept_are_not_opened(own: House) -> None:
    """After an update not even the footers of these files are read, which a query over the rows needs."""
    query = "SELECT name, count(*) FROM names GROUP BY name"
    with Reader.open(own.root) as fresh:
        expected = fresh.sql(query).all()
    with hidden(own, 1, 2):
        reader = Reader.open(own.root)
        begun = reader.sql(query, isolation="latest").put
        assert begun is not None
        for file in reader.pin.live_files(reader.pin.state("names"), reader.epoch.window_time):
            path = Path(file.path)
            path.write_bytes(bytes(path.stat().st_size))
    answer = reader.sql(query, isolation="latest")
    assert (near(answer.all(), expected), answer.epoch) == (True, 2)
    assert answer.put is not None
    assert answer.put[1] < answer.put[0]
    with pytest.raises(WarehouseError):
        reader.sql(query).all()
    reader.close()


def test_files_of_later_epochs_are_read_in_the_same_sandbox(own: House, tmp_path: Path) -> None:
    """The sandbox reads only files below the table's directory, and has no rows of its own."""
    query = "SELECT name, count(*) FROM names GROUP BY name"
    with hidden(own, 1, 2):
        reader = Reader.open(own.root)
        reader.sql(query, isolation="latest").all()
    (begun,) = (sandbox for identity, (sandbox, _) in reader.pin.sandboxes.items() if identity[0] == EMPTY)
    answer = reader.sql(query, isolation="latest")
    assert (answer.epoch, answer.put is not None) == (2, True)
    (still,) = (sandbox for identity, (sandbox, _) in reader.pin.sandboxes.items() if identity[0] == EMPTY)
    assert still is begun
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"x": [1]}), other)
    state = reader.pin.state("names")
    beside = next(path for path in (own.root / "tables").rglob("*.parquet") if not path.is_relative_to(own.root / state.path))
    for file in (other, beside):
        with pytest.raises(duckdb.PermissionException):
            still.execute(f"FROM read_parquet('{file}')")
    assert still.execute("SELECT count(*) FROM names").fetchall() == [(0,)]
    reader.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT avg(value) AS mean FROM names",
        "SELECT count(*) AS rows FROM names GROUP BY value",
        "SELECT typeof(value) AS kind, count(*) AS rows FROM names GROUP BY kind",
    ],
)
def test_a_column_of_another_type_begins_anew(own: House, query: str) -> None:
    """Results of the former type would round values of the new one."""
    with hidden(own, 2):
        reader = Reader.open(own.root)
        reader.sql(query, isolation="latest").all()
        state = reader.pin.state("names")
        before = {file.path for file in reader.pin.live_files(state, reader.epoch.window_time)}
    with Reader.open(own.root) as fresh:
        paths = [file.path for file in fresh.pin.live_files(fresh.pin.state("names"), fresh.epoch.window_time)]
    for path in (*(candidate for candidate in paths if candidate not in before), own.root / state.schema_file):
        rows = pq.read_table(path, partitioning=None)
        halves = pc.add(rows["value"].cast(pa.float64()), 0.5)
        pq.write_table(rows.set_column(rows.schema.get_field_index("value"), "value", halves), path)
    with Reader.open(own.root) as fresh:
        answer, expected = reader.sql(query, isolation="latest"), fresh.sql(query)
        assert answer.columns == expected.columns
        assert near(answer.all(), expected.all())
    reader.close()


def test_an_epoch_that_comes_meanwhile_is_answered(own: House) -> None:
    """Whatever way the answer is read; a pinned one stays as it is."""
    query = "SELECT count(*) AS n FROM names"
    live = {slot: len(own["names"].live(slot)) for slot in (2, 3, 4)}
    ways = (
        lambda answer: answer.all()[0][0],
        lambda answer: answer.arrow()["n"][0].as_py(),
        lambda answer: answer.batches().read_all()["n"][0].as_py(),
        lambda answer: next(iter(answer))[0],
        lambda answer: answer.held().all()[0][0],
    )
    for way in ways:
        for text in (query, f"SELECT * FROM ({query})"):
            with hidden(own, 2):
                reader = Reader.open(own.root)
                pinned, newest = reader.sql(text), reader.sql(text, isolation="latest")
                assert newest.epoch == 1
            assert way(newest) == live[4]
            assert (newest.epoch, newest.newest) == (2, True)
            assert newest.metadata["stream_wh.epoch"] == "2"
            assert newest.window_time == own.epochs[2].window_time
            assert way(pinned) == live[3]
            assert (pinned.epoch, pinned.newest) == (1, None)
            reader.close()
    with hidden(own, 2):
        reader = Reader.open(own.root)
        rows = reader.scan("names", isolation="latest")
    assert len(rows) == len(rows.all()) == live[4]
    reader.close()


def test_a_now_on_the_grid_is_put_together_and_another_one_is_run(house: House) -> None:
    """Partial results are kept by slot, so they give the live rows at the end of any slot, also after the window time."""
    query = "SELECT name, count(*) AS n, sum(value) AS total FROM names GROUP BY name"
    newest = house.epochs[-1]
    with Reader.open(house.root) as reader, Reader.open(house.root) as other:
        files = reader.sql(query, isolation="latest").put
        assert files is not None
        for slots in (2, 0, 1):
            now = newest.window_time + slots * newest.update_interval
            for instant, put in ((now, (files[0], 0)), (now + 1, None)):
                answer = reader.sql(query, now=instant, isolation="latest")
                assert near(answer.all(), other.sql(query, now=instant).all())
                assert (answer.put, answer.newest) == (put, True)


def test_epochs_that_come_faster_than_the_answer(own: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last try stands, and says that it is not the newest."""
    reader = Reader.open(own.root)
    answer = reader.sql("SELECT * FROM names", isolation="latest")
    refresh = reader.refresh
    slots = iter(range(5, 50))
    monkeypatch.setattr(reader, "refresh", lambda: (same_tables_later(own, next(slots)), refresh())[1])
    assert len(answer.all()) == len(own["names"].live(4, own.epochs[2 + answers._ROUNDS].window_time))
    assert (answer.newest, answer.epoch) == (False, 2 + answers._ROUNDS)
    assert answer.staleness > 0


def test_reading_files_ends_when_an_epoch_comes(own: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read until then is not read again."""
    monkeypatch.setattr("warehouse.serving.partial_results._AT_ONCE", 1)
    with hidden(own, 2):
        reader = Reader.open(own.root)
    reader.refresh()
    looks: list[int] = []
    look = reader.pin.local

    def local(paths: list[str]) -> list[str]:
        if paths:
            looks.append(len(paths))
            if len(looks) == 3:
                same_tables_later(own, 4)
        return look(paths)

    monkeypatch.setattr(type(reader.pin), "local", lambda _, paths: local(paths))
    answer = reader.sql("SELECT count(*) FROM names", isolation="latest")
    assert answer.all() == [(len(own["names"].live(4)),)]
    assert answer.put is not None
    assert 0 < answer.put[1] < answer.put[0]  # some were read for the epoch before
    assert answer.epoch == 3
    reader.close()


def test_what_is_kept_is_bounded(house: House) -> None:
    """In bytes, the query used longest ago goes first; one with about as many results as rows is run."""
    first, second = "SELECT name, count(*) FROM names GROUP BY name", "SELECT count(*) FROM names"
    with Reader.open(house.root) as reader:
        for query in (first, second, first):
            assert reader.sql(query, isolation="latest").put is not None
        with limited(partial_bytes=1000):
            assert reader.sql(first, isolation="latest").all()
            assert reader.sql(second, isolation="latest").put is not None
        put = reader.sql(first, isolation="latest").put
        assert put is not None
        assert put[1] == put[0] > 0
        with limited(partial_bytes=0):
            assert reader.sql(second, isolation="latest").all() == [(len(house["names"].live(4)),)]
    with pytest.MonkeyPatch.context() as patch, Reader.open(house.root) as reader:
        patch.setattr("warehouse.serving.partial_results._FEW", 0)
        for _ in range(2):
            answer = reader.sql(first, isolation="latest")
            assert answer.put is None
            assert near(answer.all(), reader.sql(first).all())


def test_what_cannot_be_evaluated_is_an_error_of_the_query(house: House) -> None:
    """As it is without partial results, and so are other values of `isolation`."""
    with Reader.open(house.root) as reader:
        with pytest.raises(QueryError, match="Could not convert"):
            reader.sql("SELECT sum(name::INTEGER) FROM names", isolation="latest").all()
        with pytest.raises(UsageError, match='allowed: "pinned", "latest"'):
            reader.sql("SELECT 1", isolation="newest")  # type: ignore[arg-type]
        answer = reader.sql("SELECT count(*) FROM names WHERE value > ?", [3], isolation="latest")
        assert answer.put is None
        assert answer.all() == reader.sql("SELECT count(*) FROM names WHERE value > 3").all()
    with Reader.open(house.root, as_of=house.epochs[1].window_time) as reader, pytest.raises(UsageError, match="as_of"):
        reader.sql("SELECT 1", isolation="latest")
    with Reader.open(house.root, hot=["names"]) as reader:
        assert reader.sql("SELECT count(*) FROM names", isolation="latest").put is None


def test_erased_files_are_not_answered_from_memory(tmp_path: Path) -> None:
    """Under a local root the files must be there."""
    own = build(tmp_path / "root")
    with Reader.open(own.root) as reader:
        assert reader.sql("SELECT count(*) FROM names", isolation="latest").put is not None
        for file in (own.root / "tables" / "names").glob("sub_index=*/*/*.parquet"):
            file.unlink()
        with pytest.raises(EpochVacuumedError):
            reader.sql("SELECT count(*) FROM names", isolation="latest")


def test_staleness_is_told(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """By every answer: the time since the commit of its epoch."""
    with Reader.open(house.root) as reader:
        for answer in (reader.sql("SELECT 1"), reader.scan("names"), reader.probe("names", ["a"])):
            committed = house.epochs[-1].committed_at
            assert answer.committed_at == committed
            assert answer.metadata["stream_wh.committed"] == "2013-01-01T04:01:00Z"
            monkeypatch.setattr(answers.time, "time_ns", lambda: (house.epochs[-1].committed_at + 5_000_000) * 1000)
            assert answer.staleness == 5_000_000
            monkeypatch.undo()


NAMES = st.sampled_from(["name", "value", "weight"])
CALLS = st.one_of(
    st.just("count(*)"), st.builds("{}({})".format, st.sampled_from(["count", "min", "max"]), NAMES),
    st.builds("{}({})".format, st.sampled_from(["sum", "avg"]), st.sampled_from(["value", "weight", "value * 2", "-weight"])),
)  # fmt: skip
VALUES = st.one_of(CALLS, st.builds("({} + {})".format, st.just("count(*)"), st.just("sum(value)")))
CONDITIONS = st.sampled_from(["", " WHERE value > 3", " WHERE name IS NULL OR weight < 2", " WHERE NOT name IN ('a', 'b')"])


@settings(deadline=None, max_examples=40)
@given(st.lists(NAMES, max_size=2, unique=True), st.lists(VALUES, min_size=1, max_size=4), CONDITIONS)
def test_random_aggregates(house: House, groups: list[str], values: list[str], condition: str) -> None:
    """Each aggregate is combined from partial results, and equals the query over the rows."""
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    query = f"SELECT {', '.join([*groups, *values])} FROM names{condition}{by}"
    with Reader.open(house.root) as reader:
        answer = reader.sql(query, isolation="latest")
        assert answer.put is not None
        assert near(answer.all(), reader.sql(query).all())


def test_halves() -> None:
    """What files give and how it is put together, as SQL."""
    with duckdb.connect() as connection:
        halves = aggregation_of(connection, 'SELECT K, avg(v) FROM "t x" GROUP BY k', ["k", "v"], ())
        assert halves is not None
        assert halves.partial("rows") == (
            'SELECT _file, _exp_slot, k AS _g0, sum(v) AS _s1, count(v) AS _s2 FROM (rows) AS "t x" GROUP BY ALL'
        )
        assert halves.whole(connection, "p", ["K", "mean"]) == (
            'SELECT _g0 AS K, (CAST(sum(_s1) AS DOUBLE) / "nullif"(sum(_s2), 0)) AS mean FROM p AS "t x" GROUP BY _g0'
        )
