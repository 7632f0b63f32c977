"""Coalesced tables without files: at every epoch each read makes the rows of an eager table with the same declaration.

Points are drawn, 40 % of them late, some dead on arrival; each file lands in a stream whose rows live for nine hours, and in one
whose rows never expire, for tables of the newest rows.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from warehouse.checking.check import check
from warehouse.cli.coalesced_explanation import coalesced_report
from warehouse.epochs.journal import read_epoch
from warehouse.errors import ChangedDeclarationError, ConfigurationError, MigrationError, UsageError
from warehouse.operations.migrate import MigrationRequest
from warehouse.project import Warehouse
from warehouse.publishing.connect import table_snippet
from warehouse.report.figures import figures_of
from warehouse.serving import Reader
from warehouse.serving.coalesced_explanation import explained_coalesced
from warehouse.serving.metadata import describe, files
from warehouse.serving.table_status import status

from .projects import Project, at, csv, stream, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "v": "int", "x": "double", "b": "timestamp"}
COMPARED: dict[str, dict[str, object]] = {
    "values": {"values": ["v"]},
    "near": {"same": "abs(x - previous.x) <= 1.5"},
    "rising": {"same": "v >= previous.v", "search_key": ["k", "valid_from"]},
    "truth": {"of": "v > 1 OR x < 0.5"},
}


def tables() -> Iterator[tuple[str, dict[str, object]]]:
    """Yield pairs of tables with equal declarations: ``NAME_eager`` and ``NAME_lazy``."""
    for how in ("eager", "lazy"):
        for name, compared in COMPARED.items():
            yield f"{name}_{how}", {"from": "a", "group_by": "k", "window": "4h", "how": how, **compared}
        yield f"near_newest_{how}", {"from": "m", "group_by": "k", "rows": 7, "how": how, **COMPARED["near"]}
        yield f"alone_{how}", {"from": "m", "values": ["v"], "rows": 5, "how": how}
        yield f"pairs_{how}", {"from": "a", "group_by": ["k", "v"], "values": ["x"], "window": "4h", "how": how}


NAMES = [name.removesuffix("_lazy") for name, keys in tables() if keys["how"] == "lazy"]


def declared(directory: Path, spark: SparkSession, *names: str) -> Project:
    """Return two streams and the tables over them, or some of the tables."""
    lives = {"columns": COLUMNS, "expires": "ts + INTERVAL 9 HOURS", "max_lifetime": "9h"}
    forever = {"columns": COLUMNS, "expires": None, "max_lifetime": None, "landing": "landing/m"}
    streams = {"a": stream(**lives), "m": stream(**forever)}
    chosen = {name: keys for name, keys in tables() if not names or name.rpartition("_")[0] in names}
    return Project(directory, spark, streams, coalesced=chosen)


def draw(project: Project, numbers: random.Random, now: int) -> None:
    """Land points up to a slot: late points, some long dead, some with the time of another, some for the next slot."""
    lines = []
    for _ in range(numbers.randrange(4, 16)):
        ends = now * 4
        late = numbers.random() < 0.4
        quarter = numbers.randrange(ends - 48, ends) if late else ends - numbers.randrange(-3, 4)
        key, value = numbers.choice(["p", "p", "q", ""]), numbers.choice(["1", "1", "2", ""])
        lines.append(f"{key},{value},{numbers.choice(['0', '1', '2.5', ''])},{text(quarter / 4)}")
    for landing in ("landing/a", "landing/m"):
        project.land(f"{now}.csv", csv(*lines, header="k,v,x,b"), landing=landing)


def rows(reader: Reader, name: str, **options: Any) -> list[str]:  # noqa: ANN401 - those of a scan
    """Return the rows of a scan, in order."""
    return sorted(map(repr, reader.scan(name, **options).arrow().to_pylist()))


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Updates over one slot or several."""
    project = declared(tmp_path_factory.mktemp("lazy"), spark)
    numbers = random.Random(5)  # noqa: S311 - points of a test
    for now in (1, 2, 3, 6, 7):
        draw(project, numbers, now)
        project.update(now)
    return project


def test_it_has_the_rows_of_an_eager_table_at_every_epoch(moved: Project) -> None:
    """With both windows, each way to compare, and null groups; also its times, and at a later instant."""
    seen = dict.fromkeys(NAMES, 0)
    for epoch in moved.numbers:
        with Reader(moved.root, read_epoch(moved.root, epoch)) as reader:
            for name in NAMES:
                expected = rows(reader, f"{name}_eager")
                assert rows(reader, f"{name}_lazy") == expected, (epoch, name)
                seen[name] += len(expected)
                later = reader.epoch.window_time + 90 * 60 * 10**6
                for options in ({"columns": ["_ts", "_exp"]}, {"now": later}, {"now": later, "open_until": "now"}):
                    assert rows(reader, f"{name}_lazy", **options) == rows(reader, f"{name}_eager", **options), (epoch, name)
    assert all(seen.values())


def test_it_is_read_like_every_table(moved: Project) -> None:
    """Probes of keys, ranges and nulls; conditions, SQL, listings, open rows until now; warm readers read the same."""
    for hot in ((), ("a",)):
        with Reader.open(moved.root, hot=hot) as reader:
            for lookup in ({"keys": ["p"]}, {"keys": ["p", "q"]}, {"from_": "p", "to": "q"}, {"null": True}):
                for name in ("values", "near_newest"):
                    lazy, eager = (reader.probe(f"{name}_{how}", **lookup).all() for how in ("lazy", "eager"))
                    assert sorted(map(repr, lazy)) == sorted(map(repr, eager)), lookup
            where = {"where": "members > 1 AND valid_to > valid_from", "open_until": "now"}
            assert rows(reader, "values_lazy", **where) == rows(reader, "values_eager", **where)
            asked_sql = "SELECT k, count(*), sum(members), max(duration({0})) FROM {0} GROUP BY k ORDER BY k"
            for isolation in ("pinned", "latest"):
                lazy, eager = (
                    reader.sql(asked_sql.format(f"truth_{how}"), isolation=isolation).all() for how in ("lazy", "eager")
                )
                assert lazy == eager
            assert ("values_lazy",) in reader.sql("SHOW TABLES").all()
            assert reader.columns("near_lazy") == reader.columns("near_eager")
            assert reader.sql("SELECT count(_exp) FROM system.values_lazy").all() == [(len(rows(reader, "values_lazy")),)]


def test_other_tools_have_it_as_a_view(moved: Project) -> None:
    """``warehouse.duckdb`` makes the rows; tools that read files learn that there are none."""
    with duckdb.connect(str(moved.root / "warehouse.duckdb"), read_only=True) as connection, Reader.open(moved.root) as reader:
        connection.execute("SET TimeZone = 'UTC'")
        for name in NAMES:
            answer = connection.sql(f"SELECT * FROM {name}_lazy").to_arrow_table().to_pylist()
            assert sorted(map(repr, answer)) == rows(reader, f"{name}_eager"), name
        assert connection.sql("SELECT count(*) FROM _tables WHERE name LIKE '%lazy'").fetchall() == [(0,)]
        state, epoch = reader.pin.state("values_lazy"), reader.epoch
        assert "values_lazy" in table_snippet("pandas", moved.root, state, epoch)
        without_files = 'is a lazy coalesced table without files of its own: .*how = "eager" in \\[coalesced.values_lazy\\]'
        for refused in (
            lambda: table_snippet("spark", moved.root, state, epoch),
            lambda: files(reader, "values_lazy"),
            lambda: reader.changes("values_lazy", since=1),
            lambda: reader.probe("values_lazy", ["p"], within=10**6),
            lambda: reader.sql("SELECT count(*) FROM values_lazy", within=10**6),
        ):
            with pytest.raises(UsageError, match=without_files):
                refused()
    assert not (moved.root / "tables" / "values_lazy").exists()
    assert list(check(moved.root).findings) == []


def test_what_the_warehouse_says_of_it(moved: Project) -> None:
    """``explain``, ``status``, ``describe`` and the report show no files, and the number of rows of a read."""
    with Reader.open(moved.root) as reader:
        number = len(rows(reader, "values_eager"))
        explanation = explained_coalesced(moved.updater().catalog, "values_lazy", reader)
        assert explanation is not None
        assert (explanation.how, explanation.rows, explanation.full_from) == ("lazy", number, None)
        lines = coalesced_report(explanation).lines
        assert "  lazy: it has no files; each read makes its rows of the points that a stores" in lines
        stands = next(table for table in status(reader, retain=0) if table.table == "values_lazy")
        assert (stands.kind, stands.live_rows, stands.files, stands.bytes) == ("coalesced", number, 0, 0)
        assert describe(reader, "values_lazy").columns == describe(reader, "values_eager").columns
        pictured = next(table for table in figures_of(reader).tables if table.name == "values_lazy")
        assert pictured.live_rows == number


def test_it_goes_with_its_stream(moved: Project, tmp_path: Path) -> None:
    """It follows a rollback and a restatement, lacks the rows of an erased key, and exists at once if it is new."""
    project = moved.copy(tmp_path / "copy")
    project.coalesced["later"] = dict(project.coalesced["values_lazy"])
    project.declare()
    project.update(7)
    with Reader.open(project.root) as reader:
        assert rows(reader, "later") == rows(reader, "values_eager")
        lazy_table = reader.epoch.lazy_table("later")
        assert lazy_table is not None
        assert lazy_table.full_from == at(7)
    project.updater().rollback(2)
    with Reader.open(project.root) as reader:
        assert rows(reader, "values_lazy") == rows(reader, "values_eager")
        assert rows(reader, "later") == rows(reader, "values_eager")
    project.update(7)
    project.updater().restate("a", since=at(2))
    project.updater().erase("a", ["p"])
    with Reader.open(project.root) as reader:
        for name in ("values", "near", "truth"):
            assert rows(reader, f"{name}_lazy") == rows(reader, f"{name}_eager")
            assert {row["k"] for row in reader.scan(f"{name}_lazy").arrow().to_pylist()} == {None, "q"}


def test_a_migration_switches_it(moved: Project, tmp_path: Path) -> None:
    """Updates wait for it; stored, it has all rows at once; lazy again, its files go and reads make the rows. Both continue."""
    project = moved.copy(tmp_path / "copy")
    before = project.epoch.number
    names = {"values_lazy": "eager", "near_newest_eager": "lazy", "alone_eager": "lazy"}
    for name, how in names.items():
        project.coalesced[name]["how"] = how
    project.declare()
    with pytest.raises(ChangedDeclarationError, match="stream-wh migrate values_lazy"):
        project.update(8)
    with pytest.raises(UsageError, match='"values_lazy" is a coalesced table: `stream-wh migrate values_lazy`, without options'):
        project.updater().migrate("values_lazy", MigrationRequest(side_by_side=True))
    for name, how in names.items():
        assert project.updater().migrate(name, MigrationRequest(), dry_run=True).switched == ((name, how),)
        assert project.updater().migrate(name, MigrationRequest()).switched == ((name, how),)
        assert project.updater().migrate(name, MigrationRequest()).epoch is None
    project.land("8.csv", csv(f"p,1,1,{text(7.5)}", f"q,2,0,{text(6.2)}", header="k,v,x,b"))
    project.land("8.csv", csv(f"p,1,1,{text(7.5)}", f"q,2,0,{text(6.2)}", header="k,v,x,b"), landing="landing/m")
    project.update(8)
    project.coalesced["values_lazy"]["how"] = "lazy"
    project.declare()
    project.updater().migrate("values_lazy", MigrationRequest())
    for number in (before, *range(before + 1, project.epoch.number + 1)):
        with Reader(project.root, read_epoch(project.root, number)) as reader:
            for name in ("values", "near_newest", "alone"):
                assert rows(reader, f"{name}_lazy") == rows(reader, f"{name}_eager"), (number, name)
    assert {state.name for state in project.epoch.tables}.isdisjoint({"near_newest_eager", "alone_eager", "values_lazy"})
    assert list(check(project.root).findings) == []


def test_a_migration_leaves_other_tables_as_they_are(tmp_path: Path, spark: SparkSession) -> None:
    """A table that waits to be stored can be read meanwhile, and its own migration stores it."""
    project = declared(tmp_path, spark, "values", "near")
    draw(project, random.Random(3), 1)  # noqa: S311 - points of a test
    project.update(1)
    for name, how in {"values_eager": "lazy", "values_lazy": "eager"}.items():
        project.coalesced[name]["how"] = how
    project.declare()
    assert project.updater().migrate("values_eager", MigrationRequest()).switched == (("values_eager", "lazy"),)
    with Reader.open(project.root) as reader:
        assert rows(reader, "values_lazy") == rows(reader, "values_eager") != []
    assert project.updater().migrate("values_lazy", MigrationRequest()).switched == (("values_lazy", "eager"),)
    draw(project, random.Random(4), 2)  # noqa: S311 - same
    project.update(2)
    with Reader.open(project.root) as reader:
        assert rows(reader, "values_lazy") == rows(reader, "values_eager") != []


def test_no_migration_forgets_points(tmp_path: Path, spark: SparkSession) -> None:
    """Rows loaded under a shorter `expires` have left the stream: a stored table has their points, for its window."""
    lives = {"columns": COLUMNS, "expires": "ts + INTERVAL 1 HOUR", "max_lifetime": "9h"}
    table = {"from": "a", "group_by": "k", "values": ["v"], "window": "2h", "how": "eager"}
    project = Project(tmp_path, spark, {"a": stream(**lives)}, coalesced={"c": table})
    for hour in (1, 2):
        project.land(f"{hour}.csv", csv(f"p,{hour},1,{text(hour - 0.5)}", header="k,v,x,b"))
        project.update(hour)
    project.coalesced["c"]["how"] = "lazy"
    project.change(expires="ts + INTERVAL 9 HOURS")
    for dry_run in (True, False):
        with pytest.raises(MigrationError, match="its stream stores only 1 of the 2 points in its window"):
            project.updater().migrate("c", MigrationRequest(), dry_run=dry_run)
    project.coalesced["c"]["how"] = "eager"
    project.declare()
    project.land("4.csv", csv(f"p,4,1,{text(3.5)}", header="k,v,x,b"))
    project.update(4)
    with Reader.open(project.root) as reader:
        stored = rows(reader, "c")
    project.coalesced["c"]["how"] = "lazy"
    project.declare()
    project.updater().migrate("c", MigrationRequest())
    with Reader.open(project.root) as reader:
        assert rows(reader, "c") == stored != []


def test_a_table_is_stored_again_once_its_former_files_are_gone(tmp_path: Path, spark: SparkSession) -> None:
    """Earlier epochs use its directory: the command in the refusal works.

    A point is loaded twice, first with the larger value; another interval of updates, which counts slots again, waits until it
    is stored.
    """
    lives = {"columns": COLUMNS, "expires": "ts + INTERVAL 9 HOURS", "max_lifetime": "9h"}
    table = {"from": "a", "group_by": "k", "values": ["v"], "window": "2h", "how": "eager"}
    project = Project(tmp_path, spark, {"a": stream(**lives)}, coalesced={"c": table})

    def change(how: str, interval: str = "1h") -> None:
        project.coalesced["c"]["how"], project.warehouse["update_interval"] = how, interval
        project.declare()

    project.land("1.csv", csv(f"p,2,1,{text(0.5)}", header="k,v,x,b"))
    project.update(1)
    change("lazy")
    project.updater().migrate("c", MigrationRequest())
    project.land("2.csv", csv(f"p,1,1,{text(0.5)}", header="k,v,x,b"))
    project.update(2)
    with Reader.open(project.root) as reader:
        before = rows(reader, "c")
    assert len(before) == 1
    assert "'v': 2" in before[0]
    change("lazy", "2h")
    for dry_run in (True, False):
        with pytest.raises(MigrationError, match=r'loaded first counts.*how = "eager" in \[coalesced\.c\]'):
            project.updater().migrate(None, MigrationRequest(), dry_run=dry_run)
    change("eager")
    with pytest.raises(MigrationError, match=r"lower `retain` in warehouse\.toml and run `stream-wh vacuum` first"):
        project.updater().migrate("c", MigrationRequest())
    project.warehouse["retain"] = "0h"
    project.declare()
    project.updater().vacuum()
    assert project.updater().migrate("c", MigrationRequest()).switched == (("c", "eager"),)
    change("eager", "2h")
    project.updater().migrate(None, MigrationRequest())
    with Reader.open(project.root) as reader:
        assert rows(reader, "c") == before


@pytest.mark.parametrize(
    ("keys", "streams", "said"),
    [
        ({}, {"expires": "e"}, 'whose rows expire at "e"; allowed: how = "eager"'),
        ({"window": "9h"}, {}, 'a window of "9h", over a, whose rows live "9h"; allowed: how = "eager"'),
        ({"window": "3h"}, {"max_lifetime": "3h", "over_lifetime": "clamp"}, 'whose rows live "3h"'),
        ({"window": None, "rows": 5}, {}, '"lazy" with `rows`, over a, whose rows expire'),
        ({"values": None, "of": "v % 2 = 0"}, {}, '"lazy" with the condition "v % 2 = 0"; allowed: how = "eager": reads use'),
        ({"values": None, "same": "v - previous.v < 3 AND v > 0"}, {}, "it fails for some values"),
        ({"values": None, "of": "v IN (3, v + 1)"}, {}, "it fails for some values"),
        ({"values": None, "of": "v BETWEEN 5 AND v + 1"}, {}, "it fails for some values"),
        ({"values": None, "of": "d > 1000000000"}, {}, "its numbers have too many digits for one decimal"),
        ({"values": None, "of": "d > v"}, {}, "its numbers have too many digits for one decimal"),
        ({"budget": {"rows": 3}}, {}, '`budget` with how = "lazy"'),
    ],
)
def test_what_cannot_be_lazy_is_refused(
    keys: dict[str, object], streams: dict[str, object], said: str, tmp_path: Path
) -> None:
    """If points leave their stream too soon, or the condition is not DuckDB's, by ``validate`` and by an update."""
    columns = {**COLUMNS, "e": "timestamp", "d": "decimal(38,30)"}
    lives = {"columns": columns, "expires": "ts + INTERVAL 9 HOURS", "max_lifetime": "9h", **streams}
    table = {"from": "a", "group_by": "k", "values": ["v"], "window": "4h", "how": "lazy", **keys}
    declaration = {key: value for key, value in table.items() if value is not None}
    project = Project(tmp_path, None, {"a": stream(**lives)}, coalesced={"c": declaration})
    with pytest.raises(ConfigurationError) as refused:
        Warehouse.open(tmp_path).validate()
    assert said in str(refused.value)
    assert "coalesced.c." in str(refused.value)
    with pytest.raises(ConfigurationError):
        project.update(1)


def test_no_view_follows_it(tmp_path: Path) -> None:
    """A view needs files to see changes."""
    lives = {"columns": COLUMNS, "expires": "ts + INTERVAL 9 HOURS", "max_lifetime": "9h"}
    table = {"from": "a", "group_by": "k", "values": ["v"], "window": "4h", "how": "lazy"}
    views = {"top": {"sql": "SELECT k, v, members FROM c WHERE members > 1", "search_key": "k"}}
    Project(tmp_path, None, {"a": stream(**lives)}, coalesced={"c": table}, views=views)
    with pytest.raises(ConfigurationError, match=r'"c", a coalesced table with how = "lazy" .*allowed: how = "eager"'):
        Warehouse.open(tmp_path).validate()
