from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.catalog.load import load_catalog
from warehouse.catalog.model import Column, LayoutSpec
from warehouse.errors import ConfigurationError
from warehouse.time import DAY, HOUR, MINUTE, SECOND, parse_instant

from .project import loaded, problems, project

if TYPE_CHECKING:
    from pathlib import Path


def test_a_good_file(tmp_path: Path) -> None:
    """A good file becomes frozen values: microseconds, absolute paths, canonical types, defaults filled in."""
    catalog = loaded(tmp_path)
    assert (catalog.root, catalog.file) == (tmp_path / "data", tmp_path / "warehouse.toml")
    assert (catalog.anchor, catalog.update_interval) == (parse_instant("2013-01-01T00:00:00Z"), HOUR)
    assert (catalog.retain, catalog.vacuum, catalog.warnings) == (7 * DAY, "auto", ())
    assert catalog.spark == (("spark.master", "local[2]"),)
    assert catalog.digest == hashlib.sha256((tmp_path / "warehouse.toml").read_bytes()).hexdigest()
    stream = catalog.stream("flights")
    assert stream is not None
    assert (stream.landing, stream.files, stream.format) == (tmp_path / "landing" / "flights", "*", "csv")
    assert (stream.search_key, stream.arrival, stream.expires) == (("tailnum",), "departed_at", "landed_at")
    assert stream.columns[-2:] == (Column("ttl", "int"), Column("weight", "double"))
    assert (stream.max_lifetime, stream.max_ahead, stream.landing_settle) == (DAY, DAY, 0)
    assert (stream.over_lifetime, stream.null_expiry, stream.unknown_columns) == ("accept", "reject", "reject")
    assert (stream.timezone, stream.options, stream.layout) == ("UTC", (), LayoutSpec())
    assert catalog.stream("others") is None


def test_every_key_is_carried(tmp_path: Path) -> None:
    """What the file says of each key reaches the catalog."""
    stream = loaded(
        tmp_path,
        {
            "warehouse.retain": "0s",
            "warehouse.vacuum": "manual",
            "streams.flights.files": "*.csv.gz",
            "streams.flights.options": {"delimiter": ";", "maxColumns": 5, "ignoreLeadingWhiteSpace": True},
            "streams.flights.timezone": "Europe/Berlin",
            "streams.flights.search_key": ["tailnum", "ttl"],
            "streams.flights.expires": "timestampadd(SECOND, ttl, ts)",
            "streams.flights.over_lifetime": "clamp",
            "streams.flights.max_ahead": "30m",
            "streams.flights.null_expiry": "never",
            "streams.flights.unknown_columns": "ignore",
            "streams.flights.landing_settle": "10s",
            "streams.flights.layout": {
                "technique": "norebuild",
                "grid": [6, 4],
                "insertion": "staggered",
                "expiration": "blocks",
                "expiry_block": 8,
                "seal": False,
                "seed": 7,
            },
        },
    ).streams[0]
    assert stream.options == (("delimiter", ";"), ("maxColumns", "5"), ("ignoreLeadingWhiteSpace", "true"))
    assert (stream.files, stream.timezone, stream.search_key) == ("*.csv.gz", "Europe/Berlin", ("tailnum", "ttl"))
    assert (stream.over_lifetime, stream.null_expiry, stream.unknown_columns) == ("clamp", "never", "ignore")
    assert (stream.max_ahead, stream.landing_settle) == (30 * MINUTE, 10 * SECOND)
    assert stream.layout == LayoutSpec("norebuild", (6, 4), "staggered", "blocks", 8, seal=False, seed=7)


def test_shares_of_one_stream(tmp_path: Path) -> None:
    """What a stream says of its own rows holds for it alone, and the rest is of all."""
    shares = {"dead_on_arrival": 0.9, "late": 1.0}
    health = loaded(tmp_path, {f"{STREAM}.health": shares, "health": {"rejected": 0.2, "late": 0.3}}).health
    flights, weather = health.of_table("flights"), health.of_table("weather")
    assert (flights.rejected, flights.dead_on_arrival, flights.late) == (0.2, 0.9, 1.0)
    assert (weather.rejected, weather.dead_on_arrival, weather.late) == (0.2, 0.05, 0.3)


def test_no_stream_is_a_warning(tmp_path: Path) -> None:
    """A file without streams loads nothing and says so."""
    assert "nothing will be loaded" in loaded(tmp_path, {"streams": {}}).warnings[0]


def test_rows_that_never_expire_need_no_lifetime(tmp_path: Path) -> None:
    """Without `expires` neither a lifetime nor a bound on arrivals ahead is needed."""
    stream = loaded(tmp_path, {"streams.flights.expires": None, "streams.flights.max_lifetime": None}).streams[0]
    assert (stream.expires, stream.max_lifetime, stream.max_ahead, stream.label) == (None, None, None, "MON")


def test_unquoted_spark_settings(tmp_path: Path) -> None:
    """TOML reads an unquoted dotted key as tables; the dotted name is meant."""
    settings = {"spark": {"spark": {"sql": {"shuffle": {"partitions": 4}}, "ui.enabled": False}}}
    expected = (("spark.sql.shuffle.partitions", "4"), ("spark.ui.enabled", "false"))
    assert loaded(tmp_path, settings).spark == expected


@pytest.mark.parametrize("instant", ["2013-01-01T00:00:00.000001Z", "2013-01-01T01:00:00.000001+01:00"])
def test_anchor_to_the_microsecond(tmp_path: Path, instant: str) -> None:
    """The anchor is exact, with any offset."""
    assert loaded(tmp_path, {"warehouse.anchor": instant}).anchor == parse_instant("2013-01-01T00:00:00Z") + 1


def test_anchor_as_toml_time(tmp_path: Path) -> None:
    """A TOML time, without quotes, is an anchor too."""
    path = project(tmp_path) / "warehouse.toml"
    path.write_text(path.read_text().replace('"2013-01-01T00:00:00Z"', "2013-01-01T00:00:00Z"))
    assert load_catalog(tmp_path).anchor == parse_instant("2013-01-01T00:00:00Z")


def test_absolute_paths(tmp_path: Path) -> None:
    """Absolute paths stay, dots are resolved."""
    landing = str(tmp_path / "in" / ".." / "elsewhere")
    assert loaded(tmp_path, {"streams.flights.landing": landing}).streams[0].landing == tmp_path / "elsewhere"


def test_missing_file(tmp_path: Path) -> None:
    """A directory that is no project says how to make one."""
    with pytest.raises(ConfigurationError, match="stream-wh init") as caught:
        load_catalog(tmp_path)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("content", "key", "found"),
    [
        (b"[warehouse]\nroot = \n", "line 2, column 8", "not TOML: Invalid value"),
        (b"[warehouse]\nroot = 'a'\nroot = 'b'\n", "line 3, column 11", "not TOML: Cannot overwrite a value"),
        (b"[warehouse]\nroot = 'caf\xe9'\n", "line 2", "bytes that are not UTF-8"),
        (b"[warehouse]\nroot = 'a", "the end of the file", "not TOML"),
    ],
)
def test_syntax_errors_name_the_line(tmp_path: Path, content: bytes, key: str, found: str) -> None:
    """A syntax error of TOML is reported with its line."""
    (tmp_path / "warehouse.toml").write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        load_catalog(tmp_path)
    (problem,) = caught.value.problems
    assert problem.key == key
    assert problem.found.startswith(found)


STREAM = "streams.flights"
VIEW = {"sql": "SELECT tailnum FROM flights", "search_key": "tailnum"}
BAD: list[tuple[dict[str, Any], str, str, str, str | None]] = [
    # changes, key, found, part of allowed, nearest
    (
        {"extra": 1},
        "extra",
        'the unknown key "extra"',
        "[warehouse], [spark], [sql], [health], [streams.NAME], [relations.NAME], [views.NAME]",
        None,
    ),
    ({"stream": {}}, "stream", 'the unknown key "stream"', "[streams.NAME]", "streams"),
    ({"view": {}}, "view", 'the unknown key "view"', "[views.NAME]", "views"),
    ({"warehouse": 1}, "warehouse", "1", "a table, [warehouse]", None),
    ({"streams": [1]}, "streams", "[1]", "a table, [streams]", None),
    ({"streams.flights": "x"}, STREAM, '"x"', "a table, [streams.flights]", None),
    ({"spark": "x"}, "spark", '"x"', "a table of Spark settings", None),
    ({"warehouse.roots": "x"}, "warehouse.roots", 'the unknown key "roots"', "anchor", "root"),
    ({"warehouse.root": 1}, "warehouse.root", "1", "a local path", None),
    ({"warehouse.root": ""}, "warehouse.root", '""', "a local path", None),
    ({"warehouse.root": "s3a://b/x"}, "warehouse.root", '"s3a://b/x"', "s3://BUCKET/PREFIX", None),
    ({"warehouse.root": "file:/x"}, "warehouse.root", '"file:/x"', "s3://BUCKET/PREFIX", None),
    ({"warehouse.anchor": None}, "warehouse.anchor", "nothing", "(required)", None),
    ({"warehouse.anchor": "soon"}, "warehouse.anchor", '"soon"', "2013-01-01T00:00:00Z", None),
    (
        {"warehouse.anchor": "2013-01-01T00:00:00.0000001Z"},
        "warehouse.anchor",
        '"2013-01-01T00:00:00.0000001Z"',
        "microsecond",
        None,
    ),
    ({"warehouse.anchor": 5}, "warehouse.anchor", "5", "an instant", None),
    ({"warehouse.update_interval": None}, "warehouse.update_interval", "nothing", "(required)", None),
    ({"warehouse.update_interval": "0s"}, "warehouse.update_interval", '"0s"', "longer than zero", None),
    ({"warehouse.update_interval": "1 hour"}, "warehouse.update_interval", '"1 hour"', "PT1H30M", "1h"),
    ({"warehouse.update_interval": 60}, "warehouse.update_interval", "60", "a duration", None),
    ({"warehouse.retain": "-1d"}, "warehouse.retain", '"-1d"', "a duration", None),
    ({"warehouse.target_file_size": "64"}, "warehouse.target_file_size", '"64"', "a size", None),
    ({"warehouse.target_file_size": "999KB"}, "warehouse.target_file_size", '"999KB"', 'from "1MB"', None),
    ({"warehouse.target_file_size": 64}, "warehouse.target_file_size", "64", "a size", None),
    ({"warehouse.keep": "for ever"}, "warehouse.keep", '"for ever"', 'or "forever"', "forever"),
    ({"warehouse.keep": "90 days"}, "warehouse.keep", '"90 days"', 'or "forever"', "90d"),
    ({f"{STREAM}.keep": 90}, f"{STREAM}.keep", "90", 'or "forever"', None),
    ({"warehouse.vacuum": "atuo"}, "warehouse.vacuum", '"atuo"', '"auto" | "manual"', "auto"),
    ({"streams/Flights 1": {}}, "streams.Flights 1", 'the name "Flights 1"', "letters a-z", "flights_1"),
    ({"streams/" + "a" * 64: {}}, "streams." + "a" * 64, f'the name "{"a" * 64}"', "at most 62", "a" * 63),
    ({f"{STREAM}.serch_key": "x"}, f"{STREAM}.serch_key", 'the unknown key "serch_key"', "landing", "search_key"),
    (
        {f"{STREAM}.technique": "rebuild"},
        f"{STREAM}.technique",
        'the unknown key "technique"',
        "[streams.NAME.layout]",
        None,
    ),
    ({f"{STREAM}.retain": "1d"}, f"{STREAM}.retain", 'the unknown key "retain"', "in [warehouse]", None),
    ({f"{STREAM}.landing": None}, f"{STREAM}.landing", "nothing", "(required)", None),
    ({f"{STREAM}.landing": "s3a://b/x"}, f"{STREAM}.landing", '"s3a://b/x"', "`root` and `landing` alone", None),
    ({f"{STREAM}.landing": "data"}, f"{STREAM}.landing", "a directory inside root", "apart from root", None),
    ({f"{STREAM}.landing": "data/in"}, f"{STREAM}.landing", "a directory inside root", "apart from root", None),
    ({f"{STREAM}.landing": "."}, f"{STREAM}.landing", "a directory that holds root", "apart from root", None),
    ({f"{STREAM}.files": ""}, f"{STREAM}.files", '""', "a pattern", None),
    ({f"{STREAM}.format": None}, f"{STREAM}.format", "nothing", '"avro" | "zeek" | "text" | "logfmt" | "syslog" (', None),
    ({f"{STREAM}.format": "CSV"}, f"{STREAM}.format", '"CSV"', '"csv" | "json" | "parquet"', "csv"),
    ({f"{STREAM}.timezone": "Europe/Berln"}, f"{STREAM}.timezone", '"Europe/Berln"', "IANA", "Europe/Berlin"),
    ({f"{STREAM}.timezone": "../etc"}, f"{STREAM}.timezone", '"../etc"', "IANA", None),
    ({f"{STREAM}.search_key": None}, f"{STREAM}.search_key", "nothing", "(required)", None),
    ({f"{STREAM}.search_key": []}, f"{STREAM}.search_key", "[]", "a column, or a list", None),
    (
        {f"{STREAM}.search_key": "tailnun"},
        f"{STREAM}.search_key",
        'the unknown column "tailnun"',
        "departed_at",
        "tailnum",
    ),
    ({f"{STREAM}.search_key": "Tailnum"}, f"{STREAM}.search_key", 'the unknown column "Tailnum"', "tailnum", "tailnum"),
    ({f"{STREAM}.search_key": ["ttl", "ttl"]}, f"{STREAM}.search_key", '"ttl" twice', "once", None),
    ({f"{STREAM}.search_key": "weight"}, f"{STREAM}.search_key", 'the column "weight" of type double', "strings", None),
    ({f"{STREAM}.arrival": None}, f"{STREAM}.arrival", "nothing", "(required)", None),
    ({f"{STREAM}.arrival": 1}, f"{STREAM}.arrival", "1", "a Spark SQL expression", None),
    (
        {f"{STREAM}.max_lifetime": None},
        f"{STREAM}.max_lifetime",
        "nothing, although there is `expires`",
        "how finely expiry is cut",
        None,
    ),
    (
        {f"{STREAM}.max_lifetime": "59m"},
        f"{STREAM}.max_lifetime",
        '"59m" with update_interval = "1h"',
        "die between two updates",
        None,
    ),
    ({f"{STREAM}.over_lifetime": "clip"}, f"{STREAM}.over_lifetime", '"clip"', "accept", "clamp"),
    ({f"{STREAM}.null_expiry": "nevr"}, f"{STREAM}.null_expiry", '"nevr"', '"reject" | "never"', "never"),
    ({f"{STREAM}.unknown_columns": "accept"}, f"{STREAM}.unknown_columns", '"accept"', '"reject" | "ignore" | "add"', None),
    ({f"{STREAM}.max_ahead": "soon"}, f"{STREAM}.max_ahead", '"soon"', "a duration", None),
    ({f"{STREAM}.landing_settle": 5}, f"{STREAM}.landing_settle", "5", "a duration", None),
    ({f"{STREAM}.columns": {}}, f"{STREAM}.columns", "nothing", "at least one column", None),
    ({f"{STREAM}.columns": "x"}, f"{STREAM}.columns", '"x"', "a table of columns", None),
    ({f"{STREAM}.columns.a": 1}, f"{STREAM}.columns.a", "1", "in quotes", None),
    ({f"{STREAM}.columns.a": "strng"}, f"{STREAM}.columns.a", 'the type "strng"', "decimal(p,s)", "string"),
    (
        {f"{STREAM}.columns.sub_index": "int"},
        f"{STREAM}.columns.sub_index",
        'the reserved name "sub_index"',
        "other than",
        None,
    ),
    (
        {f"{STREAM}.columns.Exp_Block": "int"},
        f"{STREAM}.columns.Exp_Block",
        'the reserved name "Exp_Block"',
        "other than",
        None,
    ),
    ({f"{STREAM}.columns._x": "int"}, f"{STREAM}.columns._x", 'the reserved name "_x"', "_*", None),
    (
        {f"{STREAM}.columns.a b": "int"},
        f"{STREAM}.columns.a b",
        "the character ' ' in the name \"a b\"",
        "letters",
        None,
    ),
    ({f"{STREAM}.columns.TTL": "int"}, f"{STREAM}.columns.TTL", '"TTL" beside "ttl"', "unique ignoring case", None),
    (
        {f"{STREAM}.columns.ts": "timestamp"},
        f"{STREAM}.columns.ts",
        'the column "ts" while arrival = "departed_at"',
        'arrival = "ts"',
        None,
    ),
    (
        {f"{STREAM}.columns.a": "array<int>"},
        f"{STREAM}.columns.a",
        "array<int> with format csv",
        "json or parquet",
        None,
    ),
    ({f"{STREAM}.options": {"a": [1]}}, f"{STREAM}.options", "[1]", "a string, a number", None),
    ({f"{STREAM}.health": 0.5}, f"{STREAM}.health", "0.5", "a table such as", None),
    ({f"{STREAM}.health.late": 1.5}, f"{STREAM}.health.late", "1.5", "from 0 to 1", None),
    ({f"{STREAM}.health.dead": 0.5}, f"{STREAM}.health.dead", 'the unknown key "dead"', "dead_on_arrival", None),
    ({f"{STREAM}.health.overdue": "1h"}, f"{STREAM}.health.overdue", 'the unknown key "overdue"', "in [health]", None),
    ({f"{STREAM}.layout": 1}, f"{STREAM}.layout", "1", "a table of layout keys", None),
    ({f"{STREAM}.layout.gird": [1, 2]}, f"{STREAM}.layout.gird", 'the unknown key "gird"', "technique", "grid"),
    ({f"{STREAM}.layout.grid": [1]}, f"{STREAM}.layout.grid", "[1]", "[G, E]", None),
    ({f"{STREAM}.layout.grid": [25, 4]}, f"{STREAM}.layout.grid", "[25, 4]", "G from 1 to 24", None),
    ({f"{STREAM}.layout.grid": [4, 25]}, f"{STREAM}.layout.grid", "[4, 25]", "E from 1 to 24", None),
    ({f"{STREAM}.layout.technique": "rebuld"}, f"{STREAM}.layout.technique", '"rebuld"', "norebuild", "rebuild"),
    ({f"{STREAM}.layout.insertion": "stagered"}, f"{STREAM}.layout.insertion", '"stagered"', "permuted", "staggered"),
    ({f"{STREAM}.layout.expiration": "block"}, f"{STREAM}.layout.expiration", '"block"', "permuted", "blocks"),
    ({f"{STREAM}.layout.expiry_block": 25}, f"{STREAM}.layout.expiry_block", "25", "1 to 24", None),
    ({f"{STREAM}.layout.expiry_block": 0}, f"{STREAM}.layout.expiry_block", "0", "1 to 24", None),
    ({f"{STREAM}.layout.seal": "yes"}, f"{STREAM}.layout.seal", '"yes"', "true | false", None),
    ({f"{STREAM}.layout.seed": -1}, f"{STREAM}.layout.seed", "-1", "from 0", None),
    ({f"{STREAM}.layout": {"technique": "rebuild", "seal": True}}, f"{STREAM}.layout.seal", "true", "norebuild", None),
    ({"views.v": {**VIEW, "budget": {}}}, "views.v.budget.pairs", "nothing", "results such as 200_000", None),
    ({"views.v": {**VIEW, "budget": {"pairs": 0}}}, "views.v.budget.pairs", "0", "from 1", None),
    ({"views.v": {**VIEW, "budget": {"pairs": 1, "prefer": 2}}}, "views.v.budget.prefer", "2", "weighted", None),
    ({"views.v": {**VIEW, "budget": {"pairs": 1, "complete": "soon"}}}, "views.v.budget.complete", '"soon"', "later", None),
    ({"views.v": {**VIEW, "budget": {"seconds": 0}}}, "views.v.budget.seconds", "0", "above 0", None),
    ({"views.v": {**VIEW, "budget": {"rows": 1}}}, "views.v.budget.rows", "1", "from 2", None),
    ({"views.v": {**VIEW, "budget": {"rows": 9, "pairs": 9}}}, "views.v.budget.rows", "rows beside pairs", "one of", None),
    ({"views.v": {**VIEW, "budget": {"bytes": 9}}}, "views.v.budget.bytes", 'the unknown key "bytes"', "results", None),
]


@pytest.mark.parametrize(("changes", "key", "found", "allowed", "nearest"), BAD)
def test_each_fault(
    tmp_path: Path, *, changes: dict[str, Any], key: str, found: str, allowed: str, nearest: str | None
) -> None:
    """A fault is reported with its key, the found value, the allowed values, and the nearest valid spelling."""
    matching = [problem for problem in problems(tmp_path, changes) if problem.key == key and problem.found == found]
    assert len(matching) == 1, problems(tmp_path, changes)
    assert allowed in matching[0].allowed
    assert matching[0].nearest == nearest
    assert matching[0].file.endswith("warehouse.toml")


def test_one_fault_makes_one_problem(tmp_path: Path) -> None:
    """A fault is reported once, even if several rules find it."""
    several = {
        # a name whose stream is empty lacks everything that is required; no anchor: the section is no table
        "streams.Flights 1",
        "streams." + "a" * 64,
        "warehouse",
        f"{STREAM}.columns",
    }
    noisy = [(key, problems(tmp_path, changes)) for changes, key, *_ in BAD if key not in several]
    assert [(key, problems_found) for key, problems_found in noisy if len(problems_found) != 1] == []


def test_all_at_once(tmp_path: Path) -> None:
    """Faults of all sections and kinds are reported together."""
    problems_found = problems(
        tmp_path,
        {
            "extra": 1,
            "warehouse.anchor": "soon",
            "warehouse.update_intervall": "1h",
            "spark": {"spark.sql.ansi.enabled": False},
            f"{STREAM}.format": "cvs",
            f"{STREAM}.search_key": ["tailnum", "nowhere"],
            f"{STREAM}.expires": "now()",
            f"{STREAM}.columns.x": "timestamp_ntz",
            f"{STREAM}.layout.technique": "rebuld",
        },
    )
    assert [problem.key for problem in problems_found] == [
        "extra",
        "warehouse.anchor",
        "warehouse.update_intervall",
        "streams.flights.format",
        "streams.flights.columns.x",
        "streams.flights.layout.technique",
        "streams.flights.search_key",
        "streams.flights.expires",
        "spark.sql.ansi.enabled",
    ]


def test_the_message_lists_all(tmp_path: Path) -> None:
    """The error's text has one line for each fault, with the suggestion."""
    with pytest.raises(ConfigurationError, match="2 configuration errors") as caught:
        loaded(tmp_path, {"stream": {}, "warehouse.vacuum": "automatic"})
    assert 'stream: found the unknown key "stream"' in str(caught.value)
    assert '(did you mean "streams"?)' in str(caught.value)


def test_landings_are_apart(tmp_path: Path) -> None:
    """Two streams never share landing files, whether by one landing, a nested one, or a symbolic link."""
    (tmp_path / "landing" / "flights").mkdir(parents=True)
    (tmp_path / "alias").symlink_to("landing/flights")
    columns = {"a": "string", "b": "timestamp"}
    other = {"format": "json", "search_key": "a", "arrival": "b", "columns": columns}
    for landing, stream, words in (
        ("landing/flights", "others", 'the landing of the stream "flights"'),
        ("landing/flights/", "others", 'the landing of the stream "flights"'),
        ("alias", "others", 'the landing of the stream "flights"'),
        ("landing/flights/more", "others", 'inside the landing of the stream "flights"'),
        ("landing", "flights", 'inside the landing of the stream "others"'),
    ):
        (problem,) = problems(tmp_path, {"streams.others": {**other, "landing": landing}})
        assert problem.key == f"streams.{stream}.landing"
        assert words in problem.found
    assert problems(tmp_path, {"streams.others": {**other, "landing": "landing/others"}}) == []


def test_a_column_named_ts(tmp_path: Path) -> None:
    """A column named ts is the arrival time, and `expires` may use it."""
    changes = {
        f"{STREAM}.columns.ts": "timestamp",
        f"{STREAM}.arrival": "ts",
        f"{STREAM}.expires": "ts + INTERVAL 1 HOUR",
    }
    assert loaded(tmp_path, changes).streams[0].label == "WKS"


def test_coarse_grids_warn(tmp_path: Path) -> None:
    """A declared grid with fewer than two slots a part loads, with a warning that names the key."""
    (warning,) = loaded(tmp_path, {f"{STREAM}.layout.grid": [13, 4]}).warnings
    assert warning.startswith("streams.flights.layout.grid: G = 13")


def test_small_windows_do_not_warn(tmp_path: Path) -> None:
    """The default grid of a small window gives no warning."""
    assert loaded(tmp_path, {f"{STREAM}.max_lifetime": "2h"}).warnings == ()


def test_the_file_may_begin_with_a_mark(tmp_path: Path) -> None:
    """An editor's byte order mark does no harm."""
    path = project(tmp_path) / "warehouse.toml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_catalog(tmp_path).streams
