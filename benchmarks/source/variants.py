"""The techniques of the source with their grids, each a contender: R-ins, R-exp, D-ins, D-exp, Rebuild, NoRebuild.

Wave indices are chronological n x 1 and 1 x n grids (section 2.1). REINDEX and Rebuild are ``technique = "rebuild"``, DEL and
NoRebuild ``norebuild`` without sealing: runs are appended, files of passed expiry blocks removed. Where the source changes
fixed-size buckets in place, this storage appends files; so rows read and written are counted apart from times.
"""

from __future__ import annotations

from benchmarks.field.contenders.ours import Ours, Unclustered, layout_lines
from benchmarks.field.roster import Entry

__all__ = ["BARE", "CLUSTERED", "EVERY", "SIDES", "UNEVEN", "grid_name", "wave_name"]

SIDES = (1, 2, 3, 4, 5)
"""Square roots of n = 1, 4, 9, 16, 25."""


def wave_name(kind: str, n: int) -> str:
    """Return the source's label of a wave index.

    >>> wave_name("R-ins", 4)
    'R-ins4'
    """
    return f"{kind}{n}"


def grid_name(kind: str, rows: int, columns: int, *, chronological: bool = False) -> str:
    """Return the source's label of a grid.

    >>> grid_name("Rebuild", 2, 8)
    'Rebuild2x8'
    """
    return f"{kind}{rows}x{columns}{'chr' if chronological else ''}"


def _made(label: str, layout: str) -> Entry:
    """Make a contender of a layout; workers find its class in this module by its label."""
    kind = type(label, (Ours,), {"layout": layout, "__doc__": f"{label}.", "__module__": __name__})
    globals()[label] = kind
    return Entry(label, f"{__name__}:{label}", label, "spark")


def _wave(kind: str, n: int) -> Entry:
    technique = "rebuild" if kind.startswith("R") else "norebuild"
    grid = (n, 1) if kind.endswith("ins") else (1, n)
    return _made(wave_name(kind, n), layout_lines(technique, grid, "chronological"))


def _grid(kind: str, rows: int, columns: int, assignment: str = "round-robin") -> Entry:
    label = grid_name(kind, rows, columns, chronological=assignment == "chronological")
    return _made(label, layout_lines(kind.lower(), (rows, columns), assignment))


SINGLE = tuple(_grid(kind, 1, 1) for kind in ("Rebuild", "NoRebuild"))
WAVES = tuple(_wave(kind, side * side) for side in SIDES[1:] for kind in ("R-ins", "R-exp", "D-ins", "D-exp"))
SQUARES = tuple(_grid(kind, side, side) for side in SIDES[1:] for kind in ("Rebuild", "NoRebuild"))
UNEVEN = tuple(_grid(kind, *sides) for kind in ("Rebuild", "NoRebuild") for sides in ((2, 8), (8, 2)))
CHRONOLOGICAL = tuple(_grid(kind, 4, 4, "chronological") for kind in ("Rebuild", "NoRebuild"))
BARE = Entry("NoIndex4x4", f"{Unclustered.__module__}:Unclustered", "NoIndex4x4", "spark")
"""Without clustering by the key."""

EVERY = (*SINGLE, *WAVES, *SQUARES, *UNEVEN, *CHRONOLOGICAL, BARE)
"""What section 8.1 lists."""

CLUSTERED = (*(wave for wave in WAVES if "ins" in wave.name), *SQUARES)
"""What is compared at other sizes and rates: R-ins, D-ins, Rebuild, NoRebuild at n = 4, 9, 16, 25."""
