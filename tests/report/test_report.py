"""The report: its figures are those of the model, and its page is whole, needs nothing else, and says what a name says."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from tests.serving.house import House, add_views, build, declare
from warehouse.cli.main import run
from warehouse.epochs.records import StepSeconds
from warehouse.health import Concern, Health
from warehouse.report.charts import Axis, Series, stacked_columns
from warehouse.report.figures import EpochFigures, Figures, StepFigures, figures_of
from warehouse.report.graph import GraphNode, graph
from warehouse.report.heat_map import HeatCell, heat_map
from warehouse.report.page import html_page
from warehouse.report.scales import COUNT
from warehouse.serving import Reader
from warehouse.serving.read_log import VARIABLE, reads_of
from warehouse.time import HOUR, NEVER

if TYPE_CHECKING:
    from pathlib import Path

SLOT = 5
WITHOUT_END = ("meta",)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Streams, a view over one of them and a relation, and the relation."""
    built = build(tmp_path_factory.mktemp("house") / "root")
    add_views(built)
    return built


@pytest.fixture(scope="module")
def figures(house: House) -> Figures:
    """What a report of it draws."""
    with Reader.open(house.root) as reader:
        return figures_of(reader)


class _Page(HTMLParser):
    """Checks that what is opened is closed, in order, and keeps the texts, the attributes, and where links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.names: set[str] = set()
        self.places: set[str] = set()
        self.targets: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}
        self.places |= {value or "" for name, value in attrs if name == "id"}
        self.targets |= {value or "" for name, value in attrs if name == "href"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_live_and_dead_bytes_are_those_of_the_files(house: House, figures: Figures) -> None:
    """Together they are all bytes of a table; rows are counted as the model counts them."""
    with Reader.open(house.root) as reader:
        for table in figures.tables:
            files = reader.pin.snapshot(reader.pin.recorded(table.name)).files
            assert (table.files, table.live_bytes + table.dead_bytes) == (len(files), sum(file.size for file in files))
            assert table.live_rows == len(house[table.name].live(SLOT))
            assert len({(cell.row, cell.column) for cell in table.cells}) == len(table.cells)
    names = next(table for table in figures.tables if table.name == "names")
    assert min(names.live_bytes, names.dead_bytes) > 0
    assert {(cell.row, cell.column) for cell in names.cells} == {(row, column) for row in (0, 1) for column in (0, 1)}


def test_lifetimes_are_those_of_the_live_rows(house: House, figures: Figures) -> None:
    """Each live row is in one bin, the one that its lifetime falls into; p is six hours."""
    for table in figures.tables:
        live = house[table.name].live(SLOT)
        lifetimes = table.lifetimes
        assert lifetimes.width == HOUR / 4
        expected = [0] * 25
        for row in live:
            if row.exp != NEVER:
                expected[min((row.exp - row.ts) // lifetimes.width, 24)] += 1
        assert ([*lifetimes.bins, lifetimes.longer], lifetimes.never) == (expected, sum(row.exp == NEVER for row in live))


def test_views_stand_right_of_what_they_read(figures: Figures) -> None:
    """The graph has an arrow from each input."""
    assert {(edge.table, edge.view) for edge in figures.edges} == {("names", "results"), ("planes", "results")}
    nodes = [GraphNode("results", "view"), GraphNode("names", "stream"), GraphNode("planes", "relation")]
    picture = graph(nodes, [("names", "results"), ("planes", "results")])
    assert picture.count("marker-end") == 2
    assert picture.index('x="230" y="10"') < picture.index(">results<")
    assert picture.index('x="10" y="10"') < picture.index(">names<")


def test_an_arrow_past_a_column_has_a_way_of_its_own() -> None:
    """`a` is read by `b` and by `c`, which reads `b` too: the arrow from a to c passes below b's box, not behind it."""
    nodes = [GraphNode("a", "stream"), GraphNode("b", "view"), GraphNode("c", "view")]
    picture = graph(nodes, [("a", "b"), ("b", "c"), ("a", "c")])
    assert "<title>c reads a</title>" in picture
    past = next(part for part in picture.split("<path") if "c reads a" in part)
    boxes = re.findall(r'x="(\d+)" y="(\d+)" width="150"', picture)
    assert boxes == [("10", "10"), ("230", "10"), ("450", "10")]
    assert " 229 89 H380 " in past, "in the second column it runs at the height of a second row"


def test_probes_are_measured_where_there_are_keys(figures: Figures) -> None:
    """Of each table with live rows that have a key."""
    measured = {table.name: len(table.measured_probes.milliseconds) if table.measured_probes else 0 for table in figures.tables}
    assert (measured["nothing"], measured["names"] > 5) == (0, True)


def test_latencies_are_those_of_the_read_log(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Latencies are of probes of one key; the page's own probes are not logged, and a table without probes has none."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with Reader.open(house.root, logged=True) as reader:
        for keys in (["a"], ["b"], ["a", "b"]):
            reader.probe("names", keys).all()
        reader.scan("names").all()
    declare(house.root.parent, "root")
    assert run(["-C", str(house.root.parent), "report", "--output-file", str(tmp_path / "page.html")]) == 0
    milliseconds = sorted(read.seconds * 1000 for read in reads_of(house.root) if read.keys == 1)
    assert len(reads_of(house.root)) == 4
    with Reader.open(house.root) as reader:
        logged = {table.name: table.logged_probes for table in figures_of(reader).tables}
    assert logged["names"] is not None
    assert logged["names"].milliseconds == tuple(milliseconds)
    assert sum(count for _, count in logged["names"].bins()) == len(milliseconds) == 2
    assert logged["days"] is None
    assert "2 probes of one key in the read log" in (tmp_path / "page.html").read_text()


def test_seconds_of_an_update_are_those_of_its_steps_and_the_rest(house: House) -> None:
    """The time goes from the plan to the commit; an old record does not have the time of its plan."""
    last = house.epochs[-1]
    steps = (StepSeconds("tables/names: move", 2.0), StepSeconds("tables/days: move", 0.5))
    timed = replace(last, seconds=steps, planned_at=last.committed_at - 3_000_000)
    own = House(house.root, house.tables, [timed])
    with Reader(own.root, timed) as reader:
        epoch = figures_of(reader).epochs[-1]
    assert [(step.step, step.seconds) for step in epoch.steps] == [
        ("tables/names: move", 2.0), ("tables/days: move", 0.5), ("", 0.5),
    ]  # fmt: skip
    assert (epoch.seconds, epoch.lag) == (3.0, 60.0)


def test_what_ends_next_is_that_of_the_model(house: House, figures: Figures) -> None:
    """Each table has the rows that end with the next update, within six hours and a day; the page shows them."""
    tau = figures.window_time
    for ending in figures.endings:
        if ending.table in ("names", "pairs", "days"):
            ends = [row.exp for row in house[ending.table].live(SLOT)]
            assert ending.rows == sum(end <= tau + ending.within for end in ends), ending
    text = html_page(figures, "w", Health("ok", ()))
    day = {ending.table: ending for ending in figures.endings if ending.within == 24 * HOUR}
    assert '<td class="text" data-head="table">names</td>' in text
    assert f"{day['names'].rows:,} (" in text
    assert "No live row ends within a day" in html_page(replace(figures, endings=()), "w", Health("ok", ()))


def test_the_verdict_stands_on_top_with_what_helps(figures: Figures) -> None:
    """Each concern is text, never markup, and links to its table if the page has the table."""
    name = figures.tables[0].name
    concerns = (
        Concern("broken", "standing_still", name, "stands still: a < b", "stream-wh rebuild x"),
        Concern("attention", "unreadable", "never built", "1 landing file could not be loaded: <i>.csv"),
    )
    text = html_page(figures, "w", Health("broken", concerns, ("an update is running",)))
    page = _Page(text)
    assert page.open == []
    assert text.index("broken: 2 things need a person") < text.index('id="all-tables"')
    assert f'<a href="#table-{name}">{name}</a>: stands still: a &lt; b; <code>stream-wh rebuild x</code>' in text
    assert "never built: 1 landing file could not be loaded: &lt;i&gt;.csv" in text
    assert "an update is running" in text
    assert page.targets <= {f"#{anchor}" for anchor in page.places}


def test_the_page_is_whole_and_fetches_nothing(figures: Figures) -> None:
    """Every element is closed; all links lead to places on the page; each table has its own place."""
    text = html_page(figures, "a <b> & 'c'", Health("ok", ()))
    page = _Page(text)
    assert page.open == []
    assert text.count("<script") == text.count("<script>") == 1
    assert not page.names & {"link", "img", "iframe", "src", "onload", "onclick"}
    sections = {f"table-{table.name}" for table in figures.tables} | {"all-tables", "all-what-ends-next", "all-what-reads-what"}
    sections.add("all-updates")
    assert (page.targets, page.places) == ({f"#{anchor}" for anchor in sections}, {"arrow", *sections})
    assert "://" not in text
    assert "url(" not in text.replace("url(#arrow)", "")
    assert any(page_text.startswith("a <b> & 'c', as of 2013-01-01T05:00:00Z") for page_text in page.texts)
    for table in figures.tables:
        assert table.name in page.texts
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_the_search_field_waits_for_its_script(figures: Figures) -> None:
    """Without a script there is none, and nothing is hidden but it; each table has the row and link that it needs."""
    text = html_page(figures, "w", Health("ok", ()))
    assert text.count(" hidden") == text.count('class="search" hidden') == 1
    assert "<label>Search <input" in text
    body = text.partition("<script>")[0]
    for table in figures.tables:
        assert (body.count(f'href="#table-{table.name}"') >= 2, body.count(f'<section id="table-{table.name}"')) == (True, 1)


def test_a_view_that_stands_still_says_why_and_names_are_text(figures: Figures) -> None:
    """Names, steps and reasons never become markup; steps beyond the number of colours share the last colour."""
    tables = tuple(replace(table, failed="<i>1 / 0</i>", kind="<view>") for table in figures.tables)
    steps = tuple(StepFigures(f"<step {number}>", 1.0 + number) for number in range(12))
    epochs = tuple(replace(epoch, steps=steps) for epoch in figures.epochs)
    page = _Page(html_page(replace(figures, tables=tables, epochs=epochs), "w", Health("ok", ())))
    shown = " ".join(page.texts)
    assert ("<i>1 / 0</i>" in shown, "<view>" in shown, "<step 11>" in shown, "other steps" in shown) == (True, True, True, True)
    assert not page.names & {"i", "view", "step"}


def test_no_label_needs_a_glossary(figures: Figures) -> None:
    """The page describes labels, steps and side tables in words, not by tags and paths."""
    names = ("tables/a: move-window", "tables/a.synopsis0_1: move-window", "rejected/a: store-rejected")
    steps = tuple(StepFigures(name, 1.0) for name in names)
    epochs = tuple(replace(epoch, steps=steps) for epoch in figures.epochs)
    labels = ("WK", "WKS", "MON", "STR")
    tables = tuple(replace(figures.tables[0], name=f"t{number}", label=label) for number, label in enumerate(labels))
    shown = " ".join(_Page(html_page(replace(figures, tables=tables, epochs=epochs, endings=()), "w", Health("ok", ()))).texts)
    assert not re.search(r"\b(WKS?|MON|STR|synopsis\w*|norebuild|move-window)\b", shown)
    step = "load and expire counts of a for its aggregates"
    for words in ("expire at their own time", "never expire", "can leave early", step):
        assert words in shown


def test_columns_stand_on_each_other() -> None:
    """Heights are proportional to values, and the axis ends with a round number above the largest sum."""
    picture = stacked_columns(Axis(("x",), "y"), [Series("a", (3.0,)), Series("b", (4.0,))], COUNT, ["x"])
    heights = {kind: float(height) for kind, height in re.findall(r'class="bar (c\d)" [^>]* height="([0-9.]+)"', picture)}
    lows = {kind: float(y) + heights[kind] for kind, y in re.findall(r'class="bar (c\d)" x="[0-9.]+" y="([0-9.]+)"', picture)}
    assert heights["c0"] / heights["c1"] == pytest.approx(3 / 4, abs=0.01)
    assert lows["c1"] == pytest.approx(lows["c0"] - heights["c0"], abs=0.11)
    assert ">8<" in picture


def test_a_wave_index_lies_on_its_side_and_a_large_grid_has_small_cells() -> None:
    """A column of few cells becomes a row; where cells are too many for texts, these stand in the titles only."""
    wave = heat_map([HeatCell(row, 0, 1.0, 0.0, (f"text {row}",), "t") for row in range(4)], horizontal="across", vertical="down")
    assert re.findall(r'class="cell" x="(\d+)" y="40"', wave) == ["44", "148", "252", "356"]
    assert ">down<" in wave
    assert ">across<" not in wave
    large = [HeatCell(row, column, 1.0, 0.0, ("text",), "title") for row in range(12) for column in range(12)]
    picture = heat_map(large, horizontal="a", vertical="d")
    assert (picture.count("<title>title</title>"), picture.count(">text<")) == (144, 0)


def test_a_warehouse_without_any_row(figures: Figures) -> None:
    """Empty tables and an epoch that took no time are drawn too."""
    empty = tuple(table for table in figures.tables if table.name == "nothing")
    epoch = EpochFigures(0, 0, 0, "update", (), (("nothing", 0, 0),))
    assert _Page(html_page(replace(figures, tables=empty, epochs=(epoch,), edges=()), "w", Health("ok", ()))).open == []


def test_the_command_writes_the_file(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    """The command writes the whole page and prints its path; a project without an epoch is an error."""
    directory = declare(house.root.parent, "root")
    file = directory / "page.html"
    code = run(["-C", str(directory), "report", "--output-file", str(file)])
    messages = capsys.readouterr().err
    assert (code, f"wrote {file}" in messages) == (0, True), messages
    assert _Page(file.read_text()).open == []


def test_a_report_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the first epoch there is nothing to draw, and no file."""
    declare(tmp_path, "root")
    assert run(["-C", str(tmp_path), "report", "--output-file", str(tmp_path / "x.html")]) != 0
    assert "x.html" not in [path.name for path in tmp_path.iterdir()]
    assert capsys.readouterr().err
