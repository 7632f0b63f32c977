"""What the site is made of beside its pages: parts of the reference from the code, the figures, the list of pages."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt

from docs.building.commands import commands_page
from docs.building.errors import OF_THE_COMMAND_LINE, errors_of_the_library, errors_page
from docs.building.figures import FIGURES, FOLDER, LAYOUT, NOW, plane
from docs.building.generated import PAGES as GENERATED
from docs.building.keys import KeysError, joined
from docs.building.links import within_the_site
from docs.building.python import CLASSES
from warehouse.cli.main import COMMANDS, stream_wh

from .blocks import PAGES, ROOT

CONFIGURATION = PAGES["configuration.md"].read_text()


def test_every_option_of_every_command_is_in_the_reference() -> None:
    """As `--help` spells it; a command's examples stand below it."""
    page = commands_page()
    whole = click.Context(stream_wh, info_name="stream-wh")
    for name in COMMANDS:
        (section,) = re.findall(rf"^## `{name}`\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
        command = stream_wh.get_command(whole, name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert all(spelling in section for spelling in parameter.opts), (name, parameter.opts)
        assert section.count("\nstream-wh ") >= 2, f"{name}: usage and an example"


def test_help_becomes_text_not_markup() -> None:
    """Brackets, stars and underlines of a help text are shown, backquoted words are code."""
    shown = MarkdownIt().enable("table").render(commands_page())
    for text in ("[$STREAM_WH_PROJECT, else the current directory]", "root/erasures"):
        assert text in re.sub(r"<[^>]+>", "", shown)
    assert "<em>" not in shown
    assert "<strong>" not in shown


def test_every_error_code_is_in_the_reference() -> None:
    """Each class once, under its exit code; the command line's own codes are those that it uses."""
    page = errors_page()
    kinds = errors_of_the_library()
    assert len(kinds) > 25
    for kind in kinds:
        (section,) = re.findall(rf"^## Exit code {kind.exit_code}\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
        assert f"| `{kind.code}` | `{kind.__name__}` |" in section
    source = (ROOT / "cli" / "errors.py").read_text()
    used = set(re.findall(r'Failure\([^"\n]*?"([a-z]+)"', source)) - {"usage"}
    assert used == {code for code, *_ in OF_THE_COMMAND_LINE}


def test_the_tables_of_keys_are_those_of_the_models() -> None:
    """Every table says what a key allows; one that lacks a key, or tells another default, does not build."""
    page = joined(CONFIGURATION)
    assert page.count("| allowed |") == 12
    assert "| `seal` | `true` | true or false |" in page
    with pytest.raises(KeysError, match=r"misses \['read_log'\]"):
        joined(re.sub(r"\| `read_log`.*\n", "", CONFIGURATION))
    with pytest.raises(KeysError, match=r"has \['colour'\]"):
        joined(CONFIGURATION.replace("| `read_log` |", "| `colour` | none | x |\n| `read_log` |"))
    with pytest.raises(KeysError, match="16000000"):
        joined(CONFIGURATION.replace("| `max_record` | `16MB` |", "| `max_record` | `32MB` |", 1))


def test_links_out_of_the_docs_become_names() -> None:
    """In the site, where there is nothing that they could lead to; links between pages stay."""
    page = within_the_site("[growth](../benchmarks/README.md#growth), [words](glossary.md#slot), [here](#below)")
    assert page == "growth (`benchmarks/README.md`), [words](glossary.md#slot), [here](#below)"


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_those_that_the_layout_makes(name: str) -> None:
    """`python -c "from docs.building.figures import write; write()"` makes them again."""
    assert (FOLDER / name).read_text() == FIGURES[name]()


def test_the_plane_has_every_square_of_the_window() -> None:
    """Of load slot a the expiration slots up to a + p that are not past: a triangle; one column expires, one row comes."""
    periods = LAYOUT.periods
    squares = {kind: plane().count(f'<rect class="{kind}"') - 1 for kind in ("live", "new", "dead")}  # one is of the key
    live = sum(1 for a in range(NOW - periods + 1, NOW + 1) for b in range(NOW + 2, a + periods + 1))
    assert squares == {"live": live, "new": periods, "dead": periods}


def test_every_page_is_in_the_list() -> None:
    """Each page of docs/ and each generated page stands in exactly one table of contents."""
    index = PAGES["index.md"].read_text()
    lists = re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)
    listed = [name for toctree in lists for name in toctree.split("\n\n")[1].split()]
    pages = [Path(name).stem for name in PAGES if name not in {"README.md", "index.md"}]
    assert sorted(listed) == sorted([*pages, *(f"generated/{Path(name).stem}" for name in GENERATED)])


def test_classes_of_the_reference_say_what_they_do() -> None:
    """Each documented class exists, and each of its public methods has a docstring."""
    for _, name in CLASSES:
        module, _, kind = name.rpartition(".")
        documented = getattr(__import__(module, fromlist=[kind]), kind)
        silent = [
            key for key, value in vars(documented).items() if not key.startswith("_") and callable(value) and not value.__doc__
        ]
        assert (documented.__doc__ is not None, silent) == (True, [])


@pytest.mark.parametrize(("name", "words"), [("terminal.svg", "$ stream-wh status"), ("report.svg", "Rows that end")])
def test_pictures_are_small_and_any_viewer_shows_them(name: str, words: str) -> None:
    """`python -m docs.building.pictures PROJECT` makes them: drawings without scripts, HTML or variables of a style."""
    picture = (FOLDER / name).read_text()
    root = ET.fromstring(picture)  # noqa: S314 - our own
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert words in "".join(root.itertext())
    assert [strange for strange in ("<script", "foreignObject", "var(--", "href=") if strange in picture] == []
    assert len(picture) < 50_000
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        assert name == "terminal.svg" or f"figures/{name})" in page.read_text()
