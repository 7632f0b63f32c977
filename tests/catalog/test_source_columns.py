"""The long form of a column, and ``sources``: valid forms, refused forms with their messages, the meaning of a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.catalog.project import loaded, problems
from warehouse.catalog.declaration import ColumnRecord, declaration_of, origin_of, stream_of
from warehouse.catalog.model import Column
from warehouse.catalog.source_columns import EPOCH_FORMATS, format_fault
from warehouse.catalog.verdicts import verdicts
from warehouse.epochs.records import Epoch
from warehouse.ingest.columns import header_problem, inputs_of, match_columns

if TYPE_CHECKING:
    from pathlib import Path

COLUMN = "streams/flights/columns/weight"


def test_long_and_short_forms(tmp_path: Path) -> None:
    """A string is the type; a table says where values come from too. What is not said is not recorded."""
    changes: dict[str, Any] = {
        COLUMN: {"type": "DOUBLE", "from": "id.orig_h"},
        "streams/flights/columns/least": {"type": "double", "expr": " array_min(TTLs) "},
        "streams/flights/columns/seen": {
            "type": "timestamp", "from": "ts", "format": "epoch_seconds", "timezone": "Europe/Berlin",
        },
        "streams/flights/columns/day": {"type": "date", "from": "day", "format": ["dd.MM.yyyy", "yyyy-MM-dd"]},
        "streams/flights/format": "json",
        "streams/flights/sources": {"TTLs": "array<double>"},
    }
    stream = loaded(tmp_path, changes).streams[0]
    columns = {column.name: column for column in stream.columns}
    assert columns["weight"] == Column("weight", "double", "id.orig_h")
    assert columns["least"] == Column("least", "double", None, "array_min(TTLs)")
    assert columns["seen"] == Column("seen", "timestamp", "ts", None, ("epoch_seconds",), "Europe/Berlin")
    assert columns["day"] == Column("day", "date", None, None, ("dd.MM.yyyy", "yyyy-MM-dd")), "from its own name is no source"
    assert columns["tailnum"] == Column("tailnum", "string")
    assert stream.sources == (Column("TTLs", "array<double>"),)
    root = tmp_path / "data"
    assert stream_of(declaration_of(stream, root), "flights", root).columns == stream.columns
    assert stream_of(declaration_of(stream, root), "flights", root).sources == stream.sources
    assert [column.label for column in inputs_of(stream)][-2:] == ["day", "_source_0"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"type": "double", "form": "x"}, ['the unknown key "form"', "from"]),
        ({"from": "x"}, ["no type"]),
        ({"type": 3}, ["type = 3"]),
        ({"type": "dubble"}, ["double"]),
        ({"type": "double", "from": "x", "expr": "x"}, ["both from and expr"]),
        ({"type": "double", "from": ""}, ['from = ""']),
        ({"type": "double", "expr": 7}, ["expr = 7"]),
        ({"type": "double", "format": "epoch_seconds"}, ["format with the type double"]),
        ({"type": "timestamp", "format": "epoch"}, ['"epoch"', "epoch_seconds"]),
        ({"type": "timestamp", "format": "%d.%m.%Y"}, ["%d.%m.%Y", "yyyy-MM-dd"]),
        ({"type": "timestamp", "format": "DD.MM.YYYY"}, ["the letter Y"]),
        ({"type": "timestamp", "format": "HH:mm"}, ["without a year"]),
        ({"type": "timestamp", "format": []}, ["format = []"]),
        ({"type": "timestamp", "format": "yyyy-MM-dd'T"}, ["one quote alone"]),
        ({"type": "timestamp", "timezone": "Europe/Berln"}, ["Europe/Berlin"]),
        ({"type": "date", "timezone": "UTC"}, ["timezone with the type date"]),
        ({"type": "double", "expr": "wight * 2"}, ['expr: the unknown column "wight"', "source columns", "weigth"]),
        ({"type": "double", "expr": "rand()"}, ["expr: rand()"]),
        ({"type": "double", "expr": "sum(ttl)"}, ["expr: sum()", "aggregate"]),
        ({"type": "double", "expr": "ttl ttl2, 3"}, ["expr: "]),
        (7, ["from"]),
    ],
)
def test_faults_of_a_column_name_its_key(tmp_path: Path, column: object, words: list[str]) -> None:
    """Each names the found value, the allowed values and, if near, the intended value; no other key is blamed."""
    problems_found = problems(tmp_path, {COLUMN: column, "streams/flights/columns/weigth": "int"})
    assert [problem.key for problem in problems_found] == ["streams.flights.columns.weight"]
    text = f"{problems_found[0].found} {problems_found[0].allowed} {problems_found[0].nearest}"
    assert all(word in text for word in words), text


def test_sources_are_known_and_not_kept(tmp_path: Path) -> None:
    """Files may have them, whether an ``expr`` uses them or not; two that differ in case only cannot both be seen by one."""
    stream = loaded(tmp_path, {"streams/flights/sources": {"x": "int"}}).streams[0]
    assert header_problem(stream, ("tailnum", "departed_at", "landed_at", "ttl", "weight", "X")) is None
    assert [column.label for column in inputs_of(stream)] == ["tailnum", "departed_at", "landed_at", "ttl", "weight"]
    twins = {"streams/flights/sources": {"x": "int", "X": "int"}, COLUMN: {"type": "int", "expr": "x"}}
    assert [problem.key for problem in problems(tmp_path, twins)] == ["streams.flights.sources"]
    (mistyped,) = problems(tmp_path, {"streams/flights/sources": {"x": "itn"}, COLUMN: {"type": "int", "expr": "x"}})
    assert (mistyped.key, mistyped.nearest) == ("streams.flights.sources.x", "int")
    (csv,) = problems(tmp_path, {"streams/flights/sources": {"x": "array<int>"}, COLUMN: {"type": "int", "expr": "x[0]"}})
    assert csv.key == "streams.flights.sources.x"


@pytest.mark.parametrize(
    "pattern", [*EPOCH_FORMATS, "yyyy-MM-dd HH:mm:ss.SSSSSS", "dd.MM.yyyy[ HH:mm]", "EEE"[:0] + "M/d/yy h:mm a", "yyyy'T''s'"]
)
def test_patterns_that_stand(pattern: str) -> None:
    """Everyday patterns, optional parts and quoted text."""
    assert format_fault(pattern) is None


def test_what_a_changed_source_means(tmp_path: Path) -> None:
    """Where a column comes from is for rows to come, like ``arrival``; the long form of the same is no change."""
    before = loaded(tmp_path)

    class Recorded:
        anchor, update_interval, tables, lazy = before.anchor, before.update_interval, (), ()

    def verdict(column: object) -> str:
        changes = verdicts(loaded(tmp_path, {COLUMN: column}), Recorded, before.keys)  # type: ignore[arg-type]
        return " ".join(f"{change.key} {change.verdict}" for change in changes)

    assert verdict({"type": "double"}) == "streams.flights.columns.weight free"
    assert verdict({"type": "double", "from": "weight"}) == "streams.flights.columns.weight free"
    assert verdict({"type": "double", "from": "Gewicht"}) == "streams.flights.columns.weight from now on"
    assert verdict({"type": "double", "expr": "2 * ttl"}) == "streams.flights.columns.weight from now on"


def test_headers_without_a_file(tmp_path: Path) -> None:
    """Exact names win; then the case of letters does not matter, which is told; a key that is not there refuses the file."""
    stream = loaded(tmp_path, {"streams/flights/columns/tailnum": {"type": "string", "from": "Tail Num"}}).streams[0]
    header = ("TAIL NUM", "departed_at", "landed_at", "ttl", "Weight")
    assert header_problem(stream, header) is None
    match = match_columns(stream, header, {name: {} for name in header})
    assert match.ignoring_case == (("Tail Num", "TAIL NUM"), ("weight", "Weight"))
    assert header_problem(stream, header[1:]) == ("header", "its header has no Tail Num, of the search key")
    reason, message = header_problem(stream, (*header, "tailnum")) or ("", "")
    assert (reason, "tailnum" in message) == ("unknown_columns", True), "the column is called so, no column of a file is"


@pytest.mark.parametrize(("separator", "written"), [(";", '";"'), ("\t", '"\\t"'), ("|", '"|"')])
@pytest.mark.parametrize("unknown", ["reject", "add", "ignore"])
def test_a_header_with_another_separator_is_refused(tmp_path: Path, separator: str, written: str, unknown: str) -> None:
    """As a spreadsheet saves it: the message says so, and no column of that name is added."""
    stream = loaded(tmp_path, {"streams/flights/unknown_columns": unknown}).streams[0]
    header = separator.join(("Tailnum", "departed_at", "landed_at"))
    reason, message = header_problem(stream, (header,)) or ("", "")
    assert reason == "header"
    assert message.startswith(f"its header is one column, {header}, with {separator!r} between the names; ")
    assert f"options = {{ sep = {written} }}" in message
    assert (header_problem(stream, ("a;b",)) or ("", ""))[1].count("between the names") == 0


def test_what_describe_says_of_a_source() -> None:
    """In the words of the declaration; nothing where the type says all."""
    assert origin_of(ColumnRecord("k", "string")) is None
    assert origin_of(ColumnRecord("k", "string", "id.orig_h")) == 'from = "id.orig_h"'
    assert origin_of(ColumnRecord("k", "int", expr="a + 1")) == 'expr = "a + 1"'


def test_old_records_have_columns_without_sources() -> None:
    """A column recorded before sources existed is read unchanged."""
    import msgspec  # noqa: PLC0415 - one use

    assert msgspec.json.decode(b'{"name": "k", "type": "string"}', type=ColumnRecord) == ColumnRecord("k", "string")
    assert Epoch.__doc__
