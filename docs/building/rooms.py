"""Which room of the library imports which, drawn from the code: a row for each room, a mark below each room that it imports."""

from __future__ import annotations

import tomllib
from pathlib import Path

from docs.building.svg import drawing
from warehouse.report.svg import rectangle, text

__all__ = ["imports", "layers", "rooms"]

ROOT = Path(__file__).parent.parent.parent
_LEFT, _TOP, _SQUARE = 96, 92, 22


def layers() -> list[str]:
    """Return the rooms of the import contract, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    listed = next(contract["layers"] for contract in contracts if contract["id"] == "warehouse")
    return [room for layer in listed for room in layer.split(" : ")]


def imports() -> set[tuple[str, str]]:
    """Return each pair of rooms of which the first imports the second, imports for type checking included."""
    from grimp import build_graph  # noqa: PLC0415 - a tool of development; the site is built without it

    graph = build_graph("warehouse", cache_dir=None)
    found = set()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            one, two = (*module.split("."), "")[1], (*other.split("."), "")[1]
            if one and two and one != two:
                found.add((one, two))
    return found


def rooms() -> str:
    """Draw the rooms from the highest to the lowest; imports that point downwards lie right of the diagonal."""
    names, found = layers(), imports()
    parts = []
    for place, name in enumerate(names):
        x, y = _LEFT + place * _SQUARE, _TOP + place * _SQUARE
        parts.append(text(_LEFT - 8, y + 0.7 * _SQUARE, name, "axis", "end"))
        turned = f'transform="translate({x + 0.65 * _SQUARE:.0f} {_TOP - 8}) rotate(-90)"'
        parts.append(f'<text class="axis" {turned}>{name}</text>')
        parts.append(rectangle("live", x, y, _SQUARE, _SQUARE))
        for other, imported in enumerate(names):
            if other != place:
                kind = "new" if other > place else "dead"
                mark = kind if (name, imported) in found else "rest"
                title = f"<title>{name} imports {imported}</title>" if mark != "rest" else ""
                shape = rectangle(mark, _LEFT + other * _SQUARE, y, _SQUARE, _SQUARE)
                parts.append(f"<g>{title}{shape}</g>" if title else shape)
    size = len(names) * _SQUARE
    return drawing(_LEFT + size + 12, _TOP + size + 12, parts, "Which room of the library imports which")
