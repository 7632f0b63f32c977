"""The report in a real browser, where Chromium is installed ($STREAM_WH_BROWSER names another one of its kind).

A script that is added to a copy of the page measures it and leaves what it found as text, which the browser prints.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from html import escape, unescape
from typing import TYPE_CHECKING, Any

import pytest

from tests.serving.house import add_views, build
from warehouse.health import Health
from warehouse.report.figures import figures_of
from warehouse.report.page import html_page
from warehouse.serving import Reader

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = os.environ.get("STREAM_WH_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser: none of {', '.join(NAMES)}, nor $STREAM_WH_BROWSER")
LONGEST = "a_name_of_sixty_three_letters".ljust(63, "s")
DARK = "--blink-settings=preferredColorScheme=0"
MEASURE = """
<script>
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const wide = WIDTH;
document.body.style.margin = 0;
document.documentElement.style.width = wide + "px";
const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
    && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
const texts = [...document.querySelectorAll("svg text")].filter((text) => text.textContent);
const cut = texts.filter((text) => !within(text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()));
const found = {
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    colours: Object.fromEntries(["paper", "ink", "faint", "link", "dead", "live"].map((name) => [name, colour("--" + name)])),
    texts: texts.length,
    cut: cut.map((text) => text.textContent),
    right: Math.max(...[...document.querySelectorAll("h1, h2, h3, p, figure")].map((part) => part.getBoundingClientRect().right)),
    smallest: Math.min(...texts.filter((text) => !text.closest("g")).map((text) => text.getBoundingClientRect().height)),
};
document.body.innerHTML = "<pre id=found></pre>";
document.getElementById("found").textContent = JSON.stringify(found);
</script></body>"""

PHONE = """<!DOCTYPE html><body><iframe id="phone" style="width:390px;height:900px;border:0" srcdoc="PAGE"></iframe><script>
document.getElementById("phone").onload = (event) => {
    const page = event.target.contentDocument;
    const rows = [...page.querySelectorAll("table.stacked tr")].slice(1);
    const cells = [...page.querySelectorAll("table.stacked td")];
    const found = {
        wide: page.documentElement.scrollWidth,
        scrolled: [...page.querySelectorAll(".wide:has(table)")].filter((each) => each.scrollWidth > each.clientWidth).length,
        outside: cells.filter((cell) => cell.getBoundingClientRect().right > 390).length,
        hidden: cells.filter((cell) => cell.getBoundingClientRect().height === 0).length,
        named: cells.filter((cell) => cell !== cell.parentElement.firstElementChild)
            .every((cell) => event.target.contentWindow.getComputedStyle(cell, "::before").content.length > 4),
        cells: cells.length,
    };
    document.body.innerHTML = "<pre id=found></pre>";
    document.getElementById("found").textContent = JSON.stringify(found);
};
</script></body>"""


def started(profile: Path, *arguments: str) -> str:
    """Run the browser without a window and return what it printed."""
    own = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    process = subprocess.run([str(BROWSER), *own, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a warehouse with all kinds of tables, one of the longest name."""
    directory = tmp_path_factory.mktemp("browser")
    built = build(directory / "root")
    add_views(built)
    with Reader.open(built.root) as reader:
        figures = figures_of(reader)
    tables = (*figures.tables, replace(figures.tables[0], name=LONGEST))
    text = html_page(replace(figures, tables=tables), "a warehouse", Health("ok", ()))
    (directory / "page.html").write_text(text)
    return directory / "page.html"


def measured(page: Path, width: int, *arguments: str) -> dict[str, Any]:
    """Return what the script finds in a page of a width in pixels."""
    copy = page.with_name("measured.html")
    copy.write_text(page.read_text().replace("</body>", MEASURE.replace("WIDTH", str(width))))
    return found_by(copy, *arguments)


def found_by(page: Path, *arguments: str) -> dict[str, Any]:
    """Return the findings of a page's script."""
    printed = started(page.parent / "profile", *arguments, "--window-size=1700,1000", "--dump-dom", page.as_uri())
    match = re.search(r'<pre id="found">(.*?)</pre>', printed, re.DOTALL)
    assert match, printed[-500:]
    values: dict[str, Any] = json.loads(unescape(match[1]))
    return values


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours `#rgb` or `#rrggbb`, 1 to 21 (WCAG 2.2, relative luminance)."""

    def luminance(colour: str) -> float:
        digits = colour.lstrip("#")
        pairs = [digits[at : at + 2] for at in (0, 2, 4)] if len(digits) == 6 else [digit * 2 for digit in digits]
        parts = [int(pair, 16) / 255 for pair in pairs]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("width", [400, 1000, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_readable_at_every_width_in_the_dark_and_in_the_light(page: Path, width: int, *, dark: bool) -> None:
    """No text is cut off, nothing overflows on the right, letters have a minimum size, and colours have enough contrast."""
    measures = measured(page, width, *([DARK] if dark else []))
    assert (measures["dark"], measures["cut"]) == (dark, [])
    assert measures["texts"] > 100
    assert measures["right"] <= width
    assert measures["smallest"] >= 9
    colours = measures["colours"]
    for name in ("ink", "faint", "link"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
    for name in ("live", "dead"):
        assert contrast(colours[name], colours["paper"]) >= 3, name


def test_a_phone_shows_every_column(page: Path) -> None:
    """On 390 pixels nothing overflows, and each cell of a wide table is visible with its column's heading."""
    shown = page.with_name("phone.html")
    shown.write_text(PHONE.replace("PAGE", escape(page.read_text())))
    measures = found_by(shown)
    assert measures.pop("cells") > 50
    assert measures.pop("wide") <= 390
    assert measures == {"scrolled": 0, "outside": 0, "hidden": 0, "named": True}


def test_it_can_be_printed(page: Path) -> None:
    """As a PDF, of more than one page."""
    target = page.with_suffix(".pdf")
    started(page.parent / "profile", f"--print-to-pdf={target}", page.as_uri())
    printed = target.read_bytes()
    assert printed.startswith(b"%PDF-")
    assert max(map(int, re.findall(rb"/Count (\d+)", printed))) > 1
