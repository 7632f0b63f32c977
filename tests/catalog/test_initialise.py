from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import duckdb
import pytest

from warehouse.catalog.config import LayoutSection, StreamSection, WarehouseSection
from warehouse.catalog.initialise import DEFAULT_EXAMPLE, examples, write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.model import LayoutSpec
from warehouse.errors import UnknownNameError, UsageError
from warehouse.layout import resolve
from warehouse.time import DAY, HOUR, format_instant
from warehouse.views.plans import compile_views

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.init_options import InitOptions
    from warehouse.catalog.model import Catalog


@pytest.mark.parametrize("example", examples())
def test_examples_are_valid(tmp_path: Path, example: str) -> None:
    """Every example loads without a warning, its views can be maintained, and each landing file is there for someone."""
    written = write_project(tmp_path / "new", example)
    catalog = load_catalog(tmp_path / "new")
    assert written[0] == tmp_path / "new" / "warehouse.toml"
    assert all(path.is_file() for path in written)
    assert catalog.warnings == ()
    landed = [sorted(source.landing.rglob(source.files)) for source in catalog.sources]
    assert all(landed)
    assert sorted(file for files in landed for file in files) == sorted(written[1:])
    assert [plan.name for plan in compile_views(catalog)] == [view.name for view in catalog.views]


def test_flights(tmp_path: Path) -> None:
    """The flights example is anchored at 2013, moves by the hour and is probed by aircraft."""
    write_project(tmp_path, "flights")
    catalog = load_catalog(tmp_path)
    stream = catalog.streams[0]
    assert (format_instant(catalog.anchor), catalog.update_interval) == ("2013-01-01T00:00:00Z", HOUR)
    assert (stream.search_key, stream.arrival, stream.expires) == (("tailnum",), "departed_at", "landed_at")
    assert (stream.max_lifetime, catalog.retain) == (DAY, 7 * DAY)


def test_the_default_shows_every_key(tmp_path: Path) -> None:
    """The file that plain `init` writes has a line for every key there is."""
    write_project(tmp_path)
    text = (tmp_path / "warehouse.toml").read_text()
    for section in (WarehouseSection, StreamSection, LayoutSection):
        for key in section.model_fields:
            table = re.search(rf"^\[.*\.{key}\]", text, re.MULTILINE)
            assert table or re.search(rf"^(# )?{key} = \S+.* # \S", text, re.MULTILINE), key


def test_the_defaults_it_shows_are_the_defaults(tmp_path: Path) -> None:
    """With every commented key made real the file means the same, except for options, settings and bounds that are examples."""
    write_project(tmp_path)
    path = tmp_path / "warehouse.toml"
    shown = load_catalog(tmp_path)
    text = re.sub(r"^# move_to = .*\n", "", path.read_text(), flags=re.MULTILINE)  # it needs another after_load
    path.write_text(re.sub(r'^# ((?:"[a-zA-Z.]+"|[a-z_]+) = )', r"\1", text, flags=re.MULTILINE))
    real = load_catalog(tmp_path)
    assert real.streams[0].options
    assert len(real.spark) == 3
    assert (real.retain, real.vacuum, real.warnings) == (shown.retain, shown.vacuum, ())
    assert _without_examples(real) == _without_examples(shown)
    spec = real.streams[0].layout
    completed = resolve(periods=12, label="WK")
    assert spec == LayoutSpec(
        completed.technique,
        (completed.rows, completed.columns),
        completed.insertion,
        completed.expiration,
        completed.expiry_block,
        completed.seal,
        completed.seed,
    )


_EXAMPLES = {"options", "sources", "layout", "erase_within", "widest_block", "stale_after"}


def _without_examples(catalog: Catalog) -> dict[str, object]:
    return {key: value for key, value in vars(catalog.streams[0]).items() if key not in _EXAMPLES}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """When any file exists, nothing is written."""
    present = tmp_path / "landing" / DEFAULT_EXAMPLE / "2024-05-01T00-10.csv"
    present.parent.mkdir(parents=True)
    present.write_text("mine")
    with pytest.raises(UsageError, match="nothing is ever overwritten"):
        write_project(tmp_path)
    assert present.read_text() == "mine"
    assert not (tmp_path / "warehouse.toml").exists()


def test_unknown_example(tmp_path: Path) -> None:
    """The message for a misspelt example names the nearest example."""
    with pytest.raises(UnknownNameError, match='Did you mean "flights"'):
        write_project(tmp_path, "flihgts")


def test_example_or_file(tmp_path: Path) -> None:
    """An example and a file exclude each other."""
    with pytest.raises(UsageError, match="choose one"):
        write_project(tmp_path, "flights", tmp_path / "x.csv")


def proposed(source: Path, choices: InitOptions | None = None) -> Catalog:
    """Return what is proposed for a file, which must load."""
    project = source.parent / "project"
    written = write_project(project, source=source, choices=choices)
    catalog = load_catalog(project)
    assert written[1].read_bytes() == source.read_bytes()
    assert list(catalog.streams[0].landing.rglob(catalog.streams[0].files)) == written[1:]
    return catalog


def test_from_csv_with_two_times(tmp_path: Path) -> None:
    """Of two times, the later in every row is the expiration time; the distance gives the lifetime."""
    source = tmp_path / "Leases 2013.csv"
    rows = [f"h{i % 7};2013-01-0{1 + i % 3}T05:00:00Z;2013-01-0{1 + i % 3}T06:{i:02}:00Z;{i}" for i in range(50)]
    source.write_text("\n".join(["host;leased_at;expires_at;n", *rows]))
    catalog = proposed(source)
    stream = catalog.streams[0]
    assert (stream.name, stream.format, stream.options) == ("leases_2013", "csv", (("delimiter", ";"),))
    assert (stream.search_key, stream.arrival, stream.expires) == (("host",), "leased_at", "expires_at")
    assert (stream.max_lifetime, format_instant(catalog.anchor)) == (2 * HOUR, "2013-01-01T00:00:00Z")
    assert [column.type for column in stream.columns] == ["string", "timestamp", "timestamp", "bigint"]


def test_from_a_sample_with_much_in_each_update_a_layout_is_proposed(tmp_path: Path) -> None:
    """What the cost model recommends, and what that is good for; the default where the sample is small."""
    for rows, name in ((60_000, "many"), (200, "few")):
        source = tmp_path / name / f"{name}.parquet"
        source.parent.mkdir()
        moment = f"TIMESTAMPTZ '2013-01-01 00:00:00+00' + INTERVAL 1 MILLISECOND * (i * {7_200_000 // rows})"
        duckdb.connect().sql(
            f"COPY (SELECT 'h' || i % 100 AS host, {moment} AS at, {moment} + INTERVAL 1 SECOND * (i * 7919 % 86400) AS until"
            f" FROM range({rows}) r(i)) TO '{source}'",
        )
        catalog = proposed(source)
        text = catalog.file.read_text()
        assert ("(?) What the cost model recommends" in text) == (name == "many")
        assert ("does not show which fits" in text) == (name == "few")
        assert (catalog.streams[0].layout != LayoutSpec()) == (name == "many")
        assert catalog.warnings == ()


@pytest.mark.parametrize(
    ("column", "expression", "lifetime"),
    [
        ("ttl", "timestampadd(SECOND, ttl, ts)", HOUR),
        ("duration_minutes", "timestampadd(MINUTE, duration_minutes, ts)", 3 * DAY),
        ("timeout_ms", "timestampadd(MILLISECOND, timeout_ms, ts)", 5_000_000),
    ],
)
def test_from_json_with_a_duration(tmp_path: Path, column: str, expression: str, lifetime: int) -> None:
    """A duration by its name gives the expiration time, in its unit."""
    source = tmp_path / "answers.json.gz"
    line = f'{{"q": "a.example", "at": "2024-05-01T00:00:00Z", "{column}": 3600, "more": {{"x": [1], "y": {{}}}}}}\n'
    with gzip.open(source, "wt") as file:
        file.write(line * 3)
    stream = proposed(source).streams[0]
    assert (stream.format, stream.files, stream.search_key) == ("json", "*.json.gz", ("q",))
    assert (stream.arrival, stream.expires) == ("at", expression)
    assert lifetime <= (stream.max_lifetime or 0) <= 3 * lifetime
    assert [(timed.name, timed.source, timed.type) for timed in stream.columns[-2:]] == [
        ("more_x", "more.x", "array<bigint>"), ("more_y", "more.y", "string"),
    ]  # fmt: skip


def test_from_parquet(tmp_path: Path) -> None:
    """Types are the types of the Parquet file; a column that cannot be declared is ignored, with the reason."""
    source = tmp_path / "events.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT 'k' || i AS id, TIMESTAMPTZ '2024-05-01 00:00:00+00' + to_hours(i) AS created, "
        f"i::DECIMAL(9,2) AS price, MAP {{'a': i}} AS tags, i AS _hidden, [i::SMALLINT] AS list, i::UBIGINT AS big "
        f"FROM range(3) t(i)) TO '{source}' (FORMAT parquet)"
    )
    catalog = proposed(source)
    stream = catalog.streams[0]
    assert (stream.format, stream.expires, stream.unknown_columns) == ("parquet", None, "ignore")
    assert [(column.name, column.type) for column in stream.columns] == [
        ("id", "string"),
        ("created", "timestamp"),
        ("price", "decimal(9,2)"),
        ("hidden", "bigint"),
        ("list", "array<smallint>"),
        ("big", "decimal(20,0)"),
    ]
    text = catalog.file.read_text()
    assert '# "tags": ignored' in text
    assert 'hidden = { type = "bigint", from = "_hidden" }' in text
    assert "rows never expire" in text


@pytest.mark.parametrize(
    ("header", "value", "arrival"),
    [
        ("t", "1367366400", "t"),
        ("t", "1367366400.25", "t"),
        ("t", "1367366400000", "t"),
        ("t", "1367366400000000", "t"),
        ("t", "1367366400000000000", "t"),
        ("ts", "1367366400", "ts"),
        ("day", "2013-05-01", "CAST(day AS TIMESTAMP)"),
        ("ts", "2013-05-01 00:00:00", "ts"),
        ("order", "2013-05-01 00:00:00", "order"),
        ("end", "2013-05-01 00:00:00", "`end`"),
        ("when", "2013-05-01 00:00:00", "`when`"),
    ],
)
def test_arrival_times(tmp_path: Path, header: str, value: str, arrival: str) -> None:
    """Counts since 1970, dates and other spellings of times are arrival times too."""
    source = tmp_path / "x.csv"
    source.write_text(f"name,{header}\n" + f"a,{value}\n" * 3)
    catalog = proposed(source)
    assert catalog.streams[0].arrival == arrival
    assert format_instant(catalog.anchor).startswith("2013-0")


def test_times_in_another_spelling(tmp_path: Path) -> None:
    """The pattern of times that are not ISO 8601 goes to Spark's reader."""
    source = tmp_path / "x.csv"
    source.write_text("name,seen\n" + "a,31/12/2013 10:00:00\n" * 3)
    assert proposed(source).streams[0].options == (("timestampFormat", "dd/MM/yyyy HH:mm:ss"),)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.bin", "a\x00\x01", "is no text, and its name has no ending of a file that can be read: .csv"),
        ("x.txt", "\n", "is empty"),
        ("x.txt.gz", "a\n1\n", "damaged, or not compressed as its name says"),
        ("x.xlsx", "PK", "save its sheet as CSV"),
        ("x.parquet", "no parquet", "cannot be read as parquet"),
        ("x.csv", "a,b\nc,d\n", "can be an arrival time"),
        ("x.csv", "a,b\nc,10:00:00\n", "can be an arrival time"),
        ("x.csv", "a,b\n", "has no rows"),
        (
            "dpkg.log",
            "2025-06-24 14:36:25 startup archives unpack\n" + "2025-06-24 14:36:25 install perl:amd64 5.36 5.40\n" * 3,
            r"a log without a header.* '2025-06-24 14:36:25 startup archives unpack', has a time; .*<at>\\S\+ \\S\+\) ",
        ),
        ("x.csv", "a,at\nc,2024-07-01 08:00:00 BST\n", r"the times of at end with BST.*--arrival 'to_timestamp\(replace\(at, "),
        ("x.csv", "a,a\n1,2013-01-01 00:00:00\n", "a cannot be declared: its name stands in the header more than once"),
    ],
)
def test_unusable_files(tmp_path: Path, name: str, content: str, words: str) -> None:
    """A file that gives no stream says why, and nothing is written."""
    source = tmp_path / name
    source.write_text(content)
    with pytest.raises(UsageError, match=words):
        write_project(tmp_path / "project", source=source)
    assert not (tmp_path / "project").exists()


def test_a_word_of_sql_becomes_no_name(tmp_path: Path) -> None:
    """A query names the table without quotes."""
    (tmp_path / "semi.csv").write_text("host,at\n" + "".join(f"h{row},2024-05-01 08:{row:02}:00\n" for row in range(20)))
    write_project(tmp_path / "project", source=tmp_path / "semi.csv")
    assert [stream.name for stream in load_catalog(tmp_path / "project").streams] == ["semi_rows"]


def test_missing_source(tmp_path: Path) -> None:
    """A missing file is reported."""
    with pytest.raises(UsageError, match="is not a file"):
        write_project(tmp_path, source=tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("name", "stream"),
    [("2013.csv", "in_box"), ("_x[1].csv", "in_box"), ("Ünits.csv", "in_box"), ("A-b.v2.csv", "a_b")],
)
def test_odd_names(tmp_path: Path, name: str, stream: str) -> None:
    """A file whose name is no stream name is named after its directory; it is stored so that it is loaded."""
    folder = tmp_path / "in box"
    folder.mkdir()
    (folder / name).write_text("id,at\n1,2013-01-01 00:00:00\n")
    assert proposed(folder / name).streams[0].name == stream


def test_a_column_with_an_odd_name(tmp_path: Path) -> None:
    """Names are quoted where TOML and SQL need it, and a column that cannot be stored under its own name gets another."""
    source = tmp_path / "x.csv"
    source.write_text('"a b","seen-at","größe"\n1,2013-01-01 00:00:00,2\n')
    catalog = proposed(source)
    stream = catalog.streams[0]
    assert (stream.arrival, stream.unknown_columns) == ("`seen-at`", "reject")
    assert [column.name for column in stream.columns] == ["a_b", "seen-at", "größe"]
