"""Pictures of a terminal and of the report, for the README and the docs, as the program writes them for a project.

``python -m docs.building.pictures PROJECT`` makes both again, for example of the example ``flights`` after some updates.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

from docs.building.figures import FOLDER
from warehouse import Warehouse
from warehouse.report.style import STYLE

__all__ = ["report", "terminal", "write"]

_COMMANDS = (
    ("status",),
    ("probe", "with_weather", "EWR", "--limit", "3"),
    ("sql", "SELECT carrier, count(*) AS flights FROM flights GROUP BY 1 ORDER BY 2 DESC LIMIT 4"),
)
_WIDTH, _LINE, _MARGIN = 900, 18, 16
_TALL, _HIGH = 300, 730
_SHOWN = (
    (None, "Rows that end"),
    (None, "How long each update took"),
    ("flights", "Its grid"),
    ("flights", "How long its rows live"),
)
_TERMINAL = """<style>
.screen { fill: #14181b; }
text { font: 13px "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #e9eef1; }
text.typed { fill: #7cc0ee; font-weight: 600; }
</style>"""


def terminal(project: Path) -> str:
    """Return what commands print for a project, as a terminal of 100 columns."""
    lines: list[tuple[str, str]] = []
    for command in _COMMANDS:
        run = [sys.executable, "-m", "warehouse.cli", "-C", str(project), *command, "-o", "table"]
        wide = {**os.environ, "COLUMNS": "100"}
        out, err = subprocess.PIPE, subprocess.STDOUT
        shown = subprocess.run(run, check=True, text=True, stdout=out, stderr=err, env=wide)  # noqa: S603 - our own command
        typed = " ".join(f'"{part}"' if " " in part else part for part in command)
        lines += [("typed", f"$ stream-wh {typed}"), *(("", line) for line in shown.stdout.rstrip().splitlines()), ("", "")]
    high = len(lines) * _LINE + 2 * _MARGIN
    keep = 'xml:space="preserve"'
    rows = [
        f'<text {keep} class="{kind}" x="{_MARGIN}" y="{_MARGIN + (number + 0.7) * _LINE:.0f}">{escape(line)}</text>'
        for number, (kind, line) in enumerate(lines)
        if line
    ]
    screen = f'<rect class="screen" width="{_WIDTH}" height="{high}" rx="8"/>'
    return _svg(_WIDTH, high, "Commands in a terminal and what they print", "\n".join([_TERMINAL, screen, *rows]))


def report(project: Path) -> str:
    """Return the verdict and some of the figures of a project's report as one picture."""
    with Warehouse.open(project) as warehouse:
        page = warehouse.report()
        headline = warehouse.health().headline
    shown = [_figure(page, table, title) for table, title in _SHOWN]
    parts = [
        _STYLE_OF_THE_REPORT,
        f'<rect class="paper" width="{_WIDTH}" height="{_HIGH}"/>',
        f'<text class="head" x="20" y="38">{project.name}: the report</text>',
        f'<rect class="c2" x="20" y="54" width="6" height="28"/><text x="36" y="73">{escape(headline)}</text>',
    ]
    for number, (title, picture) in enumerate(shown):
        x, y = 20 + number % 2 * (_WIDTH // 2), 116 + number // 2 * _TALL
        parts.append(f'<text class="name" x="{x}" y="{y}">{title}</text>')
        parts.append(picture.replace("<svg ", f'<svg x="{x}" y="{y + 8}" width="{_WIDTH // 2 - 40}" height="{_TALL - 50}" ', 1))
    return _svg(_WIDTH, _HIGH, "The verdict and some figures of a report", "\n".join(parts))


def _figure(page: str, table: str | None, title: str) -> tuple[str, str]:
    """Return the heading and the drawing of a figure of the page, of a table's section or of the sections before all tables."""
    begin = 0 if table is None else page.index(f'id="table-{table}"')
    place = page.index(f"<h3>{title}", begin)
    heading = page[place + len("<h3>") : page.index("</h3>", place)]
    drawing = page[page.index("<svg", place) : page.index("</svg>", place) + len("</svg>")]
    return f"{table}: {heading[0].lower()}{heading[1:]}" if table else heading, re.sub(r' style="[^"]*"', "", drawing)


def _rules() -> str:
    """Return the report's rules for drawings, with the colours of a light browser: not every viewer knows variables."""
    colours = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]+)", STYLE.split("@media")[0]))
    rules = re.findall(r"^(?:text|\.cell|\.bar|\.edge|\.box|\.c\d)[^\n]*$", STYLE, re.MULTILINE)
    return re.sub(r"var\(--([a-z0-9]+)\)", lambda name: colours[name[1]], "\n".join(rules))


def _svg(wide: int, high: int, title: str, content: str) -> str:
    box = f'viewBox="0 0 {wide} {high}" width="{wide}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {box}><title>{title}</title>\n{content}\n</svg>\n'


_STYLE_OF_THE_REPORT = f"<style>.paper {{ fill: #fff; }}\n{_rules()}\ntext.head {{ font-size: 22px; font-weight: 600; }}</style>"


def write(project: Path) -> None:
    """Write both pictures to their files."""
    (FOLDER / "terminal.svg").write_text(terminal(project))
    (FOLDER / "report.svg").write_text(report(project))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
