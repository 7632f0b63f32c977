"""Pictures of a terminal and of the report, for the README and the docs, as the program writes them for a project.

``python -m docs.building.pictures PROJECT`` makes both again, for example of the example ``flights`` after some updates.
"""

from __future__ import annotations

import os
import subprocess
import sys
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

from docs.building.figures import FOLDER
from warehouse import Warehouse

__all__ = ["report", "terminal", "write"]

_COMMANDS = (
    ("status",),
    ("probe", "with_weather", "EWR", "--limit", "3"),
    ("sql", "SELECT carrier, count(*) AS flights FROM flights GROUP BY 1 ORDER BY 2 DESC LIMIT 4"),
)
_WIDTH, _LINE, _MARGIN = 900, 18, 16
_PAGE = (1200, 820)
_COLOURS = 64
_TERMINAL = """<style>
.screen { fill: #14181b; }
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #e9eef1; white-space: pre; }
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
    rows = [
        f'<text class="{kind}" x="{_MARGIN}" y="{_MARGIN + (number + 0.7) * _LINE:.0f}">{escape(line)}</text>'
        for number, (kind, line) in enumerate(lines)
        if line
    ]
    screen = f'<rect class="screen" width="{_WIDTH}" height="{high}" rx="8"/>'
    return _svg(_WIDTH, high, "Commands in a terminal and what they print", "\n".join([_TERMINAL, screen, *rows]))


def report(project: Path, target: Path) -> None:
    """Write the beginning of a project's report as a browser shows it; ``$STREAM_WH_BROWSER`` names the browser."""
    with Warehouse.open(project) as warehouse, TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(warehouse.report())
        wide, high = _PAGE
        how = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={wide},{high}"]
        shot = Path(folder) / "report.png"
        browser = os.environ.get("STREAM_WH_BROWSER", "chromium")
        subprocess.run([browser, *how, f"--screenshot={shot}", page.as_uri()], check=True, capture_output=True, timeout=120)  # noqa: S603 - a browser
        with Image.open(shot) as picture:
            picture.convert("RGB").quantize(_COLOURS).save(target, optimize=True)


def _svg(wide: int, high: int, title: str, content: str) -> str:
    box = f'viewBox="0 0 {wide} {high}" width="{wide}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {box}><title>{title}</title>\n{content}\n</svg>\n'


def write(project: Path) -> None:
    """Write both pictures to their files."""
    (FOLDER / "terminal.svg").write_text(terminal(project))
    report(project, FOLDER / "report.png")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
