"""``advise`` and what ``status`` says of layouts: on a project written without Spark."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.advice.places import counted, told
from tests.serving.house import declare
from warehouse.serving.read_log import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended

STREAMS: dict[str, object] = {
    "names": {
        "landing": "landing",
        "format": "json",
        "search_key": "name",
        "arrival": "to_timestamp(name)",
        "expires": "ts + make_interval(0, 0, 0, 0, value, 0, 0)",
        "max_lifetime": "6h",
        "columns": {"name": "string", "value": "int", "weight": "double", "parts": "array<int>"},
        "layout": {"grid": [2, 2], "expiry_block": 3},
    }
}


@pytest.fixture
def run(tmp_path: Path, invoke: Callable[..., Ended]) -> Callable[..., Ended]:
    """Run a command in a project of eleven epochs, whose updates rewrite far too much."""
    (tmp_path / "landing").mkdir()
    declare(tmp_path, streams=STREAMS)
    told(tmp_path / "data", lambda _: counted(rewritten=50_000_000), seconds=40.0)
    return lambda *arguments: invoke("-C", str(tmp_path), *arguments)


def test_a_table_is_told_what_would_be_cheaper(run: Callable[..., Ended]) -> None:
    """The current layout is marked, and another one is recommended with its keys, in text and in JSON."""
    much = ("advise", "names", "--what-if", "rate=20000000")
    ended = run(*much)
    assert ended.code == 0, ended.err
    assert "20,000,000 rows inserted an update" in ended.out
    assert "prices of 10 updates measured here and probes from the benchmarks' machine" in ended.out
    assert "no probe was logged on this machine: one for each update is assumed" in ended.err
    assert " *  norebuild 2x2, blocks of 3, sealed" in ended.out
    assert "the source's decision table: small window, few queries: NoRebuild 3x3" in ended.out
    assert "run `stream-wh migrate names`" in ended.out
    advice = json.loads(run(*much, "-o", "json").out)
    assert (advice["table"], advice["keep"]) == ("names", False)
    assert advice["workload"]["rate"] == 20_000_000
    assert advice["current"]["layout"]["rows"] == 2
    marked = [evaluation for evaluation in advice["front"] if evaluation["recommended"]]
    assert marked == [advice["recommended"]]
    for evaluation in advice["front"]:
        assert (
            evaluation["update_seconds"]["low"] <= evaluation["update_seconds"]["value"] <= evaluation["update_seconds"]["high"]
        )
    declared = [line.strip() for line in ended.out.splitlines() if line.startswith("  technique")]
    assert declared == [f'technique = "{advice["recommended"]["layout"]["technique"]}"']
    assert advice["prices"]["update"]["measurements"] == 10


def test_a_layout_that_does_as_well_as_any_is_kept(run: Callable[..., Ended]) -> None:
    """With a hundred rows an update nothing is worth moving for."""
    ended = run("advise", "names")
    assert "100 rows inserted an update" in ended.out
    assert "keep norebuild 2x2, blocks of 3, sealed" in ended.out
    assert ">*  norebuild 2x2, blocks of 3, sealed" in ended.out
    assert "stream-wh migrate" not in ended.out


def test_what_is_supposed_takes_the_place_of_what_was_measured(run: Callable[..., Ended]) -> None:
    """With a hundred thousand probes for each update the decision table says "many queries"."""
    advice = json.loads(run("advise", "names", "--what-if", "probes=100000,rate=5000", "-o", "json").out)
    assert (advice["workload"]["probes"], advice["workload"]["rate"]) == (100_000, 5000)
    assert advice["decision_table"]["queries"] == "many"


def test_probes_are_counted_from_the_read_log(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve probes from the command line, each the first probe of its reader, are enough to fit the prices of probes."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "reads"))
    for _ in range(12):
        assert run("probe", "names", "a", "-o", "csv").code == 0
    advice = json.loads(run("advise", "names", "-o", "json").out)
    assert advice["prices"]["probe"]["measurements"] == 12
    assert advice["workload"]["cold_probes"] == 1.0
    assert advice["workload"]["rows_per_key"] > 1


def test_the_read_log_is_turned_off_by_the_project(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`read_log = "off"`: a probe leaves nothing."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "reads"))
    declare(tmp_path, streams=STREAMS, warehouse={"read_log": "off"})
    assert run("probe", "names", "a", "-o", "csv").code == 0
    assert not (tmp_path / "reads").exists()


def test_status_says_that_the_layout_does_not_fit(run: Callable[..., Ended]) -> None:
    """As a warning with the remedy; the rows are as ever, and so is the exit code."""
    ended = run("status", "-o", "json")
    assert ended.code == 0
    assert [row["table"] for row in json.loads(ended.out)] == ["names"]
    assert "warning: names: its layout no longer fits: an update interval costs 40 s" in ended.err
    assert "see `stream-wh advise names`, then `stream-wh migrate names`" in ended.err


def test_a_table_is_supposed_without_a_project(tmp_path: Path, invoke: Callable[..., Ended]) -> None:
    """The answer says that nothing was measured; a project gives interval and retain."""
    directory = str(tmp_path)
    ended = invoke("-C", directory, "advise", "--what-if", "lifetimes=6h,rate=100000,interval=30m", "-o", "json")
    assert ended.code == 0, ended.err
    advice = json.loads(ended.out)
    assert (advice["table"], advice["current"], advice["workload"]["periods"]) == (None, None, 12)
    assert any("nothing was measured" in text for text in advice["warnings"])
    (tmp_path / "landing").mkdir()
    declare(tmp_path, streams=STREAMS, warehouse={"retain": "2h"})
    advice = json.loads(invoke("-C", directory, "advise", "--what-if", "lifetimes=6h,rate=100000", "-o", "json").out)
    assert (advice["workload"]["periods"], advice["workload"]["retained"]) == (6, 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name a table, or suppose one"),
        (("nmaes",), 'Did you mean "names"?'),
        (("names", "--what-if", "interval=2h"), "leave TABLE out"),
        (("--what-if", "rate=1"), "two of lifetimes=, rate= and rows="),
    ],
)
def test_what_cannot_be_advised_is_told_with_the_way_out(
    run: Callable[..., Ended], arguments: tuple[str, ...], says: str
) -> None:
    """Exit code 2."""
    ended = run("advise", *arguments)
    assert ended.code == 2
    assert says in ended.err


def test_neither_needs_spark(run: Callable[..., Ended]) -> None:
    """Advice and status run where there is no Java."""
    before = "pyspark" in sys.modules
    run("advise", "names")
    run("status")
    assert ("pyspark" in sys.modules) == before
